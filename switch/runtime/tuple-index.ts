import type { Entry, PackedKey, RangeCheck } from './entry.ts';
import { type EntryIndex, HashIndex } from './exact-index.ts';

/** The entries under one mask. */
interface Tuple {
  readonly mask: Uint32Array;
  readonly heads: HashIndex;
  /** The highest rank in it. */
  rank: number;
  readonly ranks: Map<number, number>;
}

/**
 * Tables with lpm, ternary, optional or range keys: tuple space search (Srinivasan, Suri, Varghese, SIGCOMM 1999). Entries with the same mask share
 * a hash table; masks are tried from the highest rank down, until what was found ranks above all that is left. Ranges
 * are checked on the few entries that agree in everything else. Of equal ranks the one inserted first wins.
 */
export class TupleIndex implements EntryIndex {
  private readonly words: number;
  private readonly masked: Uint32Array;
  private readonly single = new Uint32Array(1);
  private tuples: Tuple[] = [];

  constructor(words: number) {
    this.words = words;
    this.masked = new Uint32Array(words);
  }

  find1(key: number): Entry | undefined {
    if (this.tuples.length === 0) return undefined;
    this.single[0] = key;
    return this.find(this.single);
  }

  find(key: Uint32Array): Entry | undefined {
    const { tuples, masked, words } = this;
    let best: Entry | undefined;
    for (let t = 0; t < tuples.length; t++) {
      const tuple = tuples[t]!;
      if (best !== undefined && best.rank > tuple.rank) break;
      const { mask } = tuple;
      for (let i = 0; i < words; i++) masked[i] = key[i]! & mask[i]!;
      let entry = words === 1 ? tuple.heads.find1(masked[0]!) : tuple.heads.find(masked);
      while (entry !== undefined && entry.ranges.length > 0 && !inRanges(entry.ranges, key)) entry = entry.next;
      if (entry !== undefined && (best === undefined || this.precedes(entry, best))) best = entry;
    }
    return best;
  }

  same(key: PackedKey): Entry | undefined {
    let entry = this.tupleOf(key.mask)?.heads.same(key);
    for (; entry !== undefined && entry.rank >= key.rank; entry = entry.next)
      if (entry.priority === key.priority && sameRanges(entry.ranges, key.ranges)) return entry;
    return undefined;
  }

  insert(entry: Entry): void {
    let tuple = this.tupleOf(entry.mask);
    if (tuple === undefined) {
      tuple = { mask: entry.mask, heads: new HashIndex(this.words), rank: entry.rank, ranks: new Map() };
      this.tuples.push(tuple);
    }
    tuple.ranks.set(entry.rank, (tuple.ranks.get(entry.rank) ?? 0) + 1);
    tuple.rank = Math.max(tuple.rank, entry.rank);
    const head = tuple.heads.same(entry);
    if (head === undefined || this.precedes(entry, head)) {
      entry.next = head;
      tuple.heads.insert(entry);
    } else {
      let before = head;
      while (before.next !== undefined && !this.precedes(entry, before.next)) before = before.next;
      entry.next = before.next;
      before.next = entry;
    }
    this.sort();
  }

  remove(entry: Entry): void {
    const tuple = this.tupleOf(entry.mask);
    const head = tuple?.heads.same(entry);
    if (tuple === undefined || head === undefined) return;
    if (head === entry) {
      if (entry.next === undefined) tuple.heads.remove(entry);
      else tuple.heads.insert(entry.next);
    } else {
      let before = head;
      while (before.next !== entry) {
        if (before.next === undefined) return;
        before = before.next;
      }
      before.next = entry.next;
    }
    entry.next = undefined;
    const left = tuple.ranks.get(entry.rank)! - 1;
    if (left === 0) tuple.ranks.delete(entry.rank);
    else tuple.ranks.set(entry.rank, left);
    if (tuple.ranks.size === 0) this.tuples = this.tuples.filter((other) => other !== tuple);
    else if (left === 0 && entry.rank === tuple.rank) {
      tuple.rank = highest(tuple.ranks.keys());
      this.sort();
    }
  }

  private precedes(a: Entry, b: Entry): boolean {
    return a.rank > b.rank || (a.rank === b.rank && a.order < b.order);
  }

  private tupleOf(mask: Uint32Array): Tuple | undefined {
    return this.tuples.find((tuple) => tuple.mask.every((word, i) => word === mask[i]));
  }

  /** Keeps the tuples in descending order after one has changed. */
  private sort(): void {
    if (!this.isSorted()) this.tuples = [...this.tuples].sort((a, b) => b.rank - a.rank);
  }

  private isSorted(): boolean {
    return this.tuples.every((tuple, i) => i === 0 || this.tuples[i - 1]!.rank >= tuple.rank);
  }
}

/** Of any number: as arguments of Math.max a hundred thousand would overflow the stack. */
function highest(ranks: Iterable<number>): number {
  let best = Number.NEGATIVE_INFINITY;
  for (const rank of ranks) if (rank > best) best = rank;
  return best;
}

function sameRanges(a: readonly RangeCheck[], b: readonly RangeCheck[]): boolean {
  const sameWords = (some: readonly number[], others: readonly number[]): boolean =>
    some.every((word, i) => word === others[i]);
  return (
    a.length === b.length &&
    a.every((one, i) => {
      const other = b[i]!;
      return one.place === other.place && sameWords(one.low, other.low) && sameWords(one.high, other.high);
    })
  );
}

function inRanges(ranges: readonly RangeCheck[], key: Uint32Array): boolean {
  for (const range of ranges) {
    let aboveLow = false;
    let belowHigh = false;
    for (let i = 0; i < range.words.length && !(aboveLow && belowHigh); i++) {
      const word = ((key[range.words[i]!]! >>> range.shift) & range.mask) >>> 0;
      if (!aboveLow) {
        if (word < range.low[i]!) return false;
        aboveLow = word > range.low[i]!;
      }
      if (!belowHigh) {
        if (word > range.high[i]!) return false;
        belowHigh = word < range.high[i]!;
      }
    }
  }
  return true;
}
