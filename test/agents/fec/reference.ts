/** The field of the erasure code as its definition has it, bit by bit: slow, and without a table that the code under test could share. */
export function slowMultiply(a: number, b: number): number {
  let product = 0;
  for (let bit = 0; bit < 8; bit++) if ((b >> bit) & 1) product ^= a << bit;
  for (let bit = 14; bit >= 8; bit--) if ((product >> bit) & 1) product ^= 0x11d << (bit - 8);
  return product;
}

export const SLOW_PRODUCTS: readonly Uint8Array[] = Array.from({ length: 256 }, (_, a) =>
  Uint8Array.from({ length: 256 }, (_, b) => slowMultiply(a, b)),
);

export function slowInverse(a: number): number {
  return SLOW_PRODUCTS[a].indexOf(1);
}

/** Sum over all inputs of the input times its coefficient; inputs count as padded with zeros. */
export function slowCombination(
  inputs: readonly Uint8Array[],
  coefficients: ArrayLike<number>,
  length: number,
): Uint8Array {
  const sum = new Uint8Array(length);
  for (const [i, input] of inputs.entries()) {
    const products = SLOW_PRODUCTS[coefficients[i]];
    for (let at = 0; at < input.length; at++) sum[at] ^= products[input[at]];
  }
  return sum;
}
