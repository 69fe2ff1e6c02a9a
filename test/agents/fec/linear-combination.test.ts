import fc from 'fast-check';
import { expect, test } from 'vitest';
import { combineLinearly } from '../../../agents/fec/linear-combination.ts';
import { createRandom, type Random } from '../../../base/random.ts';
import { slowCombination } from './reference.ts';

/** Random bytes that start anywhere in their buffer. */
function row(random: Random, length: number): Uint8Array {
  const start = random.below(40);
  const bytes = new Uint8Array(start + length).subarray(start);
  for (let i = 0; i < length; i++) bytes[i] = random.below(256);
  return bytes;
}

function expectCombined(inputs: readonly Uint8Array[], outputs: readonly Uint8Array[], coefficients: Uint8Array): void {
  combineLinearly(inputs, outputs, coefficients);
  for (const [r, output] of outputs.entries()) {
    const own = coefficients.subarray(r * inputs.length, (r + 1) * inputs.length);
    expect(Buffer.compare(output, slowCombination(inputs, own, output.length))).toBe(0);
  }
}

test('every coefficient times every byte', () => {
  const all = Uint8Array.from({ length: 256 }, (_, i) => i);
  for (let coefficient = 0; coefficient < 256; coefficient++)
    expectCombined([all], [new Uint8Array(256)], Uint8Array.of(coefficient));
});

test('any number of rows of any lengths, wherever they start', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 0, max: 64 }),
      fc.integer({ min: 1, max: 5 }),
      fc.integer({ min: 0, max: 150 }),
      fc.nat(),
      (inputs, outputs, length, seed) => {
        const random = createRandom(seed);
        const rows = Array.from({ length: inputs }, () =>
          row(random, random.chance(0.8) ? length : random.below(length + 1)),
        );
        const coefficients = Uint8Array.from({ length: inputs * outputs }, () => random.below(256));
        // What stood in the outputs before does not count, nor does what the call before left in the kernel's memory.
        expectCombined(
          rows,
          Array.from({ length: outputs }, () => row(random, length)),
          coefficients,
        );
      },
    ),
    { seed: 21, numRuns: 300 },
  );
});

test('bytes next to the outputs stay as they are', () => {
  const random = createRandom('neighbours');
  const around = new Uint8Array(200).fill(7);
  combineLinearly([row(random, 33)], [around.subarray(50, 83)], Uint8Array.of(3));
  expect(around.subarray(0, 50).every((byte) => byte === 7)).toBe(true);
  expect(around.subarray(83).every((byte) => byte === 7)).toBe(true);
});

test('as many rows as fit, as long as they fit', () => {
  const random = createRandom('largest');
  const inputs = Array.from({ length: 3 }, () => row(random, 1 << 16));
  const outputs = Array.from({ length: 64 }, () => new Uint8Array(1 << 16));
  expectCombined(
    inputs,
    outputs,
    Uint8Array.from({ length: 192 }, () => random.below(256)),
  );
});

test('what does not fit is refused before anything is written', () => {
  const output = new Uint8Array(8).fill(7);
  const invalid = expect.objectContaining({ code: 'INVALID_OPTION' });
  expect(() => combineLinearly([new Uint8Array(9)], [output], Uint8Array.of(1))).toThrow(invalid);
  expect(() => combineLinearly([output], [new Uint8Array((1 << 16) + 1)], Uint8Array.of(1))).toThrow(invalid);
  expect(() => combineLinearly([output], new Array<Uint8Array>(65).fill(output), new Uint8Array(65))).toThrow(invalid);
  expect(output).toEqual(new Uint8Array(8).fill(7));
});
