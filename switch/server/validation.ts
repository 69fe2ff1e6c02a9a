import type {
  CounterData,
  Index,
  MeterConfig as MeterConfigMessage,
  MeterCounterData,
  Update,
} from '../../wire/p4runtime/messages.ts';
import { UpdateType } from '../../wire/p4runtime/messages.ts';
import type { ObjectIndex } from '../../wire/p4runtime/p4info-index.ts';
import { MeterSpecType } from '../../wire/p4runtime/p4info-messages.ts';
import type { NamedObject, TableInfo } from '../../wire/p4runtime/p4info-objects.ts';
import type { CounterValue, MeterConfig } from '../control.ts';
import { RpcError } from './rpc-error.ts';

/**
 * The rules of P4Runtime 1.5 for the parts that entities share: ids, priorities, indices, counters, meters. Pure: P4Info and message in, values of
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

/** Throws INVALID_ARGUMENT unless exactly tables with ternary, range or optional keys have a priority (section "Table Entry"). */
export function checkPriority(table: TableInfo, priority: number): void {
  if (table.needsPriority && priority <= 0)
    throw new RpcError('INVALID_ARGUMENT', `Table ${table.name}: entries need a priority above 0, not ${priority}`);
  if (!table.needsPriority && priority !== 0)
    throw new RpcError('INVALID_ARGUMENT', `Table ${table.name}: entries have no priority, not even ${priority}`);
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

/** What a write costs that may be meant for all cells of an array; one that does not exist costs an answer. */
export function cellWork(index: Index | undefined, array: { readonly size: number } | undefined): number {
  return index === undefined && array !== undefined ? array.size : 1;
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
