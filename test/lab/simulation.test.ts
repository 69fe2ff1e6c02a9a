import { describe, expect, test } from 'vitest';
import { createRandom } from '../../base/random.ts';
import { DROP_COUNTER } from '../../controller/tables/telemetry.ts';
import { compareWithWires } from '../../lab/figures.ts';
import { readFabricProgram } from '../../lab/p4-program.ts';
import { type SimulatedTransfer, Simulation, type SimulationOptions } from '../../lab/simulation.ts';
import { makeObjectId } from '../../objects/ids.ts';
import {
  DROP_NOT_ADMITTED,
  DROP_NOT_FROM_UPSTREAM,
  DROP_NOT_IN_TREE,
  FABRIC_FLAG_CLOSED,
  FABRIC_SOURCE_SYMBOLS,
  FABRIC_TYPE_DATA,
  FABRIC_TYPE_NACK,
  FABRIC_TYPE_SYNC,
  FABRIC_UDP_PORT,
} from '../../p4/build/constants.ts';
import { encodeFabric, FABRIC_HEADER_BYTES } from '../../wire/fabric/header.ts';
import { splitObjectId } from '../../wire/fabric/object-id.ts';
import { smallFabric } from './small-fabric.ts';

const PROGRAM = readFabricProgram();
const RECEIVERS = ['gpu1', 'gpu2', 'gpu3', 'gpu4', 'gpu5', 'gpu6'];

function payloadOf(bytes: number): Uint8Array {
  const random = createRandom('payload');
  return Uint8Array.from({ length: bytes }, () => random.below(256));
}

function run(
  options: Omit<SimulationOptions, 'topology' | 'program'>,
  payload: Uint8Array,
  receivers = RECEIVERS,
): { simulation: Simulation; transfer: SimulatedTransfer } {
  const simulation = new Simulation({ topology: smallFabric(6), program: PROGRAM, ...options });
  const transfer = simulation.startTransfer({ source: 'mn1', receivers, label: 7, payload });
  simulation.run(() => transfer.isOver, 60_000_000);
  expect(transfer.isOver).toBe(true);
  for (const receiver of transfer.receivers.values())
    expect(Buffer.compare(receiver.image, payload), 'the image is the payload').toBe(0);
  return { simulation, transfer };
}

/** Packets dropped by all switches, by reason. */
function drops(simulation: Simulation): Record<number, number> {
  const { name, size } = PROGRAM.index.counters.require(DROP_COUNTER);
  const sums: Record<number, number> = {};
  for (const device of simulation.fabric.devices.values())
    for (let reason = 0; reason < size; reason++)
      sums[reason] = (sums[reason] ?? 0) + Number(device.program!.counters.get(name)!.read(reason).packets);
  return sums;
}

describe('a transfer in virtual time', () => {
  test('without loss every link of the tree carries the payload once', () => {
    const payload = payloadOf(3_000_000);
    const { simulation, transfer } = run({ seed: 1 }, payload);
    expect(transfer.senderCounters.repairPackets).toBe(0);
    const tree = transfer.trees[0]!;
    for (const link of simulation.fabric.links.filter((each) => each.class === 'core')) {
      const carries = tree.coreLinks.some((hop) => hop.from === link.from!.switch && hop.port === link.from!.port);
      const { bytesIn } = link.statistics();
      if (carries) {
        expect(bytesIn).toBeGreaterThan(payload.length);
        expect(bytesIn).toBeLessThan(1.02 * payload.length);
      } else {
        expect(bytesIn).toBeLessThan(10_000);
      }
    }
  });

  test('with loss everything arrives, mostly by repair, and NACKs are eliminated on their way', () => {
    const payload = payloadOf(3_000_000);
    const { simulation, transfer } = run({ seed: 2, hostLinks: { loss: 0.01 } }, payload);
    expect(transfer.senderCounters.repairPackets).toBeGreaterThan(0);
    const sent = [...transfer.receivers.values()].reduce((sum, { counters }) => sum + counters.nacksSent, 0);
    expect(transfer.senderCounters.nacksReceived).toBeGreaterThan(0);
    expect(transfer.senderCounters.nacksReceived).toBeLessThan(sent);
    const { frameBytes } = transfer.senderCounters;
    expect(frameBytes).toBeLessThan(1.1 * payload.length);
    simulation.run(() => false, simulation.scheduler.nowUs() + 1_000_000);
    const check = compareWithWires(simulation.snapshot());
    expect(check.mismatches).toEqual([]);
    expect(check.packets).toBeGreaterThan(2_000);
  });

  test('the same seed gives the same run, another seed another', () => {
    const payload = payloadOf(1_000_000);
    const story = (seed: number) => {
      const { simulation, transfer } = run({ seed, hostLinks: { loss: 0.03 } }, payload);
      return {
        endUs: simulation.scheduler.nowUs(),
        sender: transfer.senderCounters,
        receivers: [...transfer.receivers].map(([name, { counters, completeAtUs }]) => [name, counters, completeAtUs]),
        links: simulation.fabric.links.map((link) => link.statistics()),
      };
    };
    const first = story(3);
    expect(story(3)).toEqual(first);
    expect(story(4)).not.toEqual(first);
  });

  test('reordering, duplication and corruption on the host links do no harm', () => {
    const { transfer } = run(
      {
        seed: 5,
        hostLinks: { loss: 0.02, duplication: 0.02, reordering: 0.05, reorderDelayUs: 300, corruption: 0.01 },
      },
      payloadOf(1_000_000),
    );
    const rejected = [...transfer.receivers.values()].reduce((sum, { counters }) => sum + counters.packetsRejected, 0);
    expect(rejected, 'corrupted packets were noticed by their CRC').toBeGreaterThan(0);
  });

  test('forged packets end at the first switch, counted by reason, and change nothing', () => {
    const payload = payloadOf(1_000_000);
    const receivers = RECEIVERS.slice(0, 4);
    const options = { topology: smallFabric(6), program: PROGRAM, seed: 9 };
    const simulation = new Simulation(options);
    const transfer = simulation.startTransfer({ source: 'mn1', receivers, label: 7, payload });
    simulation.run(() => false, 2_000);
    const forge = (host: string, type: number, tenant: number, flags = 0): void => {
      const header = {
        type,
        flags,
        label: 7,
        ...splitObjectId(makeObjectId(tenant, 1n)),
        objectVersion: 1,
        baseVersion: 0,
        block: 1,
        symbol: 0,
        sourceSymbols: FABRIC_SOURCE_SYMBOLS,
        need: FABRIC_SOURCE_SYMBOLS,
        epoch: 0,
      };
      const bytes = type === FABRIC_TYPE_DATA ? new Uint8Array(8192).fill(0xee) : new Uint8Array(0);
      const socket = simulation.fabric.hosts.get(host)!.openSocket(1000);
      const datagram = encodeFabric(new Uint8Array(FABRIC_HEADER_BYTES + bytes.length), header, bytes);
      socket.send('10.1.1.2', FABRIC_UDP_PORT, datagram);
      socket.close();
    };
    forge('mn2', FABRIC_TYPE_DATA, 1); // may send, but not into this tree
    forge('mn2', FABRIC_TYPE_SYNC, 1, FABRIC_FLAG_CLOSED);
    forge('mn1', FABRIC_TYPE_DATA, 2); // the right side of the tree, another tenant
    forge('gpu1', FABRIC_TYPE_DATA, 1); // a receiver of the tree is no sender
    forge('gpu6', FABRIC_TYPE_NACK, 1); // may ask, but is in no tree
    expect(simulation.run(() => transfer.isOver, 60_000_000)).toBe(true);
    for (const { image, counters } of transfer.receivers.values()) {
      expect(Buffer.compare(image, payload)).toBe(0);
      expect([counters.packetsRejected, counters.nacksSent]).toEqual([0, 0]);
    }
    expect(transfer.senderCounters).toMatchObject({ repairPackets: 0, nacksReceived: 0, packetsRejected: 0 });
    expect(drops(simulation)).toMatchObject({
      [DROP_NOT_FROM_UPSTREAM]: 2,
      [DROP_NOT_ADMITTED]: 2,
      [DROP_NOT_IN_TREE]: 1,
    });
  });

  test('one receiver on the same leaf is a tree too', () => {
    const { transfer } = run({ seed: 6, hostLinks: { loss: 0.05 } }, payloadOf(400_000), ['gpu1']);
    expect(transfer.trees[0]!.coreLinks).toHaveLength(0);
  });

  test('a switch that forgets its registers in the middle costs no block', () => {
    const payload = payloadOf(3_000_000);
    const simulation = new Simulation({
      topology: smallFabric(6),
      program: PROGRAM,
      seed: 8,
      hostLinks: { loss: 0.03 },
    });
    const transfer = simulation.startTransfer({ source: 'mn1', receivers: RECEIVERS, label: 7, payload });
    simulation.run(() => false, 15_000);
    expect(transfer.isComplete).toBe(false);
    for (const device of simulation.fabric.devices.values())
      for (const register of device.program!.registers.values())
        for (let index = 0; index < register.size; index++) register.write(index, 0n);
    expect(simulation.run(() => transfer.isOver, 60_000_000)).toBe(true);
    for (const { image } of transfer.receivers.values()) expect(Buffer.compare(image, payload)).toBe(0);
  });
});
