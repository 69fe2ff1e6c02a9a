import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  FABRIC_TYPE_DATA,
  FABRIC_TYPE_NACK,
  FABRIC_TYPE_REPAIR,
  FABRIC_TYPE_SYNC,
} from '../../../p4/build/constants.ts';
import {
  decodeFabric,
  encodeFabric,
  FABRIC_HEADER_BYTES,
  type FabricHeader,
  peekFabricLabel,
} from '../../../wire/fabric/header.ts';
import { joinObjectId, splitObjectId } from '../../../wire/fabric/object-id.ts';

const HEADER: FabricHeader = {
  type: FABRIC_TYPE_DATA,
  flags: 1,
  label: 0xdeadbeef,
  ...splitObjectId(0x0007_0000_8000_0001n),
  objectVersion: 22,
  baseVersion: 21,
  block: 0xfffffffe,
  symbol: 63,
  sourceSymbols: 64,
  need: 0,
  epoch: 255,
};

const uint32 = fc.nat(0xffff_ffff);
const byte = fc.nat(255);

test('headers round-trip', () => {
  const headers = fc.record({
    flags: byte,
    label: uint32,
    objectIdHigh: uint32,
    objectIdLow: uint32,
    objectVersion: uint32,
    baseVersion: uint32,
    block: uint32,
    need: byte,
    epoch: byte,
    sourceSymbols: fc.integer({ min: 1, max: 64 }),
  });
  const kinds = fc.constantFrom(
    { type: FABRIC_TYPE_DATA, symbol: 0 },
    { type: FABRIC_TYPE_REPAIR, symbol: 254 },
    { type: FABRIC_TYPE_NACK, symbol: 0 },
    { type: FABRIC_TYPE_SYNC, symbol: 0 },
  );
  fc.assert(
    fc.property(headers, kinds, fc.uint8Array({ maxLength: 100 }), (fields, kind, payload) => {
      const header = { ...fields, ...kind };
      const datagram = encodeFabric(new Uint8Array(300), header, payload);
      expect(decodeFabric(datagram)).toEqual({ ...header, marks: 0, queueLevel: 0, hops: 0, payload });
      expect(peekFabricLabel(datagram)).toBe(header.label);
    }),
    { seed: 5, numRuns: 200 },
  );
});

test('every field stands where the table of the protocol says', () => {
  const datagram = encodeFabric(new Uint8Array(100), HEADER, Uint8Array.of(0xaa));
  expect(Buffer.from(datagram.subarray(0, 32)).toString('hex')).toBe(
    '11010001deadbeef00070000800000010000001600000015fffffffe3f4000ff',
  );
  expect([...datagram.subarray(36)]).toEqual([0, 0, 0, 0, 0xaa]);
});

describe('faults', () => {
  const whole = encodeFabric(new Uint8Array(100), HEADER, new Uint8Array(20));
  const changed = (offset: number, value: number): unknown => {
    const bytes = whole.slice();
    bytes[offset] = value;
    return decodeFabric(bytes);
  };

  test('are named in the order of the checks', () => {
    expect(decodeFabric(whole.subarray(0, FABRIC_HEADER_BYTES - 1))).toBe('too short');
    expect(changed(0, 0x21)).toBe('version');
    expect(changed(0, 0x10)).toBe('type');
    expect(changed(0, 0x19)).toBe('type');
    expect(changed(3, 21)).toBe('payload length');
    expect(decodeFabric(whole.subarray(0, 59))).toBe('payload length');
    expect(changed(29, 0)).toBe('source symbols');
    expect(changed(29, 65)).toBe('source symbols');
    expect(changed(28, 64)).toBe('symbol');
    expect(changed(31, 0)).toBe('crc');
    expect(changed(59, 1)).toBe('crc');
  });

  test('what switches write is not covered', () => {
    expect(changed(36, 1)).toMatchObject({ marks: 1 });
    expect(changed(37, 200)).toMatchObject({ queueLevel: 200 });
    expect(changed(38, 3)).toMatchObject({ hops: 3 });
  });

  test('a mutated packet is never taken for another', () => {
    fc.assert(
      fc.property(fc.nat(whole.length - 1), fc.integer({ min: 1, max: 255 }), (offset, flip) => {
        const bytes = whole.slice();
        bytes[offset] ^= flip;
        if (offset < 36 || offset >= FABRIC_HEADER_BYTES) expect(typeof decodeFabric(bytes)).toBe('string');
      }),
      { seed: 6, numRuns: 500 },
    );
  });

  test('no bytes make it throw', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 80 }), (bytes) => {
        decodeFabric(bytes);
      }),
      { seed: 7, numRuns: 500 },
    );
  });
});

test('object ids split and join', () => {
  fc.assert(
    fc.property(fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }), (id) => {
      expect(joinObjectId(splitObjectId(id))).toBe(id);
    }),
    { seed: 8, numRuns: 100 },
  );
});
