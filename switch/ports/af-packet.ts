import { DdfError } from '../../base/errors.ts';
import { SO_ERROR, SO_RCVBUF, SO_RCVBUFFORCE, SO_SNDBUF, SO_SNDBUFFORCE, SOL_SOCKET } from '../../base/linux/abi.ts';
import type { Libc } from '../../base/linux/libc.ts';
import type { FrameMemory, FrameSink } from '../runtime/frames.ts';
import {
  ETH_P_ALL,
  PACKET_ADD_MEMBERSHIP,
  PACKET_COPY_THRESH,
  PACKET_IGNORE_OUTGOING,
  PACKET_MR_PROMISC,
  PACKET_STATISTICS,
  PACKET_VERSION,
  PACKET_VNET_HDR,
  SIOCOUTQ,
  SOL_PACKET,
  TPACKET_V2,
} from './linux/abi.ts';
import { type InterfaceControl, MAX_INTERFACE_NAME_BYTES } from './linux/interface.ts';
import type { LinkState } from './linux/link-monitor.ts';
import { bindPacketSocket, openPacketSocket, setOption } from './linux/packet-socket.ts';
import { ReceiveRing } from './linux/receive-ring.ts';
import { type KnownMemory, SendBatch } from './linux/send-batch.ts';
import { systemError } from './linux/system-error.ts';
import { TransmitQueue } from './linux/transmit-queue.ts';

/** Cumulative; bytes are frame lengths without FCS. */
export interface AfPacketStatistics {
  readonly framesReceived: number;
  readonly bytesReceived: number;
  /** Lost before we saw them, because the ring was full. */
  readonly ringDropped: number;
  /** Received but not usable: too large, or with headers that make no sense. */
  readonly unusable: number;
  readonly segmented: number;
  readonly checksumsCompleted: number;
  readonly framesSent: number;
  readonly bytesSent: number;
  readonly queueDropped: number;
  readonly tooLong: number;
  readonly sendFailed: number;
}

/** Room for packets that wait to be sent (in the interface's queue), and for those too large for the ring. */
const SOCKET_BUFFER_BYTES = 4 * 1024 * 1024;
/** Every so many flushes the queue is read before and after, to learn what frames are charged; those of new lengths at once. */
const FLUSHES_PER_LESSON = 16;

/**
 * A port on a network interface, through packet sockets: one with a ring that receives, one that sends in batches. Linux only, needs CAP_NET_RAW.
 *
 * Frames that it hands out lie in the ring and are good until `release`; whoever keeps one longer copies it. Frames that it is given must stay as they
 * are until `flush`. A PortLoop calls both.
 */
export class AfPacketPort {
  readonly interfaceName: string;
  readonly interfaceIndex: number;
  readonly mtuBytes: number;
  /** Becomes readable when frames arrive. */
  readonly fd: number;
  /** Called with each frame that arrives. */
  onFrame: FrameSink | undefined;
  /** Called when the first frame waits for {@link flush}. */
  onWaiting: (() => void) | undefined;
  private readonly libc: Libc;
  private readonly sendFd: number;
  private readonly ring: ReceiveRing;
  private readonly batch: SendBatch;
  private readonly queue = new TransmitQueue();
  private queueRead = false;
  private depthAsked = false;
  private flushes = 0;
  private readonly restoreOffloads: (() => void) | undefined;
  private linkState: LinkState;
  private framesReceived = 0;
  private bytesReceived = 0;
  private ringDropped = 0;
  private closed = false;

  /** Throws PORT_UNAVAILABLE: no such interface, no permission, not Ethernet. INVALID_OPTION for a name that cannot be one. */
  constructor(libc: Libc, interfaces: InterfaceControl, interfaceName: string) {
    checkInterfaceName(interfaceName);
    const properties = interfaces.properties(interfaceName);
    this.libc = libc;
    this.interfaceName = interfaceName;
    this.interfaceIndex = properties.index;
    this.mtuBytes = properties.mtuBytes;
    this.linkState = properties.isUp ? 'up' : 'down';
    this.fd = openPacketSocket(libc, interfaceName);
    this.sendFd = -1;
    try {
      setOption(libc, this.fd, SOL_PACKET, PACKET_VERSION, TPACKET_V2, 'use receive rings', interfaceName);
      setOption(libc, this.fd, SOL_PACKET, PACKET_VNET_HDR, 1, 'see checksum offload', interfaceName);
      setOption(libc, this.fd, SOL_PACKET, PACKET_COPY_THRESH, 1, 'queue large packets', interfaceName);
      setOption(libc, this.fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, 1, 'leave out what it sends itself', interfaceName);
      enlarge(libc, this.fd, SO_RCVBUFFORCE, SO_RCVBUF);
      this.ring = new ReceiveRing(libc, this.fd, interfaceName, properties.mtuBytes);
      bindPacketSocket(libc, this.fd, ETH_P_ALL, properties.index, interfaceName);
      promiscuous(libc, this.fd, properties.index, interfaceName);
      this.sendFd = openPacketSocket(libc, interfaceName);
      enlarge(libc, this.sendFd, SO_SNDBUFFORCE, SO_SNDBUF);
      bindPacketSocket(libc, this.sendFd, 0, properties.index, interfaceName);
    } catch (error) {
      libc.close(this.fd);
      if (this.sendFd >= 0) libc.close(this.sendFd);
      throw error;
    }
    this.batch = new SendBatch(libc, this.sendFd);
    this.batch.onSent = (bytes) => this.queue.add(bytes);
    this.restoreOffloads = interfaces.disableReceiveMerging(interfaceName);
  }

  get state(): LinkState {
    return this.linkState;
  }

  set state(state: LinkState) {
    this.linkState = state;
    // An interface that went down leaves an error behind, which would wake us up for ever.
    if (!this.closed) this.clearError();
  }

  /** Its receive ring: frames that come from there and leave by another port are sent without a copy. */
  get memory(): KnownMemory {
    return this.ring;
  }

  addKnownMemory(memory: KnownMemory): void {
    this.batch.addKnownMemory(memory);
  }

  removeKnownMemory(memory: KnownMemory): void {
    this.batch.removeKnownMemory(memory);
  }

  send(memory: FrameMemory, start: number, end: number): void {
    if (this.closed) return;
    if (this.batch.length === 0) this.onWaiting?.();
    this.batch.add(memory, start, end);
  }

  /** Frames that wait for {@link flush}, and those in the interface's queue as of this turn of the event loop. */
  queueDepth(): number {
    if (this.closed) return 0;
    this.depthAsked = true;
    if (!this.queueRead && this.queue.length > 0) {
      this.readQueue();
      this.queueRead = true;
      queueMicrotask(this.forgetReading);
    }
    return this.batch.length + this.queue.length;
  }

  /** Hands out what has arrived. Returns how many slots of the ring that took. */
  receive(budget: number): number {
    return this.ring.receive(budget, this.deliver);
  }

  /** What was handed out may be overwritten from now on. */
  release(): void {
    this.ring.release();
  }

  flush(): void {
    if (this.closed || this.batch.length === 0) return;
    const learns = this.depthAsked && (this.queue.isLearning || ++this.flushes % FLUSHES_PER_LESSON === 0);
    this.depthAsked = false;
    if (learns && this.queue.length > 0) this.readQueue();
    this.batch.flush();
    if (learns) this.readQueue();
  }

  statistics(): AfPacketStatistics {
    if (!this.closed) this.readRingStatistics();
    const { unusable, segmented, checksumsCompleted } = this.ring.statistics;
    const { frames, bytes, queueDropped, tooLong, failed } = this.batch.statistics;
    return {
      framesReceived: this.framesReceived,
      bytesReceived: this.bytesReceived,
      ringDropped: this.ringDropped,
      unusable,
      segmented,
      checksumsCompleted,
      framesSent: frames,
      bytesSent: bytes,
      queueDropped,
      tooLong,
      sendFailed: failed,
    };
  }

  /** Sends what waits, leaves the interface as it was found. Idempotent. */
  close(): void {
    if (this.closed) return;
    this.flush();
    this.readRingStatistics();
    this.closed = true;
    // Another interface may have the name of one that is gone.
    if (this.linkState !== 'gone') this.restoreOffloads?.();
    this.libc.close(this.fd);
    this.libc.close(this.sendFd);
  }

  private readonly answerWord = new Int32Array(2);
  private readonly answer = new Uint8Array(this.answerWord.buffer);

  private readonly deliver: FrameSink = (memory, start, end) => {
    this.framesReceived++;
    this.bytesReceived += end - start;
    this.onFrame?.(memory, start, end);
  };

  private readonly forgetReading = (): void => {
    this.queueRead = false;
  };

  private readQueue(): void {
    this.queue.read(this.libc.ioctl(this.sendFd, SIOCOUTQ, this.answer) < 0 ? 0 : this.answerWord[0]!);
  }

  private clearError(): void {
    const length = new Uint8Array(new Uint32Array([4]).buffer);
    this.libc.getsockopt(this.fd, SOL_SOCKET, SO_ERROR, this.answer, length);
    this.libc.getsockopt(this.sendFd, SOL_SOCKET, SO_ERROR, this.answer, length);
  }

  /** struct tpacket_stats: packets, drops; reading sets them to zero. */
  private readRingStatistics(): void {
    const length = new Uint8Array(new Uint32Array([8]).buffer);
    if (this.libc.getsockopt(this.fd, SOL_PACKET, PACKET_STATISTICS, this.answer, length) === 0)
      this.ringDropped += this.answerWord[1]! >>> 0;
  }
}

/** Throws INVALID_OPTION. */
export function checkInterfaceName(name: string): void {
  const bytes = new TextEncoder().encode(name).length;
  if (bytes === 0 || bytes > MAX_INTERFACE_NAME_BYTES || /[\s/\0:]/.test(name))
    throw new DdfError(
      'INVALID_OPTION',
      `${JSON.stringify(name)} is no name of a network interface: it has 1 to ${MAX_INTERFACE_NAME_BYTES} bytes, none of them space, / or :`,
    );
}

/** As far as we are allowed to. */
function enlarge(libc: Libc, fd: number, force: number, limited: number): void {
  const bytes = new Uint8Array(new Int32Array([SOCKET_BUFFER_BYTES]).buffer);
  if (libc.setsockopt(fd, SOL_SOCKET, force, bytes, bytes.length) < 0)
    libc.setsockopt(fd, SOL_SOCKET, limited, bytes, bytes.length);
}

/** struct packet_mreq: index 32, type 16, alen 16, address 64. The kernel leaves promiscuous mode when the socket is closed. */
function promiscuous(libc: Libc, fd: number, index: number, name: string): void {
  const request = new Uint8Array(16);
  new Int32Array(request.buffer)[0] = index;
  new Uint16Array(request.buffer)[2] = PACKET_MR_PROMISC;
  if (libc.setsockopt(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, request, request.length) < 0)
    throw systemError(libc, 'receive frames for other stations', name);
}
