import { DdfError } from '../../base/errors.ts';
import type {
  ActionCall,
  CounterValue,
  EntryAction,
  EntryHandle,
  MatchValue,
  MeterConfig,
  TableControl,
  TableKey,
} from '../control.ts';
import { readWide, storeWide } from './arithmetic.ts';
import {
  type ActionRow,
  Choices,
  Entry,
  type EntryOwner,
  NO_ACTION,
  type PackedKey,
  type RangeCheck,
} from './entry.ts';
import { DirectIndex, type EntryIndex, HashIndex } from './exact-index.ts';
import { Meter, type MeterUnit } from './meters.ts';
import type { PortStates } from './port-states.ts';
import { TupleIndex } from './tuple-index.ts';

export interface TableShape {
  readonly name: string;
  readonly size: number;
  /** In the order of the program; a key stands in the lookup words as the compiler placed it. */
  readonly keys: readonly {
    readonly name: string;
    readonly kind: 'exact' | 'lpm' | 'ternary' | 'range';
    readonly widthBits: number;
    readonly word: number;
    readonly shift: number;
  }[];
  readonly words: number;
  readonly actions: readonly ActionShape[];
  readonly hasCounter: boolean;
  /** What the entries' meters measure; `undefined` when they have none. */
  readonly meterUnit: MeterUnit | undefined;
  readonly defaultCall: ActionCall | undefined;
  readonly entries: readonly {
    readonly match: readonly MatchValue[];
    readonly priority: number;
    readonly action: ActionCall;
  }[];
}

export interface ActionShape {
  readonly name: string;
  readonly parameters: readonly { readonly widthBits: number; readonly word: number }[];
  readonly words: number;
}

/** Keys of so few bits index an array directly. */
const DIRECT_BITS = 12;

export class MatchTable implements TableControl, EntryOwner {
  readonly name: string;
  readonly size: number;
  readonly keys: readonly TableKey[];
  readonly actions: readonly string[];
  /** What the packet path looks up in. */
  readonly index: EntryIndex;
  readonly hasMeter: boolean;
  // What the packet path does, counts and meters after a miss.
  miss: ActionRow;
  missPackets = 0;
  missBytes = 0;
  missMeter: Meter | undefined;
  private readonly shape: TableShape;
  private readonly byPriority: boolean;
  /** Of tables whose keys are all exact: the mask of every entry, which is one object since there may be very many. */
  private readonly exactMask: Uint32Array | undefined;
  private readonly actionPlaces: ReadonlyMap<string, number>;
  private oldest: Entry | undefined;
  private newest: Entry | undefined;
  count = 0;
  /** Of entries that were ever inserted. */
  private inserted = 0;
  private default: ActionCall | undefined;
  private readonly nowUs: () => number;
  private readonly ports: PortStates;

  constructor(shape: TableShape, nowUs: () => number, ports: PortStates) {
    this.shape = shape;
    this.ports = ports;
    this.hasMeter = shape.meterUnit !== undefined;
    this.name = shape.name;
    this.size = shape.size;
    this.keys = shape.keys.map(({ name, kind, widthBits }) => ({ name, kind, widthBits }));
    this.actions = shape.actions.map((action) => action.name);
    this.actionPlaces = new Map(this.actions.map((name, place) => [name, place]));
    this.nowUs = nowUs;
    this.byPriority = shape.keys.some((key) => key.kind === 'ternary' || key.kind === 'range');
    this.exactMask = shape.keys.every((key) => key.kind === 'exact') ? exactMaskOf(shape) : undefined;
    this.index = makeIndex(shape);
    this.default = shape.defaultCall;
    this.miss = this.rowOf(shape.defaultCall);
    for (const { match, priority, action } of shape.entries) this.add(match, priority, action, true);
  }

  insert(match: readonly MatchValue[], priority: number, action: EntryAction): EntryHandle {
    return this.add(match, priority, action, false);
  }

  modify(handle: EntryHandle, action: EntryAction): EntryHandle {
    const entry = this.require(handle);
    const { row, choices } = this.compile(action);
    entry.row = row;
    entry.choices = choices;
    return entry;
  }

  delete(handle: EntryHandle): void {
    const entry = this.require(handle);
    this.index.remove(entry);
    this.unlink(entry);
  }

  find(match: readonly MatchValue[], priority: number): EntryHandle | undefined {
    return this.index.same(this.pack(match, priority));
  }

  *entries(): Generator<EntryHandle> {
    for (let entry = this.oldest; entry !== undefined; entry = entry.newer) yield entry;
  }

  isConst(handle: EntryHandle): boolean {
    return this.require(handle).fromProgram;
  }

  setDefault(action: ActionCall | undefined): void {
    const chosen = action ?? this.shape.defaultCall;
    this.miss = this.rowOf(chosen);
    this.default = chosen;
  }

  defaultAction(): ActionCall | undefined {
    return this.default;
  }

  counter(handle: EntryHandle): CounterValue | undefined {
    const entry = this.require(handle);
    return this.shape.hasCounter ? { packets: BigInt(entry.packets), bytes: BigInt(entry.bytes) } : undefined;
  }

  setCounter(handle: EntryHandle, value: CounterValue): void {
    const entry = this.require(handle);
    entry.packets = Number(value.packets);
    entry.bytes = Number(value.bytes);
  }

  defaultCounter(): CounterValue | undefined {
    return this.shape.hasCounter ? { packets: BigInt(this.missPackets), bytes: BigInt(this.missBytes) } : undefined;
  }

  setDefaultCounter(value: CounterValue): void {
    this.missPackets = Number(value.packets);
    this.missBytes = Number(value.bytes);
  }

  meterConfig(handle: EntryHandle): MeterConfig | undefined {
    return this.require(handle).meter?.config;
  }

  configureMeter(handle: EntryHandle, config: MeterConfig | undefined): void {
    this.require(handle).meter = this.meter(config);
  }

  defaultMeterConfig(): MeterConfig | undefined {
    return this.missMeter?.config;
  }

  configureDefaultMeter(config: MeterConfig | undefined): void {
    this.missMeter = this.meter(config);
  }

  private meter(config: MeterConfig | undefined): Meter | undefined {
    const { meterUnit } = this.shape;
    if (meterUnit === undefined)
      throw new DdfError('INVALID_REQUEST', `Table ${this.name} has no direct meters`, { where: this.name });
    return config === undefined ? undefined : new Meter(config, meterUnit, this.nowUs());
  }

  lastHitUs(handle: EntryHandle): number {
    return this.require(handle).lastHitUs;
  }

  private require(handle: EntryHandle): Entry {
    if (handle instanceof Entry && handle.owner === this && handle.isInstalled) return handle;
    throw new DdfError('NOT_FOUND', `The entry is not in table ${this.name}`, { where: this.name });
  }

  private add(match: readonly MatchValue[], priority: number, action: EntryAction, fromProgram: boolean): Entry {
    const packed = this.pack(match, priority);
    if (this.index.same(packed) !== undefined)
      throw new DdfError('ALREADY_EXISTS', `Table ${this.name} already has an entry with this match`, {
        where: this.name,
        remedy: 'Modify the entry instead.',
      });
    if (this.count >= this.size)
      throw new DdfError('TABLE_FULL', `Table ${this.name} is full: it has ${this.size} entries`, {
        where: this.name,
        remedy: 'Delete entries, or raise the size in the P4 program.',
      });
    const { row, choices } = this.compile(action);
    const entry = new Entry(this, packed, row, choices, this.inserted++, fromProgram, this.nowUs());
    this.index.insert(entry);
    this.link(entry);
    return entry;
  }

  private link(entry: Entry): void {
    entry.isInstalled = true;
    entry.older = this.newest;
    if (this.newest === undefined) this.oldest = entry;
    else this.newest.newer = entry;
    this.newest = entry;
    this.count++;
  }

  /** The entry goes on pointing to a newer one, for those who are looking at it. */
  private unlink(entry: Entry): void {
    entry.isInstalled = false;
    if (entry.older === undefined) this.oldest = entry.newer;
    else entry.older.newer = entry.newer;
    if (entry.newer === undefined) this.newest = entry.older;
    else entry.newer.older = entry.older;
    entry.older = undefined;
    this.count--;
  }

  private compile(action: EntryAction): { row: ActionRow; choices: Choices | undefined } {
    if (!('selector' in action)) return { row: this.rowOf(action), choices: undefined };
    const choices = action.selector.map((member) => ({
      row: this.rowOf(member),
      weight: member.weight,
      watchPort: member.watchPort,
    }));
    return { row: NO_ACTION, choices: new Choices(action, choices, this.ports) };
  }

  private rowOf(call: ActionCall | undefined): ActionRow {
    if (call === undefined) return NO_ACTION;
    const action = this.actionPlaces.get(call.action);
    const shape = action === undefined ? undefined : this.shape.actions[action];
    if (action === undefined || shape === undefined || shape.parameters.length !== call.params.length)
      throw new DdfError(
        'INVALID_REQUEST',
        `Table ${this.name} has no action ${call.action} of ${call.params.length} parameters`,
        {
          where: this.name,
        },
      );
    const { parameters } = shape;
    const data = new Uint32Array(shape.words);
    for (let i = 0; i < parameters.length; i++) {
      const { widthBits, word } = parameters[i]!;
      store(data, word, widthBits, call.params[i]!);
    }
    return { action, data };
  }

  callOf({ action, data }: ActionRow): ActionCall {
    const { name, parameters } = this.shape.actions[action]!;
    return {
      action: name,
      params: parameters.map(({ widthBits, word }) => readWide(data, word, Math.ceil(widthBits / 32))),
    };
  }

  private pack(match: readonly MatchValue[], priority: number): PackedKey {
    const { keys, words } = this.shape;
    if (match.length !== keys.length)
      throw new DdfError('INVALID_REQUEST', `Table ${this.name} has ${keys.length} keys, not ${match.length}`, {
        where: this.name,
      });
    const { exactMask } = this;
    const key = new Uint32Array(words);
    if (exactMask !== undefined) {
      for (let i = 0; i < keys.length; i++) {
        const value = match[i] as Extract<MatchValue, { kind: 'exact' }>;
        put(key, keys[i]!, BigInt.asUintN(keys[i]!.widthBits, value.value));
      }
      return { key, mask: exactMask, ranges: NO_RANGES, priority, rank: 0 };
    }
    const mask = new Uint32Array(words);
    let ranges = NO_RANGES;
    let prefixLength = 0;
    for (let i = 0; i < keys.length; i++) {
      const shape = keys[i]!;
      const value = match[i]!;
      const ones = onesOf(shape);
      if (value.kind === 'range') {
        if (value.low > 0n || value.high < ones) ranges = [...ranges, rangeCheck(i, shape, value.low, value.high)];
        continue;
      }
      const under = maskOf(value, shape.widthBits, ones);
      if (value.kind === 'lpm') prefixLength = value.prefixLength;
      put(key, shape, (value.value ?? 0n) & under);
      put(mask, shape, under);
    }
    return { key, mask, ranges, priority, rank: this.byPriority ? priority : prefixLength };
  }

  /** What {@link pack} was given, optional keys as the ternary ones that they are here. */
  matchOf({ key, mask, ranges }: Entry): readonly MatchValue[] {
    return this.shape.keys.map((shape, i): MatchValue => {
      if (shape.kind === 'range') {
        const range = ranges.find(({ place }) => place === i);
        if (range === undefined) return { kind: 'range', low: 0n, high: onesOf(shape) };
        return { kind: 'range', low: joined(range.low), high: joined(range.high) };
      }
      const value = take(key, shape);
      if (shape.kind === 'exact') return { kind: 'exact', value };
      const under = take(mask, shape);
      if (shape.kind === 'ternary') return { kind: 'ternary', value, mask: under };
      return { kind: 'lpm', value, prefixLength: bitCount(under) };
    });
  }
}

type KeyShape = TableShape['keys'][number];

const NO_RANGES: readonly RangeCheck[] = [];

function exactMaskOf({ keys, words }: TableShape): Uint32Array {
  const mask = new Uint32Array(words);
  for (const shape of keys) put(mask, shape, onesOf(shape));
  return mask;
}

function makeIndex(shape: TableShape): EntryIndex {
  if (shape.keys.some((key) => key.kind !== 'exact')) return new TupleIndex(shape.words);
  const bits = shape.keys.reduce((sum, key) => sum + key.widthBits, 0);
  return shape.words === 1 && bits <= DIRECT_BITS ? new DirectIndex(bits) : new HashIndex(Math.max(1, shape.words));
}

function maskOf(value: MatchValue, widthBits: number, ones: bigint): bigint {
  switch (value.kind) {
    case 'exact':
      return ones;
    case 'lpm':
      return ones ^ ((1n << BigInt(widthBits - value.prefixLength)) - 1n);
    case 'ternary':
      return value.mask & ones;
    case 'optional':
      return value.value === undefined ? 0n : ones;
    case 'range':
      return 0n;
  }
}

function onesOf({ widthBits }: KeyShape): bigint {
  return (1n << BigInt(widthBits)) - 1n;
}

function bitCount(bits: bigint): number {
  let count = 0;
  for (let rest = bits; rest > 0n; rest >>= 1n) if ((rest & 1n) === 1n) count++;
  return count;
}

/** Narrow keys are shifted within a word, wide ones fill words of their own. */
function put(words: Uint32Array, shape: KeyShape, value: bigint): void {
  if (shape.widthBits > 32) storeWide(words, shape.word, shape.widthBits, value);
  else words[shape.word]! |= Number(value) << shape.shift;
}

/** Undoes {@link put}. */
function take(words: Uint32Array, { widthBits, word, shift }: KeyShape): bigint {
  if (widthBits > 32) return readWide(words, word, Math.ceil(widthBits / 32));
  return BigInt.asUintN(widthBits, BigInt(words[word]! >>> shift));
}

/** Most parameters are narrow, and take no detour through bigints. */
function store(data: Uint32Array, word: number, widthBits: number, value: bigint): void {
  if (widthBits > 32) storeWide(data, word, widthBits, value);
  else if (widthBits > 0) data[word] = Number(BigInt.asUintN(widthBits, value));
}

function rangeCheck(place: number, shape: KeyShape, low: bigint, high: bigint): RangeCheck {
  const count = Math.ceil(shape.widthBits / 32);
  const split = (value: bigint) =>
    Array.from({ length: count }, (_, i) => Number((value >> BigInt(32 * (count - 1 - i))) & 0xffff_ffffn));
  return {
    place,
    words: Array.from({ length: count }, (_, i) => shape.word + count - 1 - i),
    shift: shape.shift,
    mask: shape.widthBits >= 32 ? 0xffff_ffff : 2 ** shape.widthBits - 1,
    low: split(low),
    high: split(high),
  };
}

/** A bound of a range from its words. */
function joined(words: readonly number[]): bigint {
  return words.reduce((value, word) => (value << 32n) | BigInt(word), 0n);
}
