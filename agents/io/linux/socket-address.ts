import { AF_INET } from '../../../base/linux/abi.ts';
import { formatIpv4 } from '../../../wire/packet/addresses.ts';

/** struct sockaddr_in: family 16 in the machine's byte order; port 16 and address 32 in the network's; 8 bytes of padding. */
export const ADDRESS_BYTES = 16;
const FAMILY = new Uint8Array(new Uint16Array([AF_INET]).buffer);

export function writeAddress(bytes: Uint8Array, at: number, ip: number, port: number): void {
  bytes.set(FAMILY, at);
  bytes[at + 2] = port >> 8;
  bytes[at + 3] = port;
  bytes[at + 4] = ip >>> 24;
  bytes[at + 5] = ip >>> 16;
  bytes[at + 6] = ip >>> 8;
  bytes[at + 7] = ip;
}

/** Reads addresses; one that comes again costs no new text. */
export class AddressReader {
  ip = '0.0.0.0';
  port = 0;
  private ipNumber = 0;

  read(bytes: Uint8Array, at: number): void {
    this.port = bytes[at + 2]! * 256 + bytes[at + 3]!;
    const ip = ((bytes[at + 4]! << 24) | (bytes[at + 5]! << 16) | (bytes[at + 6]! << 8) | bytes[at + 7]!) >>> 0;
    if (ip === this.ipNumber) return;
    this.ipNumber = ip;
    this.ip = formatIpv4(ip);
  }
}
