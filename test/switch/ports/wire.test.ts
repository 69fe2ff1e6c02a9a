import { describe, expect, test } from 'vitest';
import { VirtualScheduler } from '../../../base/clock.ts';
import { createRandom } from '../../../base/random.ts';
import { Impairment } from '../../../switch/ports/impairments.ts';
import { Wire } from '../../../switch/ports/wire.ts';

const GIGABIT = { rateBitsPerSecond: 1_000_000_000, delayUs: 10, queueFrames: 4 };

function frameOf(length: number, mark = 0): Uint8Array {
  return new Uint8Array(length).fill(mark);
}

describe('wire', () => {
  test('a frame takes its serialisation time, overhead included, and the propagation delay', () => {
    const scheduler = new VirtualScheduler();
    const wire = new Wire(scheduler, GIGABIT);
    const arrivals: number[] = [];
    wire.b.onFrame = () => arrivals.push(scheduler.nowUs());
    // (1226 + 24) bytes at 1 Gb/s are 10 µs.
    for (let i = 0; i < 3; i++) wire.a.send(frameOf(1226));
    scheduler.runUntil(1000);
    expect(arrivals).toEqual([20, 30, 40]);
  });

  test('fractions of a microsecond add up instead of being rounded per frame', () => {
    const scheduler = new VirtualScheduler();
    const wire = new Wire(scheduler, { rateBitsPerSecond: 100_000_000_000, delayUs: 0, queueFrames: 1000 });
    let lastUs = 0;
    wire.b.onFrame = () => {
      lastUs = scheduler.nowUs();
    };
    // 84 bytes with padding and overhead: 6.72 ns each.
    for (let i = 0; i < 1000; i++) wire.a.send(frameOf(14));
    scheduler.runUntil(1000);
    expect(lastUs).toBe(7);
  });

  test('frames longer than the wire carries are dropped and counted, and hold nothing up', () => {
    const scheduler = new VirtualScheduler();
    const wire = new Wire(scheduler, { ...GIGABIT, maxFrameBytes: 1226 });
    const arrivals: [number, number][] = [];
    wire.b.onFrame = (frame) => arrivals.push([frame.length, scheduler.nowUs()]);
    for (const length of [1227, 1226, 9000, 1226]) wire.a.send(frameOf(length));
    expect(wire.a.queueDepth()).toBe(1);
    scheduler.runUntil(1000);
    expect(arrivals).toEqual([
      [1226, 20],
      [1226, 30],
    ]);
    expect(wire.aToB.statistics()).toMatchObject({
      framesIn: 4,
      framesTooLong: 2,
      bytesTooLong: 1227 + 9000,
      framesDelivered: 2,
      framesInFlight: 0,
    });
  });

  test('frames over the queue limit are dropped at the tail and counted', () => {
    const scheduler = new VirtualScheduler();
    const wire = new Wire(scheduler, GIGABIT);
    const marks: number[] = [];
    wire.b.onFrame = (frame) => marks.push(frame[0]!);
    for (let i = 0; i < 7; i++) wire.a.send(frameOf(1226, i));
    expect(wire.a.queueDepth()).toBe(4);
    scheduler.runUntil(15);
    expect(wire.a.queueDepth()).toBe(3);
    wire.a.send(frameOf(1226, 9));
    scheduler.runUntil(1000);
    expect(marks).toEqual([0, 1, 2, 3, 4, 9]);
    expect(wire.a.queueDepth()).toBe(0);
    expect(wire.aToB.statistics()).toEqual({
      framesIn: 8,
      bytesIn: 8 * 1226,
      framesDelivered: 6,
      bytesDelivered: 6 * 1226,
      framesQueueDropped: 2,
      bytesQueueDropped: 2 * 1226,
      framesTooLong: 0,
      bytesTooLong: 0,
      framesLost: 0,
      bytesLost: 0,
      framesInFlight: 0,
    });
  });

  test('the directions do not disturb each other', () => {
    const scheduler = new VirtualScheduler();
    const wire = new Wire(scheduler, GIGABIT);
    const arrivals: string[] = [];
    wire.a.onFrame = () => arrivals.push(`a ${scheduler.nowUs()}`);
    wire.b.onFrame = () => arrivals.push(`b ${scheduler.nowUs()}`);
    wire.a.send(frameOf(1226));
    wire.a.send(frameOf(1226));
    wire.b.send(frameOf(1226));
    scheduler.runUntil(1000);
    expect(arrivals).toEqual(['b 20', 'a 20', 'b 30']);
  });

  test('what takes a frame may change it without changing the books', () => {
    const scheduler = new VirtualScheduler();
    const wire = new Wire(scheduler, GIGABIT);
    wire.b.onFrame = (frame) => frame.fill(0);
    wire.a.send(frameOf(100, 7));
    scheduler.runUntil(1000);
    expect(wire.aToB.statistics()).toMatchObject({ framesDelivered: 1, bytesDelivered: 100 });
  });
});

describe('impairments', () => {
  const marksAfter = (seed: string, properties: ConstructorParameters<typeof Impairment>[2]) => {
    const scheduler = new VirtualScheduler();
    const stage = new Impairment(scheduler, createRandom(seed), properties);
    const wire = new Wire(scheduler, { ...GIGABIT, queueFrames: 1000 }, { aToB: stage });
    const marks: number[] = [];
    const frames: Uint8Array[] = [];
    wire.b.onFrame = (frame) => {
      marks.push(new DataView(frame.buffer).getUint16(0));
      frames.push(frame);
    };
    for (let i = 0; i < 1000; i++) {
      const frame = frameOf(101);
      new DataView(frame.buffer).setUint16(0, i);
      wire.a.send(frame);
    }
    scheduler.runUntil(1_000_000);
    return { marks, frames, stage: stage.statistics(), wire: wire.aToB.statistics() };
  };

  test('the same seed loses the same frames, another seed others', () => {
    const first = marksAfter('x', { loss: 0.1 });
    expect(marksAfter('x', { loss: 0.1 }).marks).toEqual(first.marks);
    expect(marksAfter('y', { loss: 0.1 }).marks).not.toEqual(first.marks);
    expect(first.stage.lost).toBeGreaterThan(60);
    expect(first.stage.lost).toBeLessThan(140);
    expect(first.wire).toMatchObject({
      framesIn: 1000,
      framesDelivered: 1000 - first.stage.lost,
      framesLost: first.stage.lost,
      bytesLost: 101 * first.stage.lost,
    });
  });

  test('no loss and all loss are exact', () => {
    expect(marksAfter('x', {}).marks).toHaveLength(1000);
    expect(marksAfter('x', { loss: 1 }).marks).toHaveLength(0);
  });

  test('duplicates are delivered as bytes of their own', () => {
    const { marks, frames, stage } = marksAfter('x', { duplication: 0.2 });
    expect(marks).toHaveLength(1000 + stage.duplicated);
    expect(stage.duplicated).toBeGreaterThan(100);
    expect(new Set(frames.map((frame) => frame.buffer)).size).toBe(marks.length);
  });

  test('reordering delays frames and loses none', () => {
    const { marks, stage } = marksAfter('x', { reordering: 0.1, reorderDelayUs: 5 });
    expect(stage.reordered).toBeGreaterThan(50);
    expect(marks).not.toEqual([...marks].sort((a, b) => a - b));
    expect([...marks].sort((a, b) => a - b)).toEqual(Array.from({ length: 1000 }, (_, i) => i));
  });

  test('corruption flips one bit of a frame', () => {
    const { frames, stage } = marksAfter('x', { corruption: 0.1 });
    const wrongBits = frames.map((frame, index) => {
      let bits = 0;
      const expected = frameOf(101);
      new DataView(expected.buffer).setUint16(0, index);
      for (let i = 0; i < 101; i++) for (let x = frame[i]! ^ expected[i]!; x !== 0; x &= x - 1) bits++;
      return bits;
    });
    expect(wrongBits.filter((bits) => bits === 1)).toHaveLength(stage.corrupted);
    expect(wrongBits.filter((bits) => bits > 1)).toHaveLength(0);
    expect(stage.corrupted).toBeGreaterThan(50);
  });

  test('refuses probabilities outside 0..1 and reordering without a delay', () => {
    const scheduler = new VirtualScheduler();
    const build = (properties: ConstructorParameters<typeof Impairment>[2]) => () =>
      new Impairment(scheduler, createRandom(1), properties);
    expect(build({ loss: 1.5 })).toThrow(/between 0 and 1/);
    expect(build({ corruption: Number.NaN })).toThrow(/between 0 and 1/);
    expect(build({ reordering: 0.1 })).toThrow(/reorderDelayUs/);
  });
});
