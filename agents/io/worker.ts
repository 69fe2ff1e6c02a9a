import { parentPort, workerData } from 'node:worker_threads';
import { DdfError, type ErrorCode, toDdfError } from '../../base/errors.ts';
import type { ObjectHashes } from '../../objects/chunks.ts';
import { type Job, runJob } from './jobs.ts';

/** Towards a worker. */
export interface JobMessage {
  readonly id: number;
  readonly job: Job;
}

/** A DdfError on its way between threads. */
export interface ErrorMessage {
  readonly code: ErrorCode;
  readonly message: string;
  readonly where: string | undefined;
  readonly remedy: string | undefined;
  readonly recoverable: boolean;
}

/** From a worker. */
export type ResultMessage =
  | { readonly id: number; readonly result: Uint8Array | ObjectHashes }
  | { readonly id: number; readonly error: ErrorMessage };

export interface WorkerData {
  /** One Int32: the id of the job that is to end, written by the parent. */
  readonly cancelled: SharedArrayBuffer;
}

const port = parentPort;
if (port !== null) {
  const cancelled = new Int32Array((workerData as WorkerData).cancelled);
  port.on('message', ({ id, job }: JobMessage) => {
    try {
      const result = runJob(job, () => {
        if (Atomics.load(cancelled, 0) === id) throw new DdfError('CANCELLED', `the ${job.kind} job was given up`);
      });
      port.postMessage({ id, result } satisfies ResultMessage);
    } catch (thrown) {
      const { code, message, where, remedy, recoverable } = toDdfError(thrown);
      port.postMessage({ id, error: { code, message, where, remedy, recoverable } } satisfies ResultMessage);
    }
  });
}
