import {
  EAGAIN,
  EINTR,
  EINVAL,
  EIO,
  EMSGSIZE,
  ENOBUFS,
  MSG_DONTWAIT,
  SOL_UDP,
  UDP_SEGMENT,
} from '../../../base/linux/abi.ts';
import type { Libc } from '../../../base/linux/libc.ts';
import {
  MESSAGE_CONTROL_LENGTH_WORD,
  MESSAGE_CONTROL_WORD,
  MESSAGE_IOV_COUNT_WORD,
  MESSAGE_IOV_WORD,
  MESSAGE_NAME_LENGTH_WORD,
  MESSAGE_NAME_WORD,
  MESSAGE_WORDS,
  VECTOR_WORDS,
  writePointer,
} from '../../../base/linux/messages.ts';
import { ADDRESS_BYTES, writeAddress } from './socket-address.ts';

/** What one flush sends at most. Small enough to stay in a second-level cache between the copy in and the kernel's copy out. */
const QUEUE_BYTES = 256 * 1024;
const QUEUE_MESSAGES = 128;
/** UDP over IPv4: 65,535 less the two headers. */
export const MAX_DATAGRAM_BYTES = 65_507;
/** UDP_MAX_SEGMENTS of the kernels that began with it; newer ones take 128. */
const MAX_SEGMENTS = 64;
/** struct cmsghdr (length 64, level 32, type 32), a 16-bit segment size, padding. */
const CONTROL_BYTES = 24;
const CONTROL_LENGTH = 18;

export interface SendStatistics {
  datagrams: number;
  calls: number;
  deferred: number;
  failed: number;
}

/**
 * Datagrams that wait for one system call to send them all (sendmmsg). They are copied into memory of a fixed size. Neighbours of one size to one
 * destination become one message that the kernel, or the NIC, cuts (UDP GSO), as long as the kernel agrees.
 */
export class SendQueue {
  readonly statistics: SendStatistics = { datagrams: 0, calls: 0, deferred: 0, failed: 0 };
  private readonly libc: Libc;
  private readonly fd: number;
  private segments: boolean;
  private readonly bytes = new Uint8Array(QUEUE_BYTES);
  private readonly bytesAddress: number;
  private readonly addresses = new Uint8Array(QUEUE_MESSAGES * ADDRESS_BYTES);
  private readonly vectors = new Uint32Array(QUEUE_MESSAGES * VECTOR_WORDS);
  private readonly controls = new Uint32Array((QUEUE_MESSAGES * CONTROL_BYTES) / 4);
  private readonly controlHalves = new Uint16Array(this.controls.buffer);
  private readonly messages = new Uint32Array(QUEUE_MESSAGES * MESSAGE_WORDS);
  private readonly messagesAddress: number;
  /** Of each message: its first byte, its length, the size of its segments. */
  private readonly starts = new Uint32Array(QUEUE_MESSAGES);
  private readonly lengths = new Uint32Array(QUEUE_MESSAGES);
  private readonly sizes = new Uint32Array(QUEUE_MESSAGES);
  private first = 0;
  private count = 0;
  private used = 0;
  /** Where the last message goes. */
  private ip = 0;
  private port = 0;

  /** @param segments whether the kernel knows UDP GSO on this socket */
  constructor(libc: Libc, fd: number, segments: boolean) {
    this.libc = libc;
    this.fd = fd;
    this.segments = segments;
    this.bytesAddress = libc.addressOf(this.bytes.buffer);
    this.messagesAddress = libc.addressOf(this.messages.buffer);
    const addresses = libc.addressOf(this.addresses.buffer);
    const vectors = libc.addressOf(this.vectors.buffer);
    const controls = libc.addressOf(this.controls.buffer);
    for (let i = 0; i < QUEUE_MESSAGES; i++) {
      const at = i * MESSAGE_WORDS;
      writePointer(this.messages, at + MESSAGE_NAME_WORD, addresses + i * ADDRESS_BYTES);
      this.messages[at + MESSAGE_NAME_LENGTH_WORD] = ADDRESS_BYTES;
      writePointer(this.messages, at + MESSAGE_IOV_WORD, vectors + i * VECTOR_WORDS * 4);
      writePointer(this.messages, at + MESSAGE_IOV_COUNT_WORD, 1);
      writePointer(this.messages, at + MESSAGE_CONTROL_WORD, controls + i * CONTROL_BYTES);
      const control = (i * CONTROL_BYTES) / 4;
      writePointer(this.controls, control, CONTROL_LENGTH);
      this.controls[control + 2] = SOL_UDP;
      this.controls[control + 3] = UDP_SEGMENT;
    }
  }

  get isEmpty(): boolean {
    return this.count === 0;
  }

  /** Whether {@link add} takes a datagram of this length. */
  hasRoomFor(length: number): boolean {
    return this.used + length <= QUEUE_BYTES && this.count < QUEUE_MESSAGES;
  }

  /** For a datagram that there is room for. */
  add(ip: number, port: number, payload: Uint8Array): void {
    const { length } = payload;
    this.bytes.set(payload, this.used);
    if (this.joinsLast(ip, port, length)) this.lengths[this.count - 1]! += length;
    else this.begin(ip, port, length);
    this.used += length;
  }

  /**
   * Sends what waits.
   * @returns whether nothing waits any more; if not, the kernel has no room for now
   */
  flush(): boolean {
    for (let i = this.first; i < this.count; i++) this.seal(i);
    while (this.first < this.count) {
      const left = this.count - this.first;
      const sent = this.libc.sendmmsg(this.fd, this.messageAddress(this.first), left, MSG_DONTWAIT);
      if (sent > 0) {
        this.statistics.calls++;
        for (let i = this.first; i < this.first + sent; i++)
          this.statistics.datagrams += Math.max(1, Math.ceil(this.lengths[i]! / this.sizes[i]!));
        this.first += sent;
      } else if (!this.refused(this.libc.errno())) {
        this.statistics.deferred++;
        return false;
      }
    }
    this.first = 0;
    this.count = 0;
    this.used = 0;
    return true;
  }

  /** @returns whether to go on: with the same message if it was changed, or with the next */
  private refused(errno: number): boolean {
    if (errno === EINTR) return true;
    if (errno === EAGAIN || errno === ENOBUFS) return false;
    const isJoined = this.lengths[this.first]! > this.sizes[this.first]!;
    if (isJoined && (errno === EIO || errno === EINVAL || errno === EMSGSIZE)) {
      // The route's device, or its MTU, does not allow it: one by one from now on.
      this.segments = false;
      return this.sendSingly();
    }
    this.statistics.failed++;
    this.first++;
    return true;
  }

  /** The datagrams of the first message, each by a call. @returns whether all have left */
  private sendSingly(): boolean {
    const at = this.first;
    const end = this.starts[at]! + this.lengths[at]!;
    const size = this.sizes[at]!;
    while (this.starts[at]! < end) {
      const length = Math.min(size, end - this.starts[at]!);
      this.lengths[at] = length;
      this.seal(at);
      const sent = this.libc.sendmmsg(this.fd, this.messageAddress(at), 1, MSG_DONTWAIT);
      const errno = sent > 0 ? 0 : this.libc.errno();
      if (errno === EINTR) continue;
      if (errno === EAGAIN || errno === ENOBUFS) {
        this.lengths[at] = end - this.starts[at]!;
        return false;
      }
      if (errno === 0) {
        this.statistics.calls++;
        this.statistics.datagrams++;
      } else this.statistics.failed++;
      this.starts[at]! += length;
    }
    this.first++;
    return true;
  }

  private joinsLast(ip: number, port: number, length: number): boolean {
    if (!this.segments || this.count === this.first || ip !== this.ip || port !== this.port) return false;
    const last = this.count - 1;
    const size = this.sizes[last]!;
    const bytes = this.lengths[last]!;
    // A shorter segment is the last one of its message.
    return (
      length > 0 &&
      length <= size &&
      bytes % size === 0 &&
      bytes < size * MAX_SEGMENTS &&
      bytes + length <= MAX_DATAGRAM_BYTES
    );
  }

  private begin(ip: number, port: number, length: number): void {
    const at = this.count++;
    writeAddress(this.addresses, at * ADDRESS_BYTES, ip, port);
    this.ip = ip;
    this.port = port;
    this.starts[at] = this.used;
    this.lengths[at] = length;
    // An empty datagram is one all the same.
    this.sizes[at] = Math.max(1, length);
  }

  private seal(at: number): void {
    const length = this.lengths[at]!;
    const isJoined = length > this.sizes[at]!;
    writePointer(this.vectors, at * VECTOR_WORDS, this.bytesAddress + this.starts[at]!);
    writePointer(this.vectors, at * VECTOR_WORDS + 2, length);
    writePointer(this.messages, at * MESSAGE_WORDS + MESSAGE_CONTROL_LENGTH_WORD, isJoined ? CONTROL_BYTES : 0);
    if (isJoined) this.controlHalves[(at * CONTROL_BYTES) / 2 + 8] = this.sizes[at]!;
  }

  private messageAddress(at: number): bigint {
    return BigInt(this.messagesAddress + at * MESSAGE_WORDS * 4);
  }
}
