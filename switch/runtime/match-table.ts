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
import { storeWide } from './arithmetic.ts';
import { type ActionRow, Choices, Entry, NO_ACTION, type RangeCheck } from './entry.ts';
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

export class MatchTable implements TableControl {
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
  private readonly installed = new Map<string, Entry>();
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
    const entry = this.find(handle);
    const { row, choices } = this.compile(action);
    entry.action = action;
    entry.row = row;
    entry.choices = choices;
    return entry;
  }

  delete(handle: EntryHandle): void {
    const entry = this.find(handle);
    this.index.remove(entry);
    this.installed.delete(entry.identity);
  }

  entries(): Iterable<EntryHandle> {
    return this.installed.values();
  }

  isConst(handle: EntryHandle): boolean {
    return this.find(handle).fromProgram;
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
    const entry = this.find(handle);
    return this.shape.hasCounter ? { packets: BigInt(entry.packets), bytes: BigInt(entry.bytes) } : undefined;
  }

  setCounter(handle: EntryHandle, value: CounterValue): void {
    const entry = this.find(handle);
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
    return this.find(handle).meter?.config;
  }

  configureMeter(handle: EntryHandle, config: MeterConfig | undefined): void {
    this.find(handle).meter = this.meter(config);
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
    return this.find(handle).lastHitUs;
  }

  private find(handle: EntryHandle): Entry {
    if (handle instanceof Entry && this.installed.get(handle.identity) === handle) return handle;
    throw new DdfError('NOT_FOUND', `The entry is not in table ${this.name}`, { where: this.name });
  }

  private add(match: readonly MatchValue[], priority: number, action: EntryAction, fromProgram: boolean): Entry {
    if (match.length !== this.shape.keys.length)
      throw new DdfError(
        'INVALID_REQUEST',
        `Table ${this.name} has ${this.shape.keys.length} keys, not ${match.length}`,
        {
          where: this.name,
        },
      );
    const packed = this.pack(match);
    const rank = this.byPriority ? priority : packed.prefixLength;
    const identity = `${priority}|${packed.identity}`;
    if (this.installed.has(identity))
      throw new DdfError('ALREADY_EXISTS', `Table ${this.name} already has an entry with this match`, {
        where: this.name,
        remedy: 'Modify the entry instead.',
      });
    if (this.installed.size >= this.size)
      throw new DdfError('TABLE_FULL', `Table ${this.name} is full: it has ${this.size} entries`, {
        where: this.name,
        remedy: 'Delete entries, or raise the size in the P4 program.',
      });
    const entry = new Entry({
      match,
      priority,
      action,
      key: packed.key,
      mask: packed.mask,
      ranges: packed.ranges,
      rank,
      identity,
      fromProgram,
      nowUs: this.nowUs(),
      ...this.compile(action),
    });
    this.index.insert(entry);
    this.installed.set(identity, entry);
    return entry;
  }

  private compile(action: EntryAction): { row: ActionRow; choices: Choices | undefined } {
    if (!('selector' in action)) return { row: this.rowOf(action), choices: undefined };
    const choices = action.selector.map((member) => ({
      row: this.rowOf(member),
      weight: member.weight,
      watchPort: member.watchPort,
    }));
    return { row: NO_ACTION, choices: new Choices(choices, this.ports) };
  }

  private rowOf(call: ActionCall | undefined): ActionRow {
    if (call === undefined) return NO_ACTION;
    const action = this.shape.actions.findIndex((candidate) => candidate.name === call.action);
    const shape = this.shape.actions[action];
    if (shape === undefined || shape.parameters.length !== call.params.length)
      throw new DdfError(
        'INVALID_REQUEST',
        `Table ${this.name} has no action ${call.action} of ${call.params.length} parameters`,
        {
          where: this.name,
        },
      );
    const data = new Uint32Array(shape.words);
    shape.parameters.forEach(({ widthBits, word }, i) => {
      storeWide(data, word, widthBits, call.params[i]!);
    });
    return { action, data };
  }

  private pack(match: readonly MatchValue[]): Packed {
    const { keys, words } = this.shape;
    const { exactMask } = this;
    const key = new Uint32Array(words);
    if (exactMask !== undefined) {
      const texts: string[] = [];
      for (const [i, shape] of keys.entries()) {
        const value = match[i]! as Extract<MatchValue, { kind: 'exact' }>;
        const bits = BigInt.asUintN(shape.widthBits, value.value);
        put(key, shape, bits);
        texts.push(bits.toString(16));
      }
      return { key, mask: exactMask, ranges: NO_RANGES, identity: texts.join(), prefixLength: 0 };
    }
    const mask = new Uint32Array(words);
    const ranges: RangeCheck[] = [];
    const identity: string[] = [];
    let prefixLength = 0;
    keys.forEach((shape, i) => {
      const value = match[i]!;
      const ones = (1n << BigInt(shape.widthBits)) - 1n;
      const under = maskOf(value, shape.widthBits, ones);
      if (value.kind === 'lpm') prefixLength = value.prefixLength;
      if (value.kind === 'range') {
        if (value.low > 0n || value.high < ones) ranges.push(rangeCheck(shape, value.low, value.high));
        identity.push(`${value.low}-${value.high}`);
        return;
      }
      const bits = (value.value ?? 0n) & under;
      put(key, shape, bits);
      put(mask, shape, under);
      identity.push(`${bits.toString(16)}&${under.toString(16)}`);
    });
    return { key, mask, ranges, identity: identity.join(), prefixLength };
  }
}

interface Packed {
  readonly key: Uint32Array;
  readonly mask: Uint32Array;
  readonly ranges: readonly RangeCheck[];
  readonly identity: string;
  readonly prefixLength: number;
}

type KeyShape = TableShape['keys'][number];

const NO_RANGES: readonly RangeCheck[] = [];

function exactMaskOf({ keys, words }: TableShape): Uint32Array {
  const mask = new Uint32Array(words);
  for (const shape of keys) put(mask, shape, (1n << BigInt(shape.widthBits)) - 1n);
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

/** Narrow keys are shifted within a word, wide ones fill words of their own. */
function put(words: Uint32Array, shape: KeyShape, value: bigint): void {
  if (shape.widthBits > 32) storeWide(words, shape.word, shape.widthBits, value);
  else words[shape.word]! |= Number(value) << shape.shift;
}

function rangeCheck(shape: KeyShape, low: bigint, high: bigint): RangeCheck {
  const count = Math.ceil(shape.widthBits / 32);
  const split = (value: bigint) =>
    Array.from({ length: count }, (_, i) => Number((value >> BigInt(32 * (count - 1 - i))) & 0xffff_ffffn));
  return {
    words: Array.from({ length: count }, (_, i) => shape.word + count - 1 - i),
    shift: shape.shift,
    mask: shape.widthBits >= 32 ? 0xffff_ffff : 2 ** shape.widthBits - 1,
    low: split(low),
    high: split(high),
  };
}
