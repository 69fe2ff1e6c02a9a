import { Worker } from 'node:worker_threads';

/** What is fuzzed, by group. test/fuzz/ holds the targets; each run has a thread of its own. */
export const FUZZ_TARGETS = {
  packets: ['packets/fabric', 'packets/parsers', 'packets/transfer'],
  programs: ['programs/bmv2-json', 'programs/p4info'],
  requests: ['requests/service', 'requests/grpc'],
  agents: [
    'agents/manifests',
    'agents/safetensors',
    'agents/deltas',
    'agents/messages',
    'agents/rest',
    'agents/topologies',
  ],
} as const;

export type FuzzGroup = keyof typeof FUZZ_TARGETS;
export type FuzzTargetName = (typeof FUZZ_TARGETS)[FuzzGroup][number];

/** One target, fed `count` cases that follow from the seed; or only what round `round` of them feeds it. */
export interface FuzzRun {
  readonly target: FuzzTargetName;
  readonly seed: string;
  readonly count: number;
  readonly round?: number;
}

export interface FuzzResult {
  readonly target: FuzzTargetName;
  readonly seed: string;
  readonly cases: number;
  readonly seconds: number;
  /** The longest that one case took, milliseconds. */
  readonly slowestMs: number;
  /** How cases went, by the target's names. */
  readonly tally: Readonly<Record<string, number>>;
  /** Growth of the heap between the first rounds and the last, both after garbage collection; `undefined` where there were too few rounds. */
  readonly heapGrowthBytes: number | undefined;
  /** `undefined`: everything held. */
  readonly failure: { readonly message: string; readonly reproduce: string } | undefined;
}

/** What the thread is told. It answers with a FuzzReport for each run, in order, and ends after a failure (test/fuzz/worker.ts). */
export interface FuzzJob {
  readonly runs: readonly FuzzRun[];
  /** Four counters: the run, its round, the case in that, and all cases of the run. */
  readonly progress: SharedArrayBuffer;
}

export interface FuzzReport {
  readonly cases: number;
  readonly seconds: number;
  readonly slowestMs: number;
  readonly tally: Readonly<Record<string, number>>;
  readonly heapGrowthBytes: number | undefined;
  readonly failure: { readonly round: number; readonly message: string } | undefined;
}

const WORKER = new URL('../test/fuzz/worker-entry.mjs', import.meta.url);
const HEAP_LIMIT_MB = 1024;
/** A case that takes longer is a hang: the slowest of honest ones loads a large program. */
const STALL_MS = 60_000;

/**
 * Does the runs one after the other in a thread of their own, up to the first failure. The thread is ended when a case hangs; one that runs out of
 * memory or dies has failed.
 */
export async function runFuzz(
  runs: readonly FuzzRun[],
  onResult?: (result: FuzzResult) => void,
): Promise<FuzzResult[]> {
  const progress = new SharedArrayBuffer(16);
  const counters = new Int32Array(progress);
  const worker = new Worker(WORKER, {
    workerData: { runs, progress } satisfies FuzzJob,
    resourceLimits: { maxOldGenerationSizeMb: HEAP_LIMIT_MB },
  });
  const results: FuzzResult[] = [];
  const take = (report: FuzzReport): void => {
    const { target, seed } = runs[results.length]!;
    const reproduce = `npm run fuzz -- ${target} --seed ${seed} --round ${report.failure?.round}`;
    const failure = report.failure && { message: report.failure.message, reproduce };
    const result = { target, seed, ...report, failure };
    results.push(result);
    onResult?.(result);
  };
  let last = '';
  let lastMs = performance.now();
  let watchdog: NodeJS.Timeout | undefined;
  const death = await new Promise<string | undefined>((resolve) => {
    worker.on('message', (report: FuzzReport) => {
      take(report);
      if (report.failure !== undefined || results.length === runs.length) resolve(undefined);
    });
    worker.once('error', (error) => resolve(`the thread died: ${error.stack ?? error.message}`));
    worker.once('exit', () => resolve('the thread ended without a report'));
    watchdog = setInterval(() => {
      const now = counters.join();
      if (now !== last) lastMs = performance.now();
      else if (performance.now() - lastMs > STALL_MS) resolve(`case ${counters[2]} hangs for ${STALL_MS / 1000} s`);
      last = now;
    }, 200);
  });
  clearInterval(watchdog);
  await worker.terminate();
  if (death !== undefined) {
    const slowestMs = performance.now() - lastMs;
    const failure = { round: counters[1]!, message: death };
    take({ cases: counters[3]!, seconds: 0, slowestMs, tally: {}, heapGrowthBytes: undefined, failure });
  }
  return results;
}
