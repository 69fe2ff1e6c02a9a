import { type BigIntStats, closeSync, constants, fstatSync, openSync, readSync, statSync } from 'node:fs';
import { DdfError } from '../../base/errors.ts';
import { CHUNK_BYTES, type ObjectHashes } from '../../objects/chunks.ts';
import { HashedFile } from './files.ts';

/**
 * Copies a user's file to `target`, hashing it chunk by chunk. What was hashed is what was copied; that it is one state of the file is
 * checked by its size, modification time and inode before and after.
 *
 * @param onChunk called before each MiB with the bytes done; throwing ends the work
 * @throws DdfError INVALID_FILE when there is no such file, it is empty or not a regular file; FILE_CHANGED; NO_SPACE
 */
export function importFile(
  source: string,
  target: string,
  onChunk: (doneBytes: number) => void = () => {},
): ObjectHashes {
  // Non-blocking, since opening a FIFO would wait for a writer; it changes nothing for regular files.
  const fd = onUserFile(source, () => openSync(source, constants.O_RDONLY | constants.O_NONBLOCK));
  try {
    const before = fstatSync(fd, { bigint: true });
    if (!before.isFile())
      throw new DdfError(
        'INVALID_FILE',
        `this is ${before.isDirectory() ? 'a directory' : 'not a regular file'}: ${source}`,
        {
          where: source,
          remedy: 'Give the path of a file.',
        },
      );
    if (before.size === 0n)
      throw new DdfError('INVALID_FILE', `the file is empty: ${source}`, {
        where: source,
        remedy: 'Give a file with at least one byte.',
      });
    const hashes = copyAndHash(fd, source, target, onChunk);
    const after = fstatSync(fd, { bigint: true });
    // By its name too: a writer that replaces the file leaves the one that we read untouched.
    const named = onUserFile(source, () => statSync(source, { bigint: true }));
    if (BigInt(hashes.sizeBytes) !== before.size || !isSame(before, after) || !isSame(before, named))
      throw new DdfError('FILE_CHANGED', `the file changed while it was read: ${source}`, {
        where: source,
        remedy: 'Publish a copy, or wait until its writer is done.',
        recoverable: true,
      });
    return hashes;
  } finally {
    closeSync(fd);
  }
}

/** The file's size, to make room for it; 0 if there is none, which {@link importFile} says better. @throws DdfError INVALID_FILE for a path that leads nowhere */
export function userFileBytes(source: string): number {
  return onUserFile(source, () => statSync(source, { throwIfNoEntry: false })?.size ?? 0);
}

function copyAndHash(fd: number, source: string, target: string, onChunk: (doneBytes: number) => void): ObjectHashes {
  const copy = new HashedFile(target);
  try {
    const buffer = Buffer.alloc(CHUNK_BYTES);
    for (let done = 0; ; ) {
      onChunk(done);
      const read = onUserFile(source, () => readSync(fd, buffer, 0, buffer.length, done));
      if (read === 0) return copy.finish();
      copy.push(buffer.subarray(0, read));
      done += read;
    }
  } finally {
    copy.close();
  }
}

function isSame(a: BigIntStats, b: BigIntStats): boolean {
  return a.size === b.size && a.mtimeNs === b.mtimeNs && a.ino === b.ino && a.dev === b.dev;
}

function onUserFile<T>(path: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const what =
      code === 'ENOENT'
        ? 'there is no such file'
        : code === 'EACCES'
          ? 'the file may not be read'
          : `cannot read: ${message}`;
    throw new DdfError('INVALID_FILE', `${what}: ${path}`, {
      where: path,
      remedy: 'Check the path and its permissions on the Memory Node.',
      cause: error,
    });
  }
}
