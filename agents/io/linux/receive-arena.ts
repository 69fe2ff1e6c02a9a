import { MSG_DONTWAIT, MSG_TRUNC, SOL_UDP, UDP_GRO } from '../../../base/linux/abi.ts';
import type { Libc } from '../../../base/linux/libc.ts';
import {
  LOW_WORD,
  MESSAGE_CONTROL_LENGTH_WORD,
  MESSAGE_CONTROL_WORD,
  MESSAGE_FLAGS_WORD,
  MESSAGE_IOV_COUNT_WORD,
  MESSAGE_IOV_WORD,
  MESSAGE_LENGTH_WORD,
  MESSAGE_NAME_LENGTH_WORD,
  MESSAGE_NAME_WORD,
  MESSAGE_WORDS,
  VECTOR_WORDS,
  writePointer,
} from '../../../base/linux/messages.ts';
import { ADDRESS_BYTES, AddressReader } from './socket-address.ts';

/** Messages that one system call receives at most. */
export const ARENA_MESSAGES = 64;
/** struct cmsghdr (length 64, level 32, type 32), a 32-bit segment size, padding. */
const CONTROL_BYTES = 24;
/** Slots begin in different sets of the caches, and are aligned for the copy. */
const SLOT_ALIGNMENT = 64;

export type Deliver = (payload: Uint8Array, sourceIp: string, sourcePort: number) => void;

export interface ReceiveStatistics {
  datagrams: number;
  calls: number;
  /** Longer than a slot, so thrown away. */
  truncated: number;
}

/** Memory of a fixed size that one system call fills with many datagrams (recvmmsg), and views of it that are made once for each length. */
export class ReceiveArena {
  readonly statistics: ReceiveStatistics = { datagrams: 0, calls: 0, truncated: 0 };
  private readonly libc: Libc;
  private readonly fd: number;
  private readonly bytes: Uint8Array;
  private readonly slotBytes: number;
  private readonly messages = new Uint32Array(ARENA_MESSAGES * MESSAGE_WORDS);
  private readonly messagesAddress: bigint;
  private readonly addresses = new Uint8Array(ARENA_MESSAGES * ADDRESS_BYTES);
  private readonly vectors = new Uint32Array(ARENA_MESSAGES * VECTOR_WORDS);
  private readonly controls = new Uint32Array((ARENA_MESSAGES * CONTROL_BYTES) / 4);
  private readonly isMerged: boolean;
  private readonly views: Uint8Array[];
  private readonly source = new AddressReader();

  /**
   * @param largestBytes longest message
   * @param isMerged whether the socket has UDP_GRO set: messages are then datagrams of one size in a row
   */
  constructor(libc: Libc, fd: number, largestBytes: number, isMerged: boolean) {
    this.libc = libc;
    this.fd = fd;
    this.isMerged = isMerged;
    // An odd number of cache lines, so that the slots' first lines are spread.
    const lines = Math.ceil(largestBytes / SLOT_ALIGNMENT) | 1;
    this.slotBytes = lines * SLOT_ALIGNMENT;
    this.bytes = new Uint8Array(ARENA_MESSAGES * this.slotBytes);
    this.views = Array.from({ length: ARENA_MESSAGES }, () => this.bytes.subarray(0, 0));
    this.messagesAddress = BigInt(libc.addressOf(this.messages.buffer));
    const slots = libc.addressOf(this.bytes.buffer);
    const addresses = libc.addressOf(this.addresses.buffer);
    const vectors = libc.addressOf(this.vectors.buffer);
    const controls = libc.addressOf(this.controls.buffer);
    for (let i = 0; i < ARENA_MESSAGES; i++) {
      const at = i * MESSAGE_WORDS;
      writePointer(this.messages, at + MESSAGE_NAME_WORD, addresses + i * ADDRESS_BYTES);
      this.messages[at + MESSAGE_NAME_LENGTH_WORD] = ADDRESS_BYTES;
      writePointer(this.messages, at + MESSAGE_IOV_WORD, vectors + i * VECTOR_WORDS * 4);
      writePointer(this.messages, at + MESSAGE_IOV_COUNT_WORD, 1);
      if (isMerged) writePointer(this.messages, at + MESSAGE_CONTROL_WORD, controls + i * CONTROL_BYTES);
      writePointer(this.vectors, i * VECTOR_WORDS, slots + i * this.slotBytes);
      writePointer(this.vectors, i * VECTOR_WORDS + 2, this.slotBytes);
    }
  }

  /**
   * Hands out what one system call brings, in the order of arrival. The views are good until the next call.
   * @param isOpen asked before each datagram: whoever gets one may close the socket
   * @returns messages received, at most {@link ARENA_MESSAGES}; 0: there were none
   */
  receive(isOpen: () => boolean, deliver: Deliver): number {
    // The kernel writes there how much it has written.
    if (this.isMerged)
      for (let at = MESSAGE_CONTROL_LENGTH_WORD; at < this.messages.length; at += MESSAGE_WORDS)
        writePointer(this.messages, at, CONTROL_BYTES);
    const count = this.libc.recvmmsg(this.fd, this.messagesAddress, ARENA_MESSAGES, MSG_DONTWAIT, 0n);
    if (count <= 0) return 0;
    this.statistics.calls++;
    for (let i = 0; i < count && isOpen(); i++) {
      const at = i * MESSAGE_WORDS;
      if ((this.messages[at + MESSAGE_FLAGS_WORD]! & MSG_TRUNC) !== 0) {
        this.statistics.truncated++;
        continue;
      }
      this.source.read(this.addresses, i * ADDRESS_BYTES);
      const length = this.messages[at + MESSAGE_LENGTH_WORD]!;
      const size = this.isMerged ? this.segmentBytes(i) : 0;
      if (size > 0 && size < length) this.split(i * this.slotBytes, length, size, isOpen, deliver);
      else {
        this.statistics.datagrams++;
        deliver(this.view(i, length), this.source.ip, this.source.port);
      }
    }
    return count;
  }

  private split(start: number, length: number, size: number, isOpen: () => boolean, deliver: Deliver): void {
    const end = start + length;
    for (let at = start; at < end && isOpen(); at += size) {
      this.statistics.datagrams++;
      deliver(this.bytes.subarray(at, Math.min(end, at + size)), this.source.ip, this.source.port);
    }
  }

  /** Most datagrams of a stream have one length. */
  private view(slot: number, length: number): Uint8Array {
    const view = this.views[slot]!;
    if (view.length === length) return view;
    const start = slot * this.slotBytes;
    const fresh = this.bytes.subarray(start, start + length);
    this.views[slot] = fresh;
    return fresh;
  }

  /** 0: the message is one datagram. */
  private segmentBytes(slot: number): number {
    if (this.messages[slot * MESSAGE_WORDS + MESSAGE_CONTROL_LENGTH_WORD + LOW_WORD] === 0) return 0;
    const control = (slot * CONTROL_BYTES) / 4;
    const isSize = this.controls[control + 2] === SOL_UDP && this.controls[control + 3] === UDP_GRO;
    return isSize ? this.controls[control + 4]! : 0;
  }
}
