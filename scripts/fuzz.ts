/**
 * Feeds made-up input to everything that reads bytes from outside: `npm run fuzz -- [GROUP|TARGET|all] [--count N] [--seed S] [--round R] [--json]`.
 *
 * Groups: packets, programs, requests, agents; `all` is the default. `count` is for each group, shared out among its targets (default 20,000).
 * A failure prints the command that reproduces it. Exit code 0: everything held; 1: something did not; 2: wrong usage.
 */
import { parseArgs } from 'node:util';
import { DdfError, toDdfError } from '../base/errors.ts';
import { FUZZ_TARGETS, type FuzzGroup, type FuzzResult, type FuzzTargetName, runFuzz } from './fuzz-run.ts';

interface Plan {
  readonly targets: readonly FuzzTargetName[];
  readonly count: number;
}

const GROUPS = Object.keys(FUZZ_TARGETS) as FuzzGroup[];
const TARGETS: readonly FuzzTargetName[] = GROUPS.flatMap((group) => [...FUZZ_TARGETS[group]]);
const DEFAULT_COUNT = 20_000;

function plans(what: string, count: number): Plan[] {
  if (what === 'all') return GROUPS.map((group) => ({ targets: FUZZ_TARGETS[group], count }));
  const group = GROUPS.find((name) => name === what);
  if (group !== undefined) return [{ targets: FUZZ_TARGETS[group], count }];
  const target = TARGETS.find((name) => name === what);
  if (target !== undefined) return [{ targets: [target], count }];
  throw new DdfError('INVALID_OPTION', `There is nothing to fuzz under the name "${what}"`, {
    remedy: `Name one of: all, ${GROUPS.join(', ')}, ${TARGETS.join(', ')}.`,
  });
}

function wholeNumber(name: string, text: string | undefined, minimum: number): number | undefined {
  if (text === undefined) return undefined;
  const value = Number(text);
  if (/^\d+$/.test(text) && Number.isSafeInteger(value) && value >= minimum) return value;
  throw new DdfError('INVALID_OPTION', `--${name} is "${text}"`, {
    remedy: `Give a whole number of at least ${minimum}.`,
  });
}

function parse() {
  try {
    return parseArgs({
      allowPositionals: true,
      options: {
        count: { type: 'string' },
        seed: { type: 'string' },
        round: { type: 'string' },
        json: { type: 'boolean', default: false },
      },
    });
  } catch (error) {
    throw new DdfError('INVALID_OPTION', error instanceof Error ? error.message : String(error), {
      remedy:
        'Usage: npm run fuzz -- [packets|programs|requests|agents|TARGET|all] [--count N] [--seed S] [--round R] [--json].',
      cause: error,
    });
  }
}

function describe({ target, cases, seconds, slowestMs, tally, heapGrowthBytes, failure }: FuzzResult): string {
  const heap = heapGrowthBytes === undefined ? '-' : `${(heapGrowthBytes / 1024 / 1024).toFixed(1)} MiB`;
  const went = Object.entries(tally)
    .map(([name, count]) => `${name} ${count}`)
    .join(', ');
  const verdict = failure === undefined ? 'held' : 'FAILED';
  return `${target.padEnd(20)} ${String(cases).padStart(9)} cases ${seconds.toFixed(1).padStart(7)} s   slowest ${slowestMs.toFixed(0).padStart(5)} ms   heap ${heap.padStart(9)}   ${verdict}   ${went}`;
}

async function main(): Promise<number> {
  const { values, positionals } = parse();
  if (positionals.length > 1) throw new DdfError('INVALID_OPTION', `"${positionals[1]}" is one name too many`);
  const count = wholeNumber('count', values.count, 1) ?? DEFAULT_COUNT;
  const round = wholeNumber('round', values.round, 0);
  // A fresh seed is the point of a fuzzer; it is printed, so that nothing is lost by it.
  const seed = values.seed ?? String(Date.now() % 1_000_000_007);
  console.log(`seed ${seed}`);
  const results: FuzzResult[] = [];
  for (const plan of plans(positionals[0] ?? 'all', count)) {
    const share = Math.ceil(plan.count / plan.targets.length);
    for (const target of plan.targets) {
      const run = { target, seed, count: share, ...(round === undefined ? {} : { round }) };
      for (const result of await runFuzz([run])) {
        results.push(result);
        console.log(describe(result));
        if (result.failure !== undefined)
          console.log(`  ${result.failure.message.replaceAll('\n', '\n  ')}\n  again: ${result.failure.reproduce}`);
      }
    }
  }
  const failed = results.filter(({ failure }) => failure !== undefined).length;
  const cases = results.reduce((sum, result) => sum + result.cases, 0);
  console.log(`${cases} cases, ${failed === 0 ? 'everything held' : `${failed} targets failed`}`);
  if (values.json) console.log(JSON.stringify({ seed, cases, failed, results }));
  return failed === 0 ? 0 : 1;
}

try {
  process.exitCode = await main();
} catch (error) {
  const fault = toDdfError(error);
  console.error(fault.describe());
  process.exitCode = fault.code === 'INVALID_OPTION' ? 2 : 1;
}
