import { describe, expect, it } from 'vitest';
import { RealScheduler, VirtualScheduler } from '../../base/clock.ts';
import { createRandom } from '../../base/random.ts';

describe('virtual time', () => {
  it('runs callbacks by time, and equal times in the order they were scheduled', () => {
    const scheduler = new VirtualScheduler();
    const random = createRandom('agenda');
    const ran: { atUs: number; order: number }[] = [];
    for (let order = 0; order < 2000; order++) {
      const atUs = random.below(100);
      scheduler.at(atUs, () => ran.push({ atUs: scheduler.nowUs(), order }));
    }
    scheduler.runUntil(1000);
    expect(ran).toHaveLength(2000);
    expect(ran).toEqual([...ran].sort((a, b) => a.atUs - b.atUs || a.order - b.order));
    expect(scheduler.nowUs()).toBe(1000);
  });

  it('forgets cancelled callbacks, also those that another one cancels at the same time', () => {
    const scheduler = new VirtualScheduler();
    const ran: string[] = [];
    const cancelled = scheduler.at(5, () => ran.push('cancelled before'));
    scheduler.at(7, () => victim.cancel());
    const victim = scheduler.at(7, () => ran.push('cancelled at the time'));
    cancelled.cancel();
    cancelled.cancel();
    scheduler.at(9, () => ran.push('kept'));
    scheduler.runUntil(10);
    expect(ran).toEqual(['kept']);
  });

  it('runs what is due in the past as soon as possible, and never turns back', () => {
    const scheduler = new VirtualScheduler();
    scheduler.runUntil(100);
    const times: number[] = [];
    scheduler.at(3, () => times.push(scheduler.nowUs()));
    scheduler.at(100.2, () => times.push(scheduler.nowUs()));
    scheduler.runUntil(200);
    expect(times).toEqual([100, 101]);
  });

  it('stops at the condition, at the limit, or when nothing is left', () => {
    const scheduler = new VirtualScheduler();
    let ticks = 0;
    const tick = (): void => {
      ticks++;
      scheduler.at(scheduler.nowUs() + 10, tick);
    };
    scheduler.at(0, tick);
    expect(scheduler.runWhile(() => ticks === 5, 1000)).toBe(true);
    expect(scheduler.nowUs()).toBe(40);
    expect(scheduler.runWhile(() => false, 100)).toBe(false);
    expect(ticks).toBe(11);
    expect(new VirtualScheduler().runWhile(() => false, 100)).toBe(false);
  });
});

describe('real time', () => {
  it('keeps order and due times while the processor is behind', async () => {
    const scheduler = new RealScheduler();
    const seen: number[] = [];
    const lagUs = await new Promise<number>((resolve) => {
      // A millisecond of work every 100 us: the emulated time falls behind, its distances stay.
      const work = (left: number): void => {
        seen.push(scheduler.nowUs());
        const until = performance.now() + 1;
        while (performance.now() < until);
        if (left === 0) resolve(scheduler.lagUs());
        else scheduler.at(scheduler.nowUs() + 100, () => work(left - 1));
      };
      scheduler.at(scheduler.nowUs() + 1000, () => work(20));
    });
    scheduler.stop();
    expect(lagUs).toBeGreaterThan(10_000);
    expect(seen.slice(1).map((time, i) => time - seen[i]!)).toEqual(Array(20).fill(100));
  });

  it('runs nothing after it was stopped', async () => {
    const scheduler = new RealScheduler();
    let ran = false;
    scheduler.at(scheduler.nowUs() + 1000, () => {
      ran = true;
    });
    scheduler.stop();
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(ran).toBe(false);
  });
});
