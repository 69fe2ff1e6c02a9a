import { expect } from 'vitest';
import type { P4RoleConfig } from '../../../wire/p4runtime/role-messages.ts';
import { messageCodec, packAny } from '../../../wire/proto.ts';
import type { Checks } from '../rows.ts';
import {
  ALREADY_EXISTS,
  FAILED_PRECONDITION,
  INVALID_ARGUMENT,
  MAX_STREAMS,
  NOT_FOUND,
  OK,
  PERMISSION_DENIED,
  RESOURCE_EXHAUSTED,
  type ServerContext,
} from './target.ts';

export const roleConfig = messageCodec<P4RoleConfig>('stratum.P4RoleConfig');

const primary = { status: OK };
const backup = { status: ALREADY_EXISTS };
const nobody = { status: NOT_FOUND };

/** P4Runtime 1.5, section "Client Arbitration and Controller Replication". */
export const ARBITRATION: Checks<ServerContext> = {
  1: async ({ client, id }) => {
    const stream = client.stream();
    stream.arbitrate(id(1), { deviceId: 9999n });
    expect(await stream.end()).toBe(NOT_FOUND);
  },

  2: async ({ client, newClient, id, roleName }) => {
    const holder = await client.contend(id(5));
    const first = client.stream();
    first.arbitrate(id(5));
    expect(await first.end()).toBe(INVALID_ARGUMENT);
    const later = await client.contend(id(3));
    later.arbitrate(id(5));
    expect(await later.end()).toBe(INVALID_ARGUMENT);
    holder.arbitrate(id(5));
    expect(await holder.nextArbitration()).toEqual({ ...primary, electionId: id(5) });
    const elsewhere = newClient().stream();
    elsewhere.arbitrate(id(5), { role: { name: roleName('other') } });
    expect(await elsewhere.nextArbitration()).toEqual({ ...primary, electionId: id(5) });
  },

  3: async ({ client, id, roleName }) => {
    const unknown = { typeUrl: 'type.googleapis.com/x', value: new Uint8Array(0) };
    const malformed = { typeUrl: 'type.googleapis.com/stratum.P4RoleConfig', value: new Uint8Array([0xff]) };
    for (const config of [unknown, malformed]) {
      const role = { name: roleName('configured'), config };
      const stream = client.stream();
      stream.arbitrate(id(1), { role });
      expect(await stream.end()).toBe(INVALID_ARGUMENT);
      const later = await client.contend(id(2), { role: { name: role.name } });
      later.arbitrate(id(2), { role });
      expect(await later.end()).toBe(INVALID_ARGUMENT);
    }
  },

  4: async ({ newClient, id, isForeign }) => {
    const client = newClient();
    // A foreign server's limit is its own; few serve so many. Ids go down, so that nobody has to hear of a new primary.
    const tries = isForeign ? 500 : MAX_STREAMS + 1;
    const streams = await Promise.all(
      Array.from({ length: tries }, async (_, n) => {
        const stream = client.stream();
        stream.arbitrate(id(tries - n));
        return stream.nextArbitration().then(
          () => OK,
          () => stream.end(),
        );
      }),
    );
    expect(streams.filter((code) => code !== OK).length).toBeGreaterThan(0);
    expect(new Set(streams)).toEqual(new Set([OK, RESOURCE_EXHAUSTED]));
  },

  5: async ({ client, id, roleName }) => {
    const first = await client.contend(id(1));
    first.arbitrate(id(1), { deviceId: 9999n });
    expect(await first.end()).toBe(FAILED_PRECONDITION);
    const second = await client.contend(id(2));
    second.arbitrate(id(2), { role: { name: roleName('other') } });
    expect(await second.end()).toBe(FAILED_PRECONDITION);
  },

  6: async ({ client, id }) => {
    const other = await client.contend(id(3));
    const holder = await client.contend(id(8));
    expect(await other.nextArbitration()).toEqual({ ...backup, electionId: id(8) });
    await holder.close();
    expect(await other.nextArbitration()).toEqual({ ...nobody, electionId: id(8) });
    other.arbitrate(id(3));
    expect(await other.nextArbitration()).toEqual({ ...nobody, electionId: id(8) });
    other.arbitrate(id(7));
    expect(await other.nextArbitration()).toEqual({ ...nobody, electionId: id(8) });
    other.arbitrate(id(8));
    expect(await other.nextArbitration()).toEqual({ ...primary, electionId: id(8) });
  },

  7: async ({ client, id, roleName, isForeign }) => {
    // Of a role that is new nobody ever was primary.
    const more = isForeign ? { role: { name: roleName('fresh') } } : {};
    const observer = client.stream();
    observer.arbitrate(undefined, more);
    expect(await observer.nextArbitration()).toEqual({ ...nobody, electionId: undefined });
    const holder = client.stream();
    holder.arbitrate(id(4), more);
    expect(await holder.nextArbitration()).toEqual({ ...primary, electionId: id(4) });
    expect(await observer.nextArbitration()).toEqual({ ...backup, electionId: id(4) });
  },

  8: async ({ client, id, roleName, isForeign }) => {
    const more = isForeign ? { role: { name: roleName('zero') } } : {};
    const observers = [await client.contend(undefined, more), await client.contend(undefined, more)];
    const zero = client.stream();
    zero.arbitrate(0n, more);
    expect(await zero.nextArbitration()).toEqual({ ...primary, electionId: 0n });
    for (const observer of observers) expect(await observer.nextArbitration()).toEqual({ ...backup, electionId: 0n });
    const above = client.stream();
    above.arbitrate(id(1), more);
    expect(await above.nextArbitration()).toEqual({ ...primary, electionId: id(1) });
  },

  9: async ({ client, id }) => {
    const holder = await client.contend(id(8));
    const other = await client.contend(id(3));
    holder.arbitrate(id(7));
    expect(await holder.nextArbitration()).toEqual({ ...nobody, electionId: id(8) });
    expect(await other.nextArbitration()).toEqual({ ...nobody, electionId: id(8) });
  },

  10: async ({ client, id, roleName, isForeign }) => {
    const holder = await client.contend(id(8));
    const other = await client.contend(undefined);
    holder.arbitrate(id(8));
    expect(await holder.nextArbitration()).toEqual({ ...primary, electionId: id(8) });
    expect(await other.nextArbitration()).toEqual({ ...backup, electionId: id(8) });
    if (isForeign) return;
    // The role config of the later update is the one that counts.
    const name = roleName('pusher');
    const config = (canPushPipeline: boolean) => ({
      role: { name, config: packAny(roleConfig, { canPushPipeline }) },
    });
    const pusher = await client.contend(id(1), config(false));
    const push = async () =>
      (
        await client.set(0, undefined, {
          role: name,
          electionId: { high: id(1) >> 64n, low: id(1) & ((1n << 64n) - 1n) },
        })
      ).code;
    expect(await push()).toBe(PERMISSION_DENIED);
    pusher.arbitrate(id(1), config(true));
    await pusher.nextArbitration();
    expect(await push()).toBe(INVALID_ARGUMENT);
  },

  11: async (context) => {
    const { client, id } = context;
    const old = await context.start();
    await client.contend(id(200));
    expect(await old.nextArbitration()).toEqual({ ...backup, electionId: id(200) });
    expect((await client.write([])).code).toBe(PERMISSION_DENIED);
    client.electionId = id(200);
    expect((await client.write([])).code).toBe(OK);
  },

  12: async ({ client, newClient, id, roleName, otherDeviceId }) => {
    const name = roleName('elsewhere');
    const stream = await client.contend(id(50));
    await stream.close();
    const lower = newClient().stream();
    lower.arbitrate(id(5));
    expect(await lower.nextArbitration()).toEqual({ ...nobody, electionId: id(50) });
    if (otherDeviceId !== undefined) {
      const other = client.stream();
      other.arbitrate(id(5), { deviceId: otherDeviceId });
      expect(await other.nextArbitration()).toEqual({ ...primary, electionId: id(5) });
    }
    const role = client.stream();
    role.arbitrate(id(5), { role: { name } });
    expect(await role.nextArbitration()).toEqual({ ...primary, electionId: id(5) });
  },

  13: async ({ client, id }) => {
    const stream = client.stream();
    stream.arbitrate(id(1), { deviceId: 9999n });
    await stream.end();
    expect(stream.pending).toEqual([]);
  },
};
