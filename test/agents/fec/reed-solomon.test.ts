import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { multiplyAccumulate } from '../../../agents/fec/galois.ts';
import { BlockDecoder, encodeSymbol, SYMBOLS } from '../../../agents/fec/reed-solomon.ts';
import { createRandom, type Random } from '../../../base/random.ts';

function makeBlock(random: Random, k: number, symbolBytes: number, lastBytes = symbolBytes): Uint8Array[] {
  return Array.from({ length: k }, (_, j) =>
    Uint8Array.from({ length: j === k - 1 ? lastBytes : symbolBytes }, () => random.below(256)),
  );
}

function pickSymbols(random: Random, k: number, candidates: number[]): number[] {
  const pool = [...candidates];
  return Array.from({ length: k }, () => pool.splice(random.below(pool.length), 1)[0]);
}

function expectRestored(sources: readonly Uint8Array[], symbolBytes: number, symbols: readonly number[]): void {
  const decoder = new BlockDecoder(sources.length, symbolBytes);
  for (const [i, symbol] of symbols.entries()) {
    expect(decoder.complete).toBe(false);
    expect(decoder.held).toBe(i);
    const bytes = new Uint8Array(symbolBytes);
    encodeSymbol(sources, symbol, bytes);
    expect(decoder.add(symbol, symbol < 64 ? bytes.subarray(0, sources[symbol].length) : bytes)).toBe(true);
    expect(decoder.add(symbol, bytes)).toBe(false);
  }
  expect(decoder.complete).toBe(true);
  const missing = decoder.missing;
  expect(decoder.restore()).toBe(missing);
  for (const [j, source] of sources.entries()) {
    const restored = decoder.bytes.subarray(j * symbolBytes, (j + 1) * symbolBytes);
    expect(Buffer.from(restored.subarray(0, source.length)).equals(source)).toBe(true);
    expect(restored.subarray(source.length).every((byte) => byte === 0)).toBe(true);
  }
}

const range = (from: number, to: number): number[] => Array.from({ length: to - from }, (_, i) => from + i);

describe('any k distinct symbols restore a block', () => {
  test('of any size, from any mixture', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 64 }),
        fc.integer({ min: 1, max: 67 }),
        fc.integer({ min: 0, max: 66 }),
        fc.nat(),
        (k, symbolBytes, shorter, seed) => {
          const random = createRandom(seed);
          const lastBytes = k === 1 ? symbolBytes : Math.max(1, symbolBytes - shorter);
          const sources = makeBlock(random, k, symbolBytes, lastBytes);
          expectRestored(sources, symbolBytes, pickSymbols(random, k, [...range(0, k), ...range(64, SYMBOLS)]));
        },
      ),
      { seed: 11, numRuns: 60 },
    );
  });

  test('from parity alone', () => {
    const random = createRandom('all parity');
    for (const k of [1, 2, 17, 63, 64]) {
      const sources = makeBlock(random, k, 32);
      expectRestored(sources, 32, pickSymbols(random, k, range(64, SYMBOLS)));
      expectRestored(sources, 32, range(SYMBOLS - k, SYMBOLS));
    }
  });

  test('from source symbols alone, in any order', () => {
    const random = createRandom('all source');
    expectRestored(makeBlock(random, 64, 16), 16, pickSymbols(random, 64, range(0, 64)));
  });
});

test('more symbols than needed do no harm', () => {
  const random = createRandom('surplus');
  const sources = makeBlock(random, 4, 8);
  const decoder = new BlockDecoder(4, 8);
  for (const symbol of [70, 1, 100, 254, 2, 3]) {
    const bytes = new Uint8Array(8);
    encodeSymbol(sources, symbol, bytes);
    decoder.add(symbol, bytes);
  }
  expect(decoder.held).toBe(4);
  expect(decoder.restore()).toBe(1);
  expect(Buffer.from(decoder.bytes).equals(Buffer.concat(sources))).toBe(true);
});

test('words and bytes multiply alike', () => {
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 1, maxLength: 40 }), fc.nat(255), (source, coefficient) => {
      const aligned = new Uint8Array(source.length);
      multiplyAccumulate(aligned, source.slice(), coefficient);
      const unaligned = new Uint8Array(source.length + 1).subarray(1);
      multiplyAccumulate(unaligned, source.slice(), coefficient);
      expect([...aligned]).toEqual([...unaligned]);
      // Addition is its own inverse.
      multiplyAccumulate(aligned, source, coefficient);
      expect(aligned.every((byte) => byte === 0)).toBe(true);
    }),
    { seed: 12, numRuns: 100 },
  );
});
