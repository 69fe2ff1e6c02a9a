import { expect } from 'vitest';
import {
  SetForwardingPipelineConfigRequestAction as ConfigAction,
  GetForwardingPipelineConfigRequestResponseType as ResponseType,
  UpdateType,
} from '../../../wire/p4runtime/messages.ts';
import { parseP4InfoText } from '../../../wire/p4runtime/p4info-text.ts';
import { packAny } from '../../../wire/proto.ts';
import { uint128 } from '../../switch/server/client.ts';
import type { Checks } from '../rows.ts';
import { roleConfig } from './arbitration.ts';
import {
  bytes,
  CONFIG,
  call,
  EXACT,
  entity,
  exact,
  exactEntry,
  forward,
  p4InfoText,
  SEEN,
  SKIP,
  STATE,
  TERNARY,
  TRANSLATION_CONFIG,
  ternaryEntry,
} from './program.ts';
import {
  FAILED_PRECONDITION,
  INVALID_ARGUMENT,
  NOT_FOUND,
  OK,
  PERMISSION_DENIED,
  RESOURCE_EXHAUSTED,
  type ServerContext,
  UNIMPLEMENTED,
} from './target.ts';

const SETS = [ConfigAction.VERIFY, ConfigAction.VERIFY_AND_SAVE, ConfigAction.VERIFY_AND_COMMIT];
const BROKEN = { ...CONFIG, p4DeviceConfig: new TextEncoder().encode('{ broken') };

/** P4Runtime 1.5, sections on the forwarding pipeline config, Capabilities, ids and translated types. */
export const PIPELINE: Checks<ServerContext> = {
  18: async (context) => {
    const before = await context.beforePipeline();
    expect(before.strangerWriteCode).toBe(NOT_FOUND);
    expect(before.backupWriteCode).toBe(PERMISSION_DENIED);
    expect(before.writeCode).toBe(FAILED_PRECONDITION);
    await context.start();
    const { client, id, roleName } = context;
    for (const more of [{ deviceId: 9999n }, { role: roleName('nobody') }]) {
      expect((await client.write([], more)).code).toBe(NOT_FOUND);
      expect((await client.set(ConfigAction.VERIFY, CONFIG, more)).code).toBe(NOT_FOUND);
    }
    for (const electionId of [undefined, uint128(id(99)), uint128(id(101))]) {
      expect((await client.write([], { electionId })).code).toBe(PERMISSION_DENIED);
      expect((await client.set(ConfigAction.VERIFY, CONFIG, { electionId })).code).toBe(PERMISSION_DENIED);
    }
  },

  19: async (context) => {
    expect((await context.beforePipeline()).readCode).toBe(FAILED_PRECONDITION);
    const primary = await context.start();
    const { client, id, roleName, isForeign } = context;
    expect((await client.read([], { deviceId: 9999n })).code).toBe(NOT_FOUND);
    expect(await client.insert(entity(exactEntry()))).toBe(OK);
    expect(await client.insert(entity(ternaryEntry()))).toBe(OK);
    await primary.close();
    expect((await context.newClient().read([{ tableEntry: { tableId: EXACT } }])).entities).toHaveLength(1);
    if (isForeign) return;
    const name = roleName('ternary only');
    await client.contend(id(1), {
      role: { name, config: packAny(roleConfig, { sharedP4Ids: [TERNARY, SEEN] }) },
    });
    const seen = await client.list({ tableEntry: {} }, { role: name });
    expect(seen.map(({ tableEntry }) => tableEntry!.tableId)).toEqual([TERNARY]);
    expect(await client.list({ tableEntry: { tableId: EXACT } }, { role: name })).toEqual([]);
    expect(await client.list({ counterEntry: {} }, { role: name })).toHaveLength(8);
    const as = { role: name, electionId: uint128(id(1)) };
    expect(await client.writeOne(UpdateType.DELETE, entity(exactEntry()), as)).toBe(PERMISSION_DENIED);
    expect(await client.writeOne(UpdateType.DELETE, entity(ternaryEntry()), as)).toBe(OK);
  },

  22: async (context) => {
    expect((await context.beforePipeline()).get).toEqual({ code: OK, config: undefined });
  },

  23: async (context) => {
    await context.start();
    const { client } = context;
    for (const action of SETS) {
      expect((await client.set(action)).code).toBe(INVALID_ARGUMENT);
      expect((await client.set(action, BROKEN)).code).toBe(INVALID_ARGUMENT);
    }
    expect((await client.set(ConfigAction.COMMIT)).code).toBe(NOT_FOUND);
    expect((await client.set(ConfigAction.COMMIT, CONFIG)).code).toBe(INVALID_ARGUMENT);
    expect((await client.set(ConfigAction.RECONCILE_AND_COMMIT)).code).toBeOneOf([INVALID_ARGUMENT, UNIMPLEMENTED]);
    expect((await client.set(ConfigAction.UNSPECIFIED, CONFIG)).code).toBe(INVALID_ARGUMENT);
    expect((await client.set(99, CONFIG)).code).toBe(INVALID_ARGUMENT);

    // Nothing of that has changed what runs.
    expect(await client.insert(entity(exactEntry()))).toBe(OK);
    expect((await client.set(ConfigAction.VERIFY, CONFIG)).code).toBe(OK);
    const count = async () => (await client.list({ tableEntry: { tableId: EXACT } })).length;
    expect(await count()).toBe(1);

    // What is written after a save is for the new config, and there when it is committed.
    const saved = { ...CONFIG, cookie: { cookie: 5n } };
    expect((await client.set(ConfigAction.VERIFY_AND_SAVE, saved)).code).toBe(OK);
    expect((await client.get(ResponseType.COOKIE_ONLY)).config!.cookie!.cookie).toBe(77n);
    const written = await client.write([
      { type: UpdateType.INSERT, entity: entity(exactEntry({ action: forward(3) }, 1)) },
      { type: UpdateType.INSERT, entity: entity(exactEntry({ action: forward(4) }, 2)) },
    ]);
    expect(written.code).toBeOneOf([OK, UNIMPLEMENTED]);
    expect((await client.set(ConfigAction.COMMIT)).code).toBe(OK);
    expect((await client.get(ResponseType.COOKIE_ONLY)).config!.cookie!.cookie).toBe(5n);
    expect(await count()).toBe(written.code === OK ? 2 : 0);
    expect((await client.set(ConfigAction.COMMIT)).code).toBe(NOT_FOUND);

    expect((await client.set(ConfigAction.VERIFY_AND_COMMIT, CONFIG)).code).toBe(OK);
    expect(await count()).toBe(0);

    // With RECONCILE_AND_COMMIT what was written stays.
    expect(await client.insert(entity(exactEntry({ action: forward(9) })))).toBe(OK);
    const reconciled = (await client.set(ConfigAction.RECONCILE_AND_COMMIT, CONFIG)).code;
    expect(reconciled).toBeOneOf([OK, UNIMPLEMENTED]);
    if (reconciled === OK) expect(await count()).toBe(1);
  },

  24: async (context) => {
    await context.start();
    const { client } = context;
    const parts = async (type: number) => {
      const { config } = await client.get(type);
      return [config!.p4info !== undefined, config!.p4DeviceConfig.length > 0, config!.cookie!.cookie];
    };
    expect(await parts(ResponseType.ALL)).toEqual([true, true, 77n]);
    expect(await parts(ResponseType.COOKIE_ONLY)).toEqual([false, false, 77n]);
    expect(await parts(ResponseType.P4INFO_AND_COOKIE)).toEqual([true, false, 77n]);
    expect(await parts(ResponseType.DEVICE_CONFIG_AND_COOKIE)).toEqual([false, true, 77n]);
    expect((await client.get(0, { deviceId: 9999n })).code).toBe(NOT_FOUND);
    expect((await client.get()).config!.p4info).toEqual(CONFIG.p4info);
    expect((await client.get()).config!.p4DeviceConfig).toEqual(CONFIG.p4DeviceConfig);
  },

  25: async ({ client }) => {
    expect((await client.capabilities()).response?.p4runtimeApiVersion).toMatch(/^\d+\.\d+\.\d+/);
    expect((await client.capabilities(9999n)).code).toBe(NOT_FOUND);
  },

  32: async (context) => {
    const large = new TextDecoder().decode(CONFIG.p4DeviceConfig) + ' '.repeat(6 * 1024 * 1024);
    await context.start({ ...CONFIG, p4DeviceConfig: new TextEncoder().encode(large) });
    expect((await context.client.get()).config!.p4DeviceConfig.length).toBeGreaterThan(6 * 1024 * 1024);
  },

  81: async (context) => {
    await context.start();
    const { client } = context;
    const wrong: [string, number, number][] = [
      ['table', EXACT, 0x01],
      ['action', SKIP, 0x02],
      ['counter', SEEN, 0x14],
      ['register', STATE, 0x12],
    ];
    for (const [, id, prefix] of wrong) {
      const other = (prefix << 24) | (id & 0xff_ffff) | 0x77_0000;
      const p4info = parseP4InfoText(p4InfoText('conformance').replaceAll(`: ${id}\n`, `: ${other}\n`));
      expect((await client.set(ConfigAction.VERIFY, { ...CONFIG, p4info })).code).toBe(INVALID_ARGUMENT);
    }
    // An id that names something of another kind names nothing.
    expect(await client.insert(entity(exactEntry({ tableId: SEEN })))).toBeOneOf([INVALID_ARGUMENT, NOT_FOUND]);
    expect(await client.modify({ counterEntry: { counterId: EXACT, data: {} } })).toBeOneOf([
      INVALID_ARGUMENT,
      NOT_FOUND,
    ]);
  },

  83: async (context) => {
    await context.start(TRANSLATION_CONFIG);
    const { client } = context;
    const BY_PORT = 0x02000001;
    const BY_NAME = 0x02000002;
    const utf8 = (text: string): Uint8Array => new TextEncoder().encode(text);
    const nameIt = (name: string) => ({
      action: { actionId: 0x01000001, params: [{ paramId: 1, value: utf8(name) }] },
    });
    const byPort = (port: Uint8Array, name: string) => ({
      tableEntry: { tableId: BY_PORT, match: [exact(1, ...port)], action: nameIt(name) },
    });
    const outcome = await client.write([
      { type: UpdateType.INSERT, entity: byPort(bytes(0, 0, 1, 1), 'Ethernet0') },
      { type: UpdateType.INSERT, entity: byPort(bytes(2, 0), 'Ethernet0') },
      { type: UpdateType.INSERT, entity: byPort(bytes(1, 0, 0, 0, 0), 'Ethernet0') },
      { type: UpdateType.INSERT, entity: byPort(bytes(3), '\0Ethernet0') },
    ]);
    // A port of 9 bits holds neither 512 nor 2^32.
    expect(outcome.errors!.map(({ canonicalCode }) => canonicalCode)).toEqual([
      OK,
      INVALID_ARGUMENT,
      INVALID_ARGUMENT,
      OK,
    ]);
    const names = async () =>
      (await client.list({ tableEntry: { tableId: BY_PORT } })).map(({ tableEntry }) => [
        tableEntry!.match[0]!.exact!.value,
        new TextDecoder().decode(tableEntry!.action!.action!.params[0]!.value),
      ]);
    expect(await names()).toEqual([
      [bytes(1, 1), 'Ethernet0'],
      [bytes(3), '\0Ethernet0'],
    ]);
    const byName = (name: Uint8Array) => ({
      tableEntry: { tableId: BY_NAME, match: [exact(1, ...name)], action: { action: call(0x01000002, 7) } },
    });
    expect(await client.insert(byName(utf8('Ethernet0')))).toBe(OK);
    expect(await client.insert(byName(bytes(0xff, 0xfe)))).toBe(INVALID_ARGUMENT);
    // A type of two bits has room for three names beside the value that nobody named.
    expect(await client.insert(byName(utf8('third')))).toBe(OK);
    expect(await client.insert(byName(utf8('fourth')))).toBeOneOf([INVALID_ARGUMENT, RESOURCE_EXHAUSTED]);
  },
};
