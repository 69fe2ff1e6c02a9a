import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { RealScheduler } from '../../base/clock.ts';
import { DdfError } from '../../base/errors.ts';
import { createLogger } from '../../base/logger.ts';
import { createRandom } from '../../base/random.ts';
import { type Controller, createController } from '../../controller/main.ts';
import type { RolloutEvent, RolloutView } from '../../controller/service.ts';
import { readFabricProgram } from '../../lab/p4-program.ts';
import { DROP_UNKNOWN_LABEL, ETHERTYPE_ARP, PUNT_REASON_ARP, PUNT_REASON_IGMP } from '../../p4/build/constants.ts';
import { type Hello, type Request, TransferState } from '../../wire/agent/messages.ts';
import { MAC_BROADCAST, parseIpv4, parseMac } from '../../wire/packet/addresses.ts';
import { ARP_BYTES, ARP_REQUEST, emitArp, parseArp } from '../../wire/packet/arp.ts';
import { ETHERNET_HEADER_BYTES, emitEthernet } from '../../wire/packet/ethernet.ts';
import { buildIgmpFrame } from '../../wire/packet/igmp.ts';
import { readUint16 } from '../../wire/packet/integers.ts';
import type { MessageInput } from '../../wire/proto.ts';
import { FakeAgent, helloOf } from './agents/fake-agent.ts';
import { FakeSwitch } from './fabric/fake-switch.ts';
import { leafSpine } from './planner/fixture.ts';

const topology = leafSpine();
const program = readFabricProgram();
const OBJECT_ID = (1n << 48n) | 1n;
const SIZE = 1_000_000n;
const DELTA_SIZE = 10_000n;
const OBJECT = 'models/demo';
const root = (version: number): Uint8Array => new Uint8Array(32).fill(version);
const held = (version: number) => ({ objectId: OBJECT_ID, version, sizeBytes: SIZE, rootSha256: root(version) });

let folder: string;
let scheduler: RealScheduler;
let switches: Map<string, FakeSwitch>;
let controller: Controller;
let agents: FakeAgent[];
let starts = 0;

async function startController(): Promise<Controller> {
  scheduler = new RealScheduler();
  const made = createController({
    topology,
    switches: topology.switches.map(({ name }) => ({ name, address: '127.0.0.1:1' })),
    program: { bmv2Json: program.bmv2Json, p4Info: program.index.p4Info },
    databasePath: join(folder, 'controller.db'),
    agentsAddress: '127.0.0.1:0',
    scheduler,
    random: createRandom(`test/${starts++}`),
    logger: createLogger('silent'),
    connect: ({ name }) => switches.get(name)!,
  });
  await made.start();
  await made.whenReady(5000);
  return made;
}

async function attach(name: string, change: MessageInput<Hello> = {}): Promise<FakeAgent> {
  const agent = await FakeAgent.attach(controller.agentsAddress, helloOf(topology, name, change));
  expect(agent.welcomed).toBe(true);
  agents.push(agent);
  return agent;
}

/** A Memory Node that can do everything, at once. */
async function attachMemoryNode(name = 'mn1', change: MessageInput<Hello> = {}): Promise<FakeAgent> {
  const node = await attach(name, change);
  node.answer = ({ importVersion, makeDelta, startSend, endTransfer }) => {
    if (importVersion !== undefined) return { imported: held(importVersion.version) };
    if (makeDelta !== undefined) {
      const sizeBytes = makeDelta.baseVersion === 0 ? SIZE : DELTA_SIZE;
      return {
        payload: { ...makeDelta, sizeBytes, manifestBytes: 100, manifestSha256: root(200 + makeDelta.baseVersion) },
      };
    }
    if (startSend !== undefined)
      node.send({ transferStatus: { label: startSend.label, state: TransferState.SENDING } });
    if (endTransfer !== undefined)
      node.send({ transferStatus: { label: endTransfer.label, state: TransferState.CLOSED } });
    return {};
  };
  return node;
}

async function publish(): Promise<void> {
  await controller.service.publish({ object: OBJECT, version: 21, path: '/a' });
  await controller.service.publish({ object: OBJECT, version: 22, path: '/b', base: 21 });
}

const request = (...servers: string[]) => ({ object: OBJECT, version: 22, servers });

/** What an agent was asked, of one kind. */
function asked<K extends keyof Request>(agent: FakeAgent, kind: K): NonNullable<Request[K]>[] {
  return agent.requests.flatMap((r) => (r[kind] === undefined ? [] : [r[kind]])) as NonNullable<Request[K]>[];
}

/** Follows a rollout until an event satisfies the test, or its end. */
async function follow(id: string, until: (event: RolloutEvent) => boolean = () => false): Promise<RolloutView> {
  const signal = new AbortController().signal;
  for await (const event of controller.service.rolloutEvents(id, 0, signal)) if (until(event)) break;
  return controller.service.rollout(id);
}

/** What a switch was given to send, apart from the queries that it sends to its hosts from the beginning. */
function sentBy(name: string): FakeSwitch['sent'] {
  return switches.get(name)!.sent.filter(({ payload }) => readUint16(payload, 12) === ETHERTYPE_ARP);
}

function installedTransfers(): string[] {
  const table = program.index.tables.require('transfer').id;
  return [...switches.values()].flatMap((s) => [...s.keys(`table entry ${table} `), ...s.keys('multicast group')]);
}

async function eventually(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 5));
}

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'ddf-controller-'));
  switches = new Map(topology.switches.map(({ name }) => [name, new FakeSwitch(name)]));
  agents = [];
  controller = await startController();
});
afterEach(async () => {
  for (const agent of agents) agent.close();
  await controller.stop();
  scheduler.stop();
  rmSync(folder, { recursive: true, force: true });
});

describe('a rollout', () => {
  it('brings a version to servers: nothing, a delta, the full image', async () => {
    const node = await attachMemoryNode();
    await publish();
    const current = await attach('gpu01', { held: [held(22)] });
    const old = await attach('gpu02', { held: [held(21)] });
    const empty = await attach('gpu17');
    const { id } = controller.service.startRollout(request('gpu01', 'gpu02', 'gpu17'));
    await node.until(() => asked(node, 'startSend').length === 2);

    const [delta] = asked(old, 'prepareReceive');
    const [full] = asked(empty, 'prepareReceive');
    expect(delta).toMatchObject({
      payload: {
        objectId: OBJECT_ID,
        version: 22,
        baseVersion: 21,
        sizeBytes: DELTA_SIZE,
        manifestSha256: new Uint8Array(root(221)),
      },
      stripes: [{ index: 0, count: 1, senderIp: topology.hosts.find((h) => h.name === 'mn1')!.ip, sendDone: true }],
      segmentBytes: 8192,
      eliminationUs: 10_000,
    });
    expect(Buffer.from(full!.targetRootSha256)).toEqual(Buffer.from(root(22)));
    expect(full!.payload!.baseVersion).toBe(0);
    expect(delta!.label).not.toBe(full!.label);
    // The unicast lane: only holders that were told the token first, servers before the origin.
    expect(full!.holders).toHaveLength(2);
    expect(asked(current, 'allowRange').map((a) => a.token)).toContain(full!.holders[0]!.token);
    expect(asked(node, 'allowRange').map((a) => a.token)).toContain(full!.holders[1]!.token);
    expect(delta!.holders.map((h) => h.token)).toEqual(
      asked(node, 'allowRange')
        .filter((a) => a.baseVersion === 21)
        .map((a) => a.token),
    );
    // Two transfers from one source share its link.
    const ceilings = [...asked(node, 'updateSend'), ...asked(node, 'startSend')].map((r) =>
      Number(r.rateCeilingBitsPerSecond),
    );
    expect(Math.min(...ceilings)).toBeLessThan(0.5e9);
    expect(installedTransfers().length).toBeGreaterThanOrEqual(2 * (1 + 3));

    for (const { label } of asked(node, 'startSend'))
      node.send({ transferStatus: { label, state: TransferState.SENT } });
    empty.send({
      transferStatus: {
        label: full!.label,
        state: TransferState.RECEIVING,
        bytesDone: SIZE / 2n,
        receiver: { nacksSent: 3n },
      },
    });
    await eventually(() => controller.service.rollout(id).servers.some((s) => s.bytesDone === Number(SIZE / 2n)));
    empty.send({ versionHeld: held(22) });
    old.send({ versionHeld: held(22) });
    await node.until(() => asked(node, 'endTransfer').length === 2);
    expect(asked(node, 'endTransfer').every((e) => e.complete)).toBe(true);

    const view = await follow(id);
    expect(view).toMatchObject({ state: 'active', verified: 3, error: null });
    expect(view.phases.map((p) => p.state)).toEqual(['queued', 'planned', 'distributing', 'verifying', 'staged']);
    expect(view.transfers.map((t) => [t.base, t.state, t.complete])).toEqual([
      [21, 'closed', 1],
      [null, 'closed', 1],
    ]);
    expect(view.transfers[1]!.receiverTotals.nacksSent).toBe(3);
    for (const agent of [current, old, empty]) expect(asked(agent, 'activateVersion')).toHaveLength(1);
    expect(
      controller.service
        .holders(OBJECT, 22)
        .map((h) => h.agent)
        .sort(),
    ).toEqual(['gpu01', 'gpu02', 'gpu17', 'mn1']);
    expect(controller.service.servers().find((s) => s.name === 'gpu17')?.active).toEqual([
      { object: OBJECT, version: 22 },
    ]);
    await eventually(() => installedTransfers().length === 0);
    expect(controller.service.transfers()).toEqual([]);
    expect(controller.service.metrics()).toContain('ddf_rollouts{state="active"} 1\n');
    expect(controller.service.metrics()).toContain('ddf_holders{object="models/demo",version="22"} 4\n');
  });

  it('does not believe a wrong hash', async () => {
    await attachMemoryNode();
    await publish();
    const empty = await attach('gpu17');
    const { id } = controller.service.startRollout(request('gpu17'));
    await follow(id, (event) => event.message.includes('sending'));
    empty.send({ versionHeld: { ...held(22), rootSha256: root(99) } });
    const view = await follow(id);
    expect(view).toMatchObject({
      state: 'failed',
      verified: 0,
      servers: [{ state: 'failed', error: 'it proved another root hash' }],
    });
    await eventually(() => installedTransfers().length === 0);
  });

  it('joins one that runs, and refuses one that would get in its way', async () => {
    await attachMemoryNode();
    await publish();
    await attach('gpu17');
    const first = controller.service.startRollout(request('gpu17', 'gpu18'));
    expect(controller.service.startRollout(request('gpu18', 'gpu17')).id).toBe(first.id);
    expect(controller.service.startRollout(request('gpu17')).id).toBe(first.id);
    expect(() => controller.service.startRollout(request('gpu17', 'gpu19'))).toThrowError(
      expect.objectContaining({ code: 'CONFLICT' }),
    );
    expect(() => controller.service.startRollout({ ...request('gpu17'), version: 21 })).toThrowError(
      /gpu17 takes part/,
    );
    expect(controller.service.rollouts()).toHaveLength(1);
  });

  it('aborts: sender and receivers are told, the switches are clean', async () => {
    const node = await attachMemoryNode();
    await publish();
    const empty = await attach('gpu17');
    const { id } = controller.service.startRollout(request('gpu17'));
    await follow(id, (event) => event.message.includes('sending'));
    expect(controller.service.abortRollout(id).state).toBe('aborted');
    expect(controller.service.abortRollout(id).state).toBe('aborted');
    await node.until(() => asked(node, 'endTransfer').length === 1);
    await empty.until(() => asked(empty, 'endTransfer').length === 1);
    await eventually(() => installedTransfers().length === 0);
    // The tokens are good for nothing any more.
    await node.until(() => asked(node, 'allowRange').some((a) => a.ttlMs === 0));
    // An agent that has not heard of it is told when it reports.
    empty.send({ transferStatus: { label: asked(empty, 'prepareReceive')[0]!.label, state: TransferState.RECEIVING } });
    await empty.until(() => asked(empty, 'endTransfer').length === 2);
    expect((await follow(id)).state).toBe('aborted');
    expect(() => controller.service.abortRollout('r-none')).toThrowError(
      expect.objectContaining({ code: 'NOT_FOUND' }),
    );
  });

  it('goes on by unicast when a switch does not take the tree', async () => {
    await attachMemoryNode();
    await publish();
    const empty = await attach('gpu17');
    switches.get('leaf2')!.refusal = new DdfError('SWITCH_REJECTED', 'no', { where: 'leaf2' });
    const { id } = controller.service.startRollout(request('gpu17'));
    await empty.until(() => asked(empty, 'prepareReceive').length === 1);
    expect(asked(empty, 'prepareReceive')[0]).toMatchObject({ stripes: [] });
    empty.send({ versionHeld: held(22) });
    expect((await follow(id)).state).toBe('active');
    switches.get('leaf2')!.refusal = undefined;
    await eventually(() => installedTransfers().length === 0);
  });

  it('prepares a server that was killed and comes back again', async () => {
    await attachMemoryNode();
    await publish();
    const first = await attach('gpu17');
    const { id } = controller.service.startRollout(request('gpu17'));
    await follow(id, (event) => event.message.includes('sending'));
    first.close();
    const second = await attach('gpu17', { incarnation: 2n });
    await second.until(() => asked(second, 'prepareReceive').length === 1);
    expect(asked(second, 'prepareReceive')[0]!.label).toBe(asked(first, 'prepareReceive')[0]!.label);
    second.send({ versionHeld: held(22) });
    await follow(id, (event) => event.message.includes('verified'));
    expect(controller.service.rollout(id).verified).toBe(1);
  });

  it('puts the transfers back on a switch that has lost everything', async () => {
    await attachMemoryNode();
    await publish();
    await attach('gpu17');
    const { id } = controller.service.startRollout(request('gpu17'));
    await follow(id, (event) => event.message.includes('sending'));
    const leaf = switches.get('leaf2')!;
    const before = [...leaf.entities.keys()].sort();
    leaf.enter('down');
    expect(controller.service.notReady()).toEqual([expect.stringContaining('leaf2')]);
    leaf.entities.clear();
    leaf.enter('primary');
    await eventually(() => controller.service.notReady().length === 0);
    expect([...leaf.entities.keys()].sort()).toEqual(before);
  });
});

describe('a restart of the controller', () => {
  it('remembers who holds what, and fails what was running, with the reason', async () => {
    await attachMemoryNode();
    await publish();
    const empty = await attach('gpu17');
    const { id } = controller.service.startRollout(request('gpu17'));
    await follow(id, (event) => event.message.includes('sending'));
    const { label } = asked(empty, 'prepareReceive')[0]!;
    await controller.stop();
    scheduler.stop();

    // The switches kept what they had; nobody wants it any more.
    expect(installedTransfers().length).toBeGreaterThan(0);
    controller = await startController();
    expect(installedTransfers()).toEqual([]);
    const view = await follow(id);
    expect(view).toMatchObject({ state: 'failed', error: expect.stringContaining('restarted') });
    expect(view.transfers.map((t) => t.state)).toEqual(['failed']);
    expect(view.servers.map((s) => [s.state, s.error])).toEqual([['failed', 'the controller was restarted']]);
    expect(controller.service.versions(OBJECT).map((v) => [v.version, v.holders, v.payloads.length])).toEqual([
      [21, 1, 1],
      [22, 1, 2],
    ]);

    const again = await attach('gpu17');
    again.send({ transferStatus: { label, state: TransferState.RECEIVING } });
    await again.until(() => asked(again, 'endTransfer').length === 1);
    await attachMemoryNode('mn1', { held: [held(21), held(22)] });
    const next = controller.service.startRollout(request('gpu17'));
    expect(next.id).not.toBe(id);
    await again.until(() => asked(again, 'prepareReceive').length === 1);
    expect(asked(again, 'prepareReceive')[0]!.label).toBeGreaterThan(label);
    expect(controller.service.rollouts().map((r) => r.id)).toEqual([next.id, id]);
  });

  it('refuses an agent that is older than the one it knew', async () => {
    await attach('gpu17', { incarnation: 5n });
    await controller.stop();
    scheduler.stop();
    controller = await startController();
    const stale = await FakeAgent.attach(controller.agentsAddress, helloOf(topology, 'gpu17', { incarnation: 4n }));
    agents.push(stale);
    expect(stale.refusal).toBe('CONFLICT');
  });
});

describe('publishing', () => {
  it('leaves nothing behind when the delta cannot be made', async () => {
    const node = await attachMemoryNode();
    await controller.service.publish({ object: OBJECT, version: 21, path: '/a' });
    const able = node.answer;
    node.answer = (r) =>
      r.makeDelta?.baseVersion === 21 ? { error: { code: 'BASE_MISMATCH', message: 'sizes differ' } } : able(r);
    await expect(
      controller.service.publish({ object: OBJECT, version: 22, path: '/b', base: 21 }),
    ).rejects.toMatchObject({ code: 'BASE_MISMATCH' });
    await node.until(() => asked(node, 'dropVersion').length === 1);
    expect(controller.service.objects()[0]!.versions).toEqual([21]);
  });

  it('leaves no object behind whose first version could not be read', async () => {
    const node = await attachMemoryNode();
    const able = node.answer;
    node.answer = (r) =>
      r.importVersion === undefined ? able(r) : { error: { code: 'FILE_CHANGED', message: 'the file changed' } };
    const publish = () => controller.service.publish({ object: OBJECT, version: 21, path: '/a' });
    await expect(publish()).rejects.toMatchObject({ code: 'FILE_CHANGED' });
    expect(controller.service.objects()).toEqual([]);
    expect(() => controller.service.versions(OBJECT)).toThrowError(expect.objectContaining({ code: 'NOT_FOUND' }));
    node.answer = able;
    expect(await publish()).toMatchObject({ version: 21 });
  });

  it('makes no further copy of a version that is published again, and refuses other bytes', async () => {
    const first = await attachMemoryNode('mn1');
    await attachMemoryNode('mn2');
    const publish = () => controller.service.publish({ object: OBJECT, version: 21, path: '/a' });
    await publish();
    expect(await publish()).toMatchObject({ payloads: [{ base: null, memoryNodes: ['mn1'] }] });
    const able = first.answer;
    first.answer = (r) =>
      r.importVersion === undefined ? able(r) : { error: { code: 'ALREADY_EXISTS', message: 'other bytes' } };
    await expect(publish()).rejects.toMatchObject({ code: 'ALREADY_EXISTS', where: `${OBJECT}@21` });
    expect(asked(first, 'dropVersion')).toEqual([]);
  });

  it('replaces what a publication left on a Memory Node that nobody heard of', async () => {
    const node = await attachMemoryNode();
    const able = node.answer;
    node.answer = (r) => {
      const isTaken = r.importVersion !== undefined && asked(node, 'dropVersion').length === 0;
      return isTaken ? { error: { code: 'ALREADY_EXISTS', message: 'other bytes' } } : able(r);
    };
    expect(await controller.service.publish({ object: OBJECT, version: 21, path: '/a' })).toMatchObject({
      version: 21,
    });
    expect(asked(node, 'dropVersion')).toHaveLength(1);
  });

  it('takes the node with the fewest bytes that holds the base', async () => {
    await attachMemoryNode('mn1');
    await attachMemoryNode('mn2');
    await controller.service.publish({ object: OBJECT, version: 21, path: '/a' });
    const second = await controller.service.publish({ object: OBJECT, version: 22, path: '/b' });
    expect(second.payloads).toEqual([{ base: null, sizeBytes: Number(SIZE), memoryNodes: ['mn2'] }]);
    const third = await controller.service.publish({ object: OBJECT, version: 23, path: '/c', base: 22 });
    expect(third.payloads.map((p) => [p.base, p.memoryNodes])).toEqual([
      [null, ['mn2']],
      [22, ['mn2']],
    ]);
    expect(await controller.service.publish({ object: OBJECT, version: 22, path: '/b' })).toMatchObject({
      version: 22,
    });
  });

  it.each([
    [{ object: 'a b' }, 'INVALID_REQUEST'],
    [{ version: 0 }, 'INVALID_REQUEST'],
    [{ path: '' }, 'INVALID_REQUEST'],
    [{ path: 'model' }, 'INVALID_REQUEST'],
    [{ base: 22 }, 'INVALID_REQUEST'],
    [{ base: 7 }, 'NOT_FOUND'],
    [{ memoryNode: 'gpu01' }, 'NOT_FOUND'],
    [{ memoryNode: 'mn4' }, 'AGENT_UNREACHABLE'],
  ])('refuses %j with %s', async (change, code) => {
    await attachMemoryNode();
    await expect(
      controller.service.publish({ object: OBJECT, version: 22, path: '/b', ...change }),
    ).rejects.toMatchObject({ code });
    expect(controller.service.objects().flatMap((o) => o.versions)).toEqual([]);
  });

  it('refuses a second publication of the same version while one runs, and any without a Memory Node', async () => {
    await expect(controller.service.publish({ object: OBJECT, version: 21, path: '/a' })).rejects.toMatchObject({
      code: 'AGENT_UNREACHABLE',
    });
    await attachMemoryNode();
    const first = controller.service.publish({ object: OBJECT, version: 21, path: '/a' });
    await expect(controller.service.publish({ object: OBJECT, version: 21, path: '/a' })).rejects.toMatchObject({
      code: 'CONFLICT',
    });
    await first;
  });
});

describe('switches', () => {
  it('answers ARP for the leaf through packet-out', async () => {
    const [host, leaf] = [
      topology.hosts.find((h) => h.name === 'gpu01')!,
      topology.switches.find((s) => s.name === 'leaf1')!,
    ];
    const frame = new Uint8Array(ETHERNET_HEADER_BYTES + ARP_BYTES);
    emitEthernet(frame, 0, { destination: MAC_BROADCAST, source: parseMac(host.mac)!, etherType: 0x0806 });
    emitArp(frame, ETHERNET_HEADER_BYTES, {
      operation: ARP_REQUEST,
      senderMac: parseMac(host.mac)!,
      senderIp: parseIpv4(host.ip)!,
      targetMac: 0,
      targetIp: parseIpv4(leaf.ip)!,
    });
    const metadata = { ingress_port: BigInt(host.port), reason: BigInt(PUNT_REASON_ARP) };
    const fake = switches.get('leaf1')!;
    fake.onPacket!({ payload: frame, metadata });
    expect(sentBy('leaf1').map((p) => p.metadata)).toEqual([{ egress_port: BigInt(host.port) }]);
    fake.onPacket!({ payload: new Uint8Array(5), metadata });
    expect(sentBy('leaf1')).toHaveLength(1);
  });

  it('asks hosts for the groups that they listen to, and has switches replicate those', async () => {
    const host = topology.hosts.find((h) => h.name === 'gpu01')!;
    const leaf = switches.get('leaf1')!;
    await eventually(() => leaf.sent.some(({ metadata }) => metadata.egress_port === BigInt(host.port)));
    const say = (type: 'report' | 'leave'): void => {
      const frame = buildIgmpFrame(
        { sourceMac: parseMac(host.mac)!, sourceIp: parseIpv4(host.ip)!, destinationIp: 0xef010203 },
        type === 'report' ? { type, version: 2, group: 0xef010203 } : { type, group: 0xef010203 },
      );
      const metadata = { ingress_port: BigInt(host.port), reason: BigInt(PUNT_REASON_IGMP) };
      leaf.onPacket!({ payload: frame, metadata });
    };
    const table = program.index.tables.require('ip_multicast').id;
    const entries = (): number => [...switches.values()].flatMap((s) => s.keys(`table entry ${table} `)).length;
    say('report');
    // All leaves, and one of the spines between them.
    const leaves = topology.switches.filter(({ layer }) => layer === 'leaf').length;
    await eventually(() => entries() === leaves + 1);
    say('leave');
    await eventually(() => entries() === 0);
    expect(leaf.keys('multicast group')).toEqual([]);
  });

  it('tells a host that attaches who its gateway is', async () => {
    await attach('gpu01');
    const sent = sentBy('leaf1');
    expect(sent.map((p) => p.metadata)).toEqual([
      { egress_port: BigInt(topology.hosts.find((h) => h.name === 'gpu01')!.port) },
    ]);
    const arp = parseArp(sent[0]!.payload.subarray(ETHERNET_HEADER_BYTES));
    const leaf = topology.switches.find((s) => s.name === 'leaf1')!;
    expect(arp).toMatchObject({ operation: ARP_REQUEST, senderIp: parseIpv4(leaf.ip), senderMac: parseMac(leaf.mac) });
  });

  it('shows state, entries and drops by reason', async () => {
    switches.get('leaf1')!.counters.set('drop_counter', new Map([[DROP_UNKNOWN_LABEL, { packets: 7n, bytes: 700n }]]));
    await eventually(() => controller.service.switches().some((s) => s.drops.length > 0));
    expect(controller.service.switches().find((s) => s.name === 'leaf1')).toMatchObject({
      layer: 'leaf',
      state: 'primary',
      p4runtimeVersion: '1.5.0',
      drops: [{ reason: 'unknown-label', packets: 7 }],
    });
    expect(controller.service.switches().every((s) => s.entries > 0)).toBe(true);
  });

  it('writes the port of a receiver that is not the usual one', async () => {
    const before = [...switches.get('leaf1')!.entities.values()].map((known) => known.value).join();
    await attach('gpu01', { receiverPort: 56900 });
    await eventually(() => [...switches.get('leaf1')!.entities.values()].map((known) => known.value).join() !== before);
  });
});

it('lists the topology and refuses what it does not know', () => {
  const { service } = controller;
  expect(service.topology()).toMatchObject({ name: 'leaf-spine', mtuBytes: 9000 });
  expect(service.memoryNodes()).toHaveLength(4);
  expect(() => service.versions('models/none')).toThrowError(/models\/none/);
  expect(() => service.rollout('r1')).toThrowError(expect.objectContaining({ code: 'NOT_FOUND' }));
  expect(() => service.plan(request('gpu01'))).toThrowError(expect.objectContaining({ code: 'NOT_FOUND' }));
});

it('lets go of everything when its address is in use', async () => {
  const other = createController({
    topology,
    switches: topology.switches.map(({ name }) => ({ name, address: '127.0.0.1:1' })),
    program: { bmv2Json: program.bmv2Json, p4Info: program.index.p4Info },
    databasePath: join(folder, 'other.db'),
    agentsAddress: controller.agentsAddress,
    scheduler,
    random: createRandom('other'),
    logger: createLogger('silent'),
    connect: ({ name }) => new FakeSwitch(name),
  });
  await expect(other.start()).rejects.toMatchObject({ code: 'ADDRESS_IN_USE' });
  await other.stop();
});
