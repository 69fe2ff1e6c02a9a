import { readFileSync } from 'node:fs';
import { status } from '@grpc/grpc-js';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { DdfError } from '../../../base/errors.ts';
import {
  type ReceivedPacket,
  SwitchConnection,
  type SwitchConnectionOptions,
} from '../../../controller/p4runtime/connection.ts';
import { nextElectionId } from '../../../controller/p4runtime/election.ts';
import { createPipeline } from '../../../controller/p4runtime/pipeline.ts';
import { Reconciler, type ReconcilerEvent, type ReconcilerOptions } from '../../../controller/reconcile/reconciler.ts';
import { baseState } from '../../../controller/tables/desired.ts';
import { FabricGraph } from '../../../controller/topology/graph.ts';
import { loadTopology } from '../../../topologies/load.ts';
import { type Entity, UpdateType } from '../../../wire/p4runtime/messages.ts';
import { factory, index, p4info, pause, portRole, soon, transfer } from '../../conformance/client/fabric.ts';
import { FakeServer, verdict } from '../p4runtime/fake-server.ts';
import { BadTarget } from './bad-target.ts';

// What people who run the tools of today report about targets: the controller's connection and reconciler have to cope with every one. Rows as in
// the list of docs/targets.md.

const read = (path: string): Buffer => readFileSync(new URL(`../../../${path}`, import.meta.url));
const pipeline = createPipeline(p4info, read('p4/build/fabric.json'));
const graph = new FabricGraph(loadTopology(read('topologies/leaf-spine.yaml').toString(), 'leaf-spine.yaml'));
const base = baseState(factory, graph, 'leaf1', { tenantsOf: () => [1] });
const OLD = { high: 5n, low: 7n };
const YOUNG = { high: 6n, low: 0n };
const TIMEOUT_MS = 60_000;

let target: BadTarget;
const cleanUps: (() => void)[] = [];
beforeEach(async () => {
  target = await BadTarget.start();
});
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) cleanUp();
  await target.stop();
});

function connect(options: Partial<SwitchConnectionOptions> = {}): SwitchConnection {
  const connection = new SwitchConnection({
    name: 'leaf1',
    address: target.address,
    deviceId: 1,
    electionId: OLD,
    reconnectFirstMs: 5,
    reconnectMaximumMs: 50,
    ...options,
  });
  cleanUps.push(() => connection.close());
  connection.start();
  return connection;
}

async function connectPrimary(options: Partial<SwitchConnectionOptions> = {}): Promise<SwitchConnection> {
  const connection = connect(options);
  await connection.whenPrimary(30_000);
  return connection;
}

function reconcile(
  connection: SwitchConnection,
  wanted: readonly Entity[],
  options: Partial<ReconcilerOptions> = {},
): { reconciler: Reconciler; events: ReconcilerEvent[] } {
  const events: ReconcilerEvent[] = [];
  const reconciler = new Reconciler({ connection, pipeline, retryFirstMs: 10, retryMaximumMs: 100, ...options });
  reconciler.onEvent((event) => events.push(event));
  reconciler.setDesired('test', wanted);
  cleanUps.push(() => reconciler.close());
  return { reconciler, events };
}

async function failure(promise: Promise<unknown>): Promise<DdfError> {
  return promise.then(
    () => Promise.reject(new Error('it succeeded')),
    (error: DdfError) => error,
  );
}

const converged = (events: readonly ReconcilerEvent[]) => events.filter(({ type }) => type === 'converged').at(-1);
const NOTHING_WRITTEN = { type: 'converged', inserted: 0, modified: 0, deleted: 0 };

/** Another controller, or the same one after a restart, finds everything as it should be. */
async function expectInPlace(connection: SwitchConnection, wanted: readonly Entity[]): Promise<void> {
  const { reconciler, events } = reconcile(connection, wanted);
  await reconciler.converge();
  expect(converged(events)).toEqual(NOTHING_WRITTEN);
  reconciler.close();
}

describe('the controller copes with a target that', { timeout: TIMEOUT_MS }, () => {
  it('row 1: has no registers: the error names them, and everything else works', async () => {
    target.faults.refuses = ({ registerEntry }) => (registerEntry === undefined ? undefined : status.UNIMPLEMENTED);
    const connection = await connectPrimary();
    const { reconciler } = reconcile(connection, base);
    await reconciler.converge();
    const register = [...index.registers][0]!;
    const entity = { registerEntry: { registerId: register.id, index: { index: 1n } } };
    expect(await failure(connection.read([entity]))).toMatchObject({ code: 'SWITCH_REJECTED', where: 'switch leaf1' });
    expect((await failure(connection.read([entity]))).describe()).toMatch(/UNIMPLEMENTED.*docs\/targets\.md/);
    expect(await connection.write([{ type: UpdateType.MODIFY, entity }])).toMatchObject({
      kind: 'rejected',
      failures: [{ code: status.UNIMPLEMENTED }],
      error: { where: `switch leaf1, register ${register.alias}[1]` },
    });
  });

  it('row 2: promotes backups by itself, so that election ids decrease', async () => {
    const old = await connectPrimary();
    const { reconciler } = reconcile(old, base);
    await reconciler.converge();
    const young = await connectPrimary({ electionId: YOUNG });
    await soon(() => expect(old.state).toBe('backup'));
    const bids = target.bids.length;
    young.close();
    await old.whenPrimary(30_000);
    expect(target.bids).toHaveLength(bids);
    reconciler.setDesired('more', transfer(7));
    await reconciler.converge();
    expect(target.writes.at(-1)?.electionId).toEqual(OLD);
  });

  it('row 2: gives the mastership to another controller in the middle of a batch', async () => {
    const old = await connectPrimary();
    let young: SwitchConnection | undefined;
    target.faults.beforeUpdate = (position) => {
      if (position === 20) young ??= connect({ electionId: YOUNG });
    };
    target.faults.updateMs = 2;
    const { reconciler, events } = reconcile(old, base);
    expect(await failure(reconciler.converge())).toMatchObject({ recoverable: true });
    expect(old.state).toBe('backup');
    await young!.whenPrimary(30_000);
    target.faults.updateMs = 0;
    young!.close();
    await soon(() => expect(converged(events)).toBeDefined());
    await expectInPlace(old, base);
  });

  it('row 3: ignores roles: none is claimed, so none is relied upon', async () => {
    const connection = await connectPrimary();
    const { reconciler } = reconcile(connection, base);
    await reconciler.converge();
    expect(target.bids.every(({ arbitration }) => arbitration?.role === undefined)).toBe(true);
    expect(target.writes.every(({ role, roleId }) => role === '' && roleId === 0n)).toBe(true);
  });

  it('row 4: still has the stream of the controller that died, with the same election id', async () => {
    await connectPrimary();
    const again = await connectPrimary();
    expect(again.state).toBe('primary');
    expect(target.bids.at(-1)?.arbitration?.electionId).toEqual(nextElectionId(OLD));
  });

  it('row 5: leaves the election id out of its answers, and ends streams while bids are under way', async () => {
    const server = await FakeServer.listen();
    cleanUps.push(() => server.stop());
    server.onBid = () => verdict(status.NOT_FOUND, undefined);
    const connection = connect({ address: server.address });
    await soon(() => expect(server.bids.length).toBeGreaterThan(1));
    expect(connection.state).toBe('backup');
    server.onBid = (_, stream) => {
      stream.emit('error', { code: status.UNAVAILABLE, details: 'not now' });
      return undefined;
    };
    server.hangUp(status.UNAVAILABLE, 'going down');
    await soon(() => expect(connection.state).toBe('down'));
    server.onBid = () => verdict(status.OK, undefined);
    await connection.whenPrimary(30_000);
    expect(server.bids.every((id) => id.high === OLD.high && id.low === OLD.low)).toBe(true);
  });

  it('row 6: restarts without its state', async () => {
    const connection = await connectPrimary();
    const { reconciler, events } = reconcile(connection, [...base, ...transfer(7)]);
    await reconciler.converge();
    events.length = 0;
    await target.restart();
    await soon(() => expect(converged(events)).toBeDefined());
    expect(events.find(({ type }) => type === 'pipeline')).toEqual({ type: 'pipeline', result: 'installed' });
    await expectInPlace(connection, [...base, ...transfer(7)]);
  });

  it('row 6: loses its state, and its streams stand', async () => {
    const connection = await connectPrimary();
    const { reconciler, events } = reconcile(connection, base, { auditMs: 20 });
    await reconciler.converge();
    await target.loseState();
    events.length = 0;
    await soon(() => expect(events).toContainEqual({ type: 'pipeline', result: 'installed' }));
    await soon(() => expect(converged(events)).toBeDefined());
    reconciler.close();
    await expectInPlace(connection, base);
  });

  it.each(['remove', 'keep'] as const)(
    'row 7: is written to by somebody else, whose entries we %s',
    async (foreign) => {
      const connection = await connectPrimary();
      const { reconciler, events } = reconcile(connection, base, { auditMs: 20, foreign });
      await reconciler.converge();
      const [stranger] = transfer(99);
      const changed = factory.tableEntry('port_role', { match: { ingress_port: 1 }, action: { name: 'fabric_port' } });
      await target.plant(UpdateType.INSERT, stranger!);
      await target.plant(UpdateType.MODIFY, changed);
      await soon(() => expect(events).toContainEqual(expect.objectContaining({ type: 'drift' })));
      const written = { inserted: 0, modified: 1, deleted: foreign === 'remove' ? 1 : 0 };
      await soon(() => expect(events.some((event) => event.type === 'converged' && event.modified === 1)).toBe(true));
      await pause(60);
      const total = { inserted: 0, modified: 0, deleted: 0 };
      for (const event of events.slice(events.findIndex(({ type }) => type === 'drift')))
        if (event.type === 'converged')
          for (const count of ['inserted', 'modified', 'deleted'] as const) total[count] += event[count];
      expect(total).toEqual(written);
      reconciler.close();
      const groups = await connection.read([
        { packetReplicationEngineEntry: { multicastGroupEntry: { multicastGroupId: 0 } } },
      ]);
      expect(groups).toHaveLength(foreign === 'remove' ? 0 : 1);
    },
  );

  it('rows 8 and 9: pads byte strings, of entities and of packets', async () => {
    target.faults.pads = true;
    const connection = await connectPrimary();
    const wanted = [...base, ...transfer(7, [2, 3])];
    const { reconciler } = reconcile(connection, wanted);
    await reconciler.converge();
    await expectInPlace(connection, wanted);
    const received: ReceivedPacket[] = [];
    connection.onPacket = (packet) => received.push(packet);
    target.send({
      packet: {
        payload: new Uint8Array([1]),
        metadata: [
          { metadataId: 2, value: new Uint8Array([0, 0, 0, 2]) },
          { metadataId: 1, value: new Uint8Array([0, 0, 1, 1]) },
        ],
      },
    });
    await soon(() => expect(received.map(({ metadata }) => metadata)).toEqual([{ ingress_port: 257n, reason: 2n }]));
  });

  it('row 14: gives replicas in an order of its own', async () => {
    const server = await FakeServer.listen();
    cleanUps.push(() => server.stop());
    const connection = connect({ address: server.address });
    await connection.whenPrimary(30_000);
    const [group] = transfer(7, [2, 3, 4]);
    const { multicastGroupEntry } = group!.packetReplicationEngineEntry!;
    const reversed = { ...multicastGroupEntry!, replicas: [...multicastGroupEntry!.replicas].reverse() };
    server.chunks = [[{ packetReplicationEngineEntry: { multicastGroupEntry: reversed } }]];
    await expectInPlace(connection, [group!]);
  });

  it('row 15: drops copies to ports that it does not have: none are asked for', () => {
    for (const port of [0, 510, 511, 512, 1.5])
      expect(() => factory.multicastGroup(1, [{ port, instance: 1 }])).toThrow(/no front panel port/);
    expect(() => portRole(512)).toThrow(/does not fit into 9 bits/);
  });

  it.each([status.NOT_FOUND, status.UNIMPLEMENTED, status.UNKNOWN])(
    'row 17: shows multicast groups one by one only (%i), and default entries among the others',
    async (code) => {
      target.faults.listsDefaults = true;
      target.faults.refuses = ({ packetReplicationEngineEntry: replication }, call) => {
        const { multicastGroupEntry: group, cloneSessionEntry: session } = replication ?? {};
        return call === 'read' && (group?.multicastGroupId === 0 || session?.sessionId === 0) ? code : undefined;
      };
      const connection = await connectPrimary();
      const wanted = [...base, ...transfer(7)];
      const { reconciler } = reconcile(connection, wanted);
      await reconciler.converge();
      await expectInPlace(connection, wanted);
      // A group that is not known of is found when it is in the way.
      await target.plant(UpdateType.INSERT, transfer(8, [5])[0]!);
      reconciler.setDesired('more', transfer(8));
      await reconciler.converge();
      reconciler.close();
      await expectInPlace(connection, [...wanted, ...transfer(8)]);
    },
  );

  it.each(['none', 'foreign'] as const)('row 18: fails with UNKNOWN and details that are %s', async (errors) => {
    target.faults.errors = errors;
    const bad = portRole(3);
    target.faults.refuses = ({ tableEntry }, call) =>
      call === 'write' && tableEntry?.tableId === bad.tableEntry!.tableId && tableEntry.match[0]?.exact?.value[0] === 3
        ? status.RESOURCE_EXHAUSTED
        : undefined;
    const connection = await connectPrimary();
    const { reconciler, events } = reconcile(connection, base, { retryFirstMs: 60_000 });
    const error = await failure(reconciler.converge());
    expect(error.code).toBe('SWITCH_REJECTED');
    expect(error.where).toBe('switch leaf1, table port_role, ingress_port=0x3 -> host_port()');
    expect(events.at(-1)).toMatchObject({ type: 'failed' });
    target.faults.refuses = () => undefined;
    await reconciler.converge();
    await expectInPlace(connection, base);
  });

  it('row 20: has no atomic batches: none are asked for', async () => {
    const connection = await connectPrimary();
    const { reconciler } = reconcile(connection, [...base, ...transfer(7)]);
    await reconciler.converge();
    expect(target.writes.every(({ atomicity }) => atomicity === 0)).toBe(true);
  });

  it('row 21: says more about a failed batch than fits into a trailer: the call hangs until its deadline', async () => {
    target.faults.errors = { hugeBytes: 400 };
    target.faults.refuses = ({ tableEntry }, call) =>
      call === 'write' && tableEntry !== undefined ? status.RESOURCE_EXHAUSTED : undefined;
    const connection = await connectPrimary({ callTimeoutMs: 2_000 });
    const wanted = Array.from({ length: 256 }, (_, i) => transfer(i + 1)[1]!);
    const { reconciler } = reconcile(connection, wanted, { retryFirstMs: 60_000 });
    const error = await failure(reconciler.converge());
    expect(error.code).toBe('SWITCH_REJECTED');
    expect(error.message).toMatch(/the switch refused an update: x+ \(and 63 more\)/);
    expect(error.where).toMatch(/table transfer, label=0x1 -> follow_tree/);
    expect(target.writes.map(({ updates }) => updates.length).slice(0, 2)).toEqual([256, 64]);
    expect(connection.state).toBe('primary');
    target.faults.refuses = () => undefined;
    await reconciler.converge();
    await expectInPlace(connection, wanted);
  });

  it('row 22: repeats idle notices every two seconds whatever the time-out', async () => {
    const connection = await connectPrimary();
    let reports = 0;
    connection.onIdle = () => reports++;
    const entry = { ...portRole(1).tableEntry!, idleTimeoutNs: 3_600_000_000_000n };
    for (let i = 0; i < 5; i++) target.send({ idleTimeoutNotification: { tableEntry: [entry] } });
    await soon(() => expect(reports).toBe(1));
    await pause(20);
    expect(reports).toBe(1);
  });

  it('row 23: sends digest lists twice', async () => {
    const connection = await connectPrimary();
    const lists: bigint[] = [];
    connection.onDigest = ({ listId }) => void lists.push(listId);
    for (const listId of [1n, 1n, 2n, 1n]) target.send({ digest: { digestId: 0x17000001, listId } });
    await soon(() => expect(lists).toEqual([1n, 2n]));
  });

  it('row 30: speaks an older version, or does not say which; an http_proxy of the environment does not matter', async () => {
    const before = process.env.http_proxy;
    process.env.http_proxy = 'http://127.0.0.1:9';
    try {
      const connection = await connectPrimary();
      expect(await connection.capabilities()).toBe('1.3.0');
      target.faults.version = undefined;
      expect(await connection.capabilities()).toBe('1.0.0');
    } finally {
      if (before === undefined) delete process.env.http_proxy;
      else process.env.http_proxy = before;
    }
  });

  it('row 30: is watched by calls that it may not know: any answer will do', async () => {
    target.faults.version = undefined;
    const connection = await connectPrimary({ keepaliveMs: 5 });
    const states: string[] = [];
    connection.onState((state) => states.push(state));
    await pause(100);
    expect(states).toEqual([]);
  });

  it('row 31: crashes in the middle of a batch', async () => {
    const connection = await connectPrimary();
    let restart: Promise<void> | undefined;
    target.faults.beforeUpdate = (position) => {
      if (position === 30) restart ??= target.restart();
    };
    const { reconciler, events } = reconcile(connection, base);
    await failure(reconciler.converge());
    await restart;
    await soon(() => expect(converged(events)).toBeDefined());
    await expectInPlace(connection, base);
  });

  it('row 32: fails to read a meter before it was configured', async () => {
    target.faults.refuses = ({ meterEntry }, call) =>
      call === 'read' && meterEntry !== undefined ? status.UNKNOWN : undefined;
    const connection = await connectPrimary();
    const { reconciler, events } = reconcile(connection, base);
    await reconciler.converge();
    expect(converged(events)).toMatchObject({ type: 'converged' });
    target.faults.refuses = () => undefined;
    await expectInPlace(connection, base);
  });

  it('row 33: has no config to give before the first one', async () => {
    target.faults.refusesGetBeforeSet = true;
    const connection = await connectPrimary();
    const { reconciler, events } = reconcile(connection, base);
    await reconciler.converge();
    expect(events[0]).toEqual({ type: 'pipeline', result: 'installed' });
  });

  it('row 38: takes a program and says that it failed', async () => {
    target.faults.failingPushes = 1;
    const connection = await connectPrimary();
    const { reconciler, events } = reconcile(connection, base);
    await failure(reconciler.converge());
    await soon(() => expect(converged(events)).toBeDefined());
    expect(events.find(({ type }) => type === 'pipeline')).toEqual({ type: 'pipeline', result: 'unchanged' });
  });

  it('row 39: writes slowly: batches get as small as its pace and the deadline allow', async () => {
    target.faults.updateMs = 20;
    // Less than the first batch takes, more than anything else does on a busy machine.
    const connection = await connectPrimary({ callTimeoutMs: 2_000 });
    const { reconciler } = reconcile(connection, base);
    await reconciler.converge();
    const sizes = target.writes.map(({ updates }) => updates.length);
    expect(Math.max(...sizes.slice(-2))).toBeLessThanOrEqual(64);
    target.faults.updateMs = 0;
    await expectInPlace(connection, base);
  });
});
