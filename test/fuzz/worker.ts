import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { parentPort, workerData } from 'node:worker_threads';
import { createRandom } from '../../base/random.ts';
import type { FuzzJob, FuzzReport, FuzzRun } from '../../scripts/fuzz-run.ts';
import { openTarget } from './targets.ts';

/** More than the caches of the engine take. */
const MAX_HEAP_GROWTH_BYTES = 64 * 1024 * 1024;
/** The first rounds fill caches: tables, code, buffers. */
const WARM_UP_ROUNDS = 2;

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

function heapBytes(): number {
  collectGarbage();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

async function run({ target: name, seed, count, round: only }: FuzzRun, counters: Int32Array): Promise<FuzzReport> {
  const target = await openTarget(name);
  const begunMs = performance.now();
  let cases = 0;
  let slowestMs = 0;
  let startedMs = begunMs;
  let detail: (() => string) | undefined;
  const step = (what?: () => string): void => {
    const nowMs = performance.now();
    slowestMs = Math.max(slowestMs, nowMs - startedMs);
    startedMs = nowMs;
    detail = what;
    cases++;
    counters[2]!++;
    counters[3] = cases;
  };
  const { casesPerRound } = target;
  const rounds = only === undefined ? Math.ceil(count / casesPerRound) : 1;
  let warmBytes: number | undefined;
  let failure: FuzzReport['failure'];
  for (let i = 0; i < rounds && failure === undefined; i++) {
    const round = only ?? i;
    counters[1] = round;
    counters[2] = 0;
    detail = undefined;
    startedMs = performance.now();
    try {
      const todo = only === undefined ? Math.min(casesPerRound, count - i * casesPerRound) : casesPerRound;
      await target.round(createRandom(`${seed}/${name}/${round}`), todo, step);
    } catch (error) {
      const what = detail === undefined ? '' : `\n${(detail as () => string)()}`;
      const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
      failure = { round, message: `case ${counters[2]}: ${text}${what}` };
    }
    if (i === WARM_UP_ROUNDS) warmBytes = heapBytes();
  }
  const heapGrowthBytes = warmBytes === undefined ? undefined : heapBytes() - warmBytes;
  if (failure === undefined && heapGrowthBytes !== undefined && heapGrowthBytes > MAX_HEAP_GROWTH_BYTES)
    failure = { round: 0, message: `the heap grew by ${Math.round(heapGrowthBytes / 1024 / 1024)} MiB` };
  await target.close?.();
  const seconds = (performance.now() - begunMs) / 1000;
  return { cases, seconds, slowestMs, tally: target.tally.counts, heapGrowthBytes, failure };
}

const { runs, progress } = workerData as FuzzJob;
const counters = new Int32Array(progress);
for (const [i, each] of runs.entries()) {
  counters[0] = i;
  counters[3] = 0;
  const report = await run(each, counters);
  parentPort!.postMessage(report);
  if (report.failure !== undefined) break;
}
