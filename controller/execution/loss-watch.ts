import type { ReceiverCounters } from '../../wire/agent/messages.ts';

/** What receivers' counters say of losses: in the past, for parity ahead, and now, to find who holds the others back. */

/** A receiver that loses more than this of what is sent... */
export const SLOW_LOSS = 0.2;
/** ...for this long... */
export const SLOW_US = 500_000;
/** ...while the median of the receivers loses less than this, is taken out of the tree. */
export const FINE_LOSS = 0.05;
/** Fewer receivers have no median to compare with. */
const FEWEST_RECEIVERS = 3;
/** A share of fewer packets says little. */
const FEWEST_PACKETS = 64;
/** Weight of the last transfer against those before. */
const LEARNING = 0.5;

interface Sample {
  readonly atUs: number;
  readonly packets: number;
  readonly lost: number;
}

interface Watched {
  last: Sample;
  loss: number;
  slowSinceUs: number | undefined;
}

/** The receivers of one payload, by what they lose now. */
export class LossWatch {
  private readonly receivers = new Map<string, Watched>();

  /**
   * @param nowUs when the counters came
   * @returns why the receiver should leave the tree, if it should
   */
  report(nowUs: number, server: string, counters: ReceiverCounters): string | undefined {
    const next = { atUs: nowUs, packets: Number(counters.dataPackets), lost: Number(counters.lostSymbols) };
    const known = this.receivers.get(server);
    if (known === undefined || next.packets < known.last.packets || next.lost < known.last.lost) {
      this.receivers.set(server, { last: next, loss: 0, slowSinceUs: undefined });
      return undefined;
    }
    const lost = next.lost - known.last.lost;
    const total = next.packets - known.last.packets + lost;
    if (total < FEWEST_PACKETS) return undefined;
    known.loss = lost / total;
    if (known.loss <= SLOW_LOSS || this.median() >= FINE_LOSS) known.slowSinceUs = undefined;
    else known.slowSinceUs ??= known.last.atUs;
    known.last = next;
    if (known.slowSinceUs === undefined || nowUs - known.slowSinceUs < SLOW_US) return undefined;
    return `it lost ${Math.round(100 * known.loss)} % for ${((nowUs - known.slowSinceUs) / 1e6).toFixed(1)} s while the median lost ${(100 * this.median()).toFixed(1)} %`;
  }

  forget(server: string): void {
    this.receivers.delete(server);
  }

  private median(): number {
    if (this.receivers.size < FEWEST_RECEIVERS) return Number.POSITIVE_INFINITY;
    const losses = [...this.receivers.values()].map(({ loss }) => loss).sort((a, b) => a - b);
    return losses[(losses.length - 1) >> 1]!;
  }
}

/** What each server lost in past transfers. */
export class LossBook {
  private readonly shares = new Map<string, number>();

  /** What a server's counters were at the end of a transfer. */
  learn(server: string, { dataPackets, lostSymbols }: ReceiverCounters): void {
    const total = Number(dataPackets) + Number(lostSymbols);
    if (total < FEWEST_PACKETS) return;
    const share = Number(lostSymbols) / total;
    const before = this.shares.get(server) ?? share;
    this.shares.set(server, before + LEARNING * (share - before));
  }

  /** The largest share that one of the servers is known to lose, in millionths; 0 if nothing is known. */
  expectedPpm(servers: readonly string[]): number {
    const largest = servers.reduce((most, server) => Math.max(most, this.shares.get(server) ?? 0), 0);
    return Math.round(1e6 * Math.min(largest, SLOW_LOSS));
  }
}
