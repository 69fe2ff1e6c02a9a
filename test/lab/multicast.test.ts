import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { VirtualScheduler } from '../../base/clock.ts';
import { createLogger } from '../../base/logger.ts';
import { createRandom } from '../../base/random.ts';
import { SwitchFleet } from '../../controller/fabric/switch-fleet.ts';
import { createPipeline } from '../../controller/p4runtime/pipeline.ts';
import { baseState } from '../../controller/tables/desired.ts';
import { EntityFactory } from '../../controller/tables/entities.ts';
import { FabricGraph } from '../../controller/topology/graph.ts';
import { Fabric } from '../../lab/fabric.ts';
import { readFabricProgram } from '../../lab/p4-program.ts';
import { DROP_NO_MEMBERS, DROP_PUNT_RATE, DROP_RECEIVER_PORT_RANGE, DROP_TTL } from '../../p4/build/constants.ts';
import { parseIpv4, parseMac } from '../../wire/packet/addresses.ts';
import { buildIgmpFrame } from '../../wire/packet/igmp.ts';
import { DeviceConnection } from './device-connection.ts';
import { smallFabric } from './small-fabric.ts';

const program = readFabricProgram();
const topology = smallFabric(6);
const graph = new FabricGraph(topology);
const GROUP = '239.1.2.3';
const PORT = 5000;
const SECOND = 1_000_000;
const QUERY_INTERVAL_US = 10 * SECOND;

let scheduler: VirtualScheduler;
let fabric: Fabric;
let fleet: SwitchFleet;
let connections: Map<string, DeviceConnection>;
/** What hosts heard, by their names: numbers in the order in which they came. */
let heard: Map<string, number[]>;

/** Lets virtual time pass; what the controller does meanwhile takes none. */
async function pass(us: number): Promise<void> {
  const end = scheduler.nowUs() + us;
  while (scheduler.nowUs() < end) {
    scheduler.runUntil(Math.min(end, scheduler.nowUs() + 50_000));
    for (let i = 0; i < 3; i++) await new Promise(setImmediate);
  }
}

async function say(name: string, number: number, group = GROUP, port = PORT): Promise<void> {
  const socket = fabric.hosts.get(name)!.openSocket(4000);
  socket.send(group, port, Uint8Array.of(number));
  socket.close();
  await pass(10_000);
}

function drops(name: string, reason: number): number {
  const counter = fabric.devices.get(name)!.program!.counters.get(program.index.counters.require('drop_counter').name)!;
  return Number(counter.read(reason).packets);
}

const heardBy = (...names: string[]): Record<string, number[]> =>
  Object.fromEntries(names.map((name) => [name, heard.get(name)!]));
const all = topology.hosts.map(({ name }) => name);
const join = (version: 1 | 2 | 3, ...names: string[]): void => {
  for (const name of names) fabric.hosts.get(name)!.joinGroup(GROUP, version);
};

async function startFleet(): Promise<SwitchFleet> {
  const factory = new EntityFactory(program.index);
  const started = new SwitchFleet({
    graph,
    addresses: new Map(topology.switches.map(({ name }) => [name, 'in this process'])),
    pipeline: createPipeline(program.index.p4Info, program.bmv2Json),
    connect: ({ name }) => connections.get(name)!,
    scheduler,
    random: createRandom('multicast'),
    nowMs: () => 0,
    logger: createLogger('silent'),
    multicast: { queryIntervalUs: QUERY_INTERVAL_US, queryResponseUs: SECOND },
  });
  started.setBase((name) => baseState(factory, graph, name, { tenantsOf: () => [1] }));
  started.start();
  await started.whenReady(1000);
  return started;
}

beforeEach(async () => {
  scheduler = new VirtualScheduler();
  fabric = new Fabric(topology, scheduler, { seed: 1 });
  connections = new Map(
    topology.switches.map(({ name }) => [name, new DeviceConnection(name, fabric.devices.get(name)!, program)]),
  );
  fleet = await startFleet();
  heard = new Map(all.map((name) => [name, []]));
  for (const [name, host] of fabric.hosts) {
    host.openSocket(PORT).onDatagram = (payload) => heard.get(name)!.push(payload[0]!);
    host.openSocket(56832).onDatagram = (payload) => heard.get(name)!.push(payload[0]!);
  }
  await pass(100_000);
});

afterEach(() => {
  fleet.stop();
  fabric.close();
});

describe('hosts of a fabric in virtual time', () => {
  it('hear a group from anywhere while they are members, once each, and nobody else does', async () => {
    await say('mn1', 1);
    join(3, 'gpu1', 'gpu2');
    join(2, 'gpu3');
    join(1, 'gpu4');
    await pass(100_000);
    // A sender on each leaf that is no member, and one that is.
    await say('mn1', 2);
    await say('mn2', 3);
    await say('gpu1', 4);
    await say('gpu4', 5);
    expect(heardBy(...all)).toEqual({
      mn1: [],
      mn2: [],
      gpu5: [],
      gpu6: [],
      gpu1: [2, 3, 5],
      gpu2: [2, 3, 4, 5],
      gpu3: [2, 3, 4, 5],
      gpu4: [2, 3, 4],
    });
    fabric.hosts.get('gpu1')!.leaveGroup(GROUP);
    fabric.hosts.get('gpu3')!.leaveGroup(GROUP);
    await pass(100_000);
    await say('mn1', 6);
    expect(heard.get('gpu1')!.at(-1)).toBe(5);
    expect(heard.get('gpu2')!.at(-1)).toBe(6);
    expect(heard.get('gpu3')!.at(-1)).toBe(5);
    for (const { drops: counts } of fabric.hosts.values()) expect(counts.malformed).toBe(0);
  });

  it('stay members as long as they answer queries; a silent one is forgotten', async () => {
    join(3, 'gpu1');
    join(1, 'gpu2');
    await pass(5 * QUERY_INTERVAL_US);
    await say('mn1', 1);
    expect(heardBy('gpu1', 'gpu2')).toEqual({ gpu1: [1], gpu2: [1] });
    // Version 1 has no way to say it; and a host that dies says nothing either.
    fabric.hosts.get('gpu2')!.leaveGroup(GROUP);
    fabric.hosts.get('gpu1')!.close();
    await pass(2 * QUERY_INTERVAL_US + 2 * SECOND);
    expect(fleet.multicast.groups()).toEqual([]);
    const before = drops('leaf1', DROP_NO_MEMBERS);
    await say('mn1', 2);
    expect(drops('leaf1', DROP_NO_MEMBERS)).toBe(before + 1);
  });

  it('have their groups on a switch again that lost everything', async () => {
    join(3, 'gpu1', 'gpu2');
    await pass(100_000);
    for (const connection of connections.values()) connection.restart();
    await pass(100_000);
    await say('mn1', 1);
    expect(heardBy('gpu1', 'gpu2')).toEqual({ gpu1: [1], gpu2: [1] });
  });

  it('are asked at once by a controller that knows nothing of them yet', async () => {
    join(3, 'gpu1', 'gpu2');
    await pass(3 * SECOND);
    fleet.stop();
    fleet = await startFleet();
    await pass(SECOND);
    await say('mn2', 1);
    expect(heardBy('gpu1', 'gpu2')).toEqual({ gpu1: [1], gpu2: [1] });
  });
});

describe('what hosts may not do', () => {
  beforeEach(async () => {
    join(3, 'gpu1', 'gpu2');
    await pass(100_000);
  });

  it("reach receivers' ports through a group", async () => {
    await say('mn1', 1, GROUP, 56832);
    expect(heardBy('gpu1', 'gpu2')).toEqual({ gpu1: [], gpu2: [] });
    expect(drops('leaf1', DROP_RECEIVER_PORT_RANGE)).toBe(1);
  });

  it('have what belongs to their link carried on, or what nobody listens to', async () => {
    fabric.hosts.get('gpu1')!.joinGroup('224.0.0.251');
    await pass(100_000);
    await say('mn1', 1, '224.0.0.251');
    await say('mn1', 2, '239.1.2.4');
    expect(heardBy('gpu1', 'gpu2')).toEqual({ gpu1: [], gpu2: [] });
    expect(drops('leaf1', DROP_NO_MEMBERS)).toBe(2);
    expect(drops('leaf1', DROP_TTL)).toBe(0);
  });

  it('keep the controller busy with IGMP, or fill its tables', async () => {
    const { mac, ip, port } = topology.hosts.find(({ name }) => name === 'gpu3')!;
    const before = fleet.multicast.counts.reports;
    for (let i = 0; i < 2000; i++) {
      const group = parseIpv4('239.2.0.0')! + i;
      const addresses = { sourceMac: parseMac(mac)!, sourceIp: parseIpv4(ip)!, destinationIp: group };
      fabric.devices.get('leaf1')!.receive(port, buildIgmpFrame(addresses, { type: 'report', version: 2, group }));
    }
    await pass(SECOND);
    expect(fleet.multicast.counts.reports - before).toBeLessThan(600);
    expect(drops('leaf1', DROP_PUNT_RATE)).toBeGreaterThan(1400);
    expect(fleet.multicast.groups()).toHaveLength(1 + 64);
    // Others come and go as before.
    join(3, 'gpu5');
    await pass(100_000);
    await say('mn1', 1);
    expect(heardBy('gpu1', 'gpu2', 'gpu5')).toEqual({ gpu1: [1], gpu2: [1], gpu5: [1] });
  });
});
