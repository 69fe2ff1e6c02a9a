import { expect, test } from 'vitest';
import { WallScheduler } from '../../base/wall-clock.ts';

/** Blocks for real, and remembers for how long. */
function blocker(): { waits: number[]; blockUs: (microseconds: number) => void } {
  const waits: number[] = [];
  const cell = new Int32Array(new SharedArrayBuffer(4));
  return {
    waits,
    blockUs(microseconds) {
      waits.push(microseconds);
      Atomics.wait(cell, 0, 0, microseconds / 1000);
    },
  };
}

function at(scheduler: WallScheduler, atUs: number): Promise<number> {
  return new Promise((resolve) => scheduler.at(atUs, () => resolve(scheduler.nowUs())));
}

test('nothing runs early, equal times in the order in which they were scheduled', async () => {
  const scheduler = new WallScheduler();
  const startUs = scheduler.nowUs();
  const order: string[] = [];
  const late = at(scheduler, startUs + 12_000).then((us) => order.push('late') && us);
  const soon = at(scheduler, startUs + 300).then((us) => order.push('soon') && us);
  const past = at(scheduler, startUs - 300).then(() => order.push('past'));
  const cancelled = scheduler.at(startUs + 200, () => order.push('cancelled'));
  cancelled.cancel();
  await past;
  expect(await soon).toBeGreaterThanOrEqual(startUs + 300);
  expect(await late).toBeGreaterThanOrEqual(startUs + 12_000);
  expect(order).toEqual(['past', 'soon', 'late']);
});

test('a short wait blocks instead of turning the event loop, a long one does not', async () => {
  const { waits, blockUs } = blocker();
  const scheduler = new WallScheduler(blockUs);
  await at(scheduler, scheduler.nowUs() + 1800);
  // In pieces, so that others get their turn; a busy machine may need fewer.
  expect(waits.length).toBeGreaterThan(0);
  expect(waits.length).toBeLessThan(50);
  expect(Math.max(...waits)).toBeLessThanOrEqual(500);
  waits.length = 0;
  await at(scheduler, scheduler.nowUs() + 30_000);
  // But for the rest that a timer leaves.
  expect(waits.reduce((sum, wait) => sum + wait, 0)).toBeLessThan(4000);
});

test('a callback that is late sees the time that it is', async () => {
  const scheduler = new WallScheduler();
  const dueUs = scheduler.nowUs() + 1000;
  const ran = at(scheduler, dueUs);
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20);
  expect(await ran).toBeGreaterThanOrEqual(dueUs + 15_000);
});

test('callbacks that go on for ever let others in', async () => {
  const scheduler = new WallScheduler();
  const again = (): void => void scheduler.at(scheduler.nowUs(), again);
  again();
  await new Promise((resolve) => setTimeout(resolve, 5));
  scheduler.stop();
});

test('what waits while others are called may schedule something earlier', async () => {
  let early: Promise<number> | undefined;
  const { blockUs } = blocker();
  const scheduler: WallScheduler = new WallScheduler((microseconds) => {
    early ??= at(scheduler, scheduler.nowUs() + 1);
    blockUs(microseconds);
  });
  const startUs = scheduler.nowUs();
  await at(scheduler, startUs + 1500);
  expect(await early).toBeLessThan(scheduler.nowUs() + 1);
});

test('after stop nothing runs', async () => {
  const scheduler = new WallScheduler();
  let ran = false;
  scheduler.at(scheduler.nowUs() + 500, () => {
    ran = true;
  });
  scheduler.stop();
  scheduler.at(scheduler.nowUs(), () => {
    ran = true;
  });
  await new Promise((resolve) => setTimeout(resolve, 10));
  expect(ran).toBe(false);
});
