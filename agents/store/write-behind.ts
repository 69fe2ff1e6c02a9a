/** Bytes of one gathered write, and how many are gathered side by side: stripes and restored blocks alternate. */
const RUN_BYTES = 256 << 10;
const RUNS = 4;

interface Run {
  readonly buffer: Uint8Array;
  start: number;
  end: number;
}

/** Gathers adjacent small writes into large ones, so that a packet does not cost a system call. Holds at most a mebibyte. */
export class WriteBehind {
  private readonly writeThrough: (offset: number, bytes: Uint8Array) => void;
  /** The one that was written to last comes first. */
  private readonly runs: Run[] = [];

  constructor(writeThrough: (offset: number, bytes: Uint8Array) => void) {
    this.writeThrough = writeThrough;
  }

  /** Copies the bytes; where writes overlap, the later one counts. */
  write(offset: number, bytes: Uint8Array): void {
    const end = offset + bytes.length;
    let next = -1;
    for (let i = 0; i < this.runs.length; i++) {
      const run = this.runs[i]!;
      if (run.end === offset && end - run.start <= RUN_BYTES) next = i;
      else if (run.start < end && offset < run.end) this.flushRun(run);
    }
    if (bytes.length > RUN_BYTES) {
      this.writeThrough(offset, bytes);
      return;
    }
    const run = next < 0 ? this.freeRun(offset) : this.runs[next]!;
    if (run !== this.runs[0]) {
      this.runs.splice(this.runs.indexOf(run), 1);
      this.runs.unshift(run);
    }
    run.buffer.set(bytes, offset - run.start);
    run.end = end;
  }

  /** Everything is written when it returns. */
  flush(): void {
    for (const run of this.runs) this.flushRun(run);
  }

  private freeRun(offset: number): Run {
    let run = this.runs.find(({ start, end }) => start === end);
    if (run === undefined && this.runs.length < RUNS) {
      run = { buffer: new Uint8Array(RUN_BYTES), start: 0, end: 0 };
      this.runs.push(run);
    }
    run ??= this.runs.at(-1)!;
    this.flushRun(run);
    run.start = offset;
    run.end = offset;
    return run;
  }

  private flushRun(run: Run): void {
    const { start, end } = run;
    if (start === end) return;
    run.end = start;
    this.writeThrough(start, run.buffer.subarray(0, end - start));
  }
}
