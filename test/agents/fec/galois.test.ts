import { expect, test } from 'vitest';
import { inverse, multiply } from '../../../agents/fec/galois.ts';
import { slowMultiply } from './reference.ts';

test('every product is that of the polynomials', () => {
  for (let a = 0; a < 256; a++) {
    const products = Array.from({ length: 256 }, (_, b) => multiply(a, b));
    expect(products).toEqual(Array.from({ length: 256 }, (_, b) => slowMultiply(a, b)));
  }
});

test('every element but 0 has an inverse', () => {
  for (let a = 1; a < 256; a++) expect(slowMultiply(a, inverse(a))).toBe(1);
});
