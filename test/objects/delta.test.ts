import fc from 'fast-check';
import { expect, test } from 'vitest';
import { compress } from 'zstd-napi';
import { createRandom } from '../../base/random.ts';
import { memorySource } from '../../objects/byte-source.ts';
import { applyDelta, DELTA_FRAME_BYTES, encodeDelta } from '../../objects/delta.ts';

function encode(base: Uint8Array, target: Uint8Array): Buffer {
  const pieces: Buffer[] = [];
  const length = encodeDelta(memorySource(base), memorySource(target), (bytes) => pieces.push(Buffer.from(bytes)));
  const delta = Buffer.concat(pieces);
  expect(delta.length).toBe(length);
  return delta;
}

function apply(base: Uint8Array, delta: Uint8Array): Buffer {
  const pieces: Buffer[] = [];
  applyDelta(memorySource(base), memorySource(delta), (bytes) => pieces.push(Buffer.from(bytes)));
  return Buffer.concat(pieces);
}

/** Weights as a model has them: bf16 of a bell-shaped distribution. */
function bf16Weights(elements: number, seed: string): Uint8Array {
  const random = createRandom(seed);
  const value = new Float32Array(1);
  const bits = new Uint32Array(value.buffer);
  const out = new Uint16Array(elements);
  for (let i = 0; i < elements; i++) {
    value[0] = (random.float() + random.float() + random.float() - 1.5) * 0.05;
    out[i] = bits[0]! >>> 16;
  }
  return new Uint8Array(out.buffer);
}

function nudge(weights: Uint8Array, share: number, seed: string): Uint8Array {
  const random = createRandom(seed);
  const out = new Uint16Array(weights.slice().buffer);
  for (let i = 0; i < out.length; i++)
    if (random.chance(share)) out[i] = out[i]! + (random.chance(0.5) ? 1 : -1) * (1 + random.below(4));
  return new Uint8Array(out.buffer);
}

test('1 % of bf16 elements changed by a few ulp: the delta is below 2 % of the object', () => {
  const base = bf16Weights(4 * 1024 * 1024, 'weights');
  const target = nudge(base, 0.01, 'update');
  const delta = encode(base, target);
  expect(delta.length).toBeLessThan(0.02 * target.length);
  expect(apply(base, delta).equals(target)).toBe(true);
});

test('property: any target is restored from any base, whatever their sizes', () => {
  const random = createRandom('sizes');
  const size = fc.oneof(fc.nat(40), fc.integer({ min: DELTA_FRAME_BYTES - 3, max: DELTA_FRAME_BYTES + 9 }));
  fc.assert(
    fc.property(size, size, fc.constantFrom(0, 0.001, 0.5, 1), (baseBytes, targetBytes, change) => {
      const base = Uint8Array.from({ length: baseBytes }, () => random.below(256));
      const target = Uint8Array.from({ length: targetBytes }, (_, i) =>
        i < baseBytes && !random.chance(change) ? base[i]! : random.below(256),
      );
      expect(apply(base, encode(base, target)).equals(target)).toBe(true);
    }),
    { seed: 5, numRuns: 12 },
  );
});

test('an unchanged object costs 5 bytes per MiB, an unrelated one hardly more than itself', () => {
  const base = bf16Weights(1024 * 1024 + 7, 'weights');
  expect(encode(base, base).length).toBe(24 + 3 * 5);
  const random = createRandom('noise');
  const noise = Uint8Array.from({ length: 100_001 }, () => random.below(256));
  expect(encode(base.subarray(0, 100_001), noise).length).toBe(24 + 5 + 100_001);
});

test.each([4096, 4097, 4090])('a grouped frame of %d bytes is its even bytes, then its odd ones', (length) => {
  const random = createRandom('grouped');
  const target = Buffer.from(Uint8Array.from({ length }, () => random.below(4)));
  const even = target.filter((_, i) => i % 2 === 0);
  const odd = target.filter((_, i) => i % 2 === 1);
  const packed = compress(Buffer.concat([even, odd]));
  const head = Buffer.alloc(24 + 5);
  head.writeUInt32BE(0x585a4431, 0);
  head.writeUInt32BE(8192, 4);
  head.writeBigUInt64BE(BigInt(length), 16);
  head.writeUInt8(2, 24);
  head.writeUInt32BE(packed.length, 25);
  expect(apply(new Uint8Array(0), Buffer.concat([head, packed])).equals(target)).toBe(true);
});

test('a base of another size is refused', () => {
  const delta = encode(new Uint8Array(100), new Uint8Array(200).fill(1));
  expect(() => apply(new Uint8Array(101), delta)).toThrow(expect.objectContaining({ code: 'BASE_MISMATCH' }));
});

test('fuzz: a damaged delta gives another target or CORRUPT_PAYLOAD, never another failure', () => {
  const base = bf16Weights(700_000, 'weights');
  const target = nudge(base, 0.01, 'update');
  const delta = encode(base, target);
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.nat(delta.length - 1), fc.nat(255)), { minLength: 1, maxLength: 3 }),
      fc.option(fc.nat(delta.length - 1), { nil: undefined }),
      fc.boolean(),
      (changes, cut, inHeaders) => {
        const damaged = Buffer.from(delta);
        for (const [at, value] of changes) damaged[inHeaders ? at % 40 : at] = value;
        try {
          apply(base, cut === undefined ? damaged : damaged.subarray(0, cut));
        } catch (error) {
          expect(['CORRUPT_PAYLOAD', 'BASE_MISMATCH']).toContain((error as { code?: string }).code);
        }
      },
    ),
    { seed: 6, numRuns: 150 },
  );
});

test('a delta that claims a huge target is refused before anything is allocated for it', () => {
  const header = Buffer.alloc(24);
  header.writeUInt32BE(0x585a4431, 0);
  header.writeUInt32BE(4096, 4);
  header.writeBigUInt64BE(0n, 8);
  header.writeBigUInt64BE(1n << 60n, 16);
  expect(() => apply(new Uint8Array(0), header)).toThrow('too short');
});
