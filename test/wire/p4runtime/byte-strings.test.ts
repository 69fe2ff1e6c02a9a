import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  canonicalBits,
  decodeBits,
  decodeSigned,
  encodeBits,
  encodeSigned,
} from '../../../wire/p4runtime/byte-strings.ts';

const bytes = (...values: number[]): Uint8Array => new Uint8Array(values);

describe('bit<W>', () => {
  it.each([
    [8, 0x63n, bytes(0x63)],
    [16, 0x63n, bytes(0x63)],
    [16, 0x3064n, bytes(0x30, 0x64)],
    [16, 0n, bytes(0)],
    [128, 2n ** 127n, bytes(0x80, ...new Array(15).fill(0))],
  ])('bit<%i> %i has one shortest string', (width, value, string) => {
    expect(encodeBits(value)).toEqual(string);
    expect(decodeBits(string, width)).toBe(value);
  });

  it('accepts leading zeros of any number', () => {
    expect(decodeBits(bytes(0, 0x63), 8)).toBe(0x63n);
    expect(decodeBits(bytes(0, 0, 0, 0, 0, 0, 0, 0, 0, 0x63), 12)).toBe(0x63n);
  });

  it.each([
    [8, bytes(1, 0x63)],
    [8, bytes()],
    [16, bytes(1, 0, 0x63)],
    [12, bytes(0x10, 0x63)],
    [12, bytes(0, 0x40, 0x63)],
    [9, bytes(2, 0)],
  ])('bit<%i> refuses %j', (width, string) => {
    expect(() => decodeBits(string, width)).toThrow();
  });
});

describe('int<W>', () => {
  it.each([
    [8, 99n, bytes(0x63)],
    [8, -99n, bytes(0x9d)],
    [12, -739n, bytes(0xfd, 0x1d)],
    [16, 0n, bytes(0)],
    [16, 128n, bytes(0, 0x80)],
  ])('int<%i> %i has one shortest string', (width, value, string) => {
    expect(encodeSigned(value)).toEqual(string);
    expect(decodeSigned(string, width)).toBe(value);
  });

  it('undoes sign extension of any length', () => {
    expect(decodeSigned(bytes(0xff, 0x9d), 8)).toBe(-99n);
    expect(decodeSigned(bytes(0, 0), 16)).toBe(0n);
  });

  it.each([
    [8, bytes(0, 0x9d)],
    [12, bytes(0x8d, 0x1d)],
    [16, bytes()],
  ])('int<%i> refuses %j', (width, string) => {
    expect(() => decodeSigned(string, width)).toThrow();
  });
});

it('every value survives, and canonical strings have no leading zero', () => {
  fc.assert(
    fc.property(fc.bigInt({ min: 0n, max: 2n ** 130n }), fc.nat(4), (value, zeros) => {
      const string = encodeBits(value);
      const padded = Uint8Array.from([...new Array(zeros).fill(0), ...string]);
      expect(decodeBits(padded, 131)).toBe(value);
      expect(canonicalBits(padded)).toEqual(string);
      expect(decodeSigned(encodeSigned(-value), 132)).toBe(-value);
    }),
    { seed: 1, numRuns: 200 },
  );
});
