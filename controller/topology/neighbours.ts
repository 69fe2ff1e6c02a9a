import { ETHERTYPE_ARP, ETHERTYPE_IPV4, IP_PROTOCOL_ICMP, PUNT_REASON_TTL } from '../../p4/build/constants.ts';
import type { SwitchNode } from '../../topologies/types.ts';
import { MAC_BROADCAST, parseIpv4, parseMac } from '../../wire/packet/addresses.ts';
import { ARP_BYTES, ARP_REPLY, ARP_REQUEST, emitArp, parseArp } from '../../wire/packet/arp.ts';
import { ETHERNET_HEADER_BYTES, type EthernetFrame, emitEthernet, parseEthernet } from '../../wire/packet/ethernet.ts';
import {
  emitIcmp,
  ICMP_ECHO_REPLY,
  ICMP_ECHO_REQUEST,
  ICMP_HEADER_BYTES,
  type IcmpMessage,
  parseIcmp,
} from '../../wire/packet/icmp.ts';
import { emitIpv4, IPV4_HEADER_BYTES, type Ipv4Packet, parseIpv4Packet } from '../../wire/packet/ipv4.ts';
import type { FabricGraph } from './graph.ts';

const REPLY_TIME_TO_LIVE = 64;
const ICMP_TIME_EXCEEDED = 11;
/** Of the packet in question, after its header: enough for the ports. */
const QUOTED_PAYLOAD_BYTES = 8;

/** Answers for one switch: what hosts have to hear before they can send anything at all. */
export interface NeighbourResponder {
  /**
   * @param frame a punted frame: Ethernet without the packet-in header
   * @param ingressPort where it came in
   * @param reason why it came up: one of the PUNT_REASON_ constants
   * @returns the frame to send out of the same port, or undefined when there is nothing to answer
   */
  answer(frame: Uint8Array, ingressPort: number, reason: number): Uint8Array | undefined;
}

/**
 * Answers ARP requests (RFC 826) with the switch's own MAC address: for its own IP address, and for every other host behind it, since the switch
 * routes between its ports and hosts of one leaf share a prefix (RFC 1027). A host that asks for its own address (RFC 5227) hears nothing.
 * Answers ICMP echo requests to the switch's own address, and packets whose time to live ends here with time exceeded (RFC 792).
 */
export function createNeighbourResponder(graph: FabricGraph, switchName: string): NeighbourResponder {
  const own = addressesOf(graph.switch(switchName));
  const portByIp = new Map(graph.hostsOf(switchName).map((host) => [parseIpv4(host.ip)!, host.port]));

  function answerArp(frame: EthernetFrame, ingressPort: number): Uint8Array | undefined {
    const request = parseArp(frame.payload);
    if (typeof request === 'string' || request.operation !== ARP_REQUEST) return undefined;
    const behind = portByIp.get(request.targetIp);
    if (request.targetIp !== own.ip && (behind === undefined || behind === ingressPort)) return undefined;
    const reply = new Uint8Array(ETHERNET_HEADER_BYTES + ARP_BYTES);
    emitEthernet(reply, 0, { destination: frame.source, source: own.mac, etherType: ETHERTYPE_ARP });
    emitArp(reply, ETHERNET_HEADER_BYTES, {
      operation: ARP_REPLY,
      senderMac: own.mac,
      senderIp: request.targetIp,
      targetMac: request.senderMac,
      targetIp: request.senderIp,
    });
    return reply;
  }

  function answerEcho(frame: EthernetFrame, packet: Ipv4Packet): Uint8Array | undefined {
    if (packet.isFragment || packet.destination !== own.ip || packet.protocol !== IP_PROTOCOL_ICMP) return undefined;
    const request = parseIcmp(packet.payload);
    if (typeof request === 'string' || request.type !== ICMP_ECHO_REQUEST) return undefined;
    return icmpTo(frame, packet, { ...request, type: ICMP_ECHO_REPLY, code: 0 });
  }

  /** Never about ICMP that is not a question, or about fragments, so that errors do not breed errors (RFC 1122, 3.2.2). */
  function answerTimeExceeded(frame: EthernetFrame, packet: Ipv4Packet): Uint8Array | undefined {
    if (packet.isFragment) return undefined;
    if (packet.protocol === IP_PROTOCOL_ICMP && packet.payload[0] !== ICMP_ECHO_REQUEST) return undefined;
    const quoted = frame.payload.slice(0, IPV4_HEADER_BYTES + packet.options.length + QUOTED_PAYLOAD_BYTES);
    return icmpTo(frame, packet, {
      type: ICMP_TIME_EXCEEDED,
      code: 0,
      identifier: 0,
      sequence: 0,
      payload: quoted,
    });
  }

  function icmpTo(frame: EthernetFrame, packet: Ipv4Packet, message: IcmpMessage): Uint8Array {
    const icmpBytes = ICMP_HEADER_BYTES + message.payload.length;
    const reply = new Uint8Array(ETHERNET_HEADER_BYTES + IPV4_HEADER_BYTES + icmpBytes);
    emitEthernet(reply, 0, { destination: frame.source, source: own.mac, etherType: ETHERTYPE_IPV4 });
    const header = {
      source: own.ip,
      destination: packet.source,
      protocol: IP_PROTOCOL_ICMP,
      timeToLive: REPLY_TIME_TO_LIVE,
      trafficClass: packet.trafficClass,
    };
    emitIpv4(reply, ETHERNET_HEADER_BYTES, header, icmpBytes);
    emitIcmp(reply, ETHERNET_HEADER_BYTES + IPV4_HEADER_BYTES, message);
    return reply;
  }

  return {
    answer(bytes, ingressPort, reason) {
      const frame = parseEthernet(bytes);
      if (typeof frame === 'string') return undefined;
      if (frame.destination !== own.mac && frame.destination !== MAC_BROADCAST) return undefined;
      if (frame.etherType === ETHERTYPE_ARP) return answerArp(frame, ingressPort);
      if (frame.etherType !== ETHERTYPE_IPV4 || frame.destination !== own.mac) return undefined;
      const packet = parseIpv4Packet(frame.payload);
      if (typeof packet === 'string') return undefined;
      return reason === PUNT_REASON_TTL ? answerTimeExceeded(frame, packet) : answerEcho(frame, packet);
    },
  };
}

function addressesOf(node: SwitchNode): { readonly mac: number; readonly ip: number } {
  return { mac: parseMac(node.mac)!, ip: parseIpv4(node.ip)! };
}
