import type { ResponseTime } from './response-time.ts';

/** NACKs without any answer before a block may be read by unicast. */
const MIN_TRIES = 6;
/** A sender that goes on repairing other blocks is waited for so many times longer. */
const LONGEST_PATIENCE = 10;

const NONE: readonly never[] = [];

interface Ask {
  /** NACKs since the last repair symbol, and when the first of them left. */
  tries: number;
  unansweredSinceUs: number;
  /** NACKs in all. */
  asked: number;
  dueUs: number;
  askedUs: number;
}

/**
 * Which blocks have to be asked for, and when. Every sequence of NACKs ends: in the block, or, when nothing has come of at least six of them, in the
 * unicast lane. How long that takes depends on whether the sender makes progress, since on a slow machine or behind a long queue of other repairs
 * answers are late and not lost.
 */
export class AskSchedule {
  private readonly response: ResponseTime;
  private readonly patienceUs: number;
  /** When the sender last repaired anything. */
  private progressUs = Number.NEGATIVE_INFINITY;
  private readonly asks = new Map<number, Ask>();
  /** Never later than the earliest due time; earlier after a removal. */
  private nextUs = Number.POSITIVE_INFINITY;

  /** @param patienceUs how long a block is asked for without any repair; ten times as long while the sender repairs others */
  constructor(response: ResponseTime, patienceUs: number) {
    this.response = response;
    this.patienceUs = patienceUs;
  }

  /** A block has ended incomplete: the first NACK is scheduled. Nothing if it is scheduled already. */
  add(nowUs: number, block: number, need: number): void {
    if (this.asks.has(block)) return;
    const ask = { tries: 0, unansweredSinceUs: 0, asked: 0, dueUs: 0, askedUs: 0 };
    this.asks.set(block, ask);
    this.schedule(ask, nowUs + this.response.firstAskDelayUs(need));
  }

  /** The block is complete, or left to unicast. */
  remove(block: number): void {
    this.asks.delete(block);
    if (this.asks.size === 0) this.nextUs = Number.POSITIVE_INFINITY;
  }

  /** A repair symbol of any block. */
  repairArrived(nowUs: number): void {
    this.progressUs = nowUs;
  }

  /**
   * A new repair symbol for a block that is still incomplete. From the first one on the switches let the next question pass, so it need
   * not wait for the elimination interval: if the rest of the answer cannot suffice, the next NACK follows right behind it; if it can,
   * as soon as it should have.
   * @param remaining symbols of the answer still to come
   * @param need      symbols still missing
   */
  answered(nowUs: number, block: number, remaining: number, need: number): void {
    const ask = this.asks.get(block);
    if (ask === undefined) return;
    if (ask.asked === 1 && ask.tries === 1) this.response.sample(nowUs - ask.askedUs);
    ask.tries = 0;
    const slackUs = need > remaining ? this.response.firstAskDelayUs(need) : this.response.typicalUs;
    this.schedule(ask, nowUs + this.response.answerRestUs(remaining) + slackUs);
  }

  /** The earliest time at which a block may be due. */
  get dueAtUs(): number | undefined {
    return this.nextUs === Number.POSITIVE_INFINITY ? undefined : this.nextUs;
  }

  /** Blocks that are due, and whether to go on asking for them. Each has to be `asked` or removed. */
  due(nowUs: number): readonly { readonly block: number; readonly isHopeless: boolean }[] {
    if (nowUs < this.nextUs) return NONE;
    const due: { block: number; isHopeless: boolean }[] = [];
    this.nextUs = Number.POSITIVE_INFINITY;
    for (const [block, ask] of this.asks) {
      if (ask.dueUs <= nowUs) due.push({ block, isHopeless: this.isHopeless(nowUs, ask) });
      else this.nextUs = Math.min(this.nextUs, ask.dueUs);
    }
    return due;
  }

  /** A NACK for this block leaves. */
  asked(nowUs: number, block: number): void {
    const ask = this.asks.get(block)!;
    if (ask.tries === 0) ask.unansweredSinceUs = nowUs;
    else this.response.expired(nowUs, ask.askedUs);
    ask.tries++;
    ask.asked++;
    ask.askedUs = nowUs;
    this.schedule(ask, nowUs + this.response.retryDelayUs(ask.tries));
  }

  private isHopeless(nowUs: number, { tries, unansweredSinceUs }: Ask): boolean {
    const sinceUs = Math.min(
      Math.max(unansweredSinceUs, this.progressUs),
      unansweredSinceUs + (LONGEST_PATIENCE - 1) * this.patienceUs,
    );
    return tries >= MIN_TRIES && nowUs - sinceUs >= this.patienceUs;
  }

  private schedule(ask: Ask, dueUs: number): void {
    ask.dueUs = Math.ceil(dueUs);
    this.nextUs = Math.min(this.nextUs, ask.dueUs);
  }
}
