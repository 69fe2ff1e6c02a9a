import type {
  DirectCounterEntry,
  DirectMeterEntry,
  Entity,
  TableEntry,
  UpdateType,
} from '../../../wire/p4runtime/messages.ts';
import { messageCodec } from '../../../wire/proto.ts';
import type { CounterValue, EntryHandle, MeterConfig } from '../../control.ts';
import { RpcError } from '../rpc-error.ts';
import {
  checkPriority,
  counterMessage,
  meterMessage,
  parseCounterData,
  parseMeterConfig,
  refuseColourCounters,
  requireModify,
} from '../validation.ts';
import type { EntityKind, Undo } from './entity-kind.ts';
import type { TableState, TableStates } from './table-state.ts';

const tableEntry = messageCodec<TableEntry>('p4.v1.TableEntry');

/** An entry of a table, or its default entry. */
type Owner = EntryHandle | 'default';

/** Counters of table entries (P4Runtime 1.5, section "DirectCounterEntry"). */
export class DirectCounters implements EntityKind<DirectCounterEntry> {
  private readonly tables: TableStates;

  constructor(tables: TableStates) {
    this.tables = tables;
  }

  write(type: UpdateType, entity: DirectCounterEntry): Undo {
    requireModify(type, 'direct counter');
    const { table, owner } = requireOwner(this.tables, entity.tableEntry, requireCounter);
    if (entity.data === undefined) return () => undefined;
    const before = readCounter(table, owner);
    setCounter(table, owner, parseCounterData(entity.data, `Table ${table.info.name}`));
    return () => setCounter(table, current(table, owner), before);
  }

  read(filter: DirectCounterEntry): Entity[] {
    return ownersOf(this.tables, filter.tableEntry, requireCounter, ({ info }) => info.directCounter !== undefined).map(
      ({ table, owner }) => ({
        directCounterEntry: { tableEntry: keyOf(table, owner), data: counterMessage(readCounter(table, owner)) },
      }),
    );
  }
}

/** Meters of table entries (P4Runtime 1.5, section "DirectMeterEntry"). */
export class DirectMeters implements EntityKind<DirectMeterEntry> {
  private readonly tables: TableStates;

  constructor(tables: TableStates) {
    this.tables = tables;
  }

  write(type: UpdateType, entity: DirectMeterEntry): Undo {
    requireModify(type, 'direct meter');
    const { table, owner } = requireOwner(this.tables, entity.tableEntry, requireMeter);
    const where = `Table ${table.info.name}`;
    refuseColourCounters(entity.counterData, where);
    const config = entity.config && parseMeterConfig(entity.config, table.info.directMeter!.type, where);
    const before = readMeter(table, owner);
    configureMeter(table, owner, config);
    return () => configureMeter(table, current(table, owner), before);
  }

  read(filter: DirectMeterEntry): Entity[] {
    return ownersOf(this.tables, filter.tableEntry, requireMeter, ({ info }) => info.directMeter !== undefined).map(
      ({ table, owner }) => {
        refuseColourCounters(filter.counterData, `Table ${table.info.name}`);
        return {
          directMeterEntry: { tableEntry: keyOf(table, owner), config: meterMessage(readMeter(table, owner)) },
        };
      },
    );
  }
}

function requireCounter({ info }: TableState): void {
  if (info.directCounter === undefined)
    throw new RpcError('INVALID_ARGUMENT', `Table ${info.name} has no direct counter`);
}

function requireMeter({ info }: TableState): void {
  if (info.directMeter === undefined) throw new RpcError('INVALID_ARGUMENT', `Table ${info.name} has no direct meter`);
}

/** The one entry that a write names. Throws NOT_FOUND. */
function requireOwner(
  tables: TableStates,
  key: TableEntry | undefined,
  check: (table: TableState) => void,
): { table: TableState; owner: Owner } {
  if (key === undefined)
    throw new RpcError('INVALID_ARGUMENT', 'A direct resource is named by its table entry, which is missing');
  const table = tables.require(key.tableId);
  check(table);
  return { table, owner: findOwner(table, key) };
}

function findOwner(table: TableState, key: TableEntry): Owner {
  if (key.isDefaultAction) {
    if (key.match.length > 0 || key.priority !== 0)
      throw new RpcError(
        'INVALID_ARGUMENT',
        `Table ${table.info.name}: the default entry has neither match nor priority`,
      );
    return 'default';
  }
  checkPriority(table.info, key.priority);
  return table.require(table.keys.parse(key.match), key.priority);
}

/** What a read asks for: all entries of all tables, of one table, or one entry. The default entry only if it is named. */
function ownersOf(
  tables: TableStates,
  key: TableEntry | undefined,
  check: (table: TableState) => void,
  has: (table: TableState) => boolean,
): { table: TableState; owner: Owner }[] {
  const all = (table: TableState) => [...table.control.entries()].map((owner) => ({ table, owner }));
  if (key === undefined || key.tableId === 0) return [...tables.byId.values()].filter(has).flatMap(all);
  const table = tables.require(key.tableId);
  check(table);
  if (key.match.length === 0 && key.priority === 0 && !key.isDefaultAction) return all(table);
  return [{ table, owner: findOwner(table, key) }];
}

/** An entry that was deleted and put back has another handle. */
function current(table: TableState, owner: Owner): Owner {
  return owner === 'default' ? owner : table.require(table.keyOf(owner), owner.priority);
}

function keyOf(table: TableState, owner: Owner): TableEntry {
  const tableId = table.info.id;
  return owner === 'default'
    ? tableEntry.create({ tableId, isDefaultAction: true })
    : tableEntry.create({ tableId, match: table.matchOf(owner), priority: owner.priority });
}

function readCounter({ control }: TableState, owner: Owner): CounterValue {
  return (owner === 'default' ? control.defaultCounter() : control.counter(owner))!;
}

function setCounter({ control }: TableState, owner: Owner, value: CounterValue): void {
  if (owner === 'default') control.setDefaultCounter(value);
  else control.setCounter(owner, value);
}

function readMeter({ control }: TableState, owner: Owner): MeterConfig | undefined {
  return owner === 'default' ? control.defaultMeterConfig() : control.meterConfig(owner);
}

function configureMeter({ control }: TableState, owner: Owner, config: MeterConfig | undefined): void {
  if (owner === 'default') control.configureDefaultMeter(config);
  else control.configureMeter(owner, config);
}
