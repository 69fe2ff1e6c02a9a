import type {
  Action,
  CounterData,
  FieldMatch,
  Index,
  MeterConfig as MeterConfigMessage,
  MeterCounterData,
  Update,
} from '../../wire/p4runtime/messages.ts';
import { UpdateType } from '../../wire/p4runtime/messages.ts';
import type { ObjectIndex } from '../../wire/p4runtime/p4info-index.ts';
import { MeterSpecType } from '../../wire/p4runtime/p4info-messages.ts';
import type {
  ActionInfo,
  FieldInfo,
  MatchFieldInfo,
  NamedObject,
  TableInfo,
} from '../../wire/p4runtime/p4info-objects.ts';
import type { ActionCall, CounterValue, MatchValue, MeterConfig } from '../control.ts';
import type { FieldValues } from './field-values.ts';
import { RpcError } from './rpc-error.ts';

/**
 * The rules of P4Runtime 1.5 for the parts that entities share: byte strings, match keys, actions, indices. Pure: P4Info and message in, values of
 * control.ts out; every violation is an RpcError that names table, action and field in P4's names.
 */

/** The object that an id names. Throws INVALID_ARGUMENT. */
export function objectById<T extends NamedObject>(index: ObjectIndex<T>, id: number): T {
  const object = index.get(id);
  if (object === undefined)
    throw new RpcError('INVALID_ARGUMENT', `The P4Info has no ${index.kind} with id 0x${id.toString(16)}`);
  return object;
}

/** The objects that a read asks for: 0 is all of a kind. */
export function objectsById<T extends NamedObject>(index: ObjectIndex<T>, id: number): Iterable<T> {
  return id === 0 ? index : [objectById(index, id)];
}

/** For entities that exist as soon as the program does: counters, meters, registers. */
export function requireModify(type: Update['type'], what: string): void {
  if (type !== UpdateType.MODIFY) throw new RpcError('INVALID_ARGUMENT', `A ${what} can only be modified`);
}

/** A match key as values in the order of the table's keys, don't-care fields included (section "Match Format"). */
export function parseMatch(values: FieldValues, table: TableInfo, matches: readonly FieldMatch[]): MatchValue[] {
  return parseKey(values, table.fields, matches, `Table ${table.name}`);
}

/** The same for any list of match fields. */
export function parseKey(
  values: FieldValues,
  fields: readonly MatchFieldInfo[],
  matches: readonly FieldMatch[],
  where: string,
): MatchValue[] {
  const given = new Map<number, FieldMatch>();
  for (const match of matches) {
    const field = fields.find(({ id }) => id === match.fieldId);
    if (field === undefined)
      throw new RpcError('INVALID_ARGUMENT', `${where} has no match field with id ${match.fieldId}`);
    if (given.has(match.fieldId))
      throw new RpcError('INVALID_ARGUMENT', `${where}: match field ${field.name} is given twice`);
    given.set(match.fieldId, match);
  }
  return fields.map((field) => {
    const place = `${where}, match field ${field.name}`;
    const match = given.get(field.id);
    return match === undefined ? dontCare(field, place) : parseFieldMatch(values, field, match, place);
  });
}

function dontCare(field: MatchFieldInfo, where: string): MatchValue {
  switch (field.kind) {
    case 'exact':
      throw new RpcError('INVALID_ARGUMENT', `${where}: an exact field cannot be left out`);
    case 'lpm':
      return { kind: 'lpm', value: 0n, prefixLength: 0 };
    case 'ternary':
      return { kind: 'ternary', value: 0n, mask: 0n };
    case 'range':
      return { kind: 'range', low: 0n, high: allOnes(field) };
    case 'optional':
      return { kind: 'optional' };
  }
}

function allOnes(field: FieldInfo): bigint {
  return (1n << BigInt(field.widthBits)) - 1n;
}

// Functions of their own: entries are parsed by the ten thousands, and closures for what hardly ever happens are not free.

const MUST_BE_OMITTED = 'a field that matches everything must be left out';

function invalid(where: string, what: string): RpcError {
  return new RpcError('INVALID_ARGUMENT', `${where}: ${what}`);
}

function wrongKind(field: MatchFieldInfo, where: string): RpcError {
  return invalid(where, `it is matched as ${field.kind}, and that is what must be set`);
}

function parseFieldMatch(values: FieldValues, field: MatchFieldInfo, match: FieldMatch, where: string): MatchValue {
  switch (field.kind) {
    case 'exact':
      if (match.exact === undefined) throw wrongKind(field, where);
      return { kind: 'exact', value: values.decode(match.exact.value, field, where) };
    case 'optional':
      if (match.optional === undefined) throw wrongKind(field, where);
      return { kind: 'optional', value: values.decode(match.optional.value, field, where) };
    case 'lpm': {
      if (match.lpm === undefined) throw wrongKind(field, where);
      const { prefixLen } = match.lpm;
      const value = values.decode(match.lpm.value, field, where);
      if (prefixLen === 0) throw invalid(where, MUST_BE_OMITTED);
      if (prefixLen < 0 || prefixLen > field.widthBits)
        throw invalid(where, `a prefix of ${prefixLen} bits is not in 1..${field.widthBits}`);
      if ((value & (allOnes(field) >> BigInt(prefixLen))) !== 0n)
        throw invalid(where, 'bits after the prefix must be 0');
      return { kind: 'lpm', value, prefixLength: prefixLen };
    }
    case 'ternary': {
      if (match.ternary === undefined) throw wrongKind(field, where);
      const value = values.decode(match.ternary.value, field, where);
      const mask = values.decode(match.ternary.mask, field, where);
      if (mask === 0n) throw invalid(where, MUST_BE_OMITTED);
      if ((value & ~mask) !== 0n) throw invalid(where, 'bits outside of the mask must be 0');
      return { kind: 'ternary', value, mask };
    }
    case 'range': {
      if (match.range === undefined) throw wrongKind(field, where);
      const low = values.decode(match.range.low, field, where);
      const high = values.decode(match.range.high, field, where);
      if (low > high) throw invalid(where, 'the low end is above the high end');
      if (low === 0n && high === allOnes(field)) throw invalid(where, MUST_BE_OMITTED);
      return { kind: 'range', low, high };
    }
  }
}

/** A key as a message: shortest strings, don't-care fields left out, in the order of the P4Info. */
export function matchMessage(
  values: FieldValues,
  fields: readonly MatchFieldInfo[],
  key: readonly MatchValue[],
): FieldMatch[] {
  const matches: FieldMatch[] = [];
  fields.forEach((field, i) => {
    const value = key[i]!;
    const fieldId = field.id;
    const encode = (bits: bigint): Uint8Array => values.encode(bits, field);
    switch (value.kind) {
      case 'exact':
        matches.push({ fieldId, exact: { value: encode(value.value) } });
        break;
      case 'lpm':
        if (value.prefixLength > 0)
          matches.push({ fieldId, lpm: { value: encode(value.value), prefixLen: value.prefixLength } });
        break;
      case 'ternary':
        if (value.mask !== 0n)
          matches.push({ fieldId, ternary: { value: encode(value.value), mask: encode(value.mask) } });
        break;
      case 'range':
        if (value.low !== 0n || value.high !== allOnes(field))
          matches.push({ fieldId, range: { low: encode(value.low), high: encode(value.high) } });
        break;
      case 'optional':
        if (value.value !== undefined) matches.push({ fieldId, optional: { value: encode(value.value) } });
        break;
    }
  });
  return matches;
}

/** Equal for equal keys of one table. */
export function matchKey(values: readonly MatchValue[], priority: number): string {
  let key = `${priority}`;
  for (const value of values) {
    switch (value.kind) {
      case 'exact':
        key += `|${value.value}`;
        break;
      case 'lpm':
        key += `|${value.value}/${value.prefixLength}`;
        break;
      case 'ternary':
        key += `|${value.value}&${value.mask}`;
        break;
      case 'range':
        key += `|${value.low}-${value.high}`;
        break;
      case 'optional':
        key += `|${value.value ?? '*'}`;
        break;
    }
  }
  return key;
}

/** Throws INVALID_ARGUMENT unless exactly tables with ternary, range or optional keys have a priority (section "Table Entry"). */
export function checkPriority(table: TableInfo, priority: number): void {
  if (table.needsPriority && priority <= 0)
    throw new RpcError('INVALID_ARGUMENT', `Table ${table.name}: entries need a priority above 0, not ${priority}`);
  if (!table.needsPriority && priority !== 0)
    throw new RpcError('INVALID_ARGUMENT', `Table ${table.name}: entries have no priority, not even ${priority}`);
}

/** An action of a table with its parameters in the order of their declaration (section "Action Specification"). */
export function parseAction(
  values: FieldValues,
  table: TableInfo,
  action: Action,
  place: 'entry' | 'default',
): ActionCall {
  const ref = table.actionById.get(action.actionId);
  if (ref === undefined)
    throw new RpcError(
      'INVALID_ARGUMENT',
      `Table ${table.name} has no action with id 0x${action.actionId.toString(16)}`,
    );
  if (ref.scope === (place === 'entry' ? 'default only' : 'table only'))
    throw new RpcError(
      'PERMISSION_DENIED',
      `Table ${table.name}: action ${ref.action.name} is not allowed for ${place === 'entry' ? 'entries' : 'the default entry'}`,
    );
  const where = `Table ${table.name}, action ${ref.action.name}`;
  const given = new Map<number, Uint8Array>();
  for (const { paramId, value } of action.params) {
    if (!ref.action.paramById.has(paramId))
      throw new RpcError('INVALID_ARGUMENT', `${where}: there is no parameter with id ${paramId}`);
    if (given.has(paramId))
      throw new RpcError(
        'INVALID_ARGUMENT',
        `${where}: parameter ${ref.action.paramById.get(paramId)!.name} is given twice`,
      );
    given.set(paramId, value);
  }
  const params = ref.action.params.map((param) => {
    const bytes = given.get(param.id);
    if (bytes === undefined) throw new RpcError('INVALID_ARGUMENT', `${where}: parameter ${param.name} is missing`);
    return values.decode(bytes, param, `${where}, parameter ${param.name}`);
  });
  return { action: ref.action.name, params };
}

export function actionMessage(values: FieldValues, action: ActionInfo, call: ActionCall): Action {
  return {
    actionId: action.id,
    params: action.params.map((param, i) => ({ paramId: param.id, value: values.encode(call.params[i]!, param) })),
  };
}

/**
 * The cells that an index names: all of them if it is absent.
 * @throws RpcError INVALID_ARGUMENT for a negative index, OUT_OF_RANGE for one beyond the array
 */
export function cellRange(index: Index | undefined, size: number, what: string): { first: number; end: number } {
  if (index === undefined) return { first: 0, end: size };
  if (index.index < 0n) throw new RpcError('INVALID_ARGUMENT', `${what}: index ${index.index} is negative`);
  if (index.index >= BigInt(size))
    throw new RpcError('OUT_OF_RANGE', `${what}: index ${index.index} is not below its size ${size}`);
  return { first: Number(index.index), end: Number(index.index) + 1 };
}

export function parseCounterData(data: CounterData, what: string): CounterValue {
  if (data.byteCount < 0n || data.packetCount < 0n)
    throw new RpcError('INVALID_ARGUMENT', `${what}: counters are never negative`);
  return { bytes: data.byteCount, packets: data.packetCount };
}

/** Counters of the device may pass 2^63; the protocol's cannot. */
export function counterMessage(value: CounterValue): CounterData {
  return { byteCount: BigInt.asUintN(63, value.bytes), packetCount: BigInt.asUintN(63, value.packets) };
}

/** P4Runtime 1.5, section "MeterEntry & DirectMeterEntry"; v1model's meters have two rates and three colours (RFC 2698). */
export function parseMeterConfig(config: MeterConfigMessage, type: MeterSpecType, where: string): MeterConfig {
  if (type !== MeterSpecType.TWO_RATE_THREE_COLOR)
    throw new RpcError('UNIMPLEMENTED', `${where}: this switch has no single-rate meters`);
  if (config.eburst !== 0n) throw new RpcError('INVALID_ARGUMENT', `${where}: a two-rate meter has no eburst`);
  const { cir, cburst, pir, pburst } = config;
  if ([cir, cburst, pir, pburst].some((value) => value < 0n))
    throw new RpcError('INVALID_ARGUMENT', `${where}: rates and bursts are never negative`);
  return { cir, cburst, pir, pburst };
}

export function meterMessage(config: MeterConfig | undefined): MeterConfigMessage | undefined {
  return config && { ...config, eburst: 0n };
}

/** Nobody may set them to anything but 0, and v1model does not count by colour. */
export function refuseColourCounters(data: MeterCounterData | undefined, where: string): void {
  if (data === undefined) return;
  for (const colour of [data.green, data.yellow, data.red])
    if (colour !== undefined && (colour.byteCount !== 0n || colour.packetCount !== 0n))
      throw new RpcError('INVALID_ARGUMENT', `${where}: counters per colour can only be set to 0`);
  throw new RpcError('UNIMPLEMENTED', `${where}: this switch has no counters per colour`);
}

/** Writes one value into the cells from `first` up to `end`; the result puts back what was there. */
export function replaceCells<T>(
  first: number,
  end: number,
  value: T,
  read: (index: number) => T,
  write: (index: number, value: T) => void,
): () => void {
  const before: T[] = [];
  for (let index = first; index < end; index++) {
    before.push(read(index));
    write(index, value);
  }
  return () => {
    before.forEach((cell, i) => {
      write(first + i, cell);
    });
  };
}
