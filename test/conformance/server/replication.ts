import { expect } from 'vitest';
import type { CloneSessionEntry, MulticastGroupEntry, Replica } from '../../../wire/p4runtime/messages.ts';
import type { MessageInput } from '../../../wire/proto.ts';
import type { Checks } from '../rows.ts';
import { bytes, CPU_PORT, type EntityInput, PROBE_BYTES, packetOut, probe } from './program.ts';
import { ALREADY_EXISTS, INVALID_ARGUMENT, NOT_FOUND, OK, type ServerContext, UNIMPLEMENTED } from './target.ts';

const group = (
  multicastGroupId: number,
  replicas: MessageInput<Replica>[] = [],
  more: MessageInput<MulticastGroupEntry> = {},
): EntityInput => ({
  packetReplicationEngineEntry: { multicastGroupEntry: { multicastGroupId, replicas, ...more } },
});
const session = (sessionId: number, more: MessageInput<CloneSessionEntry> = {}): EntityInput => ({
  packetReplicationEngineEntry: {
    cloneSessionEntry: { sessionId, replicas: [{ port: bytes(3), instance: 1 }], ...more },
  },
});
const replica = (port: number, instance = 0): MessageInput<Replica> => ({
  port: bytes(port >> 8, port & 255),
  instance,
});
const toCpu = (instance: number): MessageInput<Replica> => replica(CPU_PORT, instance);

const read = async ({ client }: ServerContext, entry: EntityInput['packetReplicationEngineEntry']) =>
  (await client.list({ packetReplicationEngineEntry: entry })).map((each) => each.packetReplicationEngineEntry!);

/** P4Runtime 1.5, section "PacketReplicationEngineEntry". */
export const REPLICATION: Checks<ServerContext> = {
  65: async (context) => {
    await context.start();
    const { client } = context;
    expect(await client.insert(group(0))).toBe(INVALID_ARGUMENT);
    expect(await client.insert(group(1, [replica(1, 65536)]))).toBe(INVALID_ARGUMENT);
    expect(await client.insert(group(1, [replica(1, 65535), replica(1, 0)]))).toBe(OK);
    expect(await client.insert(group(1))).toBe(ALREADY_EXISTS);
    expect(await client.modify(group(2))).toBe(NOT_FOUND);
    expect(await client.delete(group(2))).toBe(NOT_FOUND);
    expect(await client.delete(group(1))).toBe(OK);
  },

  66: async (context) => {
    await context.start();
    const { client } = context;
    expect(await client.insert(group(1, [replica(1), replica(1)]))).toBe(INVALID_ARGUMENT);
    const backup = (port: number, instance: number) => ({
      ...replica(1),
      backupReplicas: [{ port: bytes(port), instance }],
    });
    expect(await client.insert(group(1, [backup(1, 9)]))).toBe(INVALID_ARGUMENT);
    expect(await client.insert(group(1, [backup(2, 9), replica(2, 9)]))).toBe(INVALID_ARGUMENT);
    expect(await client.insert(group(1, [replica(1), { egressPort: 1 }]))).toBe(INVALID_ARGUMENT);
  },

  67: async (context) => {
    await context.start();
    const { client } = context;
    const backed = [{ ...replica(1, 1), backupReplicas: [{ port: bytes(0, 2), instance: 7 }] }];
    const code = await client.insert(group(1, backed));
    expect(code).toBeOneOf([OK, UNIMPLEMENTED]);
    if (code === OK) {
      expect(await read(context, { multicastGroupEntry: {} })).toMatchObject([
        { multicastGroupEntry: { replicas: [{ backupReplicas: [{ port: bytes(2), instance: 7 }] }] } },
      ]);
      expect(await client.delete(group(1))).toBe(OK);
    }
    expect(await client.insert(group(1, [replica(5, 1), replica(3, 2)], { metadata: bytes(9, 9) }))).toBe(OK);
    expect(await read(context, { multicastGroupEntry: {} })).toMatchObject([
      {
        multicastGroupEntry: {
          multicastGroupId: 1,
          metadata: bytes(9, 9),
          replicas: [
            { port: bytes(5), instance: 1 },
            { port: bytes(3), instance: 2 },
          ],
        },
      },
    ]);
  },

  68: async (context) => {
    await context.start();
    expect(await context.client.insert(group(1, [{ egressPort: 4, instance: 1 }, replica(5)]))).toBe(OK);
    const [entry] = await read(context, { multicastGroupEntry: { multicastGroupId: 1 } });
    const [first, second] = entry!.multicastGroupEntry!.replicas;
    expect([first!.egressPort, first!.port, second!.egressPort, second!.port]).toEqual([
      4,
      undefined,
      undefined,
      bytes(5),
    ]);
  },

  69: async (context) => {
    const primary = await context.start();
    const { client } = context;
    const payload = probe();
    expect(await client.insert(group(7, [toCpu(3), toCpu(4)]))).toBe(OK);
    // The unicast port would bring one copy with the instance 0.
    const copies = await context.exchange(primary, payload, { multicastGroup: 7 }, 2);
    expect(copies.map(({ egressPort, instance }) => [egressPort, instance]).sort()).toEqual([
      [CPU_PORT, 3],
      [CPU_PORT, 4],
    ]);
    for (const copy of copies) expect(copy.payload).toEqual(payload);
    expect(await client.modify(group(7, [toCpu(5)]))).toBe(OK);
    expect((await context.exchange(primary, payload, { multicastGroup: 7 }))[0]!.instance).toBe(5);
    // Groups that nobody knows, or knows no more, drop: the next packet that comes is the one that was sent last.
    expect(await client.delete(group(7))).toBe(OK);
    for (const multicastGroup of [7, 8]) {
      const [next] = await dropThen(context, primary, payload, multicastGroup);
      expect(next!.instance).toBe(0);
    }
    expect(primary.pending).toEqual([]);
  },

  70: async (context) => {
    const primary = await context.start();
    const { client } = context;
    expect(await client.insert(session(0))).toBe(INVALID_ARGUMENT);
    expect(await client.insert(session(1, { classOfService: 100_000 }))).toBe(INVALID_ARGUMENT);
    const cut = { replicas: [toCpu(9)], packetLengthBytes: 20 };
    expect(await client.insert(session(1, cut))).toBe(OK);
    expect(await client.insert(session(1, cut))).toBe(ALREADY_EXISTS);
    expect(await read(context, { cloneSessionEntry: {} })).toMatchObject([
      { cloneSessionEntry: { sessionId: 1, packetLengthBytes: 20 } },
    ]);
    const packets = await context.exchange(primary, probe({}, 45), { cloneSession: 1 }, 2);
    const clone = packets.find(({ instance }) => instance === 9)!;
    const original = packets.find(({ instance }) => instance === 0)!;
    // Cut as it came in: without the controller's header of 7 bytes that leaves 13, which are no whole probe.
    expect(clone.payload.length).toBeLessThan(PROBE_BYTES + 20);
    expect(original.payload).toEqual(probe({}, 45));
    expect(await client.modify(session(1, { replicas: [toCpu(8)] }))).toBe(OK);
    const whole = await context.exchange(primary, probe({}, 45), { cloneSession: 1 }, 2);
    expect(whole.map(({ instance }) => instance).sort()).toEqual([0, 8]);
    expect(await client.delete(session(1))).toBe(OK);
    expect(await read(context, { cloneSessionEntry: {} })).toEqual([]);
  },

  71: async (context) => {
    await context.start();
    const { client } = context;
    await client.insert(group(1, [replica(1)]));
    await client.insert(group(2, [replica(2)]));
    expect(await read(context, { multicastGroupEntry: { metadata: bytes(1) } })).toHaveLength(2);
    expect(
      await read(context, { multicastGroupEntry: { multicastGroupId: 2, replicas: [{ egressPort: 9 }] } }),
    ).toHaveLength(1);
    expect(await read(context, { multicastGroupEntry: { multicastGroupId: 3 } })).toHaveLength(0);
    expect(await read(context, { cloneSessionEntry: {} })).toHaveLength(0);
  },

  82: async (context) => {
    const primary = await context.start();
    const { client } = context;
    for (const port of [bytes(0), bytes(), bytes(1, 0, 0, 0, 0)])
      expect(await client.insert(group(1, [{ port }]))).toBe(INVALID_ARGUMENT);
    expect(await client.insert(group(1, [{}]))).toBe(INVALID_ARGUMENT);
    expect(await client.insert(group(1, [{ port: bytes(0xff, 0xff, 0xff, 0xfd), instance: 2 }]))).toBe(OK);
    const [copy] = await context.exchange(primary, probe(), { multicastGroup: 1 });
    expect(copy).toMatchObject({ egressPort: CPU_PORT, instance: 2 });
  },
};

async function dropThen(
  context: ServerContext,
  primary: Parameters<ServerContext['exchange']>[0],
  payload: Uint8Array,
  multicastGroup: number,
) {
  primary.send(packetOut(payload, { multicastGroup }));
  return context.exchange(primary, payload);
}
