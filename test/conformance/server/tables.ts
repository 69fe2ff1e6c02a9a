import { expect } from 'vitest';
import { UpdateType } from '../../../wire/p4runtime/messages.ts';
import type { Checks } from '../rows.ts';
import {
  bytes,
  CONST,
  CONST_DEFAULT,
  call,
  ELSEWHERE,
  type EntryInput,
  EXACT,
  entity,
  exact,
  exactEntry,
  FORWARD,
  forward,
  GROUPS,
  HIT,
  INITIAL,
  KEYLESS,
  lpm,
  MEMBERS,
  MISS,
  ONE_SHOT,
  oneShot,
  optional,
  probe,
  range,
  route,
  SIGNED,
  SKIP,
  skip,
  TERNARY,
  ternary,
  ternaryEntry,
} from './program.ts';
import {
  ALREADY_EXISTS,
  INVALID_ARGUMENT,
  NOT_FOUND,
  OK,
  OUT_OF_RANGE,
  PERMISSION_DENIED,
  type ServerContext,
  UNIMPLEMENTED,
} from './target.ts';

/** Where the specification asks for either, at different places. */
const MALFORMED = [INVALID_ARGUMENT, OUT_OF_RANGE];

const insert = ({ client }: ServerContext, entry: EntryInput) => client.insert(entity(entry));
const modify = ({ client }: ServerContext, entry: EntryInput) => client.modify(entity(entry));
const remove = ({ client }: ServerContext, entry: EntryInput) => client.delete(entity(entry));
const list = async ({ client }: ServerContext, filter: EntryInput) =>
  (await client.list(entity(filter))).map(({ tableEntry }) => tableEntry!);

/** P4Runtime 1.5, sections "Bytestrings" and "TableEntry". */
export const TABLES: Checks<ServerContext> = {
  33: async (context) => {
    await context.start();
    expect(await insert(context, exactEntry({ match: [exact(1, 0, 0, 0, 0, 0, 5), exact(2, 0, 99)] }))).toBe(OK);
    expect(await insert(context, exactEntry({ match: [exact(1, 5), exact(2, 99)] }))).toBe(ALREADY_EXISTS);
    expect(await insert(context, exactEntry({ match: [exact(1, 5), exact(2, 1, 99)] }))).toBeOneOf(MALFORMED);
    expect(await insert(context, exactEntry({ match: [exact(1), exact(2, 99)] }))).toBeOneOf(MALFORMED);
  },

  34: async (context) => {
    await context.start();
    const padded = {
      actionId: FORWARD,
      params: [
        { paramId: 1, value: bytes(0, 0, 3) },
        { paramId: 2, value: bytes(0, 1, 0) },
      ],
    };
    await insert(context, exactEntry({ match: [exact(2, 0, 0), exact(1, 0, 0, 1, 0)], action: { action: padded } }));
    const [entry] = await list(context, { tableId: EXACT });
    expect(new Set(entry!.match)).toEqual(new Set([exact(1, 1, 0), exact(2, 0)]));
    expect(entry!.action!.action!.params).toEqual([
      { paramId: 1, value: bytes(3) },
      { paramId: 2, value: bytes(1, 0) },
    ]);
  },

  35: async (context) => {
    await context.start();
    const { client } = context;
    const write = (value: Uint8Array) =>
      client.modify({ registerEntry: { registerId: SIGNED, index: { index: 1n }, data: { bitstring: value } } });
    const read = async () => (await client.list({ registerEntry: { registerId: SIGNED, index: { index: 1n } } }))[0]!;
    for (const [sent, kept] of [
      [bytes(0xff), bytes(0xff)],
      [bytes(0xff, 0xff, 0x80), bytes(0x80)],
      [bytes(0, 0x7f), bytes(0x7f)],
      [bytes(0), bytes(0)],
    ] as const) {
      expect(await write(sent)).toBe(OK);
      expect((await read()).registerEntry!.data!.bitstring).toEqual(kept);
    }
    for (const value of [bytes(0, 0x80), bytes(0xff, 0x7f), bytes()]) expect(await write(value)).toBeOneOf(MALFORMED);
  },

  37: async (context) => {
    await context.start();
    const zero = bytes(0);
    expect(await insert(context, ternaryEntry([ternary(1, zero, zero)]))).toBe(INVALID_ARGUMENT);
    expect(await insert(context, ternaryEntry([range(2, zero, bytes(255, 255))]))).toBe(INVALID_ARGUMENT);
    expect(await insert(context, ternaryEntry([optional(3)]))).toBe(INVALID_ARGUMENT);
    const everything = { ...route(10, { actionProfileActions: [oneShot(1, 1)] }), match: [lpm(1, 0, 0)] };
    expect(await insert(context, everything)).toBe(INVALID_ARGUMENT);
    expect(await insert(context, ternaryEntry())).toBe(OK);
    expect((await list(context, { tableId: TERNARY }))[0]!.match).toEqual([exact(4, 1)]);
  },

  38: async (context) => {
    await context.start();
    const prefix = (prefixLen: number, ...value: number[]): EntryInput => ({
      ...route(10, { actionProfileActions: [oneShot(1, 1)] }),
      match: [lpm(1, prefixLen, ...value)],
    });
    const refused = [
      prefix(8, 10, 0, 0, 1),
      prefix(33, 10, 0, 0, 0),
      prefix(-1, 10, 0, 0, 0),
      ternaryEntry([ternary(1, bytes(3), bytes(1))]),
      ternaryEntry([range(2, bytes(5), bytes(4))]),
      ternaryEntry([], { match: [] }),
      ternaryEntry([exact(9, 1)]),
      ternaryEntry([exact(4, 1)]),
      ternaryEntry([exact(1, 1)]),
      ternaryEntry([{ fieldId: 1 }]),
      exactEntry({ match: [exact(1, 1)] }),
    ];
    for (const entry of refused) expect(await insert(context, entry)).toBe(INVALID_ARGUMENT);
    for (const tableId of [0x0200_7777, 0])
      expect(await insert(context, exactEntry({ tableId }))).toBeOneOf([INVALID_ARGUMENT, NOT_FOUND]);
    expect(await insert(context, ternaryEntry([range(2, bytes(5), bytes(5))]))).toBe(OK);
    expect(await insert(context, prefix(8, 10, 0, 0, 0))).toBe(OK);
  },

  39: async (context) => {
    const primary = await context.start();
    expect(await insert(context, ternaryEntry([], { priority: 0 }))).toBe(INVALID_ARGUMENT);
    expect(await insert(context, ternaryEntry([], { priority: -1 }))).toBe(INVALID_ARGUMENT);
    expect(await insert(context, exactEntry({ priority: 1 }))).toBe(INVALID_ARGUMENT);
    expect(await insert(context, ternaryEntry([], { priority: 1, action: forward(1) }))).toBe(OK);
    expect(await insert(context, ternaryEntry([optional(3, 7)], { priority: 3, action: forward(3) }))).toBe(OK);
    expect(
      await insert(context, ternaryEntry([range(2, bytes(1), bytes(9))], { priority: 2, action: forward(2) })),
    ).toBe(OK);
    const tagOf = async (flag: number, number: number) =>
      (await context.exchange(primary, probe({ part: 1, flag, number })))[0]!.tag;
    expect(await tagOf(7, 5)).toBe(3);
    expect(await tagOf(6, 5)).toBe(2);
    expect(await tagOf(6, 10)).toBe(1);
  },

  40: async (context) => {
    await context.start();
    expect(await insert(context, { tableId: KEYLESS, action: skip })).toBe(INVALID_ARGUMENT);
    expect(await insert(context, exactEntry({ isConst: true }))).toBe(INVALID_ARGUMENT);
  },

  41: async (context) => {
    const primary = await context.start();
    const base: EntryInput = { tableId: EXACT, isDefaultAction: true };
    expect(await insert(context, { ...base, action: skip })).toBe(INVALID_ARGUMENT);
    expect(await remove(context, base)).toBe(INVALID_ARGUMENT);
    expect(await modify(context, { ...base, match: [exact(1, 1)], action: skip })).toBe(INVALID_ARGUMENT);
    expect(await modify(context, { ...base, priority: 1, action: skip })).toBe(INVALID_ARGUMENT);
    expect(await modify(context, { ...base, action: { actionProfileGroupId: 1 } })).toBe(INVALID_ARGUMENT);
    expect(await modify(context, { tableId: CONST_DEFAULT, isDefaultAction: true, action: forward(1) })).toBe(
      PERMISSION_DENIED,
    );
    const written = { ...base, action: forward(3), metadata: bytes(1), controllerMetadata: 9n };
    expect(await modify(context, { ...written, counterData: { packetCount: 5n, byteCount: 6n } })).toBe(OK);
    expect(await list(context, base)).toMatchObject([written]);
    expect((await context.exchange(primary, probe({ label: 1 })))[0]!.tag).toBe(3);
    expect(await modify(context, base)).toBe(OK);
    expect(await list(context, { ...base, counterData: {} })).toMatchObject([
      {
        metadata: bytes(),
        controllerMetadata: 0n,
        action: { action: { actionId: SKIP } },
        counterData: { packetCount: 0n, byteCount: 0n },
      },
    ]);
    expect((await context.exchange(primary, probe({ label: 1 })))[0]!.tag).toBe(0);
    expect(await modify(context, { tableId: KEYLESS, isDefaultAction: true, action: forward(1) })).toBe(OK);
    expect((await context.exchange(primary, probe()))[0]!.tag).toBe(1);
  },

  42: async (context) => {
    await context.start();
    const action = (actionId: number, ...params: { paramId: number; value: Uint8Array }[]): EntryInput =>
      exactEntry({ action: { action: { actionId, params } } });
    const tag = { paramId: 1, value: bytes(1) };
    const sameTag = { paramId: 2, value: bytes(1) };
    const refused = [
      exactEntry({ action: undefined }),
      action(ELSEWHERE),
      action(0x0100_7777),
      action(FORWARD, tag),
      action(FORWARD, tag, sameTag, { paramId: 3, value: bytes(1) }),
      action(FORWARD, tag, sameTag, sameTag),
      action(SKIP, tag),
    ];
    for (const entry of refused) expect(await insert(context, entry)).toBe(INVALID_ARGUMENT);
    for (const value of [bytes(), bytes(1, 0, 0, 0, 0)])
      expect(await insert(context, action(FORWARD, { paramId: 1, value }, sameTag))).toBeOneOf(MALFORMED);
    expect(await insert(context, action(MISS))).toBe(PERMISSION_DENIED);
    expect(await modify(context, { tableId: EXACT, isDefaultAction: true, action: { action: call(HIT) } })).toBe(
      PERMISSION_DENIED,
    );
    expect(await insert(context, action(FORWARD, sameTag, tag))).toBe(OK);
  },

  43: async (context) => {
    await context.start();
    const member = { tableId: MEMBERS, match: [exact(1, 1)] };
    const group = { tableId: GROUPS, match: [exact(1, 1)] };
    const set = { actionProfileActionSet: { actionProfileActions: [oneShot(1, 1)] } };
    const refused: EntryInput[] = [
      exactEntry({ action: { actionProfileMemberId: 1 } }),
      exactEntry({ action: { actionProfileGroupId: 1 } }),
      exactEntry({ action: set }),
      { ...route(10, {}), action: skip },
      { ...member, action: skip },
      { ...member, action: { actionProfileGroupId: 1 } },
      { ...member, action: set },
    ];
    for (const entry of refused) expect(await insert(context, entry)).toBe(INVALID_ARGUMENT);
    // Manual programming of selectors is optional.
    expect(await insert(context, { ...member, action: { actionProfileMemberId: 7 } })).toBeOneOf([
      NOT_FOUND,
      UNIMPLEMENTED,
    ]);
    expect(await insert(context, { ...group, action: { actionProfileGroupId: 7 } })).toBeOneOf([
      NOT_FOUND,
      UNIMPLEMENTED,
    ]);
  },

  44: async (context) => {
    await context.start();
    const key = { tableId: CONST, match: [exact(1, 0xf2)] };
    expect(await insert(context, { tableId: CONST, match: [exact(1, 9)], action: skip })).toBe(PERMISSION_DENIED);
    expect(await modify(context, { ...key, action: forward(7) })).toBe(PERMISSION_DENIED);
    expect(await remove(context, key)).toBe(PERMISSION_DENIED);
    expect(await modify(context, { ...key, counterData: { packetCount: 5n } })).toBe(OK);
    expect(await modify(context, { tableId: CONST, isDefaultAction: true, action: forward(1) })).toBe(OK);
    expect(await list(context, { ...key, counterData: {} })).toMatchObject([
      { isConst: true, counterData: { packetCount: 5n }, action: { action: { actionId: FORWARD } } },
    ]);
    expect(await list(context, { tableId: CONST })).toHaveLength(2);
  },

  45: async (context) => {
    const primary = await context.start();
    const entry = (flag: number): EntryInput => ({
      tableId: INITIAL,
      match: [ternary(1, bytes(flag), bytes(0xff))],
    });
    const initial = await list(context, { tableId: INITIAL });
    expect(initial.map(({ match }) => match[0]!.ternary!.value[0]).sort()).toEqual([0xf1, 0xf2]);
    const priorityOf = (flag: number) => initial.find(({ match }) => match[0]!.ternary!.value[0] === flag)!.priority;
    for (const { priority, isConst } of initial) {
      expect(priority).toBeGreaterThan(0);
      expect(isConst).toBe(false);
    }
    const first = { ...entry(0xf1), priority: priorityOf(0xf1) };
    expect(await modify(context, { ...first, action: forward(5) })).toBe(OK);
    expect((await context.exchange(primary, probe({ flag: 0xf1 })))[0]!.tag).toBe(5);
    expect(await remove(context, { ...entry(0xf2), priority: priorityOf(0xf2) })).toBe(OK);
    expect(await insert(context, { ...entry(0xf3), priority: 9, action: forward(6) })).toBe(OK);
    expect((await context.exchange(primary, probe({ flag: 0xf3 })))[0]!.tag).toBe(6);
    // Const ones are in a table of their own here: p4c's JSON tells them apart by table only.
    expect(await remove(context, { tableId: CONST, match: [exact(1, 0xf1)] })).toBe(PERMISSION_DENIED);
  },

  46: async (context) => {
    await context.start();
    expect(await insert(context, ternaryEntry([], { counterData: {} }))).toBe(INVALID_ARGUMENT);
    expect(await insert(context, exactEntry({ meterConfig: {} }))).toBe(INVALID_ARGUMENT);
    expect(await insert(context, exactEntry({ meterCounterData: {} }))).toBe(INVALID_ARGUMENT);
    expect(await modify(context, { tableId: TERNARY, isDefaultAction: true, action: skip, counterData: {} })).toBe(
      INVALID_ARGUMENT,
    );
  },

  47: async (context) => {
    await context.start();
    const { client } = context;
    const second = exactEntry({ metadata: bytes(2), controllerMetadata: 2n }, 5, 7);
    await client.write(
      [
        exactEntry({ action: forward(1), metadata: bytes(1), controllerMetadata: 1n }),
        second,
        ternaryEntry([], { priority: 3 }),
        ternaryEntry([], { priority: 4 }),
      ].map((entry) => ({ type: UpdateType.INSERT, entity: entity(entry) })),
    );
    const count = async (filter: EntryInput) => (await list(context, filter)).length;
    // Two of the const table and two initial ones beside the four that were written; no default entries.
    expect(await count({})).toBe(8);
    expect(await count({ tableId: EXACT })).toBe(2);
    expect(await count({ tableId: EXACT, match: second.match })).toBe(1);
    expect(await count({ tableId: EXACT, match: [exact(1, 5), exact(2, 8)] })).toBe(0);
    expect(await count({ tableId: EXACT, action: { action: { actionId: FORWARD } } })).toBe(1);
    expect(await count({ tableId: EXACT, metadata: bytes(2) })).toBe(1);
    expect(await count({ tableId: EXACT, controllerMetadata: 1n })).toBe(1);
    expect(await count({ tableId: TERNARY, priority: 4 })).toBe(1);
    expect(await count({ tableId: TERNARY, match: [exact(4, 1)] })).toBe(2);
    expect(await count({ tableId: TERNARY, match: [exact(4, 1)], priority: 3 })).toBe(1);
    expect(await count({ tableId: EXACT, isDefaultAction: true })).toBe(1);
    expect(await client.readCode(entity({ tableId: 0x0200_7777 }))).toBeOneOf([INVALID_ARGUMENT, NOT_FOUND]);

    // A table that is too large for one message.
    const rows = Array.from({ length: 1500 }, (_, i) => ({
      type: UpdateType.INSERT,
      entity: entity({ tableId: 0x0200_0007, match: [exact(1, 1, i >> 8, i & 255)], action: skip }),
    }));
    expect((await client.write(rows)).code).toBe(OK);
    expect(await count({ tableId: 0x0200_0007 })).toBe(1500);
    expect(await count({ tableId: ONE_SHOT })).toBe(0);
  },
};
