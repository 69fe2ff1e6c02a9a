import { describe, expect, test } from 'vitest';
import { VirtualScheduler } from '../../base/clock.ts';
import { VirtualHost } from '../../lab/host.ts';
import { Wire } from '../../switch/ports/wire.ts';
import { formatIpv4, formatMac, multicastMac, parseIpv4, parseMac } from '../../wire/packet/addresses.ts';
import { ARP_REPLY, ARP_REQUEST, emitArp, parseArp } from '../../wire/packet/arp.ts';
import { ETHERNET_HEADER_BYTES, emitEthernet, parseEthernet } from '../../wire/packet/ethernet.ts';
import { emitIcmp, parseIcmp } from '../../wire/packet/icmp.ts';
import {
  ALL_SYSTEMS_GROUP,
  buildIgmpFrame,
  CHANGE_TO_EXCLUDE_MODE,
  CHANGE_TO_INCLUDE_MODE,
  MODE_IS_EXCLUDE,
  parseIgmp,
} from '../../wire/packet/igmp.ts';
import { emitIpv4, parseIpv4Packet } from '../../wire/packet/ipv4.ts';
import { buildUdpFrame, parseUdp } from '../../wire/packet/udp.ts';

const HOST = { name: 'gpu01', mac: '02:00:00:01:00:05', ip: '10.1.1.5', gatewayIp: '10.1.0.1', mtuBytes: 1500 };
const HOST_MAC = parseMac(HOST.mac)!;
const HOST_IP = parseIpv4(HOST.ip)!;
const GATEWAY_MAC = parseMac('02:00:00:00:00:01')!;
const GATEWAY_IP = parseIpv4(HOST.gatewayIp)!;
const FAR_IP = parseIpv4('10.2.1.7')!;

/** A host on one end of a wire, the test on the other. */
function bench() {
  const scheduler = new VirtualScheduler();
  const wire = new Wire(scheduler, { rateBitsPerSecond: 1e9, delayUs: 5, queueFrames: 1000 });
  const host = new VirtualHost(wire.a, scheduler, HOST);
  const seen: Uint8Array[] = [];
  wire.b.onFrame = (frame) => seen.push(frame);
  return { scheduler, wire, host, seen };
}

function arpFrame(operation: 1 | 2, senderIp: number, targetIp: number, destination = HOST_MAC): Uint8Array {
  const frame = new Uint8Array(60); // padded, as real ones are
  emitEthernet(frame, 0, { destination, source: GATEWAY_MAC, etherType: 0x0806 });
  emitArp(frame, ETHERNET_HEADER_BYTES, {
    operation,
    senderMac: GATEWAY_MAC,
    senderIp,
    targetMac: operation === ARP_REPLY ? HOST_MAC : 0,
    targetIp,
  });
  return frame;
}

function udpFrameTo(port: number, payload: Uint8Array): Uint8Array {
  return buildUdpFrame(
    {
      sourceMac: GATEWAY_MAC,
      destinationMac: HOST_MAC,
      sourceIp: FAR_IP,
      destinationIp: HOST_IP,
      sourcePort: 4000,
      destinationPort: port,
    },
    payload,
  );
}

function arpOf(frame: Uint8Array) {
  const ethernet = parseEthernet(frame);
  if (typeof ethernet === 'string') throw new Error(ethernet);
  const arp = parseArp(ethernet.payload);
  if (typeof arp === 'string') throw new Error(arp);
  return { ethernet, arp };
}

describe('ARP', () => {
  test('datagrams wait for the gateway and leave in order when it answers', () => {
    const { scheduler, wire, host, seen } = bench();
    const socket = host.openSocket(56816);
    for (const byte of [1, 2, 3]) socket.send('10.2.1.7', 56816, Uint8Array.of(byte));
    scheduler.runUntil(50_000);
    expect(seen).toHaveLength(1);
    const { ethernet, arp } = arpOf(seen[0]!);
    expect(formatMac(ethernet.destination)).toBe('ff:ff:ff:ff:ff:ff');
    expect(arp).toMatchObject({ operation: ARP_REQUEST, senderMac: HOST_MAC, senderIp: HOST_IP, targetIp: GATEWAY_IP });
    wire.b.send(arpFrame(ARP_REPLY, GATEWAY_IP, HOST_IP));
    scheduler.runUntil(200_000);
    const datagrams = seen.slice(1).map((frame) => {
      const { destination, payload } = parseEthernet(frame) as { destination: number; payload: Uint8Array };
      expect(destination).toBe(GATEWAY_MAC);
      const packet = parseIpv4Packet(payload);
      if (typeof packet === 'string') throw new Error(packet);
      expect(packet.destination).toBe(FAR_IP);
      return parseUdp(packet);
    });
    expect(datagrams).toEqual(
      [1, 2, 3].map((byte) => ({ sourcePort: 56816, destinationPort: 56816, payload: Uint8Array.of(byte) })),
    );
  });

  test('a lost request is repeated; when nobody answers, what waits is dropped and counted', () => {
    const { scheduler, host, seen } = bench();
    const socket = host.openSocket(1000);
    for (let i = 0; i < 300; i++) socket.send('10.2.1.7', 1, Uint8Array.of(1));
    expect(host.drops.noGateway).toBe(300 - 256);
    scheduler.runUntil(60_000_000);
    expect(seen.length).toBe(30);
    expect(host.drops.noGateway).toBe(300);
    socket.send('10.2.1.7', 1, Uint8Array.of(1));
    scheduler.runUntil(60_050_000);
    expect(seen.length).toBe(31);
  });

  test('after a minute the address is asked for again, and used meanwhile', () => {
    const { scheduler, wire, host, seen } = bench();
    const socket = host.openSocket(1000);
    wire.b.send(arpFrame(ARP_REPLY, GATEWAY_IP, HOST_IP));
    scheduler.runUntil(61_000_000);
    socket.send('10.2.1.7', 1, Uint8Array.of(1));
    socket.send('10.2.1.7', 1, Uint8Array.of(1));
    scheduler.runUntil(61_050_000);
    expect(seen.map((frame) => (parseEthernet(frame) as { etherType: number }).etherType)).toEqual([
      0x0806, 0x0800, 0x0800,
    ]);
  });

  test("answers for its own address only, and believes only its gateway's answer", () => {
    const { scheduler, wire, host, seen } = bench();
    wire.b.send(arpFrame(ARP_REQUEST, GATEWAY_IP, HOST_IP, 0xffff_ffff_ffff));
    wire.b.send(arpFrame(ARP_REQUEST, GATEWAY_IP, HOST_IP + 1, 0xffff_ffff_ffff));
    scheduler.runUntil(1000);
    expect(seen).toHaveLength(1);
    expect(arpOf(seen[0]!).arp).toEqual({
      operation: ARP_REPLY,
      senderMac: HOST_MAC,
      senderIp: HOST_IP,
      targetMac: GATEWAY_MAC,
      targetIp: GATEWAY_IP,
    });
    const other = bench();
    other.wire.b.send(arpFrame(ARP_REPLY, FAR_IP, HOST_IP));
    other.scheduler.runUntil(1000);
    expect(other.host.resolveGateway()).toBe(false);
    expect(host.resolveGateway()).toBe(true);
  });
});

describe('UDP', () => {
  test('a datagram reaches the socket of its port with its sender', () => {
    const { scheduler, wire, host } = bench();
    const received: unknown[] = [];
    host.openSocket(56832).onDatagram = (payload, ip, port) => received.push([[...payload], ip, port]);
    wire.b.send(udpFrameTo(56832, Uint8Array.of(7, 8)));
    wire.b.send(udpFrameTo(56833, Uint8Array.of(9)));
    scheduler.runUntil(1000);
    expect(received).toEqual([[[7, 8], '10.2.1.7', 4000]]);
    expect(host.drops.noSocket).toBe(1);
  });

  test('packets for others and damaged ones are dropped and counted', () => {
    const { scheduler, wire, host } = bench();
    let received = 0;
    host.openSocket(56832).onDatagram = () => received++;
    const otherMac = udpFrameTo(56832, Uint8Array.of(1));
    otherMac[5]! ^= 1;
    const badIpChecksum = udpFrameTo(56832, Uint8Array.of(1));
    badIpChecksum[24]! ^= 1;
    const badUdpChecksum = udpFrameTo(56832, Uint8Array.of(1));
    badUdpChecksum[41] = 1;
    for (const frame of [otherMac, badIpChecksum, badUdpChecksum, new Uint8Array(10)]) wire.b.send(frame);
    scheduler.runUntil(1000);
    expect(received).toBe(0);
    expect(host.drops).toEqual({ notForUs: 1, malformed: 3, noSocket: 0, noGateway: 0 });
  });

  test('a port is open once, and again after it was closed', () => {
    const { host } = bench();
    const socket = host.openSocket(56832);
    expect(() => host.openSocket(56832)).toThrow(/in use/);
    socket.close();
    socket.close();
    const next = host.openSocket(56832);
    socket.close();
    expect(() => host.openSocket(56832)).toThrow(/in use/);
    next.close();
    expect(() => host.openSocket(0)).toThrow(/not a UDP port/);
  });

  test('what does not fit into a packet is refused', () => {
    const { host } = bench();
    const socket = host.openSocket(56832);
    expect(() => socket.send('10.2.1.7', 1, new Uint8Array(1473))).toThrow(/At most|does not fit/);
    socket.send('10.2.1.7', 1, new Uint8Array(1472));
  });
});

describe('multicast', () => {
  const GROUP = '239.1.2.3';
  const igmpOf = (frame: Uint8Array) => {
    const ethernet = parseEthernet(frame);
    if (typeof ethernet === 'string') throw new Error(ethernet);
    const packet = parseIpv4Packet(ethernet.payload);
    if (typeof packet === 'string') throw new Error(packet);
    const { source, destination, timeToLive } = packet;
    return [
      formatMac(ethernet.destination),
      formatIpv4(source),
      formatIpv4(destination),
      timeToLive,
      parseIgmp(packet.payload),
    ];
  };
  const records = (type: number) => ({
    type: 'report of records',
    records: [{ type, group: parseIpv4(GROUP), sources: [] }],
  });

  test('a host joins and leaves by version 3, twice in case one is lost', () => {
    const { scheduler, host, seen } = bench();
    host.joinGroup(GROUP);
    host.joinGroup(GROUP);
    scheduler.runUntil(5_000_000);
    host.leaveGroup(GROUP);
    host.leaveGroup(GROUP);
    scheduler.runUntil(10_000_000);
    expect(seen.map(igmpOf)).toEqual(
      [CHANGE_TO_EXCLUDE_MODE, CHANGE_TO_EXCLUDE_MODE, CHANGE_TO_INCLUDE_MODE, CHANGE_TO_INCLUDE_MODE].map((type) => [
        '01:00:5e:00:00:16',
        HOST.ip,
        '224.0.0.22',
        1,
        records(type),
      ]),
    );
    expect(() => host.joinGroup('10.1.1.1')).toThrow(/not an IPv4 multicast address/);
  });

  test('a host joins and leaves by the earlier versions', () => {
    const { scheduler, host, seen } = bench();
    host.joinGroup('239.1.2.1', 1);
    host.joinGroup('239.1.2.2', 2);
    host.leaveGroup('239.1.2.1');
    host.leaveGroup('239.1.2.2');
    scheduler.runUntil(500_000);
    expect(seen.map(igmpOf).map((fields) => fields.slice(2))).toEqual([
      ['239.1.2.1', 1, { type: 'report', version: 1, group: parseIpv4('239.1.2.1') }],
      ['239.1.2.2', 1, { type: 'report', version: 2, group: parseIpv4('239.1.2.2') }],
      ['224.0.0.2', 1, { type: 'leave', group: parseIpv4('239.1.2.2') }],
    ]);
    // Nothing that is no longer true is repeated.
    scheduler.runUntil(5_000_000);
    expect(seen).toHaveLength(4);
  });

  test('a host answers queries, and only queries', () => {
    const { scheduler, wire, host, seen } = bench();
    host.joinGroup(GROUP);
    scheduler.runUntil(5_000_000);
    seen.length = 0;
    const from = { sourceMac: GATEWAY_MAC, sourceIp: GATEWAY_IP, destinationIp: ALL_SYSTEMS_GROUP };
    const none = { suppress: false, robustness: 0, intervalSeconds: 0, sources: [] };
    wire.b.send(buildIgmpFrame(from, { type: 'query', version: 2, group: 0, maxResponseTenths: 1, ...none }));
    wire.b.send(buildIgmpFrame(from, { type: 'leave', group: 0 }));
    const damaged = buildIgmpFrame(from, { type: 'leave', group: 0 });
    damaged[38]! ^= 1;
    wire.b.send(damaged);
    scheduler.runUntil(6_000_000);
    expect(seen.map(igmpOf)).toEqual([['01:00:5e:00:00:16', HOST.ip, '224.0.0.22', 1, records(MODE_IS_EXCLUDE)]]);
    expect(host.drops).toMatchObject({ notForUs: 1, malformed: 1 });
  });

  test('datagrams of groups reach the sockets of members, and go out to the group without a gateway', () => {
    const { scheduler, wire, host, seen } = bench();
    const heard: number[] = [];
    const socket = host.openSocket(5000);
    socket.onDatagram = (payload) => heard.push(payload[0]!);
    const say = (byte: number): void => {
      const addresses = { sourceMac: GATEWAY_MAC, sourceIp: FAR_IP, sourcePort: 1, destinationPort: 5000 };
      const group = parseIpv4(GROUP)!;
      const to = { destinationIp: group, destinationMac: multicastMac(group) };
      wire.b.send(buildUdpFrame({ ...addresses, ...to }, Uint8Array.of(byte)));
      scheduler.runUntil(scheduler.nowUs() + 1000);
    };
    say(1);
    host.joinGroup(GROUP);
    say(2);
    host.leaveGroup(GROUP);
    say(3);
    expect(heard).toEqual([2]);
    seen.length = 0;
    socket.send(GROUP, 5000, Uint8Array.of(9));
    scheduler.runUntil(scheduler.nowUs() + 1000);
    expect(seen.map((frame) => formatMac((parseEthernet(frame) as { destination: number }).destination))).toEqual([
      '01:00:5e:01:02:03',
    ]);
    host.close();
  });
});

test('answers a ping', () => {
  const { scheduler, wire, seen } = bench();
  wire.b.send(arpFrame(ARP_REPLY, GATEWAY_IP, HOST_IP));
  const frame = new Uint8Array(14 + 20 + 8 + 3);
  emitEthernet(frame, 0, { destination: HOST_MAC, source: GATEWAY_MAC, etherType: 0x0800 });
  emitIpv4(frame, 14, { source: FAR_IP, destination: HOST_IP, protocol: 1, timeToLive: 60, trafficClass: 0 }, 8 + 3);
  emitIcmp(frame, 34, { type: 8, code: 0, identifier: 77, sequence: 5, payload: Uint8Array.of(1, 2, 3) });
  wire.b.send(frame);
  scheduler.runUntil(1000);
  expect(seen).toHaveLength(1);
  const packet = parseIpv4Packet(seen[0]!.subarray(14));
  if (typeof packet === 'string') throw new Error(packet);
  expect(packet).toMatchObject({ source: HOST_IP, destination: FAR_IP });
  expect(parseIcmp(packet.payload)).toEqual({
    type: 0,
    code: 0,
    identifier: 77,
    sequence: 5,
    payload: Uint8Array.of(1, 2, 3),
  });
});
