/**
 * The hash algorithms as simple_switch computes them (src/bm_sim/calculations.cpp), over the first `length` bytes of a buffer.
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

/** Any CRC of 8, 16, 32 or 64 bits; the parameters are as in ../bmv2/crc-parameters.ts. */
export function crc(widthBits: number, polynomial: bigint, initial: bigint, final: bigint, reflected: boolean): Hash {
  if (widthBits > 32) return wideCrc(widthBits, polynomial, initial, final, reflected);
  const mask = 2 ** widthBits - 1;
  const start = Number(reflected ? reflect(initial, widthBits) : initial);
  const end = Number(final);
  const top = widthBits - 8;
  const table = reflected
    ? reflectedTable(Number(reflect(polynomial, widthBits)))
    : crcTable(
        (byte) => byte << top,
        (value) => ((value >>> (widthBits - 1)) & 1 ? (value << 1) ^ Number(polynomial) : value << 1) & mask,
      );
  if (reflected)
    return (bytes, length) => {
      let crc = start;
      for (let i = 0; i < length; i++) crc = (crc >>> 8) ^ table[(crc ^ bytes[i]!) & 0xff]!;
      return (crc ^ end) >>> 0;
    };
  return (bytes, length) => {
    let crc = start;
    for (let i = 0; i < length; i++) crc = ((crc << 8) ^ table[((crc >>> top) ^ bytes[i]!) & 0xff]!) & mask;
    return (crc ^ end) >>> 0;
  };
}

function wideCrc(widthBits: number, polynomial: bigint, initial: bigint, final: bigint, reflected: boolean): Hash {
  // A CRC that is not reflected is computed as one that is, of bytes and a result that are turned round.
  const low = reflect(polynomial, widthBits);
  const table = Array.from({ length: 256 }, (_, byte) => {
    let value = BigInt(byte);
    for (let bit = 0; bit < 8; bit++) value = value & 1n ? (value >> 1n) ^ low : value >> 1n;
    return value;
  });
  const turned = Array.from({ length: 256 }, (_, byte) => Number(reflect(BigInt(byte), 8)));
  const start = reflect(initial, widthBits);
  return (bytes, length) => {
    let crc = start;
    for (let i = 0; i < length; i++) {
      const byte = reflected ? bytes[i]! : turned[bytes[i]!]!;
      crc = (crc >> 8n) ^ table[Number(crc & 0xffn) ^ byte]!;
    }
    return (reflected ? crc : reflect(crc, widthBits)) ^ final;
  };
}

/** The bits in the other order. */
function reflect(value: bigint, widthBits: number): bigint {
  let turned = 0n;
  for (let bit = 0n; bit < BigInt(widthBits); bit++) turned = (turned << 1n) | ((value >> bit) & 1n);
  return turned;
}

/** The first eight bytes as a number. */
export function identity(bytes: Uint8Array, length: number): bigint {
  let value = 0n;
  for (let i = 0; i < Math.min(8, length); i++) value = (value << 8n) | BigInt(bytes[i]!);
  return value;
}

/** simple_switch starts with this key, and only its own control protocol changes it: every hash is 0. */
const TOEPLITZ_KEY = new Uint8Array(4);

/** The Toeplitz hash of receive-side scaling; a key that is shorter than the input begins again. Whole words. */
export function toeplitz(bytes: Uint8Array, length: number, key: Uint8Array = TOEPLITZ_KEY): number {
  const keyWord = (index: number): number => {
    const at = (4 * index) % key.length;
    return ((key[at]! << 24) | (key[at + 1]! << 16) | (key[at + 2]! << 8) | key[at + 3]!) >>> 0;
  };
  let hash = 0;
  for (let i = 0; i < length; i++) {
    const [high, low] = [keyWord(i >> 2), keyWord((i >> 2) + 1)];
    for (let bit = 0; bit < 8; bit++) {
      if (((bytes[i]! << bit) & 0x80) === 0) continue;
      const shift = 8 * (i & 3) + bit;
      hash ^= shift === 0 ? high : (high << shift) | (low >>> (32 - shift));
    }
  }
  return hash >>> 0;
}

type Hash = (bytes: Uint8Array, length: number) => number | bigint;

/** Counts calls. */
export function roundRobin(): Hash {
  let calls = 0;
  return () => calls++;
}

/** So many inputs keep their number; then the oldest is forgotten. simple_switch forgets none. */
const REMEMBERED_INPUTS = 65_536;

/** Numbers inputs in the order in which they were first seen. */
export function roundRobinConsistent(): Hash {
  const numbers = new Map<string, number>();
  let inputs = 0;
  return (bytes, length) => {
    let key = '';
    for (let i = 0; i < length; i++) key += String.fromCharCode(bytes[i]!);
    let number = numbers.get(key);
    if (number === undefined) {
      number = inputs++;
      numbers.set(key, number);
      if (numbers.size > REMEMBERED_INPUTS) numbers.delete(numbers.keys().next().value!);
    }
    return number;
  };
}

let buffer = new Uint8Array(256);

/** Scratch of at least `length` bytes for the input of one hash; its content is whatever was there. */
export function hashBuffer(length: number): Uint8Array {
  if (buffer.length < length) buffer = new Uint8Array(2 * length);
  return buffer;
}
