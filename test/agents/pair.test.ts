import { mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import type { Agent } from '../../agents/agent.ts';
import { createGpuServer } from '../../agents/gpu-server.ts';
import { createWorkers, type Workers } from '../../agents/io/workers.ts';
import { createMemoryNode } from '../../agents/memory-node.ts';
import { hashFile } from '../../agents/store/files.ts';
import { RealScheduler } from '../../base/clock.ts';
import { createLogger } from '../../base/logger.ts';
import { createRandom } from '../../base/random.ts';
import { CHUNK_BYTES } from '../../objects/chunks.ts';
import { FABRIC_UDP_PORT, RECEIVER_UDP_PORT_FIRST } from '../../p4/build/constants.ts';
import { type Payload, type PrepareReceive, type StartSend, TransferState } from '../../wire/agent/messages.ts';
import { decodeFabric, FABRIC_HEADER_BYTES, sealFabric } from '../../wire/fabric/header.ts';
import type { MessageInput } from '../../wire/proto.ts';
import { FakeController } from './fake-controller.ts';
import { FakeFabric, type FakeFabricOptions, TREE_IP } from './fake-fabric.ts';

const OBJECT = 0x0001_0000_0000_0009n;
const SIZE = 5 * CHUNK_BYTES + 4321;
const MBIT = 1_000_000n;

let directory: string;
let scheduler: RealScheduler;
let controller: FakeController;
let workers: Workers;
let agents: Agent[] = [];
let nextIncarnation = 1n;

beforeAll(() => {
  workers = createWorkers();
});
afterAll(() => workers.close());

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), 'ddf-agents-'));
  scheduler = new RealScheduler();
  controller = new FakeController();
  await controller.start();
  const random = createRandom('weights');
  const v21 = new Uint16Array(Math.ceil(SIZE / 2));
  for (let i = 0; i < v21.length; i++) v21[i] = random.uint32();
  const v22 = v21.map((element) => (random.chance(0.01) ? element + 1 : element));
  writeFileSync(join(directory, 'v21'), new Uint8Array(v21.buffer, 0, SIZE));
  writeFileSync(join(directory, 'v22'), new Uint8Array(v22.buffer, 0, SIZE));
});

afterEach(async () => {
  for (const agent of agents) await agent.stop();
  agents = [];
  controller.stop();
  scheduler.stop();
  rmSync(directory, { recursive: true, force: true });
});

function fabricWith(options: Partial<FakeFabricOptions> = {}): FakeFabric {
  return new FakeFabric({ scheduler, random: createRandom('fabric'), loss: 0, ...options });
}

async function startAgent(kind: 'memory' | 'gpu', name: string, fabric: FakeFabric, ip: string): Promise<Agent> {
  const make = kind === 'memory' ? createMemoryNode : createGpuServer;
  const agent = make({
    name,
    host: fabric.host(ip),
    scheduler,
    random: createRandom(`agent/${name}`),
    workers,
    storeDirectory: join(directory, 'stores', name),
    storeDurable: false,
    controllerAddress: controller.address,
    incarnation: nextIncarnation++,
    logger: createLogger('silent'),
  });
  agents.push(agent);
  await agent.start();
  await agent.whenAttached(10_000);
  return agent;
}

/** A Memory Node that holds versions 21 and 22. */
async function startMemoryNode(fabric: FakeFabric): Promise<Agent> {
  const node = await startAgent('memory', 'memory-1', fabric, '10.0.0.1');
  for (const version of [21, 22]) {
    const path = join(directory, `v${version}`);
    const reply = await controller.ask('memory-1', { importVersion: { objectId: OBJECT, version, path } });
    expect(reply.error).toBeUndefined();
    expect(reply.imported).toMatchObject({ version, sizeBytes: BigInt(SIZE) });
  }
  return node;
}

async function payloadFrom(baseVersion: number): Promise<Payload> {
  const reply = await controller.ask('memory-1', { makeDelta: { objectId: OBJECT, version: 22, baseVersion } });
  expect(reply.error).toBeUndefined();
  return reply.payload!;
}

function root22(node: Agent): Uint8Array {
  return node.store.findVersion(OBJECT, 22)!.manifest.rootSha256;
}

function prepareBody(label: number, payload: Payload, node: Agent): MessageInput<PrepareReceive> {
  return {
    label,
    payload,
    segmentBytes: 8192,
    stripes: [{ label, index: 0, count: 1, senderIp: '10.0.0.1', rttUs: 1000, sendDone: true }],
    targetRootSha256: root22(node),
    eliminationUs: 2000,
    deadlineMs: 30_000,
    holders: [{ rangeUrl: controller.hello('memory-1').rangeUrl, token: `token-${label}` }],
  };
}

async function prepare(gpu: string, label: number, payload: Payload, node: Agent): Promise<void> {
  const { objectId, version, baseVersion } = payload;
  const token = `token-${label}`;
  await controller.ask('memory-1', { allowRange: { token, objectId, version, baseVersion, ttlMs: 60_000 } });
  const reply = await controller.ask(gpu, { prepareReceive: prepareBody(label, payload, node) });
  expect(reply.error).toBeUndefined();
}

function sendBody(label: number, payload: Payload, rate = 400n * MBIT): MessageInput<StartSend> {
  return {
    label,
    payload,
    segmentBytes: 8192,
    destinationIp: TREE_IP,
    rateFloorBitsPerSecond: 10n * MBIT,
    rateCeilingBitsPerSecond: rate,
    rttUs: 1000,
    deadlineMs: 30_000,
    expectDone: false,
  };
}

async function send(label: number, payload: Payload, rate = 400n * MBIT): Promise<void> {
  const reply = await controller.ask('memory-1', { startSend: sendBody(label, payload, rate) });
  expect(reply.error).toBeUndefined();
}

const verified = (label: number) =>
  controller.status(label, ({ state, receiver }) => {
    expect(state).not.toBe(TransferState.FAILED);
    return state === TransferState.VERIFIED && receiver !== undefined;
  });

function expectHolds22(gpu: Agent, node: Agent): void {
  const stored = gpu.store.findVersion(OBJECT, 22)!;
  expect(Buffer.compare(hashFile(stored.dataPath).rootSha256, root22(node))).toBe(0);
  expect(
    controller.held.some(({ version, rootSha256 }) => version === 22 && Buffer.compare(rootSha256, root22(node)) === 0),
  ).toBe(true);
}

test('a full image over a lossy fabric: verified, activated, told to the controller', async () => {
  const fabric = fabricWith({ loss: 0.02 });
  const node = await startMemoryNode(fabric);
  const gpu = await startAgent('gpu', 'gpu-1', fabric, '10.0.1.1');
  expect(controller.hello('gpu-1')).toMatchObject({
    kind: 2,
    fabricIp: '10.0.1.1',
    receiverPort: RECEIVER_UDP_PORT_FIRST,
  });
  expect(controller.hello('memory-1')).toMatchObject({ kind: 1, receiverPort: FABRIC_UDP_PORT });
  const payload = await payloadFrom(0);
  await prepare('gpu-1', 1, payload, node);
  // Asking again is no error.
  await prepare('gpu-1', 1, payload, node);
  await send(1, payload);
  await send(1, payload);
  const status = await verified(1);
  expect(status.bytesDone).toBe(BigInt(SIZE));
  expect(status.receiver!.chunksVerified).toBe(6n);
  expect(status.receiver!.nacksSent).toBeGreaterThan(0n);
  expect(status.receiver!.packetsRejected).toBe(0n);
  expectHolds22(gpu, node);

  const update = { label: 1, rateFloorBitsPerSecond: 1n * MBIT, rateCeilingBitsPerSecond: 2n * MBIT };
  expect((await controller.ask('memory-1', { updateSend: update })).error).toBeUndefined();
  expect((await controller.ask('memory-1', { endTransfer: { label: 1, complete: true } })).error).toBeUndefined();
  expect((await controller.ask('gpu-1', { endTransfer: { label: 1, complete: true } })).error).toBeUndefined();
  const closed = await controller.status(1, ({ state }) => state === TransferState.CLOSED);
  expect(closed.sender!.dataPackets).toBe(BigInt(Math.ceil(SIZE / 8192) + 1));
  expect(closed.sender!.repairPackets).toBeGreaterThan(0n);

  expect((await controller.ask('gpu-1', { activateVersion: { objectId: OBJECT, version: 21 } })).error?.code).toBe(
    'NOT_FOUND',
  );
  expect((await controller.ask('gpu-1', { activateVersion: { objectId: OBJECT, version: 22 } })).error).toBeUndefined();
  expect((await controller.ask('gpu-1', { dropVersion: { objectId: OBJECT, version: 22 } })).error?.code).toBe(
    'CONFLICT',
  );
  expect(gpu.store.active()).toEqual([{ objectId: OBJECT, version: 22 }]);
  // A server that holds it is asked once more: it says so at once.
  await prepare('gpu-1', 2, payload, node);
  await controller.status(2, ({ state }) => state === TransferState.VERIFIED);
});

test('a delta to two servers: applied to the base they hold', async () => {
  const fabric = fabricWith({ loss: 0.01 });
  const node = await startMemoryNode(fabric);
  const servers = [];
  for (const i of [1, 2]) {
    const gpu = await startAgent('gpu', `gpu-${i}`, fabric, `10.0.1.${i}`);
    await gpu.store.adopt(node.store.findVersion(OBJECT, 21)!);
    servers.push(gpu);
  }
  const payload = await payloadFrom(21);
  expect(Number(payload.sizeBytes)).toBeLessThan(SIZE / 10);
  expect((await payloadFrom(21)).manifestSha256).toEqual(payload.manifestSha256);
  for (const i of [1, 2]) await prepare(`gpu-${i}`, 7, payload, node);
  await send(7, payload);
  await controller.until(() => controller.held.filter(({ version }) => version === 22).length >= 3);
  await controller.until(
    () => controller.statuses.filter(({ state }) => state === TransferState.VERIFIED).length === 2,
  );
  expect(controller.statuses.some(({ state }) => state === TransferState.RECONSTRUCTING)).toBe(true);
  for (const gpu of servers) {
    expectHolds22(gpu, node);
    expect(gpu.store.findVersion(OBJECT, 21)).toBeDefined();
    expect(gpu.store.usedBytes).toBe(2 * SIZE);
  }
});

test('a delta whose base is missing or damaged is refused before a byte moves', async () => {
  const fabric = fabricWith();
  const node = await startMemoryNode(fabric);
  const gpu = await startAgent('gpu', 'gpu-1', fabric, '10.0.1.1');
  const payload = await payloadFrom(21);
  const ask = () => controller.ask('gpu-1', { prepareReceive: prepareBody(3, payload, node) });
  expect((await ask()).error).toMatchObject({ code: 'BASE_MISMATCH', remedy: expect.stringContaining('full image') });

  const other = join(directory, 'copy-of-21');
  writeFileSync(other, Buffer.alloc(SIZE, 'x'));
  const adopted = await gpu.store.adopt({ ...node.store.findVersion(OBJECT, 21)!, dataPath: other });
  expect((await ask()).error).toMatchObject({ code: 'BASE_MISMATCH', message: expect.stringContaining('damaged') });
  // It does not count as held any more, and the controller knows.
  await controller.until(() => controller.dropped.some(({ version }) => version === 21));
  expect(gpu.store.findVersion(OBJECT, 21)).toBeUndefined();
  expect(adopted.manifest.version).toBe(21);
});

test('a receiver that is killed in the middle resumes from its verified chunks', async () => {
  const fabric = fabricWith();
  const node = await startMemoryNode(fabric);
  const first = await startAgent('gpu', 'gpu-1', fabric, '10.0.1.1');
  const payload = await payloadFrom(0);
  await prepare('gpu-1', 11, payload, node);
  await send(11, payload, 60n * MBIT);
  await controller.status(
    11,
    ({ bytesDone, receiver }) => receiver !== undefined && bytesDone >= BigInt(2 * CHUNK_BYTES),
  );
  await first.kill();
  await controller.ask('memory-1', { endTransfer: { label: 11, complete: false } });

  const second = await startAgent('gpu', 'gpu-1', fabric, '10.0.1.1');
  expect(second.store.findVersion(OBJECT, 22)).toBeUndefined();
  await prepare('gpu-1', 12, payload, node);
  const resumed = await controller.status(12, ({ receiver }) => receiver !== undefined);
  expect(resumed.bytesDone).toBeGreaterThanOrEqual(BigInt(2 * CHUNK_BYTES));
  await send(12, payload);
  const status = await verified(12);
  expect(status.receiver!.chunksVerified).toBeLessThanOrEqual(4n);
  expectHolds22(second, node);
});

test('a sender that is killed in the middle: the rest is read by unicast', async () => {
  const fabric = fabricWith();
  const node = await startMemoryNode(fabric);
  const gpu = await startAgent('gpu', 'gpu-1', fabric, '10.0.1.1');
  const payload = await payloadFrom(0);
  await prepare('gpu-1', 13, payload, node);
  await send(13, payload, 60n * MBIT);
  await controller.status(13, ({ bytesDone, receiver }) => receiver !== undefined && bytesDone >= BigInt(CHUNK_BYTES));
  await controller.ask('memory-1', { endTransfer: { label: 13, complete: false } });
  const status = await verified(13);
  expect(status.receiver!.unicastBytes).toBeGreaterThan(0n);
  expect(status.receiver!.unicastRequests).toBeGreaterThan(0n);
  expect(BigInt(node.rangeBytesServed)).toBe(status.receiver!.unicastBytes);
  expectHolds22(gpu, node);
});

test('a chunk that is damaged in well-formed packets is read by unicast', async () => {
  let damaged = 0;
  const fabric = fabricWith({
    tamper(datagram) {
      const packet = decodeFabric(datagram);
      if (typeof packet === 'string' || packet.block !== 3 || packet.symbol !== 5) return;
      damaged++;
      datagram[FABRIC_HEADER_BYTES]! ^= 1;
      sealFabric(datagram, packet);
    },
  });
  const node = await startMemoryNode(fabric);
  const gpu = await startAgent('gpu', 'gpu-1', fabric, '10.0.1.1');
  const payload = await payloadFrom(0);
  await prepare('gpu-1', 14, payload, node);
  await send(14, payload);
  const status = await verified(14);
  expect(damaged).toBe(1);
  expect(status.receiver!.chunksFailed).toBe(1n);
  expect(status.receiver!.unicastBytes).toBe(BigInt(CHUNK_BYTES));
  expectHolds22(gpu, node);
});

test('without a sender everything is read from the holders, the next one when one fails', async () => {
  const fabric = fabricWith();
  const node = await startMemoryNode(fabric);
  const gpu = await startAgent('gpu', 'gpu-1', fabric, '10.0.1.1');
  const payload = await payloadFrom(0);
  const good = controller.hello('memory-1').rangeUrl;
  const { objectId, version, baseVersion } = payload;
  await controller.ask('memory-1', { allowRange: { token: 'right', objectId, version, baseVersion, ttlMs: 60_000 } });
  const holders = [
    { rangeUrl: 'http://127.0.0.1:9', token: 'nobody' },
    { rangeUrl: good, token: 'wrong' },
    { rangeUrl: good, token: 'right' },
  ];
  const body = { ...prepareBody(15, payload, node), stripes: [], holders };
  expect((await controller.ask('gpu-1', { prepareReceive: body })).error).toBeUndefined();
  const status = await verified(15);
  expect(status.receiver!.dataPackets).toBe(0n);
  expect(status.receiver!.unicastBytes).toBe(BigInt(SIZE + payload.manifestBytes));
  expectHolds22(gpu, node);
});

function stripesOf(...labels: number[]): NonNullable<MessageInput<PrepareReceive>['stripes']> {
  return labels.map((label, index) => ({
    label,
    index,
    count: labels.length,
    senderIp: '10.0.0.1',
    rttUs: 1000,
    sendDone: true,
  }));
}

test('two Memory Nodes bring a payload in two stripes', async () => {
  const fabric = fabricWith({ loss: 0.01 });
  const node = await startMemoryNode(fabric);
  const second = await startAgent('memory', 'memory-2', fabric, '10.0.0.2');
  await second.store.adopt(node.store.findVersion(OBJECT, 22)!);
  const gpu = await startAgent('gpu', 'gpu-1', fabric, '10.0.1.1');
  const payload = await payloadFrom(0);
  const [one, two] = stripesOf(50, 51);
  const body = { ...prepareBody(50, payload, node), stripes: [one!, { ...two!, senderIp: '10.0.0.2' }] };
  expect((await controller.ask('gpu-1', { prepareReceive: body })).error).toBeUndefined();
  for (const [name, label, stripeIndex] of [
    ['memory-1', 50, 0],
    ['memory-2', 51, 1],
  ] as const) {
    const startSend = { ...sendBody(label, payload), stripeIndex, stripeCount: 2 };
    expect((await controller.ask(name, { startSend })).error).toBeUndefined();
  }
  const status = await verified(50);
  expect(status.receiver).toMatchObject({ unicastBytes: 0n, rejectedBlock: 0n });
  const sent = Math.ceil(SIZE / 8192) + 1;
  expect(Number(status.receiver!.dataPackets)).toBeLessThanOrEqual(sent);
  expectHolds22(gpu, node);
});

test('a receiver that is taken out of the tree reads the rest by unicast and says no more to the sender', async () => {
  const fabric = fabricWith();
  const node = await startMemoryNode(fabric);
  const gpu = await startAgent('gpu', 'gpu-1', fabric, '10.0.1.1');
  const payload = await payloadFrom(0);
  await prepare('gpu-1', 40, payload, node);
  await send(40, payload, 60n * MBIT);
  await controller.status(40, ({ bytesDone, receiver }) => receiver !== undefined && bytesDone >= BigInt(CHUNK_BYTES));
  expect((await controller.ask('gpu-1', { updateReceive: { label: 40, stripes: [] } })).error).toBeUndefined();
  const status = await verified(40);
  expect(status.receiver!.unicastBytes).toBeGreaterThan(BigInt(CHUNK_BYTES));
  expect(status.receiver!.unicastBytes).toBeLessThanOrEqual(BigInt(SIZE - CHUNK_BYTES));
  expectHolds22(gpu, node);
  const sender = await controller.status(40, (heard) => heard.sender !== undefined);
  expect(sender.sender!.doneReceived).toBe(false);
});

test('another label takes the place of a stripe whose sender has failed; statuses keep the first one', async () => {
  const fabric = fabricWith();
  const node = await startMemoryNode(fabric);
  const gpu = await startAgent('gpu', 'gpu-1', fabric, '10.0.1.1');
  const payload = await payloadFrom(0);
  await prepare('gpu-1', 41, payload, node);
  await send(41, payload, 60n * MBIT);
  await controller.status(41, ({ bytesDone, receiver }) => receiver !== undefined && bytesDone >= BigInt(CHUNK_BYTES));
  await controller.ask('memory-1', { endTransfer: { label: 41, complete: false } });
  const update = { label: 41, stripes: stripesOf(42) };
  expect((await controller.ask('gpu-1', { updateReceive: update })).error).toBeUndefined();
  await send(42, payload);
  const status = await verified(41);
  expect(status.receiver!.unicastBytes).toBe(0n);
  expectHolds22(gpu, node);
  expect((await controller.ask('gpu-1', { endTransfer: { label: 41, complete: true } })).error).toBeUndefined();
  // Its labels are free again.
  expect((await controller.ask('gpu-1', { updateReceive: update })).error).toBeUndefined();
});

test('stripes that cannot be are refused and change nothing', async () => {
  const fabric = fabricWith();
  const node = await startMemoryNode(fabric);
  await startAgent('gpu', 'gpu-1', fabric, '10.0.1.1');
  const payload = await payloadFrom(0);
  await prepare('gpu-1', 43, payload, node);
  const update = (stripes: MessageInput<PrepareReceive>['stripes'], label = 43) =>
    controller.ask('gpu-1', { updateReceive: { label, stripes } });
  const [one, two] = stripesOf(43, 44);
  expect((await update([{ ...one!, rttUs: 0 }])).error).toMatchObject({ code: 'INVALID_REQUEST' });
  expect((await update([one!, { ...two!, index: 0 }])).error).toMatchObject({ code: 'INVALID_OPTION' });
  expect((await update([one!, { ...two!, count: 3 }])).error).toMatchObject({ code: 'INVALID_OPTION' });
  expect((await update([two!], 99)).error).toBeUndefined();
  const other = { ...prepareBody(45, await payloadFrom(21), node), stripes: stripesOf(43) };
  expect((await controller.ask('gpu-1', { prepareReceive: other })).error).toMatchObject({ code: 'CONFLICT' });
  await send(43, payload);
  await verified(43);
});

test('an aborted transfer ends, and a new label takes over what it had', async () => {
  const fabric = fabricWith();
  const node = await startMemoryNode(fabric);
  await startAgent('gpu', 'gpu-1', fabric, '10.0.1.1');
  const payload = await payloadFrom(0);
  await prepare('gpu-1', 16, payload, node);
  await prepare('gpu-1', 17, payload, node);
  const superseded = await controller.status(16, ({ state }) => state === TransferState.FAILED);
  expect(superseded.error).toMatchObject({ code: 'CANCELLED', message: expect.stringContaining('17') });
  await controller.ask('gpu-1', { endTransfer: { label: 17, complete: false } });
  const aborted = await controller.status(17, ({ state }) => state === TransferState.FAILED);
  expect(aborted.error?.code).toBe('CANCELLED');
  // A label that nobody knows is ended already.
  expect((await controller.ask('gpu-1', { endTransfer: { label: 99, complete: false } })).error).toBeUndefined();
});

test('a controller that was away hears how things are when the agent attaches again', async () => {
  const fabric = fabricWith();
  const node = await startMemoryNode(fabric);
  await startAgent('gpu', 'gpu-1', fabric, '10.0.1.1');
  const payload = await payloadFrom(0);
  await prepare('gpu-1', 18, payload, node);
  await send(18, payload);
  controller.cut('gpu-1');
  await controller.until(() => controller.hellos.filter(({ agentId }) => agentId === 'gpu-1').length === 2);
  await verified(18);
  controller.cut('gpu-1');
  controller.statuses.length = 0;
  await controller.until(() => controller.hellos.filter(({ agentId }) => agentId === 'gpu-1').length === 3);
  await verified(18);
  expect(controller.hello('gpu-1').held).toMatchObject([{ objectId: OBJECT, version: 22 }]);
});

test('a controller that restarts finds its agents again, with what they got meanwhile', async () => {
  const fabric = fabricWith();
  const node = await startMemoryNode(fabric);
  const gpu = await startAgent('gpu', 'gpu-1', fabric, '10.0.1.1');
  const payload = await payloadFrom(0);
  await prepare('gpu-1', 19, payload, node);
  await send(19, payload);
  const port = Number(controller.address.split(':')[1]);
  controller.stop();
  controller = new FakeController();
  await controller.start(port);
  await controller.until(() => controller.isAttached('gpu-1') && controller.isAttached('memory-1'));
  const status = await verified(19);
  expect(status.bytesDone).toBe(BigInt(SIZE));
  expect(gpu.store.findVersion(OBJECT, 22)).toBeDefined();
  expect((await controller.ask('memory-1', { endTransfer: { label: 19, complete: true } })).error).toBeUndefined();
  await controller.status(19, ({ state }) => state === TransferState.CLOSED);
});

test('a receiver that is killed while it reconstructs does so again', async () => {
  const fabric = fabricWith();
  const node = await startMemoryNode(fabric);
  const first = await startAgent('gpu', 'gpu-1', fabric, '10.0.1.1');
  await first.store.adopt(node.store.findVersion(OBJECT, 21)!);
  const payload = await payloadFrom(21);
  await prepare('gpu-1', 30, payload, node);
  await send(30, payload);
  await controller.status(30, ({ state }) => state === TransferState.RECONSTRUCTING);
  await first.kill();
  const second = await startAgent('gpu', 'gpu-1', fabric, '10.0.1.1');
  // The crash may have come after the version was stored; both are whole states.
  await prepare('gpu-1', 31, payload, node);
  await controller.status(31, ({ state }) => state === TransferState.VERIFIED);
  expectHolds22(second, node);
  expect(second.store.usedBytes).toBe(2 * SIZE);
});

test('bad requests are refused with code, place and remedy, and leave nothing behind', async () => {
  const fabric = fabricWith();
  const node = await startMemoryNode(fabric);
  await startAgent('gpu', 'gpu-1', fabric, '10.0.1.1');
  const payload = await payloadFrom(0);
  const memory = (body: Parameters<FakeController['ask']>[1]) => controller.ask('memory-1', body);
  const path = join(directory, 'v21');
  const used = node.store.usedBytes;
  const missing = await memory({ importVersion: { objectId: OBJECT, version: 23, path: join(directory, 'none') } });
  expect(missing.error).toMatchObject({ code: 'INVALID_FILE', where: join(directory, 'none') });
  const other = await memory({ importVersion: { objectId: OBJECT, version: 22, path } });
  expect(other.error?.code).toBe('ALREADY_EXISTS');
  expect((await memory({ importVersion: { objectId: OBJECT, version: 21, path } })).error).toBeUndefined();
  expect((await memory({ importVersion: { objectId: OBJECT, version: 0, path } })).error?.code).toBe('INVALID_REQUEST');
  expect((await memory({ makeDelta: { objectId: OBJECT, version: 22, baseVersion: 9 } })).error?.code).toBe(
    'NOT_FOUND',
  );
  expect((await memory({ startSend: { label: 1 } })).error?.code).toBe('INVALID_REQUEST');
  expect((await memory({ startSend: { label: 1, payload: { ...payload, version: 5 } } })).error?.code).toBe(
    'NOT_FOUND',
  );
  expect((await memory({ startSend: { label: 1, payload, segmentBytes: 8192 } })).error?.code).toBe('INVALID_OPTION');
  expect((await memory({ updateSend: { label: 77 } })).error?.code).toBe('NOT_FOUND');
  expect((await memory({ prepareReceive: { label: 1 } })).error?.code).toBe('INVALID_REQUEST');
  expect(node.store.usedBytes).toBe(used);

  const gpu = (change: Partial<MessageInput<PrepareReceive>>) =>
    controller.ask('gpu-1', { prepareReceive: { ...prepareBody(20, payload, node), ...change } });
  expect((await gpu({ payload: undefined })).error?.code).toBe('INVALID_REQUEST');
  expect((await gpu({ segmentBytes: 65_001 })).error).toMatchObject({
    code: 'INVALID_REQUEST',
    where: 'segment_bytes',
  });
  expect((await gpu({ payload: { ...payload, sizeBytes: 0n } })).error?.code).toBe('INVALID_REQUEST');
  expect((await gpu({ payload: { ...payload, sizeBytes: 1n << 45n } })).error?.code).toBe('NO_SPACE');
  expect((await controller.ask('gpu-1', { importVersion: { path } })).error?.code).toBe('INVALID_REQUEST');
});

test('an agent that the controller refuses says why and does not try again', async () => {
  controller.refused.add('stranger');
  await expect(startAgent('gpu', 'stranger', fabricWith(), '10.0.9.9')).rejects.toMatchObject({ code: 'NOT_FOUND' });
  expect(controller.isAttached('stranger')).toBe(false);
});

test('a stored payload that lost its end fails the transfer, not the agent', async () => {
  const fabric = fabricWith();
  const node = await startMemoryNode(fabric);
  const payload = await payloadFrom(0);
  truncateSync(node.store.findVersion(OBJECT, 22)!.dataPath, 1000);
  await send(21, payload);
  const failed = await controller.status(21, ({ state }) => state === TransferState.FAILED);
  expect(failed.error?.code).toBe('HASH_MISMATCH');
  expect((await controller.ask('memory-1', { endTransfer: { label: 21, complete: true } })).error).toBeUndefined();
});
