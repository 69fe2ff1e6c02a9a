import { expect, test } from 'vitest';
import { FUZZ_TARGETS, type FuzzGroup, type FuzzRun, runFuzz } from '../../scripts/fuzz-run.ts';

/** Cases per target and seed: a second or two for each group. `npm run fuzz` takes any number. */
const COUNTS: { readonly [Group in FuzzGroup]: number } = { packets: 3000, programs: 400, requests: 150, agents: 150 };
const FIXED_SEED = 'fixed';
const FRESH_SEED = String(Date.now() % 1_000_000_007);

test.each(Object.keys(FUZZ_TARGETS) as FuzzGroup[])(
  '%s: whatever comes in, nothing fails, hangs or lies',
  { timeout: 180_000 },
  async (group) => {
    console.log(`fuzzing ${group} with the seeds ${FIXED_SEED} and ${FRESH_SEED}`);
    const runs = FUZZ_TARGETS[group].flatMap((target): FuzzRun[] =>
      [FIXED_SEED, FRESH_SEED].map((seed) => ({ target, seed, count: COUNTS[group] })),
    );
    const results = await runFuzz(runs);
    for (const { failure, cases, tally } of results) {
      expect(failure && `${failure.message}\nagain: ${failure.reproduce}`).toBeUndefined();
      expect(cases).toBeGreaterThan(0);
      // A target that never got past the door would prove nothing.
      expect(Object.keys(tally).length).toBeGreaterThan(group === 'agents' ? 0 : 1);
    }
    expect(results).toHaveLength(runs.length);
  },
);
