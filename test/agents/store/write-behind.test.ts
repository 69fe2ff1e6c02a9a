import fc from 'fast-check';
import { expect, test } from 'vitest';
import { WriteBehind } from '../../../agents/store/write-behind.ts';

const SIZE = 8 << 20;

test('after a flush everything stands where it was written, the last writer wins; views show the same before', () => {
  const write = fc.record({
    offset: fc.nat(SIZE - 700_000),
    length: fc.integer({ min: 1, max: 300_000 }),
    byte: fc.integer({ min: 1, max: 255 }),
  });
  let views = 0;
  fc.assert(
    fc.property(fc.array(write, { maxLength: 40 }), (writes) => {
      const file = new Uint8Array(SIZE);
      const expected = new Uint8Array(SIZE);
      const written = new Uint8Array(SIZE);
      const pending = new WriteBehind(SIZE, (offset, bytes) => file.set(bytes, offset));
      const both = (offset: number, bytes: Uint8Array): void => {
        pending.write(offset, bytes);
        expected.set(bytes, offset);
        written.fill(1, offset, offset + bytes.length);
      };
      for (const { offset, length, byte } of writes) {
        const bytes = new Uint8Array(length).fill(byte);
        both(offset, bytes);
        // Some go on where the last one ended.
        if (byte < 80) both(offset + length, bytes);
        if (byte > 250) pending.flush();
        bytes.fill(0);
        const view = pending.view(offset + (byte % length), 20_000);
        if (view === undefined) continue;
        views++;
        const start = offset + (byte % length);
        for (let i = 0; i < view.length; i += 97)
          if (written[start + i] === 1 && view[i] !== expected[start + i]) throw new Error(`${i} differs`);
      }
      pending.flush();
      expect(Buffer.compare(file, expected)).toBe(0);
    }),
    { seed: 41, numRuns: 30 },
  );
  expect(views).toBeGreaterThan(100);
});

test('packets of several streams, one of them with gaps that are filled later, become few large writes', () => {
  const sizes: number[] = [];
  const pending = new WriteBehind(SIZE, (_, bytes) => sizes.push(bytes.length));
  const packet = new Uint8Array(8192);
  for (let i = 0; i < 128; i++)
    for (const stream of [0, 1, 2])
      if (stream > 0 || i % 10 !== 3) pending.write(stream * (1 << 20) + i * 8192, packet);
  for (let i = 3; i < 128; i += 10) pending.write(i * 8192, packet);
  pending.flush();
  expect(sizes).toEqual(Array.from({ length: 6 }, () => 64 * 8192));
  pending.flush();
  expect(sizes).toHaveLength(6);
});

test('what has left the memory for the file is not viewed, even when its window is back', () => {
  const pending = new WriteBehind(SIZE, () => {});
  pending.write(0, new Uint8Array(10));
  expect(pending.view(0, 10)).toHaveLength(10);
  for (let window = 1; window <= 8; window++) pending.write(window << 19, new Uint8Array(10));
  expect(pending.view(0, 10)).toBeUndefined();
  pending.write(5, new Uint8Array(10));
  expect(pending.view(0, 10)).toBeUndefined();
  // Nor what spans two windows.
  expect(pending.view((1 << 19) - 5, 10)).toBeUndefined();
});
