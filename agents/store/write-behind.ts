import { ByteRanges } from '../protocol/byte-ranges.ts';

/** What is gathered at a time: a block of the longest usual segments, on its own border. */
const WINDOW_BYTES = 512 << 10;
/** Blocks that are being filled or wait for repairs. */
const WINDOWS = 8;

interface Window {
  readonly index: number;
  readonly bytes: Uint8Array;
  /** What is not in the file yet: one run that grows, and those before it. Offsets within the window. */
  runStart: number;
  runEnd: number;
  readonly runs: ByteRanges;
}

/**
 * Gathers small writes to a file into large ones, so that a packet does not cost a system call, and gives back what was written lately without
 * reading it. Holds at most four mebibytes.
 */
export class WriteBehind {
  private readonly writeThrough: (offset: number, bytes: Uint8Array) => void;
  /** The one that was begun first comes first. */
  private readonly windows = new Map<number, Window>();
  /** Windows of which something has been written that is not held any more. */
  private readonly left: Uint8Array;
  private last: Window | undefined;

  /** @param sizeBytes of the file */
  constructor(sizeBytes: number, writeThrough: (offset: number, bytes: Uint8Array) => void) {
    this.writeThrough = writeThrough;
    this.left = new Uint8Array(Math.ceil(sizeBytes / WINDOW_BYTES));
  }

  /** Copies bytes within the file; where writes overlap, the later one counts. */
  write(offset: number, bytes: Uint8Array): void {
    for (let done = 0; done < bytes.length; ) {
      const window = this.windowAt(Math.floor((offset + done) / WINDOW_BYTES));
      const start = (offset + done) % WINDOW_BYTES;
      const length = Math.min(bytes.length - done, WINDOW_BYTES - start);
      window.bytes.set(length === bytes.length ? bytes : bytes.subarray(done, done + length), start);
      if (start !== window.runEnd) {
        window.runs.add(window.runStart, window.runEnd);
        window.runStart = start;
      }
      window.runEnd = start + length;
      done += length;
    }
  }

  /**
   * @returns a view of everything that was written there, the rest being anything; undefined if some of it is only in the file. Valid until the next
   * write
   */
  view(offset: number, length: number): Uint8Array | undefined {
    const index = Math.floor(offset / WINDOW_BYTES);
    const start = offset % WINDOW_BYTES;
    const window = this.windows.get(index);
    if (window === undefined || this.left[index] === 1 || start + length > WINDOW_BYTES) return undefined;
    return window.bytes.subarray(start, start + length);
  }

  /** Everything is in the file when it returns. */
  flush(): void {
    for (const window of this.windows.values()) this.flushWindow(window);
  }

  private windowAt(index: number): Window {
    if (this.last?.index === index) return this.last;
    let window = this.windows.get(index);
    if (window === undefined) {
      let bytes: Uint8Array | undefined;
      if (this.windows.size === WINDOWS) {
        const oldest = this.windows.values().next().value!;
        this.flushWindow(oldest);
        this.windows.delete(oldest.index);
        this.left[oldest.index] = 1;
        bytes = oldest.bytes;
      }
      bytes ??= new Uint8Array(WINDOW_BYTES);
      window = { index, bytes, runStart: 0, runEnd: 0, runs: new ByteRanges() };
      this.windows.set(index, window);
    }
    this.last = window;
    return window;
  }

  private flushWindow(window: Window): void {
    const { index, bytes, runs } = window;
    runs.add(window.runStart, window.runEnd);
    window.runStart = window.runEnd;
    for (const { start, end } of runs.take())
      this.writeThrough(index * WINDOW_BYTES + start, bytes.subarray(start, end));
  }
}
