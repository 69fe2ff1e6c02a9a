/** GF(2^8) modulo x^8 + x^4 + x^3 + x^2 + 1, with 2 as generator: single elements. Whole rows of bytes are ./linear-combination.ts. */

const POLYNOMIAL = 0x11d;
/** Elements other than 0: 2 to this power is 1. */
const ORDER = 255;

/** EXP[i] = 2^i, twice over so that a sum of two logarithms needs no reduction. */
const EXP = new Uint8Array(2 * ORDER);
/** LOG[a] for a = 1..255; LOG[0] has no meaning. */
const LOG = new Uint8Array(256);

let power = 1;
for (let i = 0; i < ORDER; i++) {
  EXP[i] = power;
  EXP[i + ORDER] = power;
  LOG[power] = i;
  power <<= 1;
  if (power > 255) power ^= POLYNOMIAL;
}

export function multiply(a: number, b: number): number {
  return a === 0 || b === 0 ? 0 : EXP[LOG[a] + LOG[b]];
}

/** @param a any but 0 */
export function inverse(a: number): number {
  return EXP[ORDER - LOG[a]];
}
