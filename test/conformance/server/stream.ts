import { expect } from 'vitest';
import { UpdateType } from '../../../wire/p4runtime/messages.ts';
import { packAny } from '../../../wire/proto.ts';
import type { Checks } from '../rows.ts';
import { roleConfig } from './arbitration.ts';
import {
  bytes,
  type EntityInput,
  EXACT,
  entity,
  exactEntry,
  forward,
  LEARNED,
  packetOut,
  probe,
  received,
} from './program.ts';
import { ALREADY_EXISTS, INVALID_ARGUMENT, NOT_FOUND, OK, PERMISSION_DENIED, type ServerContext } from './target.ts';

const MS = 1_000_000n;
const digest = (config: { maxTimeoutNs?: bigint; maxListSize?: number; ackTimeoutNs?: bigint }): EntityInput => ({
  digestEntry: { digestId: LEARNED, config },
});
const PACKET = probe();

/** What a digest message of the program says. */
function learnedOf(data: readonly { struct?: { members: { bitstring?: Uint8Array }[] } }[]): number[][] {
  return data.map(({ struct }) =>
    struct!.members.map(({ bitstring }) => bitstring!.reduce((value, byte) => value * 256 + byte, 0)),
  );
}

/** P4Runtime 1.5, sections "DigestEntry" and "P4Runtime Stream Messages". */
export const STREAM: Checks<ServerContext> = {
  72: async (context) => {
    const primary = await context.start();
    const backup = await context.newClient().contend(undefined);
    const { client } = context;
    const learn = async (address: number, small = 1) => {
      primary.send(packetOut(probe({ address, small }), { digest: true }));
      await primary.nextOf('packet');
    };
    const lists = () => primary.pending.filter((message) => message.digest !== undefined).length;
    // Not before it is enabled.
    await learn(1);
    await context.settle(primary, context.id(100));
    expect(lists()).toBe(0);
    expect(await client.modify(digest({}))).toBe(NOT_FOUND);
    expect(await client.delete(digest({}))).toBe(NOT_FOUND);
    const config = { maxTimeoutNs: 300n * MS, maxListSize: 3, ackTimeoutNs: 0n };
    expect(await client.insert(digest(config))).toBe(OK);
    expect(await client.insert(digest(config))).toBe(ALREADY_EXISTS);
    expect(await client.list({ digestEntry: {} })).toMatchObject([digest(config)]);

    // Three distinct messages make a list, duplicates do not count.
    for (const address of [1, 1, 2, 1]) primary.send(packetOut(probe({ address, small: 1 }), { digest: true }));
    primary.send(packetOut(probe({ address: 3, small: 1 }), { digest: true }));
    const full = await primary.nextOf('digest');
    expect(full.digestId).toBe(LEARNED);
    expect(learnedOf(full.data)).toEqual([
      [1, 1],
      [2, 1],
      [3, 1],
    ]);
    // Or one, when its time is over.
    primary.send(packetOut(probe({ address: 4 }), { digest: true }));
    await primary.nextOf('packet');
    await context.settle(primary, context.id(100));
    await context.pass(400_000);
    const late = await primary.nextOf('digest');
    expect(learnedOf(late.data)).toEqual([[4, 0]]);
    expect(late.listId).not.toBe(full.listId);
    expect(late.timestamp).toBeGreaterThan(0n);

    expect(await client.delete(digest({}))).toBe(OK);
    expect(await client.list({ digestEntry: {} })).toEqual([]);
    primary.send(packetOut(probe({ address: 5 }), { digest: true }));
    await primary.nextOf('packet');
    await context.pass(400_000);
    await context.settle(primary, context.id(100));
    expect(lists()).toBe(0);
    await context.settle(backup, undefined);
    expect(backup.pending.filter((message) => message.digest !== undefined)).toEqual([]);
  },

  73: async (context) => {
    const primary = await context.start();
    const { client } = context;
    const learn = (address: number) => primary.send(packetOut(probe({ address, small: 1 }), { digest: true }));
    const addresses = async () => {
      const list = await primary.nextOf('digest');
      return { listId: list.listId, addresses: learnedOf(list.data).map(([address]) => address) };
    };
    // At once, and again only when it was acknowledged or the time for that is over.
    expect(await client.insert(digest({ maxTimeoutNs: 0n, maxListSize: 0, ackTimeoutNs: 500n * MS }))).toBe(OK);
    learn(1);
    const first = await addresses();
    expect(first.addresses).toEqual([1]);
    learn(1);
    learn(2);
    expect((await addresses()).addresses).toEqual([2]);
    primary.send({ digestAck: { digestId: LEARNED, listId: first.listId } });
    await context.settle(primary, context.id(100));
    learn(1);
    learn(2);
    learn(3);
    expect((await addresses()).addresses).toEqual([1]);
    expect((await addresses()).addresses).toEqual([3]);
    await context.settle(primary, context.id(100));
    await context.pass(700_000);
    learn(2);
    expect((await addresses()).addresses).toEqual([2]);

    // Without an ack time-out nothing is remembered.
    expect(await client.modify(digest({ maxTimeoutNs: 10_000n * MS, maxListSize: 1, ackTimeoutNs: 0n }))).toBe(OK);
    learn(7);
    learn(7);
    expect((await addresses()).addresses).toEqual([7]);
    expect((await addresses()).addresses).toEqual([7]);
    // Without a limit the time alone makes a list.
    expect(await client.modify(digest({ maxTimeoutNs: 300n * MS, maxListSize: 0, ackTimeoutNs: 0n }))).toBe(OK);
    for (let address = 1; address <= 20; address++) learn(address);
    await context.settle(primary, context.id(100));
    await context.pass(400_000);
    expect((await addresses()).addresses).toEqual(Array.from({ length: 20 }, (_, i) => i + 1));
  },

  75: async (context) => {
    const primary = await context.start();
    const { metadata, payload } = packetOut(PACKET).packet;
    const wrong = [
      [],
      metadata!.slice(1),
      [...metadata!, metadata![0]!],
      [...metadata!.slice(1), { metadataId: 99, value: bytes(1) }],
      [...metadata!.slice(1), { metadataId: 1, value: bytes(1, 0, 0) }],
    ];
    for (const each of wrong) {
      primary.send({ packet: { payload, metadata: each } });
      await context.settle(primary, context.id(100));
      const kinds = primary.take().map((message) => message.error?.canonicalCode ?? 'no error');
      expect(kinds.length).toBeLessThanOrEqual(1);
      for (const kind of kinds) expect(kind).toBe(INVALID_ARGUMENT);
    }
    expect(await context.exchange(primary, PACKET)).toHaveLength(1);
    expect(primary.pending).toEqual([]);
  },

  76: async (context) => {
    const primary = await context.start();
    const backup = await context.newClient().contend(undefined);
    backup.send(packetOut(PACKET));
    await context.settle(backup, undefined);
    await context.settle(primary, context.id(100));
    expect(backup.pending.map((message) => message.error?.canonicalCode)).toBeOneOf([[], [PERMISSION_DENIED]]);
    expect(primary.pending).toEqual([]);
  },

  77: async (context) => {
    const primary = await context.start();
    primary.send({ digestAck: { digestId: 0x1777_7777, listId: 6n } });
    expect(await primary.nextError()).toMatchObject({
      canonicalCode: INVALID_ARGUMENT,
      digestListAck: {},
    });
  },

  78: async (context) => {
    expect((await context.beforePipeline()).stream.filter((message) => message.packet !== undefined)).toEqual([]);
    const primary = await context.start();
    const { client, id, roleName, isForeign } = context;
    const backup = await context.newClient().contend(undefined);
    expect(await context.exchange(primary, PACKET)).toMatchObject([{ payload: PACKET }]);
    await context.settle(backup, undefined);
    expect(backup.pending).toEqual([]);
    if (isForeign) return;
    // Roles get what passes their filter: here the packets with the tag 7.
    const role = (name: string, config: object) => ({
      role: { name: roleName(name), config: packAny(roleConfig, config) },
    });
    const filter = { metadataId: 4, value: bytes(0, 7) };
    const seven = await client.contend(id(1), role('seven', { receivesPacketIns: true, packetInFilter: filter }));
    const all = await client.contend(id(1), role('all', { receivesPacketIns: true }));
    const none = await client.contend(id(1), role('none', {}));
    await client.insert(entity(exactEntry({ action: forward(7) })));
    await client.insert(entity(exactEntry({ action: forward(8) }, 5, 7)));
    for (const small of [6, 7]) await context.exchange(primary, probe({ label: 5, small }));
    for (const [name, stream, tags] of [
      ['seven', seven, [7]],
      ['all', all, [7, 8]],
      ['none', none, []],
    ] as const) {
      await context.settle(stream, id(1), { role: { name: roleName(name) } });
      const got = stream.pending.flatMap(({ packet }) => (packet === undefined ? [] : [received(packet).tag]));
      expect(got).toEqual(tags);
    }
  },

  84: async (context) => {
    const primary = await context.start();
    const { client } = context;
    const payload = probe({ label: 5, small: 6 });
    await client.insert(entity(exactEntry({ action: forward(1) })));
    const writing = (async () => {
      for (let i = 0; i < 50; i++) await client.modify(entity(exactEntry({ action: forward((i % 2) + 1) })));
    })();
    const reading = (async () => {
      for (let i = 0; i < 50; i++) {
        const [entry] = await client.list(entity({ tableId: EXACT, counterData: {} }));
        const { packetCount, byteCount } = entry!.tableEntry!.counterData!;
        expect(byteCount).toBe(packetCount * BigInt(payload.length + 7));
        const [tag, sameTag] = entry!.tableEntry!.action!.action!.params;
        expect(tag!.value).toEqual(sameTag!.value);
      }
    })();
    for (let i = 0; i < 100; i++) {
      const [packet] = await context.exchange(primary, payload);
      expect(packet!.sameTag).toBe(packet!.tag);
      expect(packet!.tag).toBeOneOf([1, 2]);
    }
    await Promise.all([writing, reading]);
    const two = [1, 2].map((small) => ({
      type: UpdateType.INSERT,
      entity: entity(exactEntry({ action: forward(3) }, 9, small)),
    }));
    expect((await client.write(two)).code).toBe(OK);
  },
};
