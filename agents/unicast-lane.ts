import type { Scheduler, Timer } from '../base/clock.ts';
import { type DdfError, toDdfError } from '../base/errors.ts';
import { CHUNK_BYTES } from '../objects/chunks.ts';
import type { RangeReader } from './io/range-client.ts';

/** Stream offsets, from `start` up to, not including, `end`; within the manifest or within the payload. */
export interface StreamRange {
  readonly start: number;
  readonly end: number;
}

export interface UnicastLaneOptions {
  readonly reader: RangeReader;
  readonly manifestBytes: number;
  readonly scheduler: Scheduler;
  readonly onData: (streamOffset: number, bytes: Uint8Array) => void;
  /** Every holder has failed, several times over. */
  readonly onFailure: (error: DdfError) => void;
}

const PARALLEL = 2;
/** Rounds over all holders for one piece; the waits between them double from 100 ms to 3.2 s. */
const MAX_ROUNDS = 7;
const FIRST_WAIT_US = 100_000;

interface Piece extends StreamRange {
  readonly rounds: number;
}

/** Reads what multicast did not bring from holders, in pieces of a chunk. Ends in the data or in one failure. */
export class UnicastLane {
  private readonly options: UnicastLaneOptions;
  private readonly waiting: Piece[] = [];
  private readonly timers = new Set<Timer>();
  private running = 0;
  private isClosed = false;

  constructor(options: UnicastLaneOptions) {
    this.options = options;
  }

  /** Whether nothing is being read or waited for. */
  get isIdle(): boolean {
    return this.running === 0 && this.waiting.length === 0 && this.timers.size === 0;
  }

  read(ranges: readonly StreamRange[]): void {
    if (this.isClosed) return;
    for (const { start, end } of ranges)
      for (let at = start; at < end; at += CHUNK_BYTES)
        this.waiting.push({ start: at, end: Math.min(end, at + CHUNK_BYTES), rounds: 0 });
    this.next();
  }

  close(): void {
    this.isClosed = true;
    this.waiting.length = 0;
    for (const timer of this.timers) timer.cancel();
    this.timers.clear();
    this.options.reader.close();
  }

  private next(): void {
    while (!this.isClosed && this.running < PARALLEL) {
      const piece = this.waiting.shift();
      if (piece === undefined) return;
      this.running++;
      void this.readPiece(piece).finally(() => {
        this.running--;
        this.next();
      });
    }
  }

  private async readPiece(piece: Piece): Promise<void> {
    const { reader, manifestBytes, onData } = this.options;
    const isManifest = piece.start < manifestBytes;
    const base = isManifest ? 0 : manifestBytes;
    try {
      const bytes = await reader.read(isManifest ? 'manifest' : 'data', piece.start - base, piece.end - base);
      if (!this.isClosed) onData(piece.start, bytes);
    } catch (error) {
      this.failed(piece, toDdfError(error));
    }
  }

  private failed(piece: Piece, error: DdfError): void {
    if (this.isClosed) return;
    const rounds = piece.rounds + 1;
    if (rounds >= MAX_ROUNDS) {
      this.close();
      this.options.onFailure(error);
      return;
    }
    const { scheduler } = this.options;
    const timer = scheduler.at(scheduler.nowUs() + FIRST_WAIT_US * 2 ** piece.rounds, () => {
      this.timers.delete(timer);
      this.waiting.push({ ...piece, rounds });
      this.next();
    });
    this.timers.add(timer);
  }
}
