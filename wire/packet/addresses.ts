import { readUint32, writeUint16, writeUint32 } from './integers.ts';

/**
 * Addresses as numbers: a MAC address is an integer below 2^48, an IPv4 address one below 2^32. Both are exact in a double, compare
 * with `===` and serve as keys of maps; text appears only where people read it.
 */

const MAC_TEXT = /^[0-9a-f]{2}(:[0-9a-f]{2}){5}$/i;
const IPV4_TEXT = /^(0|[1-9]\d{0,2})\.(0|[1-9]\d{0,2})\.(0|[1-9]\d{0,2})\.(0|[1-9]\d{0,2})$/;

export const MAC_BROADCAST = 0xffff_ffff_ffff;
export const IPV4_BROADCAST = 0xffff_ffff;

/** @returns the address, or undefined if the text is not six hexadecimal bytes joined by colons */
export function parseMac(text: string): number | undefined {
  return MAC_TEXT.test(text) ? Number.parseInt(text.replaceAll(':', ''), 16) : undefined;
}

export function formatMac(mac: number): string {
  return mac
    .toString(16)
    .padStart(12, '0')
    .replace(/..(?!$)/g, '$&:');
}

/** Addresses of groups: 224.0.0.0/4 (RFC 5771). */
export function isMulticastIpv4(address: number): boolean {
  return address >>> 28 === 0xe;
}

/** Groups that belong to one link and are never routed, at whatever time to live: 224.0.0.0/24 (RFC 5771, section 4). */
export function isLinkLocalGroup(group: number): boolean {
  return group >>> 8 === 0xe00000;
}

/** Where frames to a group go: 01:00:5e and the last 23 bits of the group (RFC 1112, section 6.4). */
export function multicastMac(group: number): number {
  return 0x0100_5e00_0000 + (group & 0x7f_ffff);
}

/** The individual/group bit (IEEE 802, section 8.2): broadcast and multicast addresses have it. */
export function isGroupMac(mac: number): boolean {
  return (Math.floor(mac / 2 ** 40) & 1) === 1;
}

export function readMac(bytes: Uint8Array, offset: number): number {
  const high = (bytes[offset] << 8) | bytes[offset + 1];
  return high * 2 ** 32 + readUint32(bytes, offset + 2);
}

export function writeMac(bytes: Uint8Array, offset: number, mac: number): void {
  writeUint16(bytes, offset, Math.floor(mac / 2 ** 32));
  writeUint32(bytes, offset + 2, mac >>> 0);
}

/** @returns the address, or undefined if the text is not four decimal bytes without leading zeros joined by dots */
export function parseIpv4(text: string): number | undefined {
  const match = IPV4_TEXT.exec(text);
  if (match === null) return undefined;
  let address = 0;
  for (let i = 1; i <= 4; i++) {
    const byte = Number(match[i]);
    if (byte > 255) return undefined;
    address = address * 256 + byte;
  }
  return address;
}

export function formatIpv4(address: number): string {
  return `${address >>> 24}.${(address >>> 16) & 255}.${(address >>> 8) & 255}.${address & 255}`;
}
