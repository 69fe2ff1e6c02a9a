import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { FabricGraph } from '../../../controller/topology/graph.ts';
import { createNeighbourResponder } from '../../../controller/topology/neighbours.ts';
import {
  ETHERTYPE_ARP,
  ETHERTYPE_IPV4,
  IP_PROTOCOL_ICMP,
  PUNT_REASON_ARP,
  PUNT_REASON_ICMP,
  PUNT_REASON_TTL,
} from '../../../p4/build/constants.ts';
import { loadTopology } from '../../../topologies/load.ts';
import { MAC_BROADCAST, parseIpv4, parseMac } from '../../../wire/packet/addresses.ts';
import { ARP_REPLY, ARP_REQUEST, emitArp, parseArp } from '../../../wire/packet/arp.ts';
import { emitEthernet, parseEthernet } from '../../../wire/packet/ethernet.ts';
import { emitIcmp, parseIcmp } from '../../../wire/packet/icmp.ts';
import { emitIpv4, parseIpv4Packet } from '../../../wire/packet/ipv4.ts';

const FILE = new URL('../../../topologies/leaf-spine.yaml', import.meta.url);
const graph = new FabricGraph(loadTopology(readFileSync(FILE, 'utf8'), 'leaf-spine.yaml'));
const responder = createNeighbourResponder(graph, 'leaf2');
const gateway = graph.switch('leaf2');
const host = graph.host('gpu17');
const neighbour = graph.host('gpu18');
const mac = (node: { mac: string }): number => parseMac(node.mac)!;
const ip = (node: { ip: string }): number => parseIpv4(node.ip)!;

function arpRequest(targetIp: number, operation: typeof ARP_REQUEST | typeof ARP_REPLY = ARP_REQUEST): Uint8Array {
  const frame = new Uint8Array(60);
  emitEthernet(frame, 0, { destination: MAC_BROADCAST, source: mac(host), etherType: ETHERTYPE_ARP });
  emitArp(frame, 14, { operation, senderMac: mac(host), senderIp: ip(host), targetMac: 0, targetIp });
  return frame;
}

function echoRequest(change: { destination?: number; type?: number; destinationMac?: number } = {}): Uint8Array {
  const payload = new TextEncoder().encode('what is there');
  const frame = new Uint8Array(14 + 20 + 8 + payload.length);
  emitEthernet(frame, 0, {
    destination: change.destinationMac ?? mac(gateway),
    source: mac(host),
    etherType: ETHERTYPE_IPV4,
  });
  emitIpv4(
    frame,
    14,
    {
      source: ip(host),
      destination: change.destination ?? ip(gateway),
      protocol: IP_PROTOCOL_ICMP,
      timeToLive: 3,
      trafficClass: 0,
    },
    8 + payload.length,
  );
  emitIcmp(frame, 34, { type: change.type ?? 8, code: 0, identifier: 7, sequence: 9, payload });
  return frame;
}

describe('ARP', () => {
  it('is answered for the gateway with its own address', () => {
    const reply = parseEthernet(responder.answer(arpRequest(ip(gateway)), host.port, PUNT_REASON_ARP)!);
    expect(reply).toMatchObject({ destination: mac(host), source: mac(gateway), etherType: ETHERTYPE_ARP });
    expect(parseArp((reply as { payload: Uint8Array }).payload)).toEqual({
      operation: ARP_REPLY,
      senderMac: mac(gateway),
      senderIp: ip(gateway),
      targetMac: mac(host),
      targetIp: ip(host),
    });
  });

  it('is answered for other hosts of the leaf with the address of the switch, which routes between them', () => {
    const reply = parseEthernet(responder.answer(arpRequest(ip(neighbour)), host.port, PUNT_REASON_ARP)!);
    expect(parseArp((reply as { payload: Uint8Array }).payload)).toMatchObject({
      senderMac: mac(gateway),
      senderIp: ip(neighbour),
    });
  });

  it('is not answered for the host that asks, for strangers, nor when it is a reply', () => {
    expect(responder.answer(arpRequest(ip(host)), host.port, PUNT_REASON_ARP)).toBeUndefined();
    expect(responder.answer(arpRequest(parseIpv4('10.2.9.9')!), host.port, PUNT_REASON_ARP)).toBeUndefined();
    expect(responder.answer(arpRequest(ip(graph.host('gpu01'))), host.port, PUNT_REASON_ARP)).toBeUndefined();
    expect(responder.answer(arpRequest(ip(gateway), ARP_REPLY), host.port, PUNT_REASON_ARP)).toBeUndefined();
  });
});

describe('an echo request', () => {
  it('to the switch is answered with what it carried', () => {
    const reply = parseEthernet(responder.answer(echoRequest(), host.port, PUNT_REASON_ICMP)!);
    if (typeof reply === 'string') throw new Error(reply);
    expect(reply).toMatchObject({ destination: mac(host), source: mac(gateway) });
    const packet = parseIpv4Packet(reply.payload);
    if (typeof packet === 'string') throw new Error(packet);
    expect(packet).toMatchObject({ source: ip(gateway), destination: ip(host), timeToLive: 64 });
    expect(parseIcmp(packet.payload)).toMatchObject({ type: 0, code: 0, identifier: 7, sequence: 9 });
    expect(new TextDecoder().decode(packet.payload.subarray(8))).toBe('what is there');
  });

  it('to somebody else, of another type, or broken is not', () => {
    expect(responder.answer(echoRequest({ destination: ip(neighbour) }), 2, PUNT_REASON_ICMP)).toBeUndefined();
    expect(responder.answer(echoRequest({ type: 0 }), 2, PUNT_REASON_ICMP)).toBeUndefined();
    expect(responder.answer(echoRequest({ destinationMac: mac(neighbour) }), 2, PUNT_REASON_ICMP)).toBeUndefined();
    for (let length = 0; length < echoRequest().length; length++)
      expect(responder.answer(echoRequest().subarray(0, length), 2, PUNT_REASON_ICMP)).toBeUndefined();
    const corrupt = echoRequest();
    corrupt[40]! ^= 1;
    expect(responder.answer(corrupt, 2, PUNT_REASON_ICMP)).toBeUndefined();
  });
});

describe('a packet whose time to live ends', () => {
  it('is answered by the switch with the start of the packet', () => {
    const frame = echoRequest({ destination: ip(graph.host('gpu64')) });
    const reply = parseEthernet(responder.answer(frame, host.port, PUNT_REASON_TTL)!);
    if (typeof reply === 'string') throw new Error(reply);
    const packet = parseIpv4Packet(reply.payload);
    if (typeof packet === 'string') throw new Error(packet);
    expect(packet).toMatchObject({ source: ip(gateway), destination: ip(host) });
    const message = parseIcmp(packet.payload);
    expect(message).toMatchObject({ type: 11, code: 0, payload: frame.slice(14, 14 + 20 + 8) });
  });

  it('is not answered when it is an answer itself', () => {
    expect(responder.answer(echoRequest({ type: 0 }), 2, PUNT_REASON_TTL)).toBeUndefined();
    expect(responder.answer(echoRequest({ type: 11 }), 2, PUNT_REASON_TTL)).toBeUndefined();
  });
});
