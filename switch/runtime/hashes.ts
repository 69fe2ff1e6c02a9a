/**
 * The hash algorithms of v1model's HashAlgorithm as simple_switch computes them (src/bm_sim/calculations.cpp), over the first
 * `length` bytes of a buffer.
 */

function crcTable(start: (byte: number) => number, step: (value: number) => number): Uint32Array {
  return Uint32Array.from({ length: 256 }, (_, byte) => {
    let value = start(byte);
    for (let bit = 0; bit < 8; bit++) value = step(value);
    return value >>> 0;
  });
}

/** In a reflected CRC the low bit is the first on the wire. */
function reflectedTable(polynomial: number): Uint32Array {
  return crcTable(
    (byte) => byte,
    (value) => (value & 1 ? (value >>> 1) ^ polynomial : value >>> 1),
  );
}

const CRC16_TABLE = reflectedTable(0xa001);
const CRC32_TABLE = reflectedTable(0xedb88320);
const CCITT_TABLE = crcTable(
  (byte) => byte << 8,
  (value) => (value & 0x8000 ? (value << 1) ^ 0x1021 : value << 1) & 0xffff,
);

/** CRC-16/ARC: polynomial 0x8005 reflected, initial value 0. */
export function crc16(bytes: Uint8Array, length: number): number {
  let crc = 0;
  for (let i = 0; i < length; i++) crc = (crc >>> 8) ^ CRC16_TABLE[(crc ^ bytes[i]!) & 0xff]!;
  return crc;
}

/** CRC-32 of IEEE 802.3. */
export function crc32(bytes: Uint8Array, length: number): number {
  let crc = -1;
  for (let i = 0; i < length; i++) crc = (crc >>> 8) ^ CRC32_TABLE[(crc ^ bytes[i]!) & 0xff]!;
  return ~crc >>> 0;
}

/** CRC-16/IBM-3740 ("CCITT-FALSE"): polynomial 0x1021, initial value 0xffff, not reflected. */
export function crcCCITT(bytes: Uint8Array, length: number): number {
  let crc = 0xffff;
  for (let i = 0; i < length; i++) crc = ((crc << 8) & 0xff00) ^ CCITT_TABLE[(crc >>> 8) ^ bytes[i]!]!;
  return crc;
}

/** The Internet checksum (RFC 1071); an odd last byte counts as the high one. */
export function csum16(bytes: Uint8Array, length: number): number {
  let sum = 0;
  let i = 0;
  for (; i + 1 < length; i += 2) sum += (bytes[i]! << 8) | bytes[i + 1]!;
  if (i < length) sum += bytes[i]! << 8;
  return foldedComplement(sum);
}

/** The last steps of the Internet checksum: carries added back in, complement. */
export function foldedComplement(sum: number): number {
  // A sum of 16-bit words beyond 2^32 needs more than 64 KiB of input; the remainder keeps the congruence there too.
  let folded = sum > 0xffff_ffff ? sum % 0xffff || 0xffff : sum;
  folded = (folded & 0xffff) + (folded >>> 16);
  folded = (folded & 0xffff) + (folded >>> 16);
  return ~folded & 0xffff;
}

export function xor16(bytes: Uint8Array, length: number): number {
  let value = 0;
  for (let i = 0; i < length; i++) value ^= bytes[i]! << (i & 1 ? 0 : 8);
  return value;
}

export function xor32(bytes: Uint8Array, length: number): number {
  let value = 0;
  for (let i = 0; i < length; i++) value ^= bytes[i]! << (24 - 8 * (i & 3));
  return value >>> 0;
}

/** The first eight bytes as a number. */
export function identity(bytes: Uint8Array, length: number): bigint {
  let value = 0n;
  for (let i = 0; i < Math.min(8, length); i++) value = (value << 8n) | BigInt(bytes[i]!);
  return value;
}

let buffer = new Uint8Array(256);

/** Scratch of at least `length` bytes for the input of one hash; its content is whatever was there. */
export function hashBuffer(length: number): Uint8Array {
  if (buffer.length < length) buffer = new Uint8Array(2 * length);
  return buffer;
}

/** Appends the low `width` (at most 32) bits of a value at bit `position` of zeroed bytes. Returns the new position. */
export function putBits(bytes: Uint8Array, position: number, value: number, width: number): number {
  let left = width;
  let at = position;
  while (left > 0) {
    const room = 8 - (at & 7);
    const taken = Math.min(room, left);
    const piece = (value >>> (left - taken)) & ((1 << taken) - 1);
    bytes[at >> 3]! |= piece << (room - taken);
    at += taken;
    left -= taken;
  }
  return at;
}
