import { crc32 as zlibCrc32 } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { crcParameters } from '../../../switch/bmv2/crc-parameters.ts';
import { putBits } from '../../../switch/runtime/bits.ts';
import {
  crc,
  crc16,
  crc32,
  crcCCITT,
  csum16,
  identity,
  roundRobin,
  roundRobinConsistent,
  toeplitz,
  xor16,
  xor32,
} from '../../../switch/runtime/hashes.ts';
import { xxh64 } from '../../../switch/runtime/xxh64.ts';
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

describe('a CRC of parameters', () => {
  // What the catalogues give as the check of each: the CRC of 123456789.
  const checks: readonly (readonly [string, bigint])[] = [
    ['crc8_custom', 0xf4n],
    ['crc16_custom', 0xbb3dn],
    ['crc32_custom', 0xcbf43926n],
    ['crc_8', 0xf4n],
    ['crc_8_darc', 0x15n],
    ['crc_8_i_code', 0x7en],
    ['crc_8_itu', 0xa1n],
    ['crc_8_maxim', 0xa1n],
    ['crc_8_rohc', 0xd0n],
    ['crc_8_wcdma', 0x25n],
    ['crc_16', 0xbb3dn],
    ['crc_16_buypass', 0xfee8n],
    ['crc_16_dds_110', 0x9ecfn],
    ['crc_16_dect', 0x007en],
    ['crc_16_dnp', 0xea82n],
    ['crc_16_en_13757', 0xc2b7n],
    ['crc_16_genibus', 0xd64en],
    ['crc_16_maxim', 0x44c2n],
    ['crc_16_mcrf4xx', 0x6f91n],
    ['crc_16_riello', 0x63d0n],
    ['crc_16_t10_dif', 0xd0dbn],
    ['crc_16_teledisk', 0x0fb3n],
    ['crc_16_usb', 0xb4c8n],
    ['x_25', 0x906en],
    ['xmodem', 0x31c3n],
    ['modbus', 0x4b37n],
    ['kermit', 0x2189n],
    ['crc_ccitt_false', 0x29b1n],
    ['crc_aug_ccitt', 0xe5ccn],
    ['crc_32', 0xcbf43926n],
    ['crc_32_bzip2', 0xfc891918n],
    ['crc_32c', 0xe3069283n],
    ['crc_32d', 0x87315576n],
    ['crc_32_mpeg', 0x0376e6e7n],
    ['posix', 0x765e7680n],
    ['crc_32q', 0x3010bf7fn],
    ['jamcrc', 0x340bc6d9n],
    ['xfer', 0xbd0be338n],
    ['crc_64', 0x46a5a9388a5beffen],
    ['crc_64_we', 0x62ec59e3f1a4f00an],
    ['crc_64_jones', 0xcaa717168609f281n],
    ['poly_0x11021_init_0xffff_not_rev', 0x29b1n],
    ['poly_0x104c11db7_init_0xffffffff_xout_0xffffffff', 0xcbf43926n],
  ];
  test.each(checks)('%s', (algorithm, check) => {
    const { widthBits, polynomial, initial, final, reflected } = crcParameters(algorithm)!;
    expect(BigInt(crc(widthBits, polynomial, initial, final, reflected)(digits, digits.length))).toBe(check);
  });

  test.each(['poly_0x1021', 'poly_0x11021_lsb', 'poly_0x1111', 'init_0x1', 'nothing', ''])('is not %s', (algorithm) => {
    expect(crcParameters(algorithm)).toBeUndefined();
  });
});

describe('other hashes', () => {
  const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

  test('xxh64 with seed 0', () => {
    const vectors: readonly (readonly [string, bigint])[] = [
      ['', 0xef46db3751d8e999n],
      ['a', 0xd24ec4f1a98c6e5bn],
      ['abc', 0x44bc2cf5ad770999n],
      ['123456789', 0x8cb841db40e6ae83n],
      ['Nobody inspects the spammish repetition', 0xfbcea83c8a378bf1n],
    ];
    for (const [text, hash] of vectors) expect(xxh64(bytes(text), text.length)).toBe(hash);
  });

  test('Toeplitz: the vectors of receive-side scaling', () => {
    const key = Buffer.from('6d5a56da255b0ec24167253d43a38fb0d0ca2bcbae7b30b477cb2da38030f20c6a42b73bbeac01fa', 'hex');
    const input = Uint8Array.of(66, 9, 149, 187, 161, 142, 100, 80, 2794 >> 8, 2794 & 255, 1766 >> 8, 1766 & 255);
    expect(toeplitz(input, 8, key)).toBe(0x323e8fc2);
    expect(toeplitz(input, 12, key)).toBe(0x51ccc178);
    // simple_switch's own key
    expect(toeplitz(input, 12)).toBe(0);
  });

  test('round robin counts calls; the consistent one gives an input the number that it first had', () => {
    const [every, own] = [roundRobin(), roundRobinConsistent()];
    const inputs = ['x', 'y', 'x', 'z', 'y'].map(bytes);
    expect(inputs.map((input) => every(input, 1))).toEqual([0, 1, 2, 3, 4]);
    expect(inputs.map((input) => own(input, 1))).toEqual([0, 1, 0, 2, 1]);
  });

  test('the consistent round robin forgets the oldest of very many', () => {
    const own = roundRobinConsistent();
    const input = new Uint8Array(4);
    const number = (value: number) => {
      new DataView(input.buffer).setUint32(0, value);
      return own(input, 4);
    };
    for (let i = 0; i <= 65_536; i++) expect(number(i)).toBe(i);
    expect(number(1)).toBe(1);
    expect(number(0)).toBe(65_537);
  });
});
