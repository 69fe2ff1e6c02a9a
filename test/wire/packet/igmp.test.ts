import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { formatMac, parseIpv4 } from '../../../wire/packet/addresses.ts';
import { internetChecksum } from '../../../wire/packet/checksum.ts';
import { parseEthernet } from '../../../wire/packet/ethernet.ts';
import {
  ALL_SYSTEMS_GROUP,
  buildIgmpFrame,
  CHANGE_TO_EXCLUDE_MODE,
  emitIgmp,
  type IgmpMessage,
  igmpBytes,
  MODE_IS_INCLUDE,
  parseIgmp,
} from '../../../wire/packet/igmp.ts';
import { parseIpv4Packet } from '../../../wire/packet/ipv4.ts';

const GROUP = parseIpv4('239.1.2.3')!;

function bytesOf(message: IgmpMessage): Uint8Array {
  const bytes = new Uint8Array(igmpBytes(message));
  emitIgmp(bytes, 0, message);
  return bytes;
}

/** Bytes in hexadecimal with a right checksum put in. */
function wire(hex: string): Uint8Array {
  const bytes = Uint8Array.from(Buffer.from(hex.replaceAll(' ', ''), 'hex'));
  const sum = internetChecksum(bytes);
  bytes[2] = sum >> 8;
  bytes[3] = sum & 255;
  return bytes;
}

describe('messages as they are on the wire', () => {
  const cases: readonly (readonly [name: string, hex: string, message: IgmpMessage])[] = [
    ['a report of version 1', '12 00 0000 ef010203', { type: 'report', version: 1, group: GROUP }],
    ['a report of version 2', '16 00 0000 ef010203', { type: 'report', version: 2, group: GROUP }],
    ['a leave', '17 00 0000 ef010203', { type: 'leave', group: GROUP }],
    [
      'a query of version 1',
      '11 00 0000 00000000',
      {
        type: 'query',
        version: 1,
        group: 0,
        maxResponseTenths: 100,
        suppress: false,
        robustness: 0,
        intervalSeconds: 0,
        sources: [],
      },
    ],
    [
      'a query of version 2 about a group',
      '11 0a 0000 ef010203',
      {
        type: 'query',
        version: 2,
        group: GROUP,
        maxResponseTenths: 10,
        suppress: false,
        robustness: 0,
        intervalSeconds: 0,
        sources: [],
      },
    ],
    [
      'a query of version 3 about sources, with times in floating point',
      '11 8f 0000 ef010203 0a fe 0001 0a010101',
      {
        type: 'query',
        version: 3,
        group: GROUP,
        maxResponseTenths: 31 << 3,
        suppress: true,
        robustness: 2,
        intervalSeconds: 30 << 10,
        sources: [0x0a010101],
      },
    ],
    [
      'a report of version 3',
      '22 00 0000 0000 0002 04 00 0000 ef010203 01 00 0002 e8000001 0a010101 0a010102',
      {
        type: 'report of records',
        records: [
          { type: CHANGE_TO_EXCLUDE_MODE, group: GROUP, sources: [] },
          { type: MODE_IS_INCLUDE, group: 0xe8000001, sources: [0x0a010101, 0x0a010102] },
        ],
      },
    ],
  ];
  test.each(cases)('%s', (_name, hex, message) => {
    expect(parseIgmp(wire(hex))).toEqual(message);
    expect(Buffer.from(bytesOf(message)).toString('hex')).toBe(Buffer.from(wire(hex)).toString('hex'));
  });

  test('auxiliary data and what follows the records are skipped', () => {
    const hex = '22 00 0000 0000 0002 04 01 0000 ef010203 deadbeef 03 00 0000 ef010204 ffff';
    expect(parseIgmp(wire(hex))).toEqual({
      type: 'report of records',
      records: [
        { type: 4, group: GROUP, sources: [] },
        { type: 3, group: GROUP + 1, sources: [] },
      ],
    });
  });

  test.each([
    ['too short', '16 00 0000 ef0102'],
    ['type', '18 00 0000 ef010203'],
    ['length', '11 64 0000 00000000 02 7d'],
    ['length', '11 64 0000 00000000 02 7d 0001'],
    ['length', '22 00 0000 0000 0001'],
    ['length', '22 00 0000 0000 0001 04 00 0001 ef010203'],
    ['length', '22 00 0000 0000 0001 04 02 0000 ef010203 deadbeef'],
    ['length', '22 00 0000 0000 ffff 04 00 0000 ef010203'],
  ])('%s: %s', (fault, hex) => {
    expect(parseIgmp(wire(hex))).toBe(fault);
  });

  test('a wrong checksum', () => {
    const bytes = wire('16 00 0000 ef010203');
    bytes[7]! ^= 1;
    expect(parseIgmp(bytes)).toBe('checksum');
  });
});

const address = fc.integer({ min: 0, max: 0xffff_ffff });
const sources = fc.array(address, { maxLength: 5 });

test('reports of any records come back as they were', () => {
  const record = fc.record({ type: fc.integer({ min: 0, max: 255 }), group: address, sources });
  fc.assert(
    fc.property(fc.array(record, { maxLength: 20 }), (records) => {
      const message: IgmpMessage = { type: 'report of records', records };
      expect(parseIgmp(bytesOf(message))).toEqual(message);
    }),
    { numRuns: 100, seed: 1 },
  );
});

test('times come back as the next shorter one that can be said, at most a sixteenth off', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 31744 }), fc.integer({ min: 0, max: 31744 }), (tenths, seconds) => {
      const query = {
        type: 'query',
        version: 3,
        group: 0,
        maxResponseTenths: tenths,
        suppress: false,
        robustness: 2,
        intervalSeconds: seconds,
        sources: [],
      } as const;
      const parsed = parseIgmp(bytesOf(query));
      if (typeof parsed === 'string' || parsed.type !== 'query') throw new Error('no query');
      for (const [got, meant] of [
        [parsed.maxResponseTenths, tenths],
        [parsed.intervalSeconds, seconds],
      ] as const) {
        expect(got).toBeLessThanOrEqual(meant);
        expect(got).toBeGreaterThanOrEqual(meant - meant / 16);
      }
    }),
    { numRuns: 300, seed: 2 },
  );
});

test('no bytes make the parser throw', () => {
  fc.assert(
    fc.property(fc.constantFrom(0x11, 0x12, 0x16, 0x17, 0x22), fc.uint8Array({ maxLength: 80 }), (type, rest) => {
      const bytes = Uint8Array.of(type, 0, 0, 0, ...rest);
      const sum = internetChecksum(bytes);
      bytes[2] = sum >> 8;
      bytes[3] = sum & 255;
      parseIgmp(bytes);
    }),
    { numRuns: 2000, seed: 3 },
  );
});

test('a frame is for one link and alerts routers', () => {
  const query: IgmpMessage = {
    type: 'query',
    version: 3,
    group: 0,
    maxResponseTenths: 100,
    suppress: false,
    robustness: 2,
    intervalSeconds: 125,
    sources: [],
  };
  const addresses = { sourceMac: 0x020000000001, sourceIp: 0x0a010001, destinationIp: ALL_SYSTEMS_GROUP };
  const ethernet = parseEthernet(buildIgmpFrame(addresses, query));
  if (typeof ethernet === 'string') throw new Error(ethernet);
  expect(formatMac(ethernet.destination)).toBe('01:00:5e:00:00:01');
  const packet = parseIpv4Packet(ethernet.payload);
  if (typeof packet === 'string') throw new Error(packet);
  expect(packet).toMatchObject({ source: 0x0a010001, destination: ALL_SYSTEMS_GROUP, protocol: 2, timeToLive: 1 });
  expect([...packet.options]).toEqual([0x94, 4, 0, 0]);
  expect(parseIgmp(packet.payload)).toEqual(query);
});
