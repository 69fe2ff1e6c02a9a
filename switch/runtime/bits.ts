/** Fields whose length only the packet tells: in the vector a number, the least significant word first. */

/** Reads `bits` bits of a frame, the first of which is bit `start`, into `words` words. */
export function loadVarbit(
  array: Uint32Array,
  place: number,
  words: number,
  frame: Uint8Array,
  start: number,
  bits: number,
): void {
  for (let word = 0; word < words; word++) {
    const end = start + bits - 32 * word;
    array[place + word] = end <= start ? 0 : readBits(frame, Math.max(start, end - 32), end);
  }
}

/** Appends the low `bits` bits of the number at bit `position` of zeroed bytes. Returns the new position. */
export function putVarbit(
  bytes: Uint8Array,
  position: number,
  array: Uint32Array,
  place: number,
  bits: number,
): number {
  let at = position;
  for (let high = bits; high > 0; ) {
    const width = high % 32 === 0 ? 32 : high % 32;
    high -= width;
    at = putBits(bytes, at, array[place + high / 32]!, width);
  }
  return at;
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

/** Up to 32 bits, from `start` to before `end`. */
function readBits(frame: Uint8Array, start: number, end: number): number {
  let value = 0;
  for (let at = start; at < end; ) {
    const room = 8 - (at & 7);
    const taken = Math.min(room, end - at);
    const piece = (frame[at >> 3]! >> (room - taken)) & ((1 << taken) - 1);
    value = (value << taken) | piece;
    at += taken;
  }
  return value >>> 0;
}
