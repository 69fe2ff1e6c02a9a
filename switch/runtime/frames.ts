import type { Frame } from '../ports/port.ts';

/**
 * Memory that frames lie in: its bytes, and the same for numbers of several bytes. A frame is what stands there from a `start` to before an `end`: so
 * that none of those who hand it on need to make an object for it.
 */
export class FrameMemory {
  readonly bytes: Uint8Array;
  readonly view: DataView;
  /**
   * So many bytes in front of every frame belong to it, as a receive ring leaves them: whoever is handed the frame may let it grow into them, once. A
   * frame that has grown must not be handed in again.
   */
  readonly headroom: number;
  /** Where the frame starts that was allocated last. */
  taken = 0;

  constructor(bytes: Uint8Array, headroom = 0) {
    this.bytes = bytes;
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    this.headroom = headroom;
  }

  /** A frame as an object of its own: a view, made without the detour of `subarray` over the species. */
  frame(start: number, end: number): Frame {
    const { bytes } = this;
    if (start === 0 && end === bytes.length) return bytes;
    return new Uint8Array(bytes.buffer, bytes.byteOffset + start, end - start);
  }
}

/** Takes a frame from `start` to before `end`. */
export type FrameSink = (memory: FrameMemory, start: number, end: number) => void;

/** Hands over a frame that has memory of its own. */
export function handOver(frame: Frame, sink: FrameSink): void {
  sink(new FrameMemory(frame), 0, frame.length);
}

/** Copies of packets are carved from slabs: one allocation of the engine for many frames. */
const SLAB_BYTES = 256 * 1024;
const LARGE_BYTES = SLAB_BYTES / 8;
/** More than frames of one turn fill is not kept for the next. */
const MAX_SPARE_SLABS = 64;

let slab = new FrameMemory(new Uint8Array(SLAB_BYTES));
let used = 0;
/** Slabs that are full of frames in use, once {@link reuseFrames} has been called; and slabs that are not in use. */
let full: FrameMemory[] | undefined;
let spare: FrameMemory[] = [];

/** Memory where a frame begins, at `taken`, that nobody else has; its bytes are zero or left over. */
export function allocate(length: number): FrameMemory {
  if (length > LARGE_BYTES) return new FrameMemory(new Uint8Array(length));
  if (used + length > SLAB_BYTES) {
    full?.push(slab);
    slab = spare.pop() ?? new FrameMemory(new Uint8Array(SLAB_BYTES));
    used = 0;
  }
  slab.taken = used;
  // Word-aligned starts make copies cheaper.
  used += (length + 7) & ~7;
  return slab;
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
