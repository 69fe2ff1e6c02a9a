import { readFileSync } from 'node:fs';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { VirtualScheduler } from '../../../base/clock.ts';
import { createLogger } from '../../../base/logger.ts';
import { createRandom } from '../../../base/random.ts';
import { SwitchConnection } from '../../../controller/p4runtime/connection.ts';
import { electionIdAt } from '../../../controller/p4runtime/election.ts';
import { createPipeline } from '../../../controller/p4runtime/pipeline.ts';
import { Reconciler, type ReconcilerEvent } from '../../../controller/reconcile/reconciler.ts';
import { baseState, transferState } from '../../../controller/tables/desired.ts';
import { EntityFactory } from '../../../controller/tables/entities.ts';
import { INGRESS_PORT_COUNTER, portCounterCell } from '../../../controller/tables/telemetry.ts';
import { FabricGraph } from '../../../controller/topology/graph.ts';
import { createNeighbourResponder } from '../../../controller/topology/neighbours.ts';
import { planTree } from '../../../controller/topology/trees.ts';
import { ETHERTYPE_ARP, KIND_ARP, PORT_CPU } from '../../../p4/build/constants.ts';
import { Device } from '../../../switch/device.ts';
import { type P4RuntimeServer, startP4RuntimeServer } from '../../../switch/server/p4runtime-server.ts';
import { loadTopology } from '../../../topologies/load.ts';
import { P4InfoIndex } from '../../../wire/p4runtime/p4info-index.ts';
import { parseP4InfoText } from '../../../wire/p4runtime/p4info-text.ts';
import { MAC_BROADCAST, parseIpv4, parseMac } from '../../../wire/packet/addresses.ts';
import { ARP_REPLY, ARP_REQUEST, emitArp, parseArp } from '../../../wire/packet/arp.ts';
import { emitEthernet } from '../../../wire/packet/ethernet.ts';

// The controller's half and the switch's half of P4Runtime, over a real connection, with the real program.

const read = (path: string): string => readFileSync(new URL(`../../../${path}`, import.meta.url), 'utf8');
const p4info = parseP4InfoText(read('p4/build/fabric.p4info.txtpb'));
const fabricJson = read('p4/build/fabric.json');
const pipeline = createPipeline(p4info, new TextEncoder().encode(fabricJson));
const factory = new EntityFactory(new P4InfoIndex(p4info));
const graph = new FabricGraph(loadTopology(read('topologies/leaf-spine.yaml'), 'leaf-spine.yaml'));
const base = baseState(factory, graph, 'leaf1', { tenantsOf: () => [1] });
const tree = planTree(graph, 'mn1', ['gpu01', 'gpu02', 'gpu20']);
const transfer = (label: number) => transferState(factory, tree, { label, tenant: 1, slot: label }).get('leaf1')!;
const logger = createLogger('silent');
const soon = (assertion: () => void): Promise<void> => vi.waitFor(assertion, { timeout: 30_000, interval: 5 });

function createDevice(): Device {
  return new Device({ deviceId: 3n, cpuPort: PORT_CPU, clock: new VirtualScheduler(), random: createRandom(1) });
}

const cleanUps: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
});

async function serve(device: Device, port = 0): Promise<P4RuntimeServer> {
  const server = await startP4RuntimeServer({
    devices: [device],
    address: `127.0.0.1:${port}`,
    scheduler: new VirtualScheduler(),
    logger,
  });
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
    const device = createDevice();
    const server = await serve(device);
    const connection = control(server.port, 1000);
    await connection.whenPrimary(30_000);
    const { reconciler, events } = reconcile(connection);
    reconciler.setDesired('base', base);
    reconciler.setDesired('transfer:7', transfer(7));
    await reconciler.converge();
    expect(reconciler.entityCount).toBe(base.length + 2);
    expect(await connection.capabilities()).toBe('1.5.0');
    reconciler.removeDesired('transfer:7');
    await reconciler.converge();
    expect(counted(events)).toEqual({ type: 'converged', inserted: 0, modified: 0, deleted: 2 });
    expect(reconciler.entityCount).toBe(base.length);
  });

  it('find everything in place after a restart of the controller, and write nothing', async () => {
    const server = await serve(createDevice());
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
    const server = await serve(createDevice());
    const connection = control(server.port, 1000);
    await connection.whenPrimary(30_000);
    const { reconciler, events } = reconcile(connection);
    reconciler.setDesired('base', base);
    await reconciler.converge();
    await server.stop();
    await soon(() => expect(connection.state).toBe('down'));
    events.length = 0;
    const device = createDevice();
    await serve(device, server.port);
    await soon(() => expect(counted(events)).toBeDefined());
    expect(events[0]).toEqual({ type: 'pipeline', result: 'installed' });
    expect([...device.program!.tables.get('FabricIngress.admission.port_role')!.entries()]).toHaveLength(19);
  });

  it('leave a switch to the controller that came later', async () => {
    const server = await serve(createDevice());
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
    const server = await serve(createDevice());
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
    const server = await serve(createDevice());
    const connection = control(server.port, 1000);
    await connection.whenPrimary(30_000);
    const foreign = fabricJson.replaceAll('"FabricIngress.transfers.transfer"', '"FabricIngress.transfers.other"');
    await expect(
      connection.setPipeline(createPipeline(p4info, new TextEncoder().encode(foreign))),
    ).rejects.toMatchObject({ code: 'PROGRAM_MISMATCH' });
  });

  it('answer a host that asks for its gateway', async () => {
    const device = createDevice();
    const server = await serve(device);
    const connection = control(server.port, 1000);
    await connection.whenPrimary(30_000);
    const { reconciler } = reconcile(connection);
    reconciler.setDesired('base', base);
    await reconciler.converge();
    const responder = createNeighbourResponder(graph, 'leaf1');
    connection.onPacket = ({ payload, metadata }) => {
      const port = Number(metadata.ingress_port);
      const reply = responder.answer(payload, port, Number(metadata.reason));
      if (reply !== undefined) connection.sendPacket(reply, { egress_port: BigInt(port) });
    };
    const sent: { port: number; frame: Uint8Array }[] = [];
    device.onTransmit = (port, frame) => sent.push({ port, frame });

    const host = graph.host('gpu01');
    const mac = parseMac(host.mac)!;
    const request = new Uint8Array(60);
    emitEthernet(request, 0, { destination: MAC_BROADCAST, source: mac, etherType: ETHERTYPE_ARP });
    const targetIp = parseIpv4(graph.switch('leaf1').ip)!;
    emitArp(request, 14, {
      operation: ARP_REQUEST,
      senderMac: mac,
      senderIp: parseIpv4(host.ip)!,
      targetMac: 0,
      targetIp,
    });
    device.receive(host.port, request);
    await soon(() => expect(sent).toHaveLength(1));
    expect(sent[0]?.port).toBe(host.port);
    expect(parseArp(sent[0]!.frame.subarray(14))).toMatchObject({
      operation: ARP_REPLY,
      senderMac: parseMac(graph.switch('leaf1').mac),
      targetMac: mac,
    });
    const cell = portCounterCell(host.port, false, KIND_ARP);
    expect(await connection.readCounters(INGRESS_PORT_COUNTER, [cell])).toEqual(
      new Map([[cell, { packets: 1n, bytes: 60n }]]),
    );
  });

  it('keep asking for a device that the server does not have', async () => {
    const server = await serve(createDevice());
    const connection = control(server.port, 1000, 4);
    await soon(() => expect(connection.lastError?.message).toMatch(/NOT_FOUND/));
    expect(connection.state).toBe('down');
  });
});
