import { DdfError } from '../../../base/errors.ts';
import { EFD_CLOEXEC_NONBLOCK, POLLIN } from '../../../base/linux/abi.ts';
import type { Libc } from '../../../base/linux/libc.ts';
import type { BatchedSocket } from './batched-socket.ts';

/** Sockets that one loop watches. */
const MAX_SOCKETS = 63;
/** While datagrams come they are fetched this often, a timer's grain: waking up for each of them costs more than all the rest. */
const FETCH_INTERVAL_MS = 1;
/** Fetches without a datagram until the loop sleeps. */
const IDLE_FETCHES = 8;
/** Sleep is interrupted by datagrams; this is only for what no descriptor tells. */
const LONGEST_SLEEP_MS = 1000;
/** struct pollfd: fd 32, events 16, revents 16. */
const DESCRIPTOR_WORDS = 2;

/**
 * Fetches what arrives at batched sockets and sends what they collect. It sleeps in poll(2) on another thread while nothing comes, looks once a
 * millisecond while something does, and sends at the end of the callback in which a socket was given the first datagram.
 */
export class UdpLoop {
  private readonly libc: Libc;
  private readonly sockets: BatchedSocket[] = [];
  private readonly descriptors = new Int32Array((MAX_SOCKETS + 1) * DESCRIPTOR_WORDS);
  private readonly descriptorsAddress: bigint;
  private wakeFd = -1;
  private isAsleep = false;
  private idleFetches = 0;
  private next: NodeJS.Timeout | NodeJS.Immediate | undefined;
  private retry: NodeJS.Timeout | undefined;

  constructor(libc: Libc) {
    this.libc = libc;
    this.descriptorsAddress = BigInt(libc.addressOf(this.descriptors.buffer));
  }

  /** Until it is closed. @throws DdfError AGENT_FAILED when there are too many */
  add(socket: BatchedSocket): void {
    if (this.sockets.length === MAX_SOCKETS)
      throw new DdfError('AGENT_FAILED', `more than ${MAX_SOCKETS} UDP sockets in one process`);
    this.sockets.push(socket);
    socket.onWaiting = () => queueMicrotask(() => this.flush(socket));
    socket.onClose = () => this.remove(socket);
    if (this.isAsleep) this.wake();
    else if (this.next === undefined) this.sleep();
  }

  /** Blocks this thread for so long, then hands out what has come: for waits that are too short for a timer. */
  waitUs(microseconds: number): void {
    this.libc.sleepUs(microseconds);
    this.fetch();
  }

  /** @returns whether there may be more to fetch */
  private fetch(): boolean {
    let more = false;
    for (let i = 0; i < this.sockets.length; i++) {
      const socket = this.sockets[i]!;
      const before = socket.received;
      if (socket.receive()) more = true;
      if (socket.received !== before) this.idleFetches = 0;
    }
    return more;
  }

  private readonly turn = (): void => {
    this.next = undefined;
    this.idleFetches++;
    const more = this.fetch();
    if (this.sockets.length === 0) this.end();
    else if (more) this.next = setImmediate(this.turn);
    else if (this.idleFetches <= IDLE_FETCHES) this.next = setTimeout(this.turn, FETCH_INTERVAL_MS);
    else this.sleep();
  };

  private sleep(): void {
    if (this.wakeFd < 0) this.wakeFd = this.libc.eventfd(0, EFD_CLOEXEC_NONBLOCK);
    this.listen();
    this.isAsleep = true;
    this.libc.pollAsync(this.descriptorsAddress, this.sockets.length + 1, LONGEST_SLEEP_MS, () => {
      this.isAsleep = false;
      this.libc.read(this.wakeFd, new Uint8Array(8), 8);
      this.idleFetches = IDLE_FETCHES;
      this.turn();
    });
  }

  private wake(): void {
    this.libc.write(this.wakeFd, new Uint8Array(new BigUint64Array([1n]).buffer), 8);
  }

  private end(): void {
    if (this.wakeFd >= 0) this.libc.close(this.wakeFd);
    this.wakeFd = -1;
  }

  private remove(socket: BatchedSocket): void {
    this.sockets.splice(this.sockets.indexOf(socket), 1);
    if (this.isAsleep) this.wake();
  }

  /** What the kernel has no room for is tried again in a millisecond. */
  private flush(socket: BatchedSocket): void {
    if (socket.flush() || this.retry !== undefined) return;
    this.retry = setTimeout(() => {
      this.retry = undefined;
      for (const waiting of this.sockets) if (!waiting.hasRoom) this.flush(waiting);
    }, FETCH_INTERVAL_MS);
  }

  private listen(): void {
    const events = new Int16Array(this.descriptors.buffer);
    const put = (at: number, fd: number): void => {
      this.descriptors[at * DESCRIPTOR_WORDS] = fd;
      events[at * DESCRIPTOR_WORDS * 2 + 2] = POLLIN;
    };
    put(0, this.wakeFd);
    for (const [i, socket] of this.sockets.entries()) put(i + 1, socket.fd);
  }
}
