import type { DirectCounterEntry, Entity, TableEntry, UpdateType } from '../../../wire/p4runtime/messages.ts';
import { messageCodec } from '../../../wire/proto.ts';
import { RpcError } from '../rpc-error.ts';
import { checkPriority, counterMessage, parseCounterData, parseMatch, requireModify } from '../validation.ts';
import type { EntityKind } from './entity-kind.ts';
import type { StoredEntry, TableState, TableStates } from './table-state.ts';

const tableEntry = messageCodec<TableEntry>('p4.v1.TableEntry');

/** Counters of table entries (P4Runtime 1.5, section "DirectCounterEntry"). */
export class DirectCounters implements EntityKind<DirectCounterEntry> {
  private readonly tables: TableStates;

  constructor(tables: TableStates) {
    this.tables = tables;
  }

  write(type: UpdateType, entity: DirectCounterEntry): void {
    requireModify(type, 'direct counter');
    if (entity.tableEntry === undefined)
      throw new RpcError('INVALID_ARGUMENT', 'A direct counter is named by its table entry, which is missing');
    const table = this.tableWithCounter(entity.tableEntry);
    const entry = findEntry(table, entity.tableEntry);
    if (entity.data !== undefined)
      table.control.setCounter(entry.handle, parseCounterData(entity.data, `Table ${table.info.name}`));
  }

  read(filter: DirectCounterEntry): Entity[] {
    const key = filter.tableEntry;
    if (key === undefined || key.tableId === 0)
      return [...this.tables.byId.values()]
        .filter(({ info }) => info.directCounter !== undefined)
        .flatMap((table) => counters(table, table.entries.values()));
    const table = this.tableWithCounter(key);
    const all = key.match.length === 0 && key.priority === 0;
    return counters(table, all ? table.entries.values() : [findEntry(table, key)]);
  }

  private tableWithCounter(key: TableEntry): TableState {
    const table = this.tables.require(key.tableId);
    const { info } = table;
    if (info.directCounter === undefined)
      throw new RpcError('INVALID_ARGUMENT', `Table ${info.name} has no direct counter`);
    if (key.isDefaultAction)
      throw new RpcError(
        'UNIMPLEMENTED',
        `Table ${info.name}: this switch has no direct counter for the default entry`,
      );
    return table;
  }
}

function findEntry(table: TableState, key: TableEntry): StoredEntry {
  checkPriority(table.info, key.priority);
  return table.require(parseMatch(table.info, key.match), key.priority);
}

function counters({ info, control }: TableState, entries: Iterable<StoredEntry>): Entity[] {
  return [...entries].map((entry) => ({
    directCounterEntry: {
      tableEntry: tableEntry.create({ tableId: info.id, match: entry.match, priority: entry.priority }),
      data: counterMessage(control.counter(entry.handle)!),
    },
  }));
}
