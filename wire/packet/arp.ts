import { ETHERTYPE_IPV4 } from '../../p4/build/constants.ts';
import { readMac, writeMac } from './addresses.ts';
import { readUint16, readUint32, writeUint16, writeUint32 } from './integers.ts';

export const ARP_BYTES = 28;
export const ARP_REQUEST = 1;
export const ARP_REPLY = 2;

const HARDWARE_ETHERNET = 1;

/** ARP for IPv4 over Ethernet (RFC 826). */
export interface ArpPacket {
  readonly operation: typeof ARP_REQUEST | typeof ARP_REPLY;
  readonly senderMac: number;
  readonly senderIp: number;
  /** 0 in a request. */
  readonly targetMac: number;
  readonly targetIp: number;
}

export type ArpFault = 'too short' | 'not IPv4 over Ethernet' | 'operation';

export function parseArp(bytes: Uint8Array): ArpPacket | ArpFault {
  if (bytes.length < ARP_BYTES) return 'too short';
  if (readUint16(bytes, 0) !== HARDWARE_ETHERNET || readUint16(bytes, 2) !== ETHERTYPE_IPV4)
    return 'not IPv4 over Ethernet';
  if (bytes[4] !== 6 || bytes[5] !== 4) return 'not IPv4 over Ethernet';
  const operation = readUint16(bytes, 6);
  if (operation !== ARP_REQUEST && operation !== ARP_REPLY) return 'operation';
  return {
    operation,
    senderMac: readMac(bytes, 8),
    senderIp: readUint32(bytes, 14),
    targetMac: readMac(bytes, 18),
    targetIp: readUint32(bytes, 24),
  };
}

/** Writes 28 bytes at `offset`. */
export function emitArp(bytes: Uint8Array, offset: number, packet: ArpPacket): void {
  writeUint16(bytes, offset, HARDWARE_ETHERNET);
  writeUint16(bytes, offset + 2, ETHERTYPE_IPV4);
  bytes[offset + 4] = 6;
  bytes[offset + 5] = 4;
  writeUint16(bytes, offset + 6, packet.operation);
  writeMac(bytes, offset + 8, packet.senderMac);
  writeUint32(bytes, offset + 14, packet.senderIp);
  writeMac(bytes, offset + 18, packet.targetMac);
  writeUint32(bytes, offset + 24, packet.targetIp);
}
