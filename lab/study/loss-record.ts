import {
  FABRIC_SOURCE_SYMBOLS,
  FABRIC_TYPE_DATA,
  FABRIC_TYPE_NACK,
  FABRIC_TYPE_REPAIR,
} from '../../p4/build/constants.ts';
import { FABRIC_HEADER_BYTES } from '../../wire/fabric/header.ts';
import { readUint32 } from '../../wire/packet/integers.ts';
import { UDP_FRAME_OVERHEAD_BYTES } from '../../wire/packet/udp.ts';

/** What became of one block on the way to the receivers. */
interface BlockLosses {
  /** Source symbols that each receiver lost. */
  readonly lost: Map<string, number>;
  /** Parity symbols in the order in which they left, those before the first NACK included, each with the receivers that lost it. */
  readonly parity: Map<number, Set<string>>;
  parityAhead: number;
  nacksAtSource: number;
}

export interface LossSummary {
  /** Blocks of which some receiver lost a source symbol. */
  readonly lostBlocks: number;
  /** NACKs that reached the source, for blocks. */
  readonly nacksAtSource: number;
  /** NACKs that an ideal aggregator would have passed to the source for the same losses in the same order. */
  readonly idealNacks: number;
  readonly repairSymbols: number;
  /** Sum over the blocks of the largest number of source symbols that one receiver lost. */
  readonly largestLosses: number;
}

/**
 * What was lost on host links, block by block, and what an *ideal aggregator* would have made of it: one that stands in front of the source, sees
 * the receivers' needs in the order of the receivers, passes a need only if it is above all that it has passed since the last
 * answer, and gets exactly as many symbols as were needed most. What was lost of the answer is what was lost of the same symbols in the run.
 */
export class LossRecord {
  private readonly receivers: readonly string[];
  private readonly blocks = new Map<number, BlockLosses>();

  /** @param receivers hosts in the order in which they notice a loss */
  constructor(receivers: readonly string[]) {
    this.receivers = receivers;
  }

  /**
   * @param frame   on the link of a host, without object tag
   * @param host    whose link it is
   * @param upwards whether the host sent it
   */
  observe(host: string, upwards: boolean, frame: Uint8Array, arrived: boolean): void {
    if (frame.length < UDP_FRAME_OVERHEAD_BYTES + FABRIC_HEADER_BYTES) return;
    const type = frame[UDP_FRAME_OVERHEAD_BYTES]! & 15;
    const isNack = type === FABRIC_TYPE_NACK;
    if (!isNack && type !== FABRIC_TYPE_DATA && type !== FABRIC_TYPE_REPAIR) return;
    const losses = this.block(readUint32(frame, UDP_FRAME_OVERHEAD_BYTES + 24));
    const symbol = frame[UDP_FRAME_OVERHEAD_BYTES + 28]!;
    if (isNack) {
      if (!upwards) losses.nacksAtSource++;
      return;
    }
    if (symbol >= FABRIC_SOURCE_SYMBOLS && upwards) {
      losses.parity.set(symbol, new Set());
      if (losses.nacksAtSource === 0) losses.parityAhead++;
    }
    if (arrived) return;
    for (const receiver of upwards ? this.receivers : [host]) {
      if (symbol < FABRIC_SOURCE_SYMBOLS) losses.lost.set(receiver, (losses.lost.get(receiver) ?? 0) + 1);
      else losses.parity.get(symbol)?.add(receiver);
    }
  }

  summary(): LossSummary {
    const all = [...this.blocks.values()];
    const sum = (of: (losses: BlockLosses) => number): number => all.reduce((total, losses) => total + of(losses), 0);
    return {
      lostBlocks: all.filter(({ lost }) => lost.size > 0).length,
      nacksAtSource: sum(({ nacksAtSource }) => nacksAtSource),
      idealNacks: sum((losses) => idealNacks(losses, this.receivers)),
      repairSymbols: sum(({ parity }) => parity.size),
      largestLosses: sum(({ lost }) => Math.max(0, ...lost.values())),
    };
  }

  private block(number: number): BlockLosses {
    const known = this.blocks.get(number);
    if (known !== undefined) return known;
    const losses: BlockLosses = { lost: new Map(), parity: new Map(), parityAhead: 0, nacksAtSource: 0 };
    this.blocks.set(number, losses);
    return losses;
  }
}

function idealNacks({ lost, parity, parityAhead }: BlockLosses, receivers: readonly string[]): number {
  const needs = receivers.map((receiver) => lost.get(receiver) ?? 0);
  const symbols = [...parity.values()];
  const take = (count: number): void => {
    // Beyond what was sent in the run nothing is known to be lost.
    const sent = symbols.splice(0, count);
    const certain = count - sent.length;
    needs.forEach((need, i) => {
      const got = certain + sent.filter((losers) => !losers.has(receivers[i]!)).length;
      needs[i] = Math.max(0, need - got);
    });
  };
  take(parityAhead);
  let nacks = 0;
  for (;;) {
    let most = 0;
    for (const need of needs) {
      if (need <= most) continue;
      most = need;
      nacks++;
    }
    if (most === 0) return nacks;
    take(most);
  }
}
