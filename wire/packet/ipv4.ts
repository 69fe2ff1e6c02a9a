import { internetChecksum } from './checksum.ts';
import { readUint16, readUint32, writeUint16, writeUint32 } from './integers.ts';

/** Without options: what we emit. */
export const IPV4_HEADER_BYTES = 20;

const DONT_FRAGMENT = 0x4000;
const MORE_FRAGMENTS = 0x2000;
const FRAGMENT_OFFSET = 0x1fff;

export interface Ipv4Header {
  readonly source: number;
  readonly destination: number;
  readonly protocol: number;
  readonly timeToLive: number;
  /** DSCP and ECN (RFC 2474, RFC 3168). */
  readonly trafficClass: number;
}

/** A packet whose version, lengths and header checksum are right (RFC 791). */
export interface Ipv4Packet extends Ipv4Header {
  readonly identification: number;
  /** Part of a fragmented packet: first, middle or last. */
  readonly isFragment: boolean;
  /** Empty in most packets. */
  readonly options: Uint8Array;
  /** A view without the padding of short Ethernet frames. */
  readonly payload: Uint8Array;
}

export type Ipv4Fault = 'too short' | 'version' | 'header length' | 'total length' | 'checksum';

export function parseIpv4Packet(bytes: Uint8Array): Ipv4Packet | Ipv4Fault {
  if (bytes.length < IPV4_HEADER_BYTES) return 'too short';
  if (bytes[0] >> 4 !== 4) return 'version';
  const headerBytes = (bytes[0] & 15) * 4;
  if (headerBytes < IPV4_HEADER_BYTES || headerBytes > bytes.length) return 'header length';
  const totalBytes = readUint16(bytes, 2);
  if (totalBytes < headerBytes || totalBytes > bytes.length) return 'total length';
  if (internetChecksum(bytes, 0, headerBytes) !== 0) return 'checksum';
  return {
    source: readUint32(bytes, 12),
    destination: readUint32(bytes, 16),
    protocol: bytes[9],
    timeToLive: bytes[8],
    trafficClass: bytes[1],
    identification: readUint16(bytes, 4),
    isFragment: (readUint16(bytes, 6) & (MORE_FRAGMENTS | FRAGMENT_OFFSET)) !== 0,
    options: bytes.subarray(IPV4_HEADER_BYTES, headerBytes),
    payload: bytes.subarray(headerBytes, totalBytes),
  };
}

const NO_OPTIONS = new Uint8Array(0);

/**
 * Writes 20 bytes and the options at `offset`: never to be fragmented, identification 0 as RFC 6864 allows for such packets.
 * @param payloadBytes length of what follows the header
 * @param options whole words, at most ten
 */
export function emitIpv4(
  bytes: Uint8Array,
  offset: number,
  header: Ipv4Header,
  payloadBytes: number,
  options: Uint8Array = NO_OPTIONS,
): void {
  const headerBytes = IPV4_HEADER_BYTES + options.length;
  bytes[offset] = 0x40 | (headerBytes / 4);
  bytes[offset + 1] = header.trafficClass;
  writeUint16(bytes, offset + 2, headerBytes + payloadBytes);
  writeUint16(bytes, offset + 4, 0);
  writeUint16(bytes, offset + 6, DONT_FRAGMENT);
  bytes[offset + 8] = header.timeToLive;
  bytes[offset + 9] = header.protocol;
  writeUint16(bytes, offset + 10, 0);
  writeUint32(bytes, offset + 12, header.source);
  writeUint32(bytes, offset + 16, header.destination);
  bytes.set(options, offset + IPV4_HEADER_BYTES);
  writeUint16(bytes, offset + 10, internetChecksum(bytes, offset, headerBytes));
}
