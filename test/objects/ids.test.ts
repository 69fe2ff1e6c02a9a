import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  formatObjectId,
  formatPayloadId,
  makeObjectId,
  parseObjectId,
  parsePayloadId,
  serialOf,
  tenantOf,
} from '../../objects/ids.ts';

test('an object id is tenant and serial, written as 16 hex digits', () => {
  expect(formatObjectId(makeObjectId(7, 0x2an))).toBe('000700000000002a');
  fc.assert(
    fc.property(fc.nat(0xffff), fc.bigInt({ min: 0n, max: (1n << 48n) - 1n }), (tenant, serial) => {
      const id = makeObjectId(tenant, serial);
      expect([tenantOf(id), serialOf(id)]).toEqual([tenant, serial]);
      expect(parseObjectId(formatObjectId(id))).toBe(id);
    }),
    { seed: 1, numRuns: 100 },
  );
});

test.each([
  [-1, 0n],
  [0x10000, 0n],
  [1.5, 0n],
  [0, -1n],
  [0, 1n << 48n],
])('tenant %s with serial %s is refused', (tenant, serial) => {
  expect(() => makeObjectId(tenant, serial)).toThrow(expect.objectContaining({ code: 'INVALID_OPTION' }));
});

test.each(['', '1', '000700000000002g', '000700000000002a0', ' 00700000000002a'])('"%s" is no object id', (text) => {
  expect(() => parseObjectId(text)).toThrow(expect.objectContaining({ code: 'INVALID_OPTION' }));
});

test('payload names are parsed only in the form they are written in', () => {
  const id = { objectId: makeObjectId(1, 2n), version: 22, baseVersion: 21 };
  expect(parsePayloadId(formatPayloadId(id))).toEqual(id);
  for (const text of [
    '',
    'x',
    '0001000000000002-22',
    '0001000000000002-022-21',
    '0001000000000002-4294967296-0',
    '../a',
  ])
    expect(parsePayloadId(text)).toBeUndefined();
});
