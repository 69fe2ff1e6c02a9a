import type { Random } from '../../base/random.ts';
import {
  FABRIC_FLAG_CLOSED,
  FABRIC_TYPE_DATA,
  FABRIC_TYPE_DONE,
  FABRIC_TYPE_NACK,
  FABRIC_TYPE_REPAIR,
  FABRIC_TYPE_REPORT,
  FABRIC_TYPE_SYNC,
} from '../../p4/build/constants.ts';
import {
  decodeFabric,
  encodeFabric,
  FABRIC_HEADER_BYTES,
  type FabricFault,
  type FabricHeader,
  type FabricPacket,
} from '../../wire/fabric/header.ts';
import { AskSchedule, MAX_TRIES } from './ask-schedule.ts';
import { type LayoutParameters, StreamLayout } from './layout.ts';
import { countRejection, noRejections, type Rejection, type RejectionCounters } from './rejections.ts';
import { ResponseTime } from './response-time.ts';
import { type AssemblyEvent, type PayloadSink, StreamAssembly } from './stream-assembly.ts';
import { HeaderTemplate, MAX_NEED, type TransferIdentity } from './transfer.ts';

const EMPTY = new Uint8Array(0);

export interface ReceiverOptions extends LayoutParameters {
  readonly transfer: TransferIdentity;
  readonly sink: PayloadSink;
  readonly random: Random;
  /** The controller's estimate for the path to the sender and back. */
  readonly rttUs: number;
  /** The switches' elimination interval: retries stay above it. */
  readonly eliminationUs: number;
  /** False where receivers share a bit of the tree masks: then no DONE is sent. */
  readonly sendDone: boolean;
  /** What is missing then is read by unicast. Default: no deadline. */
  readonly deadlineUs?: number;
  /** Silence of the sender after which the same happens. Default 3 s. */
  readonly idleTimeoutUs?: number;
  /** The same before the first packet. Default 60 s. */
  readonly startTimeoutUs?: number;
  /** Chunks held and verified from an earlier run. Default none. */
  readonly verifiedChunks?: Iterable<number>;
  /** The driver has the manifest already. Default false. */
  readonly manifestIsHeld?: boolean;
  /** Bound on the buffers of incomplete blocks. Default 32 MiB. */
  readonly bufferBytes?: number;
}

export type ReceiverEvent =
  | AssemblyEvent
  /** The sender has ended the transfer, or is silent, or the deadline has passed: what is missing comes by unicast. */
  | { readonly type: 'streamEnded'; readonly reason: 'closed' | 'idle' | 'deadline' };

/** Counters of ../../wire/agent/schema.ts as plain numbers. */
export interface ReceiverCounters extends RejectionCounters {
  dataPackets: number;
  repairPackets: number;
  repairUnneeded: number;
  duplicates: number;
  lostSymbols: number;
  nacksSent: number;
  blocksDecoded: number;
  syncPackets: number;
  /** Well-formed, but the stream had ended for this receiver. */
  packetsLate: number;
  chunksVerified: number;
  chunksFailed: number;
  unicastBytes: number;
  unicastRequests: number;
  reportsSent: number;
}

/**
 * One transfer as one receiver sees it. No I/O: the driver hands in datagrams, the results of hashing, the bytes of unicast reads and
 * the time, sends what `pollTransmit` returns to the sender, and calls `handleTimeout` at `pollTimeout`.
 */
export class TransferReceiver {
  readonly layout: StreamLayout;
  private readonly headers: HeaderTemplate;
  private readonly assembly: StreamAssembly;
  private readonly response: ResponseTime;
  private readonly asks: AskSchedule;
  private readonly sendDone: boolean;
  private readonly deadlineUs: number;
  private readonly idleTimeoutUs: number;
  private readonly datagram = new Uint8Array(FABRIC_HEADER_BYTES);
  private readonly outgoing: FabricHeader[] = [];
  private readonly events: ReceiverEvent[] = [];
  private readonly tally = {
    dataPackets: 0,
    repairPackets: 0,
    repairUnneeded: 0,
    duplicates: 0,
    nacksSent: 0,
    syncPackets: 0,
    packetsLate: 0,
    chunksVerified: 0,
    chunksFailed: 0,
    unicastBytes: 0,
    unicastRequests: 0,
    reportsSent: 0,
    ...noRejections(),
  };
  /** Blocks below this have been sent in full, as far as packets have told. */
  private ended = 0;
  private epoch = 0;
  private worstQueueLevel = 0;
  /** When silence ends the stream. */
  private silentAtUs: number;
  private streamEnded = false;
  private doneSaid = false;

  /** @throws INVALID_OPTION for sizes that cannot be laid out */
  constructor(nowUs: number, options: ReceiverOptions) {
    this.layout = new StreamLayout(options);
    this.headers = new HeaderTemplate(options.transfer, this.layout);
    this.response = new ResponseTime(options.rttUs, options.eliminationUs, options.random);
    this.asks = new AskSchedule(this.response);
    this.sendDone = options.sendDone;
    this.deadlineUs = options.deadlineUs ?? Number.POSITIVE_INFINITY;
    this.idleTimeoutUs = options.idleTimeoutUs ?? 3_000_000;
    this.silentAtUs = nowUs + (options.startTimeoutUs ?? 60_000_000);
    this.assembly = new StreamAssembly(
      this.layout,
      options.sink,
      options.verifiedChunks ?? [],
      options.manifestIsHeld ?? false,
      options.bufferBytes ?? 32 << 20,
      (event) => this.events.push(event),
    );
    this.settle();
  }

  get counters(): ReceiverCounters {
    return {
      ...this.tally,
      lostSymbols: this.assembly.lostSymbols,
      blocksDecoded: this.assembly.blocksDecoded,
    };
  }

  /** Payload bytes in verified chunks. */
  get bytesDone(): number {
    return this.assembly.chunks.verifiedBytes;
  }

  get isComplete(): boolean {
    return this.assembly.isComplete;
  }

  /**
   * Takes one datagram of the transfer; anything malformed or foreign is counted and ignored.
   * @throws what the sink throws
   */
  handlePacket(nowUs: number, datagram: Uint8Array): void {
    const packet = this.examine(datagram);
    if (typeof packet === 'string') {
      countRejection(this.tally, packet);
      return;
    }
    if (this.streamEnded || this.assembly.failed) {
      this.tally.packetsLate++;
      return;
    }
    this.silentAtUs = nowUs + this.idleTimeoutUs;
    this.worstQueueLevel = Math.max(this.worstQueueLevel, packet.queueLevel);
    this.response.packetArrived(nowUs);
    if (packet.type === FABRIC_TYPE_SYNC) this.handleSync(nowUs, packet);
    else this.handleSymbol(nowUs, packet);
    this.settle();
  }

  handleTimeout(nowUs: number): void {
    if (this.assembly.failed) return;
    if (!this.streamEnded) {
      if (nowUs >= this.deadlineUs) this.endStream('deadline');
      else if (nowUs >= this.silentAtUs && this.assembly.wantsSymbols) this.endStream('idle');
    }
    for (const { block, tries } of this.asks.due(nowUs)) this.ask(nowUs, block, tries);
    this.settle();
  }

  /** The driver has hashed the bytes of `manifestComplete`. Not ok: they are read again by unicast. */
  manifestVerified(ok: boolean): void {
    this.assembly.manifestVerified(ok);
    this.settle();
  }

  /** The driver has hashed the chunk of `chunkComplete` as it was stored. Not ok: it is read again by unicast. */
  chunkVerified(chunk: number, ok: boolean): void {
    if (!this.assembly.chunks.isChecking(chunk)) return;
    if (ok) this.tally.chunksVerified++;
    else this.tally.chunksFailed++;
    this.assembly.chunkVerified(chunk, ok);
    this.settle();
  }

  /**
   * Bytes of the stream that a holder sent, whatever their borders; those that nobody asked for are ignored.
   * @throws what the sink throws
   */
  unicastData(streamOffset: number, bytes: Uint8Array): void {
    this.tally.unicastBytes += this.assembly.unicastData(streamOffset, bytes);
    this.settle();
  }

  /**
   * The next datagram to send to the sender, or undefined.
   * @returns a view that is valid until the next call
   */
  pollTransmit(nowUs: number): Uint8Array | undefined {
    this.handleTimeout(nowUs);
    const header = this.outgoing.shift();
    return header === undefined ? undefined : encodeFabric(this.datagram, header, EMPTY);
  }

  /** When to call `handleTimeout` and `pollTransmit` next, or undefined if only a packet or a call can change anything. */
  pollTimeout(): number | undefined {
    if (this.assembly.failed) return undefined;
    if (this.outgoing.length > 0) return 0;
    let next = this.asks.dueAtUs ?? Number.POSITIVE_INFINITY;
    if (!this.streamEnded && this.assembly.wantsSymbols) next = Math.min(next, this.deadlineUs, this.silentAtUs);
    return next === Number.POSITIVE_INFINITY ? undefined : next;
  }

  poll(): ReceiverEvent | undefined {
    return this.events.shift();
  }

  private examine(datagram: Uint8Array): FabricPacket | FabricFault | Rejection {
    const packet = decodeFabric(datagram);
    if (typeof packet === 'string') return packet;
    const { headers, layout } = this;
    const { type, block, symbol, payload } = packet;
    switch (type) {
      case FABRIC_TYPE_DATA:
      case FABRIC_TYPE_REPAIR: {
        const mismatch = headers.mismatch(packet, true);
        if (mismatch !== undefined) return mismatch;
        const length = type === FABRIC_TYPE_DATA ? layout.segmentLength(block, symbol) : layout.symbolBytes(block);
        return payload.length === length ? packet : 'length';
      }
      case FABRIC_TYPE_SYNC: {
        const mismatch = headers.mismatch(packet, false);
        if (mismatch !== undefined) return mismatch;
        if (block > layout.blocks) return 'block';
        return payload.length === 0 ? packet : 'length';
      }
      default:
        return 'type';
    }
  }

  private handleSymbol(nowUs: number, packet: FabricPacket): void {
    const { block } = packet;
    const isRepair = packet.type === FABRIC_TYPE_REPAIR;
    if (isRepair) this.tally.repairPackets++;
    else this.tally.dataPackets++;
    // A block is repaired only after all of it was sent.
    this.advance(nowUs, isRepair ? block + 1 : block);
    if (!this.assembly.wants(block)) {
      if (isRepair) this.tally.repairUnneeded++;
      else this.tally.duplicates++;
      return;
    }
    if (!this.assembly.addSymbol(block, packet.symbol, packet.payload)) this.tally.duplicates++;
    else if (!this.assembly.wants(block)) this.asks.remove(block);
    else if (isRepair) this.asks.answered(nowUs, block, packet.need, this.assembly.need(block));
  }

  private handleSync(nowUs: number, packet: FabricPacket): void {
    this.tally.syncPackets++;
    this.advance(nowUs, packet.block);
    if ((packet.flags & FABRIC_FLAG_CLOSED) !== 0) {
      this.endStream('closed');
      return;
    }
    if (packet.epoch === this.epoch) return;
    this.epoch = packet.epoch;
    if (this.worstQueueLevel > 0) {
      this.outgoing.push(this.headers.forEpoch(FABRIC_TYPE_REPORT, this.epoch, { need: this.worstQueueLevel }));
      this.tally.reportsSent++;
      this.worstQueueLevel = 0;
    }
    if (this.isComplete) this.sayDone();
  }

  /** All blocks below `ended` have been sent: those that are incomplete have gaps. */
  private advance(nowUs: number, ended: number): void {
    if (ended <= this.ended) return;
    for (let block = this.ended; block < ended; block++) {
      if (!this.assembly.wants(block)) continue;
      const need = this.assembly.need(block);
      // Symbols of the newest block may still be overtaking each other; a whole older block that is not there was never meant for us.
      if (need > MAX_NEED && block < ended - 1) this.assembly.giveUp(block);
      else this.asks.add(nowUs, block, need);
    }
    this.ended = ended;
  }

  private ask(nowUs: number, block: number, tries: number): void {
    if (!this.assembly.wants(block)) {
      this.asks.remove(block);
      return;
    }
    const need = this.assembly.need(block);
    if (tries >= MAX_TRIES || need > MAX_NEED) {
      this.asks.remove(block);
      this.assembly.giveUp(block);
      return;
    }
    this.outgoing.push(this.headers.forBlock(FABRIC_TYPE_NACK, block, 0, need));
    this.tally.nacksSent++;
    this.asks.asked(nowUs, block);
  }

  private endStream(reason: 'closed' | 'idle' | 'deadline'): void {
    this.streamEnded = true;
    this.events.push({ type: 'streamEnded', reason });
    this.assembly.giveUpAll();
  }

  private sayDone(): void {
    if (!this.sendDone || this.streamEnded) return;
    this.outgoing.push(this.headers.forEpoch(FABRIC_TYPE_DONE, this.epoch));
  }

  /** What follows from any change: unicast requests go out, the first DONE is said. */
  private settle(): void {
    this.tally.unicastRequests += this.assembly.flushUnicast();
    if (this.isComplete && !this.doneSaid) {
      this.doneSaid = true;
      this.sayDone();
    }
  }
}
