import { createHash } from 'node:crypto';

/** The unit of storage and hashing. */
export const CHUNK_BYTES = 1024 * 1024;

/** Bytes of a SHA-256. */
export const SHA256_BYTES = 32;

/** How many chunks an object of `sizeBytes` has; the last one may be short. */
export function chunkCount(sizeBytes: number, chunkBytes = CHUNK_BYTES): number {
  return Math.ceil(sizeBytes / chunkBytes);
}

/** Length of chunk `index` of an object of `sizeBytes`; 0 behind its end. */
export function chunkLength(sizeBytes: number, index: number, chunkBytes = CHUNK_BYTES): number {
  return Math.max(0, Math.min(chunkBytes, sizeBytes - index * chunkBytes));
}

export function sha256(bytes: Uint8Array): Uint8Array {
  return createHash('sha256').update(bytes).digest();
}

/** SHA-256 over sizeBytes (u64, big-endian), chunkBytes (u32, big-endian) and the SHA-256 of every chunk in order: proves them all. */
export function rootSha256(sizeBytes: number, chunkBytes: number, chunkSha256: Uint8Array): Uint8Array {
  const head = Buffer.alloc(12);
  head.writeBigUInt64BE(BigInt(sizeBytes), 0);
  head.writeUInt32BE(chunkBytes, 8);
  return createHash('sha256').update(head).update(chunkSha256).digest();
}

/** What hashing a whole object gives. */
export interface ObjectHashes {
  readonly sizeBytes: number;
  readonly chunkBytes: number;
  /** 32 bytes for each chunk, one after the other. */
  readonly chunkSha256: Uint8Array;
  readonly rootSha256: Uint8Array;
}

/** Hashes a stream of bytes chunk by chunk; the pieces may have any length. Memory: 32 bytes for each chunk. */
export class ChunkHasher {
  private readonly chunkBytes: number;
  private current = createHash('sha256');
  private currentBytes = 0;
  private sizeBytes = 0;
  private readonly hashes: Buffer[] = [];

  /** @param chunkBytes default {@link CHUNK_BYTES} */
  constructor(chunkBytes = CHUNK_BYTES) {
    this.chunkBytes = chunkBytes;
  }

  push(bytes: Uint8Array): void {
    this.sizeBytes += bytes.length;
    for (let offset = 0; offset < bytes.length; ) {
      const take = Math.min(bytes.length - offset, this.chunkBytes - this.currentBytes);
      this.current.update(bytes.subarray(offset, offset + take));
      this.currentBytes += take;
      offset += take;
      if (this.currentBytes === this.chunkBytes) this.endChunk();
    }
  }

  finish(): ObjectHashes {
    if (this.currentBytes > 0) this.endChunk();
    const { sizeBytes, chunkBytes } = this;
    const chunkSha256 = Buffer.concat(this.hashes);
    return { sizeBytes, chunkBytes, chunkSha256, rootSha256: rootSha256(sizeBytes, chunkBytes, chunkSha256) };
  }

  private endChunk(): void {
    this.hashes.push(this.current.digest());
    this.current = createHash('sha256');
    this.currentBytes = 0;
  }
}
