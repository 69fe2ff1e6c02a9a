import { DdfError } from '../../base/errors.ts';
import { PORT_CPU } from '../../p4/build/constants.ts';
import { encodeBits } from '../../wire/p4runtime/byte-strings.ts';
import type {
  Action,
  ActionProfileAction,
  Entity,
  FieldMatch,
  MeterEntry,
  MulticastGroupEntry,
  TableEntry,
} from '../../wire/p4runtime/messages.ts';
import type { ObjectIndex, P4InfoIndex } from '../../wire/p4runtime/p4info-index.ts';
import type { FieldInfo, MatchFieldInfo, NamedObject, TableInfo } from '../../wire/p4runtime/p4info-objects.ts';
import { messageCodec } from '../../wire/proto.ts';

const tableEntryCodec = messageCodec<TableEntry>('p4.v1.TableEntry');
const multicastGroupCodec = messageCodec<MulticastGroupEntry>('p4.v1.MulticastGroupEntry');
const meterEntryCodec = messageCodec<MeterEntry>('p4.v1.MeterEntry');

/** What a key has to be: a value (exact, or all bits of a ternary key), a prefix, or a value under a mask. */
export type MatchValue =
  | number
  | bigint
  | { readonly value: number; readonly prefixLength: number }
  | { readonly value: number; readonly mask: number };

/** An action by its alias with its parameters by name. */
export interface ActionCall {
  readonly name: string;
  readonly params?: Readonly<Record<string, number | bigint>>;
}

export interface TableEntrySpec {
  /** By the field's name; a field that is missing matches everything. */
  readonly match: Readonly<Record<string, MatchValue>>;
  /** One action, or, for a table with a selector, several of equal weight of which a hash takes one. */
  readonly action: ActionCall | readonly ActionCall[];
  /** The higher number wins; only in tables that need one. */
  readonly priority?: number;
}

/**
 * Makes P4Runtime entities out of names and numbers, by a program's P4Info. What comes out is valid by construction: names exist, values fit, fields
 * that match everything are left out, byte strings are the shortest. All methods throw PROGRAM_MISMATCH when the program lacks a name, or
 * INTERNAL when a value does not fit.
 */
export class EntityFactory {
  readonly index: P4InfoIndex;

  constructor(index: P4InfoIndex) {
    this.index = index;
  }

  tableEntry(tableName: string, spec: TableEntrySpec): Entity {
    const table = find(this.index.tables, tableName);
    for (const name of Object.keys(spec.match))
      if (!table.fieldByName.has(name)) throw mismatch(`table ${tableName} has no key ${name}`);
    const match = table.fields.flatMap((field) => {
      const value = spec.match[field.name];
      const fieldMatch = value === undefined ? undefined : matchOf(tableName, field, value);
      if (fieldMatch === undefined && field.kind === 'exact')
        throw new DdfError('INTERNAL', `table ${tableName}: the exact key ${field.name} has no value`);
      return fieldMatch === undefined ? [] : [fieldMatch];
    });
    if (table.needsPriority !== (spec.priority !== undefined && spec.priority > 0))
      throw mismatch(`table ${tableName} ${table.needsPriority ? 'needs' : 'does not take'} priorities`);
    const action = Array.isArray(spec.action)
      ? { actionProfileActionSet: this.actionSet(table, spec.action) }
      : { action: this.call(table, spec.action as ActionCall) };
    return {
      tableEntry: tableEntryCodec.create({ tableId: table.id, match, action, priority: spec.priority ?? 0 }),
    };
  }

  /** The entry that replaces a table's default action. */
  defaultAction(tableName: string, call: ActionCall): Entity {
    const table = find(this.index.tables, tableName);
    const action = { action: this.call(table, call) };
    return { tableEntry: tableEntryCodec.create({ tableId: table.id, action, isDefaultAction: true }) };
  }

  /** A group of the replication engine to front panel ports: some switches drop copies to others without a word. Copies carry their instance. */
  multicastGroup(id: number, replicas: readonly { readonly port: number; readonly instance: number }[]): Entity {
    for (const { port } of replicas)
      if (!(Number.isInteger(port) && port > 0 && port < PORT_CPU))
        throw new DdfError('INTERNAL', `multicast group ${id}: ${port} is no front panel port`);
    return {
      packetReplicationEngineEntry: {
        multicastGroupEntry: multicastGroupCodec.create({
          multicastGroupId: id,
          replicas: replicas.map(({ port, instance }) => ({
            port: encodeBits(BigInt(port)),
            instance,
            backupReplicas: [],
          })),
        }),
      },
    };
  }

  /** One cell of a meter: yellow above the committed, red above the peak rate, per second in the meter's unit. */
  meter(meterName: string, cell: number, rate: MeterRate): Entity {
    const meter = find(this.index.meters, meterName);
    if (cell >= meter.size) throw new DdfError('INTERNAL', `meter ${meterName} has no cell ${cell}`);
    return {
      meterEntry: meterEntryCodec.create({
        meterId: meter.id,
        index: { index: BigInt(cell) },
        config: {
          cir: BigInt(rate.committed),
          cburst: BigInt(rate.committedBurst),
          pir: BigInt(rate.peak),
          pburst: BigInt(rate.peakBurst),
          eburst: 0n,
        },
      }),
    };
  }

  private actionSet(table: TableInfo, calls: readonly ActionCall[]) {
    if (table.profile?.withSelector !== true) throw mismatch(`table ${table.alias} has no action selector`);
    return {
      actionProfileActions: calls.map((call): ActionProfileAction => ({ action: this.call(table, call), weight: 1 })),
      actionSelectionMode: 0,
      sizeSemantics: 0,
    };
  }

  private call(table: TableInfo, { name, params = {} }: ActionCall): Action {
    const action = find(this.index.actions, name);
    if (!table.actionById.has(action.id)) throw mismatch(`table ${table.alias} has no action ${name}`);
    for (const param of Object.keys(params))
      if (!action.paramByName.has(param)) throw mismatch(`action ${name} has no parameter ${param}`);
    return {
      actionId: action.id,
      params: action.params.map((param) => {
        const value = params[param.name];
        if (value === undefined) throw mismatch(`action ${name} has a parameter ${param.name} that nobody gives`);
        return { paramId: param.id, value: bits(`action ${name}, parameter ${param.name}`, param, value) };
      }),
    };
  }
}

export interface MeterRate {
  readonly committed: number;
  readonly committedBurst: number;
  readonly peak: number;
  readonly peakBurst: number;
}

function find<T extends NamedObject>(objects: ObjectIndex<T>, name: string): T {
  const object = objects.get(name);
  if (object === undefined) throw mismatch(`there is no ${objects.kind} ${name}`);
  return object;
}

function matchOf(tableName: string, field: MatchFieldInfo, value: MatchValue): FieldMatch | undefined {
  const where = `table ${tableName}, key ${field.name}`;
  const fieldId = field.id;
  if (typeof value !== 'object') {
    const whole = bits(where, field, value);
    if (field.kind === 'exact') return { fieldId, exact: { value: whole } };
    if (field.kind === 'ternary') {
      const mask = encodeBits((1n << BigInt(field.widthBits)) - 1n);
      return { fieldId, ternary: { value: whole, mask } };
    }
    if (field.kind === 'lpm') return { fieldId, lpm: { value: whole, prefixLen: field.widthBits } };
    if (field.kind === 'optional') return { fieldId, optional: { value: whole } };
    return { fieldId, range: { low: whole, high: whole } };
  }
  if ('prefixLength' in value) {
    if (field.kind !== 'lpm') throw mismatch(`${where} is matched by ${field.kind}, not by lpm`);
    const { prefixLength } = value;
    if (prefixLength === 0) return undefined;
    const host = (1n << BigInt(field.widthBits - prefixLength)) - 1n;
    return { fieldId, lpm: { value: bits(where, field, BigInt(value.value) & ~host), prefixLen: prefixLength } };
  }
  if (field.kind !== 'ternary') throw mismatch(`${where} is matched by ${field.kind}, not by ternary`);
  if (value.mask === 0) return undefined;
  const mask = BigInt(value.mask);
  return {
    fieldId,
    ternary: { value: bits(where, field, BigInt(value.value) & mask), mask: bits(where, field, mask) },
  };
}

function bits(where: string, field: FieldInfo, value: number | bigint): Uint8Array {
  const whole = BigInt(value);
  if (whole < 0n || whole >> BigInt(field.widthBits) !== 0n)
    throw new DdfError('INTERNAL', `${where}: ${whole} does not fit into ${field.widthBits} bits`);
  return encodeBits(whole);
}

function mismatch(problem: string): DdfError {
  return new DdfError('PROGRAM_MISMATCH', `the switch program is not the one that the controller knows: ${problem}`, {
    where: 'P4Info',
    remedy: 'Use the P4Info and the JSON of p4/build/.',
  });
}
