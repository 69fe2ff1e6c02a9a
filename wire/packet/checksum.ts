/**
 * The ones' complement sum of RFC 1071 over 16-bit words, carries not yet folded. An odd last byte counts as the high half of a word.
 * @param initial an earlier unfolded sum to continue, e.g. that of a pseudo header; it must have covered an even number of bytes
 */
export function sumWords(bytes: Uint8Array, offset: number, length: number, initial = 0): number {
  let sum = initial;
  const end = offset + (length & ~1);
  for (let i = offset; i < end; i += 2) sum += (bytes[i] << 8) | bytes[i + 1];
  return (length & 1) === 1 ? sum + (bytes[end] << 8) : sum;
}

/** Folds the carries of a sum and complements it: what a checksum field holds. 0 over a range that includes a right checksum. */
export function finishChecksum(sum: number): number {
  let folded = sum;
  while (folded > 0xffff) folded = (folded % 0x1_0000) + Math.floor(folded / 0x1_0000);
  return ~folded & 0xffff;
}

/** The internet checksum (RFC 1071) of a range. */
export function internetChecksum(bytes: Uint8Array, offset = 0, length = bytes.length - offset): number {
  return finishChecksum(sumWords(bytes, offset, length));
}
