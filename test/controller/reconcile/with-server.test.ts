import { readFileSync } from 'node:fs';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { createLogger } from '../../../base/logger.ts';
import { SwitchConnection } from '../../../controller/p4runtime/connection.ts';
import { electionIdAt } from '../../../controller/p4runtime/election.ts';
import { createPipeline } from '../../../controller/p4runtime/pipeline.ts';
import { Reconciler, type ReconcilerEvent } from '../../../controller/reconcile/reconciler.ts';
import { baseState, transferState } from '../../../controller/tables/desired.ts';
import { EntityFactory } from '../../../controller/tables/entities.ts';
import { FabricGraph } from '../../../controller/topology/graph.ts';
import { planTree } from '../../../controller/topology/trees.ts';
import type { LoadableProgram, ProgramControl } from '../../../switch/control.ts';
import { type P4RuntimeServer, startP4RuntimeServer } from '../../../switch/server/p4runtime-server.ts';
import { loadTopology } from '../../../topologies/load.ts';
import { P4InfoIndex } from '../../../wire/p4runtime/p4info-index.ts';
import { parseP4InfoText } from '../../../wire/p4runtime/p4info-text.ts';
import { FakeDevice } from '../../switch/server/fake-device.ts';

// The controller's half and the switch's half of P4Runtime, over a real connection; the device keeps entries and executes nothing.

const read = (path: string): string => readFileSync(new URL(`../../../${path}`, import.meta.url), 'utf8');
const p4infoText = read('p4/build/fabric.p4info.txtpb');
const p4info = parseP4InfoText(p4infoText);
const pipeline = createPipeline(p4info, new TextEncoder().encode(p4infoText));
const factory = new EntityFactory(new P4InfoIndex(p4info));
const graph = new FabricGraph(loadTopology(read('topologies/leaf-spine.yaml'), 'leaf-spine.yaml'));
const base = baseState(factory, graph, 'leaf1', { tenantsOf: () => [1] });
const tree = planTree(graph, 'mn1', ['gpu01', 'gpu02', 'gpu20']);
const transfer = (label: number) => transferState(factory, tree, { label, tenant: 1, slot: label }).get('leaf1')!;
const logger = createLogger('silent');
const soon = (assertion: () => void): Promise<void> => vi.waitFor(assertion, { timeout: 30_000, interval: 5 });

/** Has the default actions of p4/fabric.p4, which the P4Info text does not tell. */
class FabricDevice extends FakeDevice {
  override load(program: LoadableProgram): ProgramControl {
    const loaded = super.load(program);
    const defaults = {
      switch_identity: ['set_switch_id', 0n],
      repair_intervals: ['set_intervals', 1n, 2n, 3n],
    } as const;
    for (const [table, [action, ...params]] of Object.entries(defaults))
      loaded.tables
        .get(factory.index.tables.require(table).name)!
        .setDefault({ action: factory.index.actions.require(action).name, params });
    return loaded;
  }
}

const cleanUps: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
});

async function serve(device: FakeDevice, port = 0): Promise<P4RuntimeServer> {
  const server = await startP4RuntimeServer({ devices: [device], address: `127.0.0.1:${port}`, logger });
  cleanUps.push(() => server.stop());
  return server;
}

function control(port: number, wallMs: number, deviceId = 3): SwitchConnection {
  const connection = new SwitchConnection({
    name: 'leaf1',
    address: `127.0.0.1:${port}`,
    deviceId,
    electionId: electionIdAt(wallMs, 1n),
    reconnectFirstMs: 5,
    reconnectMaximumMs: 50,
  });
  cleanUps.push(() => connection.close());
  connection.start();
  return connection;
}

function reconcile(connection: SwitchConnection): { reconciler: Reconciler; events: ReconcilerEvent[] } {
  const events: ReconcilerEvent[] = [];
  const reconciler = new Reconciler({ connection, pipeline, retryFirstMs: 20, retryMaximumMs: 100 });
  reconciler.onEvent((event) => events.push(event));
  cleanUps.push(() => reconciler.close());
  return { reconciler, events };
}

const counted = (events: readonly ReconcilerEvent[]) => events.filter(({ type }) => type === 'converged').at(-1);

describe('reconciler, connection and server', () => {
  it('bring a switch to the base state and a transfer there and away', async () => {
    const device = new FabricDevice(3n);
    const server = await serve(device);
    const connection = control(server.port, 1000);
    await connection.whenPrimary(30_000);
    const { reconciler, events } = reconcile(connection);
    reconciler.setDesired('base', base);
    reconciler.setDesired('transfer:7', transfer(7));
    await reconciler.converge();
    expect(reconciler.entityCount).toBe(base.length + 2);
    expect(device.program?.groups.get(7)).toEqual([
      { port: 2, instance: 1 },
      { port: 3, instance: 1 },
      { port: 18, instance: 1 },
    ]);
    expect(await connection.capabilities()).toBe('1.5.0');
    reconciler.removeDesired('transfer:7');
    await reconciler.converge();
    expect(counted(events)).toEqual({ type: 'converged', inserted: 0, modified: 0, deleted: 2 });
    expect(device.program?.groups.size).toBe(0);
  });

  it('find everything in place after a restart of the controller, and write nothing', async () => {
    const server = await serve(new FabricDevice(3n));
    const first = control(server.port, 1000);
    await first.whenPrimary(30_000);
    const before = reconcile(first).reconciler;
    before.setDesired('base', base);
    before.setDesired('transfer:7', transfer(7));
    await before.converge();
    before.close();
    first.close();

    const second = control(server.port, 2000);
    await second.whenPrimary(30_000);
    const { reconciler, events } = reconcile(second);
    reconciler.setDesired('base', base);
    reconciler.setDesired('transfer:7', transfer(7));
    await reconciler.converge();
    expect(events[0]).toEqual({ type: 'pipeline', result: 'unchanged' });
    expect(counted(events)).toEqual({ type: 'converged', inserted: 0, modified: 0, deleted: 0 });
  });

  it('bring a switch back that was restarted without its memory', async () => {
    const server = await serve(new FabricDevice(3n));
    const connection = control(server.port, 1000);
    await connection.whenPrimary(30_000);
    const { reconciler, events } = reconcile(connection);
    reconciler.setDesired('base', base);
    await reconciler.converge();
    await server.stop();
    await soon(() => expect(connection.state).toBe('down'));
    events.length = 0;
    const device = new FabricDevice(3n);
    await serve(device, server.port);
    await soon(() => expect(counted(events)).toBeDefined());
    expect(events[0]).toEqual({ type: 'pipeline', result: 'installed' });
    expect([...device.program!.tables.get('FabricIngress.admission.port_role')!.entries()]).toHaveLength(19);
  });

  it('leave a switch to the controller that came later', async () => {
    const server = await serve(new FabricDevice(3n));
    const old = control(server.port, 1000);
    await old.whenPrimary(30_000);
    const { reconciler } = reconcile(old);
    const young = control(server.port, 2000);
    await young.whenPrimary(30_000);
    await soon(() => expect(old.state).toBe('backup'));
    await expect(reconciler.converge()).rejects.toMatchObject({ code: 'NOT_PRIMARY' });
    young.close();
    await old.whenPrimary(30_000);
    reconciler.setDesired('base', base);
    await reconciler.converge();
  });

  it("say what the switch refuses, in the program's names", async () => {
    const server = await serve(new FabricDevice(3n));
    const connection = control(server.port, 1000);
    await connection.whenPrimary(30_000);
    await connection.setPipeline(pipeline);
    const [entity] = [factory.tableEntry('port_role', { match: { ingress_port: 4 }, action: { name: 'host_port' } })];
    expect(await connection.write([{ type: 3, entity }])).toMatchObject({
      kind: 'rejected',
      failures: [{ code: 5 }],
      error: { code: 'SWITCH_REJECTED', where: 'switch leaf1, table port_role, ingress_port=0x4 -> host_port()' },
    });
  });

  it('refuse a program whose P4Info belongs to another', async () => {
    const server = await serve(new FabricDevice(3n));
    const connection = control(server.port, 1000);
    await connection.whenPrimary(30_000);
    const foreign = p4infoText.replace(
      'name: "FabricIngress.transfers.transfer"',
      'name: "FabricIngress.transfers.other"',
    );
    await expect(
      connection.setPipeline(createPipeline(p4info, new TextEncoder().encode(foreign))),
    ).rejects.toMatchObject({ code: 'PROGRAM_MISMATCH' });
  });

  it('carry packets both ways', async () => {
    const device = new FabricDevice(3n);
    const server = await serve(device);
    const connection = control(server.port, 1000);
    await connection.whenPrimary(30_000);
    await connection.setPipeline(pipeline);
    const received: unknown[] = [];
    connection.onPacket = (packet) => received.push(packet);
    device.onCpuFrame?.(new Uint8Array([0, 5, 1, 0xaa, 0xbb]));
    await soon(() =>
      expect(received).toEqual([{ payload: new Uint8Array([0xaa, 0xbb]), metadata: { ingress_port: 5n, reason: 1n } }]),
    );
    expect(connection.sendPacket(new Uint8Array([0xcc]), { egress_port: 5n })).toBe(true);
    await soon(() => expect(device.sent).toEqual([new Uint8Array([0, 5, 0xcc])]));
  });

  it('keep asking for a device that the server does not have', async () => {
    const server = await serve(new FabricDevice(3n));
    const connection = control(server.port, 1000, 4);
    await soon(() => expect(connection.lastError?.message).toMatch(/NOT_FOUND/));
    expect(connection.state).toBe('down');
  });
});
