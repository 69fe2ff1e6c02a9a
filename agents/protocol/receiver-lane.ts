import type { Random } from '../../base/random.ts';
import {
  FABRIC_FLAG_CLOSED,
  FABRIC_TYPE_DATA,
  FABRIC_TYPE_DONE,
  FABRIC_TYPE_NACK,
  FABRIC_TYPE_PROBE,
  FABRIC_TYPE_REPAIR,
  FABRIC_TYPE_REPORT,
  FABRIC_TYPE_SYNC,
} from '../../p4/build/constants.ts';
import type { FabricHeader, FabricPacket } from '../../wire/fabric/header.ts';
import { AskSchedule } from './ask-schedule.ts';
import { isOfStripe, type StreamLayout, type Stripe, stripeBlockFrom } from './layout.ts';
import type { Rejection } from './rejections.ts';
import { ResponseTime } from './response-time.ts';
import type { StreamAssembly } from './stream-assembly.ts';
import { HeaderTemplate, MAX_NEED, type PayloadIdentity, probeWaitUs } from './transfer.ts';

/** Probes that are answered at a time, and how long an answer waits at most, whatever the probe says. */
const MAX_PROBES = 16;
const LONGEST_PROBE_WAIT_US = 1_000_000;

/** Who sends a stripe, and under which label. */
export interface StripeSource {
  readonly label: number;
  readonly stripe: Stripe;
  /** Address of the sender. */
  readonly sender: string;
  /** The controller's estimate for the path to the sender and back. */
  readonly rttUs: number;
  /** False where receivers share a bit of the tree masks: then no DONE is sent. */
  readonly sendDone: boolean;
}

export type StreamEnd = 'closed' | 'idle' | 'deadline' | 'replaced';

/** Counted over all lanes of a receiver. */
export interface LaneCounters {
  dataPackets: number;
  repairPackets: number;
  repairUnneeded: number;
  duplicates: number;
  nacksSent: number;
  syncPackets: number;
  probePackets: number;
  /** Well-formed, but the stream had ended for this receiver. */
  packetsLate: number;
  reportsSent: number;
}

export interface LaneOptions {
  readonly layout: StreamLayout;
  readonly payload: PayloadIdentity;
  readonly assembly: StreamAssembly;
  readonly counters: LaneCounters;
  readonly random: Random;
  readonly eliminationUs: number;
  readonly idleTimeoutUs: number;
  readonly startTimeoutUs: number;
  readonly onEnd: (reason: StreamEnd) => void;
}

/**
 * One stripe of a transfer as one receiver sees it: how far its sender is, what to ask it for, what to tell it. Where the symbols go, and what is
 * missing altogether, the assembly knows.
 */
export class ReceiverLane {
  readonly source: StripeSource;
  private readonly layout: StreamLayout;
  private readonly headers: HeaderTemplate;
  private readonly assembly: StreamAssembly;
  private readonly counters: LaneCounters;
  private readonly response: ResponseTime;
  private readonly asks: AskSchedule;
  private readonly idleTimeoutUs: number;
  private readonly onEnd: (reason: StreamEnd) => void;
  private readonly outgoing: FabricHeader[] = [];
  /** By this the sender of probes tells receivers apart. */
  private readonly number: number;
  /** To probes, in the order of their times. */
  private readonly answers: { readonly dueUs: number; readonly header: FabricHeader }[] = [];
  /** The stripe's blocks below this have been sent in full, as far as packets have told. */
  private ended = 0;
  /** None of the stripe's blocks below this is wanted any more. */
  private firstWanted: number;
  private epoch = 0;
  private worstQueueLevel = 0;
  /** When silence ends the stream. */
  private silentAtUs: number;
  private hasEnded = false;
  private doneSaid = false;

  constructor(nowUs: number, source: StripeSource, options: LaneOptions) {
    const { layout, payload, assembly, counters, random, eliminationUs } = options;
    this.source = source;
    this.layout = layout;
    this.headers = new HeaderTemplate({ ...payload, label: source.label }, layout);
    this.assembly = assembly;
    this.counters = counters;
    this.response = new ResponseTime(source.rttUs, eliminationUs, random);
    this.number = random.fork('probes').uint32();
    this.asks = new AskSchedule(this.response, options.idleTimeoutUs);
    this.idleTimeoutUs = options.idleTimeoutUs;
    this.silentAtUs = nowUs + options.startTimeoutUs;
    this.onEnd = options.onEnd;
    this.firstWanted = stripeBlockFrom(source.stripe, 0);
  }

  /** Measured from NACK to repair; the estimate before that. */
  get rttUs(): number {
    return Math.round(this.response.typicalUs);
  }

  /** Why a well-formed packet is not one of this lane's. */
  mismatch(packet: FabricPacket): Rejection | undefined {
    const { headers, layout } = this;
    const { type, block, symbol, payload } = packet;
    switch (type) {
      case FABRIC_TYPE_DATA:
      case FABRIC_TYPE_REPAIR: {
        const mismatch = headers.mismatch(packet, true);
        if (mismatch !== undefined) return mismatch;
        if (!isOfStripe(this.source.stripe, block)) return 'block';
        const length = type === FABRIC_TYPE_DATA ? layout.segmentLength(block, symbol) : layout.symbolBytes(block);
        return payload.length === length ? undefined : 'length';
      }
      case FABRIC_TYPE_SYNC: {
        const mismatch = headers.mismatch(packet, false);
        if (mismatch !== undefined) return mismatch;
        if (block > layout.blocks) return 'block';
        return payload.length === 0 ? undefined : 'length';
      }
      case FABRIC_TYPE_PROBE:
        // One with a need is another receiver's answer.
        return headers.mismatch(packet, false) ?? (packet.need === 0 ? undefined : 'type');
      default:
        return 'type';
    }
  }

  /** Takes a packet of this lane's. */
  handle(nowUs: number, packet: FabricPacket): void {
    if (this.hasEnded || this.assembly.failed) {
      this.counters.packetsLate++;
      return;
    }
    if (packet.type === FABRIC_TYPE_PROBE) {
      this.handleProbe(nowUs, packet);
      return;
    }
    this.silentAtUs = nowUs + this.idleTimeoutUs;
    this.worstQueueLevel = Math.max(this.worstQueueLevel, packet.queueLevel);
    this.response.packetArrived(nowUs);
    if (packet.type === FABRIC_TYPE_SYNC) this.handleSync(nowUs, packet);
    else this.handleSymbol(nowUs, packet);
  }

  handleTimeout(nowUs: number): void {
    if (!this.hasEnded && nowUs >= this.silentAtUs && this.wantsSymbols()) this.end('idle');
    for (const { block, isHopeless } of this.asks.due(nowUs)) this.ask(nowUs, block, isHopeless);
    while (this.answers.length > 0 && this.answers[0].dueUs <= nowUs) this.outgoing.push(this.answers.shift()!.header);
  }

  /** The next header to send to this lane's sender. */
  pollTransmit(): FabricHeader | undefined {
    return this.outgoing.shift();
  }

  pollTimeout(): number {
    if (this.outgoing.length > 0) return 0;
    const nextUs = Math.min(
      this.asks.dueAtUs ?? Number.POSITIVE_INFINITY,
      this.answers[0]?.dueUs ?? Number.POSITIVE_INFINITY,
    );
    return !this.hasEnded && this.wantsSymbols() ? Math.min(nextUs, this.silentAtUs) : nextUs;
  }

  /** Nothing is expected or said any more: what is missing of the stripe comes from elsewhere. */
  end(reason: StreamEnd): void {
    if (this.hasEnded) return;
    this.hasEnded = true;
    this.outgoing.length = 0;
    this.answers.length = 0;
    this.onEnd(reason);
  }

  /** Everything is verified: DONE is said once at once, and again with each SYNC. */
  completed(): void {
    if (this.doneSaid) return;
    this.doneSaid = true;
    this.sayDone();
  }

  /** Answers after its part of the time that the probe gives. Probes come before the stream, which may begin as late as without them. */
  private handleProbe(nowUs: number, { epoch, block }: FabricPacket): void {
    this.counters.probePackets++;
    this.silentAtUs = Math.max(this.silentAtUs, nowUs + this.idleTimeoutUs);
    if (this.answers.length >= MAX_PROBES) return;
    const header = this.headers.forEpoch(FABRIC_TYPE_PROBE, epoch, { block: this.number, need: 1 });
    const waitUs = Math.min(probeWaitUs(block, this.number), LONGEST_PROBE_WAIT_US);
    // In the order of their probes, whatever the delays.
    const dueUs = Math.max(nowUs + waitUs, this.answers.at(-1)?.dueUs ?? 0);
    this.answers.push({ dueUs, header });
  }

  private handleSymbol(nowUs: number, packet: FabricPacket): void {
    const { block } = packet;
    const { assembly, counters } = this;
    const isRepair = packet.type === FABRIC_TYPE_REPAIR;
    if (isRepair) {
      counters.repairPackets++;
      this.asks.repairArrived(nowUs);
    } else counters.dataPackets++;
    // A block is repaired only after all of it was sent.
    this.advance(nowUs, isRepair ? block + 1 : block);
    if (!assembly.wants(block)) {
      if (isRepair) counters.repairUnneeded++;
      else counters.duplicates++;
      return;
    }
    if (!assembly.addSymbol(block, packet.symbol, packet.payload)) counters.duplicates++;
    else if (!assembly.wants(block)) this.asks.remove(block);
    else if (isRepair) this.asks.answered(nowUs, block, packet.need, assembly.need(block));
  }

  private handleSync(nowUs: number, packet: FabricPacket): void {
    this.counters.syncPackets++;
    this.advance(nowUs, packet.block);
    if ((packet.flags & FABRIC_FLAG_CLOSED) !== 0) {
      this.end('closed');
      return;
    }
    if (packet.epoch === this.epoch) return;
    this.epoch = packet.epoch;
    if (this.worstQueueLevel > 0) {
      this.outgoing.push(this.headers.forEpoch(FABRIC_TYPE_REPORT, this.epoch, { need: this.worstQueueLevel }));
      this.counters.reportsSent++;
      this.worstQueueLevel = 0;
    }
    if (this.doneSaid) this.sayDone();
  }

  /** All of the stripe's blocks below `ended` have been sent: those that are incomplete have gaps. */
  private advance(nowUs: number, ended: number): void {
    if (ended <= this.ended) return;
    const { assembly } = this;
    const { stripe } = this.source;
    const newest = ended - stripe.count;
    for (let block = stripeBlockFrom(stripe, this.ended); block < ended; block += stripe.count) {
      if (!assembly.wants(block)) continue;
      const need = assembly.need(block);
      // Symbols of the newest block may still be overtaking each other; a whole older block that is not there was never meant for us.
      if (need > MAX_NEED && block < newest) assembly.giveUp(block);
      else this.asks.add(nowUs, block, need);
    }
    this.ended = ended;
  }

  private ask(nowUs: number, block: number, isHopeless: boolean): void {
    const { assembly } = this;
    if (!assembly.wants(block)) {
      this.asks.remove(block);
      return;
    }
    const need = assembly.need(block);
    if (this.hasEnded || isHopeless || need > MAX_NEED) {
      this.asks.remove(block);
      assembly.giveUp(block);
      return;
    }
    this.outgoing.push(this.headers.forBlock(FABRIC_TYPE_NACK, block, 0, need));
    this.counters.nacksSent++;
    this.asks.asked(nowUs, block);
  }

  private sayDone(): void {
    if (!this.source.sendDone || this.hasEnded) return;
    this.outgoing.push(this.headers.forEpoch(FABRIC_TYPE_DONE, this.epoch));
  }

  private wantsSymbols(): boolean {
    const { assembly, layout } = this;
    if (!assembly.wantsSymbols) return false;
    // A block that is not wanted never is again.
    while (this.firstWanted < layout.blocks && !assembly.wants(this.firstWanted))
      this.firstWanted += this.source.stripe.count;
    return this.firstWanted < layout.blocks;
  }
}
