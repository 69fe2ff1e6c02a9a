import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  formatIpv4,
  formatMac,
  isGroupMac,
  MAC_BROADCAST,
  parseIpv4,
  parseMac,
  readMac,
  writeMac,
} from '../../../wire/packet/addresses.ts';

describe('MAC addresses', () => {
  test('text and bytes round-trip', () => {
    fc.assert(
      fc.property(
        fc.maxSafeNat().map((n) => n % 2 ** 48),
        (mac) => {
          const bytes = new Uint8Array(8);
          writeMac(bytes, 1, mac);
          expect(readMac(bytes, 1)).toBe(mac);
          expect(parseMac(formatMac(mac))).toBe(mac);
        },
      ),
      { seed: 1, numRuns: 200 },
    );
    expect(formatMac(0x02_00_00_00_01_0a)).toBe('02:00:00:00:01:0a');
  });

  test('what is not an address is undefined', () => {
    for (const text of ['', '02:00:00:00:01', '02:00:00:00:01:0g', '2:0:0:0:1:a', '02-00-00-00-01-0a'])
      expect(parseMac(text)).toBeUndefined();
  });

  test('group bit', () => {
    expect(isGroupMac(MAC_BROADCAST)).toBe(true);
    expect(isGroupMac(parseMac('01:00:5e:00:00:01')!)).toBe(true);
    expect(isGroupMac(parseMac('02:00:00:00:00:01')!)).toBe(false);
  });
});

describe('IPv4 addresses', () => {
  test('text round-trips', () => {
    fc.assert(
      fc.property(fc.nat(0xffff_ffff), (address) => {
        expect(parseIpv4(formatIpv4(address))).toBe(address);
      }),
      { seed: 2, numRuns: 200 },
    );
    expect(parseIpv4('10.0.1.2')).toBe(0x0a000102);
  });

  test('what is not an address is undefined', () => {
    for (const text of ['', '10.0.0', '10.0.0.256', '10.0.0.01', '10.0.0.1 ', '10.0.0.-1', '1.2.3.4.5'])
      expect(parseIpv4(text)).toBeUndefined();
  });
});
