import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createRandom, type Random } from '../../base/random.ts';
import { crc16, EliminationModel, WHOLE_TREE } from './elimination-model.ts';
import { type Observation, type SwitchNode, Tree } from './tree.ts';

/** The five properties of docs/protocol.md, "NACK elimination", by their numbers. */

/** `npm test` runs a bounded share; DDF_HISTORIES=100 makes it a hundred times as many. */
const EFFORT = Number(process.env.DDF_HISTORIES ?? 1);
const LONG = { timeout: 60_000 * EFFORT };

const INTERVALS = { eliminationTicks: 625, staleTicks: 12_500, graceTicks: 625 };

interface BlockHistory {
  /** NACKs that went up since the last REPAIR; `own`: while the block held its slot, or took it. */
  up: { need: number; atTicks: number; own: boolean }[];
  /** Ports whose NACK came in while the block held its slot, or that were waiting when it took it. */
  noted: number;
}

/** Watches one switch and knows only what came in and what went out. */
class Oracle {
  private readonly blocks = new Map<number, BlockHistory>();
  /** Ports that asked for something else than what their slot held; who takes the slot next inherits them. */
  private readonly waiting = new Map<number, number>();

  observe(observation: Observation, slot: number, eliminationTicks: number): void {
    const { block, nowTicks, standing, nack, repair } = observation;
    let history = this.blocks.get(block);
    if (history === undefined) {
      history = { up: [], noted: 0 };
      this.blocks.set(block, history);
    }
    if (nack !== undefined) {
      const pending = history.up.filter((one) => (nowTicks - one.atTicks) >>> 0 <= eliminationTicks);
      const covers = pending.filter((one) => one.need >= nack.need);
      // 1: nothing is dropped that nobody has asked for.
      if (!nack.forwarded) expect(covers.length).toBeGreaterThan(0);
      // 5: nothing goes up twice, collisions apart.
      if (nack.forwarded && standing.mine && !standing.old) expect(covers.filter((one) => one.own)).toEqual([]);
      if (nack.forwarded) history.up.push({ need: nack.need, atTicks: nowTicks, own: standing.mine || standing.old });
      const bit = 1 << nack.port;
      if (standing.mine) history.noted |= bit;
      else if (standing.old) {
        history.noted = (this.waiting.get(slot) ?? 0) | bit;
        this.waiting.delete(slot);
      } else this.waiting.set(slot, (this.waiting.get(slot) ?? 0) | bit);
    }
    if (repair !== undefined) {
      // 2: it reaches every port that is noted, and all if the switch does not know the block.
      if (!standing.mine) expect(repair.mask).toBe(WHOLE_TREE);
      else expect(repair.mask & history.noted).toBe(history.noted);
      history.up = [];
    }
  }

  restart(): void {
    this.waiting.clear();
    this.blocks.clear();
  }
}

describe('the registers of one switch', () => {
  test('CRC-16 is the one of v1model on bmv2', () => {
    expect(crc16(Buffer.from('123456789'))).toBe(0xbb3d);
  });

  test('elimination by need, mark, mask and interval', () => {
    const model = new EliminationModel(65536, INTERVALS);
    const nack = (need: number, port: number, now: number): string => {
      const { forwarded, anew } = model.handleNack(7, 3, need, 1 << port, now);
      return forwarded ? (anew ? 'anew' : 'more') : 'eliminated';
    };
    expect(nack(1, 0, 100)).toBe('anew');
    expect(nack(1, 1, 110)).toBe('eliminated');
    expect(nack(2, 2, 120)).toBe('more');
    expect(nack(2, 3, 745)).toBe('eliminated');
    expect(nack(1, 4, 746)).toBe('anew');
    expect(model.handleRepair(7, 3, 800)).toBe(0b11111);
    // The question is being answered: the next one goes up, whatever it needs.
    expect(nack(1, 5, 801)).toBe('anew');
    expect(model.handleRepair(7, 4, 900)).toBe(WHOLE_TREE);
  });

  test('a slot is taken over when it is stale, with the ports that waited', () => {
    const model = new EliminationModel(1, INTERVALS);
    model.handleNack(7, 1, 1, 1, 1000);
    expect(model.handleNack(7, 2, 1, 2, 1001)).toEqual({ forwarded: true, anew: true });
    expect(model.handleRepair(7, 2, 1002)).toBe(WHOLE_TREE);
    model.handleRepair(7, 1, 1010);
    // Not before stragglers have asked.
    model.handleNack(7, 2, 1, 4, 1010 + 625);
    expect(model.handleRepair(7, 1, 1010 + 625)).toBe(1);
    model.handleNack(7, 2, 1, 8, 1010 + 625 + 626);
    expect(model.handleRepair(7, 2, 3000)).toBe(2 | 4 | 8);
  });

  test('properties 1, 2 and 5 over random histories: collisions, clock wraps, restarts', LONG, () => {
    fc.assert(
      fc.property(fc.nat(), fc.constantFrom(1, 2, 5, 64), (seed, slots) => {
        const random = createRandom(seed);
        const model = new EliminationModel(slots, INTERVALS);
        const oracle = new Oracle();
        const node = {} as SwitchNode;
        let now = random.chance(0.5) ? 0xffff_ffff - random.below(20_000) : 1 + random.below(1_000_000);
        for (let i = 0; i < 300; i++) {
          now = (now + random.below([10, 100, 1000, 20_000][random.below(4)])) >>> 0;
          const block = random.below(6);
          const slot = model.slotOf(7, block);
          const standing = model.standing(7, block, now);
          if (random.chance(0.7)) {
            const need = 1 + random.below(5);
            const port = random.below(32);
            const verdict = model.handleNack(7, block, need, 1 << port, now);
            const nack = { need, port, ...verdict };
            oracle.observe({ at: node, block, nowTicks: now, standing, nack }, slot, INTERVALS.eliminationTicks);
          } else if (random.chance(0.95)) {
            const repair = { mask: model.handleRepair(7, block, now) };
            oracle.observe({ at: node, block, nowTicks: now, standing, repair }, slot, INTERVALS.eliminationTicks);
          } else {
            model.restart();
            oracle.restart();
          }
        }
      }),
      { seed: 41, numRuns: 300 * EFFORT },
    );
  });
});

/** One random network; what it does is checked at every switch while it runs. */
function runRandomTree(seed: number): void {
  const random: Random = createRandom(`tree ${seed}`);
  const pick = <T>(values: readonly T[]): T => values[random.below(values.length)];
  const slots = pick([4, 16, 64, 4096]);
  const oracles = new Map<SwitchNode, Oracle>();
  const tree = new Tree({
    seed: `tree ${seed}`,
    leaves: 1 + random.below(4),
    receiversPerLeaf: 1 + random.below(5),
    payloadBytes: 1 + random.below(20 * 64 * 64),
    slots,
    eliminationUs: pick([2000, 10_000]),
    hostLink: {
      loss: pick([0, 0.01, 0.05, 0.2]),
      duplication: pick([0, 0.02]),
      jitterUs: pick([undefined, 100, 1000]),
      corruption: pick([0, 0.01]),
    },
    coreLink: { loss: pick([0, 0.01]), jitterUs: pick([undefined, 50]) },
    observer: (observation) => {
      let oracle = oracles.get(observation.at);
      if (oracle === undefined) {
        oracle = new Oracle();
        oracles.set(observation.at, oracle);
      }
      const eliminationTicks = Math.floor(tree.eliminationUs / 16);
      oracle.observe(observation, observation.at.model.slotOf(7, observation.block), eliminationTicks);
    },
  });
  for (let restarts = random.below(4); restarts > 0; restarts--) {
    const node = pick(tree.switches);
    tree.scheduler.at(random.below(200_000), () => {
      node.restart();
      oracles.get(node)?.restart();
    });
  }
  // 3 and 4: whatever happens, every block arrives, by repair or by unicast, and nobody waits for ever.
  expect(tree.run()).toBe(true);
  for (const receiver of tree.receivers) receiver.expectComplete();
  tree.scheduler.runUntil(tree.scheduler.nowUs() + 20_000_000);
  for (const receiver of tree.receivers) expect(receiver.machine.pollTimeout()).toBeUndefined();
}

describe('sender, switches and receivers', () => {
  test('all five properties over random networks', LONG, () => {
    fc.assert(fc.property(fc.nat(), runRandomTree), { seed: 42, numRuns: 60 * EFFORT });
  });

  test('one fresh seed', LONG, () => {
    const seed = Date.now() % 1_000_000;
    console.log(`fresh seed of the elimination property: ${seed}`);
    fc.assert(fc.property(fc.nat(), runRandomTree), { seed, numRuns: 10 * EFFORT });
  });

  test('NACKs at the sender hardly grow with the number of receivers', () => {
    const blocks = 60;
    const rows = [1, 4, 16].map((receiversPerLeaf) => {
      const tree = new Tree({
        seed: 'table',
        leaves: 4,
        receiversPerLeaf,
        payloadBytes: blocks * 64 * 64,
        hostLink: { loss: 0.01 },
      });
      expect(tree.run()).toBe(true);
      for (const receiver of tree.receivers) expect(receiver.count('unicastNeeded')).toBe(0);
      const nacksSent = tree.receivers.reduce((sum, receiver) => sum + receiver.machine.counters.nacksSent, 0);
      return {
        receivers: tree.receivers.length,
        'NACKs sent / block': nacksSent / blocks,
        'NACKs at the sender / block': tree.sourceLeaf.nacksUp / blocks,
        'repair symbols / block': tree.sender.machine.counters.repairPackets / blocks,
      };
    });
    console.table(rows);
    const atSender = rows.map((row) => row['NACKs at the sender / block']);
    expect(atSender[2]).toBeLessThanOrEqual(2 * atSender[1]);
    expect(atSender[2]).toBeLessThan(2.8);
  });
});
