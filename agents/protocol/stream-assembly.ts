import { DdfError } from '../../base/errors.ts';
import { FABRIC_SOURCE_SYMBOLS } from '../../p4/build/constants.ts';
import { restoreSources } from '../fec/reed-solomon.ts';
import { type ByteRange, ByteRanges } from './byte-ranges.ts';
import { ChunkTracker, MAX_CHUNK_FAILURES } from './chunk-tracker.ts';
import type { StreamLayout } from './layout.ts';
import { type PartialBlock, PartialBlocks } from './partial-blocks.ts';

/** Where a receiver puts the payload. */
export interface PayloadSink {
  /**
   * Copies bytes to their place in the payload; they are only valid during the call. The same bytes may be written twice, a chunk that
   * was verified never is. What it throws ends the transfer.
   */
  write(payloadOffset: number, bytes: Uint8Array): void;
  /**
   * What stands at a place now: a view of it, or a copy that is valid until the next call. Asked for before lost symbols are restored; bytes that
   * were never written may be anything.
   */
  read(payloadOffset: number, length: number): Uint8Array;
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

/**
 * Blocks from symbols, chunks from blocks, and what has to come by unicast instead. A source symbol goes to its place in the payload at once; only
 * parity is kept aside, and what a block lost is restored from it and from what stands in place.
 */
export class StreamAssembly {
  readonly chunks: ChunkTracker;
  private readonly layout: StreamLayout;
  private readonly sink: PayloadSink;
  private readonly emit: (event: AssemblyEvent) => void;
  private readonly status: Uint8Array;
  private readonly partial: PartialBlocks;
  /** Where lost symbols are restored. */
  private readonly restored: Uint8Array[] = [];
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
   * @param bufferBytes     bound on the parity of incomplete blocks; beyond it the one begun first is left to unicast
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
    this.partial = new PartialBlocks(layout.segmentBytes, bufferBytes);
    this.chunks = new ChunkTracker(layout, verifiedChunks);
    this.status = new Uint8Array(layout.blocks);
    this.manifest = new Uint8Array(manifestIsHeld ? 0 : layout.manifestBytes);
    this.manifestBlocksMissing = layout.manifestBlocks;
    this.manifestState = manifestIsHeld || layout.manifestBytes === 0 ? 'verified' : 'missing';
    for (let block = 0; block < layout.blocks; block++) {
      if (this.isSuperfluous(block)) this.status[block] = WRITTEN;
      else {
        this.wantedLeft++;
        this.noteVerified(block);
      }
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
   * A symbol of a block that is wanted. With the last one needed what is lost of the block is restored.
   * @returns whether it was new
   */
  addSymbol(block: number, symbol: number, bytes: Uint8Array): boolean {
    const { layout } = this;
    const partial = this.partial.get(block) ?? this.begin(block);
    if (symbol < FABRIC_SOURCE_SYMBOLS) {
      if (partial.has(symbol)) return false;
      partial.note(symbol);
      this.write(layout.blockStart(block) + symbol * layout.segmentBytes, bytes);
    } else {
      if (partial.hasParity(symbol)) return false;
      const tooOld = this.partial.oldestWithTooMuchParity;
      if (tooOld !== undefined) {
        this.giveUp(tooOld);
        // It may have been this one.
        if (tooOld === block) return true;
      }
      this.partial.addParity(partial, symbol, bytes);
    }
    if (partial.held === layout.sourceSymbols(block)) {
      if (partial.parity.length > 0) this.restore(partial);
      this.end(block);
      this.blockWritten(block);
    }
    return true;
  }

  /** Leaves what is missing of a wanted block to unicast. */
  giveUp(block: number): void {
    const { layout } = this;
    const partial = this.partial.get(block);
    const start = layout.blockStart(block);
    const count = layout.sourceSymbols(block);
    this.lostSymbols += count - (partial?.sourcesHeld ?? 0);
    if (partial === undefined) this.requestUnicast(start, layout.blockEnd(block));
    else
      for (let symbol = 0; symbol < count; symbol++) {
        const offset = start + symbol * layout.segmentBytes;
        if (!partial.has(symbol)) this.requestUnicast(offset, offset + layout.segmentLength(block, symbol));
      }
    this.end(block);
    this.status[block] = UNICAST;
    // Every part may belong to chunks that are verified already.
    this.settleBlock(block);
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

  private begin(block: number): PartialBlock {
    const tooOld = this.partial.oldestTooMany;
    if (tooOld !== undefined) this.giveUp(tooOld);
    return this.partial.begin(block);
  }

  /** A wanted block is wanted no longer. */
  private end(block: number): void {
    this.wantedLeft--;
    this.partial.end(block);
  }

  /** Segments that lie in chunks held from an earlier run need not come. */
  private noteVerified(block: number): void {
    const { layout, chunks } = this;
    if (block < layout.manifestBlocks) return;
    const [first, last] = chunks.chunksOf(block);
    let isAny = false;
    for (let chunk = first; chunk <= last; chunk++) isAny ||= chunks.isVerified(chunk);
    if (!isAny || this.partial.oldestTooMany !== undefined) return;
    const partial = this.partial.begin(block);
    for (let symbol = 0; symbol < layout.sourceSymbols(block); symbol++) {
      const start = layout.blockStart(block) + symbol * layout.segmentBytes;
      const end = start + layout.segmentLength(block, symbol) - 1;
      if (chunks.isVerified(layout.chunkAt(start)) && chunks.isVerified(layout.chunkAt(end))) partial.note(symbol);
    }
  }

  /** Makes up for the source symbols that a block lost. */
  private restore(partial: PartialBlock): void {
    const { layout } = this;
    const { block, parity } = partial;
    const start = layout.blockStart(block);
    const place = this.read(start, layout.blockEnd(block) - start);
    const symbolBytes = layout.symbolBytes(block);
    const missing: number[] = [];
    const sources = Array.from({ length: layout.sourceSymbols(block) }, (_, symbol) => {
      if (!partial.has(symbol)) missing.push(symbol);
      return place.subarray(symbol * symbolBytes, symbol * symbolBytes + layout.segmentLength(block, symbol));
    });
    while (this.restored.length < missing.length) this.restored.push(new Uint8Array(layout.segmentBytes));
    const outs = missing.map((_, i) => this.restored[i].subarray(0, symbolBytes));
    restoreSources(sources, missing, parity, outs);
    for (const [i, symbol] of missing.entries())
      this.write(start + symbol * layout.segmentBytes, outs[i].subarray(0, layout.segmentLength(block, symbol)));
    this.lostSymbols += missing.length;
    this.blocksDecoded++;
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
    const { layout, chunks } = this;
    if (streamStart < layout.manifestBytes) {
      if (this.manifestState === 'missing') this.manifest.set(bytes, streamStart);
      return;
    }
    const end = streamStart + bytes.length;
    for (let at = streamStart; at < end; ) {
      const chunk = layout.chunkAt(at);
      const partEnd = Math.min(end, layout.chunkEnd(chunk));
      if (chunks.isOpen(chunk)) {
        const isAll = partEnd - at === bytes.length;
        this.sink.write(
          at - layout.manifestBytes,
          isAll ? bytes : bytes.subarray(at - streamStart, partEnd - streamStart),
        );
      }
      at = partEnd;
    }
  }

  /** What stands in place of the manifest or the payload. */
  private read(streamStart: number, length: number): Uint8Array {
    const { manifestBytes } = this.layout;
    return streamStart < manifestBytes
      ? this.manifest.subarray(streamStart, streamStart + length)
      : this.sink.read(streamStart - manifestBytes, length);
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
