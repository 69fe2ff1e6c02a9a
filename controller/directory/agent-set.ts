/**
 * A set of agents by ordinal, one bit each. 100,000 agents are 12.5 KB; where that is too much for a million objects, a compressed
 * bitmap with the same five methods takes its place.
 */
export class AgentSet {
  private words = new Uint32Array(1);
  private count = 0;

  get size(): number {
    return this.count;
  }

  has(ordinal: number): boolean {
    const word = this.words[ordinal >>> 5];
    return word !== undefined && (word & (1 << (ordinal & 31))) !== 0;
  }

  add(ordinal: number): void {
    const index = ordinal >>> 5;
    if (index >= this.words.length) {
      const grown = new Uint32Array(Math.max(index + 1, 2 * this.words.length));
      grown.set(this.words);
      this.words = grown;
    }
    if (this.has(ordinal)) return;
    this.words[index]! |= 1 << (ordinal & 31);
    this.count++;
  }

  delete(ordinal: number): void {
    if (!this.has(ordinal)) return;
    this.words[ordinal >>> 5]! &= ~(1 << (ordinal & 31));
    this.count--;
  }

  /** Ordinals in ascending order. */
  *[Symbol.iterator](): Iterator<number> {
    for (let index = 0; index < this.words.length; index++)
      for (let word = this.words[index]!; word !== 0; word &= word - 1)
        yield 32 * index + 31 - Math.clz32(word & -word);
  }
}
