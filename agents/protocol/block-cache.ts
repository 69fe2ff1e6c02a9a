import { DdfError } from '../../base/errors.ts';
import type { StreamLayout } from './layout.ts';

/** Where a sender gets the stream from: the manifest followed by the payload. */
export interface PayloadReader {
  /**
   * Exactly the `length` bytes at a stream offset, at once. They must not change while the transfer lives; a range never spans manifest
   * and payload. What it throws ends the transfer.
   */
  read(streamOffset: number, length: number): Uint8Array;
}

/** The blocks used most recently, cut into source symbols. */
export class BlockCache {
  private readonly layout: StreamLayout;
  private readonly reader: PayloadReader;
  private readonly capacity: number;
  private readonly cached = new Map<number, readonly Uint8Array[]>();

  /** @param capacityBytes bound on what is kept; at least two blocks are, the one being sent and the one being repaired */
  constructor(layout: StreamLayout, reader: PayloadReader, capacityBytes: number) {
    this.layout = layout;
    this.reader = reader;
    this.capacity = Math.max(2, Math.floor(capacityBytes / (layout.segmentBytes * 64)));
  }

  /** The source symbols of a block, each at its own length. */
  sources(block: number): readonly Uint8Array[] {
    let sources = this.cached.get(block);
    if (sources === undefined) sources = this.load(block);
    else this.cached.delete(block);
    // A Map keeps the order of insertion: the first key is the one used least recently.
    this.cached.set(block, sources);
    if (this.cached.size > this.capacity) this.cached.delete(this.cached.keys().next().value!);
    return sources;
  }

  private load(block: number): readonly Uint8Array[] {
    const { layout } = this;
    const start = layout.blockStart(block);
    const length = layout.blockEnd(block) - start;
    const bytes = this.reader.read(start, length);
    if (bytes.length !== length)
      throw new DdfError('FILE_CHANGED', `Read ${bytes.length} bytes of ${length} at stream offset ${start}`, {
        where: `block ${block} of a transfer`,
        remedy: 'Stored versions are immutable: import the version again.',
      });
    return Array.from({ length: layout.sourceSymbols(block) }, (_, symbol) => {
      const offset = symbol * layout.segmentBytes;
      return bytes.subarray(offset, offset + layout.segmentLength(block, symbol));
    });
  }
}
