import type { Frame } from '../ports/port.ts';

/** Copies of packets are carved from slabs: one allocation of the engine for many frames. */
const SLAB_BYTES = 256 * 1024;
const LARGE_BYTES = SLAB_BYTES / 8;

let slab = new Uint8Array(SLAB_BYTES);
let used = 0;

/** A frame that nobody else has; its bytes are zero or left over. */
export function allocate(length: number): Frame {
  if (length > LARGE_BYTES) return new Uint8Array(length);
  if (used + length > SLAB_BYTES) {
    slab = new Uint8Array(SLAB_BYTES);
    used = 0;
  }
  const frame = new Uint8Array(slab.buffer, used, length);
  // Word-aligned starts make copies cheaper.
  used += (length + 7) & ~7;
  return frame;
}

/** The bytes from `start` to `end` of a frame, as a view: `subarray` without its detour over the species. */
export function part(frame: Frame, start: number, end: number): Frame {
  return new Uint8Array(frame.buffer, frame.byteOffset + start, end - start);
}
