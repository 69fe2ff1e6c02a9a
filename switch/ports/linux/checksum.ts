import type { Frame } from '../port.ts';

/**
 * The Internet checksum's sum (RFC 1071) of the bytes from `start` to `end`, not complemented, 16 bits. A byte without a partner counts as the
 * upper half of a word, so parts may only be added up if all but the last have an even length.
 */
export function onesSum(frame: Frame, start: number, end: number): number {
  const address = frame.byteOffset + start;
  const words = (end - start) >> 1;
  let sum = 0;
  if ((address & 1) === 0) {
    // The sum does not depend on the byte order, as long as all words have the same.
    const halves = new Uint16Array(frame.buffer, address, words);
    for (let i = 0; i < words; i++) sum += halves[i]!;
    sum = fold(sum);
    if (IS_LITTLE_ENDIAN) sum = ((sum & 0xff) << 8) | (sum >>> 8);
  } else {
    const last = start + 2 * words;
    for (let i = start; i < last; i += 2) sum += (frame[i]! << 8) | frame[i + 1]!;
  }
  if (((end - start) & 1) === 1) sum += frame[end - 1]! << 8;
  return fold(sum);
}

/**
 * Does what a NIC does with a packet whose transport checksum the sender left to the hardware: the field holds the sum of the pseudo-header, what is
 * missing is everything from `start`. Returns false, and does nothing, if the field is not inside the frame.
 *
 * @param start offset of the transport header
 * @param offset of the checksum field from there
 */
export function completeChecksum(frame: Frame, start: number, offset: number): boolean {
  const field = start + offset;
  if (field + 2 > frame.length) return false;
  writeChecksum(frame, field, onesSum(frame, start, frame.length));
  return true;
}

/** Writes the complement of a sum; as all ones instead of zero, which in UDP means that there is no checksum (RFC 768). */
export function writeChecksum(frame: Frame, field: number, sum: number): void {
  const checksum = ~sum & 0xffff || 0xffff;
  frame[field] = checksum >>> 8;
  frame[field + 1] = checksum & 0xff;
}

/** Adds carries back in; for sums below 2^32. */
export function fold(sum: number): number {
  const once = (sum >>> 16) + (sum & 0xffff);
  return (once >>> 16) + (once & 0xffff);
}

const IS_LITTLE_ENDIAN = new Uint8Array(new Uint16Array([1]).buffer)[0] === 1;
