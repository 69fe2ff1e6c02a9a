import { internetChecksum } from './checksum.ts';
import { readUint16, writeUint16 } from './integers.ts';

export const ICMP_HEADER_BYTES = 8;
export const ICMP_ECHO_REPLY = 0;
export const ICMP_ECHO_REQUEST = 8;

/** An ICMP message with a right checksum (RFC 792). */
export interface IcmpMessage {
  readonly type: number;
  readonly code: number;
  /** Identifier of an echo; the first half of the second word otherwise. */
  readonly identifier: number;
  /** Sequence number of an echo; the second half of the second word otherwise. */
  readonly sequence: number;
  readonly payload: Uint8Array;
}

export type IcmpFault = 'too short' | 'checksum';

export function parseIcmp(bytes: Uint8Array): IcmpMessage | IcmpFault {
  if (bytes.length < ICMP_HEADER_BYTES) return 'too short';
  if (internetChecksum(bytes) !== 0) return 'checksum';
  return {
    type: bytes[0],
    code: bytes[1],
    identifier: readUint16(bytes, 4),
    sequence: readUint16(bytes, 6),
    payload: bytes.subarray(ICMP_HEADER_BYTES),
  };
}

/** Writes the header and the payload at `offset`: 8 bytes plus the payload's length. */
export function emitIcmp(bytes: Uint8Array, offset: number, message: IcmpMessage): void {
  bytes[offset] = message.type;
  bytes[offset + 1] = message.code;
  writeUint16(bytes, offset + 2, 0);
  writeUint16(bytes, offset + 4, message.identifier);
  writeUint16(bytes, offset + 6, message.sequence);
  bytes.set(message.payload, offset + ICMP_HEADER_BYTES);
  writeUint16(bytes, offset + 2, internetChecksum(bytes, offset, ICMP_HEADER_BYTES + message.payload.length));
}
