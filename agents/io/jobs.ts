import { DdfError } from '../../base/errors.ts';
import { CHUNK_BYTES, chunkLength, type ObjectHashes, sha256 } from '../../objects/chunks.ts';
import { applyDelta, encodeDelta } from '../../objects/delta.ts';
import { type FileSource, HashedFile, hashFile, openFileSource } from '../store/files.ts';
import { importFile } from '../store/import-file.ts';

/** What worker threads do: everything that reads or computes over whole objects. Paths are absolute. */
export type Job =
  /** SHA-256 of one chunk of a file that is `sizeBytes` long. */
  | { readonly kind: 'hash-chunk'; readonly path: string; readonly chunk: number; readonly sizeBytes: number }
  | { readonly kind: 'hash-file'; readonly path: string }
  | { readonly kind: 'import-file'; readonly source: string; readonly target: string }
  | { readonly kind: 'make-delta'; readonly base: string; readonly target: string; readonly delta: string }
  | { readonly kind: 'apply-delta'; readonly base: string; readonly delta: string; readonly target: string };

/** What a job of each kind gives: one SHA-256, or the hashes of the file that was read or written. */
export interface JobResults {
  'hash-chunk': Uint8Array;
  'hash-file': ObjectHashes;
  'import-file': ObjectHashes;
  'make-delta': ObjectHashes;
  'apply-delta': ObjectHashes;
}

export type JobKind = Job['kind'];
export type JobOf<K extends JobKind> = Extract<Job, { kind: K }>;

/**
 * Does a job in this thread.
 * @param checkpoint called before anything and about once per MiB; throwing ends the job
 */
export function runJob(job: Job, checkpoint: () => void): Uint8Array | ObjectHashes {
  checkpoint();
  switch (job.kind) {
    case 'hash-chunk':
      return hashChunk(job);
    case 'hash-file':
      return hashFile(job.path, checkpoint);
    case 'import-file':
      return importFile(job.source, job.target, checkpoint);
    case 'make-delta':
      return withFiles(job.base, job.target, job.delta, (base, target, emit) => {
        encodeDelta(base, target, (bytes) => {
          checkpoint();
          emit(bytes);
        });
      });
    case 'apply-delta':
      return withFiles(job.base, job.delta, job.target, (base, delta, emit) => {
        applyDelta(base, delta, (bytes) => {
          checkpoint();
          emit(bytes);
        });
      });
  }
}

function hashChunk(job: JobOf<'hash-chunk'>): Uint8Array {
  const source = openFileSource(job.path);
  try {
    const bytes = Buffer.alloc(chunkLength(job.sizeBytes, job.chunk));
    if (bytes.length === 0) throw new DdfError('INTERNAL', `no chunk ${job.chunk} in ${job.sizeBytes} bytes`);
    source.readAt(job.chunk * CHUNK_BYTES, bytes);
    return sha256(bytes);
  } finally {
    source.close();
  }
}

function withFiles(
  firstPath: string,
  secondPath: string,
  outPath: string,
  work: (first: FileSource, second: FileSource, emit: (bytes: Uint8Array) => void) => void,
): ObjectHashes {
  const first = openFileSource(firstPath);
  try {
    const second = openFileSource(secondPath);
    try {
      const out = new HashedFile(outPath);
      try {
        work(first, second, (bytes) => out.push(bytes));
        return out.finish();
      } finally {
        out.close();
      }
    } finally {
      second.close();
    }
  } finally {
    first.close();
  }
}
