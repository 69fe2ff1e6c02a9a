import { DdfError } from '../../base/errors.ts';
import { FABRIC_SOURCE_SYMBOLS } from '../../p4/build/constants.ts';
import { BlockDecoder } from '../fec/reed-solomon.ts';
import { type ByteRange, ByteRanges } from './byte-ranges.ts';
import { ChunkTracker, MAX_CHUNK_FAILURES } from './chunk-tracker.ts';
import type { StreamLayout } from './layout.ts';

/** Where a receiver puts the payload. */
export interface PayloadSink {
  /**
   * Writes bytes at an offset of the payload; they are only valid during the call. The same bytes may be written twice, a chunk that
   * was verified never is. What it throws ends the transfer.
   */
  write(payloadOffset: number, bytes: Uint8Array): void;
}

export type AssemblyEvent =
  /** All bytes of the manifest are there; answer with `manifestVerified`. */
  | { readonly type: 'manifestComplete'; readonly bytes: Uint8Array }
  /** All bytes of a chunk are written; answer with `chunkVerified`. Only after the manifest was verified. */
  | { readonly type: 'chunkComplete'; readonly chunk: number }
  /** The driver found a wrong hash: the chunk's source is suspect. It is being read by unicast. */
  | { readonly type: 'chunkRejected'; readonly chunk: number; readonly failures: number }
  /** Stream offsets to read from a holder; answer with `unicastData`. No range spans manifest and payload. */
  | { readonly type: 'unicastNeeded'; readonly ranges: readonly ByteRange[] }
  /** Every chunk is verified. */
  | { readonly type: 'complete' }
  /** The manifest or a chunk stays wrong whoever it is read from. Nothing more happens. */
  | { readonly type: 'failed'; readonly error: DdfError };

const WANTED = 0;
/** What is missing of it is read by unicast. */
const UNICAST = 1;
const WRITTEN = 2;

const BUFFERS_KEPT = 4;

/** Blocks from symbols, chunks from blocks, and what has to come by unicast instead. */
export class StreamAssembly {
  readonly chunks: ChunkTracker;
  private readonly layout: StreamLayout;
  private readonly sink: PayloadSink;
  private readonly emit: (event: AssemblyEvent) => void;
  private readonly capacity: number;
  private readonly status: Uint8Array;
  private readonly partial = new Map<number, BlockDecoder>();
  private readonly freeBuffers: Uint8Array[] = [];
  /** Bytes that unicast has to bring, and those of them that have not been asked for yet. */
  private readonly outstanding = new ByteRanges();
  private readonly unasked = new ByteRanges();
  private readonly manifest: Uint8Array;
  private manifestBlocksMissing: number;
  private manifestFailures = 0;
  private manifestState: 'missing' | 'checking' | 'verified';
  private wantedLeft = 0;
  private hasFailed = false;

  /** Source symbols that never came as DATA, of blocks that are written or left to unicast. */
  lostSymbols = 0;
  blocksDecoded = 0;

  /**
   * @param verifiedChunks  chunks held from an earlier run
   * @param manifestIsHeld  whether the driver has the manifest already
   * @param bufferBytes     bound on the buffers of incomplete blocks; beyond it the one begun first is left to unicast
   */
  constructor(
    layout: StreamLayout,
    sink: PayloadSink,
    verifiedChunks: Iterable<number>,
    manifestIsHeld: boolean,
    bufferBytes: number,
    emit: (event: AssemblyEvent) => void,
  ) {
    this.layout = layout;
    this.sink = sink;
    this.emit = emit;
    this.capacity = Math.max(2, Math.floor(bufferBytes / (layout.segmentBytes * FABRIC_SOURCE_SYMBOLS)));
    this.chunks = new ChunkTracker(layout, verifiedChunks);
    this.status = new Uint8Array(layout.blocks);
    this.manifest = new Uint8Array(manifestIsHeld ? 0 : layout.manifestBytes);
    this.manifestBlocksMissing = layout.manifestBlocks;
    this.manifestState = manifestIsHeld || layout.manifestBytes === 0 ? 'verified' : 'missing';
    for (let block = 0; block < layout.blocks; block++) {
      if (this.isSuperfluous(block)) this.status[block] = WRITTEN;
      else this.wantedLeft++;
    }
    if (this.isComplete) this.emit({ type: 'complete' });
  }

  get isComplete(): boolean {
    return this.chunks.allVerified && this.manifestState === 'verified';
  }

  get failed(): boolean {
    return this.hasFailed;
  }

  /** Whether symbols of any block are still of use. */
  get wantsSymbols(): boolean {
    return this.wantedLeft > 0 && !this.hasFailed;
  }

  /** Whether symbols of this block are of use. */
  wants(block: number): boolean {
    return this.status[block] === WANTED;
  }

  /** Symbols missing of a block that is wanted. */
  need(block: number): number {
    return this.layout.sourceSymbols(block) - (this.partial.get(block)?.held ?? 0);
  }

  /**
   * A symbol of a block that is wanted. With the last one needed the block is restored and written.
   * @returns whether it was new
   */
  addSymbol(block: number, symbol: number, bytes: Uint8Array): boolean {
    const decoder = this.partial.get(block) ?? this.begin(block);
    if (!decoder.add(symbol, bytes)) return false;
    if (decoder.complete) {
      if (decoder.missing > 0) {
        this.lostSymbols += decoder.restore();
        this.blocksDecoded++;
      }
      const start = this.layout.blockStart(block);
      this.write(start, decoder.bytes.subarray(0, this.layout.blockEnd(block) - start));
      this.end(block);
      this.blockWritten(block);
    }
    return true;
  }

  /** Leaves what is missing of a wanted block to unicast; what is held is written. */
  giveUp(block: number): void {
    const { layout } = this;
    const decoder = this.partial.get(block);
    const start = layout.blockStart(block);
    if (decoder === undefined) {
      this.lostSymbols += layout.sourceSymbols(block);
      this.requestUnicast(start, layout.blockEnd(block));
    } else {
      this.lostSymbols += decoder.missing;
      for (let symbol = 0; symbol < decoder.sourceSymbols; symbol++) {
        const offset = symbol * layout.segmentBytes;
        const length = layout.segmentLength(block, symbol);
        if (decoder.has(symbol)) this.write(start + offset, decoder.bytes.subarray(offset, offset + length));
        else this.requestUnicast(start + offset, start + offset + length);
      }
    }
    this.end(block);
    this.status[block] = UNICAST;
    // Every part may belong to chunks that are verified already.
    this.settleBlock(block);
  }

  giveUpAll(): void {
    if (this.wantedLeft === 0) return;
    for (let block = 0; block < this.layout.blocks; block++) if (this.wants(block)) this.giveUp(block);
  }

  /** Emits what unicast has to bring and has not been asked for yet. */
  flushUnicast(): number {
    if (this.unasked.isEmpty) return 0;
    const ranges = this.splitByRegion(this.unasked.take());
    this.emit({ type: 'unicastNeeded', ranges });
    return ranges.length;
  }

  /**
   * Bytes that a holder sent. What was not asked for is ignored.
   * @returns how many were of use
   */
  unicastData(streamOffset: number, bytes: Uint8Array): number {
    if (this.hasFailed) return 0;
    const end = streamOffset + bytes.length;
    let used = 0;
    for (const part of this.outstanding.within(streamOffset, end)) {
      this.write(part.start, bytes.subarray(part.start - streamOffset, part.end - streamOffset));
      this.outstanding.remove(part.start, part.end);
      this.unasked.remove(part.start, part.end);
      used += part.end - part.start;
      this.settleRange(part.start, part.end);
    }
    return used;
  }

  manifestVerified(ok: boolean): void {
    if (this.manifestState !== 'checking' || this.hasFailed) return;
    if (ok) {
      this.manifestState = 'verified';
      for (let chunk = 0; chunk < this.layout.chunks; chunk++) this.checkChunk(chunk);
      if (this.isComplete) this.emit({ type: 'complete' });
      return;
    }
    this.manifestState = 'missing';
    this.manifestFailures++;
    if (this.manifestFailures >= MAX_CHUNK_FAILURES) this.fail('The manifest', 'it does not match its hash');
    else this.requestUnicast(0, this.layout.manifestBytes);
  }

  chunkVerified(chunk: number, ok: boolean): void {
    if (!this.chunks.isChecking(chunk) || this.hasFailed) return;
    if (ok) {
      this.chunks.markVerified(chunk);
      if (this.isComplete) this.emit({ type: 'complete' });
      return;
    }
    const failures = this.chunks.markFailed(chunk);
    this.emit({ type: 'chunkRejected', chunk, failures });
    if (failures >= MAX_CHUNK_FAILURES) this.fail(`Chunk ${chunk}`, 'it does not match the hash in the manifest');
    else this.requestUnicast(this.layout.chunkStart(chunk), this.layout.chunkEnd(chunk));
  }

  private begin(block: number): BlockDecoder {
    if (this.partial.size >= this.capacity) this.giveUp(this.partial.keys().next().value!);
    const { layout } = this;
    const buffer = this.freeBuffers.pop() ?? new Uint8Array(layout.segmentBytes * FABRIC_SOURCE_SYMBOLS);
    const decoder = new BlockDecoder(layout.sourceSymbols(block), layout.symbolBytes(block), buffer);
    this.partial.set(block, decoder);
    return decoder;
  }

  /** A wanted block is wanted no longer: its buffer is free. */
  private end(block: number): void {
    this.wantedLeft--;
    const decoder = this.partial.get(block);
    if (decoder === undefined) return;
    this.partial.delete(block);
    if (this.freeBuffers.length < BUFFERS_KEPT) this.freeBuffers.push(decoder.bytes);
  }

  private blockWritten(block: number): void {
    this.status[block] = WRITTEN;
    if (block < this.layout.manifestBlocks) {
      this.manifestBlocksMissing--;
      this.checkManifest();
      return;
    }
    this.chunks.blockWritten(block);
    const [first, last] = this.chunks.chunksOf(block);
    for (let chunk = first; chunk <= last; chunk++) this.checkChunk(chunk);
  }

  /** Writes to the manifest or the payload; never into a chunk that is being hashed or verified. */
  private write(streamStart: number, bytes: Uint8Array): void {
    const { layout } = this;
    if (streamStart < layout.manifestBytes) {
      if (this.manifestState === 'missing') this.manifest.set(bytes, streamStart);
      return;
    }
    const end = streamStart + bytes.length;
    for (let at = streamStart; at < end; ) {
      const chunk = layout.chunkAt(at);
      const partEnd = Math.min(end, layout.chunkEnd(chunk));
      if (this.chunks.isOpen(chunk))
        this.sink.write(at - layout.manifestBytes, bytes.subarray(at - streamStart, partEnd - streamStart));
      at = partEnd;
    }
  }

  /** Adds to what unicast has to bring, but for chunks that are held. */
  private requestUnicast(start: number, end: number): void {
    const { layout } = this;
    if (start < layout.manifestBytes) {
      this.outstanding.add(start, end);
      this.unasked.add(start, end);
      return;
    }
    for (let at = start; at < end; ) {
      const chunk = layout.chunkAt(at);
      const partEnd = Math.min(end, layout.chunkEnd(chunk));
      if (this.chunks.isOpen(chunk)) {
        this.outstanding.add(at, partEnd);
        this.unasked.add(at, partEnd);
      }
      at = partEnd;
    }
  }

  private settleRange(start: number, end: number): void {
    const { layout } = this;
    const last = layout.blockAt(end - 1);
    for (let block = layout.blockAt(start); block <= last; block++) this.settleBlock(block);
    if (start < layout.manifestBytes) this.checkManifest();
    else for (let chunk = layout.chunkAt(start); chunk <= layout.chunkAt(end - 1); chunk++) this.checkChunk(chunk);
  }

  private settleBlock(block: number): void {
    if (this.status[block] !== UNICAST) return;
    if (this.outstanding.intersects(this.layout.blockStart(block), this.layout.blockEnd(block))) return;
    this.blockWritten(block);
  }

  private checkManifest(): void {
    if (this.manifestState !== 'missing' || this.manifestBlocksMissing > 0) return;
    if (this.outstanding.intersects(0, this.layout.manifestBytes)) return;
    this.manifestState = 'checking';
    this.emit({ type: 'manifestComplete', bytes: this.manifest });
  }

  private checkChunk(chunk: number): void {
    const { chunks, layout } = this;
    if (this.manifestState !== 'verified' || this.hasFailed || !chunks.isOpen(chunk) || !chunks.isWritten(chunk))
      return;
    if (this.outstanding.intersects(layout.chunkStart(chunk), layout.chunkEnd(chunk))) return;
    chunks.startChecking(chunk);
    this.emit({ type: 'chunkComplete', chunk });
  }

  private isSuperfluous(block: number): boolean {
    if (block < this.layout.manifestBlocks) return this.manifestState === 'verified';
    const [first, last] = this.chunks.chunksOf(block);
    for (let chunk = first; chunk <= last; chunk++) if (!this.chunks.isVerified(chunk)) return false;
    return true;
  }

  private splitByRegion(ranges: readonly ByteRange[]): ByteRange[] {
    const border = this.layout.manifestBytes;
    return ranges.flatMap((range) =>
      range.start < border && range.end > border
        ? [
            { start: range.start, end: border },
            { start: border, end: range.end },
          ]
        : [range],
    );
  }

  private fail(what: string, why: string): void {
    this.hasFailed = true;
    this.emit({
      type: 'failed',
      error: new DdfError('HASH_MISMATCH', `${what} was read ${MAX_CHUNK_FAILURES} times and ${why}`, {
        where: 'receiver of a transfer',
        remedy: 'Check the memory nodes that hold this version; import it again if their copies are damaged.',
      }),
    });
  }
}
