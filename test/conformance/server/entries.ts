import { expect } from 'vitest';
import type { Checks } from '../rows.ts';
import {
  bytes,
  call,
  type EntryInput,
  EXACT,
  entity,
  exactEntry,
  FORWARD,
  forward,
  IDLE,
  idleEntry,
  MEASURE,
  METERED,
  meteredEntry,
  probe,
} from './program.ts';
import { INVALID_ARGUMENT, OK, type ServerContext } from './target.ts';

const insert = ({ client }: ServerContext, entry: EntryInput) => client.insert(entity(entry));
const modify = ({ client }: ServerContext, entry: EntryInput) => client.modify(entity(entry));
const list = async ({ client }: ServerContext, filter: EntryInput) =>
  (await client.list(entity(filter))).map(({ tableEntry }) => tableEntry!);

const METER = { cir: 1n, cburst: 2n, pir: 3n, pburst: 4n };
const SECOND_US = 1_000_000;
const NS_PER_US = 1000n;

/** P4Runtime 1.5, sections on direct resources, metadata and idle time-outs of table entries. */
export const ENTRIES: Checks<ServerContext> = {
  49: async (context) => {
    const primary = await context.start();
    await insert(context, exactEntry());
    await insert(context, meteredEntry({ meterConfig: METER }));
    await insert(context, idleEntry({ idleTimeoutNs: 10n ** 12n }));
    const payload = probe({ label: 5, small: 6, address: 9 });
    await context.exchange(primary, payload);
    for (const tableId of [EXACT, METERED, IDLE]) {
      const [entry] = await list(context, { tableId });
      expect([entry!.counterData, entry!.meterConfig, entry!.timeSinceLastHit]).toEqual([
        undefined,
        undefined,
        undefined,
      ]);
    }
    const [counted] = await list(context, { tableId: EXACT, counterData: {} });
    expect(counted!.counterData!.packetCount).toBe(1n);
    // The bytes that came in: the packet and the controller's header before it.
    expect(counted!.counterData!.byteCount).toBe(BigInt(payload.length + 7));
    expect((await list(context, { tableId: METERED, meterConfig: {} }))[0]!.meterConfig).toMatchObject(METER);
    const elapsed = async () =>
      (await list(context, { tableId: IDLE, timeSinceLastHit: {} }))[0]!.timeSinceLastHit!.elapsedNs / NS_PER_US;
    const first = await elapsed();
    await context.pass(SECOND_US);
    const second = await elapsed();
    expect(Number(second - first)).toBeGreaterThanOrEqual(SECOND_US * 0.9);
    await context.exchange(primary, payload);
    expect(await elapsed()).toBeLessThan(second);
  },

  50: async (context) => {
    await context.start();
    await insert(context, exactEntry({ counterData: { packetCount: 3n, byteCount: 4n } }));
    expect(await modify(context, exactEntry({ action: forward(2) }))).toBe(OK);
    expect((await list(context, { tableId: EXACT, counterData: {} }))[0]).toMatchObject({
      counterData: { packetCount: 3n, byteCount: 4n },
      action: { action: { actionId: FORWARD } },
    });
    expect(await modify(context, exactEntry({ counterData: { packetCount: 9n } }))).toBe(OK);
    expect((await list(context, { tableId: EXACT, counterData: {} }))[0]!.counterData).toEqual({
      packetCount: 9n,
      byteCount: 0n,
    });
    const meter = async () => (await list(context, { tableId: METERED, meterConfig: {} }))[0]!.meterConfig;
    await insert(context, meteredEntry({ meterConfig: METER }));
    expect(await meter()).toMatchObject(METER);
    expect(await modify(context, meteredEntry({ meterConfig: { ...METER, cir: 2n } }))).toBe(OK);
    expect(await meter()).toMatchObject({ ...METER, cir: 2n });
    expect(await modify(context, meteredEntry({ action: { action: call(MEASURE) } }))).toBe(OK);
    expect(await meter()).toBeUndefined();
  },

  51: async (context) => {
    await context.start();
    expect(await insert(context, exactEntry({ timeSinceLastHit: {} }))).toBe(INVALID_ARGUMENT);
    expect(await insert(context, exactEntry({ idleTimeoutNs: 5n }))).toBe(INVALID_ARGUMENT);
    expect(await insert(context, idleEntry({ timeSinceLastHit: {} }))).toBe(INVALID_ARGUMENT);
    const base = { tableId: IDLE, isDefaultAction: true };
    expect(await modify(context, { ...base, action: idleEntry().action, idleTimeoutNs: 5n })).toBe(INVALID_ARGUMENT);
    const odd = 1_234_567_891n;
    expect(await insert(context, idleEntry({ idleTimeoutNs: odd }))).toBe(OK);
    expect((await list(context, { tableId: IDLE }))[0]!.idleTimeoutNs).toBe(odd);
    expect(await modify(context, idleEntry({ idleTimeoutNs: odd + 1n }))).toBe(OK);
    expect((await list(context, { tableId: IDLE }))[0]!.idleTimeoutNs).toBe(odd + 1n);
    expect(await modify(context, idleEntry())).toBe(OK);
    expect((await list(context, { tableId: IDLE }))[0]!.idleTimeoutNs).toBe(0n);
  },

  52: async (context) => {
    await context.start();
    await insert(context, exactEntry({ metadata: bytes(0, 1, 0), controllerMetadata: 2n ** 64n - 1n }));
    expect(await list(context, { tableId: EXACT })).toMatchObject([
      { metadata: bytes(0, 1, 0), controllerMetadata: 2n ** 64n - 1n },
    ]);
    await modify(context, exactEntry({ metadata: bytes(2) }));
    expect(await list(context, { tableId: EXACT })).toMatchObject([{ metadata: bytes(2), controllerMetadata: 0n }]);
  },

  53: async (context) => {
    const primary = await context.start();
    const backup = await context.newClient().contend(undefined);
    const timeoutUs = 400_000;
    const idleTimeoutNs = BigInt(timeoutUs) * NS_PER_US;
    const noted = { idleTimeoutNs, metadata: bytes(7), controllerMetadata: 8n };
    await insert(context, idleEntry(noted));
    await insert(context, idleEntry({}, 10));
    const payload = probe({ address: 9 });
    const notice = async () => (await primary.nextOf('idleTimeoutNotification')).tableEntry;

    // As long as packets hit it there is none.
    for (let i = 0; i < 4; i++) {
      await context.pass(timeoutUs / 2);
      await context.exchange(primary, payload);
    }
    await context.settle(primary, context.id(100));
    expect(primary.pending).toEqual([]);

    for (let round = 0; round < 2; round++) {
      await context.pass(timeoutUs * 1.2);
      const entries = await notice();
      expect(entries).toMatchObject([{ tableId: IDLE, match: idleEntry().match, priority: 0, ...noted }]);
    }
    // Nor when it is gone, and none is sent to others or about entries without a time-out.
    expect(await context.client.delete(entity(idleEntry()))).toBe(OK);
    await context.pass(timeoutUs * 3);
    await context.settle(primary, context.id(100));
    expect(primary.pending).toEqual([]);
    await context.settle(backup, undefined);
    expect(backup.pending.filter(({ idleTimeoutNotification }) => idleTimeoutNotification !== undefined)).toEqual([]);
  },
};
