import type { Entry, PackedKey } from './entry.ts';

/** Finds entries by their key's words. `find1` is for keys of one word. */
export interface EntryIndex {
  find1(key: number): Entry | undefined;
  find(key: Uint32Array): Entry | undefined;
  /** The entry with this key, mask, ranges and priority. */
  same(key: PackedKey): Entry | undefined;
  /** No entry may be there that is the same. */
  insert(entry: Entry): void;
  remove(entry: Entry): void;
}

/** One slot per possible key: for keys of a few bits. */
export class DirectIndex implements EntryIndex {
  private readonly slots: (Entry | undefined)[];

  constructor(keyBits: number) {
    this.slots = new Array<Entry | undefined>(2 ** keyBits).fill(undefined);
  }

  find1(key: number): Entry | undefined {
    return this.slots[key];
  }

  find(key: Uint32Array): Entry | undefined {
    return this.slots[key[0]!];
  }

  same({ key }: PackedKey): Entry | undefined {
    return this.slots[key[0]!];
  }

  insert(entry: Entry): void {
    this.slots[entry.key[0]!] = entry;
  }

  remove(entry: Entry): void {
    this.slots[entry.key[0]!] = undefined;
  }
}

/** An open-addressing hash table with linear probing, at most half full. */
export class HashIndex implements EntryIndex {
  private readonly words: number;
  private mask = 15;
  private count = 0;
  private slots: (Entry | undefined)[] = new Array<Entry | undefined>(16).fill(undefined);
  /** The keys' first words beside the slots: most misses are seen here, and all of a one-word key's hits. */
  private firsts = new Uint32Array(16);

  constructor(words: number) {
    this.words = words;
  }

  get size(): number {
    return this.count;
  }

  find1(key: number): Entry | undefined {
    const { slots, firsts, mask } = this;
    for (let slot = hash1(key) & mask; ; slot = (slot + 1) & mask) {
      const entry = slots[slot];
      if (entry === undefined || firsts[slot] === key) return entry;
    }
  }

  find(key: Uint32Array): Entry | undefined {
    const { slots, firsts, mask, words } = this;
    const first = key[0]!;
    for (let slot = hashWords(key, words) & mask; ; slot = (slot + 1) & mask) {
      const entry = slots[slot];
      if (entry === undefined) return undefined;
      if (firsts[slot] !== first) continue;
      const other = entry.key;
      let i = 1;
      while (i < words && other[i] === key[i]) i++;
      if (i === words) return entry;
    }
  }

  same({ key }: PackedKey): Entry | undefined {
    return this.words === 1 ? this.find1(key[0]!) : this.find(key);
  }

  /** Puts an entry at its key, in place of one that is there. */
  insert(entry: Entry): void {
    const slot = this.slotOf(entry.key);
    if (this.slots[slot] === undefined) this.count++;
    this.slots[slot] = entry;
    this.firsts[slot] = entry.key[0]!;
    if (2 * this.count > this.mask) this.resize(2 * (this.mask + 1));
  }

  /** Removes whatever is at the entry's key; later ones of its run close the gap. */
  remove(entry: Entry): void {
    let gap = this.slotOf(entry.key);
    if (this.slots[gap] === undefined) return;
    this.count--;
    for (let slot = (gap + 1) & this.mask; ; slot = (slot + 1) & this.mask) {
      const candidate = this.slots[slot];
      if (candidate === undefined) break;
      const home = this.home(candidate.key);
      if (((slot - home) & this.mask) < ((slot - gap) & this.mask)) continue;
      this.slots[gap] = candidate;
      this.firsts[gap] = this.firsts[slot]!;
      gap = slot;
    }
    this.slots[gap] = undefined;
  }

  private home(key: Uint32Array): number {
    return (this.words === 1 ? hash1(key[0]!) : hashWords(key, this.words)) & this.mask;
  }

  private slotOf(key: Uint32Array): number {
    for (let slot = this.home(key); ; slot = (slot + 1) & this.mask) {
      const entry = this.slots[slot];
      if (entry === undefined) return slot;
      let i = 0;
      while (i < this.words && entry.key[i] === key[i]) i++;
      if (i === this.words) return slot;
    }
  }

  private resize(size: number): void {
    const old = this.slots;
    this.mask = size - 1;
    this.slots = new Array<Entry | undefined>(size).fill(undefined);
    this.firsts = new Uint32Array(size);
    for (const entry of old) {
      if (entry === undefined) continue;
      const slot = this.slotOf(entry.key);
      this.slots[slot] = entry;
      this.firsts[slot] = entry.key[0]!;
    }
  }
}

function hash1(key: number): number {
  const mixed = Math.imul(key, 0x9e3779b1);
  return mixed ^ (mixed >>> 15);
}

function hashWords(key: Uint32Array, words: number): number {
  let mixed = 0;
  for (let i = 0; i < words; i++) {
    mixed = Math.imul(mixed ^ key[i]!, 0x9e3779b1);
    mixed ^= mixed >>> 15;
  }
  return mixed;
}
