import type { ResponseTime } from './response-time.ts';

/** NACKs without any answer before a block is read by unicast. */
export const MAX_TRIES = 6;

interface Ask {
  /** NACKs since the last repair symbol. */
  tries: number;
  /** NACKs in all. */
  asked: number;
  dueUs: number;
  askedUs: number;
}

/** Which blocks have to be asked for, and when. */
export class AskSchedule {
  private readonly response: ResponseTime;
  private readonly asks = new Map<number, Ask>();
  /** Never later than the earliest due time; earlier after a removal. */
  private nextUs = Number.POSITIVE_INFINITY;

  constructor(response: ResponseTime) {
    this.response = response;
  }

  /** A block has ended incomplete: the first NACK is scheduled. Nothing if it is scheduled already. */
  add(nowUs: number, block: number, need: number): void {
    if (this.asks.has(block)) return;
    const ask = { tries: 0, asked: 0, dueUs: 0, askedUs: 0 };
    this.asks.set(block, ask);
    this.schedule(ask, nowUs + this.response.firstAskDelayUs(need));
  }

  /** The block is complete, or left to unicast. */
  remove(block: number): void {
    this.asks.delete(block);
    if (this.asks.size === 0) this.nextUs = Number.POSITIVE_INFINITY;
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

  /** Blocks that are due, with the number of NACKs in a row that had no answer. Each has to be `asked` or removed. */
  due(nowUs: number): { block: number; tries: number }[] {
    if (nowUs < this.nextUs) return [];
    const due: { block: number; tries: number }[] = [];
    this.nextUs = Number.POSITIVE_INFINITY;
    for (const [block, ask] of this.asks) {
      if (ask.dueUs <= nowUs) due.push({ block, tries: ask.tries });
      else this.nextUs = Math.min(this.nextUs, ask.dueUs);
    }
    return due;
  }

  /** A NACK for this block leaves. */
  asked(nowUs: number, block: number): void {
    const ask = this.asks.get(block)!;
    ask.tries++;
    ask.asked++;
    ask.askedUs = nowUs;
    this.schedule(ask, nowUs + this.response.retryDelayUs(ask.tries));
  }

  private schedule(ask: Ask, dueUs: number): void {
    ask.dueUs = Math.ceil(dueUs);
    this.nextUs = Math.min(this.nextUs, ask.dueUs);
  }
}
