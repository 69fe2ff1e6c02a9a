import type { Frame } from '../ports/port.ts';

/** Copies of packets are carved from slabs: one allocation of the engine for many frames. */
const SLAB_BYTES = 256 * 1024;
const LARGE_BYTES = SLAB_BYTES / 8;
/** More than frames of one turn fill is not kept for the next. */
const MAX_SPARE_SLABS = 64;

let slab = new Uint8Array(SLAB_BYTES);
let used = 0;
/** Slabs that are full of frames in use, once {@link reuseFrames} has been called; and slabs that are not in use. */
let full: Uint8Array<ArrayBuffer>[] | undefined;
let spare: Uint8Array<ArrayBuffer>[] = [];

/** A frame that nobody else has; its bytes are zero or left over. */
export function allocate(length: number): Frame {
  if (length > LARGE_BYTES) return new Uint8Array(length);
  if (used + length > SLAB_BYTES) {
    full?.push(slab);
    slab = spare.pop() ?? new Uint8Array(SLAB_BYTES);
    used = 0;
  }
  const frame = new Uint8Array(slab.buffer, used, length);
  // Word-aligned starts make copies cheaper.
  used += (length + 7) & ~7;
  return frame;
}

/**
 * Says that nobody uses any of the frames that were allocated so far: the next ones take their memory. For programs in which frames end their lives at
 * known moments; elsewhere the garbage collector finds out.
 */
export function reuseFrames(): void {
  used = 0;
  if (full === undefined) {
    full = [];
    return;
  }
  if (full.length === 0) return;
  if (spare.length < MAX_SPARE_SLABS) spare = spare.concat(full);
  full.length = 0;
}

const headrooms = new WeakMap<ArrayBufferLike, number>();
let lastBuffer: ArrayBufferLike | undefined;
let lastHeadroom = 0;

/**
 * Says that every frame in this memory has so many bytes in front of it that belong to it, as a receive ring leaves them: whoever is handed the frame may
 * let it grow into them, once. A frame that has grown must not be handed in again.
 */
export function declareHeadroom(buffer: ArrayBufferLike, bytes: number): void {
  headrooms.set(buffer, bytes);
  lastBuffer = undefined;
}

/** The frame with `bytes` more in front, in the same memory; undefined where there is no room. */
export function grown(frame: Frame, bytes: number, length: number): Frame | undefined {
  if (frame.buffer !== lastBuffer) {
    lastBuffer = frame.buffer;
    lastHeadroom = headrooms.get(frame.buffer) ?? 0;
  }
  return bytes > lastHeadroom ? undefined : new Uint8Array(frame.buffer, frame.byteOffset - bytes, length + bytes);
}

/** The bytes from `start` to `end` of a frame, as a view: `subarray` without its detour over the species. */
export function part(frame: Frame, start: number, end: number): Frame {
  return new Uint8Array(frame.buffer, frame.byteOffset + start, end - start);
}
