import fc from 'fast-check';
import { expect, test } from 'vitest';
import { BlockCache } from '../../../agents/store/block-cache.ts';
import { memorySource } from '../../../objects/byte-source.ts';

test('property: a cached source reads what its source has', () => {
  const bytes = Uint8Array.from({ length: 1000 }, (_, i) => i * 31);
  const cache = new BlockCache(memorySource(bytes), 64, 3);
  fc.assert(
    fc.property(fc.nat(999), fc.nat(300), (offset, length) => {
      const into = new Uint8Array(Math.min(length, 1000 - offset));
      cache.readAt(offset, into);
      expect(into).toEqual(bytes.subarray(offset, offset + into.length));
    }),
    { seed: 8, numRuns: 200 },
  );
});

test('pieces that were just used stay, the one used longest ago goes', () => {
  const reads: number[] = [];
  const bytes = new Uint8Array(1000);
  const source = memorySource(bytes);
  const cache = new BlockCache(
    {
      sizeBytes: 1000,
      readAt(offset, into) {
        reads.push(offset);
        source.readAt(offset, into);
      },
    },
    100,
    2,
  );
  for (const offset of [0, 100, 0, 200, 0, 100]) cache.readAt(offset, new Uint8Array(10));
  expect(reads).toEqual([0, 100, 200, 100]);
});
