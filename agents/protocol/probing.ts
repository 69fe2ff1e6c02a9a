import { DdfError } from '../../base/errors.ts';
import { FABRIC_TYPE_PROBE } from '../../p4/build/constants.ts';
import {
  decodeFabric,
  encodeFabric,
  FABRIC_HEADER_BYTES,
  type FabricFault,
  type FabricPacket,
} from '../../wire/fabric/header.ts';
import { UDP_FRAME_OVERHEAD_BYTES } from '../../wire/packet/udp.ts';
import { type LayoutParameters, StreamLayout } from './layout.ts';
import { countRejection, noRejections, type Rejection, type RejectionCounters } from './rejections.ts';
import { HeaderTemplate, probeWaitUs, type TransferIdentity } from './transfer.ts';

/** Segments are not made smaller: one of these is an IP packet of 580 bytes, and every IPv4 host takes 576 (RFC 791, 3.2). */
const SMALLEST_SEGMENT_BYTES = 512;
/** The size found is at most so much below the largest that passes. */
const GRAIN_BYTES = 64;
/** Sizes that are probed together: an answer is a small packet, so the interval shrinks to an eighth in one round trip. */
const SIZES_AT_ONCE = 8;
/**
 * A size fails when a receiver that is there has not answered so many probes of it (RFC 8899, 5.1.2: MAX_PROBES; more than its 3, since with 5 %
 * loss each way and 64 receivers one of them would miss that many in every third transfer).
 */
const MAX_TRIES = 5;
/** Nobody is there when so many probes had no answer at all. */
const MAX_TRIES_UNHEARD = 8;
/** How long answers are waited for (RFC 8899: PROBE_TIMER; a fabric's round trips are short); doubled while somebody is unheard. */
const SHORTEST_WAIT_US = 4_000;
const LONGEST_WAIT_US = 250_000;
/** Answers of different receivers come this far apart on average, so that they do not fill a queue. */
const ANSWER_SPACING_US = 10;

export interface ProbingOptions extends LayoutParameters {
  readonly transfer: TransferIdentity;
  /** Receivers that should answer, at least 1. */
  readonly receivers: number;
  /** The controller's estimate for the path to the farthest receiver and back. */
  readonly rttUs: number;
  /** Segments that the sender's own interface takes. Default: any. */
  readonly largestSegmentBytes?: number;
}

export interface Path {
  /** Largest segment that reached every receiver that is there; what was asked for if all is well. */
  readonly segmentBytes: number;
  /** To the farthest receiver and back, the receivers' wait not counted. */
  readonly rttUs: number;
  /** Receivers that did not answer probes of any size. */
  readonly silent: number;
}

export type ProbingEvent =
  | ({ readonly type: 'found' } & Path)
  /** PATH_TOO_NARROW */
  | { readonly type: 'failed'; readonly error: DdfError };

/** Counters of ../../wire/agent/schema.ts as plain numbers. */
export interface ProbingCounters extends RejectionCounters {
  probePackets: number;
  probeAnswers: number;
  frameBytes: number;
}

interface Probe {
  readonly segmentBytes: number;
  readonly sentUs: number;
  /** Receivers spread their answers over this. */
  readonly windowUs: number;
}

interface Receiver {
  /** Payload of the largest probe that it has answered. */
  largest: number;
  rttUs: number;
}

/**
 * Finds what a transfer's tree carries before the first block is sent, as RFC 8899 does for one path: probes are padded to the length of a full
 * packet, and nothing but their answers counts. All receivers answer each probe, so that one round trip is enough where the whole tree carries
 * what it should. Otherwise several sizes are probed at once, in an interval that becomes smaller with each round. Receivers that answer nothing at
 * all are not there: the others do not wait for them. Every wait ends; all of them together last a second or two on a fabric's paths.
 *
 * No I/O: a state machine to be driven as a sender is. It ends with one event.
 */
export class PathProbing {
  readonly counters: ProbingCounters = { probePackets: 0, probeAnswers: 0, frameBytes: 0, ...noRejections() };
  private readonly options: ProbingOptions;
  private readonly headers: HeaderTemplate;
  private readonly datagram: Uint8Array;
  private readonly zeros: Uint8Array;
  private readonly probes: Probe[] = [];
  private readonly receivers = new Map<number, Receiver>();
  private readonly events: ProbingEvent[] = [];
  /** Sizes of this round, the largest first, and those of them that have not left yet. */
  private sizes: readonly number[];
  private unsent: number[];
  private tries = 1;
  /** Sizes from here on have failed. */
  private failedFrom = Number.POSITIVE_INFINITY;
  private overAtUs = Number.POSITIVE_INFINITY;
  private hasEnded = false;

  /** @throws INVALID_OPTION for sizes that cannot be laid out */
  constructor(options: ProbingOptions) {
    const { segmentBytes, largestSegmentBytes = segmentBytes } = options;
    this.options = options;
    this.headers = new HeaderTemplate(options.transfer, new StreamLayout(options));
    this.datagram = new Uint8Array(FABRIC_HEADER_BYTES + segmentBytes);
    this.zeros = new Uint8Array(segmentBytes);
    if (largestSegmentBytes < segmentBytes) this.failedFrom = largestSegmentBytes + 1;
    this.sizes = largestSegmentBytes < segmentBytes ? this.ladder(0) : [segmentBytes];
    this.unsent = [...this.sizes];
    if (this.sizes.length === 0) this.fail();
  }

  /** Takes one datagram that arrived on the fabric port; anything that is no answer is counted and ignored. */
  handlePacket(nowUs: number, datagram: Uint8Array): void {
    const packet = this.examine(datagram);
    if (typeof packet === 'string') {
      countRejection(this.counters, packet);
      return;
    }
    const probe = this.probes[packet.epoch];
    if (probe === undefined) {
      countRejection(this.counters, 'block');
      return;
    }
    this.counters.probeAnswers++;
    const { segmentBytes, sentUs, windowUs } = probe;
    const receiver = this.receiver(packet.block);
    if (receiver === undefined) return;
    receiver.largest = Math.max(receiver.largest, segmentBytes);
    const rttUs = nowUs - sentUs - probeWaitUs(windowUs, packet.block);
    receiver.rttUs = Math.min(receiver.rttUs, Math.max(1, rttUs));
    this.endIfCarried(false);
  }

  handleTimeout(nowUs: number): void {
    if (this.hasEnded || this.unsent.length > 0 || nowUs < this.overAtUs) return;
    this.roundOver();
  }

  /** The next probe. @returns a view that is valid until the next call */
  pollTransmit(nowUs: number): Uint8Array | undefined {
    this.handleTimeout(nowUs);
    if (this.hasEnded) return undefined;
    const segmentBytes = this.unsent.shift();
    if (segmentBytes === undefined) return undefined;
    const windowUs = this.answerWindowUs();
    const header = this.headers.forEpoch(FABRIC_TYPE_PROBE, this.probes.length, { block: windowUs });
    const datagram = encodeFabric(this.datagram, header, this.zeros.subarray(0, segmentBytes));
    this.probes.push({ segmentBytes, sentUs: nowUs, windowUs });
    this.counters.probePackets++;
    this.counters.frameBytes += UDP_FRAME_OVERHEAD_BYTES + datagram.length;
    this.overAtUs = nowUs + windowUs + this.waitUs();
    return datagram;
  }

  pollTimeout(): number | undefined {
    if (this.hasEnded) return undefined;
    return this.unsent.length > 0 ? 0 : this.overAtUs;
  }

  poll(): ProbingEvent | undefined {
    return this.events.shift();
  }

  private examine(datagram: Uint8Array): FabricPacket | FabricFault | Rejection {
    const packet = decodeFabric(datagram);
    if (typeof packet === 'string') return packet;
    if (packet.type !== FABRIC_TYPE_PROBE || packet.need !== 1) return 'type';
    if (packet.payload.length > 0) return 'length';
    return this.headers.mismatch(packet, false) ?? packet;
  }

  /** Who answers under this number; undefined where more do than there can be. */
  private receiver(number: number): Receiver | undefined {
    const known = this.receivers.get(number);
    if (known !== undefined) return known;
    if (this.receivers.size >= 2 * this.options.receivers + 64) return undefined;
    // The first one is heard: the others have as many tries from here on.
    if (this.receivers.size === 0) this.tries = 1;
    const receiver = { largest: 0, rttUs: Number.POSITIVE_INFINITY };
    this.receivers.set(number, receiver);
    return receiver;
  }

  /** Room for the answers of all receivers to all sizes of a round. */
  private answerWindowUs(): number {
    const { rttUs, receivers } = this.options;
    return Math.ceil(Math.max(rttUs / 2, receivers * this.sizes.length * ANSWER_SPACING_US));
  }

  private waitUs(): number {
    const rttUs = Math.max(this.options.rttUs, this.slowestUs);
    const unheard = this.receivers.size < this.options.receivers;
    const backedOffUs = SHORTEST_WAIT_US * 2 ** (unheard ? this.tries - 1 : 0);
    return Math.min(LONGEST_WAIT_US, Math.max(3 * rttUs, backedOffUs));
  }

  /** What every receiver that is there has answered. */
  private get reached(): number {
    return this.receivers.size === 0 ? 0 : Math.min(...[...this.receivers.values()].map(({ largest }) => largest));
  }

  private get slowestUs(): number {
    return Math.max(0, ...[...this.receivers.values()].map(({ rttUs }) => rttUs));
  }

  /** @param withoutSilent receivers of which nothing was heard have had their time */
  private endIfCarried(withoutSilent: boolean): void {
    const { segmentBytes, receivers } = this.options;
    const heard = this.receivers.size;
    if (this.hasEnded || heard === 0 || (heard < receivers && !withoutSilent)) return;
    const { reached, failedFrom } = this;
    if (reached < segmentBytes && failedFrom - reached > GRAIN_BYTES) return;
    this.hasEnded = true;
    const silent = Math.max(0, receivers - heard);
    this.events.push({ type: 'found', segmentBytes: reached, rttUs: this.slowestUs, silent });
  }

  private roundOver(): void {
    const { receivers, sizes } = this;
    if (this.tries < (receivers.size === 0 ? MAX_TRIES_UNHEARD : MAX_TRIES)) {
      this.tries++;
      // Somebody may not get the largest one: the next try asks for more.
      this.begin(sizes.length > 1 ? sizes : [sizes[0]!, ...this.ladder(0).filter((size) => size < sizes[0]!)]);
      return;
    }
    if (receivers.size === 0) {
      this.fail();
      return;
    }
    const { reached } = this;
    this.failedFrom = Math.min(...sizes.filter((size) => size > reached), this.failedFrom);
    this.endIfCarried(true);
    if (this.hasEnded) return;
    this.tries = 1;
    this.begin(this.ladder(reached));
  }

  private begin(sizes: readonly number[]): void {
    this.sizes = sizes;
    this.unsent = [...sizes];
  }

  /** Sizes above one that passes and below those that have failed, the largest first. */
  private ladder(passed: number): number[] {
    const smallest = Math.min(SMALLEST_SEGMENT_BYTES, this.options.segmentBytes);
    const from = passed === 0 ? smallest : passed + GRAIN_BYTES;
    const to = Math.min(this.options.segmentBytes, this.failedFrom - 1);
    const step = GRAIN_BYTES * Math.max(1, Math.ceil((to - from) / GRAIN_BYTES / (SIZES_AT_ONCE - 1)));
    const sizes: number[] = [];
    for (let size = from; size <= to; size += step) sizes.unshift(size);
    return sizes;
  }

  private fail(): void {
    const { receivers, segmentBytes, transfer } = this.options;
    this.hasEnded = true;
    const smallest = Math.min(SMALLEST_SEGMENT_BYTES, segmentBytes);
    this.events.push({
      type: 'failed',
      error: new DdfError(
        'PATH_TOO_NARROW',
        `none of ${receivers} receivers answered probes with ${smallest} to ${segmentBytes} B of payload`,
        {
          where: `tree of transfer ${transfer.label}`,
          remedy: 'Check that the links of the tree are up and carry IP packets of the MTU that the topology says.',
          recoverable: true,
        },
      ),
    });
  }
}
