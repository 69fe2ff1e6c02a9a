import { readFileSync } from 'node:fs';
import { status } from '@grpc/grpc-js';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { DdfError } from '../../../base/errors.ts';
import {
  type ReceivedPacket,
  SwitchConnection,
  type SwitchConnectionOptions,
} from '../../../controller/p4runtime/connection.ts';
import { compareElectionIds, electionIdAt, nextElectionId } from '../../../controller/p4runtime/election.ts';
import { createPipeline } from '../../../controller/p4runtime/pipeline.ts';
import { EntityFactory } from '../../../controller/tables/entities.ts';
import { type Update, UpdateType } from '../../../wire/p4runtime/messages.ts';
import { P4InfoIndex } from '../../../wire/p4runtime/p4info-index.ts';
import { parseP4InfoText } from '../../../wire/p4runtime/p4info-text.ts';
import { FakeServer, verdict } from './fake-server.ts';

const P4INFO = new URL('../../../p4/build/fabric.p4info.txtpb', import.meta.url);
const p4info = parseP4InfoText(readFileSync(P4INFO, 'utf8'));
const index = new P4InfoIndex(p4info);
const factory = new EntityFactory(index);
const pipeline = createPipeline(p4info, new TextEncoder().encode('{}'));
const ELECTION_ID = { high: 5n, low: 7n };

const insert = (port: number): Update => ({
  type: UpdateType.INSERT,
  entity: factory.tableEntry('port_role', { match: { ingress_port: port % 512 }, action: { name: 'host_port' } }),
});

/** Waits for what others do; generous, since machines are busy at times. */
const soon = (assertion: () => void): Promise<void> => vi.waitFor(assertion, { timeout: 30_000, interval: 5 });

let server: FakeServer;
const connections: SwitchConnection[] = [];
beforeEach(async () => {
  server = await FakeServer.listen();
});
afterEach(() => {
  for (const connection of connections.splice(0)) connection.close();
  server.stop();
});

function connect(options: Partial<SwitchConnectionOptions> = {}): SwitchConnection {
  const connection = new SwitchConnection({
    name: 'leaf1',
    address: server.address,
    deviceId: 1,
    electionId: ELECTION_ID,
    reconnectFirstMs: 2,
    reconnectMaximumMs: 20,
    ...options,
  });
  connections.push(connection);
  connection.start();
  return connection;
}

async function connectPrimary(options: Partial<SwitchConnectionOptions> = {}): Promise<SwitchConnection> {
  const connection = connect(options);
  await connection.whenPrimary(10_000);
  return connection;
}

async function failure(promise: Promise<unknown>): Promise<DdfError> {
  return promise.then(
    () => Promise.reject(new Error('it succeeded')),
    (error: DdfError) => error,
  );
}

describe('election ids', () => {
  it('grow with time and compare as unsigned 128 bits', () => {
    expect(compareElectionIds(electionIdAt(1000, 2n ** 64n - 1n), electionIdAt(1001, 0n))).toBe(-1);
    expect(compareElectionIds({ high: 2n ** 63n, low: 0n }, { high: 1n, low: 2n ** 64n - 1n })).toBe(1);
    expect(compareElectionIds({ high: 1n, low: 2n ** 63n }, { high: 1n, low: 1n })).toBe(1);
    expect(compareElectionIds(ELECTION_ID, { ...ELECTION_ID })).toBe(0);
    expect(nextElectionId({ high: 1n, low: 2n ** 64n - 1n })).toEqual({ high: 2n, low: 0n });
    expect(nextElectionId({ high: 2n ** 64n - 1n, low: 2n ** 64n - 1n })).toEqual({
      high: 2n ** 64n - 1n,
      low: 2n ** 64n - 1n,
    });
  });
});

describe('mastership', () => {
  it('begins with status OK, and calls fail fast before', async () => {
    server.onBid = () => undefined;
    const connection = connect();
    await soon(() => expect(server.bids).toEqual([ELECTION_ID]));
    expect(connection.state).toBe('connecting');
    expect(await failure(connection.write([insert(1)]))).toMatchObject({
      code: 'SWITCH_UNREACHABLE',
      recoverable: true,
    });
    expect(server.writes).toEqual([]);
    server.send({ arbitration: verdict(status.OK, ELECTION_ID) });
    await connection.whenPrimary(10_000);
    expect(await connection.write([insert(1)])).toEqual({ kind: 'applied' });
    expect(server.writes[0]).toMatchObject({ deviceId: 1n, electionId: ELECTION_ID, atomicity: 0 });
  });

  it('row 14: stays backup while there is another primary, and does not spin', async () => {
    server.onBid = () => verdict(status.ALREADY_EXISTS, { high: 9n, low: 0n });
    const connection = connect();
    await soon(() => expect(connection.state).toBe('backup'));
    await new Promise((resolve) => setTimeout(resolve, 60));
    expect(server.bids).toHaveLength(1);
    expect(await failure(connection.write([insert(1)]))).toMatchObject({ code: 'NOT_PRIMARY', recoverable: true });
    expect((await failure(connection.whenPrimary(1))).code).toBe('NOT_PRIMARY');
  });

  it('row 14: bids above the highest id ever seen when there is no primary any more', async () => {
    server.onBid = () => verdict(status.ALREADY_EXISTS, { high: 9n, low: 3n });
    const connection = connect();
    await soon(() => expect(connection.state).toBe('backup'));
    server.onBid = (bid) => verdict(status.OK, bid.electionId);
    server.send({ arbitration: verdict(status.NOT_FOUND, { high: 9n, low: 3n }) });
    await connection.whenPrimary(10_000);
    expect(server.bids).toEqual([ELECTION_ID, { high: 9n, low: 4n }]);
    await connection.write([insert(1)]);
    expect(server.writes[0]?.electionId).toEqual({ high: 9n, low: 4n });
  });

  it('row 15: takes a new id when its own is in use', async () => {
    server.onBid = (bid, stream) => {
      if (bid.electionId?.low !== ELECTION_ID.low) return verdict(status.OK, bid.electionId);
      stream.emit('error', { code: status.INVALID_ARGUMENT, details: 'Election id already exists' });
      return undefined;
    };
    await connectPrimary();
    expect(server.bids).toEqual([ELECTION_ID, nextElectionId(ELECTION_ID)]);
  });

  it('rows 15 and 17: ends with the stream; what is under way fails, and it begins anew on the next one', async () => {
    const connection = await connectPrimary();
    const states: string[] = [];
    connection.onState((state) => states.push(state));
    server.answerWrite = () => 'silence';
    const write = connection.write([insert(1)]);
    await soon(() => expect(server.writes).toHaveLength(1));
    server.hangUp(status.UNAVAILABLE, 'going down');
    expect(await write).toMatchObject({ kind: 'unknown' });
    expect(states[0]).toBe('down');
    server.answerWrite = () => 'ok';
    await connection.whenPrimary(10_000);
    expect(states).toEqual(['down', 'primary']);
    expect(await connection.write([insert(1)])).toEqual({ kind: 'applied' });
  });

  it('is lost to another controller without the stream ending', async () => {
    const connection = await connectPrimary();
    server.send({ arbitration: verdict(status.ALREADY_EXISTS, { high: 9n, low: 0n }) });
    await soon(() => expect(connection.state).toBe('backup'));
    server.send({ arbitration: verdict(status.OK, ELECTION_ID) });
    await soon(() => expect(connection.state).toBe('primary'));
  });

  it('survives a server that is away, and comes back with it', async () => {
    const connection = await connectPrimary();
    const { address } = server;
    server.stop();
    await soon(() => expect(connection.state).toBe('down'));
    expect(await failure(connection.whenPrimary(30))).toMatchObject({ code: 'SWITCH_UNREACHABLE', recoverable: true });
    const closing = connect();
    const waiting = failure(closing.whenPrimary(3_600_000));
    closing.close();
    expect((await waiting).code).toBe('CANCELLED');
    server = await FakeServer.listen(Number(address.split(':')[1]));
    await connection.whenPrimary(10_000);
    expect(server.bids).toHaveLength(1);
  });

  it('gives up on a server that does not answer the bid, and asks again', async () => {
    server.onBid = () => undefined;
    const connection = connect({ callTimeoutMs: 20 });
    await soon(() => expect(server.bids.length).toBeGreaterThan(1));
    expect(connection.lastError?.message).toMatch(/no answer to the bid within 20 ms/);
  });

  it('ends for good when closed', async () => {
    const connection = await connectPrimary();
    connection.close();
    expect(connection.state).toBe('down');
    await soon(() => expect(server.streams.size).toBe(0));
    await new Promise((resolve) => setTimeout(resolve, 40));
    expect(server.bids).toHaveLength(1);
  });
});

describe('the pipeline', () => {
  it('is given to a switch once, and recognised by its cookie afterwards', async () => {
    const connection = await connectPrimary();
    expect(await connection.setPipeline(pipeline)).toBe('installed');
    expect(await connection.setPipeline(pipeline)).toBe('unchanged');
    expect(await connection.setPipeline(createPipeline(p4info, new Uint8Array([1])))).toBe('installed');
    expect(server.pipelines).toHaveLength(2);
    expect(server.pipelines[0]).toMatchObject({ electionId: ELECTION_ID, action: 3 });
    expect(new TextDecoder().decode(server.pipelines[0]?.config?.p4DeviceConfig)).toBe('{}');
    expect(server.pipelines[0]?.config?.p4info?.tables).toHaveLength(p4info.tables.length);
  });

  it('that the switch refuses is a mismatch of P4Info and program', async () => {
    const connection = await connectPrimary();
    server.refusePipeline = { code: status.INVALID_ARGUMENT, details: 'table transfer is not in the JSON' };
    const error = await failure(connection.setPipeline(pipeline));
    expect(error).toMatchObject({ code: 'PROGRAM_MISMATCH', where: 'switch leaf1' });
    expect(error.message).toMatch(/table transfer is not in the JSON/);
  });

  it('row 25: a server without Capabilities speaks 1.0', async () => {
    const connection = await connectPrimary();
    expect(await connection.capabilities()).toBe('1.5.0');
    server.capabilities = undefined;
    expect(await connection.capabilities()).toBe('1.0.0');
  });
});

describe('a write', () => {
  it('goes out in batches of at most 256, in order', async () => {
    const connection = await connectPrimary();
    await connection.write(Array.from({ length: 600 }, (_, i) => insert(i)));
    expect(server.writes.map(({ updates }) => updates.length)).toEqual([256, 256, 88]);
    expect(server.writes[1]?.updates[0]?.entity?.tableEntry?.match[0]?.exact?.value).toEqual(new Uint8Array([1, 0]));
    expect(await connection.write([])).toEqual({ kind: 'applied' });
  });

  it('says which entry was refused and why, in the names of the program', async () => {
    const connection = await connectPrimary();
    await connection.setPipeline(pipeline);
    server.answerWrite = () => ({ codes: [0, status.RESOURCE_EXHAUSTED, 0] });
    const outcome = await connection.write([insert(1), insert(2), insert(3)]);
    if (outcome.kind !== 'rejected') throw new Error(outcome.kind);
    expect(outcome.failures).toMatchObject([{ code: status.RESOURCE_EXHAUSTED, message: 'reason 8' }]);
    expect(outcome.error).toMatchObject({
      code: 'SWITCH_REJECTED',
      message: 'the switch refused an update: reason 8',
      where: 'switch leaf1, table port_role, ingress_port=0x2 -> host_port()',
    });
  });

  it('stops at the batch that was refused', async () => {
    const connection = await connectPrimary();
    server.answerWrite = ({ updates }) => ({ codes: updates.map(() => status.ALREADY_EXISTS) });
    const outcome = await connection.write(Array.from({ length: 300 }, (_, i) => insert(i)));
    expect(outcome).toMatchObject({ kind: 'rejected' });
    expect(server.writes).toHaveLength(1);
  });

  it.each([
    ['of another number', { codes: [6] }],
    ['that deny every failure', { codes: [0, 0] }],
    ['that are missing', { code: status.UNKNOWN }],
  ])('row 31: nobody knows its outcome after details %s', async (_, answer) => {
    const connection = await connectPrimary();
    server.answerWrite = () => answer;
    const outcome = await connection.write([insert(1), insert(2)]);
    expect(outcome).toMatchObject({ kind: 'unknown', error: { code: 'SWITCH_REJECTED' } });
  });

  it('has a deadline, after which later calls have a connection of their own', async () => {
    const connection = await connectPrimary({ callTimeoutMs: 500 });
    server.answerWrite = () => 'silence';
    const outcome = await connection.write([insert(1)]);
    expect(outcome).toMatchObject({ kind: 'unknown' });
    if (outcome.kind === 'unknown') expect(outcome.error.message).toMatch(/DEADLINE_EXCEEDED/);
    expect(connection.state).toBe('primary');
    server.answerWrite = () => 'ok';
    expect(await connection.write([insert(1)])).toEqual({ kind: 'applied' });
  });

  it.each([
    [status.PERMISSION_DENIED, 'NOT_PRIMARY'],
    [status.FAILED_PRECONDITION, 'SWITCH_REJECTED'],
    [status.UNIMPLEMENTED, 'SWITCH_REJECTED'],
  ])('that the server refuses as a whole is an error: status %i', async (code, expected) => {
    const connection = await connectPrimary();
    server.answerWrite = () => ({ code });
    expect((await failure(connection.write([insert(1)]))).code).toBe(expected);
  });
});

describe('a read', () => {
  it('puts the messages of the reply together', async () => {
    const connection = await connectPrimary();
    const [first, second, third] = [insert(1), insert(2), insert(3)].map(({ entity }) => entity!);
    server.chunks = [[first!], [], [second!, third!]];
    const entities = await connection.read([{ tableEntry: { tableId: 0 } }]);
    expect(entities).toEqual([first, second, third]);
    expect(server.reads[0]?.deviceId).toBe(1n);
  });

  it('of counters gives cells by index', async () => {
    const connection = await connectPrimary();
    await connection.setPipeline(pipeline);
    const { id: counterId } = index.counters.require('drop_counter');
    server.chunks = [
      [{ counterEntry: { counterId, index: { index: 12n }, data: { packetCount: 3n, byteCount: 300n } } }],
      [{ counterEntry: { counterId, index: { index: 13n } } }],
    ];
    expect(await connection.readCounters('drop_counter')).toEqual(
      new Map([
        [12, { packets: 3n, bytes: 300n }],
        [13, { packets: 0n, bytes: 0n }],
      ]),
    );
    await connection.readCounters('drop_counter', [12, 13]);
    expect(server.reads[1]?.entities.map((entity) => entity.counterEntry?.index?.index)).toEqual([12n, 13n]);
    expect((await connection.readCounters('drop_counter', [])).size).toBe(0);
    expect((await failure(connection.readCounters('no_such_counter'))).code).toBe('NOT_FOUND');
  });
});

describe('packets', () => {
  const packetIn = (port: number) => ({
    packet: {
      payload: new Uint8Array([port]),
      metadata: [
        { metadataId: 2, value: new Uint8Array([1]) },
        { metadataId: 1, value: new Uint8Array([0, 0, port]) },
      ],
    },
  });

  it('row 79: arrive with metadata by name, whatever their order and padding', async () => {
    const connection = await connectPrimary();
    await connection.setPipeline(pipeline);
    const received: ReceivedPacket[] = [];
    connection.onPacket = (packet) => received.push(packet);
    server.send(packetIn(7));
    await soon(() => expect(received).toHaveLength(1));
    expect(received[0]).toEqual({ payload: new Uint8Array([7]), metadata: { ingress_port: 7n, reason: 1n } });
  });

  it('row 80: beyond the queue the oldest are dropped and counted, and arbitration is not held up', async () => {
    const connection = await connectPrimary({ packetQueueLength: 8 });
    await connection.setPipeline(pipeline);
    const received: number[] = [];
    let backupAfter: number | undefined;
    connection.onPacket = (packet) => {
      // A slow consumer: everything else has arrived by the time it has read one packet.
      if (received.length === 0) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 50);
      received.push(packet.payload[0]!);
    };
    connection.onState(() => {
      backupAfter = received.length;
    });
    for (let i = 0; i < 200; i++) server.send(packetIn(i));
    server.send({ arbitration: verdict(status.ALREADY_EXISTS, { high: 9n, low: 0n }) });
    await soon(() => expect(connection.state).toBe('backup'));
    expect(backupAfter).toBeDefined();
    await soon(() => expect(received.at(-1)).toBe(199));
    expect(received.length + connection.packetsDropped).toBe(200);
  });

  it('with metadata of another program are counted and ignored', async () => {
    const connection = await connectPrimary();
    await connection.setPipeline(pipeline);
    server.send({
      packet: { payload: new Uint8Array([1]), metadata: [{ metadataId: 9, value: new Uint8Array([1]) }] },
    });
    await soon(() => expect(connection.packetsDropped).toBe(1));
  });

  it('go out with all metadata of the program, and only from the primary', async () => {
    const connection = await connectPrimary();
    expect(connection.sendPacket(new Uint8Array([1]), { egress_port: 3n })).toBe(false);
    await connection.setPipeline(pipeline);
    expect(connection.sendPacket(new Uint8Array([1]), { egress_port: 3n })).toBe(true);
    await soon(() => expect(server.packetsOut).toHaveLength(1));
    expect(server.packetsOut[0]?.metadata[0]?.value).toEqual(new Uint8Array([3]));
    expect(() => connection.sendPacket(new Uint8Array([1]), {})).toThrow(/egress_port is missing/);
    server.send({ arbitration: verdict(status.ALREADY_EXISTS, { high: 9n, low: 0n }) });
    await soon(() => expect(connection.state).toBe('backup'));
    expect(connection.sendPacket(new Uint8Array([1]), { egress_port: 3n })).toBe(false);
  });
});
