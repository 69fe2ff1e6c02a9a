import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { encodeParity, encodeSymbol, restoreSources, SYMBOLS } from '../../../agents/fec/reed-solomon.ts';
import { createRandom, type Random } from '../../../base/random.ts';
import { slowCombination, slowInverse } from './reference.ts';

function makeBlock(random: Random, k: number, symbolBytes: number, lastBytes = symbolBytes): Uint8Array[] {
  return Array.from({ length: k }, (_, j) =>
    Uint8Array.from({ length: j === k - 1 ? lastBytes : symbolBytes }, () => random.below(256)),
  );
}

function pickSymbols(random: Random, k: number, candidates: number[]): number[] {
  const pool = [...candidates];
  return Array.from({ length: k }, () => pool.splice(random.below(pool.length), 1)[0]);
}

function parityOf(
  sources: readonly Uint8Array[],
  symbolBytes: number,
  symbols: readonly number[],
): { symbol: number; bytes: Uint8Array }[] {
  return symbols.map((symbol) => {
    const bytes = new Uint8Array(symbolBytes);
    encodeSymbol(sources, symbol, bytes);
    return { symbol, bytes };
  });
}

/** Of `symbols` alone, in their order; what is not among them is noise. */
function expectRestored(sources: readonly Uint8Array[], symbolBytes: number, symbols: readonly number[]): void {
  const missing = sources.map((_, j) => j).filter((j) => !symbols.includes(j));
  if (missing.length === 0) return;
  const held = sources.map((source, j) => (symbols.includes(j) ? source : source.map((byte) => byte ^ 0x5a)));
  const outs = missing.map(() => new Uint8Array(symbolBytes).fill(0xa5));
  const parity = parityOf(
    sources,
    symbolBytes,
    symbols.filter((symbol) => symbol >= 64),
  );
  restoreSources(held, missing, parity, outs);
  for (const [i, j] of missing.entries()) {
    const source = sources[j];
    expect(Buffer.from(outs[i].subarray(0, source.length)).equals(source)).toBe(true);
    expect(outs[i].subarray(source.length).every((byte) => byte === 0)).toBe(true);
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
});

test('more parity than needed does no harm', () => {
  const random = createRandom('surplus');
  const sources = makeBlock(random, 4, 8);
  const out = new Uint8Array(8);
  restoreSources(sources, [2], parityOf(sources, 8, [70, 100, 254]), [out]);
  expect(Buffer.from(out).equals(sources[2])).toBe(true);
});

test('parity symbols are the sums of 1 / (symbol + place) times the source symbols', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 64 }),
      fc.integer({ min: 1, max: 70 }),
      fc.nat(69),
      fc.nat(),
      (k, symbolBytes, shorter, seed) => {
        const random = createRandom(seed);
        const sources = makeBlock(random, k, symbolBytes, k === 1 ? symbolBytes : Math.max(1, symbolBytes - shorter));
        const symbols = pickSymbols(random, 1 + random.below(64), range(64, SYMBOLS));
        const outs = symbols.map(() => new Uint8Array(symbolBytes).fill(random.below(256)));
        encodeParity(sources, symbols, outs);
        for (const [i, symbol] of symbols.entries()) {
          const coefficients = sources.map((_, j) => slowInverse(symbol ^ j));
          expect([...outs[i]]).toEqual([...slowCombination(sources, coefficients, symbolBytes)]);
        }
      },
    ),
    { seed: 13, numRuns: 40 },
  );
});

/** What the first version sent, in tables and plain JavaScript. Another version's receivers have to understand it. */
describe('parity on the wire stays what it was', () => {
  test.each([
    [64, 'd647e978a8399706'],
    [65, '40fc25998a36ef53'],
    [254, 'e71b02fe30ccd529'],
  ])('symbol %i of three small ones', (symbol, hex) => {
    const out = new Uint8Array(8);
    const sources = [40, 80, 120].map((first) => Uint8Array.from({ length: 8 }, (_, i) => first + i));
    encodeSymbol(sources, symbol, out);
    expect(Buffer.from(out).toString('hex')).toBe(hex);
  });

  test.each([
    [1, 5, 5, '02804b3890d08906f71596afac949b56aca31d47b9824fd83624f79f0981e4f6'],
    [2, 16, 3, 'e829dcc28ac0b0d03b75c0bf115bab51c0a9529479b986f5cee927e464f7a04a'],
    [17, 100, 99, '52bd3b41a221c0c25522fecf95776e5f6060459309ed9ddcb628b5834f08b86f'],
    [63, 1376, 1, '82053062df4a79edfdc1be0cfed6aefb11be9dd23b8ddc6c5aca4b3f4fe7ac3e'],
    [64, 8192, 8192, '34c918e3ab113c474285604f9434fe2f45386a5ffbd95d95cf33c15136305084'],
    [64, 1376, 700, '6e4014b14fa2b9f5a05611b4c2872c028adfa0aef35f30a1feeff89eb76ad0aa'],
  ])('all of %i symbols of %i bytes, the last one of %i', (k, symbolBytes, lastBytes, sha256) => {
    const sources = makeBlock(createRandom(`block of ${k}`), k, symbolBytes, lastBytes);
    const hash = createHash('sha256');
    const out = new Uint8Array(symbolBytes);
    for (const symbol of range(64, SYMBOLS)) {
      encodeSymbol(sources, symbol, out);
      hash.update(out);
    }
    expect(hash.digest('hex')).toBe(sha256);
  });
});

test('segments as on the wire, from any loss', () => {
  const random = createRandom('segments');
  for (const [k, symbolBytes, lastBytes] of [
    [64, 8192, 8192],
    [64, 1376, 17],
    [9, 1377, 1],
  ])
    for (const missing of [0, 1, 2, 3, 5, 8]) {
      const sources = makeBlock(random, k, symbolBytes, lastBytes);
      const source = pickSymbols(random, k - missing, range(0, k));
      expectRestored(sources, symbolBytes, [...source, ...pickSymbols(random, missing, range(64, SYMBOLS))]);
    }
});
