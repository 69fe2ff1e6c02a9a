import { ETHERTYPE_IPV4, IP_PROTOCOL_UDP } from '../../p4/build/constants.ts';
import { finishChecksum, sumWords } from './checksum.ts';
import { ETHERNET_HEADER_BYTES, emitEthernet } from './ethernet.ts';
import { readUint16, writeUint16 } from './integers.ts';
import { emitIpv4, IPV4_HEADER_BYTES, type Ipv4Packet } from './ipv4.ts';

export const UDP_HEADER_BYTES = 8;
/** What Ethernet, IPv4 and UDP add to a datagram. */
export const UDP_FRAME_OVERHEAD_BYTES = ETHERNET_HEADER_BYTES + IPV4_HEADER_BYTES + UDP_HEADER_BYTES;

const DEFAULT_TIME_TO_LIVE = 64;

/** A datagram with a right length and checksum (RFC 768). */
export interface UdpDatagram {
  readonly sourcePort: number;
  readonly destinationPort: number;
  readonly payload: Uint8Array;
}

export type UdpFault = 'too short' | 'length' | 'checksum';

/** @param packet a whole (not fragmented) IPv4 packet whose protocol is UDP */
export function parseUdp(packet: Ipv4Packet): UdpDatagram | UdpFault {
  const bytes = packet.payload;
  if (bytes.length < UDP_HEADER_BYTES) return 'too short';
  const length = readUint16(bytes, 4);
  if (length < UDP_HEADER_BYTES || length > bytes.length) return 'length';
  // 0 says that the sender computed none.
  if (readUint16(bytes, 6) !== 0 && finishChecksum(sumWords(bytes, 0, length, pseudoHeaderSum(packet, length))) !== 0)
    return 'checksum';
  return {
    sourcePort: readUint16(bytes, 0),
    destinationPort: readUint16(bytes, 2),
    payload: bytes.subarray(UDP_HEADER_BYTES, length),
  };
}

export interface UdpEndpoints {
  readonly sourceMac: number;
  readonly destinationMac: number;
  readonly sourceIp: number;
  readonly destinationIp: number;
  readonly sourcePort: number;
  readonly destinationPort: number;
}

/**
 * A new frame around a datagram, without UDP checksum: switches change what it would cover, and the fabric header has its own.
 * The payload is copied once.
 */
export function buildUdpFrame(endpoints: UdpEndpoints, payload: Uint8Array): Uint8Array {
  const frame = new Uint8Array(UDP_FRAME_OVERHEAD_BYTES + payload.length);
  emitEthernet(frame, 0, {
    destination: endpoints.destinationMac,
    source: endpoints.sourceMac,
    etherType: ETHERTYPE_IPV4,
  });
  const datagramBytes = UDP_HEADER_BYTES + payload.length;
  emitIpv4(
    frame,
    ETHERNET_HEADER_BYTES,
    {
      source: endpoints.sourceIp,
      destination: endpoints.destinationIp,
      protocol: IP_PROTOCOL_UDP,
      timeToLive: DEFAULT_TIME_TO_LIVE,
      trafficClass: 0,
    },
    datagramBytes,
  );
  const udp = ETHERNET_HEADER_BYTES + IPV4_HEADER_BYTES;
  writeUint16(frame, udp, endpoints.sourcePort);
  writeUint16(frame, udp + 2, endpoints.destinationPort);
  writeUint16(frame, udp + 4, datagramBytes);
  frame.set(payload, udp + UDP_HEADER_BYTES);
  return frame;
}

function pseudoHeaderSum(packet: Ipv4Packet, length: number): number {
  return (
    (packet.source >>> 16) +
    (packet.source & 0xffff) +
    (packet.destination >>> 16) +
    (packet.destination & 0xffff) +
    packet.protocol +
    length
  );
}
