import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ETHERTYPE_ARP, ETHERTYPE_IPV4, IP_PROTOCOL_UDP } from '../../../p4/build/constants.ts';
import { ARP_BYTES, ARP_REQUEST, emitArp, parseArp } from '../../../wire/packet/arp.ts';
import { finishChecksum, internetChecksum, sumWords } from '../../../wire/packet/checksum.ts';
import { emitEthernet, parseEthernet } from '../../../wire/packet/ethernet.ts';
import { emitIcmp, ICMP_ECHO_REQUEST, parseIcmp } from '../../../wire/packet/icmp.ts';
import { emitIpv4, type Ipv4Packet, parseIpv4Packet } from '../../../wire/packet/ipv4.ts';
import { buildUdpFrame, parseUdp, UDP_FRAME_OVERHEAD_BYTES } from '../../../wire/packet/udp.ts';

const ENDPOINTS = {
  sourceMac: 0x020000000001,
  destinationMac: 0x020000000002,
  sourceIp: 0x0a000001,
  destinationIp: 0x0a000002,
  sourcePort: 56816,
  destinationPort: 56832,
};

function valid<T>(result: T | string): T {
  if (typeof result === 'string') throw new Error(`fault: ${result}`);
  return result;
}

function ipv4Of(frame: Uint8Array): Ipv4Packet {
  return valid(parseIpv4Packet(valid(parseEthernet(frame)).payload));
}

describe('internet checksum', () => {
  test('the example of RFC 1071, section 3', () => {
    const bytes = Uint8Array.from([0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]);
    expect(~internetChecksum(bytes) & 0xffff).toBe(0xddf2);
  });

  test('odd lengths count the last byte as a high half', () => {
    expect(internetChecksum(Uint8Array.from([0x12, 0x34, 0x56]))).toBe(
      internetChecksum(Uint8Array.from([0x12, 0x34, 0x56, 0])),
    );
  });

  test('a long range does not lose carries', () => {
    expect(internetChecksum(new Uint8Array(131072).fill(0xff))).toBe(0);
    expect(finishChecksum(sumWords(new Uint8Array(65536).fill(0xff), 0, 65536, 0x1_ffff_fffe))).toBe(0);
  });
});

test('UDP frames round-trip', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (payload) => {
      const frame = buildUdpFrame(ENDPOINTS, payload);
      expect(frame.length).toBe(UDP_FRAME_OVERHEAD_BYTES + payload.length);
      const ethernet = valid(parseEthernet(frame));
      expect(ethernet).toMatchObject({
        destination: ENDPOINTS.destinationMac,
        source: ENDPOINTS.sourceMac,
        etherType: ETHERTYPE_IPV4,
      });
      const ip = valid(parseIpv4Packet(ethernet.payload));
      expect(ip).toMatchObject({
        source: ENDPOINTS.sourceIp,
        destination: ENDPOINTS.destinationIp,
        protocol: IP_PROTOCOL_UDP,
        timeToLive: 64,
        isFragment: false,
      });
      const udp = valid(parseUdp(ip));
      expect([udp.sourcePort, udp.destinationPort]).toEqual([56816, 56832]);
      expect(Buffer.from(udp.payload).equals(payload)).toBe(true);
    }),
    { seed: 3, numRuns: 50 },
  );
});

test('padding of short Ethernet frames is not payload', () => {
  const frame = buildUdpFrame(ENDPOINTS, Uint8Array.of(7));
  const padded = new Uint8Array(60);
  padded.set(frame);
  expect([...valid(parseUdp(ipv4Of(padded))).payload]).toEqual([7]);
});

test('a UDP checksum that is there is checked', () => {
  const frame = buildUdpFrame(ENDPOINTS, Uint8Array.of(1, 2, 3));
  const ip = ipv4Of(frame);
  const bytes = ip.payload;
  const pseudo = new Uint8Array(12);
  pseudo.set([10, 0, 0, 1, 10, 0, 0, 2, 0, 17, 0, bytes.length]);
  const checksum = finishChecksum(sumWords(bytes, 0, bytes.length, sumWords(pseudo, 0, 12)));
  bytes[6] = checksum >> 8;
  bytes[7] = checksum;
  expect(valid(parseUdp(ip)).payload.length).toBe(3);
  bytes[9] ^= 1;
  expect(parseUdp(ip)).toBe('checksum');
});

test('faults of IPv4', () => {
  const whole = buildUdpFrame(ENDPOINTS, new Uint8Array(10)).subarray(14);
  const changed = (change: (bytes: Uint8Array) => void): unknown => {
    const bytes = whole.slice();
    change(bytes);
    return parseIpv4Packet(bytes);
  };
  expect(parseIpv4Packet(whole.subarray(0, 19))).toBe('too short');
  expect(changed((b) => b.fill(0x65, 0, 1))).toBe('version');
  expect(changed((b) => b.fill(0x44, 0, 1))).toBe('header length');
  expect(changed((b) => b.fill(0xff, 2, 4))).toBe('total length');
  expect(changed((b) => b.fill(1, 8, 9))).toBe('checksum');
});

test('fragments and options are seen', () => {
  const bytes = new Uint8Array(24);
  emitIpv4(bytes, 0, { source: 1, destination: 2, protocol: 17, timeToLive: 1, trafficClass: 0 }, 4);
  bytes[0] = 0x46;
  bytes[6] = 0x20;
  bytes[10] = 0;
  bytes[11] = 0;
  const checksum = internetChecksum(bytes, 0, 24);
  bytes[10] = checksum >> 8;
  bytes[11] = checksum;
  const packet = valid(parseIpv4Packet(bytes));
  expect(packet.isFragment).toBe(true);
  expect(packet.options.length).toBe(4);
  expect(packet.payload.length).toBe(0);
});

test('ARP and ICMP round-trip and name their faults', () => {
  const arp = { operation: ARP_REQUEST, senderMac: 2, senderIp: 3, targetMac: 0, targetIp: 4 } as const;
  const bytes = new Uint8Array(ARP_BYTES);
  emitArp(bytes, 0, arp);
  expect(parseArp(bytes)).toEqual(arp);
  expect(parseArp(bytes.subarray(1))).toBe('too short');
  bytes[7] = 9;
  expect(parseArp(bytes)).toBe('operation');
  bytes[5] = 6;
  expect(parseArp(bytes)).toBe('not IPv4 over Ethernet');

  const echo = { type: ICMP_ECHO_REQUEST, code: 0, identifier: 5, sequence: 6, payload: Uint8Array.of(1, 2, 3) };
  const message = new Uint8Array(11);
  emitIcmp(message, 0, echo);
  expect(parseIcmp(message)).toEqual(echo);
  message[10] ^= 1;
  expect(parseIcmp(message)).toBe('checksum');
});

test('faults of Ethernet', () => {
  expect(parseEthernet(new Uint8Array(13))).toBe('too short');
  expect(parseEthernet(new Uint8Array(60))).toBe('no EtherType');
  const bytes = new Uint8Array(14);
  emitEthernet(bytes, 0, { destination: 1, source: 2, etherType: ETHERTYPE_ARP });
  expect(parseEthernet(bytes)).toMatchObject({ destination: 1, source: 2, etherType: ETHERTYPE_ARP });
});

test('no parser throws on any bytes', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 100 }), (bytes) => {
      parseEthernet(bytes);
      parseArp(bytes);
      parseIcmp(bytes);
      parseIpv4Packet(bytes);
      parseUdp({
        source: 1,
        destination: 2,
        protocol: 17,
        timeToLive: 1,
        trafficClass: 0,
        identification: 0,
        isFragment: false,
        options: bytes,
        payload: bytes,
      });
    }),
    { seed: 4, numRuns: 1000 },
  );
});
