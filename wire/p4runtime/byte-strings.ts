import { DdfError } from '../../base/errors.ts';

/**
 * Binary strings of bit<W> and int<W> values (P4Runtime 1.5, section "Bytestrings"): what is sent is the shortest string that holds the value, what is
 * received may have any length as long as the value fits.
 */

/** Up to here numbers, which are faster, do as well as bigints. */
const MAX_NUMBER = 0xffff_ffff_ffffn;
const NUMBER_BYTES = 6;

/** The shortest string of a non-negative value; 0 is one zero byte. */
export function encodeBits(value: bigint): Uint8Array {
  if (value < 0n) throw new DdfError('INTERNAL', `bit<W> has no negative value ${value}`);
  if (value > MAX_NUMBER) return bytesOf(value, Math.ceil(value.toString(16).length / 2));
  let rest = Number(value);
  let size = 1;
  for (let limit = 256; rest >= limit; limit *= 256) size++;
  const bytes = new Uint8Array(size);
  for (let i = size - 1; i >= 0; i--) {
    bytes[i] = rest % 256;
    rest = Math.floor(rest / 256);
  }
  return bytes;
}

/** Throws DdfError INVALID_REQUEST for an empty string or a value of more than `widthBits` bits. */
export function decodeBits(bytes: Uint8Array, widthBits: number): bigint {
  if (bytes.length === 0) throw new DdfError('INVALID_REQUEST', 'The byte string is empty');
  if (bytes.length <= NUMBER_BYTES) {
    const value = shortUnsigned(bytes);
    if (value >= 2 ** widthBits) throw tooWide(value, widthBits);
    return BigInt(value);
  }
  const value = unsigned(bytes);
  if (8 * bytes.length > widthBits && value >> BigInt(widthBits) !== 0n) throw tooWide(value, widthBits);
  return value;
}

function tooWide(value: number | bigint, widthBits: number): DdfError {
  return new DdfError('INVALID_REQUEST', `The value 0x${value.toString(16)} does not fit into bit<${widthBits}>`);
}

/** The shortest two's complement string of a value. */
export function encodeSigned(value: bigint): Uint8Array {
  let size = 1;
  while (BigInt.asIntN(8 * size, value) !== value) size++;
  return bytesOf(BigInt.asUintN(8 * size, value), size);
}

/** Undoes sign extension. Throws DdfError INVALID_REQUEST for an empty string or a value that is not in int<`widthBits`>. */
export function decodeSigned(bytes: Uint8Array, widthBits: number): bigint {
  if (bytes.length === 0) throw new DdfError('INVALID_REQUEST', 'The byte string is empty');
  const value = BigInt.asIntN(8 * bytes.length, unsigned(bytes));
  if (BigInt.asIntN(widthBits, value) !== value)
    throw new DdfError('INVALID_REQUEST', `The value ${value} does not fit into int<${widthBits}>`);
  return value;
}

/** The shortest form of any received string of bit<W>: for comparing what different servers send. An empty string stays empty. */
export function canonicalBits(bytes: Uint8Array): Uint8Array {
  let start = 0;
  while (start < bytes.length - 1 && bytes[start] === 0) start++;
  return start === 0 ? bytes : bytes.slice(start);
}

function unsigned(bytes: Uint8Array): bigint {
  if (bytes.length <= NUMBER_BYTES) return BigInt(shortUnsigned(bytes));
  return BigInt(`0x${Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('hex')}`);
}

function shortUnsigned(bytes: Uint8Array): number {
  let value = 0;
  for (let i = 0; i < bytes.length; i++) value = value * 256 + bytes[i]!;
  return value;
}

function bytesOf(value: bigint, size: number): Uint8Array {
  const bytes = new Uint8Array(size);
  let rest = value;
  for (let i = size - 1; i >= 0; i--) {
    bytes[i] = Number(rest & 0xffn);
    rest >>= 8n;
  }
  return bytes;
}
