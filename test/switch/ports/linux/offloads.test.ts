import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  VNET_GSO_ECN,
  VNET_GSO_NONE,
  VNET_GSO_TCPV4,
  VNET_GSO_TCPV6,
  VNET_GSO_UDP_L4,
} from '../../../../switch/ports/linux/abi.ts';
import { completeChecksum, onesSum } from '../../../../switch/ports/linux/checksum.ts';
import { segmentFrame } from '../../../../switch/ports/linux/segmentation.ts';

const RUNS = { numRuns: 200, seed: 7 };

/** RFC 1071, byte by byte. */
function plainSum(bytes: Uint8Array): number {
  let sum = 0;
  for (let i = 0; i < bytes.length; i += 2) {
    sum += bytes[i]! * 256 + (bytes[i + 1] ?? 0);
    if (sum > 0xffff) sum -= 0xffff;
  }
  return sum;
}

/** 0 and 0xffff are the same number in ones' complement. */
const same = (a: number, b: number): boolean => a % 0xffff === b % 0xffff;

describe('the Internet checksum', () => {
  it('sums up any bytes at any address', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), fc.nat(3), fc.nat(20), (bytes, shift, start) => {
        const frame = new Uint8Array(new ArrayBuffer(bytes.length + shift), shift, bytes.length);
        frame.set(bytes);
        const from = Math.min(start, bytes.length);
        expect(same(onesSum(frame, from, frame.length), plainSum(bytes.slice(from)))).toBe(true);
      }),
      RUNS,
    );
  });

  it('is completed from the sum of the pseudo-header, so that everything adds up to ones', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 60, maxLength: 200 }), fc.nat(0xffff), (frame, pseudo) => {
        frame[40] = pseudo >>> 8;
        frame[41] = pseudo & 0xff;
        expect(completeChecksum(frame, 34, 6)).toBe(true);
        expect(same(plainSum(frame.slice(34)) + pseudo, 0)).toBe(true);
        expect((frame[40]! << 8) | frame[41]!).not.toBe(0);
      }),
      RUNS,
    );
  });

  it('is left alone where the field is outside the frame', () => {
    expect(completeChecksum(new Uint8Array(40), 34, 16)).toBe(false);
  });
});

const HEADER_BYTES = { 4: 20, 6: 40 } as const;

/** A packet as a local sender leaves it to its NIC. */
function superPacket(
  version: 4 | 6,
  protocol: 'tcp' | 'udp',
  payload: Uint8Array,
): { frame: Uint8Array; transport: number } {
  const transport = 14 + HEADER_BYTES[version];
  const headerBytes = protocol === 'tcp' ? 32 : 8;
  const frame = new Uint8Array(transport + headerBytes + payload.length);
  const view = new DataView(frame.buffer);
  view.setUint16(12, version === 4 ? 0x0800 : 0x86dd);
  if (version === 4) {
    frame.set(
      [0x45, 0, 0, 0, 0x12, 0xff, 0x40, 0, 64, protocol === 'tcp' ? 6 : 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2],
      14,
    );
    view.setUint16(16, frame.length - 14);
  } else {
    frame.set([0x60, 0, 0, 0, 0, 0, protocol === 'tcp' ? 6 : 17, 64], 14);
    for (let i = 0; i < 32; i++) frame[22 + i] = i;
  }
  if (protocol === 'tcp') {
    view.setUint32(transport + 4, 0xffff_ff00);
    // Header of 32 bytes; CWR, ACK, PSH, FIN.
    frame[transport + 12] = 8 << 4;
    frame[transport + 13] = 0x80 | 0x10 | 0x08 | 0x01;
  }
  frame.set(payload, transport + headerBytes);
  return { frame, transport };
}

/** Whether IPv4 and transport checksums of a frame add up. */
function checksumsAreRight(frame: Uint8Array, version: 4 | 6, protocol: 'tcp' | 'udp'): boolean {
  const transport = 14 + HEADER_BYTES[version];
  const pseudo = new Uint8Array(version === 4 ? 12 : 40);
  pseudo.set(version === 4 ? frame.slice(26, 34) : frame.slice(22, 54));
  const view = new DataView(pseudo.buffer);
  view.setUint16(pseudo.length - 4, protocol === 'tcp' ? 6 : 17);
  view.setUint16(pseudo.length - 2, frame.length - transport);
  const transportIsRight = same(plainSum(pseudo) + plainSum(frame.slice(transport)), 0);
  return transportIsRight && (version === 6 || same(plainSum(frame.slice(14, 34)), 0));
}

describe('a packet that the sender left to its NIC', () => {
  const kinds = [
    { version: 4, protocol: 'tcp', kind: VNET_GSO_TCPV4 | VNET_GSO_ECN },
    { version: 6, protocol: 'tcp', kind: VNET_GSO_TCPV6 },
    { version: 4, protocol: 'udp', kind: VNET_GSO_UDP_L4 },
    { version: 6, protocol: 'udp', kind: VNET_GSO_UDP_L4 },
  ] as const;

  it.each(kinds)('is cut: $protocol over IPv$version', ({ version, protocol, kind }) => {
    fc.assert(
      fc.property(
        fc.uint8Array({ minLength: 1, maxLength: 4000 }),
        fc.integer({ min: 1, max: 1500 }),
        (payload, size) => {
          const { frame, transport } = superPacket(version, protocol, payload);
          const headers = transport + (protocol === 'tcp' ? 32 : 8);
          const segments = segmentFrame(frame, kind, size, transport)!;
          expect(segments.map((segment) => segment.length - headers)).toEqual([
            ...Array.from({ length: Math.ceil(payload.length / size) - 1 }, () => size),
            payload.length - size * (Math.ceil(payload.length / size) - 1),
          ]);
          expect(Buffer.concat(segments.map((segment) => segment.subarray(headers))).equals(payload)).toBe(true);
          for (const [i, segment] of segments.entries()) {
            const view = new DataView(segment.buffer);
            const isLast = i === segments.length - 1;
            expect(checksumsAreRight(segment, version, protocol)).toBe(true);
            if (version === 4) {
              expect(view.getUint16(16)).toBe(segment.length - 14);
              expect(view.getUint16(18)).toBe((0x12ff + i) & 0xffff);
            } else {
              expect(view.getUint16(18)).toBe(segment.length - 54);
            }
            if (protocol === 'udp') expect(view.getUint16(transport + 4)).toBe(segment.length - transport);
            else {
              expect(view.getUint32(transport + 4)).toBe((0xffff_ff00 + i * size) >>> 0);
              expect(segment[transport + 13]).toBe((i === 0 ? 0x80 : 0) | 0x10 | (isLast ? 0x09 : 0));
            }
          }
        },
      ),
      { numRuns: 60, seed: 11 },
    );
  });

  it('is refused when it is of another kind, or its headers do not fit', () => {
    const { frame, transport } = superPacket(4, 'tcp', new Uint8Array(100));
    expect(segmentFrame(frame, VNET_GSO_NONE, 50, transport)).toBeUndefined();
    expect(segmentFrame(frame, 3, 50, transport)).toBeUndefined();
    expect(segmentFrame(frame, VNET_GSO_TCPV4, 0, transport)).toBeUndefined();
    expect(segmentFrame(frame, VNET_GSO_TCPV4, 50, 20)).toBeUndefined();
    expect(segmentFrame(frame, VNET_GSO_TCPV4, 50, frame.length)).toBeUndefined();
    expect(segmentFrame(frame.subarray(0, 50), VNET_GSO_TCPV4, 50, transport)).toBeUndefined();
    expect(segmentFrame(new Uint8Array(3), VNET_GSO_TCPV4, 50, 0)).toBeUndefined();
  });

  it('never makes the switch fail, whatever it is', () => {
    fc.assert(
      fc.property(
        fc.uint8Array({ maxLength: 200 }),
        fc.constantFrom(VNET_GSO_TCPV4, VNET_GSO_TCPV6, VNET_GSO_UDP_L4),
        fc.nat(300),
        fc.nat(300),
        (frame, kind, size, transport) => {
          segmentFrame(frame, kind, size, transport);
          completeChecksum(frame, transport, size);
        },
      ),
      { numRuns: 2000, seed: 5 },
    );
  });
});
