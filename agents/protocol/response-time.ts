import type { Random } from '../../base/random.ts';

/** Retries double, but wait no longer than this. */
const LONGEST_RETRY_US = 1_000_000;
const MAX_BACK_OFF = 64;
/** Packets overtake each other within this. */
const SHORTEST_ASK_WINDOW_US = 50;
/** So many NACKs follow each other at the same interval. */
const STEADY_TRIES = 3;
/** How far a retry stays above the switches' elimination interval, so that it is taken for a new question everywhere. */
const ELIMINATION_MARGIN = 1.25;

/**
 * How long an answer takes, from a NACK to the first repair symbol of its block: round trip, the sender's hold and the queues. Smoothed
 * as RFC 6298 does it (section 2); only first NACKs are measured, since a repair does not say which NACK it answers (Karn's rule). While first
 * NACKs stay without an answer, intervals are doubled for all blocks (section 5.5), until one has been measured: a path that has become slow
 * could not be measured otherwise.
 */
export class ResponseTime {
  private readonly eliminationUs: number;
  private readonly random: Random;
  private readonly askWindowUs: number;
  private smoothedUs: number;
  private variationUs: number;
  private measured = false;
  private backOff = 1;
  private backedOffUs = Number.NEGATIVE_INFINITY;
  private gapUs = 0;
  private lastPacketUs: number | undefined;

  /**
   * @param rttUs         the controller's estimate
   * @param eliminationUs the switches' elimination interval
   */
  constructor(rttUs: number, eliminationUs: number, random: Random) {
    this.smoothedUs = 1.5 * rttUs;
    this.variationUs = rttUs / 2;
    this.askWindowUs = Math.max(rttUs / 2, SHORTEST_ASK_WINDOW_US);
    this.eliminationUs = eliminationUs;
    this.random = random;
  }

  sample(responseUs: number): void {
    this.backOff = 1;
    if (!this.measured) {
      this.measured = true;
      this.smoothedUs = responseUs;
      this.variationUs = responseUs / 2;
      return;
    }
    this.variationUs += (Math.abs(this.smoothedUs - responseUs) - this.variationUs) / 4;
    this.smoothedUs += (responseUs - this.smoothedUs) / 8;
  }

  /** A NACK that left at `askedUs` had no answer in its time. Those that were under way together count once. */
  expired(nowUs: number, askedUs: number): void {
    if (askedUs < this.backedOffUs) return;
    this.backedOffUs = nowUs;
    this.backOff = Math.min(2 * this.backOff, MAX_BACK_OFF);
  }

  /** Notes a packet of the sender's; how far apart they come says how long an answer takes to arrive. */
  packetArrived(nowUs: number): void {
    if (this.lastPacketUs !== undefined)
      this.gapUs += (Math.min(nowUs - this.lastPacketUs, this.smoothedUs) - this.gapUs) / 16;
    this.lastPacketUs = nowUs;
  }

  /**
   * From the moment that a gap is certain to the first NACK. Whoever misses most asks first, and the switches eliminate the others; it
   * also lets packets arrive that overtook each other. All of it stays within the sender's hold of half a round trip: a NACK that comes
   * after the answer has begun costs a second answer (64 receivers, 1 % loss: 1.7 NACKs per block at the sender, 2.1 with a window that
   * follows the measured response time).
   */
  firstAskDelayUs(need: number): number {
    return (this.askWindowUs * (0.75 + this.random.float() / 2)) / need;
  }

  /** From the NACK number `tries` (1..) to the next. */
  retryDelayUs(tries: number): number {
    const base = Math.max(this.eliminationUs * ELIMINATION_MARGIN, this.smoothedUs + 4 * this.variationUs);
    // A question or its answer that is lost once or twice is bad luck; more than that, and the path may be overloaded.
    const growth = 2 ** Math.max(0, tries - STEADY_TRIES);
    return Math.min(base * Math.max(this.backOff, growth), LONGEST_RETRY_US) * (1 + this.random.float() / 4);
  }

  /**
   * From a repair symbol to the moment when the rest of its answer has arrived or been lost. Repairs may alternate with new data, and
   * gaps vary: three gaps per symbol.
   */
  answerRestUs(symbols: number): number {
    return 3 * this.gapUs * symbols;
  }

  get typicalUs(): number {
    return this.smoothedUs;
  }
}
