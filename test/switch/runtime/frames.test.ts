import { describe, expect, it } from 'vitest';
import { allocate, reuseFrames } from '../../../switch/runtime/frames.ts';

const LENGTH = 9000;
const FRAMES = 200;
const memories = (frames: readonly Uint8Array[]): Set<ArrayBufferLike> => new Set(frames.map(({ buffer }) => buffer));
const make = (): Uint8Array[] =>
  Array.from({ length: FRAMES }, () => {
    const memory = allocate(LENGTH);
    return memory.frame(memory.taken, memory.taken + LENGTH);
  });

describe('memory of frames', () => {
  it('belongs to one frame at a time', () => {
    const frames = make();
    for (const [i, frame] of frames.entries()) frame.fill(i);
    expect(frames.every((frame, i) => frame.length === LENGTH && frame.every((byte) => byte === (i & 0xff)))).toBe(
      true,
    );
  });

  it('is used again once nobody needs the frames, and not before', () => {
    reuseFrames();
    const first = memories(make());
    expect(first.size).toBeGreaterThan(1);
    reuseFrames();
    const second = make();
    expect([...memories(second)].filter((buffer) => !first.has(buffer))).toEqual([]);
    for (const [i, frame] of second.entries()) frame.fill(i);
    const third = make();
    for (const frame of third) frame.fill(255);
    expect(second.every((frame, i) => frame.every((byte) => byte === (i & 0xff)))).toBe(true);
  });
});
