import { expect } from 'vitest';
import { WriteRequestAtomicity as Atomicity, UpdateType } from '../../../wire/p4runtime/messages.ts';
import { uint128 } from '../../switch/server/client.ts';
import type { Checks } from '../rows.ts';
import {
  bytes,
  call,
  type EntityInput,
  EXACT,
  entity,
  exactEntry,
  FORWARD,
  forward,
  GROUP_SELECTOR,
  METERED,
  meteredEntry,
  OTHERS,
  SEEN,
  STATE,
} from './program.ts';
import {
  ABORTED,
  ALREADY_EXISTS,
  INVALID_ARGUMENT,
  NOT_FOUND,
  OK,
  RESOURCE_EXHAUSTED,
  type ServerContext,
  UNIMPLEMENTED,
  UNKNOWN,
} from './target.ts';

const insert = (label: number, tag = 1) => ({
  type: UpdateType.INSERT,
  entity: entity(exactEntry({ action: forward(tag) }, label)),
});
const remove = (label: number) => ({ type: UpdateType.DELETE, entity: entity(exactEntry({}, label)) });

/** P4Runtime 1.5, sections "Write RPC" and "Read RPC". */
export const BATCHES: Checks<ServerContext> = {
  20: async (context) => {
    await context.start();
    const { client } = context;
    expect(await client.insert({})).toBe(INVALID_ARGUMENT);
    expect((await client.write([{ type: UpdateType.INSERT }])).errors?.[0]?.canonicalCode).toBe(INVALID_ARGUMENT);
    expect(await client.readCode({})).toBe(INVALID_ARGUMENT);
  },

  21: async (context) => {
    await context.start();
    const outcome = await context.client.read([
      { counterEntry: { counterId: SEEN } },
      { counterEntry: { counterId: 0x1200_7777 } },
      { counterEntry: { counterId: OTHERS } },
      {},
    ]);
    expect(outcome.entities).toHaveLength(12);
    expect(outcome.code).toBe(UNKNOWN);
    const codes = outcome.errors!.map((error) => error.canonicalCode);
    expect([codes[0], codes[2], codes[3]]).toEqual([OK, OK, INVALID_ARGUMENT]);
    expect(codes[1]).toBeOneOf([INVALID_ARGUMENT, NOT_FOUND]);
  },

  26: async (context) => {
    await context.start();
    const { client, id } = context;
    const outcome = await client.write([insert(1), insert(1), remove(2), remove(1)]);
    expect(outcome.code).toBe(UNKNOWN);
    expect(outcome.errors!.map((error) => error.canonicalCode)).toEqual([OK, ALREADY_EXISTS, NOT_FOUND, OK]);
    expect((await client.write([insert(1)], { electionId: uint128(id(9)) })).errors).toBeUndefined();
    expect((await client.write([insert(1)])).code).toBe(OK);
    // Large enough that the trailer with an error for each would be larger than gRPC takes.
    const many = await client.write(Array.from({ length: 300 }, () => remove(99)));
    expect(many.code).toBe(UNKNOWN);
    expect(many.errors!.map((error) => error.canonicalCode)).toEqual(new Array(300).fill(NOT_FOUND));
  },

  27: async (context) => {
    await context.start();
    const { client } = context;
    const everything = async () =>
      (
        await client.read([
          { tableEntry: { counterData: {} } },
          { tableEntry: { tableId: METERED, meterConfig: {} } },
          { tableEntry: { tableId: EXACT, isDefaultAction: true } },
          { actionProfileMember: {} },
          { actionProfileGroup: {} },
          { counterEntry: {} },
          { registerEntry: {} },
          { valueSetEntry: {} },
          { digestEntry: {} },
          { packetReplicationEngineEntry: { multicastGroupEntry: {} } },
        ])
      ).entities;
    expect((await client.write([insert(1), insert(2)])).code).toBe(OK);
    expect(await client.insert(entity(meteredEntry()))).toBe(OK);
    expect((await client.write([], { atomicity: 7 })).code).toBeOneOf([INVALID_ARGUMENT, UNIMPLEMENTED]);

    // By default everything is tried.
    const partly = await client.write([insert(3), insert(1), remove(2)]);
    expect(partly.errors!.map((error) => error.canonicalCode)).toEqual([OK, ALREADY_EXISTS, OK]);
    const before = await everything();

    const update = (type: number, changed: EntityInput) => ({ type, entity: changed });
    const group = { multicastGroupEntry: { multicastGroupId: 5, replicas: [{ port: bytes(1) }] } };
    const changes = [
      insert(4),
      remove(1),
      update(
        UpdateType.MODIFY,
        entity(exactEntry({ action: forward(8), metadata: bytes(3), counterData: { packetCount: 3n } }, 3)),
      ),
      update(UpdateType.MODIFY, entity(meteredEntry({ meterConfig: { cir: 1n, cburst: 1n, pir: 2n, pburst: 2n } }))),
      update(UpdateType.MODIFY, entity({ tableId: EXACT, isDefaultAction: true, action: forward(9) })),
      update(UpdateType.MODIFY, { counterEntry: { counterId: SEEN, data: { packetCount: 5n } } }),
      update(UpdateType.MODIFY, { registerEntry: { registerId: STATE, data: { bitstring: bytes(5) } } }),
      update(UpdateType.INSERT, { packetReplicationEngineEntry: group }),
      update(UpdateType.INSERT, {
        actionProfileMember: { actionProfileId: GROUP_SELECTOR, memberId: 1, action: call(FORWARD, 1, 1) },
      }),
    ];
    for (const atomicity of [Atomicity.ROLLBACK_ON_ERROR, Atomicity.DATAPLANE_ATOMIC]) {
      const failed = await client.write([...changes, remove(77), insert(6)], { atomicity });
      if (failed.code === UNIMPLEMENTED) {
        expect(failed.errors ?? []).toEqual([]);
        expect(await everything()).toEqual(before);
        continue;
      }
      expect(failed.code).toBe(UNKNOWN);
      const codes = failed.errors!.map((error) => error.canonicalCode);
      expect(codes).toHaveLength(changes.length + 2);
      expect(codes[changes.length]).toBe(NOT_FOUND);
      for (const code of codes) expect(code).toBeOneOf([ABORTED, NOT_FOUND]);
      // Entries may come in another order.
      const sorted = (entities: unknown[]) => entities.map((each) => JSON.stringify(each, plain)).sort();
      expect(sorted(await everything())).toEqual(sorted(before));
    }
    const done = await client.write(changes, { atomicity: Atomicity.DATAPLANE_ATOMIC });
    expect(done.code).toBeOneOf([OK, UNIMPLEMENTED]);
    if (done.code === OK) expect(await everything()).not.toEqual(before);
  },

  28: async (context) => {
    await context.start();
    const { client } = context;
    const entry = (label: number) => entity(exactEntry({}, label));
    expect(await client.insert(entry(5))).toBe(OK);
    expect(await client.insert(entry(5))).toBe(ALREADY_EXISTS);
    expect(await client.modify(entry(6))).toBe(NOT_FOUND);
    expect(await client.delete(entry(6))).toBe(NOT_FOUND);
    expect(await client.writeOne(UpdateType.UNSPECIFIED, entry(6))).toBe(INVALID_ARGUMENT);
    expect(await client.writeOne(12, entry(6))).toBe(INVALID_ARGUMENT);
    for (let label = 10; label < 25; label++) expect(await client.insert(entry(label))).toBe(OK);
    expect(await client.insert(entry(25))).toBe(RESOURCE_EXHAUSTED);
    expect(await client.delete(entry(10))).toBe(OK);
    expect(await client.insert(entry(25))).toBe(OK);
  },

  29: async (context) => {
    await context.start();
    const { client } = context;
    await client.insert(entity(exactEntry()));
    const nonsense = exactEntry({
      action: { action: { actionId: 1 } },
      counterData: { byteCount: -1n },
      meterConfig: {},
      idleTimeoutNs: 5n,
      metadata: bytes(1),
    });
    expect(await client.delete(entity(nonsense))).toBe(OK);
    expect(await client.list({ tableEntry: { tableId: EXACT } })).toEqual([]);
  },
};

function plain(_key: string, value: unknown): unknown {
  return typeof value === 'bigint' ? String(value) : value;
}
