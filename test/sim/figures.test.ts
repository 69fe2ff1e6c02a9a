import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { createRandom } from '../../base/random.ts';
import { compareWithWires } from '../../lab/figures.ts';
import { readFabricProgram } from '../../lab/p4-program.ts';
import { Simulation } from '../../lab/simulation.ts';
import { FABRIC_TYPE_NACK } from '../../p4/build/constants.ts';
import { loadTopology } from '../../topologies/load.ts';
import { withServers } from '../../topologies/servers.ts';

const PROGRAM = readFabricProgram();
const TOPOLOGY = loadTopology(
  readFileSync(new URL('../../topologies/leaf-spine.yaml', import.meta.url), 'utf8'),
  'leaf-spine.yaml',
);
const PAYLOAD = randomBytes(6_000_000);

function randomBytes(length: number): Uint8Array {
  const random = createRandom('figures');
  const bytes = new Uint8Array(length);
  for (let i = 0; i < length; i++) bytes[i] = random.uint32();
  return bytes;
}

/** One full image to every server of the fabric that `npm start` brings up. */
function rollOut(servers: number, loss: number) {
  const topology = withServers(TOPOLOGY, servers);
  const simulation = new Simulation({ topology, program: PROGRAM, seed: 1, hostLinks: { loss } });
  const receivers = topology.hosts.filter(({ kind }) => kind === 'gpu-server').map(({ name }) => name);
  const transfer = simulation.startTransfer({ source: 'mn1', receivers, label: 1, payload: PAYLOAD });
  expect(simulation.run(() => transfer.isOver, 60_000_000)).toBe(true);
  simulation.run(() => false, simulation.scheduler.nowUs() + 1_000_000);
  const snapshot = simulation.snapshot();
  expect(compareWithWires(snapshot).mismatches).toEqual([]);
  const source = topology.hosts.find(({ name }) => name === 'mn1')!;
  const up = snapshot.wires.find(({ host, class: kind }) => host === 'mn1' && kind === 'host-up')!;
  const core = snapshot.wires.filter(({ class: kind }) => kind === 'core').reduce((sum, wire) => sum + wire.bytesIn, 0);
  const nacks = snapshot.ports.find(
    (count) =>
      count.switch === source.switch &&
      count.port === source.port &&
      count.direction === 'egress' &&
      count.kind === FABRIC_TYPE_NACK,
  );
  return {
    sourceRatio: up.bytesIn / PAYLOAD.length,
    coreRatio: core / (PAYLOAD.length * transfer.trees[0]!.coreLinks.length),
    nacksAtSource: nacks?.packets ?? 0,
    unicastBytes: [...transfer.receivers.values()].reduce((sum, { counters }) => sum + counters.unicastBytes, 0),
  };
}

describe('one full image over the leaf-spine fabric, all headers counted', () => {
  test('without loss: at most 2 % above the payload, per link', () => {
    const { sourceRatio, coreRatio, nacksAtSource } = rollOut(8, 0);
    expect(sourceRatio).toBeLessThan(1.02);
    expect(coreRatio).toBeLessThan(1.02);
    expect(nacksAtSource).toBe(0);
  });

  test('with 1 % loss on every host link: at most 10 % above it, and four times the servers ask at most twice as often', () => {
    const few = rollOut(16, 0.01);
    const many = rollOut(64, 0.01);
    expect(few.sourceRatio).toBeLessThan(1.1);
    expect(few.coreRatio).toBeLessThan(1.1);
    expect(many.coreRatio).toBeLessThan(1.1);
    expect(many.unicastBytes).toBe(0);
    expect(few.nacksAtSource).toBeGreaterThan(0);
    expect(many.nacksAtSource).toBeLessThanOrEqual(2 * few.nacksAtSource);
  });
});
