import { type Entity, type TableEntry, UpdateType } from '../../../wire/p4runtime/messages.ts';
import type { TableInfo } from '../../../wire/p4runtime/p4info-objects.ts';
import { messageCodec } from '../../../wire/proto.ts';
import { RpcError } from '../rpc-error.ts';
import {
  checkPriority,
  counterMessage,
  matchKey,
  matchMessage,
  parseAction,
  parseCounterData,
  parseMatch,
} from '../validation.ts';
import type { EntityKind } from './entity-kind.ts';
import { parseTableAction } from './table-actions.ts';
import { type EntryNotes, NO_NOTES, type StoredEntry, type TableState, type TableStates } from './table-state.ts';

const tableEntry = messageCodec<TableEntry>('p4.v1.TableEntry');

/** Entries and default entries of tables (P4Runtime 1.5, section "TableEntry"). */
export class TableEntries implements EntityKind<TableEntry> {
  private readonly tables: TableStates;

  constructor(tables: TableStates) {
    this.tables = tables;
  }

  write(type: UpdateType, entity: TableEntry): void {
    const table = this.tables.require(entity.tableId);
    if (entity.isConst) throw new RpcError('INVALID_ARGUMENT', `Table ${table.info.name}: is_const cannot be written`);
    if (entity.isDefaultAction) this.writeDefault(type, table, entity);
    else if (type === UpdateType.INSERT) this.insert(table, entity);
    else if (type === UpdateType.MODIFY) this.modify(table, entity);
    else this.delete(table, entity);
  }

  private insert(table: TableState, entity: TableEntry): void {
    const { info, control } = table;
    if (info.fields.length === 0)
      throw new RpcError('INVALID_ARGUMENT', `Table ${info.name} has no keys, so no entries but the default one`);
    if (info.isConst) throw constEntries(info);
    checkPriority(info, entity.priority);
    const match = parseMatch(info, entity.match);
    const key = matchKey(match, entity.priority);
    checkResources(info, entity);
    if (entity.action === undefined)
      throw new RpcError('INVALID_ARGUMENT', `Table ${info.name}: an entry needs an action`);
    const { action, message, profileUse } = parseTableAction(info, entity.action);
    const counter = entity.counterData && parseCounterData(entity.counterData, `Table ${info.name}`);
    if (table.entries.has(key))
      throw new RpcError('ALREADY_EXISTS', `Table ${info.name} has an entry with this match and priority`);
    this.tables.checkProfile(info, 0, profileUse);
    const handle = control.insert(table.toControl(match), entity.priority, action);
    this.tables.chargeProfile(info, 0, profileUse);
    if (counter !== undefined) control.setCounter(handle, counter);
    table.store({
      key,
      handle,
      match: matchMessage(info, match),
      priority: entity.priority,
      action: message,
      notes: notesOf(entity),
      isConst: false,
      profileUse,
    });
  }

  private modify(table: TableState, entity: TableEntry): void {
    const { info, control } = table;
    checkPriority(info, entity.priority);
    const entry = table.require(parseMatch(info, entity.match), entity.priority);
    if (entry.isConst && entity.action !== undefined) throw constEntries(info);
    checkResources(info, entity);
    const counter = entity.counterData && parseCounterData(entity.counterData, `Table ${info.name}`);
    let { handle, action: message, profileUse } = entry;
    if (entity.action !== undefined) {
      const parsed = parseTableAction(info, entity.action);
      this.tables.checkProfile(info, entry.profileUse, parsed.profileUse);
      handle = control.modify(entry.handle, parsed.action);
      this.tables.chargeProfile(info, entry.profileUse, parsed.profileUse);
      message = parsed.message;
      profileUse = parsed.profileUse;
    }
    if (counter !== undefined) control.setCounter(handle, counter);
    const notes = entry.isConst ? entry.notes : notesOf(entity);
    table.store({ ...entry, handle, action: message, notes, profileUse });
  }

  /** Looks at the key only; everything else may be nonsense. */
  private delete(table: TableState, entity: TableEntry): void {
    const { info } = table;
    if (info.isConst) throw constEntries(info);
    checkPriority(info, entity.priority);
    const entry = table.require(parseMatch(info, entity.match), entity.priority);
    if (entry.isConst) throw constEntries(info);
    table.control.delete(entry.handle);
    table.entries.delete(entry.key);
    this.tables.chargeProfile(info, entry.profileUse, 0);
  }

  private writeDefault(type: UpdateType, table: TableState, entity: TableEntry): void {
    const { info, control } = table;
    if (type !== UpdateType.MODIFY)
      throw new RpcError('INVALID_ARGUMENT', `Table ${info.name}: the default entry can only be modified`);
    checkDefaultKey(info, entity);
    if (info.hasConstDefault)
      throw new RpcError('PERMISSION_DENIED', `Table ${info.name}: the default action is const`);
    checkResources(info, entity);
    if (entity.counterData !== undefined) throw defaultCounter(info);
    if (entity.idleTimeoutNs !== 0n)
      throw new RpcError('INVALID_ARGUMENT', `Table ${info.name}: the default entry has no idle timeout`);
    if (entity.action === undefined) {
      control.setDefault(undefined);
      table.defaultNotes = NO_NOTES;
      return;
    }
    if (entity.action.action === undefined)
      throw new RpcError('INVALID_ARGUMENT', `Table ${info.name}: the default entry takes an action`);
    control.setDefault(parseAction(info, entity.action.action, 'default'));
    table.defaultNotes = notesOf(entity);
  }

  /** P4Runtime 1.5, section "Wildcard Reads" of tables. */
  read(filter: TableEntry): Entity[] {
    if (filter.tableId === 0) {
      checkNoFilter(filter);
      return [...this.tables.byId.values()].flatMap((table) => this.readTable(table, filter));
    }
    const table = this.tables.require(filter.tableId);
    checkResources(table.info, { ...filter, timeSinceLastHit: undefined });
    if (filter.timeSinceLastHit !== undefined) throw idleTimeout(table.info);
    if (filter.isDefaultAction) return this.readDefault(table, filter);
    return this.readTable(table, filter);
  }

  private readTable(table: TableState, filter: TableEntry): Entity[] {
    const { info } = table;
    let candidates: Iterable<StoredEntry> = table.entries.values();
    if (filter.match.length > 0) {
      const match = parseMatch(info, filter.match);
      if (!info.needsPriority || filter.priority !== 0) {
        const entry = table.entries.get(matchKey(match, filter.priority));
        candidates = entry === undefined ? [] : [entry];
      } else {
        // Without a priority the match may name one entry per priority.
        const suffix = matchKey(match, 0).slice(1);
        candidates = [...candidates].filter(({ key, priority }) => key === `${priority}${suffix}`);
      }
    }
    const metadata = Buffer.from(filter.metadata);
    const actionId = filterAction(info, filter);
    const entities: Entity[] = [];
    for (const entry of candidates) {
      if (filter.priority !== 0 && entry.priority !== filter.priority) continue;
      if (filter.controllerMetadata !== 0n && entry.notes.controllerMetadata !== filter.controllerMetadata) continue;
      if (metadata.length > 0 && !metadata.equals(entry.notes.metadata)) continue;
      if (actionId !== undefined && entry.action.action?.actionId !== actionId) continue;
      entities.push({ tableEntry: entryMessage(table, entry, filter) });
    }
    return entities;
  }

  private readDefault(table: TableState, filter: TableEntry): Entity[] {
    const { info, control, defaultNotes } = table;
    checkDefaultKey(info, filter);
    if (filter.counterData !== undefined) throw defaultCounter(info);
    const action = control.defaultAction();
    return [
      {
        tableEntry: tableEntry.create({
          tableId: info.id,
          isDefaultAction: true,
          action: action && table.actionOf(action),
          ...defaultNotes,
        }),
      },
    ];
  }
}

function notesOf(entity: TableEntry): EntryNotes {
  return { metadata: entity.metadata, controllerMetadata: entity.controllerMetadata };
}

function entryMessage({ info, control }: TableState, entry: StoredEntry, filter: TableEntry): TableEntry {
  const counter =
    filter.counterData !== undefined && info.directCounter !== undefined ? control.counter(entry.handle) : undefined;
  return tableEntry.create({
    tableId: info.id,
    match: entry.match,
    priority: entry.priority,
    action: entry.action,
    counterData: counter && counterMessage(counter),
    isConst: entry.isConst,
    ...entry.notes,
  });
}

function constEntries(info: TableInfo): RpcError {
  return new RpcError('PERMISSION_DENIED', `Table ${info.name}: const entries have const keys and actions`);
}

function defaultCounter(info: TableInfo): RpcError {
  return new RpcError('UNIMPLEMENTED', `Table ${info.name}: this switch has no direct counter for the default entry`);
}

function idleTimeout(info: TableInfo): RpcError {
  if (!info.supportsIdleTimeout) return new RpcError('INVALID_ARGUMENT', `Table ${info.name} has no idle timeout`);
  return new RpcError('UNIMPLEMENTED', `Table ${info.name}: this switch has no idle timeouts`);
}

function checkDefaultKey(info: TableInfo, entity: TableEntry): void {
  if (entity.match.length > 0 || entity.priority !== 0)
    throw new RpcError('INVALID_ARGUMENT', `Table ${info.name}: the default entry has neither match nor priority`);
}

/** Direct resources and timeouts that this table, or this switch, does not have. */
function checkResources(info: TableInfo, entity: TableEntry): void {
  if (entity.counterData !== undefined && info.directCounter === undefined)
    throw new RpcError('INVALID_ARGUMENT', `Table ${info.name} has no direct counter`);
  if (entity.meterConfig !== undefined || entity.meterCounterData !== undefined) {
    if (info.directMeter === undefined)
      throw new RpcError('INVALID_ARGUMENT', `Table ${info.name} has no direct meter`);
    throw new RpcError('UNIMPLEMENTED', `Table ${info.name}: this switch does not serve direct meters`);
  }
  if (entity.timeSinceLastHit !== undefined)
    throw new RpcError('INVALID_ARGUMENT', `Table ${info.name}: time_since_last_hit cannot be written`);
  if (entity.idleTimeoutNs !== 0n) throw idleTimeout(info);
}

function filterAction(info: TableInfo, filter: TableEntry): number | undefined {
  if (filter.action === undefined) return undefined;
  if (filter.action.action === undefined)
    throw new RpcError('INVALID_ARGUMENT', `Table ${info.name}: reads are filtered by action id only`);
  const { actionId } = filter.action.action;
  if (!info.actionById.has(actionId))
    throw new RpcError('INVALID_ARGUMENT', `Table ${info.name} has no action with id 0x${actionId.toString(16)}`);
  return actionId;
}

function checkNoFilter(filter: TableEntry): void {
  const filtered =
    filter.match.length > 0 ||
    filter.action !== undefined ||
    filter.priority !== 0 ||
    filter.controllerMetadata !== 0n ||
    filter.metadata.length > 0 ||
    filter.isDefaultAction;
  if (filtered) throw new RpcError('INVALID_ARGUMENT', 'A read of all tables takes no other filter');
}
