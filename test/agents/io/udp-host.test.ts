import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import type { FabricSocket } from '../../../agents/io/fabric-socket.ts';
import type { BatchedSocketOptions } from '../../../agents/io/linux/batched-socket.ts';
import { createUdpHost, type SocketKind, type UdpHost } from '../../../agents/io/udp-host.ts';
import { loadLibc } from '../../../base/linux/libc.ts';

const HERE = '127.0.0.1';

interface Way {
  readonly name: string;
  readonly sockets: SocketKind;
  readonly batching?: BatchedSocketOptions;
}

const dgram: Way = { name: 'dgram', sockets: 'dgram' };
const batched: Way[] = [
  { name: 'batched, one by one', sockets: 'batched', batching: { segmentation: false } },
  { name: 'batched, joined when sent', sockets: 'batched' },
  { name: 'batched, joined both ways', sockets: 'batched', batching: { merging: true } },
];
const whyNotBatched = await loadLibc().then(
  () => undefined,
  (error: Error) => error.message,
);

function hostOf({ sockets, batching }: Way): Promise<UdpHost> {
  return createUdpHost({ ip: HERE, mtuBytes: 9000, sockets, ...(batching === undefined ? {} : { batching }) });
}

async function open(host: UdpHost, port: number): Promise<FabricSocket> {
  const socket = host.openSocket(port);
  await socket.whenBound;
  return socket;
}

/** Resolves when `count` datagrams have come. */
function collect(socket: FabricSocket, count: number): Promise<Buffer[]> {
  const got: Buffer[] = [];
  return new Promise((resolve) => {
    socket.onDatagram = (payload) => {
      got.push(Buffer.from(payload));
      if (got.length === count) resolve(got);
    };
  });
}

function numbered(i: number, length: number): Buffer {
  const bytes = Buffer.alloc(length, i);
  if (length >= 2) bytes.writeUInt16BE(i);
  return bytes;
}

function digest(bytes: Buffer): string {
  return `${bytes.length} ${createHash('sha256').update(bytes).digest('hex')}`;
}

describe.each([dgram, ...batched])('UDP sockets: $name', (way) => {
  test.skipIf(way.sockets === 'batched' && whyNotBatched !== undefined)(
    `datagrams arrive with their source${way.sockets === 'batched' && whyNotBatched ? ` (skipped: ${whyNotBatched})` : ''}`,
    async () => {
      const host = await hostOf(way);
      const [receiver, sender] = [await open(host, 56_901), await open(host, 56_902)];
      const got = new Promise<string>((resolve) => {
        receiver.onDatagram = (payload, ip, port) => resolve(`${Buffer.from(payload).toString()} from ${ip}:${port}`);
      });
      sender.send(HERE, 56_901, Buffer.from('hello'));
      expect(await got).toBe('hello from 127.0.0.1:56902');
      receiver.close();
      receiver.close();
      sender.close();
      sender.send(HERE, 56_901, Buffer.from('nobody hears it'));
    },
  );

  const whenPossible = test.skipIf(way.sockets === 'batched' && whyNotBatched !== undefined);

  whenPossible('datagrams of all lengths, to two places, arrive whole and in order', async () => {
    const host = await hostOf(way);
    const [first, second, sender] = [await open(host, 56_904), await open(host, 56_905), await open(host, 56_906)];
    // Runs of one size, with shorter and longer ones between them, empty ones, and the largest that fits into the MTU.
    const lengths = [1400, 1400, 1400, 100, 1400, 0, 0, 8972, 8972, 8972, 8972, 8972, 8972, 8972, 8972, 1, 8300, 2];
    const sent = Array.from({ length: 20 }, (_, round) => lengths.map((length, i) => numbered(20 * round + i, length)));
    const toFirst = collect(first, 20 * lengths.length);
    const toSecond = collect(second, 20);
    for (const datagrams of sent) {
      for (const datagram of datagrams) sender.send(HERE, 56_904, datagram);
      sender.send(HERE, 56_905, datagrams[0]!);
      await new Promise(setImmediate);
    }
    expect((await toFirst).map(digest)).toEqual(sent.flat().map(digest));
    expect((await toSecond).map(digest)).toEqual(sent.map((datagrams) => digest(datagrams[0]!)));
    const { datagramsSent, sendsFailed } = sender.statistics!();
    expect({ datagramsSent, sendsFailed }).toEqual({ datagramsSent: 20 * (lengths.length + 1), sendsFailed: 0 });
    expect(first.statistics!()).toMatchObject({ datagramsReceived: 20 * lengths.length, receivesLost: 0 });
    for (const socket of [first, second, sender]) socket.close();
  });

  whenPossible('a callback may answer, and close its socket, in the middle of a batch', async () => {
    const host = await hostOf(way);
    const [server, client] = [await open(host, 56_907), await open(host, 56_908)];
    let taken = 0;
    server.onDatagram = (payload, ip, port) => {
      server.send(ip, port, payload);
      if (++taken === 3) server.close();
    };
    const answers = collect(client, way.sockets === 'batched' ? 3 : 1);
    for (let i = 0; i < 10; i++) client.send(HERE, 56_907, numbered(i, 50));
    // A socket of Node.js that is closed forgets what it has not sent yet.
    expect((await answers)[0]).toEqual(numbered(0, 50));
    expect(taken).toBe(3);
    client.close();
  });

  whenPossible('a port that is taken is reported', async () => {
    const host = await hostOf(way);
    const first = await open(host, 56_903);
    const error = expect.objectContaining({ code: 'ADDRESS_IN_USE' });
    await expect(open(host, 56_903)).rejects.toEqual(error);
    first.close();
    const next = await open(host, 56_903);
    next.close();
  });
});

test('an address that no interface has is refused', async () => {
  await expect(createUdpHost({ ip: '203.0.113.77', mtuBytes: 9000 })).rejects.toMatchObject({ code: 'INVALID_OPTION' });
});

test('sockets that cannot be had are an error only if they were asked for', async () => {
  const host = await createUdpHost({ ip: HERE, mtuBytes: 9000 });
  expect(host.sockets).toBe(whyNotBatched === undefined ? 'batched' : 'dgram');
  expect(host.waitUs === undefined).toBe(host.sockets === 'dgram');
});

test('a dgram socket on a taken port says so at every send', async () => {
  const host = await hostOf(dgram);
  const first = await open(host, 56_909);
  const second = host.openSocket(56_909);
  await expect(second.whenBound).rejects.toMatchObject({ code: 'ADDRESS_IN_USE' });
  expect(() => second.send(HERE, 1, new Uint8Array(1))).toThrow(expect.objectContaining({ code: 'ADDRESS_IN_USE' }));
  first.close();
  second.close();
});
