import { DdfError } from '../../../base/errors.ts';
import {
  AF_INET,
  EADDRINUSE,
  MEMINFO_DROPS_WORD,
  MEMINFO_WORDS,
  SO_MEMINFO,
  SO_RCVBUF,
  SO_RCVBUFFORCE,
  SO_SNDBUF,
  SOCK_CLOEXEC,
  SOCK_DGRAM,
  SOCK_NONBLOCK,
  SOL_SOCKET,
  SOL_UDP,
  UDP_GRO,
  UDP_SEGMENT,
} from '../../../base/linux/abi.ts';
import { errorName, type Libc } from '../../../base/linux/libc.ts';
import { parseIpv4 } from '../../../wire/packet/addresses.ts';
import type { FabricSocket, SocketStatistics } from '../fabric-socket.ts';
import { ARENA_MESSAGES, ReceiveArena } from './receive-arena.ts';
import { MAX_DATAGRAM_BYTES, SendQueue } from './send-queue.ts';
import { ADDRESS_BYTES, writeAddress } from './socket-address.ts';

/** Room for what comes while the program does something else; the kernel counts twice as much, for its own structures. */
const RECEIVE_BUFFER_BYTES = 16 * 1024 * 1024;
/**
 * What may wait in the interface's queue; the kernel doubles it too. Little enough that the socket is full before that queue is (1,000 packets by
 * default, a megabyte in many a shaper): a full socket says so, a full queue drops.
 */
const SEND_BUFFER_BYTES = 256 * 1024;
/** Calls in a turn, so that others get theirs. */
const CALLS_PER_TURN = 4;
/** Whatever MTU it is told: probes that find out what the path carries may be longer. */
const LARGEST_COMMON_MTU_BYTES = 9216;
const HEADERS_BYTES = 28;

export interface BatchedSocketOptions {
  /** Joins datagrams of one size and destination for the kernel to cut (UDP GSO), where it can. Default true. */
  readonly segmentation?: boolean;
  /** Takes several datagrams of one size as one from the kernel (UDP GRO), where it can. Default false. */
  readonly merging?: boolean;
}

/**
 * A UDP socket that is asked for many datagrams, and given many, by one system call (recvmmsg, sendmmsg). It does not wait by itself: a UdpLoop does,
 * and says when to look.
 */
export class BatchedSocket implements FabricSocket {
  readonly ip: string;
  readonly port: number;
  readonly fd: number;
  onDatagram: FabricSocket['onDatagram'];
  /** Called when the first datagram waits for {@link flush}. */
  onWaiting: (() => void) | undefined;
  onClose: (() => void) | undefined;
  private readonly libc: Libc;
  private readonly queue: SendQueue;
  private readonly arena: ReceiveArena;
  private isClosed = false;
  /** The kernel had no room when it was asked last. */
  private isBlocked = false;
  private discarded = 0;
  private lostAtClose = 0;
  private lastIp = '';
  private lastIpNumber = 0;

  /** @throws DdfError ADDRESS_IN_USE; AGENT_FAILED when the system refuses for another reason */
  constructor(libc: Libc, ip: string, port: number, mtuBytes: number, options: BatchedSocketOptions = {}) {
    this.libc = libc;
    this.ip = ip;
    this.fd = libc.socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (this.fd < 0) throw this.refusal(port);
    try {
      const { fd } = this;
      if (!setNumber(libc, fd, SOL_SOCKET, SO_RCVBUFFORCE, RECEIVE_BUFFER_BYTES))
        setNumber(libc, fd, SOL_SOCKET, SO_RCVBUF, RECEIVE_BUFFER_BYTES);
      setNumber(libc, fd, SOL_SOCKET, SO_SNDBUF, SEND_BUFFER_BYTES);
      // 0 changes nothing; a kernel that does not know the option refuses it.
      const segments = options.segmentation !== false && setNumber(libc, fd, SOL_UDP, UDP_SEGMENT, 0);
      const merges = options.merging === true && setNumber(libc, fd, SOL_UDP, UDP_GRO, 1);
      const largestBytes = Math.max(mtuBytes, LARGEST_COMMON_MTU_BYTES) - HEADERS_BYTES;
      this.queue = new SendQueue(libc, fd, segments);
      this.arena = new ReceiveArena(libc, fd, merges ? MAX_DATAGRAM_BYTES : largestBytes, merges);
      const address = new Uint8Array(ADDRESS_BYTES);
      writeAddress(address, 0, parseIpv4(ip)!, port);
      if (libc.bind(fd, address, address.length) < 0) throw this.refusal(port);
      this.port = port;
    } catch (error) {
      libc.close(this.fd);
      throw error;
    }
  }

  get hasRoom(): boolean {
    return !this.isBlocked;
  }

  /** @throws DdfError INVALID_PACKET for more than 65,507 bytes, INVALID_OPTION for what is no IPv4 address */
  send(destinationIp: string, destinationPort: number, payload: Uint8Array): void {
    if (this.isClosed) return;
    if (payload.length > MAX_DATAGRAM_BYTES)
      throw new DdfError('INVALID_PACKET', `a datagram of ${payload.length} bytes; UDP carries ${MAX_DATAGRAM_BYTES}`);
    const ip = this.numberOf(destinationIp);
    if (!this.queue.hasRoomFor(payload.length)) {
      this.discarded++;
      return;
    }
    const isFirst = this.queue.isEmpty;
    this.queue.add(ip, destinationPort, payload);
    // As long as the kernel has room there is some for the longest datagram.
    if (!this.isBlocked && !this.queue.hasRoomFor(MAX_DATAGRAM_BYTES)) this.flush();
    if (isFirst) this.onWaiting?.();
  }

  /** Hands over what waits to the kernel. @returns whether nothing waits any more */
  flush(): boolean {
    if (this.isClosed) return true;
    this.isBlocked = !this.queue.flush();
    return !this.isBlocked;
  }

  /** Hands out what has arrived. @returns whether there may be more */
  receive(): boolean {
    for (let call = 0; call < CALLS_PER_TURN; call++)
      if (this.isClosed || this.arena.receive(this.isOpen, this.deliver) < ARENA_MESSAGES) return false;
    return true;
  }

  /** Datagrams that were received so far. */
  get received(): number {
    return this.arena.statistics.datagrams;
  }

  statistics(): SocketStatistics {
    const { queue, arena } = this;
    return {
      datagramsSent: queue.statistics.datagrams,
      datagramsReceived: arena.statistics.datagrams,
      sendCalls: queue.statistics.calls,
      receiveCalls: arena.statistics.calls,
      sendsDeferred: queue.statistics.deferred,
      sendsFailed: queue.statistics.failed + this.discarded,
      receivesLost: this.lost() + arena.statistics.truncated,
    };
  }

  /** Sends what waits, as far as the kernel has room. Idempotent. */
  close(): void {
    if (this.isClosed) return;
    this.flush();
    this.lostAtClose = this.lost();
    this.isClosed = true;
    this.onDatagram = undefined;
    this.libc.close(this.fd);
    this.onClose?.();
  }

  private readonly isOpen = (): boolean => !this.isClosed;

  private readonly deliver = (payload: Uint8Array, sourceIp: string, sourcePort: number): void => {
    this.onDatagram?.(payload, sourceIp, sourcePort);
  };

  private lost(): number {
    if (this.isClosed) return this.lostAtClose;
    const words = new Uint32Array(MEMINFO_WORDS);
    const length = new Uint8Array(new Uint32Array([words.byteLength]).buffer);
    const known = this.libc.getsockopt(this.fd, SOL_SOCKET, SO_MEMINFO, new Uint8Array(words.buffer), length) === 0;
    return known ? words[MEMINFO_DROPS_WORD]! : 0;
  }

  private numberOf(ip: string): number {
    if (ip === this.lastIp) return this.lastIpNumber;
    const number = parseIpv4(ip);
    if (number === undefined) throw new DdfError('INVALID_OPTION', `'${ip}' is not an IPv4 address`);
    this.lastIp = ip;
    this.lastIpNumber = number;
    return number;
  }

  private refusal(port: number): DdfError {
    const errno = this.libc.errno();
    return new DdfError(
      errno === EADDRINUSE ? 'ADDRESS_IN_USE' : 'AGENT_FAILED',
      `UDP ${this.ip}:${port}: ${errorName(errno)}`,
    );
  }
}

/** @returns whether the kernel took it */
function setNumber(libc: Libc, fd: number, level: number, name: number, value: number): boolean {
  const bytes = new Uint8Array(new Int32Array([value]).buffer);
  return libc.setsockopt(fd, level, name, bytes, bytes.length) === 0;
}
