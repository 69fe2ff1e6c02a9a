import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createRandom } from '../../base/random.ts';
import { ApiClient } from '../../controller/cli/client.ts';
import type { AgentView, HolderView, Plan, RolloutView, VersionView } from '../../controller/service.ts';
import { compareWithWires, difference, figuresOf } from '../../lab/figures.ts';
import { type HeldAtStart, type Lab, startLab } from '../../lab/lab.ts';
import { parseObjectId } from '../../objects/ids.ts';
import type { Topology } from '../../topologies/types.ts';
import { smallFabric } from '../lab/small-fabric.ts';

const OBJECT = 'models/test';
const VERSIONS = `/v1/objects/${encodeURIComponent(OBJECT)}/versions`;

let directory = '';
let lab: Lab | undefined;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'ddf-e2e-'));
});

afterEach(async () => {
  await lab?.stop();
  lab = undefined;
  await rm(directory, { recursive: true, force: true });
  expect(existsSync(directory)).toBe(false);
});

/** Random bytes, and the same with 1 % of them changed. */
async function writeVersions(bytes: number): Promise<{ base: string; next: string }> {
  const random = createRandom('e2e object');
  const base = Uint8Array.from({ length: bytes }, () => random.below(256));
  const next = base.slice();
  for (let i = 0; i < bytes / 100; i++) next[random.below(bytes)]! ^= 1 + random.below(255);
  const paths = { base: join(directory, 'v1'), next: join(directory, 'v2') };
  await Promise.all([writeFile(paths.base, base), writeFile(paths.next, next)]);
  return paths;
}

async function startWithObject(
  topology: Topology,
  lossPercent: number,
  bytes: number,
  holders: { current: string[]; delta: string[] },
): Promise<{ client: ApiClient; version: VersionView; lab: Lab }> {
  const files = await writeVersions(bytes);
  lab = await startLab({ topology, seed: 1, lossPercent, directory: join(directory, 'lab') });
  const client = new ApiClient(lab.url);
  await client.post<VersionView>(VERSIONS, { version: 1, path: files.base });
  const version = await client.post<VersionView>(VERSIONS, { version: 2, path: files.next, base: 1 });
  const objectId = parseObjectId(version.objectId);
  const held = new Map<string, HeldAtStart>();
  for (const server of holders.current) held.set(server, { objectId, version: 2 });
  for (const server of holders.delta) held.set(server, { objectId, version: 1 });
  await lab.startServers(held);
  return { client, version, lab };
}

async function rollOut(client: ApiClient): Promise<RolloutView> {
  const { id } = await client.post<RolloutView>('/v1/rollouts', { object: OBJECT, version: 2, servers: 'all' });
  return ended(client, id);
}

async function ended(client: ApiClient, id: string): Promise<RolloutView> {
  for await (const _ of client.events(id));
  return client.get<RolloutView>(`/v1/rollouts/${id}`);
}

async function verifiedServers(client: ApiClient, version: VersionView): Promise<string[]> {
  const holders = await client.list<HolderView>(
    `/v1/objects/${encodeURIComponent(OBJECT)}/holders?version=${version.version}`,
  );
  return holders
    .filter(({ kind, rootSha256 }) => kind === 'gpu-server' && rootSha256 === version.rootSha256)
    .map(({ agent }) => agent)
    .sort();
}

describe('a rollout over the whole fabric', () => {
  test('eight servers, 5:2:1, 1 % loss: all verified, each payload once per link, counters as the wires saw', async () => {
    const topology = smallFabric(8);
    const holders = { current: ['gpu1', 'gpu3', 'gpu5', 'gpu6', 'gpu7'], delta: ['gpu2', 'gpu8'] };
    const { client, version, lab: running } = await startWithObject(topology, 1, 4_000_000, holders);
    const plan = await client.post<Plan>('/v1/plans', { object: OBJECT, version: 2, servers: 'all' });
    expect(plan.cohorts.map(({ kind, servers, mechanism }) => [kind, servers.length, mechanism])).toEqual(
      expect.arrayContaining([
        ['current', 5, 'none'],
        ['delta', 2, 'multicast'],
        ['full', 1, 'multicast'],
      ]),
    );

    const before = await running.snapshot();
    const rollout = await rollOut(client);
    const change = difference(before, await running.snapshot());
    expect(rollout.error).toBeNull();
    expect(rollout.state).toBe('active');
    expect(await verifiedServers(client, version)).toEqual(
      topology.hosts.flatMap((h) => (h.kind === 'gpu-server' ? [h.name] : [])),
    );
    const servers = await client.list<AgentView>('/v1/servers');
    expect(servers.map(({ active }) => active.map((each) => each.version))).toEqual(servers.map(() => [2]));

    const figures = figuresOf({ rollout, version, hosts: topology.hosts, change, phases: [], seconds: 1 });
    expect(figures).toMatchObject({ servers: 8, verified: 8, cohorts: { current: 5, delta: 2, full: 1 } });
    expect(figures.objectBytes).toBe(4_000_000);
    expect(figures.deltaBytes).toBeGreaterThan(0);
    expect(figures.rangeReadBytes).toBe(0);
    const payloads = figures.objectBytes + figures.deltaBytes;
    expect(figures.source.lowerBoundBytes).toBe(payloads);
    expect(figures.source.bytes).toBeGreaterThan(payloads);
    expect(figures.source.bytes).toBeLessThan(1.1 * payloads);
    expect(figures.coreLinks.bytes).toBeLessThan(1.1 * figures.coreLinks.lowerBoundBytes);
    expect(figures.hostLinks.bytes).toBeLessThan(1.1 * figures.hostLinks.lowerBoundBytes);
    expect(figures.lostPackets).toBeGreaterThan(0);
    expect(compareWithWires(change).mismatches).toEqual([]);
  });

  test('a server that is killed in the middle and comes back gets the version; the others do not notice', async () => {
    const topology = smallFabric(4, '100 Mb/s');
    const { client, version, lab: running } = await startWithObject(topology, 1, 6_000_000, { current: [], delta: [] });
    const started = await client.post<RolloutView>('/v1/rollouts', { object: OBJECT, version: 2, servers: 'all' });
    const victim = 'gpu3';
    await until(async () => {
      const view = await client.get<RolloutView>(`/v1/rollouts/${started.id}`);
      return view.servers.some(({ name, bytesDone }) => name === victim && bytesDone > 0);
    });
    await running.killAgent(victim);
    await until(async () => {
      const servers = await client.list<AgentView>('/v1/servers');
      return servers.some(({ name, attached }) => name === victim && !attached);
    });
    await running.restartAgent(victim);
    const rollout = await ended(client, started.id);
    expect(rollout.state).toBe('active');
    expect(await verifiedServers(client, version)).toEqual(['gpu1', 'gpu2', 'gpu3', 'gpu4']);
  });

  test('over both spines where links between switches are slower, each byte once', async () => {
    const topology = withCoreRate(smallFabric(4, '400 Mb/s'), 200e6);
    const { client, version, lab: running } = await startWithObject(topology, 1, 8_000_000, { current: [], delta: [] });
    const before = await running.snapshot();
    const rollout = await rollOut(client);
    const { wires } = difference(before, await running.snapshot());
    expect(rollout.state).toBe('active');
    expect(await verifiedServers(client, version)).toEqual(['gpu1', 'gpu2', 'gpu3', 'gpu4']);
    const [full] = rollout.plan.cohorts;
    expect(full!.stripes.map(({ switches }) => switches[1])).toEqual(['spine1', 'spine2']);
    expect(rollout.transfers.filter(({ source }) => source === 'mn1')).toHaveLength(2);
    const used = wires.filter((wire) => wire.class === 'core' && wire.bytesIn > 100_000).map(({ bytesIn }) => bytesIn);
    expect(used).toHaveLength(4);
    for (const bytes of used) expect(bytes / version.sizeBytes).toBeLessThan(0.58);
  });

  test('a source that dies in the middle is replaced by another that has the payload', async () => {
    const topology = smallFabric(4, '20 Mb/s');
    const { client, version, lab: running } = await startWithObject(topology, 0, 8_000_000, { current: [], delta: [] });
    await client.post<VersionView>(VERSIONS, { version: 2, path: join(directory, 'v2'), memoryNode: 'mn2' });
    const { id, transfers } = await client.post<RolloutView>('/v1/rollouts', {
      object: OBJECT,
      version: 2,
      servers: 'all',
    });
    const source = transfers[0]!.source;
    await until(async () => {
      const { servers } = await client.get<RolloutView>(`/v1/rollouts/${id}`);
      return servers.every(({ bytesDone }) => bytesDone > 1_000_000);
    });
    await running.killAgent(source);
    const rollout = await ended(client, id);
    expect(rollout.state).toBe('active');
    expect(await verifiedServers(client, version)).toEqual(['gpu1', 'gpu2', 'gpu3', 'gpu4']);
    const trees = rollout.transfers.filter((transfer) => transfer.source !== 'unicast');
    expect(trees.map((transfer) => [transfer.source, transfer.state])).toEqual([
      [source, 'failed'],
      [source === 'mn1' ? 'mn2' : 'mn1', 'closed'],
    ]);
    // The other source goes on about where this one was; what was under way is all that is read by unicast.
    expect(trees[0]!.receiverTotals.unicastBytes).toBeLessThan(0.5 * 4 * version.sizeBytes);
  });

  test('the same rollout twice is one; a rollout of nothing is refused', async () => {
    const topology = smallFabric(2);
    const { client } = await startWithObject(topology, 0, 500_000, { current: [], delta: ['gpu1', 'gpu2'] });
    const request = { object: OBJECT, version: 2, servers: 'all' };
    const [first, second] = await Promise.all([
      client.post<RolloutView>('/v1/rollouts', request),
      client.post<RolloutView>('/v1/rollouts', request),
    ]);
    expect(second.id).toBe(first.id);
    expect((await ended(client, first.id)).state).toBe('active');
    await expect(client.post('/v1/rollouts', { ...request, servers: [] })).rejects.toThrow();
    await expect(client.post('/v1/rollouts', { ...request, version: 3 })).rejects.toMatchObject({ code: 'NOT_FOUND' });
    await expect(client.post('/v1/rollouts', { ...request, servers: ['gpu9'] })).rejects.toMatchObject({
      code: 'NOT_FOUND',
    });
  });
});

function withCoreRate(topology: Topology, rateBitsPerSecond: number): Topology {
  const links = topology.links.map((each) => ({ ...each, link: { ...each.link, rateBitsPerSecond } }));
  return { ...topology, links };
}

async function until(condition: () => Promise<boolean>): Promise<void> {
  for (let tries = 0; tries < 500; tries++) {
    if (await condition()) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  throw new Error('the condition did not come true');
}
