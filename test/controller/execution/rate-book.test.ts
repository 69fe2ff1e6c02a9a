import { expect, it } from 'vitest';
import { RateBook } from '../../../controller/execution/rate-book.ts';
import { payloadRate } from '../../../controller/planner/rates.ts';

const SEGMENT = 8192;
const gigabit = (key: string) => ({ key, rateBitsPerSecond: 1e9 });
const share = (weight: number, ...keys: string[]) => ({ links: keys.map(gigabit), weight, source: 'mn1' });

it('gives a transfer that is alone its tightest link, less the margin and the headers', () => {
  const book = new RateBook(SEGMENT);
  const links = [gigabit('a'), { key: 'b', rateBitsPerSecond: 4e8 }];
  expect(book.change(1, { links, weight: 1, source: 'mn1' })).toEqual(new Map([[1, payloadRate(4e8, SEGMENT)]]));
  expect(book.ceiling(1)).toBeLessThan(0.95 * 4e8);
});

it('divides a link that two have in common, and says for whom that changes something', () => {
  const book = new RateBook(SEGMENT);
  book.change(1, share(1, 'a', 'b'));
  book.change(2, share(1, 'c'));
  expect([...book.change(3, share(1, 'a')).keys()]).toEqual([1, 3]);
  expect(book.ceiling(1)).toBe(payloadRate(5e8, SEGMENT));
  expect(book.ceiling(2)).toBe(payloadRate(1e9, SEGMENT));
  expect(book.change(1, undefined)).toEqual(new Map([[3, payloadRate(1e9, SEGMENT)]]));
});

it('leaves the links to those who still send when one only repairs', () => {
  const book = new RateBook(SEGMENT);
  book.change(1, share(1, 'a'));
  book.change(2, share(1, 'a'));
  book.reweigh(1, 0.1);
  expect(book.ceiling(1)! / book.ceiling(2)!).toBeCloseTo(0.1, 3);
  expect(book.reweigh(1, 0.1).size).toBe(0);
  expect(book.reweigh(9, 0.1).size).toBe(0);
  expect(book.loads()).toEqual(new Map([['a', 2]]));
});
