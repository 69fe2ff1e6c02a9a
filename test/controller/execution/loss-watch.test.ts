import { expect, test } from 'vitest';
import { LossBook, LossWatch } from '../../../controller/execution/loss-watch.ts';
import type { ReceiverCounters } from '../../../wire/agent/messages.ts';

function counters(dataPackets: number, lostSymbols: number): ReceiverCounters {
  return { dataPackets: BigInt(dataPackets), lostSymbols: BigInt(lostSymbols) } as ReceiverCounters;
}

/** 1000 packets in each 200 ms, of which each receiver loses its share. */
function watch(shares: Record<string, number>, seconds: number): Record<string, number> {
  const watched = new LossWatch();
  const slow: Record<string, number> = {};
  for (let round = 0; round <= seconds * 5; round++)
    for (const [name, share] of Object.entries(shares)) {
      const lost = Math.round(1000 * round * share);
      if (name in slow) continue;
      if (watched.report(round * 200_000, name, counters(1000 * round - lost, lost)) === undefined) continue;
      slow[name] = round * 0.2;
      watched.forget(name);
    }
  return slow;
}

test('who loses far more than the median, for long enough, is slow', () => {
  const slow = watch({ a: 0.01, b: 0.3, c: 0.02, d: 0 }, 3);
  expect(Object.keys(slow)).toEqual(['b']);
  expect(slow.b).toBeGreaterThanOrEqual(0.6);
  expect(slow.b).toBeLessThanOrEqual(1);
});

test('nobody is slow where all lose much, or where there are too few to compare', () => {
  expect(watch({ a: 0.3, b: 0.3, c: 0.25 }, 3)).toEqual({});
  expect(watch({ a: 0.3, b: 0 }, 3)).toEqual({});
});

test('a lossy link of 10 % is repaired, not left', () => {
  expect(watch({ a: 0.1, b: 0, c: 0, d: 0 }, 3)).toEqual({});
});

test('what is expected is the worst of what was seen, the last transfers most', () => {
  const book = new LossBook();
  expect(book.expectedPpm(['a', 'b'])).toBe(0);
  book.learn('a', counters(990, 10));
  book.learn('b', counters(999, 1));
  expect(book.expectedPpm(['a', 'b'])).toBe(10_000);
  book.learn('a', counters(1000, 0));
  expect(book.expectedPpm(['a', 'b'])).toBe(5_000);
  // A few packets say nothing.
  book.learn('c', counters(1, 9));
  expect(book.expectedPpm(['c'])).toBe(0);
});
