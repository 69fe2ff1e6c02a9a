import { type Entity, type TableAction, type TableEntry, UpdateType } from '../../../wire/p4runtime/messages.ts';
import type { TableInfo } from '../../../wire/p4runtime/p4info-objects.ts';
import { messageCodec } from '../../../wire/proto.ts';
import type { CounterValue, EntryAction, EntryHandle, MatchValue, MeterConfig } from '../../control.ts';
import { keyText } from '../match-keys.ts';
import { RpcError } from '../rpc-error.ts';
import {
  checkPriority,
  counterMessage,
  meterMessage,
  parseCounterData,
  parseMeterConfig,
  refuseColourCounters,
} from '../validation.ts';
import type { EntityKind, Undo } from './entity-kind.ts';
import type { ProfileUse } from './profile-state.ts';
import { type ParsedTableAction, parseTableAction } from './table-actions.ts';
import {
  type EntryNotes,
  type EntryRecord,
  NO_NOTES,
  PLAIN_RECORD,
  recordOf,
  type TableState,
  type TableStates,
} from './table-state.ts';

const tableEntry = messageCodec<TableEntry>('p4.v1.TableEntry');

/** Entries and default entries of tables (P4Runtime 1.5, section "TableEntry"). */
export class TableEntries implements EntityKind<TableEntry> {
  private readonly tables: TableStates;
  private readonly nowUs: () => number;
  /** Called when an entry with an idle time-out was written. */
  onIdleTimeout: (() => void) | undefined;

  constructor(tables: TableStates, nowUs: () => number) {
    this.tables = tables;
    this.nowUs = nowUs;
  }

  write(type: UpdateType, entity: TableEntry): Undo {
    const table = this.tables.require(entity.tableId);
    if (entity.isConst) throw new RpcError('INVALID_ARGUMENT', `Table ${table.info.name}: is_const cannot be written`);
    if (entity.isDefaultAction) return this.writeDefault(type, table, entity);
    if (type === UpdateType.INSERT) return this.insert(table, entity);
    if (type === UpdateType.MODIFY) return this.modify(table, entity);
    return this.delete(table, entity);
  }

  private insert(table: TableState, entity: TableEntry): Undo {
    const { info } = table;
    if (info.fields.length === 0)
      throw new RpcError('INVALID_ARGUMENT', `Table ${info.name} has no keys, so no entries but the default one`);
    if (info.isConst) throw constEntries(info);
    checkPriority(info, entity.priority);
    const { priority } = entity;
    const match = table.keys.parse(entity.match);
    checkWritten(info, entity);
    if (entity.action === undefined)
      throw new RpcError('INVALID_ARGUMENT', `Table ${info.name}: an entry needs an action`);
    const parsed = parseAction(table, entity.action, undefined);
    this.put(table, match, priority, parsed.action, parseDirect(info, entity), this.recordFor(entity, parsed));
    // By its key: what was deleted and put back meanwhile is another entry.
    return () => this.take(table, table.require(match, priority));
  }

  private recordFor(entity: TableEntry, { message, use }: Omit<ParsedTableAction, 'action'>): EntryRecord {
    const notes = notesOf(entity);
    if (notes === NO_NOTES && message === undefined && use === undefined) return PLAIN_RECORD;
    return { action: message, notes, isConst: false, profileUse: use, idleSinceUs: this.nowUs() };
  }

  private put(
    table: TableState,
    match: readonly MatchValue[],
    priority: number,
    action: EntryAction,
    direct: Direct,
    record: EntryRecord,
  ): void {
    const { control } = table;
    const entry = table.insert(match, priority, action);
    entry.note = record;
    table.profile?.use(record.profileUse);
    if (direct.counter !== undefined) control.setCounter(entry, direct.counter);
    if (direct.meter !== undefined) control.configureMeter(entry, direct.meter);
    if (record.notes.idleTimeoutNs > 0n) this.onIdleTimeout?.();
  }

  private take(table: TableState, entry: EntryHandle): void {
    table.control.delete(entry);
    table.profile?.release(recordOf(entry).profileUse);
  }

  private modify(table: TableState, entity: TableEntry): Undo {
    const { info, control } = table;
    const { priority } = entity;
    checkPriority(info, priority);
    const match = table.keys.parse(entity.match);
    const entry = table.require(match, priority);
    const record = recordOf(entry);
    if (record.isConst && entity.action !== undefined) throw constEntries(info);
    checkWritten(info, entity);
    const { counter, meter } = parseDirect(info, entity);
    const parsed = entity.action && parseAction(table, entity.action, record.profileUse);
    const actionBefore = entry.action;
    const before = directOf(table, entry);
    const kept = { message: record.action, use: record.profileUse };
    const now = record.isConst ? record : this.recordFor(entity, parsed ?? kept);
    this.change(table, entry, parsed?.action, now);
    if (counter !== undefined) control.setCounter(entry, counter);
    // Without a config the meter is what it was at first, always green.
    if (info.directMeter !== undefined) control.configureMeter(entry, meter);
    return () => {
      const current = table.require(match, priority);
      this.change(table, current, actionBefore, record);
      restoreDirect(table, current, before);
    };
  }

  /** @param action the one that it has if it is undefined */
  private change(table: TableState, entry: EntryHandle, action: EntryAction | undefined, to: EntryRecord): void {
    const from = recordOf(entry);
    if (action !== undefined) table.control.modify(entry, action);
    table.profile?.release(from.profileUse);
    table.profile?.use(to.profileUse);
    entry.note = to;
    if (to.notes.idleTimeoutNs > 0n) this.onIdleTimeout?.();
  }

  /** Looks at the key only; everything else may be nonsense. */
  private delete(table: TableState, entity: TableEntry): Undo {
    const { info } = table;
    const { priority } = entity;
    if (info.isConst) throw constEntries(info);
    checkPriority(info, priority);
    const match = table.keys.parse(entity.match);
    const entry = table.require(match, priority);
    const before = directOf(table, entry);
    this.take(table, entry);
    return () => this.put(table, match, priority, entry.action, before, recordOf(entry));
  }

  private writeDefault(type: UpdateType, table: TableState, entity: TableEntry): Undo {
    const { info, control } = table;
    if (type !== UpdateType.MODIFY)
      throw new RpcError('INVALID_ARGUMENT', `Table ${info.name}: the default entry can only be modified`);
    checkDefaultKey(info, entity);
    if (info.hasConstDefault || info.profile !== undefined)
      throw new RpcError('PERMISSION_DENIED', `Table ${info.name}: the default action is const`);
    checkWritten(info, entity);
    if (entity.idleTimeoutNs !== 0n)
      throw new RpcError('INVALID_ARGUMENT', `Table ${info.name}: the default entry has no idle time-out`);
    if (entity.action !== undefined && entity.action.action === undefined)
      throw new RpcError('INVALID_ARGUMENT', `Table ${info.name}: the default entry takes an action`);
    const { counter, meter } = parseDirect(info, entity);
    const action = entity.action?.action && table.calls.parse(entity.action.action, 'default');
    const before = {
      action: control.defaultAction(),
      notes: table.defaultNotes,
      written: table.defaultIsWritten,
      counter: control.defaultCounter(),
      meter: control.defaultMeterConfig(),
    };
    control.setDefault(action);
    table.defaultNotes = action === undefined ? NO_NOTES : notesOf(entity);
    table.defaultIsWritten = action !== undefined;
    // Without an action everything goes back to how the program began.
    const counterAfter = counter ?? (entity.action === undefined ? NO_PACKETS : undefined);
    if (info.directCounter !== undefined && counterAfter !== undefined) control.setDefaultCounter(counterAfter);
    if (info.directMeter !== undefined) control.configureDefaultMeter(meter);
    return () => {
      control.setDefault(before.action);
      table.defaultNotes = before.notes;
      table.defaultIsWritten = before.written;
      if (before.counter !== undefined) control.setDefaultCounter(before.counter);
      if (info.directMeter !== undefined) control.configureDefaultMeter(before.meter);
    };
  }

  /** P4Runtime 1.5, section "Wildcard Reads" of tables. */
  read(filter: TableEntry): Entity[] {
    if (filter.tableId === 0) {
      checkNoFilter(filter);
      return [...this.tables.byId.values()].flatMap((table) => this.readTable(table, filter));
    }
    const table = this.tables.require(filter.tableId);
    checkResources(table.info, filter);
    if (filter.timeSinceLastHit !== undefined && !table.info.supportsIdleTimeout)
      throw new RpcError('INVALID_ARGUMENT', `Table ${table.info.name} has no idle time-out`);
    if (filter.isDefaultAction) return this.readDefault(table, filter);
    return this.readTable(table, filter);
  }

  private readTable(table: TableState, filter: TableEntry): Entity[] {
    const { info } = table;
    let candidates = table.control.entries();
    if (filter.match.length > 0) {
      const match = table.keys.parse(filter.match);
      if (!info.needsPriority || filter.priority !== 0) {
        const entry = table.find(match, filter.priority);
        candidates = entry === undefined ? [] : [entry];
      } else {
        // Without a priority the match may name one entry per priority.
        const text = keyText(match);
        candidates = [...candidates].filter((entry) => keyText(table.keyOf(entry)) === text);
      }
    }
    const metadata = Buffer.from(filter.metadata);
    const actionId = filterAction(info, filter);
    const entities: Entity[] = [];
    for (const entry of candidates) {
      if (filter.priority !== 0 && entry.priority !== filter.priority) continue;
      if (filter.controllerMetadata !== 0n && recordOf(entry).notes.controllerMetadata !== filter.controllerMetadata)
        continue;
      if (metadata.length > 0 && !metadata.equals(recordOf(entry).notes.metadata)) continue;
      if (actionId !== undefined && table.entryActionOf(entry).action?.actionId !== actionId) continue;
      entities.push({ tableEntry: entryMessage(table, entry, filter, this.nowUs()) });
    }
    return entities;
  }

  private readDefault(table: TableState, filter: TableEntry): Entity[] {
    const { info, control, defaultNotes } = table;
    checkDefaultKey(info, filter);
    const action = control.defaultAction();
    const counter = filter.counterData && control.defaultCounter();
    return [
      {
        tableEntry: tableEntry.create({
          tableId: info.id,
          isDefaultAction: true,
          action: action && table.actionOf(action),
          counterData: counter && counterMessage(counter),
          meterConfig: filter.meterConfig && meterMessage(control.defaultMeterConfig()),
          ...defaultNotes,
        }),
      },
    ];
  }
}

function parseAction(
  { info, calls, profile }: TableState,
  action: TableAction,
  before: ProfileUse | undefined,
): ParsedTableAction {
  return parseTableAction(info.name, calls, profile, action, before);
}

const NO_PACKETS: CounterValue = { packets: 0n, bytes: 0n };

/** What an entry's direct resources are set to. */
interface Direct {
  readonly counter: CounterValue | undefined;
  readonly meter: MeterConfig | undefined;
}

function parseDirect(info: TableInfo, entity: TableEntry): Direct {
  const where = `Table ${info.name}`;
  return {
    counter: entity.counterData && parseCounterData(entity.counterData, where),
    meter: entity.meterConfig && parseMeterConfig(entity.meterConfig, info.directMeter!.type, where),
  };
}

function directOf({ info, control }: TableState, entry: EntryHandle): Direct {
  return {
    counter: control.counter(entry),
    meter: info.directMeter === undefined ? undefined : control.meterConfig(entry),
  };
}

function restoreDirect({ info, control }: TableState, entry: EntryHandle, { counter, meter }: Direct): void {
  if (counter !== undefined) control.setCounter(entry, counter);
  if (info.directMeter !== undefined) control.configureMeter(entry, meter);
}

function notesOf({ metadata, controllerMetadata, idleTimeoutNs }: TableEntry): EntryNotes {
  if (metadata.length === 0 && controllerMetadata === 0n && idleTimeoutNs === 0n) return NO_NOTES;
  return { metadata, controllerMetadata, idleTimeoutNs };
}

function entryMessage(table: TableState, entry: EntryHandle, filter: TableEntry, nowUs: number): TableEntry {
  const { info, control } = table;
  const { isConst, notes } = recordOf(entry);
  const counter = filter.counterData && info.directCounter && control.counter(entry);
  const meter = filter.meterConfig && info.directMeter && control.meterConfig(entry);
  const withTime = filter.timeSinceLastHit !== undefined && info.supportsIdleTimeout;
  return tableEntry.create({
    tableId: info.id,
    match: table.matchOf(entry),
    priority: entry.priority,
    action: table.entryActionOf(entry),
    counterData: counter && counterMessage(counter),
    meterConfig: meterMessage(meter),
    timeSinceLastHit: withTime ? { elapsedNs: BigInt(nowUs - control.lastHitUs(entry)) * 1000n } : undefined,
    isConst,
    ...notes,
  });
}

function constEntries(info: TableInfo): RpcError {
  return new RpcError('PERMISSION_DENIED', `Table ${info.name}: const entries have const keys and actions`);
}

function checkDefaultKey(info: TableInfo, entity: TableEntry): void {
  if (entity.match.length > 0 || entity.priority !== 0)
    throw new RpcError('INVALID_ARGUMENT', `Table ${info.name}: the default entry has neither match nor priority`);
}

/** Direct resources that this table does not have. */
function checkResources(info: TableInfo, entity: TableEntry): void {
  if (entity.counterData !== undefined && info.directCounter === undefined)
    throw new RpcError('INVALID_ARGUMENT', `Table ${info.name} has no direct counter`);
  if ((entity.meterConfig ?? entity.meterCounterData) !== undefined && info.directMeter === undefined)
    throw new RpcError('INVALID_ARGUMENT', `Table ${info.name} has no direct meter`);
  refuseColourCounters(entity.meterCounterData, `Table ${info.name}`);
}

/** What cannot be written to an entry of this table. */
function checkWritten(info: TableInfo, entity: TableEntry): void {
  checkResources(info, entity);
  if (entity.timeSinceLastHit !== undefined)
    throw new RpcError('INVALID_ARGUMENT', `Table ${info.name}: time_since_last_hit cannot be written`);
  if (entity.idleTimeoutNs < 0n)
    throw new RpcError('INVALID_ARGUMENT', `Table ${info.name}: an idle time-out is never negative`);
  if (entity.idleTimeoutNs !== 0n && !info.supportsIdleTimeout)
    throw new RpcError('INVALID_ARGUMENT', `Table ${info.name} has no idle time-out`);
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
