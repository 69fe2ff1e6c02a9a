import { FABRIC_SOURCE_SYMBOLS } from '../../p4/build/constants.ts';

/** Share of the blocks for which what is sent ahead may be too much. */
const QUANTILE = 0.2;
/** Blocks that are remembered. */
const WINDOW = 32;
/** Before so many are known, what was expected counts. */
const FEWEST = 4;
/** More than this is cheaper to ask for. */
const MOST = 8;

interface Sent {
  readonly block: number;
  readonly ahead: number;
  /** From then on a NACK for the block would have come. */
  readonly judgeAtUs: number;
  /** The largest need that a NACK has told. */
  need: number;
}

/**
 * How many parity symbols follow a block before anybody has asked for one: as many as four blocks in five need anyway. They are there a round trip
 * earlier, cost no NACK, and little is sent in vain.
 */
export class ParityAhead {
  private readonly answerUs: number;
  private readonly sent: Sent[] = [];
  private readonly byBlock = new Map<number, Sent>();
  /** What the receivers of the last blocks needed in all, oldest first; where nobody asked, one less than was sent ahead. */
  private readonly needs: number[] = [];
  private readonly expected: number;
  private lossSeen: boolean;

  /**
   * @param expectedLoss share of the packets that the worst receiver lost on these paths before; 0 if nothing is known
   * @param answerUs     from the end of a block until its NACKs have come
   */
  constructor(expectedLoss: number, answerUs: number) {
    this.answerUs = answerUs;
    this.lossSeen = expectedLoss > 0;
    const mean = FABRIC_SOURCE_SYMBOLS * expectedLoss;
    // About the same quantile of one receiver's losses, were they independent.
    this.expected = bounded(Math.floor(mean - 0.84 * Math.sqrt(mean)));
  }

  /**
   * A block's source symbols have been sent.
   * @param isLast nothing follows that would show a loss, and a NACK costs the time that it takes
   * @returns how many parity symbols should follow at once
   */
  blockSent(nowUs: number, block: number, isLast: boolean): number {
    this.judge(nowUs);
    const ahead = isLast && this.lossSeen ? this.usual() + 1 : this.usual();
    const sent = { block, ahead, judgeAtUs: nowUs + this.answerUs, need: 0 };
    this.sent.push(sent);
    this.byBlock.set(block, sent);
    return ahead;
  }

  /** A NACK for a block: what was sent ahead was not enough. */
  asked(block: number, need: number): void {
    this.lossSeen = true;
    const sent = this.byBlock.get(block);
    if (sent !== undefined) sent.need = Math.max(sent.need, need);
  }

  private usual(): number {
    if (this.needs.length < FEWEST) return this.expected;
    const sorted = this.needs.toSorted((a, b) => a - b);
    return bounded(sorted[Math.floor(QUANTILE * sorted.length)]!);
  }

  private judge(nowUs: number): void {
    let judged = 0;
    for (const { block, ahead, judgeAtUs, need } of this.sent) {
      if (judgeAtUs > nowUs) break;
      judged++;
      this.byBlock.delete(block);
      this.needs.push(need > 0 ? ahead + need : ahead - 1);
    }
    this.sent.splice(0, judged);
    this.needs.splice(0, this.needs.length - WINDOW);
  }
}

function bounded(symbols: number): number {
  return Math.max(0, Math.min(MOST, symbols));
}
