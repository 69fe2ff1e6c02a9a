/** Bytes from `start` up to but without `end`. */
export interface ByteRange {
  readonly start: number;
  readonly end: number;
}

/** A set of bytes as sorted, disjoint, non-adjacent ranges. */
export class ByteRanges {
  private ranges: ByteRange[] = [];

  get isEmpty(): boolean {
    return this.ranges.length === 0;
  }

  add(start: number, end: number): void {
    if (start >= end) return;
    const from = this.firstEndingAtOrAfter(start);
    let to = from;
    let low = start;
    let high = end;
    while (to < this.ranges.length && this.ranges[to].start <= end) {
      low = Math.min(low, this.ranges[to].start);
      high = Math.max(high, this.ranges[to].end);
      to++;
    }
    this.ranges.splice(from, to - from, { start: low, end: high });
  }

  remove(start: number, end: number): void {
    if (start >= end) return;
    const from = this.firstEndingAtOrAfter(start + 1);
    let to = from;
    const kept: ByteRange[] = [];
    while (to < this.ranges.length && this.ranges[to].start < end) {
      const range = this.ranges[to];
      if (range.start < start) kept.push({ start: range.start, end: start });
      if (range.end > end) kept.push({ start: end, end: range.end });
      to++;
    }
    this.ranges.splice(from, to - from, ...kept);
  }

  /** The parts of the set within [start, end). */
  within(start: number, end: number): ByteRange[] {
    const parts: ByteRange[] = [];
    if (start >= end) return parts;
    for (let i = this.firstEndingAtOrAfter(start + 1); i < this.ranges.length && this.ranges[i].start < end; i++)
      parts.push({ start: Math.max(start, this.ranges[i].start), end: Math.min(end, this.ranges[i].end) });
    return parts;
  }

  intersects(start: number, end: number): boolean {
    const range = this.ranges[this.firstEndingAtOrAfter(start + 1)];
    return range !== undefined && start < end && range.start < end;
  }

  /** Empties the set and returns what was in it. */
  take(): ByteRange[] {
    const taken = this.ranges;
    this.ranges = [];
    return taken;
  }

  private firstEndingAtOrAfter(offset: number): number {
    let low = 0;
    let high = this.ranges.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.ranges[middle].end < offset) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
