import { expect } from 'vitest';
import type { Checks } from '../rows.ts';
import {
  bytes,
  CONST,
  type EntityInput,
  EXACT,
  entity,
  exact,
  exactEntry,
  KINDS,
  METERED,
  meteredEntry,
  probe,
  RATES,
  SEEN,
  STATE,
  TERNARY,
} from './program.ts';
import {
  ALREADY_EXISTS,
  INVALID_ARGUMENT,
  NOT_FOUND,
  OK,
  OUT_OF_RANGE,
  RESOURCE_EXHAUSTED,
  type ServerContext,
  UNIMPLEMENTED,
} from './target.ts';

const at = (index: bigint) => ({ index: { index } });
const METER = { cir: 10n, cburst: 20n, pir: 30n, pburst: 40n };
const UNKNOWN_ID = [INVALID_ARGUMENT, NOT_FOUND];

/** P4Runtime 1.5, sections on counters, meters, registers and value sets. */
export const RESOURCES: Checks<ServerContext> = {
  59: async (context) => {
    await context.start();
    const { client } = context;
    const kinds: ((index: bigint) => EntityInput)[] = [
      (index) => ({ counterEntry: { counterId: SEEN, ...at(index), data: {} } }),
      (index) => ({ meterEntry: { meterId: RATES, ...at(index), config: METER } }),
      (index) => ({ registerEntry: { registerId: STATE, ...at(index), data: { bitstring: bytes(1) } } }),
    ];
    for (const kind of kinds) {
      expect(await client.insert(kind(0n))).toBe(INVALID_ARGUMENT);
      expect(await client.delete(kind(0n))).toBe(INVALID_ARGUMENT);
      expect(await client.modify(kind(-1n))).toBe(INVALID_ARGUMENT);
      expect(await client.modify(kind(8n))).toBe(OUT_OF_RANGE);
      expect(await client.readCode(kind(-1n))).toBe(INVALID_ARGUMENT);
      expect(await client.readCode(kind(8n))).toBe(OUT_OF_RANGE);
      expect(await client.modify(kind(0n))).toBe(OK);
    }
    expect(await client.modify({ counterEntry: { counterId: 0x1200_7777 } })).toBeOneOf(UNKNOWN_ID);
    expect(await client.modify({ counterEntry: { data: {} } })).toBeOneOf(UNKNOWN_ID);
  },

  60: async (context) => {
    await context.start();
    const { client } = context;
    expect(await client.list({ counterEntry: {} })).toHaveLength(12);
    expect(await client.list({ meterEntry: {} })).toHaveLength(4);
    expect(await client.list({ registerEntry: {} })).toHaveLength(10);
    expect(await client.modify({ counterEntry: { counterId: SEEN, data: { packetCount: 3n, byteCount: 7n } } })).toBe(
      OK,
    );
    expect(await client.modify({ counterEntry: { counterId: SEEN, ...at(2n), data: { packetCount: 1n } } })).toBe(OK);
    expect(await client.modify({ counterEntry: { counterId: SEEN, ...at(3n) } })).toBe(OK);
    const cells = await client.list({ counterEntry: { counterId: SEEN } });
    expect(cells.map(({ counterEntry }) => counterEntry!.data!.packetCount)).toEqual([3n, 3n, 1n, 3n, 3n, 3n, 3n, 3n]);
    expect(await client.list({ counterEntry: { counterId: SEEN, ...at(2n) } })).toMatchObject([
      { counterEntry: { index: { index: 2n }, data: { byteCount: 0n } } },
    ]);
    expect(await client.modify({ registerEntry: { registerId: STATE, data: { bitstring: bytes(9) } } })).toBe(OK);
    for (const { registerEntry } of await client.list({ registerEntry: { registerId: STATE } }))
      expect(registerEntry!.data!.bitstring).toEqual(bytes(9));
    expect(await client.modify({ meterEntry: { meterId: RATES, config: METER } })).toBe(OK);
    for (const { meterEntry } of await client.list({ meterEntry: { meterId: RATES } }))
      expect(meterEntry!.config).toMatchObject(METER);
  },

  61: async (context) => {
    const primary = await context.start();
    const { client } = context;
    const { match } = exactEntry();
    const tableEntry = { tableId: EXACT, match };
    const data = { packetCount: 6n, byteCount: 8n };
    expect(await client.modify({ directCounterEntry: { tableEntry, data } })).toBe(NOT_FOUND);
    expect(await client.readCode({ directCounterEntry: { tableEntry } })).toBe(NOT_FOUND);
    await client.insert(entity(exactEntry()));
    expect(await client.insert({ directCounterEntry: { tableEntry, data } })).toBe(INVALID_ARGUMENT);
    expect(await client.delete({ directCounterEntry: { tableEntry, data } })).toBe(INVALID_ARGUMENT);
    expect(await client.modify({ directCounterEntry: { data } })).toBe(INVALID_ARGUMENT);
    expect(await client.modify({ directCounterEntry: { tableEntry, data } })).toBe(OK);
    expect(await client.modify({ directCounterEntry: { tableEntry } })).toBe(OK);
    expect(await client.list({ directCounterEntry: { tableEntry } })).toMatchObject([
      { directCounterEntry: { tableEntry, data } },
    ]);
    expect(await client.list({ directCounterEntry: { tableEntry: { tableId: EXACT } } })).toHaveLength(1);
    expect(await client.list({ directCounterEntry: { tableEntry: { tableId: CONST } } })).toHaveLength(2);
    expect(await client.list({ directCounterEntry: {} })).toHaveLength(3);
    expect(await client.readCode({ directCounterEntry: { tableEntry: { tableId: TERNARY } } })).toBe(INVALID_ARGUMENT);

    // The default entry counts what misses.
    const byDefault = { tableId: EXACT, isDefaultAction: true };
    await context.exchange(primary, probe({ label: 77 }));
    expect(await client.list({ directCounterEntry: { tableEntry: byDefault } })).toMatchObject([
      { directCounterEntry: { tableEntry: byDefault, data: { packetCount: 1n } } },
    ]);
    expect(await client.modify({ directCounterEntry: { tableEntry: byDefault, data } })).toBe(OK);
    expect(await client.list(entity({ ...byDefault, counterData: {} }))).toMatchObject([entity({ counterData: data })]);

    const metered = { tableId: METERED, match: [exact(1, 5)] };
    expect(await client.modify({ directMeterEntry: { tableEntry: metered, config: METER } })).toBe(NOT_FOUND);
    await client.insert(entity(meteredEntry()));
    expect(await client.insert({ directMeterEntry: { tableEntry: metered, config: METER } })).toBe(INVALID_ARGUMENT);
    expect(await client.modify({ directMeterEntry: { tableEntry: metered, config: METER } })).toBe(OK);
    expect(await client.list({ directMeterEntry: { tableEntry: metered } })).toMatchObject([
      { directMeterEntry: { tableEntry: metered, config: METER } },
    ]);
    expect(await client.modify({ directMeterEntry: { tableEntry: metered } })).toBe(OK);
    expect((await client.list({ directMeterEntry: { tableEntry: metered } }))[0]!.directMeterEntry!.config).toBe(
      undefined,
    );
  },

  62: async (context) => {
    const primary = await context.start();
    const { client } = context;
    expect(await client.modify({ meterEntry: { meterId: RATES, ...at(1n), config: METER } })).toBe(OK);
    const cells = await client.list({ meterEntry: { meterId: RATES } });
    expect(cells.map(({ meterEntry }) => meterEntry!.config?.pir)).toEqual([undefined, 30n, undefined, undefined]);
    const refused = [
      { ...METER, eburst: 1n },
      { ...METER, cir: -1n },
    ];
    for (const config of refused)
      expect(await client.modify({ meterEntry: { meterId: RATES, config } })).toBe(INVALID_ARGUMENT);
    const coloured = (packetCount: bigint) => ({ green: { packetCount } });
    expect(await client.modify({ meterEntry: { meterId: RATES, counterData: coloured(1n) } })).toBeOneOf([
      INVALID_ARGUMENT,
      UNIMPLEMENTED,
    ]);
    expect(await client.modify({ meterEntry: { meterId: RATES, counterData: coloured(0n) } })).toBeOneOf([
      OK,
      UNIMPLEMENTED,
    ]);
    expect(await client.modify({ meterEntry: { meterId: RATES } })).toBe(OK);
    expect((await client.list({ meterEntry: { meterId: RATES, ...at(1n) } }))[0]!.meterEntry!.config).toBeUndefined();

    // One packet a second, and no more: the second packet at once is red, and green again without a config.
    const slow = { cir: 1n, cburst: 1n, pir: 1n, pburst: 1n };
    await client.insert(entity(meteredEntry({ meterConfig: slow })));
    const colourOf = async () => (await context.exchange(primary, probe({ label: 5 })))[0]!.colour;
    const RED = 2;
    expect(await colourOf()).toBe(0);
    expect(await colourOf()).toBe(RED);
    expect(await client.modify({ directMeterEntry: { tableEntry: { tableId: METERED, match: [exact(1, 5)] } } })).toBe(
      OK,
    );
    expect(await colourOf()).toBe(0);
    expect(await colourOf()).toBe(0);
  },

  63: async (context) => {
    const primary = await context.start();
    const { client } = context;
    const write = (bitstring: Uint8Array, index = 1n) =>
      client.modify({ registerEntry: { registerId: STATE, ...at(index), data: { bitstring } } });
    const MALFORMED = [INVALID_ARGUMENT, OUT_OF_RANGE];
    expect(await client.modify({ registerEntry: { registerId: STATE, data: { bool: true } } })).toBe(INVALID_ARGUMENT);
    expect(await client.modify({ registerEntry: { registerId: STATE } })).toBe(INVALID_ARGUMENT);
    expect(await write(bytes(0x10, 0))).toBeOneOf(MALFORMED);
    expect(await write(bytes())).toBeOneOf(MALFORMED);
    expect(await write(bytes(0, 0x0f, 1))).toBe(OK);
    expect(await client.list({ registerEntry: { registerId: STATE, ...at(1n) } })).toMatchObject([
      { registerEntry: { data: { bitstring: bytes(15, 1) } } },
    ]);
    // The program counts packets in the first cell.
    expect(await write(bytes(40), 0n)).toBe(OK);
    await context.exchange(primary, probe());
    expect(await client.list({ registerEntry: { registerId: STATE, ...at(0n) } })).toMatchObject([
      { registerEntry: { data: { bitstring: bytes(41) } } },
    ]);
  },

  64: async (context) => {
    const primary = await context.start();
    const { client } = context;
    const set = (...kinds: number[]): EntityInput => ({
      valueSetEntry: { valueSetId: KINDS, members: kinds.map((kind) => ({ match: [exact(1, kind)] })) },
    });
    expect(await client.insert(set(1))).toBe(INVALID_ARGUMENT);
    expect(await client.delete(set(1))).toBe(INVALID_ARGUMENT);
    expect(await client.modify(set(1, 2, 3, 4, 5))).toBe(RESOURCE_EXHAUSTED);
    expect(await client.modify(set(1, 2, 1))).toBe(ALREADY_EXISTS);
    const inSet = async (kind: number) => (await context.exchange(primary, probe({ kind })))[0]!.inSet;
    expect(await inSet(2)).toBe(0);
    expect(await client.modify(set(1, 2))).toBe(OK);
    expect([await inSet(1), await inSet(2), await inSet(3)]).toEqual([1, 1, 0]);
    expect(await client.list({ valueSetEntry: {} })).toMatchObject([set(1, 2)]);
    expect(await client.modify(set(3))).toBe(OK);
    expect([await inSet(2), await inSet(3)]).toEqual([0, 1]);
    expect(await client.modify(set())).toBe(OK);
    expect(await client.list({ valueSetEntry: { valueSetId: KINDS } })).toMatchObject([set()]);
    expect(await inSet(3)).toBe(0);
  },
};
