import { crc32 as zlibCrc32 } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { crc16, crc32, crcCCITT, csum16, identity, putBits, xor16, xor32 } from '../../../switch/runtime/hashes.ts';
import { pack } from '../test-device.ts';

const digits = new TextEncoder().encode('123456789');

describe('hashes', () => {
  // The check values of the catalogue of parametrised CRC algorithms, and RFC 1071's own example.
  test.each([
    ['CRC-16/ARC', crc16, 0xbb3d],
    ['CRC-32/ISO-HDLC', crc32, 0xcbf43926],
    ['CRC-16/IBM-3740', crcCCITT, 0x29b1],
  ])('%s of "123456789"', (_name, hash, check) => {
    expect(hash(digits, digits.length)).toBe(check);
  });

  test('the Internet checksum of RFC 1071, section 3', () => {
    const bytes = Uint8Array.of(0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7);
    expect(csum16(bytes, 8)).toBe(~0xddf2 & 0xffff);
    expect(csum16(Uint8Array.of(0xff), 1)).toBe(0x00ff);
    expect(csum16(new Uint8Array(4), 4)).toBe(0xffff);
    expect(csum16(new Uint8Array(200_000).fill(0xff), 200_000)).toBe(0);
  });

  test('crc32 agrees with zlib', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 64 }), (bytes) => {
        expect(crc32(bytes, bytes.length)).toBe(zlibCrc32(bytes));
      }),
      { seed: 1, numRuns: 200 },
    );
  });

  test('xor pads the last word at its end', () => {
    expect(xor16(Uint8Array.of(1, 2, 3), 3)).toBe(0x0102 ^ 0x0300);
    expect(xor32(Uint8Array.of(0x80, 0, 0, 1, 0x40), 5)).toBe(0xc0000001);
  });

  test('identity is the first eight bytes', () => {
    expect(identity(digits, 3)).toBe(0x313233n);
    expect(identity(digits, 9)).toBe(0x3132333435363738n);
  });

  test('bits are put one after the other', () => {
    const pieces = fc.array(
      fc
        .integer({ min: 1, max: 32 })
        .chain((width) => fc.tuple(fc.bigInt({ min: 0n, max: (1n << BigInt(width)) - 1n }), fc.constant(width))),
      { maxLength: 10 },
    );
    fc.assert(
      fc.property(pieces, (parts) => {
        const bytes = new Uint8Array(41);
        const end = parts.reduce((at, [value, width]) => putBits(bytes, at, Number(value), width), 0);
        expect([...bytes.subarray(0, Math.ceil(end / 8))]).toEqual(pack(parts));
      }),
      { seed: 2, numRuns: 300 },
    );
  });
});
