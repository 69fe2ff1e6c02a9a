import type { DdfError } from '../../base/errors.ts';
import { FABRIC_TYPE_PROBE } from '../../p4/build/constants.ts';
import { PathProbing, type ProbingCounters } from './probing.ts';
import { noRejections, sumOfRejections } from './rejections.ts';
import {
  type CloseReason,
  type SenderCounters,
  type SenderEvent,
  type SenderOptions,
  TransferSender,
} from './sender.ts';

export interface ProbedSenderOptions extends SenderOptions {
  /** Receivers that answer probes. 0: the path is taken as it is said to be. */
  readonly probeReceivers: number;
  /** Segments that the sender's own interface takes. Default: any. */
  readonly largestSegmentBytes?: number;
}

export type ProbedSenderEvent =
  | SenderEvent
  /** The path is known; the stream begins if it carries the transfer's segments, otherwise nothing more happens. */
  | { readonly type: 'path'; readonly segmentBytes: number; readonly silent: number }
  /** The path carries nothing; nothing more happens. */
  | { readonly type: 'pathFailed'; readonly error: DdfError };

export interface ProbedSenderCounters extends SenderCounters {
  probePackets: number;
  probeAnswers: number;
  /** Measured by probes; 0 before that. */
  rttUs: number;
}

const NOT_PROBED: ProbingCounters = { probePackets: 0, probeAnswers: 0, frameBytes: 0, ...noRejections() };

/**
 * A transfer's sender that looks at the path before it begins: probes, and then the stream with the round trip that was measured. To be driven as
 * a {@link TransferSender} is. The layout of a transfer does not change while receivers have it: where segments do not pass, the transfer is over,
 * and whoever opened it may open another one with smaller segments.
 */
export class ProbedSender {
  private readonly options: ProbedSenderOptions;
  private readonly probing: PathProbing | undefined;
  private readonly events: ProbedSenderEvent[] = [];
  /** Before the path is known it only stands for what is going to be sent. */
  private sender: TransferSender;
  private state: 'probing' | 'sending' | 'over' = 'probing';
  private limits: readonly [floor: number, ceiling: number];
  private measuredUs = 0;

  /** @throws INVALID_OPTION for sizes, rates or a first block that make no sense */
  constructor(nowUs: number, options: ProbedSenderOptions) {
    this.options = options;
    this.limits = [options.rateFloorBitsPerSecond, options.rateCeilingBitsPerSecond];
    this.sender = new TransferSender(nowUs, options);
    if (options.probeReceivers > 0) {
      const { transfer, rttUs, probeReceivers: receivers, largestSegmentBytes } = options;
      const { manifestBytes, payloadBytes, segmentBytes } = options;
      this.probing = new PathProbing({
        transfer,
        manifestBytes,
        payloadBytes,
        segmentBytes,
        receivers,
        rttUs,
        ...(largestSegmentBytes === undefined ? {} : { largestSegmentBytes }),
      });
    } else this.state = 'sending';
  }

  get counters(): Readonly<ProbedSenderCounters> {
    const { sender, probing, measuredUs: rttUs } = this;
    const { probePackets, probeAnswers, frameBytes, ...rejections } = probing?.counters ?? NOT_PROBED;
    return {
      ...sender.counters,
      ...sumOfRejections(sender.counters, rejections),
      frameBytes: sender.counters.frameBytes + frameBytes,
      probePackets,
      probeAnswers,
      rttUs,
    };
  }

  /** Payload bytes up to which the stripe has been sent at least once, what was before the first block included. */
  get bytesDone(): number {
    return this.sender.bytesDone;
  }

  rateBitsPerSecond(nowUs: number): number {
    return this.sender.rateBitsPerSecond(nowUs);
  }

  /** @throws INVALID_OPTION */
  setRateLimits(nowUs: number, floorBitsPerSecond: number, ceilingBitsPerSecond: number): void {
    this.sender.setRateLimits(nowUs, floorBitsPerSecond, ceilingBitsPerSecond);
    this.limits = [floorBitsPerSecond, ceilingBitsPerSecond];
  }

  /** Ends the transfer with a few closed SYNCs, those of a path that is not known yet too. Idempotent. */
  close(nowUs: number, reason: CloseReason = 'ended'): void {
    if (this.state === 'probing') this.begin(nowUs);
    this.sender.close(nowUs, reason);
  }

  handlePacket(nowUs: number, datagram: Uint8Array): void {
    // Answers may come late.
    if (this.probing !== undefined && (datagram[0] & 15) === FABRIC_TYPE_PROBE)
      this.probing.handlePacket(nowUs, datagram);
    else this.sender.handlePacket(nowUs, datagram);
    this.settle(nowUs);
  }

  handleTimeout(nowUs: number): void {
    if (this.state === 'probing') this.probing!.handleTimeout(nowUs);
    else if (this.state === 'sending') this.sender.handleTimeout(nowUs);
    this.settle(nowUs);
  }

  pollTransmit(nowUs: number): Uint8Array | undefined {
    if (this.state === 'probing') {
      const probe = this.probing!.pollTransmit(nowUs);
      this.settle(nowUs);
      if (this.state === 'probing') return probe;
    }
    return this.state === 'sending' ? this.sender.pollTransmit(nowUs) : undefined;
  }

  pollTimeout(): number | undefined {
    if (this.state === 'over') return undefined;
    return this.state === 'probing' ? this.probing!.pollTimeout() : this.sender.pollTimeout();
  }

  poll(): ProbedSenderEvent | undefined {
    return this.events.shift() ?? (this.state === 'sending' ? this.sender.poll() : undefined);
  }

  /** What follows from the end of probing. */
  private settle(nowUs: number): void {
    if (this.state !== 'probing') return;
    const event = this.probing!.poll();
    if (event === undefined) return;
    if (event.type === 'failed') {
      this.state = 'over';
      this.events.push({ type: 'pathFailed', error: event.error });
      return;
    }
    const { segmentBytes, silent } = event;
    this.measuredUs = Math.round(event.rttUs);
    this.events.push({ type: 'path', segmentBytes, silent });
    if (segmentBytes < this.options.segmentBytes) this.state = 'over';
    else this.begin(nowUs);
  }

  /** Receivers go by the estimate, so that the sender waits for them at least as long as that says. */
  private begin(nowUs: number): void {
    const { options, limits } = this;
    this.state = 'sending';
    this.sender = new TransferSender(nowUs, {
      ...options,
      rateFloorBitsPerSecond: limits[0],
      rateCeilingBitsPerSecond: limits[1],
      rttUs: Math.max(options.rttUs, this.measuredUs),
    });
  }
}
