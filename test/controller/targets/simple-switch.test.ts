import { readFileSync } from 'node:fs';
import { status } from '@grpc/grpc-js';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { SwitchConnection, type SwitchConnectionOptions } from '../../../controller/p4runtime/connection.ts';
import { electionIdAt } from '../../../controller/p4runtime/election.ts';
import { createPipeline } from '../../../controller/p4runtime/pipeline.ts';
import { entityMap } from '../../../controller/reconcile/diff.ts';
import { Reconciler, type ReconcilerEvent, type ReconcilerOptions } from '../../../controller/reconcile/reconciler.ts';
import { baseState } from '../../../controller/tables/desired.ts';
import { FIRST_MULTICAST_GROUP, multicastEntities } from '../../../controller/tables/forwarding.ts';
import { FabricGraph } from '../../../controller/topology/graph.ts';
import { IP_MULTICAST_SIZE, PORT_CPU } from '../../../p4/build/constants.ts';
import { findSimpleSwitch, SimpleSwitch } from '../../../scripts/simple-switch.ts';
import { loadTopology } from '../../../topologies/load.ts';
import { type Entity, UpdateType } from '../../../wire/p4runtime/messages.ts';
import { factory, index, p4info, pause, portRole, transfer } from '../../conformance/client/fabric.ts';

// The controller's half of P4Runtime against bmv2's own server, where it is installed.

const path = findSimpleSwitch();
const read = (file: string): Buffer => readFileSync(new URL(`../../../${file}`, import.meta.url));
const pipeline = createPipeline(p4info, read('p4/build/fabric.json'));
const graph = new FabricGraph(loadTopology(read('topologies/leaf-spine.yaml').toString(), 'leaf-spine.yaml'));
const base = baseState(factory, graph, 'leaf1', { tenantsOf: () => [1] });
const wanted = [...base, ...transfer(7, [2, 3, 18]), ...transfer(300, [509])];
const DEVICE_ID = 3;
const TIMEOUT_MS = 120_000;
const soon = (assertion: () => void): Promise<void> => vi.waitFor(assertion, { timeout: 60_000, interval: 10 });

let target: SimpleSwitch;
const cleanUps: (() => void)[] = [];

async function start(port?: number): Promise<void> {
  target = await SimpleSwitch.start({
    path: path!,
    deviceId: DEVICE_ID,
    cpuPort: PORT_CPU,
    ...(port !== undefined && { port }),
  });
}

async function connectPrimary(wallMs = 1, options: Partial<SwitchConnectionOptions> = {}): Promise<SwitchConnection> {
  const connection = new SwitchConnection({
    name: 'leaf1',
    address: `127.0.0.1:${target.port}`,
    deviceId: DEVICE_ID,
    electionId: electionIdAt(wallMs, 1n),
    reconnectFirstMs: 10,
    reconnectMaximumMs: 100,
    ...options,
  });
  cleanUps.push(() => connection.close());
  connection.start();
  await connection.whenPrimary(30_000);
  return connection;
}

function reconcile(
  connection: SwitchConnection,
  entities: readonly Entity[],
  options: Partial<ReconcilerOptions> = {},
): { reconciler: Reconciler; events: ReconcilerEvent[] } {
  const events: ReconcilerEvent[] = [];
  const reconciler = new Reconciler({ connection, pipeline, retryFirstMs: 20, retryMaximumMs: 200, ...options });
  reconciler.onEvent((event) => events.push(event));
  reconciler.setDesired('test', entities);
  cleanUps.push(() => reconciler.close());
  return { reconciler, events };
}

const NOTHING_WRITTEN = { type: 'converged', inserted: 0, modified: 0, deleted: 0 };
const values = (entities: readonly Entity[]): Map<string, string> =>
  new Map([...entityMap(entities)].map(([key, { value }]) => [key, value]));

describe.skipIf(path === undefined)(
  `simple_switch_grpc${path === undefined ? ' (not on PATH)' : ''}`,
  { timeout: TIMEOUT_MS },
  () => {
    beforeEach(() => start());
    afterEach(async () => {
      for (const cleanUp of cleanUps.splice(0).reverse()) cleanUp();
      await target.stop();
    });

    it('takes base state and transfers, and gives them back as they were written', async () => {
      const connection = await connectPrimary();
      expect(await connection.capabilities()).toMatch(/^1\.\d+\.\d+/);
      const { reconciler, events } = reconcile(connection, wanted);
      await reconciler.converge();
      expect(events[0]).toEqual({ type: 'pipeline', result: 'installed' });
      reconciler.close();
      const again = reconcile(connection, wanted);
      await again.reconciler.converge();
      expect(again.events).toEqual([{ type: 'pipeline', result: 'unchanged' }, NOTHING_WRITTEN]);
    });

    it('keeps port ids of groups and one-shot action sets', async () => {
      const connection = await connectPrimary();
      const { reconciler } = reconcile(connection, wanted);
      await reconciler.converge();
      const ecmp = index.tables.require('ipv4_lpm');
      const found = await connection.read([
        { tableEntry: { tableId: ecmp.id } },
        { packetReplicationEngineEntry: { multicastGroupEntry: { multicastGroupId: 0 } } },
      ]);
      const expected = wanted.filter(
        ({ tableEntry, packetReplicationEngineEntry }) =>
          tableEntry?.tableId === ecmp.id || packetReplicationEngineEntry !== undefined,
      );
      expect(values(found)).toEqual(values(expected));
      const oneShot = found.filter(({ tableEntry }) => tableEntry?.action?.actionProfileActionSet !== undefined);
      expect(oneShot.length).toBeGreaterThan(1);
    });

    it('changes a group of ordinary multicast where it is, and takes it away', async () => {
      const connection = await connectPrimary();
      const { reconciler, events } = reconcile(connection, base);
      const group = (...ports: number[]): Entity[] =>
        multicastEntities(factory, {
          destination: 0xef010203,
          multicastGroup: FIRST_MULTICAST_GROUP + IP_MULTICAST_SIZE - 1,
          ports,
          sourceMac: graph.switch('leaf1').mac,
        });
      for (const ports of [[2], [2, 3, 18], [18]]) {
        reconciler.setDesired('multicast', group(...ports));
        await reconciler.converge();
        const found = await connection.read([
          { packetReplicationEngineEntry: { multicastGroupEntry: { multicastGroupId: 0 } } },
        ]);
        expect(values(found)).toEqual(values(group(...ports).slice(0, 1)));
      }
      expect(events.slice(-2)).toEqual([1, 2].map(() => ({ type: 'converged', inserted: 0, modified: 1, deleted: 0 })));
      reconciler.removeDesired('multicast');
      await reconciler.converge();
      expect(events.at(-1)).toEqual({ type: 'converged', inserted: 0, modified: 0, deleted: 2 });
    });

    it('gives everything back that is no longer wanted, defaults and meters too', async () => {
      const connection = await connectPrimary();
      const { reconciler } = reconcile(connection, wanted);
      await reconciler.converge();
      reconciler.removeDesired('test');
      await reconciler.converge();
      expect(reconciler.entityCount).toBe(0);
      reconciler.setDesired('test', wanted);
      await reconciler.converge();
    });

    it('is brought back when it restarts with nothing in it', async () => {
      const connection = await connectPrimary();
      const { reconciler, events } = reconcile(connection, wanted);
      await reconciler.converge();
      const { port } = target;
      await target.stop();
      await soon(() => expect(connection.state).toBe('down'));
      events.length = 0;
      await start(port);
      await soon(() => expect(events.at(-1)).toMatchObject({ type: 'converged' }));
      expect(events[0]).toEqual({ type: 'pipeline', result: 'installed' });
      reconciler.close();
      const again = reconcile(connection, wanted);
      await again.reconciler.converge();
      expect(again.events.at(-1)).toEqual(NOTHING_WRITTEN);
    });

    it('promotes a backup by itself; what the other one wrote is found and put right', async () => {
      const old = await connectPrimary(1);
      const { reconciler, events } = reconcile(old, wanted, { auditMs: 50 });
      await reconciler.converge();
      const young = await connectPrimary(2);
      await soon(() => expect(old.state).toBe('backup'));
      await young.setPipeline(pipeline);
      const foreign = portRole(400);
      expect(await young.write([{ type: UpdateType.INSERT, entity: foreign }])).toEqual({ kind: 'applied' });
      events.length = 0;
      young.close();
      await soon(() => expect(events.some((event) => event.type === 'converged' && event.deleted === 1)).toBe(true));

      // And what is written while this is primary: bmv2 lets nobody else, so it is this one behind the reconciler's back.
      await soon(() => expect(old.state).toBe('primary'));
      expect(await old.write([{ type: UpdateType.INSERT, entity: foreign }])).toEqual({ kind: 'applied' });
      await soon(() => expect(events.some(({ type }) => type === 'drift')).toBe(true));
      await soon(() =>
        expect(events.filter((event) => event.type === 'converged' && event.deleted === 1)).toHaveLength(2),
      );
    });

    it('is not pinged: an idle stream stands', async () => {
      const connection = await connectPrimary(1, { keepaliveMs: 20 });
      const states: string[] = [];
      connection.onState((state) => states.push(state));
      await pause(1_500);
      expect(states).toEqual([]);
    });

    it('has no registers; the error says so', async () => {
      const connection = await connectPrimary();
      await connection.setPipeline(pipeline);
      const [register] = index.registers;
      const entity = { registerEntry: { registerId: register!.id, index: { index: 1n } } };
      await expect(connection.read([entity])).rejects.toMatchObject({ code: 'SWITCH_REJECTED' });
    });

    it('gives clone sessions back, and refuses to cut their packets', async () => {
      const connection = await connectPrimary();
      const session = (sessionId: number, packetLengthBytes: number): Entity => ({
        packetReplicationEngineEntry: {
          cloneSessionEntry: {
            sessionId,
            replicas: [{ egressPort: 3, instance: 1, backupReplicas: [] }],
            classOfService: 0,
            packetLengthBytes,
          },
        },
      });
      const { reconciler } = reconcile(connection, [session(5, 0)]);
      await reconciler.converge();
      reconciler.close();
      const again = reconcile(connection, [session(5, 0)]);
      await again.reconciler.converge();
      expect(again.events.at(-1)).toEqual(NOTHING_WRITTEN);
      expect(await connection.write([{ type: UpdateType.INSERT, entity: session(6, 64) }])).toMatchObject({
        kind: 'rejected',
        error: { code: 'SWITCH_REJECTED', where: 'switch leaf1, clone session 6' },
      });
    });

    it('says which update it refuses, and counts', async () => {
      const connection = await connectPrimary();
      const { reconciler } = reconcile(connection, wanted);
      await reconciler.converge();
      const updates = [portRole(401), portRole(1), portRole(402)].map((entity) => ({
        type: UpdateType.INSERT,
        entity,
      }));
      expect(await connection.write(updates)).toMatchObject({
        kind: 'rejected',
        failures: [{ update: updates[1], code: status.ALREADY_EXISTS }],
        error: { where: 'switch leaf1, table port_role, ingress_port=0x1 -> host_port()' },
      });
      const cells = await connection.readCounters('drop_counter', [1, 12]);
      expect([...cells.keys()]).toEqual([1, 12]);
      expect((await connection.readCounters('drop_counter')).size).toBe(index.counters.require('drop_counter').size);
    });
  },
);
