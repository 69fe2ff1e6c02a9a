import { type Entity, type TableEntry, type Update, UpdateType } from '../../wire/p4runtime/messages.ts';
import { type MessageInput, messageCodec } from '../../wire/proto.ts';
import { RpcError, toRpcError } from './rpc-error.ts';
import type { RunningProgram } from './running-program.ts';

const entityCodec = messageCodec<Entity>('p4.v1.Entity');

/** A read filter. */
function filter(entity: MessageInput<Entity>): Entity {
  return entityCodec.decode(entityCodec.encode(entity));
}

/** Members before groups before the entries that use them. */
const PROFILES = [filter({ actionProfileMember: {} }), filter({ actionProfileGroup: {} })];
const ENTRIES = filter({ tableEntry: { counterData: {}, meterConfig: {} } });
const CELLS = [
  filter({ counterEntry: {} }),
  filter({ meterEntry: {} }),
  filter({ registerEntry: {} }),
  filter({ valueSetEntry: {} }),
];
const OTHERS = [
  filter({ packetReplicationEngineEntry: { multicastGroupEntry: {} } }),
  filter({ packetReplicationEngineEntry: { cloneSessionEntry: {} } }),
  filter({ digestEntry: {} }),
];

/**
 * Writes the state of a program to another that has not run yet (RECONCILE_AND_COMMIT). Objects go by their id.
 * @throws RpcError INVALID_ARGUMENT naming what the new program has no place for
 */
export function carryOver(from: RunningProgram, to: RunningProgram): void {
  for (const update of stateOf(from, to)) {
    try {
      to.writeOne(update);
    } catch (error) {
      throw new RpcError(
        'INVALID_ARGUMENT',
        `The new pipeline config cannot take over what the old one has: ${toRpcError(error).message}`,
      );
    }
  }
}

function* stateOf(from: RunningProgram, to: RunningProgram): Generator<Update> {
  const insert = (entity: Entity): Update => ({ type: UpdateType.INSERT, entity });
  const modify = (entity: Entity): Update => ({ type: UpdateType.MODIFY, entity });
  for (const kind of PROFILES) for (const entity of from.read(kind)) yield insert(entity);
  yield* ownEntriesThatAreGone(from, to);
  for (const { tableEntry } of from.read(ENTRIES)) yield entryUpdate(tableEntry!, to);
  yield* defaults(from).map(modify);
  for (const kind of CELLS) for (const entity of from.read(kind)) if (isNotInitial(entity)) yield modify(entity);
  for (const kind of OTHERS) for (const entity of from.read(kind)) yield insert(entity);
}

/** Entries that the new program begins with and that controllers have deleted from the old one. */
function ownEntriesThatAreGone(from: RunningProgram, to: RunningProgram): Update[] {
  const gone: Update[] = [];
  for (const table of to.tables.byId.values()) {
    const { id: tableId, isConst } = table.info;
    if (isConst || !from.tables.byId.has(tableId)) continue;
    for (const entry of table.control.entries()) {
      const key = { tableId, match: table.matchOf(entry), priority: entry.priority };
      if (!has(from, key)) gone.push({ type: UpdateType.DELETE, entity: filter({ tableEntry: key }) });
    }
  }
  return gone;
}

function entryUpdate(entry: TableEntry, to: RunningProgram): Update {
  const table = to.tables.byId.get(entry.tableId);
  const { isConst, ...plain } = entry;
  // Of const entries the new program's own keep their actions; only what was counted goes over.
  const tableEntry: TableEntry = { ...plain, isConst: false, action: isConst ? undefined : entry.action };
  const exists = table?.info.isConst === true || has(to, entry);
  return { type: exists ? UpdateType.MODIFY : UpdateType.INSERT, entity: { tableEntry } };
}

/** Whether the program has an entry with this key. One without such a table or such fields has none. */
function has({ tables }: RunningProgram, { tableId, match, priority }: EntryKey): boolean {
  try {
    const table = tables.require(tableId);
    return table.find(table.keys.parse(match), priority) !== undefined;
  } catch {
    return false;
  }
}

type EntryKey = Pick<TableEntry, 'tableId' | 'match' | 'priority'>;

function defaults(from: RunningProgram): Entity[] {
  return [...from.tables.byId.values()].flatMap(({ info, defaultIsWritten }) => {
    const tableEntry = { tableId: info.id, isDefaultAction: true };
    const wanted = [
      ...(defaultIsWritten ? [{ tableEntry }] : []),
      ...(info.directCounter === undefined ? [] : [{ directCounterEntry: { tableEntry } }]),
      ...(info.directMeter === undefined ? [] : [{ directMeterEntry: { tableEntry } }]),
    ];
    return wanted.flatMap((entity) => [...from.read(filter(entity))]);
  });
}

/** Cells that stand as every program begins are left alone: so they may be gone in the new one. */
function isNotInitial({ counterEntry, meterEntry, registerEntry, valueSetEntry }: Entity): boolean {
  if (counterEntry !== undefined) return counterEntry.data?.byteCount !== 0n || counterEntry.data.packetCount !== 0n;
  if (meterEntry !== undefined) return meterEntry.config !== undefined;
  if (registerEntry !== undefined) return registerEntry.data?.bitstring?.some((byte) => byte !== 0) === true;
  return (valueSetEntry?.members.length ?? 0) > 0;
}
