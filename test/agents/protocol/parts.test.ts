import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ByteRanges } from '../../../agents/protocol/byte-ranges.ts';
import {
  checkStripe,
  isOfStripe,
  type LayoutParameters,
  StreamLayout,
  stripeBlockBefore,
  stripeBlockFrom,
  stripeBlocksBelow,
} from '../../../agents/protocol/layout.ts';
import { Pacer, RateControl, RepairShare } from '../../../agents/protocol/pacing.ts';
import { RepairQueue } from '../../../agents/protocol/repair-queue.ts';
import { SyncSchedule } from '../../../agents/protocol/sync-schedule.ts';

describe('layout', () => {
  const sizes: fc.Arbitrary<LayoutParameters> = fc.record({
    manifestBytes: fc.nat(3000),
    payloadBytes: fc.integer({ min: 1, max: 20_000 }),
    segmentBytes: fc.integer({ min: 1, max: 60 }),
  });

  test('blocks and segments cover the stream once, without a block in both regions', () => {
    fc.assert(
      fc.property(sizes, (parameters) => {
        const layout = new StreamLayout(parameters);
        let offset = 0;
        for (let block = 0; block < layout.blocks; block++) {
          expect(layout.blockStart(block)).toBe(offset);
          const k = layout.sourceSymbols(block);
          expect(k).toBeGreaterThanOrEqual(1);
          expect(k).toBeLessThanOrEqual(64);
          expect(layout.symbolBytes(block)).toBe(layout.segmentLength(block, 0));
          for (let symbol = 0; symbol < k; symbol++) {
            const length = layout.segmentLength(block, symbol);
            expect(length).toBeGreaterThanOrEqual(1);
            if (symbol < k - 1) expect(length).toBe(layout.segmentBytes);
            expect(layout.blockAt(offset)).toBe(block);
            offset += length;
          }
          expect(layout.blockEnd(block)).toBe(offset);
          expect(block < layout.manifestBlocks).toBe(offset <= layout.manifestBytes);
        }
        expect(offset).toBe(layout.streamBytes);
      }),
      { seed: 21, numRuns: 15 },
    );
  });

  test('chunks cover the payload', () => {
    const layout = new StreamLayout({ manifestBytes: 100, payloadBytes: (2 << 20) + 5, segmentBytes: 1376 });
    expect(layout.chunks).toBe(3);
    expect(layout.chunkStart(0)).toBe(100);
    expect(layout.chunkEnd(2)).toBe(layout.streamBytes);
    expect(layout.chunkAt(layout.chunkStart(2))).toBe(2);
    expect(layout.chunkAt(layout.chunkStart(2) - 1)).toBe(1);
  });

  test('every block belongs to one stripe; next and previous agree with that', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 7 }), fc.nat(6), fc.nat(60), (count, i, block) => {
        const stripe = { index: i % count, count };
        checkStripe(stripe);
        const own = Array.from({ length: 80 }, (_, b) => b).filter((b) => isOfStripe(stripe, b));
        expect(stripeBlockFrom(stripe, block)).toBe(own.find((b) => b >= block));
        const before = own.filter((b) => b < block);
        expect(stripeBlocksBelow(stripe, block)).toBe(before.length);
        if (before.length > 0) expect(stripeBlockBefore(stripe, block)).toBe(before.at(-1));
        else expect(stripeBlockBefore(stripe, block)).toBeLessThan(0);
      }),
      { seed: 23, numRuns: 200 },
    );
    for (const bad of [
      { index: 0, count: 0 },
      { index: 2, count: 2 },
      { index: -1, count: 2 },
      { index: 0.5, count: 2 },
    ])
      expect(() => checkStripe(bad)).toThrow(expect.objectContaining({ code: 'INVALID_OPTION' }));
  });

  test('sizes that cannot be laid out are refused', () => {
    const good = { manifestBytes: 10, payloadBytes: 10, segmentBytes: 10 };
    for (const bad of [{ manifestBytes: -1 }, { payloadBytes: 0 }, { segmentBytes: 65_001 }, { payloadBytes: 1.5 }])
      expect(() => new StreamLayout({ ...good, ...bad })).toThrow(expect.objectContaining({ code: 'INVALID_OPTION' }));
  });
});

test('byte ranges behave like a set of bytes', () => {
  const operation = fc.record({ add: fc.boolean(), start: fc.nat(40), length: fc.nat(12) });
  fc.assert(
    fc.property(fc.array(operation, { maxLength: 30 }), fc.nat(40), fc.nat(12), (operations, start, length) => {
      const ranges = new ByteRanges();
      const model = new Set<number>();
      for (const o of operations) {
        if (o.add) ranges.add(o.start, o.start + o.length);
        else ranges.remove(o.start, o.start + o.length);
        for (let i = o.start; i < o.start + o.length; i++) {
          if (o.add) model.add(i);
          else model.delete(i);
        }
      }
      const bytes = (parts: readonly { start: number; end: number }[]): number[] =>
        parts.flatMap((part) => Array.from({ length: part.end - part.start }, (_, i) => part.start + i));
      const inside = [...model].filter((i) => i >= start && i < start + length).sort((a, b) => a - b);
      expect(bytes(ranges.within(start, start + length))).toEqual(inside);
      expect(ranges.intersects(start, start + length)).toBe(inside.length > 0);
      const all = ranges.take();
      expect(bytes(all)).toEqual([...model].sort((a, b) => a - b));
      for (let i = 1; i < all.length; i++) expect(all[i].start).toBeGreaterThan(all[i - 1].end);
      expect(ranges.isEmpty).toBe(true);
    }),
    { seed: 22, numRuns: 300 },
  );
});

describe('pacing', () => {
  test('packets leave at the rate, with a burst after a pause', () => {
    const pacer = new Pacer(500);
    let nowUs = 0;
    // 1,000 B at 80 Mb/s: 100 us each.
    for (let i = 0; i < 100; i++) {
      nowUs = Math.max(nowUs, Math.ceil(pacer.readyAtUs()));
      pacer.sent(nowUs, 1000, 80e6);
    }
    expect(nowUs).toBe(99 * 100 - 500);
    nowUs += 1_000_000;
    let burst = 0;
    for (; pacer.readyAtUs() <= nowUs; burst++) pacer.sent(nowUs, 1000, 80e6);
    expect(burst).toBe(6);
  });

  test('repairs get their share while there is data', () => {
    const share = new RepairShare(0.25, 4000);
    let data = 0;
    let repair = 0;
    for (let i = 0; i < 4000; i++) {
      if (share.mayRepair) {
        repair++;
        share.repairSent(1000);
      } else {
        data++;
        share.dataSent(1000);
      }
    }
    expect(repair / (repair + data)).toBeCloseTo(0.25, 1);
  });
});

describe('rate control', () => {
  test('starts at the ceiling, falls with reports, recovers, respects the floor', () => {
    const rate = new RateControl(1e8, 1e9);
    expect(rate.rateBitsPerSecond(0)).toBe(1e9);
    rate.onReport(0, 1, 255);
    expect(rate.rateBitsPerSecond(0)).toBe(5e8);
    rate.onReport(0, 1, 255);
    expect(rate.rateBitsPerSecond(0)).toBe(5e8);
    rate.onReport(0, 2, 200);
    rate.onReport(0, 3, 180);
    rate.onReport(0, 4, 160);
    rate.onReport(0, 5, 150);
    rate.onReport(0, 6, 140);
    expect(rate.rateBitsPerSecond(0)).toBe(1e8);
    expect(rate.rateBitsPerSecond(1_000_000)).toBe(6e8);
    expect(rate.rateBitsPerSecond(10_000_000)).toBe(1e9);
  });

  test('low levels change nothing', () => {
    const rate = new RateControl(1e8, 1e9);
    rate.onReport(0, 1, 63);
    expect(rate.rateBitsPerSecond(0)).toBe(1e9);
  });

  test('a receiver that always reports a full queue does not pin the rate', () => {
    const rate = new RateControl(1e7, 1e9);
    let sum = 0;
    const epochs = 3000;
    for (let epoch = 0; epoch < epochs; epoch++) {
      rate.onReport(epoch * 20_000, epoch & 255, 255);
      sum += rate.rateBitsPerSecond(epoch * 20_000);
    }
    expect(sum / epochs).toBeGreaterThan(0.75e9);
  });

  test('new limits take effect at once', () => {
    const rate = new RateControl(1e8, 1e9);
    rate.setLimits(0, 1e8, 2e9);
    expect(rate.rateBitsPerSecond(0)).toBe(2e9);
    rate.setLimits(0, 1e8, 5e8);
    expect(rate.rateBitsPerSecond(0)).toBe(5e8);
  });
});

describe('repair queue', () => {
  function drain(queue: RepairQueue, nowUs: number): number {
    queue.release(nowUs);
    let symbols = 0;
    for (; queue.nextBlock() !== undefined; symbols++) queue.symbolSent(nowUs);
    return symbols;
  }

  test('holds a question and takes the largest need', () => {
    const queue = new RepairQueue(100, 200);
    queue.ask(0, 5, 1, true);
    queue.ask(50, 5, 3, false);
    queue.ask(60, 5, 2, false);
    expect(queue.nextReleaseUs()).toBe(100);
    expect(drain(queue, 99)).toBe(0);
    expect(drain(queue, 100)).toBe(3);
    expect(drain(queue, 1000)).toBe(0);
  });

  test('a NACK that is not anew extends the answer under way to its need', () => {
    const queue = new RepairQueue(100, 200);
    queue.ask(0, 5, 2, true);
    expect(drain(queue, 100)).toBe(2);
    queue.ask(150, 5, 2, false);
    expect(drain(queue, 150)).toBe(0);
    queue.ask(160, 5, 3, false);
    expect(drain(queue, 160)).toBe(1);
  });

  test('one that is anew is answered in full', () => {
    const queue = new RepairQueue(100, 200);
    queue.ask(0, 5, 2, true);
    expect(drain(queue, 100)).toBe(2);
    queue.ask(150, 5, 2, true);
    expect(drain(queue, 150)).toBe(0);
    expect(drain(queue, 250)).toBe(2);
  });

  test('anew in the middle of an answer: what follows must suffice', () => {
    const queue = new RepairQueue(100, 200);
    queue.ask(0, 5, 3, true);
    queue.release(100);
    queue.symbolSent(100);
    queue.ask(110, 5, 3, true);
    expect(drain(queue, 120)).toBe(3);
  });

  test('after its memory an answer is over', () => {
    const queue = new RepairQueue(100, 200);
    queue.ask(0, 5, 2, false);
    expect(drain(queue, 100)).toBe(2);
    queue.ask(301, 5, 1, false);
    expect(drain(queue, 401)).toBe(1);
  });

  test('is bounded, and forgets what is over', () => {
    const queue = new RepairQueue(100, 200, 2);
    expect(queue.ask(0, 1, 1, true)).toBe(true);
    expect(queue.ask(0, 2, 1, true)).toBe(true);
    expect(queue.ask(0, 3, 1, true)).toBe(false);
    expect(drain(queue, 100)).toBe(2);
    expect(queue.ask(301, 3, 1, true)).toBe(true);
  });
});

test('SYNCs of the tail are bounded in number and end within seconds', () => {
  const syncs = new SyncSchedule(0, 400);
  syncs.startTail(0);
  const times: number[] = [];
  for (let due = syncs.dueAtUs(); due !== undefined; due = syncs.dueAtUs()) {
    times.push(due);
    expect(syncs.due(due)).toBe(true);
    expect(syncs.syncSent(due)).toBe(false);
  }
  expect(times).toEqual([0, 1000, 3000, 7000, 15_000, 31_000, 63_000, 127_000, 255_000, 511_000]);
});
