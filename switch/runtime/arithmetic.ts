import { DdfError } from '../../base/errors.ts';

/** What generated code calls where JavaScript's operators do not say what P4 means. Names ending in Wide work on BigInts. */

/** `a << s` modulo 2^32. */
export function shiftLeft(a: number, s: number): number {
  return s > 31 ? 0 : a << s;
}

/** `a >> s` of an unsigned 32-bit number. */
export function shiftRight(a: number, s: number): number {
  return s > 31 ? 0 : a >>> s;
}

/** The remainder in 0..size-1, also of negative numbers; `size` is a power of two. */
export function modulo(a: number, size: number): number {
  return a - Math.floor(a / size) * size;
}

export function clamp(a: number, low: number, high: number): number {
  return Math.min(Math.max(a, low), high);
}

export function clampWide(a: bigint, low: bigint, high: bigint): bigint {
  if (a < low) return low;
  return a > high ? high : a;
}

export function divide(a: bigint, b: bigint): bigint {
  if (b === 0n) throw divisionByZero();
  return a / b;
}

export function remainder(a: bigint, b: bigint): bigint {
  if (b === 0n) throw divisionByZero();
  return a % b;
}

/** No field is as wide as `limit` bits: beyond it nothing is left of the value. */
export function shiftLeftWide(a: bigint, s: bigint, limit: bigint): bigint {
  return s > limit ? 0n : a << s;
}

export function shiftRightWide(a: bigint, s: bigint, limit: bigint): bigint {
  return a >> (s > limit ? limit : s);
}

/** The unsigned number in `words` words, the least significant first. */
export function readWide(array: Uint32Array, place: number, words: number): bigint {
  let value = 0n;
  for (let i = words - 1; i >= 0; i--) value = (value << 32n) | BigInt(array[place + i]!);
  return value;
}

/** Stores the low `widthBits` bits, also of negative numbers. */
export function storeWide(array: Uint32Array, place: number, widthBits: number, value: bigint): void {
  let rest = BigInt.asUintN(widthBits, value);
  for (let i = 0; 32 * i < widthBits; i++) {
    array[place + i] = Number(rest & 0xffff_ffffn);
    rest >>= 32n;
  }
}

/** `base + hash % max` in 64 bits, as simple_switch computes it; a max of 0 counts as 1. */
export function hashOffset(hash: number | bigint, base: bigint, max: bigint): bigint {
  const size = BigInt.asUintN(64, max);
  return BigInt.asUintN(64, (BigInt(hash) % (size === 0n ? 1n : size)) + BigInt.asUintN(64, base));
}

/** What a packet may keep, plus one, after another truncation to `bytes`; 0 is all of it. The smallest counts. */
export function truncation(before: number, bytes: number): number {
  return before === 0 ? bytes + 1 : Math.min(before, bytes + 1);
}

/** A packet's copies and new starts have no end. */
export function endlessPacket(): never {
  throw new DdfError('INTERNAL', 'The switch program clones, resubmits or recirculates one packet without end');
}

export function assertionFailed(place: string): never {
  throw new DdfError('INTERNAL', `An assertion of the switch program failed`, { where: place });
}

export function endlessLoop(): never {
  throw new DdfError('INTERNAL', 'A loop of the switch program does not end');
}

function divisionByZero(): DdfError {
  return new DdfError('INTERNAL', 'The switch program divided by zero');
}
