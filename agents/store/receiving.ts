import { closeSync, existsSync, fstatSync, ftruncateSync, mkdirSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DdfError } from '../../base/errors.ts';
import { CHUNK_BYTES, chunkCount, chunkLength } from '../../objects/chunks.ts';
import type { PayloadId } from '../../objects/ids.ts';
import { decodeManifestOf, type Manifest, manifestSha256 } from '../../objects/manifest.ts';
import { readFully, withFileErrors, writeFileAtomically, writeFully } from './files.ts';
import { WriteBehind } from './write-behind.ts';

/** What is known of a payload before its manifest has come. */
export interface ExpectedPayload extends PayloadId {
  readonly sizeBytes: number;
  readonly manifestSha256: Uint8Array;
}

const RECORD_BYTES = 4;

/**
 * A payload that is on its way in: bytes written in place, and a journal of the chunks that were verified. The journal is a hint and not a
 * proof: after a restart its chunks are hashed again ({@link claimedChunks}), since a power failure may have kept it and lost them.
 */
export class ReceivingPayload {
  readonly expected: ExpectedPayload;
  readonly directory: string;
  readonly dataPath: string;
  readonly chunks: number;
  private readonly dataFd: number;
  private readonly journalFd: number;
  private readonly pending: WriteBehind;
  private readBuffer: Uint8Array = new Uint8Array(0);
  private readonly isVerifiedChunk: Uint8Array;
  private readonly claimed: readonly number[];
  private knownManifest: Manifest | undefined;
  private encodedManifest: Uint8Array | undefined;
  private verifiedChunks = 0;
  private bytesVerified = 0;
  private isClosed = false;

  /** Starts anew or goes on with what `directory` has. */
  constructor(directory: string, expected: ExpectedPayload) {
    this.expected = expected;
    this.directory = directory;
    this.dataPath = join(directory, 'data');
    this.chunks = chunkCount(expected.sizeBytes);
    this.isVerifiedChunk = new Uint8Array(this.chunks);
    const journalPath = join(directory, 'verified');
    mkdirSync(directory, { recursive: true });
    this.claimed = readJournal(journalPath, this.chunks);
    this.loadManifest();
    this.dataFd = withFileErrors(this.dataPath, () => {
      const fd = openSync(this.dataPath, existsSync(this.dataPath) ? 'r+' : 'w+');
      ftruncateSync(fd, expected.sizeBytes);
      return fd;
    });
    this.pending = new WriteBehind((offset, part) =>
      withFileErrors(this.dataPath, () => writeFully(this.dataFd, part, offset)),
    );
    this.journalFd = withFileErrors(journalPath, () => {
      const fd = openSync(journalPath, 'a');
      // A record that a crash cut short would shift all that follow.
      const { size } = fstatSync(fd);
      ftruncateSync(fd, size - (size % RECORD_BYTES));
      return fd;
    });
  }

  get manifest(): Manifest | undefined {
    return this.knownManifest;
  }

  /** The manifest's bytes as they came. */
  get manifestEncoded(): Uint8Array | undefined {
    return this.encodedManifest;
  }

  /** Bytes in verified chunks. */
  get verifiedBytes(): number {
    return this.bytesVerified;
  }

  get isComplete(): boolean {
    return this.verifiedChunks === this.chunks;
  }

  /** Chunks that an earlier run had verified, in no order; they count once somebody has hashed them again. */
  get claimedChunks(): readonly number[] {
    return this.claimed;
  }

  isVerified(chunk: number): boolean {
    return this.isVerifiedChunk[chunk] === 1;
  }

  /** @throws DdfError INVALID_MANIFEST when these bytes are not the announced manifest */
  setManifest(encoded: Uint8Array): Manifest {
    const manifest = decodeManifestOf(this.expected, encoded);
    if (manifest.chunkBytes !== CHUNK_BYTES)
      throw new DdfError(
        'INVALID_MANIFEST',
        `the manifest has chunks of ${manifest.chunkBytes} bytes, not ${CHUNK_BYTES}`,
      );
    if (Buffer.compare(manifestSha256(encoded), this.expected.manifestSha256) !== 0)
      throw new DdfError('INVALID_MANIFEST', 'the manifest does not have the announced SHA-256');
    // Its hash is checked again when it is loaded.
    writeFileAtomically(join(this.directory, 'manifest'), encoded, false);
    this.encodedManifest = Uint8Array.from(encoded);
    this.knownManifest = manifest;
    return manifest;
  }

  /** Writes payload bytes in place, at the latest with {@link flush}; chunks that are verified stay as they are. */
  write(offset: number, bytes: Uint8Array): void {
    if (this.isClosed) return;
    const limit = Math.min(offset + bytes.length, this.expected.sizeBytes);
    for (let start = offset; start < limit; ) {
      const chunk = Math.floor(start / CHUNK_BYTES);
      const end = Math.min(limit, (chunk + 1) * CHUNK_BYTES);
      if (!this.isVerified(chunk))
        this.pending.write(start, end - start === bytes.length ? bytes : bytes.subarray(start - offset, end - offset));
      start = end;
    }
  }

  /**
   * What stands in place now; bytes that nothing was written to are anything.
   * @returns bytes that are valid until the next call
   * @throws DdfError NOT_FOUND and others when the file cannot be read
   */
  read(offset: number, length: number): Uint8Array {
    this.flush();
    if (this.readBuffer.length < length) this.readBuffer = new Uint8Array(length);
    const into = this.readBuffer.subarray(0, length);
    withFileErrors(this.dataPath, () => readFully(this.dataFd, this.dataPath, offset, into));
    return into;
  }

  /** Everything that was written is in the file when it returns, for other threads to read. */
  flush(): void {
    if (!this.isClosed) this.pending.flush();
  }

  /** Counts a chunk whose SHA-256 was found right; idempotent. */
  markVerified(chunk: number): void {
    if (this.isClosed || this.isVerified(chunk)) return;
    this.flush();
    const record = Buffer.alloc(RECORD_BYTES);
    record.writeUInt32BE(chunk);
    withFileErrors(this.directory, () => writeFully(this.journalFd, record, 0));
    this.isVerifiedChunk[chunk] = 1;
    this.verifiedChunks++;
    this.bytesVerified += chunkLength(this.expected.sizeBytes, chunk);
  }

  /** Lets go of the files; what was written and verified stays for the next run. */
  close(): void {
    if (this.isClosed) return;
    // What was not flushed is of chunks that are not verified: it comes again.
    this.isClosed = true;
    closeSync(this.dataFd);
    closeSync(this.journalFd);
  }

  private loadManifest(): void {
    const path = join(this.directory, 'manifest');
    if (!existsSync(path)) return;
    try {
      this.setManifest(readFileSync(path));
    } catch {
      // Damaged on disk: it comes again with the stream.
    }
  }
}

/** A record that a crash cut short is ignored, as are numbers that make no sense. */
function readJournal(path: string, chunks: number): number[] {
  if (!existsSync(path)) return [];
  const bytes = readFileSync(path);
  const claimed = new Set<number>();
  for (let at = 0; at + RECORD_BYTES <= bytes.length; at += RECORD_BYTES) {
    const chunk = bytes.readUInt32BE(at);
    if (chunk < chunks) claimed.add(chunk);
  }
  return [...claimed];
}
