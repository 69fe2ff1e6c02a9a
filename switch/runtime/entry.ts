import type { EntryAction, EntryHandle, MatchValue } from '../control.ts';
import type { Meter } from './meters.ts';
import type { PortStates } from './port-states.ts';

/** What a hit or a miss leads to: an action of the table by its place there (-1: none) and the words of its parameters. */
export interface ActionRow {
  readonly action: number;
  readonly data: Uint32Array;
}

/** One member of a selector's entry. */
export interface Choice {
  readonly row: ActionRow;
  readonly weight: number;
  readonly watchPort: number | undefined;
}

/** No action: what a miss without a default does, or a selector none of whose members is eligible. */
export const NO_ACTION: ActionRow = { action: -1, data: new Uint32Array(0) };

/** The members of a selector's entry: a hash picks one whose watch port is up, each as often as its weight says. */
export class Choices {
  private readonly all: readonly Choice[];
  private readonly ports: PortStates;
  private version: number;
  private rows: readonly ActionRow[] = [];
  /** Sums of the weights up to and including each row. */
  private sums = new Float64Array(0);
  private total = 0;

  constructor(all: readonly Choice[], ports: PortStates) {
    this.all = all;
    this.ports = ports;
    this.version = ports.version;
    this.refresh();
  }

  pick(hash: number | bigint): ActionRow {
    if (this.version !== this.ports.version) this.refresh();
    if (this.total === 0) return NO_ACTION;
    const place = typeof hash === 'number' ? hash % this.total : Number(hash % BigInt(this.total));
    let i = 0;
    while (place >= this.sums[i]!) i++;
    return this.rows[i]!;
  }

  private refresh(): void {
    this.version = this.ports.version;
    const eligible = this.all.filter(({ watchPort }) => watchPort === undefined || this.ports.isUp(watchPort));
    this.rows = eligible.map(({ row }) => row);
    this.total = 0;
    this.sums = Float64Array.from(eligible, ({ weight }) => {
      this.total += weight;
      return this.total;
    });
  }
}

/** A range key's bounds, word by word, the most significant first. */
export interface RangeCheck {
  /** Words of the key that hold the value, the most significant first, and how far it is shifted in a shared one. */
  readonly words: readonly number[];
  readonly shift: number;
  readonly mask: number;
  readonly low: readonly number[];
  readonly high: readonly number[];
}

export class Entry implements EntryHandle {
  readonly match: readonly MatchValue[];
  readonly priority: number;
  action: EntryAction;
  /** The packed key under its mask. */
  readonly key: Uint32Array;
  readonly mask: Uint32Array;
  readonly ranges: readonly RangeCheck[];
  /** The higher wins: priority, or the length of the prefix. */
  readonly rank: number;
  /** Unique within its table: match and priority. */
  readonly identity: string;
  readonly fromProgram: boolean;

  // What the packet path reads and counts.
  row: ActionRow;
  choices: Choices | undefined;
  packets = 0;
  bytes = 0;
  /** `undefined`: always green. */
  meter: Meter | undefined;
  lastHitUs: number;
  /** The next one with the same masked key, of lower or equal rank. */
  next: Entry | undefined;

  constructor(fixed: {
    readonly match: readonly MatchValue[];
    readonly priority: number;
    readonly action: EntryAction;
    readonly key: Uint32Array;
    readonly mask: Uint32Array;
    readonly ranges: readonly RangeCheck[];
    readonly rank: number;
    readonly identity: string;
    readonly fromProgram: boolean;
    readonly row: ActionRow;
    readonly choices: Choices | undefined;
    readonly nowUs: number;
  }) {
    this.match = fixed.match;
    this.priority = fixed.priority;
    this.action = fixed.action;
    this.key = fixed.key;
    this.mask = fixed.mask;
    this.ranges = fixed.ranges;
    this.rank = fixed.rank;
    this.identity = fixed.identity;
    this.fromProgram = fixed.fromProgram;
    this.row = fixed.row;
    this.choices = fixed.choices;
    this.meter = undefined;
    this.lastHitUs = fixed.nowUs;
    this.next = undefined;
  }
}
