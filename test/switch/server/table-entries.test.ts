import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { RpcCode } from '../../../switch/server/rpc-error.ts';
import type { FieldMatch, TableEntry } from '../../../wire/p4runtime/messages.ts';
import type { MessageInput } from '../../../wire/proto.ts';
import { Bench } from './client.ts';

const { INVALID_ARGUMENT, PERMISSION_DENIED, UNIMPLEMENTED } = RpcCode;

const EXACT = 0x02000001;
const TERNARY = 0x02000002;
const LPM = 0x02000003;
const CONST = 0x02000004;
const INITIAL = 0x02000005;
const KEYLESS = 0x02000006;
const IDLE = 0x02000007;
const FORWARD = 0x01000001;
const DROP = 0x01000002;
const MISS = 0x01000003;
const HIT = 0x01000004;
const ELSEWHERE = 0x01000005;

type EntryInput = MessageInput<TableEntry>;
type MatchInput = MessageInput<FieldMatch>;

const bytes = (...values: number[]): Uint8Array => new Uint8Array(values);
const exact = (fieldId: number, ...value: number[]): MatchInput => ({ fieldId, exact: { value: bytes(...value) } });
const ternary = (fieldId: number, value: Uint8Array, mask: Uint8Array): MatchInput => ({
  fieldId,
  ternary: { value, mask },
});
const range = (fieldId: number, low: Uint8Array, high: Uint8Array): MatchInput => ({ fieldId, range: { low, high } });
const drop: EntryInput['action'] = { action: { actionId: DROP } };
const forward = (port: number): EntryInput['action'] => ({
  action: {
    actionId: FORWARD,
    params: [
      { paramId: 1, value: bytes(port) },
      { paramId: 2, value: bytes(0, 7) },
    ],
  },
});

describe('table entries (B.4, B.5)', () => {
  let bench: Bench;
  beforeEach(async () => {
    bench = await Bench.startWithProgram();
  });
  afterEach(() => bench.stop());

  const insert = (tableEntry: EntryInput): Promise<number> => bench.client.insert({ tableEntry });
  const modify = (tableEntry: EntryInput): Promise<number> => bench.client.modify({ tableEntry });
  const remove = (tableEntry: EntryInput): Promise<number> => bench.client.delete({ tableEntry });
  const readCode = (tableEntry: EntryInput): Promise<number> => bench.client.readCode({ tableEntry });
  const read = async (tableEntry: EntryInput): Promise<TableEntry[]> => {
    const { code, message, entities } = await bench.client.read([{ tableEntry }]);
    if (code !== 0) throw new Error(message);
    return entities.map((entity) => entity.tableEntry!);
  };

  const exactEntry = (more: EntryInput = {}): EntryInput => ({
    tableId: EXACT,
    match: [exact(1, 5), exact(2, 6)],
    action: drop,
    ...more,
  });
  const ternaryEntry = (match: MatchInput[], more: EntryInput = {}): EntryInput => ({
    tableId: TERNARY,
    match: [exact(4, 1), ...match],
    priority: 10,
    action: drop,
    ...more,
  });

  it('row 33: strings of any length whose value fits; others are INVALID_ARGUMENT', async () => {
    expect(await insert(exactEntry({ match: [exact(1, 0, 0, 0, 0, 0, 5), exact(2, 0, 99)] }))).toBe(0);
    expect(await insert(exactEntry({ match: [exact(1, 5), exact(2, 99)] }))).toBe(RpcCode.ALREADY_EXISTS);
    expect(await insert(exactEntry({ match: [exact(1, 5), exact(2, 1, 99)] }))).toBe(INVALID_ARGUMENT);
    expect(await insert(exactEntry({ match: [exact(1), exact(2, 99)] }))).toBe(INVALID_ARGUMENT);
  });

  it('row 34: replies have the shortest strings, in the order of the P4Info', async () => {
    await insert(exactEntry({ match: [exact(2, 0, 0), exact(1, 0, 0, 1, 0)], action: forward(3) }));
    expect(await read({ tableId: EXACT })).toMatchObject([
      {
        match: [exact(1, 1, 0), exact(2, 0)],
        action: { action: { params: [{ value: bytes(3) }, { value: bytes(7) }] } },
      },
    ]);
  });

  it('row 37: fields that match everything must be left out', async () => {
    const zero = bytes(0);
    expect(await insert(ternaryEntry([ternary(1, zero, zero)]))).toBe(INVALID_ARGUMENT);
    expect(await insert(ternaryEntry([range(2, zero, bytes(255, 255))]))).toBe(INVALID_ARGUMENT);
    expect(await insert(ternaryEntry([{ fieldId: 3, optional: { value: bytes() } }]))).toBe(INVALID_ARGUMENT);
    expect(await insert({ tableId: LPM, match: [{ fieldId: 1, lpm: { value: zero, prefixLen: 0 } }] })).toBe(
      INVALID_ARGUMENT,
    );
    expect(await insert(ternaryEntry([]))).toBe(0);
  });

  it('row 38: each kind of match has its rules', async () => {
    const lpm = (prefixLen: number, ...value: number[]): EntryInput => ({
      tableId: LPM,
      match: [{ fieldId: 1, lpm: { value: bytes(...value), prefixLen } }],
    });
    expect(await insert(lpm(8, 10, 0, 0, 1))).toBe(INVALID_ARGUMENT);
    expect(await insert(lpm(33, 10, 0, 0, 0))).toBe(INVALID_ARGUMENT);
    expect(await insert(lpm(-1, 10, 0, 0, 0))).toBe(INVALID_ARGUMENT);
    expect(await insert(ternaryEntry([ternary(1, bytes(3), bytes(1))]))).toBe(INVALID_ARGUMENT);
    expect(await insert(ternaryEntry([range(2, bytes(5), bytes(4))]))).toBe(INVALID_ARGUMENT);
    expect(await insert(ternaryEntry([range(2, bytes(5), bytes(5))]))).toBe(0);
    expect(await insert({ ...ternaryEntry([]), match: [] })).toBe(INVALID_ARGUMENT);
    expect(await insert(ternaryEntry([exact(9, 1)]))).toBe(INVALID_ARGUMENT);
    expect(await insert(ternaryEntry([exact(4, 1)]))).toBe(INVALID_ARGUMENT);
    expect(await insert(ternaryEntry([exact(1, 1)]))).toBe(INVALID_ARGUMENT);
    expect(await insert(ternaryEntry([{ fieldId: 1 }]))).toBe(INVALID_ARGUMENT);
    expect(await insert(exactEntry({ tableId: 0x020000ff }))).toBe(INVALID_ARGUMENT);
    expect(await insert(exactEntry({ tableId: 0 }))).toBe(INVALID_ARGUMENT);
  });

  it('row 39: exactly the tables with ternary, range or optional keys have priorities', async () => {
    expect(await insert(ternaryEntry([], { priority: 0 }))).toBe(INVALID_ARGUMENT);
    expect(await insert(ternaryEntry([], { priority: -1 }))).toBe(INVALID_ARGUMENT);
    expect(await insert(exactEntry({ priority: 1 }))).toBe(INVALID_ARGUMENT);
    expect(await insert(ternaryEntry([], { priority: 1 }))).toBe(0);
    expect(await insert(ternaryEntry([], { priority: 2 }))).toBe(0);
    expect(
      [...bench.device.program!.tables.get('Ingress.ternary_table')!.entries()].map(({ priority }) => priority),
    ).toEqual([1, 2]);
  });

  it('row 40: no inserts into keyless tables, no is_const in writes', async () => {
    expect(await insert({ tableId: KEYLESS, action: drop })).toBe(INVALID_ARGUMENT);
    expect(await insert(exactEntry({ isConst: true }))).toBe(INVALID_ARGUMENT);
  });

  it('row 29: deletes look at the key only', async () => {
    await insert(exactEntry());
    const nonsense: EntryInput = {
      action: { action: { actionId: 1 } },
      counterData: { byteCount: -1n },
      meterConfig: {},
      idleTimeoutNs: 5n,
      metadata: bytes(1),
    };
    expect(await remove(exactEntry(nonsense))).toBe(0);
    expect(await read({ tableId: EXACT })).toEqual([]);
  });

  it('row 41: the default entry', async () => {
    const base: EntryInput = { tableId: EXACT, isDefaultAction: true };
    expect(await insert({ ...base, action: drop })).toBe(INVALID_ARGUMENT);
    expect(await remove(base)).toBe(INVALID_ARGUMENT);
    expect(await modify({ ...base, match: [exact(1, 1)], action: drop })).toBe(INVALID_ARGUMENT);
    expect(await modify({ ...base, priority: 1, action: drop })).toBe(INVALID_ARGUMENT);
    expect(await modify({ ...base, action: { actionProfileGroupId: 1 } })).toBe(INVALID_ARGUMENT);
    expect(await modify({ tableId: LPM, isDefaultAction: true, action: drop })).toBe(PERMISSION_DENIED);
    expect(await modify({ ...base, action: forward(3), metadata: bytes(1), controllerMetadata: 9n })).toBe(0);
    expect(await read(base)).toMatchObject([
      { isDefaultAction: true, metadata: bytes(1), controllerMetadata: 9n, action: { action: { actionId: FORWARD } } },
    ]);
    expect(await modify(base)).toBe(0);
    expect(await read(base)).toMatchObject([
      { metadata: bytes(), controllerMetadata: 0n, action: { action: { actionId: DROP } } },
    ]);
    expect(await modify({ tableId: KEYLESS, isDefaultAction: true, action: forward(1) })).toBe(0);
  });

  it('row 42: actions of the table, in their scope, with exactly their parameters', async () => {
    const action = (actionId: number, ...params: { paramId: number; value: Uint8Array }[]): EntryInput =>
      exactEntry({ action: { action: { actionId, params } } });
    expect(await insert(exactEntry({ action: undefined }))).toBe(INVALID_ARGUMENT);
    expect(await insert(action(ELSEWHERE))).toBe(INVALID_ARGUMENT);
    expect(await insert(action(MISS))).toBe(PERMISSION_DENIED);
    expect(await modify({ tableId: EXACT, isDefaultAction: true, action: { action: { actionId: HIT } } })).toBe(
      PERMISSION_DENIED,
    );
    const port = { paramId: 1, value: bytes(1) };
    const tag = { paramId: 2, value: bytes(1) };
    expect(await insert(action(FORWARD, port))).toBe(INVALID_ARGUMENT);
    expect(await insert(action(FORWARD, port, tag, { paramId: 3, value: bytes(1) }))).toBe(INVALID_ARGUMENT);
    expect(await insert(action(FORWARD, port, tag, tag))).toBe(INVALID_ARGUMENT);
    expect(await insert(action(FORWARD, { paramId: 1, value: bytes(2, 0) }, tag))).toBe(INVALID_ARGUMENT);
    expect(await insert(action(FORWARD, { paramId: 1, value: bytes() }, tag))).toBe(INVALID_ARGUMENT);
    expect(await insert(action(DROP, port))).toBe(INVALID_ARGUMENT);
    expect(await insert(action(FORWARD, tag, port))).toBe(0);
  });

  it('row 43: the action oneof goes by the implementation of the table', async () => {
    expect(await insert(exactEntry({ action: { actionProfileMemberId: 1 } }))).toBe(INVALID_ARGUMENT);
    expect(await insert(exactEntry({ action: { actionProfileActionSet: {} } }))).toBe(INVALID_ARGUMENT);
    expect(await insert({ tableId: LPM, action: drop })).toBe(INVALID_ARGUMENT);
    expect(await insert({ tableId: LPM, action: { actionProfileGroupId: 1 } })).toBe(UNIMPLEMENTED);
  });

  it('row 44: a const table changes only in its direct resources', async () => {
    const key = { tableId: CONST, match: [exact(1, 1)] };
    expect(await insert({ tableId: CONST, match: [exact(1, 9)], action: drop })).toBe(PERMISSION_DENIED);
    expect(await modify({ ...key, action: forward(7) })).toBe(PERMISSION_DENIED);
    expect(await remove(key)).toBe(PERMISSION_DENIED);
    expect(await modify({ ...key, counterData: { packetCount: 5n } })).toBe(0);
    expect(await modify({ tableId: CONST, isDefaultAction: true, action: forward(1) })).toBe(0);
    expect(await read({ ...key, counterData: {} })).toMatchObject([
      { isConst: true, counterData: { packetCount: 5n }, action: { action: { actionId: FORWARD } } },
    ]);
  });

  it('row 45: of initial entries only const ones are fixed', async () => {
    const fixed: EntryInput = { tableId: INITIAL, match: [{ fieldId: 1, optional: { value: bytes(1) } }], priority: 2 };
    const free: EntryInput = { tableId: INITIAL, priority: 1 };
    expect(await read({ tableId: INITIAL })).toMatchObject([
      { match: fixed.match, priority: 2, isConst: true },
      { match: [], priority: 1, isConst: false },
    ]);
    expect(await modify({ ...fixed, action: drop })).toBe(PERMISSION_DENIED);
    expect(await remove(fixed)).toBe(PERMISSION_DENIED);
    expect(await modify({ ...free, action: forward(1) })).toBe(0);
    expect(await remove(free)).toBe(0);
    expect(await insert({ ...fixed, priority: 5, action: drop })).toBe(0);
  });

  it('row 46: direct resources that a table does not have are INVALID_ARGUMENT', async () => {
    expect(await insert(ternaryEntry([], { counterData: {} }))).toBe(INVALID_ARGUMENT);
    expect(await insert(exactEntry({ meterConfig: {} }))).toBe(INVALID_ARGUMENT);
    expect(await insert(exactEntry({ meterCounterData: {} }))).toBe(INVALID_ARGUMENT);
    expect(await readCode({ tableId: TERNARY, counterData: {} })).toBe(INVALID_ARGUMENT);
  });

  it('row 47: wildcard reads and their filters', async () => {
    await insert(exactEntry({ action: forward(1), metadata: bytes(1), controllerMetadata: 1n }));
    await insert(exactEntry({ match: [exact(1, 5), exact(2, 7)], metadata: bytes(2), controllerMetadata: 2n }));
    await insert(ternaryEntry([], { priority: 3 }));
    await insert(ternaryEntry([], { priority: 4 }));
    const count = async (filter: EntryInput): Promise<number> => (await read(filter)).length;
    // Two of the const table and two initial ones.
    expect(await count({})).toBe(8);
    expect(await count({ tableId: EXACT })).toBe(2);
    expect(await count({ tableId: EXACT, match: [exact(1, 5), exact(2, 7)] })).toBe(1);
    expect(await count({ tableId: EXACT, match: [exact(1, 5), exact(2, 8)] })).toBe(0);
    expect(await count({ tableId: EXACT, action: { action: { actionId: FORWARD } } })).toBe(1);
    expect(await count({ tableId: EXACT, metadata: bytes(2) })).toBe(1);
    expect(await count({ tableId: EXACT, controllerMetadata: 1n })).toBe(1);
    expect(await count({ tableId: TERNARY, priority: 4 })).toBe(1);
    expect(await count({ tableId: TERNARY, match: [exact(4, 1)] })).toBe(2);
    expect(await count({ tableId: TERNARY, match: [exact(4, 1)], priority: 3 })).toBe(1);
    expect(await count({ tableId: EXACT, isDefaultAction: true })).toBe(1);
    expect(await readCode({ priority: 4 })).toBe(INVALID_ARGUMENT);
    expect(await readCode({ isDefaultAction: true })).toBe(INVALID_ARGUMENT);
    expect(await readCode({ tableId: EXACT, match: [exact(1, 5)] })).toBe(INVALID_ARGUMENT);
    expect(await readCode({ tableId: EXACT, action: { action: { actionId: ELSEWHERE } } })).toBe(INVALID_ARGUMENT);
    expect(await readCode({ tableId: 0x020000ff })).toBe(INVALID_ARGUMENT);
  });

  it('row 49, row 50: counters are read only if asked for, and kept by a modify that does not set them', async () => {
    await insert(exactEntry({ counterData: { packetCount: 3n, byteCount: 4n } }));
    expect((await read({ tableId: EXACT }))[0]!.counterData).toBeUndefined();
    expect(await modify(exactEntry({ action: forward(2) }))).toBe(0);
    expect((await read({ tableId: EXACT, counterData: {} }))[0]).toMatchObject({
      counterData: { packetCount: 3n, byteCount: 4n },
      action: { action: { actionId: FORWARD } },
    });
    expect(await modify(exactEntry({ counterData: { packetCount: 9n } }))).toBe(0);
    expect((await read({ counterData: {} })).find(({ tableId }) => tableId === EXACT)!.counterData).toEqual({
      packetCount: 9n,
      byteCount: 0n,
    });
    expect(await modify(exactEntry({ action: undefined }))).toBe(0);
    expect((await read({ tableId: EXACT }))[0]!.action).toMatchObject({ action: { actionId: DROP } });
    expect(await modify(exactEntry({ counterData: { packetCount: -9n } }))).toBe(INVALID_ARGUMENT);
  });

  it('row 51: no time_since_last_hit in writes, no idle timeout where the table or the switch has none', async () => {
    expect(await insert(exactEntry({ timeSinceLastHit: {} }))).toBe(INVALID_ARGUMENT);
    expect(await insert(exactEntry({ idleTimeoutNs: 5n }))).toBe(INVALID_ARGUMENT);
    expect(await modify({ tableId: EXACT, isDefaultAction: true, idleTimeoutNs: 5n })).toBe(INVALID_ARGUMENT);
    const idle: EntryInput = { tableId: IDLE, match: [exact(1, 1)], action: drop };
    expect(await insert({ ...idle, timeSinceLastHit: {} })).toBe(INVALID_ARGUMENT);
    expect(await insert({ ...idle, idleTimeoutNs: 5n })).toBe(UNIMPLEMENTED);
    expect(await readCode({ tableId: IDLE, timeSinceLastHit: {} })).toBe(UNIMPLEMENTED);
    expect(await insert(idle)).toBe(0);
  });

  it('row 52: metadata and controller_metadata come back', async () => {
    await insert(exactEntry({ metadata: bytes(0, 1, 0), controllerMetadata: 2n ** 64n - 1n }));
    expect(await read({ tableId: EXACT })).toMatchObject([
      { metadata: bytes(0, 1, 0), controllerMetadata: 2n ** 64n - 1n },
    ]);
    await modify(exactEntry({ metadata: bytes(2) }));
    expect(await read({ tableId: EXACT })).toMatchObject([{ metadata: bytes(2), controllerMetadata: 0n }]);
  });

  it('reads of many entries come in several responses, from one state', async () => {
    const updates = Array.from({ length: 1500 }, (_, i) => ({
      type: 1,
      entity: { tableEntry: { tableId: IDLE, match: [exact(1, 1, i >> 8, i & 255)], action: drop } },
    }));
    expect((await bench.client.write(updates)).code).toBe(0);
    const { entities, responses } = await bench.client.read([{ tableEntry: { tableId: IDLE } }]);
    expect(entities).toHaveLength(1500);
    expect(responses).toBeGreaterThan(1);
  });

  describe('action profiles (B.7)', () => {
    const member = (port: number, weight: number) => ({ action: forward(port)!.action, weight });
    const route = (octet: number, ...members: ReturnType<typeof member>[]): EntryInput => ({
      tableId: LPM,
      match: [{ fieldId: 1, lpm: { value: bytes(octet, 0, 0, 0), prefixLen: 8 } }],
      action: { actionProfileActionSet: { actionProfileActions: members } },
    });

    it('row 57: one-shot sets are read back verbatim', async () => {
      const set = route(10, member(1, 2), member(1, 2), member(2, 1));
      expect(await insert(set)).toBe(0);
      const [entry] = await read({ tableId: LPM });
      expect(entry!.action!.actionProfileActionSet!.actionProfileActions.map(({ weight }) => weight)).toEqual([
        2, 2, 1,
      ]);
      expect([...bench.device.program!.tables.get('Ingress.lpm_table')!.entries()][0]!.action).toEqual({
        selector: [
          { action: 'Ingress.forward', params: [1n, 7n], weight: 2 },
          { action: 'Ingress.forward', params: [1n, 7n], weight: 2 },
          { action: 'Ingress.forward', params: [2n, 7n], weight: 1 },
        ],
      });
      expect(await modify(route(10, member(3, 1)))).toBe(0);
      expect(await remove(route(10))).toBe(0);
    });

    it('row 56: weights below 1, sets above the largest group, more than the profile holds, watch ports', async () => {
      expect(await insert(route(10, member(1, 0)))).toBe(INVALID_ARGUMENT);
      expect(await insert(route(10, member(1, -1)))).toBe(INVALID_ARGUMENT);
      expect(await insert(route(10, member(1, 4), member(2, 3)))).toBe(INVALID_ARGUMENT);
      expect(await insert(route(10, { weight: 1, action: undefined }))).toBe(INVALID_ARGUMENT);
      expect(await insert(route(10))).toBe(UNIMPLEMENTED);
      expect(await insert(route(10, { ...member(1, 1), watchPort: bytes(1) } as ReturnType<typeof member>))).toBe(
        UNIMPLEMENTED,
      );
      expect(await insert(route(10, member(1, 6)))).toBe(0);
      expect(await insert(route(11, member(1, 5)))).toBe(RpcCode.RESOURCE_EXHAUSTED);
      expect(await insert(route(11, member(1, 4)))).toBe(0);
      expect(await modify(route(11, member(1, 5)))).toBe(RpcCode.RESOURCE_EXHAUSTED);
      expect(await modify(route(10, member(1, 1)))).toBe(0);
      expect(await modify(route(11, member(1, 5)))).toBe(0);
      expect(await remove(route(11))).toBe(0);
      expect(await insert(route(12, member(1, 6)))).toBe(0);
    });

    it('row 58: selection modes and size semantics other than the own ones are UNIMPLEMENTED', async () => {
      const set = (more: object): EntryInput => ({
        ...route(10),
        action: { actionProfileActionSet: { actionProfileActions: [member(1, 1)], ...more } },
      });
      expect(await insert(set({ actionSelectionMode: 2 }))).toBe(UNIMPLEMENTED);
      expect(await insert(set({ sizeSemantics: 2 }))).toBe(UNIMPLEMENTED);
      expect(await insert(set({ actionSelectionMode: 1, sizeSemantics: 1 }))).toBe(0);
      expect((await read({ tableId: LPM }))[0]!.action!.actionProfileActionSet).toMatchObject({
        actionSelectionMode: 1,
        sizeSemantics: 1,
      });
    });
  });
});
