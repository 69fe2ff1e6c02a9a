import type { StreamLayout } from './layout.ts';

/** Hash failures of one chunk after which the transfer gives up: the manifest or every holder must be wrong. */
export const MAX_CHUNK_FAILURES = 3;

const MISSING = 0;
/** All bytes written; the driver is hashing it. */
const CHECKING = 1;
const VERIFIED = 2;

/** Which chunks of the payload are written, being hashed, verified. */
export class ChunkTracker {
  private readonly layout: StreamLayout;
  private readonly state: Uint8Array;
  /** Blocks that overlap a chunk and are not written yet. */
  private readonly blocksMissing: Uint32Array;
  private readonly failures = new Map<number, number>();
  private left: number;
  private verifiedPayloadBytes = 0;

  /** @param verified chunks that are held from an earlier run */
  constructor(layout: StreamLayout, verified: Iterable<number>) {
    this.layout = layout;
    this.state = new Uint8Array(layout.chunks);
    this.blocksMissing = new Uint32Array(layout.chunks);
    this.left = layout.chunks;
    for (let chunk = 0; chunk < layout.chunks; chunk++) {
      const first = layout.blockAt(layout.chunkStart(chunk));
      this.blocksMissing[chunk] = layout.blockAt(layout.chunkEnd(chunk) - 1) - first + 1;
    }
    for (const chunk of verified) if (this.state[chunk] === MISSING) this.markVerified(chunk);
  }

  get allVerified(): boolean {
    return this.left === 0;
  }

  /** Payload bytes in verified chunks. */
  get verifiedBytes(): number {
    return this.verifiedPayloadBytes;
  }

  /** Whether bytes of this chunk may still be written. */
  isOpen(chunk: number): boolean {
    return this.state[chunk] === MISSING;
  }

  isVerified(chunk: number): boolean {
    return this.state[chunk] === VERIFIED;
  }

  isChecking(chunk: number): boolean {
    return this.state[chunk] === CHECKING;
  }

  /** A block of the payload is written. */
  blockWritten(block: number): void {
    const [first, last] = this.chunksOf(block);
    for (let chunk = first; chunk <= last; chunk++) this.blocksMissing[chunk]--;
  }

  /** Whether every block of the chunk has been written. */
  isWritten(chunk: number): boolean {
    return this.blocksMissing[chunk] === 0;
  }

  startChecking(chunk: number): void {
    this.state[chunk] = CHECKING;
  }

  markVerified(chunk: number): void {
    this.state[chunk] = VERIFIED;
    this.left--;
    this.verifiedPayloadBytes += this.layout.chunkEnd(chunk) - this.layout.chunkStart(chunk);
  }

  /** @returns how often this chunk has failed now */
  markFailed(chunk: number): number {
    this.state[chunk] = MISSING;
    const failures = (this.failures.get(chunk) ?? 0) + 1;
    this.failures.set(chunk, failures);
    return failures;
  }

  /** First and last chunk that a block of the payload overlaps. */
  chunksOf(block: number): [first: number, last: number] {
    const { layout } = this;
    return [layout.chunkAt(layout.blockStart(block)), layout.chunkAt(layout.blockEnd(block) - 1)];
  }
}
