import { describe, expect, it } from 'vitest';
import { createRandom } from '../../base/random.ts';

const draw = (seed: number | string, count: number): number[] => {
  const random = createRandom(seed);
  return Array.from({ length: count }, () => random.uint32());
};

describe('seeded randomness', () => {
  it('repeats itself for a seed and differs for others', () => {
    expect(draw(7, 100)).toEqual(draw(7, 100));
    expect(draw(7, 100)).not.toEqual(draw(8, 100));
    expect(new Set(Array.from({ length: 1000 }, (_, seed) => draw(seed, 1)[0])).size).toBe(1000);
  });

  it('forks streams by name that do not depend on what was drawn before', () => {
    const fresh = createRandom(1);
    const used = createRandom(1);
    used.uint32();
    expect(fresh.fork('link').uint32()).toBe(used.fork('link').uint32());
    expect(fresh.fork('link').uint32()).not.toBe(fresh.fork('other').uint32());
  });

  it('is even enough: bits, ranges and chances', () => {
    const random = createRandom('even');
    const bits = new Array<number>(32).fill(0);
    const count = 20_000;
    for (let i = 0; i < count; i++) {
      const value = random.uint32();
      for (let bit = 0; bit < 32; bit++) bits[bit]! += (value >>> bit) & 1;
    }
    for (const ones of bits) expect(Math.abs(ones / count - 0.5)).toBeLessThan(0.02);
    const rolls = Array.from({ length: count }, () => random.below(6));
    expect(new Set(rolls)).toEqual(new Set([0, 1, 2, 3, 4, 5]));
    const hits = rolls.filter(() => random.chance(0.01)).length;
    expect(hits).toBeGreaterThan(140);
    expect(hits).toBeLessThan(260);
    expect(rolls.some(() => random.chance(0))).toBe(false);
    expect(rolls.every(() => random.chance(1))).toBe(true);
  });
});
