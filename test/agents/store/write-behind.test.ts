import fc from 'fast-check';
import { expect, test } from 'vitest';
import { WriteBehind } from '../../../agents/store/write-behind.ts';

test('after a flush everything stands where it was written, the last writer wins', () => {
  const write = fc.record({ offset: fc.nat(900_000), length: fc.integer({ min: 1, max: 300_000 }), byte: fc.nat(255) });
  fc.assert(
    fc.property(fc.array(write, { maxLength: 40 }), (writes) => {
      const file = new Uint8Array(1 << 21);
      const expected = new Uint8Array(1 << 21);
      const pending = new WriteBehind((offset, bytes) => file.set(bytes, offset));
      for (const { offset, length, byte } of writes) {
        const bytes = new Uint8Array(length).fill(byte);
        // A third of them goes on where the last one ended.
        pending.write(offset, bytes);
        expected.set(bytes, offset);
        if (byte < 80) {
          pending.write(offset + length, bytes);
          expected.set(bytes, offset + length);
        }
        bytes.fill(0);
      }
      pending.flush();
      expect(Buffer.compare(file, expected)).toBe(0);
    }),
    { seed: 41, numRuns: 30 },
  );
});

test('packets of several streams become few large writes', () => {
  const sizes: number[] = [];
  const pending = new WriteBehind((_, bytes) => sizes.push(bytes.length));
  const packet = new Uint8Array(8192);
  for (let i = 0; i < 64; i++) for (const stream of [0, 1, 2]) pending.write(stream * (1 << 20) + i * 8192, packet);
  pending.flush();
  expect(sizes.reduce((a, b) => a + b)).toBe(3 * 64 * 8192);
  expect(sizes.length).toBe(6);
  pending.flush();
  expect(sizes.length).toBe(6);
});
