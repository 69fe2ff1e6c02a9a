import { DdfError } from '../../base/errors.ts';
import { CHUNK_BYTES } from '../../objects/chunks.ts';
import { FABRIC_SOURCE_SYMBOLS } from '../../p4/build/constants.ts';

/** The largest segment whose length fits the header with room for the headers below it. */
export const MAX_SEGMENT_BYTES = 65_000;
/** Manifests stay in memory: 32 bytes per chunk, so this is the manifest of two terabytes. */
const MAX_MANIFEST_BYTES = 64 << 20;

export interface LayoutParameters {
  readonly manifestBytes: number;
  readonly payloadBytes: number;
  /** Source bytes per packet. */
  readonly segmentBytes: number;
}

/** The part of a stream that one sender sends over one tree: block b belongs to stripe b mod count. Wire contract: Stripe of wire/agent/schema.ts. */
export interface Stripe {
  /** 0..count-1 */
  readonly index: number;
  /** 1.. */
  readonly count: number;
}

/** The one stripe of a payload that is not divided. */
export const WHOLE_STREAM: Stripe = { index: 0, count: 1 };

/** @throws INVALID_OPTION for an index that is not among `count` */
export function checkStripe({ index, count }: Stripe): void {
  requireInteger('number of stripes', count, 1, 0xffff);
  requireInteger('index of a stripe', index, 0, count - 1);
}

export function isOfStripe({ index, count }: Stripe, block: number): boolean {
  return block % count === index;
}

/** The stripe's first block that is not below `block`; it may lie behind the end of the stream. */
export function stripeBlockFrom({ index, count }: Stripe, block: number): number {
  return block <= index ? index : index + Math.ceil((block - index) / count) * count;
}

/** The stripe's last block below `block`; negative if there is none. */
export function stripeBlockBefore(stripe: Stripe, block: number): number {
  return stripeBlockFrom(stripe, block) - stripe.count;
}

/** How many blocks below `block` are the stripe's. */
export function stripeBlocksBelow({ index, count }: Stripe, block: number): number {
  return block <= index ? 0 : Math.ceil((block - index) / count);
}

/**
 * Where every byte of a transfer travels. The stream is the manifest followed by the payload; offsets into it are *stream offsets*.
 * Each of the two regions is cut into segments and blocks of 64 segments of its own, so no block spans both; the last block of a
 * region has fewer segments, its last segment may be short. Blocks are numbered through from 0.
 */
export class StreamLayout {
  readonly manifestBytes: number;
  readonly payloadBytes: number;
  readonly segmentBytes: number;
  readonly manifestBlocks: number;
  /** Blocks of both regions. */
  readonly blocks: number;
  readonly streamBytes: number;
  /** Chunks of the payload; the last one may be short. */
  readonly chunks: number;
  private readonly blockBytes: number;

  /** @throws INVALID_OPTION for sizes that cannot be laid out */
  constructor(parameters: LayoutParameters) {
    const { manifestBytes, payloadBytes, segmentBytes } = parameters;
    requireInteger('manifestBytes', manifestBytes, 0, MAX_MANIFEST_BYTES);
    requireInteger('payloadBytes', payloadBytes, 1, Number.MAX_SAFE_INTEGER - MAX_MANIFEST_BYTES);
    requireInteger('segmentBytes', segmentBytes, 1, MAX_SEGMENT_BYTES);
    this.manifestBytes = manifestBytes;
    this.payloadBytes = payloadBytes;
    this.segmentBytes = segmentBytes;
    this.blockBytes = segmentBytes * FABRIC_SOURCE_SYMBOLS;
    this.manifestBlocks = Math.ceil(manifestBytes / this.blockBytes);
    this.blocks = this.manifestBlocks + Math.ceil(payloadBytes / this.blockBytes);
    requireInteger('number of blocks', this.blocks, 1, 0xffff_ffff);
    this.streamBytes = manifestBytes + payloadBytes;
    this.chunks = Math.ceil(payloadBytes / CHUNK_BYTES);
  }

  /** Stream offset of the first byte of a block; of the end of the stream for `block === blocks`. */
  blockStart(block: number): number {
    if (block < this.manifestBlocks) return block * this.blockBytes;
    return Math.min(this.manifestBytes + (block - this.manifestBlocks) * this.blockBytes, this.streamBytes);
  }

  /** Stream offset behind the last byte of a block. */
  blockEnd(block: number): number {
    const limit = block < this.manifestBlocks ? this.manifestBytes : this.streamBytes;
    return Math.min(this.blockStart(block) + this.blockBytes, limit);
  }

  /** Segments of a block: 1..64. */
  sourceSymbols(block: number): number {
    return Math.ceil((this.blockEnd(block) - this.blockStart(block)) / this.segmentBytes);
  }

  /** Length of one segment. */
  segmentLength(block: number, symbol: number): number {
    const remaining = this.blockEnd(block) - this.blockStart(block) - symbol * this.segmentBytes;
    return Math.min(this.segmentBytes, remaining);
  }

  /** Length of a block's longest segment, and of its parity symbols. */
  symbolBytes(block: number): number {
    return this.segmentLength(block, 0);
  }

  /** The block that holds a stream offset. */
  blockAt(streamOffset: number): number {
    if (streamOffset < this.manifestBytes) return Math.floor(streamOffset / this.blockBytes);
    return this.manifestBlocks + Math.floor((streamOffset - this.manifestBytes) / this.blockBytes);
  }

  /** Stream offset of the first byte of a chunk. */
  chunkStart(chunk: number): number {
    return this.manifestBytes + chunk * CHUNK_BYTES;
  }

  /** Stream offset behind the last byte of a chunk. */
  chunkEnd(chunk: number): number {
    return Math.min(this.chunkStart(chunk) + CHUNK_BYTES, this.streamBytes);
  }

  /** The chunk that holds a stream offset behind the manifest. */
  chunkAt(streamOffset: number): number {
    return Math.floor((streamOffset - this.manifestBytes) / CHUNK_BYTES);
  }
}

function requireInteger(name: string, value: number, minimum: number, maximum: number): void {
  if (!Number.isInteger(value) || value < minimum || value > maximum)
    throw new DdfError('INVALID_OPTION', `${name} is ${value}, it must be a whole number in ${minimum}..${maximum}`, {
      where: 'layout of a transfer',
      remedy: 'Check the sizes that the controller gave for this transfer.',
    });
}
