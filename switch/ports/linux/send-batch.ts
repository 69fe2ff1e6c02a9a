import { EAGAIN, EINTR, EMSGSIZE, ENOBUFS, MSG_DONTWAIT } from '../../../base/linux/abi.ts';
import type { Libc, Pointer } from '../../../base/linux/libc.ts';
import {
  MESSAGE_IOV_COUNT_WORD,
  MESSAGE_IOV_WORD,
  MESSAGE_WORDS,
  VECTOR_WORDS,
  writePointer,
} from '../../../base/linux/messages.ts';
import type { FrameMemory } from '../../runtime/frames.ts';

/** Frames that one system call sends at most. */
const BATCH_FRAMES = 128;

export interface SendStatistics {
  frames: number;
  bytes: number;
  /** Refused because the interface's queue, or the socket's share of it, was full. */
  queueDropped: number;
  /** Longer than the interface's MTU allows. */
  tooLong: number;
  /** Refused for another reason: the interface is down or gone, or the frame is shorter than an Ethernet header. */
  failed: number;
}

/** Memory that frames often lie in, and where it is. */
export interface KnownMemory {
  readonly buffer: ArrayBufferLike;
  readonly address: number;
}

/** Collects frames for one interface and sends many with one system call, from where they lie. */
export class SendBatch {
  readonly statistics: SendStatistics = { frames: 0, bytes: 0, queueDropped: 0, tooLong: 0, failed: 0 };
  /** Told the length of every frame that the kernel takes. */
  onSent: ((bytes: number) => void) | undefined;
  private readonly libc: Libc;
  private readonly fd: number;
  /** Kept because the kernel reads them by their address only. */
  private readonly memories: (FrameMemory | undefined)[] = new Array(BATCH_FRAMES).fill(undefined);
  private readonly lengths = new Uint32Array(BATCH_FRAMES);
  private count = 0;
  private readonly vectors = new Uint32Array(BATCH_FRAMES * VECTOR_WORDS);
  private readonly messagesAddress: number;
  /** Kept because the kernel reads it by its address only. */
  private readonly messages: Uint32Array;
  private lastMemory: FrameMemory | undefined;
  private lastAddress = 0;
  private readonly known = new Map<ArrayBufferLike, number>();

  constructor(libc: Libc, fd: number) {
    this.libc = libc;
    this.fd = fd;
    const vectorsAddress = libc.addressOf(this.vectors.buffer);
    this.messages = new Uint32Array(BATCH_FRAMES * MESSAGE_WORDS);
    this.messagesAddress = libc.addressOf(this.messages.buffer);
    for (let i = 0; i < BATCH_FRAMES; i++) {
      const at = i * MESSAGE_WORDS;
      writePointer(this.messages, at + MESSAGE_IOV_WORD, vectorsAddress + i * VECTOR_WORDS * 4);
      writePointer(this.messages, at + MESSAGE_IOV_COUNT_WORD, 1);
    }
  }

  /** Frames in this memory are found without asking where it is. */
  addKnownMemory({ buffer, address }: KnownMemory): void {
    this.known.set(buffer, address);
  }

  /** Lets go of memory that no frame lies in any more. */
  removeKnownMemory({ buffer }: KnownMemory): void {
    this.known.delete(buffer);
    this.lastMemory = undefined;
  }

  /** Frames that wait. */
  get length(): number {
    return this.count;
  }

  /** The frame must stay as it is until {@link flush}; a full batch is sent at once. */
  add(memory: FrameMemory, start: number, end: number): void {
    const at = this.count * VECTOR_WORDS;
    writePointer(this.vectors, at, this.addressOf(memory) + start);
    writePointer(this.vectors, at + 2, end - start);
    this.lengths[this.count] = end - start;
    this.memories[this.count++] = memory;
    if (this.count === BATCH_FRAMES) this.flush();
  }

  /** Sends what waits. What the kernel refuses is counted and gone. */
  flush(): void {
    let first = 0;
    while (first < this.count) {
      const address: Pointer = BigInt(this.messagesAddress + first * MESSAGE_WORDS * 4);
      const sent = this.libc.sendmmsg(this.fd, address, this.count - first, MSG_DONTWAIT);
      for (let i = 0; i < sent; i++) {
        const length = this.lengths[first + i]!;
        this.statistics.bytes += length;
        this.onSent?.(length);
      }
      if (sent > 0) {
        this.statistics.frames += sent;
        first += sent;
        // When not all were sent, the next call says why.
        continue;
      }
      const errno = this.libc.errno();
      if (errno === EINTR) continue;
      if (errno === EAGAIN) {
        // The socket's share of the queue is used up: nothing behind this frame fits either.
        this.statistics.queueDropped += this.count - first;
        break;
      }
      if (errno === ENOBUFS) this.statistics.queueDropped++;
      else if (errno === EMSGSIZE) this.statistics.tooLong++;
      else this.statistics.failed++;
      first++;
    }
    this.count = 0;
  }

  private addressOf(memory: FrameMemory): number {
    if (memory !== this.lastMemory) {
      const { buffer, byteOffset } = memory.bytes;
      this.lastAddress = (this.known.get(buffer) ?? this.libc.addressOf(buffer)) + byteOffset;
      this.lastMemory = memory;
    }
    return this.lastAddress;
  }
}
