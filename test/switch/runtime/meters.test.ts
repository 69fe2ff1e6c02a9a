import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { GREEN, MeterArray, RED, YELLOW } from '../../../switch/runtime/meters.ts';

describe('meters (RFC 2698)', () => {
  test('mark by two buckets that start full', () => {
    const meters = new MeterArray('m', 2, 'bytes', () => 0);
    meters.configure(0, { cir: 1000n, cburst: 1500n, pir: 2000n, pburst: 3000n });
    expect([1500, 1000, 500, 1].map((bytes) => meters.execute(0, bytes, 0))).toEqual([GREEN, YELLOW, YELLOW, RED]);
    // 0.5 s later: 500 committed and 1000 peak tokens.
    expect(meters.execute(0, 400, 500_000)).toBe(GREEN);
    expect(meters.execute(0, 400, 500_000)).toBe(YELLOW);
    expect(meters.execute(0, 400, 500_000)).toBe(RED);
    // A red packet takes nothing.
    expect(meters.execute(0, 200, 500_000)).toBe(YELLOW);
  });

  test('are green until configured and when the configuration is taken away', () => {
    const meters = new MeterArray('m', 2, 'packets', () => 0);
    expect(meters.execute(1, 100, 0)).toBe(GREEN);
    meters.configure(1, { cir: 0n, cburst: 0n, pir: 0n, pburst: 0n });
    expect(meters.execute(1, 100, 0)).toBe(RED);
    expect(meters.config(1)).toEqual({ cir: 0n, cburst: 0n, pir: 0n, pburst: 0n });
    meters.configure(1, undefined);
    expect(meters.execute(1, 100, 0)).toBe(GREEN);
    expect(() => meters.configure(2, undefined)).toThrow(/no cell 2/);
  });

  test('let through no more than burst and rate allow, and all of that when asked often', () => {
    const arrivals = fc.array(fc.tuple(fc.integer({ min: 0, max: 20_000 }), fc.integer({ min: 1, max: 300 })), {
      minLength: 1,
      maxLength: 200,
    });
    fc.assert(
      fc.property(arrivals, (packets) => {
        const meters = new MeterArray('m', 1, 'bytes', () => 0);
        meters.configure(0, { cir: 10_000n, cburst: 600n, pir: 30_000n, pburst: 900n });
        let nowUs = 0;
        let green = 0;
        let notRed = 0;
        for (const [gapUs, bytes] of packets) {
          nowUs += gapUs;
          const colour = meters.execute(0, bytes, nowUs);
          if (colour === GREEN) green += bytes;
          if (colour !== RED) notRed += bytes;
          expect(green).toBeLessThanOrEqual(600 + (10_000 * nowUs) / 1e6 + 1e-6);
          expect(notRed).toBeLessThanOrEqual(900 + (30_000 * nowUs) / 1e6 + 1e-6);
        }
      }),
      { seed: 3, numRuns: 200 },
    );
  });
});
