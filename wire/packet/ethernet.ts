import { readMac, writeMac } from './addresses.ts';
import { readUint16, writeUint16 } from './integers.ts';

/** Destination, source, EtherType; the frame check sequence is the network's own business. */
export const ETHERNET_HEADER_BYTES = 14;

export interface EthernetHeader {
  readonly destination: number;
  readonly source: number;
  readonly etherType: number;
}

export interface EthernetFrame extends EthernetHeader {
  /** A view into the frame; it may end in padding. */
  readonly payload: Uint8Array;
}

/** EtherTypes start at 1536; below that the field is a length (IEEE 802.3, 3.2.6). */
export type EthernetFault = 'too short' | 'no EtherType';

export function parseEthernet(frame: Uint8Array): EthernetFrame | EthernetFault {
  if (frame.length < ETHERNET_HEADER_BYTES) return 'too short';
  const etherType = readUint16(frame, 12);
  if (etherType < 1536) return 'no EtherType';
  return {
    destination: readMac(frame, 0),
    source: readMac(frame, 6),
    etherType,
    payload: frame.subarray(ETHERNET_HEADER_BYTES),
  };
}

/** Writes the 14 bytes of the header at `offset`. */
export function emitEthernet(bytes: Uint8Array, offset: number, header: EthernetHeader): void {
  writeMac(bytes, offset, header.destination);
  writeMac(bytes, offset + 6, header.source);
  writeUint16(bytes, offset + 12, header.etherType);
}
