import { closeSync, fdatasyncSync, fstatSync, openSync, readSync, renameSync, writeSync } from 'node:fs';
import { DdfError } from '../../base/errors.ts';
import type { ByteSource } from '../../objects/byte-source.ts';
import { CHUNK_BYTES, ChunkHasher, type ObjectHashes } from '../../objects/chunks.ts';

/** An open file as a source of bytes; whoever opened it closes it. */
export interface FileSource extends ByteSource {
  readonly path: string;
  close(): void;
}

/** @throws DdfError NOT_FOUND and others of {@link fileError} */
export function openFileSource(path: string): FileSource {
  return withFileErrors(path, () => {
    const fd = openSync(path, 'r');
    return {
      path,
      sizeBytes: fstatSync(fd).size,
      readAt: (offset, into) => withFileErrors(path, () => readFully(fd, path, offset, into)),
      close: () => closeSync(fd),
    };
  });
}

export function readFully(fd: number, path: string, offset: number, into: Uint8Array): void {
  for (let done = 0; done < into.length; ) {
    const read = readSync(fd, into, done, into.length - done, offset + done);
    if (read === 0)
      throw new DdfError(
        'HASH_MISMATCH',
        `a stored file ends at byte ${offset + done}, before what was written to it`,
        {
          where: path,
        },
      );
    done += read;
  }
}

export function writeFully(fd: number, bytes: Uint8Array, offset: number): void {
  for (let done = 0; done < bytes.length; ) done += writeSync(fd, bytes, done, bytes.length - done, offset + done);
}

/** A file that is being written from its start, hashed on the way. */
export class HashedFile {
  private readonly path: string;
  private readonly fd: number;
  private readonly hasher = new ChunkHasher();
  private sizeBytes = 0;

  constructor(path: string) {
    this.path = path;
    this.fd = withFileErrors(path, () => openSync(path, 'w'));
  }

  push(bytes: Uint8Array): void {
    withFileErrors(this.path, () => writeFully(this.fd, bytes, this.sizeBytes));
    this.sizeBytes += bytes.length;
    this.hasher.push(bytes);
  }

  finish(): ObjectHashes {
    return this.hasher.finish();
  }

  close(): void {
    closeSync(this.fd);
  }
}

/**
 * Hashes a stored file.
 * @param onChunk called before each MiB; throwing ends the work
 */
export function hashFile(path: string, onChunk: () => void = () => {}): ObjectHashes {
  const source = openFileSource(path);
  try {
    const hasher = new ChunkHasher();
    const buffer = Buffer.alloc(CHUNK_BYTES);
    for (let offset = 0; offset < source.sizeBytes; offset += CHUNK_BYTES) {
      onChunk();
      const piece = buffer.subarray(0, Math.min(CHUNK_BYTES, source.sizeBytes - offset));
      source.readAt(offset, piece);
      hasher.push(piece);
    }
    return hasher.finish();
  } finally {
    source.close();
  }
}

/** How a file is called before {@link writeFileAtomically} has finished it; a crash may leave one. */
export const UNFINISHED = '.new';

/**
 * Replaces a small file so that readers see the old bytes or the new ones, also after a crash.
 * @param durable whether that includes a power failure
 */
export function writeFileAtomically(path: string, bytes: Uint8Array, durable: boolean): void {
  withFileErrors(path, () => {
    const temporary = path + UNFINISHED;
    const fd = openSync(temporary, 'w');
    try {
      writeFully(fd, bytes, 0);
      if (durable) fdatasyncSync(fd);
    } finally {
      closeSync(fd);
    }
    renameSync(temporary, path);
  });
}

export function withFileErrors<T>(path: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw fileError(error, path);
  }
}

/** A file system error as one of ours: NO_SPACE, NOT_FOUND, otherwise AGENT_FAILED; DdfErrors pass. */
export function fileError(error: unknown, path: string): DdfError {
  if (error instanceof DdfError) return error;
  const { code, message } = error as NodeJS.ErrnoException;
  const details = { where: path, cause: error };
  if (code === 'ENOSPC' || code === 'EDQUOT')
    return new DdfError('NO_SPACE', 'the disk of the store is full', {
      ...details,
      remedy: 'Drop versions or give the store more room.',
      recoverable: true,
    });
  if (code === 'ENOENT') return new DdfError('NOT_FOUND', 'a file of the store is missing', details);
  return new DdfError('AGENT_FAILED', `a file operation failed: ${message}`, details);
}
