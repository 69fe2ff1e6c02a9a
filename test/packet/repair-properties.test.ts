import { describe, expect, it } from 'vitest';
import { createRandom, type Random } from '../../base/random.ts';
import { DROP_ELIMINATED } from '../../p4/build/constants.ts';
import { type EmbeddedSwitch, embeddedSwitch } from './embedded.ts';
import { encodePacket, parsePacket } from './packet-text.ts';

/**
 * The first two invariants of docs/protocol.md ("What has to hold") for the compiled program: random NACKs and REPAIRs of blocks that
 * fight for one slot, over random times, lost registers and the wrap of the clock.
 */

const LABEL = 7;
const RECEIVERS = [2, 3, 4];
const SENDER = 1;
const ELIMINATION_US = 10_000;
/** One tick may be lost to rounding at either end. */
const TICK_US = 16;
/** The CRC-16 of the slot index is linear: a block and its exclusive or with either of these have the same slot. */
const SAME_SLOT = [0, 3 ^ 115139, 3 ^ 164290];

function fabric(type: string, block: number, need: number): Uint8Array {
  return encodePacket(
    parsePacket(`fabric type=${type} label=${LABEL} block=${block} need=${need} payload bytes=4`.split(' '), new Map()),
  );
}

/** Every receiver and the sender behind fabric ports of one switch. */
function star(): EmbeddedSwitch {
  const device = embeddedSwitch();
  const { program, p4Info } = device;
  const insert = (table: string, key: bigint, action: string, params: bigint[]): void => {
    const info = p4Info.tables.require(table);
    program.tables
      .get(info.name)!
      .insert([{ kind: 'exact', value: key }], 0, { action: p4Info.actions.require(action).name, params });
  };
  for (const port of [SENDER, ...RECEIVERS]) {
    const bit = 1n << BigInt(port);
    insert('port_role', BigInt(port), 'fabric_port', []);
    insert('egress_role', BigInt(port), 'to_fabric', [bit]);
    insert('port_bit', BigInt(port), 'set_bit', [bit]);
  }
  const mask = RECEIVERS.reduce((bits, port) => bits | (1n << BigInt(port)), 0n);
  insert('transfer', BigInt(LABEL), 'follow_tree', [1n, 9n, BigInt(SENDER), mask, 0n]);
  program.setMulticastGroup(
    9,
    RECEIVERS.map((port) => ({ port, instance: 0 })),
  );
  return device;
}

interface Question {
  /** The largest need that went up since the last repair, and when one last went up. */
  need: number;
  upUs: number;
  /** Ports that asked since another block of the slot last did. */
  ports: Set<number>;
}

function runHistory(device: EmbeddedSwitch, random: Random, events: number, statistics: Record<string, number>): void {
  const base = random.uint32();
  const questions = new Map<number, Question>();
  const eliminated = device.program.counters.get('drop_counter')!;
  let nowUs = 0;
  for (let event = 0; event < events; event++) {
    const block = (base ^ SAME_SLOT[random.below(random.chance(0.6) ? 1 : SAME_SLOT.length)]!) >>> 0;
    const question = questions.get(block) ?? { need: 0, upUs: Number.NEGATIVE_INFINITY, ports: new Set() };
    questions.set(block, question);
    const note = (what: string): void => {
      statistics[what] = (statistics[what] ?? 0) + 1;
    };
    if (random.chance(0.7)) {
      const port = RECEIVERS[random.below(RECEIVERS.length)]!;
      const need = 1 + random.below(4);
      const before = eliminated.read(DROP_ELIMINATED).packets;
      device.inject(port, fabric('NACK', block, need));
      const up = device.takeSent();
      const wasEliminated = eliminated.read(DROP_ELIMINATED).packets > before;
      const where = `event ${event}, block ${block}, need ${need}, port ${port}`;
      expect(
        up.map((sent) => sent.port),
        where,
      ).toEqual(wasEliminated ? [] : [SENDER]);
      if (wasEliminated) {
        note('eliminated');
        expect(question.need, where).toBeGreaterThanOrEqual(need);
        expect(nowUs - question.upUs, where).toBeLessThanOrEqual(ELIMINATION_US + TICK_US);
      } else {
        note('forwarded');
        question.need = Math.max(need, nowUs - question.upUs > ELIMINATION_US ? 0 : question.need);
        question.upUs = nowUs;
      }
      question.ports.add(port);
      for (const [other, { ports }] of questions) if (other !== block) ports.clear();
    } else {
      device.inject(SENDER, fabric('REPAIR', block, 0));
      const reached = device.takeSent().map((sent) => sent.port);
      note(reached.length === RECEIVERS.length ? 'flooded' : 'pruned');
      for (const port of question.ports) expect(reached, `event ${event}, block ${block}`).toContain(port);
      question.need = 0;
      question.upUs = Number.NEGATIVE_INFINITY;
    }
    if (random.chance(0.002)) {
      // A switch that restarts forgets who asked, but what it does not know it neither eliminates nor prunes.
      for (const register of device.program.registers.values())
        for (let index = 0; index < register.size; index++) register.write(index, 0n);
      questions.clear();
      statistics['lost registers'] = (statistics['lost registers'] ?? 0) + 1;
    }
    // Mostly within the intervals, sometimes beyond them.
    const stepUs = random.below(random.chance(0.9) ? 4000 : 400_000);
    device.advance(stepUs);
    nowUs += stepUs;
  }
}

describe('NACK elimination and repair of the compiled program', () => {
  it('drop no question that is not pending and reach every port that asked, whatever happens', () => {
    const device = star();
    const random = createRandom('repair properties');
    const statistics: Record<string, number> = {};
    for (let history = 0; history < 200; history++) {
      runHistory(device, random.fork(`history ${history}`), 40, statistics);
      // Between histories: a second, or beyond half the wrap and the wrap of 2^32 ticks, or up to just before it
      const jump = random.below(10);
      device.advance(jump === 0 ? 40_000_000_000 : jump === 1 ? 68_719_000_000 : 1_000_000);
    }
    // The histories met what they are about.
    expect(statistics['lost registers']).toBeGreaterThan(5);
    for (const what of ['eliminated', 'forwarded', 'flooded', 'pruned'])
      expect(statistics[what], what).toBeGreaterThan(300);
  });
});
