import { expect, test } from 'vitest';
import { ParityAhead } from '../../../agents/protocol/parity-ahead.ts';
import { createRandom } from '../../../base/random.ts';

/** Blocks whose receivers lose `losses()` symbols at most: what is sent ahead of each, and how much of it was too much. */
function run(ahead: ParityAhead, blocks: number, losses: () => number): { sent: number[]; surplus: number } {
  const sent: number[] = [];
  let surplus = 0;
  for (let block = 0; block < blocks; block++) {
    const count = ahead.blockSent(block * 1000, block, false);
    const lost = losses();
    if (lost > count) ahead.asked(block, lost - count);
    surplus += Math.max(0, count - lost);
    sent.push(count);
  }
  return { sent, surplus };
}

test('nothing ahead where nothing is lost, and nothing is known', () => {
  expect(run(new ParityAhead(0, 500), 100, () => 0).sent.every((count) => count === 0)).toBe(true);
});

test('what most blocks need anyway, soon, and little in vain', () => {
  const random = createRandom('losses');
  const { sent, surplus } = run(new ParityAhead(0, 500), 1000, () => 1 + random.below(8));
  expect(sent.reduce((sum, count) => sum + count) / sent.length).toBeGreaterThan(0.8);
  expect(surplus / 1000).toBeLessThan(0.2);
});

test('falls again when the losses end, and rises with them', () => {
  const ahead = new ParityAhead(0, 500);
  run(ahead, 50, () => 3);
  expect(run(ahead, 60, () => 0).sent.at(-1)).toBe(0);
});

test('starts with what was lost before', () => {
  expect(new ParityAhead(0.01, 500).blockSent(0, 0, false)).toBe(0);
  expect(new ParityAhead(0.05, 500).blockSent(0, 0, false)).toBe(1);
  expect(new ParityAhead(0.5, 500).blockSent(0, 0, false)).toBe(8);
});

test('one more behind the last block, once something was lost', () => {
  expect(new ParityAhead(0, 500).blockSent(0, 0, true)).toBe(0);
  const ahead = new ParityAhead(0, 500);
  ahead.blockSent(0, 0, false);
  ahead.asked(0, 2);
  expect(ahead.blockSent(1, 1, true)).toBe(1);
});
