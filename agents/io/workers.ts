import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import { DdfError } from '../../base/errors.ts';
import type { JobKind, JobOf, JobResults } from './jobs.ts';
import type { ErrorMessage, JobMessage, ResultMessage, WorkerData } from './worker.ts';

/** Does jobs over whole objects off the event loop. One pool per process, given to all of its agents. */
export interface Workers {
  /**
   * @param owner names whom the job is for, so that {@link cancel} finds it
   * @throws DdfError what the job throws; CANCELLED; AGENT_FAILED (recoverable) when too much is waiting
   */
  run<K extends JobKind>(job: JobOf<K>, owner: string): Promise<JobResults[K]>;
  /** Gives up what waits or runs for `owner`; its promises are rejected with CANCELLED. */
  cancel(owner: string): void;
  /** Ends the threads; what waits or runs is rejected with CANCELLED. */
  close(): Promise<void>;
}

export interface WorkersOptions {
  /** Threads. Default 2, or 1 on a machine with one processor. They start when they are needed. */
  readonly threads?: number;
  /** Jobs that may wait. Default 4096. */
  readonly maxWaiting?: number;
}

interface Pending {
  readonly id: number;
  readonly owner: string;
  readonly job: JobMessage['job'];
  readonly resolve: (result: never) => void;
  readonly reject: (error: DdfError) => void;
}

interface Thread {
  readonly worker: Worker;
  readonly cancelled: Int32Array;
  current: Pending | undefined;
}

export function createWorkers(options: WorkersOptions = {}): Workers {
  return new WorkerPool(options.threads ?? Math.min(2, availableParallelism()), options.maxWaiting ?? 4096);
}

class WorkerPool implements Workers {
  private readonly maxThreads: number;
  private readonly maxWaiting: number;
  private readonly threads: Thread[] = [];
  private waiting: Pending[] = [];
  private nextId = 1;
  private isClosed = false;

  constructor(maxThreads: number, maxWaiting: number) {
    this.maxThreads = maxThreads;
    this.maxWaiting = maxWaiting;
  }

  run<K extends JobKind>(job: JobOf<K>, owner: string): Promise<JobResults[K]> {
    if (this.isClosed) return Promise.reject(cancelled(job.kind));
    if (this.waiting.length >= this.maxWaiting)
      return Promise.reject(
        new DdfError('AGENT_FAILED', `${this.waiting.length} jobs wait for a worker thread already`, {
          remedy: 'Try again when this server is less busy.',
          recoverable: true,
        }),
      );
    return new Promise((resolve, reject) => {
      this.waiting.push({ id: this.nextId, owner, job, resolve, reject });
      this.nextId = (this.nextId % 0x7fff_ffff) + 1;
      this.dispatch();
    });
  }

  cancel(owner: string): void {
    const given = this.waiting.filter((pending) => pending.owner === owner);
    this.waiting = this.waiting.filter((pending) => pending.owner !== owner);
    for (const pending of given) pending.reject(cancelled(pending.job.kind));
    for (const thread of this.threads)
      if (thread.current?.owner === owner) Atomics.store(thread.cancelled, 0, thread.current.id);
  }

  async close(): Promise<void> {
    this.isClosed = true;
    const threads = this.threads.splice(0);
    const pending = [...this.waiting, ...threads.flatMap((thread) => thread.current ?? [])];
    this.waiting = [];
    for (const { reject, job } of pending) reject(cancelled(job.kind));
    await Promise.all(threads.map((thread) => thread.worker.terminate()));
  }

  private dispatch(): void {
    while (this.waiting.length > 0) {
      const thread = this.threads.find(({ current }) => current === undefined) ?? this.start();
      if (thread === undefined) return;
      const pending = this.waiting.shift()!;
      thread.current = pending;
      // An idle thread keeps no process alive.
      thread.worker.ref();
      thread.worker.postMessage({ id: pending.id, job: pending.job } satisfies JobMessage);
    }
  }

  private start(): Thread | undefined {
    if (this.threads.length >= this.maxThreads) return undefined;
    const shared = new SharedArrayBuffer(4);
    const worker = new Worker(new URL('./worker-entry.mjs', import.meta.url), {
      workerData: { cancelled: shared } satisfies WorkerData,
    });
    const thread: Thread = { worker, cancelled: new Int32Array(shared), current: undefined };
    this.threads.push(thread);
    worker.on('message', (message: ResultMessage) => this.finish(thread, message));
    worker.on('error', (error) => this.lose(thread, error));
    worker.on('exit', () => this.lose(thread, new Error('the thread ended')));
    worker.unref();
    return thread;
  }

  private finish(thread: Thread, message: ResultMessage): void {
    const pending = thread.current;
    if (pending === undefined || pending.id !== message.id) return;
    thread.current = undefined;
    thread.worker.unref();
    if ('error' in message) pending.reject(errorFrom(message.error));
    else pending.resolve(message.result as never);
    this.dispatch();
  }

  /** A thread that died takes its job with it; the next job gets a new one. */
  private lose(thread: Thread, cause: Error): void {
    const index = this.threads.indexOf(thread);
    if (index < 0) return;
    this.threads.splice(index, 1);
    thread.current?.reject(
      new DdfError('INTERNAL', `a worker thread died during ${thread.current.job.kind}: ${cause.message}`, { cause }),
    );
    if (!this.isClosed) this.dispatch();
  }
}

function cancelled(kind: JobKind): DdfError {
  return new DdfError('CANCELLED', `the ${kind} job was given up`);
}

function errorFrom({ code, message, where, remedy, recoverable }: ErrorMessage): DdfError {
  return new DdfError(code, message, {
    recoverable,
    ...(where === undefined ? {} : { where }),
    ...(remedy === undefined ? {} : { remedy }),
  });
}
