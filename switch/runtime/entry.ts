import type { ActionCall, EntryAction, EntryHandle, MatchValue } from '../control.ts';
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
  /** What they were made from. */
  readonly action: EntryAction;
  private readonly all: readonly Choice[];
  private readonly ports: PortStates;
  private version: number;
  private rows: readonly ActionRow[] = [];
  /** Sums of the weights up to and including each row. */
  private sums = new Float64Array(0);
  private total = 0;

  constructor(action: EntryAction, all: readonly Choice[], ports: PortStates) {
    this.action = action;
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
  /** Of the key among the table's. */
  readonly place: number;
  /** Words of the key that hold the value, the most significant first, and how far it is shifted in a shared one. */
  readonly words: readonly number[];
  readonly shift: number;
  readonly mask: number;
  readonly low: readonly number[];
  readonly high: readonly number[];
}

/** What a table knows of its entries: their words in P4's terms. */
export interface EntryOwner {
  matchOf(entry: Entry): readonly MatchValue[];
  callOf(row: ActionRow): ActionCall;
}

/** What is looked up under: a key in words, of which those bits count that the mask has, and ranges beside it. */
export interface PackedKey {
  /** Under the mask. */
  readonly key: Uint32Array;
  readonly mask: Uint32Array;
  readonly ranges: readonly RangeCheck[];
  readonly priority: number;
  /** The higher wins: priority, or the length of the prefix. */
  readonly rank: number;
}

/** An entry as packets use it. There may be very many: what the words say is not kept a second time in P4's terms, but made when it is asked for. */
export class Entry implements EntryHandle, PackedKey {
  readonly owner: EntryOwner;
  readonly key: Uint32Array;
  readonly mask: Uint32Array;
  readonly ranges: readonly RangeCheck[];
  readonly priority: number;
  readonly rank: number;
  /** Of two with the same rank the one with the lower number is older. */
  readonly order: number;
  readonly fromProgram: boolean;
  note: unknown = undefined;

  // What the packet path reads and counts.
  row: ActionRow;
  choices: Choices | undefined;
  packets = 0;
  bytes = 0;
  /** `undefined`: always green. */
  meter: Meter | undefined = undefined;
  lastHitUs: number;
  /** The next one with the same masked key, of lower or equal rank. */
  next: Entry | undefined = undefined;

  // The table's list of all entries, in the order in which they were inserted.
  isInstalled = false;
  older: Entry | undefined = undefined;
  newer: Entry | undefined = undefined;

  constructor(
    owner: EntryOwner,
    packed: PackedKey,
    row: ActionRow,
    choices: Choices | undefined,
    order: number,
    fromProgram: boolean,
    nowUs: number,
  ) {
    this.owner = owner;
    this.key = packed.key;
    this.mask = packed.mask;
    this.ranges = packed.ranges;
    this.priority = packed.priority;
    this.rank = packed.rank;
    this.order = order;
    this.fromProgram = fromProgram;
    this.row = row;
    this.choices = choices;
    this.lastHitUs = nowUs;
  }

  get match(): readonly MatchValue[] {
    return this.owner.matchOf(this);
  }

  get action(): EntryAction {
    return this.choices?.action ?? this.owner.callOf(this.row);
  }
}
