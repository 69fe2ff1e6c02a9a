import { DdfError } from '../../base/errors.ts';
import {
  FABRIC_FLAG_CLOSED,
  FABRIC_MARK_ANEW,
  FABRIC_SOURCE_SYMBOLS,
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
  FABRIC_SYMBOLS,
  type FabricFault,
  type FabricHeader,
  type FabricPacket,
} from '../../wire/fabric/header.ts';
import { UDP_FRAME_OVERHEAD_BYTES } from '../../wire/packet/udp.ts';
import { encodeSymbol } from '../fec/reed-solomon.ts';
import { BlockCache, type PayloadReader } from './block-cache.ts';
import {
  checkStripe,
  isOfStripe,
  type LayoutParameters,
  StreamLayout,
  type Stripe,
  stripeBlockFrom,
  WHOLE_STREAM,
} from './layout.ts';
import { Pacer, RateControl, RepairShare } from './pacing.ts';
import { ParityAhead } from './parity-ahead.ts';
import { countRejection, noRejections, type Rejection, type RejectionCounters } from './rejections.ts';
import { RepairQueue } from './repair-queue.ts';
import { SyncSchedule } from './sync-schedule.ts';
import { HeaderTemplate, MAX_NEED, type TransferIdentity } from './transfer.ts';

/** Parity symbols of a block. */
const PARITY_SYMBOLS = FABRIC_SYMBOLS - FABRIC_SOURCE_SYMBOLS;
const EMPTY = new Uint8Array(0);
/** From the end of a block until its NACKs have come: the way there and back, and what receivers wait before they ask. */
const ANSWER_ROUND_TRIPS = 3;

export interface SenderOptions extends LayoutParameters {
  readonly transfer: TransferIdentity;
  readonly reader: PayloadReader;
  /** Frame bits per second. */
  readonly rateFloorBitsPerSecond: number;
  readonly rateCeilingBitsPerSecond: number;
  /** The controller's estimate for the path to the farthest receiver and back. */
  readonly rttUs: number;
  /** The blocks that are this sender's. Default: all. */
  readonly stripe?: Stripe;
  /** First block to send; earlier ones count as sent. Default 0. */
  readonly firstBlock?: number;
  /** When the sender closes the transfer by itself. Default: never. */
  readonly deadlineUs?: number;
  /** Whether a DONE means that every receiver is complete, and ends the transfer. */
  readonly expectDone: boolean;
  /** Share of the packets that the worst receiver lost on these paths before. Default 0: nothing is known. */
  readonly expectedLoss?: number;
  /** How much of a pause may be made up for at once. Default 500 microseconds of the rate. */
  readonly burstUs?: number;
  /** Share of the rate that repairs may take from new data. Default 0.5. */
  readonly repairShare?: number;
  /** Bound on cached blocks. Default 32 MiB. */
  readonly cacheBytes?: number;
}

export type CloseReason = 'done' | 'ended' | 'deadline';

export type SenderEvent =
  /** Every block has been sent once; repairs may follow. */
  | { readonly type: 'sent' }
  /** Every receiver is complete, says the tree. */
  | { readonly type: 'done' }
  /** The last closed SYNC has left: nothing more is sent. */
  | { readonly type: 'closed'; readonly reason: CloseReason };

/** Counters of ../../wire/agent/schema.ts as plain numbers. */
export interface SenderCounters extends RejectionCounters {
  dataPackets: number;
  repairPackets: number;
  /** Among repairPackets: sent before anybody asked. */
  parityAheadPackets: number;
  syncPackets: number;
  frameBytes: number;
  nacksReceived: number;
  nacksIgnored: number;
  reportsReceived: number;
  doneReceived: boolean;
  donesIgnored: number;
}

/**
 * One transfer as its sender sees it. No I/O: the driver hands in datagrams and the time, sends what `pollTransmit` returns, and calls
 * `handleTimeout` at `pollTimeout`. Every call may change what the polls return.
 *
 * SYNC carries in `block` the block of the stream below which the source symbols of all of the stripe's blocks have been sent: a receiver that misses
 * anything of a lower block may ask for it.
 */
export class TransferSender {
  readonly layout: StreamLayout;
  readonly counters: SenderCounters = {
    dataPackets: 0,
    repairPackets: 0,
    parityAheadPackets: 0,
    syncPackets: 0,
    frameBytes: 0,
    nacksReceived: 0,
    nacksIgnored: 0,
    reportsReceived: 0,
    doneReceived: false,
    donesIgnored: 0,
    ...noRejections(),
  };
  private readonly headers: HeaderTemplate;
  private readonly cache: BlockCache;
  private readonly pacer: Pacer;
  private readonly rate: RateControl;
  private readonly share: RepairShare;
  private readonly repairs: RepairQueue;
  private readonly syncs: SyncSchedule;
  private readonly expectDone: boolean;
  private readonly deadlineUs: number | undefined;
  /** Per block, how many parity symbols have been taken so far, modulo their number. */
  private readonly parityTaken: Uint8Array;
  private readonly parityStart: number;
  private readonly ahead: ParityAhead;
  /** Parity symbols of `aheadBlock` that are still to follow its source symbols. */
  private aheadLeft = 0;
  private aheadBlock = 0;
  private readonly datagram: Uint8Array;
  private readonly parity: Uint8Array;
  private readonly events: SenderEvent[] = [];
  private readonly stripe: Stripe;
  /** The stripe's next block; the number of blocks when all are sent. */
  private block: number;
  private symbol = 0;
  private epoch = 0;
  private closing: CloseReason | undefined;
  private closed = false;

  /** @throws INVALID_OPTION for sizes, rates or a first block that make no sense */
  constructor(nowUs: number, options: SenderOptions) {
    this.layout = new StreamLayout(options);
    this.stripe = options.stripe ?? WHOLE_STREAM;
    checkStripe(this.stripe);
    const firstBlock = options.firstBlock ?? 0;
    checkOptions(options, firstBlock, this.layout.blocks);
    this.headers = new HeaderTemplate(options.transfer, this.layout);
    this.cache = new BlockCache(this.layout, options.reader, options.cacheBytes ?? 32 << 20);
    this.pacer = new Pacer(options.burstUs ?? 500);
    this.rate = new RateControl(options.rateFloorBitsPerSecond, options.rateCeilingBitsPerSecond);
    const frameBytes = UDP_FRAME_OVERHEAD_BYTES + FABRIC_HEADER_BYTES + options.segmentBytes;
    this.share = new RepairShare(options.repairShare ?? 0.5, MAX_NEED * frameBytes);
    this.repairs = new RepairQueue(Math.ceil(options.rttUs / 2), options.rttUs);
    this.syncs = new SyncSchedule(nowUs, options.rttUs);
    this.ahead = new ParityAhead(options.expectedLoss ?? 0, ANSWER_ROUND_TRIPS * options.rttUs);
    this.expectDone = options.expectDone;
    this.deadlineUs = options.deadlineUs;
    this.parityTaken = new Uint8Array(this.layout.blocks);
    this.parityStart = scatter(options.transfer.label) % PARITY_SYMBOLS;
    this.datagram = new Uint8Array(FABRIC_HEADER_BYTES + options.segmentBytes);
    this.parity = new Uint8Array(options.segmentBytes);
    this.block = Math.min(stripeBlockFrom(this.stripe, firstBlock), this.layout.blocks);
    if (this.everythingSent) this.finishSending(nowUs);
  }

  /** Payload bytes up to which the stripe has been sent at least once, what was before `firstBlock` included. */
  get bytesDone(): number {
    return Math.max(0, this.layout.blockStart(this.block) - this.layout.manifestBytes);
  }

  get isClosed(): boolean {
    return this.closed;
  }

  rateBitsPerSecond(nowUs: number): number {
    return this.rate.rateBitsPerSecond(nowUs);
  }

  setRateLimits(nowUs: number, floorBitsPerSecond: number, ceilingBitsPerSecond: number): void {
    checkRates(floorBitsPerSecond, ceilingBitsPerSecond);
    this.rate.setLimits(nowUs, floorBitsPerSecond, ceilingBitsPerSecond);
  }

  /** Ends the transfer with a few closed SYNCs. Idempotent. */
  close(nowUs: number, reason: CloseReason = 'ended'): void {
    if (this.closing !== undefined) return;
    this.closing = reason;
    this.syncs.startClosing(nowUs);
  }

  /** Takes one datagram that arrived on the fabric port; anything malformed or foreign is counted and ignored. */
  handlePacket(nowUs: number, datagram: Uint8Array): void {
    const packet = this.examine(datagram);
    if (typeof packet === 'string') {
      countRejection(this.counters, packet);
      return;
    }
    switch (packet.type) {
      case FABRIC_TYPE_NACK:
        this.handleNack(nowUs, packet);
        break;
      case FABRIC_TYPE_DONE:
        this.handleDone(nowUs);
        break;
      case FABRIC_TYPE_REPORT:
        this.counters.reportsReceived++;
        this.rate.onReport(nowUs, packet.epoch, packet.need);
    }
  }

  handleTimeout(nowUs: number): void {
    if (this.deadlineUs !== undefined && nowUs >= this.deadlineUs) this.close(nowUs, 'deadline');
    this.repairs.release(nowUs);
  }

  /**
   * The next datagram that should leave now, or undefined.
   * @returns a view that is valid until the next call
   * @throws what the reader throws
   */
  pollTransmit(nowUs: number): Uint8Array | undefined {
    if (this.closed) return undefined;
    this.handleTimeout(nowUs);
    if (nowUs < this.pacer.readyAtUs()) return undefined;
    if (this.syncs.due(nowUs)) return this.sendSync(nowUs);
    if (this.closing !== undefined) return undefined;
    if (this.aheadLeft > 0) return this.sendAhead(nowUs);
    const repair = this.repairs.nextBlock();
    if (repair !== undefined && (this.share.mayRepair || this.everythingSent)) return this.sendRepair(nowUs, repair);
    return this.everythingSent ? undefined : this.sendData(nowUs);
  }

  /** When to call `handleTimeout` and `pollTransmit` next, or undefined if only a packet or a call can change anything. */
  pollTimeout(): number | undefined {
    if (this.closed) return undefined;
    const readyAtUs = Math.ceil(this.pacer.readyAtUs());
    const hasSymbols = !this.everythingSent || this.aheadLeft > 0 || this.repairs.nextBlock() !== undefined;
    const waiting = this.closing === undefined && hasSymbols;
    let next = waiting ? readyAtUs : Number.POSITIVE_INFINITY;
    const syncUs = this.syncs.dueAtUs();
    if (syncUs !== undefined) next = Math.min(next, Math.max(readyAtUs, syncUs));
    if (this.closing === undefined) {
      next = Math.min(next, this.repairs.nextReleaseUs() ?? next, this.deadlineUs ?? next);
    }
    // A packet may be due since ever, before the first one was sent.
    return next === Number.POSITIVE_INFINITY ? undefined : Math.max(0, next);
  }

  poll(): SenderEvent | undefined {
    return this.events.shift();
  }

  private get everythingSent(): boolean {
    return this.block === this.layout.blocks;
  }

  private examine(datagram: Uint8Array): FabricPacket | FabricFault | Rejection {
    const packet = decodeFabric(datagram);
    if (typeof packet === 'string') return packet;
    switch (packet.type) {
      case FABRIC_TYPE_NACK:
        return this.headers.mismatch(packet, true) ?? (isOfStripe(this.stripe, packet.block) ? packet : 'block');
      case FABRIC_TYPE_DONE:
      case FABRIC_TYPE_REPORT:
        return this.headers.mismatch(packet, false) ?? packet;
      default:
        return 'type';
    }
  }

  private handleNack(nowUs: number, packet: FabricPacket): void {
    this.counters.nacksReceived++;
    const need = Math.min(packet.need, packet.sourceSymbols);
    const anew = (packet.marks & FABRIC_MARK_ANEW) !== 0;
    const answerable = need >= 1 && need <= MAX_NEED && packet.block < this.block && this.closing === undefined;
    if (answerable) this.ahead.asked(packet.block, need);
    if (!answerable || !this.repairs.ask(nowUs, packet.block, need, anew)) this.counters.nacksIgnored++;
  }

  private handleDone(nowUs: number): void {
    if (!this.expectDone || this.counters.doneReceived) {
      this.counters.donesIgnored++;
      return;
    }
    this.counters.doneReceived = true;
    this.events.push({ type: 'done' });
    this.close(nowUs, 'done');
  }

  private sendData(nowUs: number): Uint8Array {
    const header = this.headers.forBlock(FABRIC_TYPE_DATA, this.block, this.symbol, 0);
    const datagram = this.emit(nowUs, header, this.cache.sources(this.block)[this.symbol]);
    this.counters.dataPackets++;
    this.share.dataSent(datagram.length);
    this.symbol++;
    if (this.symbol === header.sourceSymbols) {
      this.symbol = 0;
      this.aheadBlock = this.block;
      this.block = Math.min(this.block + this.stripe.count, this.layout.blocks);
      this.aheadLeft = this.ahead.blockSent(nowUs, this.aheadBlock, this.everythingSent);
      if (this.everythingSent && this.aheadLeft === 0) this.finishSending(nowUs);
    }
    return datagram;
  }

  private finishSending(nowUs: number): void {
    this.events.push({ type: 'sent' });
    this.syncs.startTail(nowUs);
  }

  /** Parity before anybody asked: switches know nothing of the block and bring it to the whole tree. */
  private sendAhead(nowUs: number): Uint8Array {
    this.aheadLeft--;
    const datagram = this.sendParity(nowUs, this.aheadBlock, this.aheadLeft);
    this.counters.parityAheadPackets++;
    if (this.everythingSent && this.aheadLeft === 0) this.finishSending(nowUs);
    return datagram;
  }

  private sendRepair(nowUs: number, block: number): Uint8Array {
    const datagram = this.sendParity(nowUs, block, this.repairs.symbolSent(nowUs));
    this.share.repairSent(datagram.length);
    return datagram;
  }

  /** @param remaining symbols of the same answer that are still to come */
  private sendParity(nowUs: number, block: number, remaining: number): Uint8Array {
    const taken = this.parityTaken[block];
    this.parityTaken[block] = (taken + 1) % PARITY_SYMBOLS;
    const symbol = FABRIC_SOURCE_SYMBOLS + ((this.parityStart + taken) % PARITY_SYMBOLS);
    const payload = this.parity.subarray(0, this.layout.symbolBytes(block));
    encodeSymbol(this.cache.sources(block), symbol, payload);
    const datagram = this.emit(nowUs, this.headers.forBlock(FABRIC_TYPE_REPAIR, block, symbol, remaining), payload);
    this.counters.repairPackets++;
    return datagram;
  }

  private sendSync(nowUs: number): Uint8Array {
    this.epoch = (this.epoch + 1) & 255;
    const flags = this.closing === undefined ? 0 : FABRIC_FLAG_CLOSED;
    const header = this.headers.forEpoch(FABRIC_TYPE_SYNC, this.epoch, { flags, block: this.block });
    const datagram = this.emit(nowUs, header, EMPTY);
    this.counters.syncPackets++;
    if (this.syncs.syncSent(nowUs)) {
      this.closed = true;
      this.events.push({ type: 'closed', reason: this.closing! });
    }
    return datagram;
  }

  private emit(nowUs: number, header: FabricHeader, payload: Uint8Array): Uint8Array {
    const datagram = encodeFabric(this.datagram, header, payload);
    const frameBytes = UDP_FRAME_OVERHEAD_BYTES + datagram.length;
    this.counters.frameBytes += frameBytes;
    this.pacer.sent(nowUs, frameBytes, this.rate.rateBitsPerSecond(nowUs));
    this.syncs.packetSent();
    return datagram;
  }
}

function checkOptions(options: SenderOptions, firstBlock: number, blocks: number): void {
  checkRates(options.rateFloorBitsPerSecond, options.rateCeilingBitsPerSecond);
  if (!Number.isInteger(firstBlock) || firstBlock < 0 || firstBlock > blocks)
    throw new DdfError('INVALID_OPTION', `First block is ${firstBlock}, the transfer has ${blocks}`, {
      where: 'start of a transfer',
      remedy: 'Give a block of the layout, or its number of blocks to send nothing but repairs.',
    });
  const { rttUs, repairShare = 0.5 } = options;
  if (!(rttUs > 0) || !(repairShare > 0 && repairShare < 1))
    throw new DdfError('INVALID_OPTION', `rttUs is ${rttUs} and repairShare ${repairShare}`, {
      where: 'start of a transfer',
      remedy: 'Give a positive round-trip time and a share between 0 and 1.',
    });
}

function checkRates(floor: number, ceiling: number): void {
  if (!(floor > 0 && floor <= ceiling && ceiling < Number.POSITIVE_INFINITY))
    throw new DdfError('INVALID_OPTION', `The rate should stay between ${floor} and ${ceiling} bits per second`, {
      where: 'rate limits of a transfer',
      remedy: 'Give a floor above 0 and a ceiling not below it.',
    });
}

/** Fibonacci hashing: labels come from a counter, their parity should start far apart. */
function scatter(label: number): number {
  return Math.imul(label, 0x9e3779b1) >>> 8;
}
