import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { RpcCode } from '../../../switch/server/rpc-error.ts';
import { type Entity, UpdateType } from '../../../wire/p4runtime/messages.ts';
import type { MessageInput } from '../../../wire/proto.ts';
import { Bench } from './client.ts';

const { INVALID_ARGUMENT, NOT_FOUND, OUT_OF_RANGE, UNIMPLEMENTED } = RpcCode;
const DROPS = 0x12000001;
const RATES = 0x14000001;
const SINGLE = 0x14000002;
const STATE = 0x16000001;
const SIGNED = 0x16000002;
const EXACT = 0x02000001;

const bytes = (...values: number[]): Uint8Array => new Uint8Array(values);
const at = (index: bigint) => ({ index: { index } });

describe('counters, meters, registers (B.8)', () => {
  let bench: Bench;
  beforeEach(async () => {
    bench = await Bench.startWithProgram();
  });
  afterEach(() => bench.stop());

  const read = async (entity: MessageInput<Entity>): Promise<Entity[]> => {
    const { code, message, entities } = await bench.client.read([entity]);
    if (code !== 0) throw new Error(message);
    return entities;
  };
  const config = { cir: 10n, cburst: 20n, pir: 30n, pburst: 40n };

  it('row 59: no inserts and deletes; an index below 0 is INVALID_ARGUMENT, one beyond OUT_OF_RANGE', async () => {
    const kinds: ((index: bigint) => MessageInput<Entity>)[] = [
      (index) => ({ counterEntry: { counterId: DROPS, ...at(index), data: {} } }),
      (index) => ({ meterEntry: { meterId: RATES, ...at(index) } }),
      (index) => ({ registerEntry: { registerId: STATE, ...at(index), data: { bitstring: bytes(1) } } }),
    ];
    for (const kind of kinds) {
      expect(await bench.client.insert(kind(0n))).toBe(INVALID_ARGUMENT);
      expect(await bench.client.delete(kind(0n))).toBe(INVALID_ARGUMENT);
      expect(await bench.client.modify(kind(-1n))).toBe(INVALID_ARGUMENT);
      expect(await bench.client.modify(kind(8n))).toBe(OUT_OF_RANGE);
      expect(await bench.client.readCode(kind(-1n))).toBe(INVALID_ARGUMENT);
      expect(await bench.client.readCode(kind(8n))).toBe(OUT_OF_RANGE);
      expect(await bench.client.modify(kind(0n))).toBe(0);
    }
    expect(await bench.client.modify({ counterEntry: { counterId: 0x12000099 } })).toBe(INVALID_ARGUMENT);
    expect(await bench.client.modify({ counterEntry: { data: {} } })).toBe(INVALID_ARGUMENT);
  });

  it('row 60: id 0 reads all arrays, no index all cells; a write without index sets all cells', async () => {
    expect(await read({ counterEntry: {} })).toHaveLength(12);
    expect(await read({ meterEntry: {} })).toHaveLength(6);
    expect(await read({ registerEntry: {} })).toHaveLength(10);
    expect(
      await bench.client.modify({ counterEntry: { counterId: DROPS, data: { packetCount: 3n, byteCount: 7n } } }),
    ).toBe(0);
    expect(
      await bench.client.modify({ counterEntry: { counterId: DROPS, ...at(2n), data: { packetCount: 1n } } }),
    ).toBe(0);
    expect(await bench.client.modify({ counterEntry: { counterId: DROPS, ...at(3n) } })).toBe(0);
    const cells = await read({ counterEntry: { counterId: DROPS } });
    expect(cells.map(({ counterEntry }) => counterEntry!.data!.packetCount)).toEqual([3n, 3n, 1n, 3n, 3n, 3n, 3n, 3n]);
    expect(await read({ counterEntry: { counterId: DROPS, ...at(2n) } })).toMatchObject([
      { counterEntry: { index: { index: 2n }, data: { byteCount: 0n } } },
    ]);
    expect(await bench.client.modify({ counterEntry: { counterId: DROPS, data: { packetCount: -3n } } })).toBe(
      INVALID_ARGUMENT,
    );
  });

  it('row 61: direct counters go by their entry', async () => {
    const match = [1, 2].map((fieldId) => ({ fieldId, exact: { value: bytes(1) } }));
    const tableEntry = { tableId: EXACT, match };
    const data = { packetCount: 6n, byteCount: 8n };
    const { client } = bench;
    expect(await client.modify({ directCounterEntry: { tableEntry, data } })).toBe(NOT_FOUND);
    expect(await client.readCode({ directCounterEntry: { tableEntry } })).toBe(NOT_FOUND);
    await client.insert({ tableEntry: { ...tableEntry, action: { action: { actionId: 0x01000002 } } } });
    expect(await client.insert({ directCounterEntry: { tableEntry, data } })).toBe(INVALID_ARGUMENT);
    expect(await client.delete({ directCounterEntry: { tableEntry, data } })).toBe(INVALID_ARGUMENT);
    expect(await client.modify({ directCounterEntry: { data } })).toBe(INVALID_ARGUMENT);
    expect(await client.modify({ directCounterEntry: { tableEntry, data } })).toBe(0);
    expect(await client.modify({ directCounterEntry: { tableEntry } })).toBe(0);
    expect(await read({ directCounterEntry: { tableEntry } })).toMatchObject([
      { directCounterEntry: { tableEntry: { tableId: EXACT, match }, data } },
    ]);
    expect(await read({ directCounterEntry: { tableEntry: { tableId: EXACT } } })).toHaveLength(1);
    // Two more of the const table.
    expect(await read({ directCounterEntry: {} })).toHaveLength(3);
    expect(await read({ directCounterEntry: { tableEntry: {} } })).toHaveLength(3);
    expect(await client.readCode({ directCounterEntry: { tableEntry: { tableId: 0x02000002 } } })).toBe(
      INVALID_ARGUMENT,
    );
    expect(
      await client.readCode({ directCounterEntry: { tableEntry: { tableId: EXACT, isDefaultAction: true } } }),
    ).toBe(UNIMPLEMENTED);
  });

  it('row 62: meters', async () => {
    const { client } = bench;
    expect(await client.modify({ meterEntry: { meterId: RATES, ...at(1n), config } })).toBe(0);
    const cells = await read({ meterEntry: { meterId: RATES } });
    expect(cells.map(({ meterEntry }) => meterEntry!.config?.pir)).toEqual([undefined, 30n, undefined, undefined]);
    expect(await client.modify({ meterEntry: { meterId: RATES, config: { ...config, eburst: 1n } } })).toBe(
      INVALID_ARGUMENT,
    );
    expect(await client.modify({ meterEntry: { meterId: RATES, config: { ...config, cir: -1n } } })).toBe(
      INVALID_ARGUMENT,
    );
    expect(await client.modify({ meterEntry: { meterId: RATES, counterData: {} } })).toBe(UNIMPLEMENTED);
    expect(await client.readCode({ meterEntry: { meterId: RATES, counterData: {} } })).toBe(UNIMPLEMENTED);
    expect(await client.modify({ meterEntry: { meterId: SINGLE, config } })).toBe(UNIMPLEMENTED);
    expect(await client.modify({ meterEntry: { meterId: RATES } })).toBe(0);
    expect((await read({ meterEntry: { meterId: RATES, ...at(1n) } }))[0]!.meterEntry!.config).toBeUndefined();
  });

  it('row 63: register data must be of the type of the cells', async () => {
    const { client } = bench;
    const write = (registerId: number, bitstring: Uint8Array): Promise<number> =>
      client.modify({ registerEntry: { registerId, ...at(1n), data: { bitstring } } });
    expect(await client.modify({ registerEntry: { registerId: STATE, data: { bool: true } } })).toBe(INVALID_ARGUMENT);
    expect(await client.modify({ registerEntry: { registerId: STATE } })).toBe(INVALID_ARGUMENT);
    expect(await write(STATE, bytes(0x10, 0))).toBe(OUT_OF_RANGE);
    expect(await write(STATE, bytes())).toBe(OUT_OF_RANGE);
    expect(await write(STATE, bytes(0, 0x0f, 1))).toBe(0);
    expect(await read({ registerEntry: { registerId: STATE, ...at(1n) } })).toMatchObject([
      { registerEntry: { data: { bitstring: bytes(15, 1) } } },
    ]);
  });

  it('row 35: int<W> has two complements and no needless sign bytes', async () => {
    const write = (...value: number[]): Promise<number> =>
      bench.client.modify({ registerEntry: { registerId: SIGNED, ...at(0n), data: { bitstring: bytes(...value) } } });
    expect(await write(0xff, 0x9d)).toBe(0);
    expect(await read({ registerEntry: { registerId: SIGNED, ...at(0n) } })).toMatchObject([
      { registerEntry: { data: { bitstring: bytes(0x9d) } } },
    ]);
    expect(bench.device.program!.registers.get('Ingress.signed')!.read(0)).toBe(0x9dn);
    expect(await write(0, 0x9d)).toBe(OUT_OF_RANGE);
  });

  it('a failed update changes nothing', async () => {
    await bench.client.write([
      {
        type: UpdateType.MODIFY,
        entity: { counterEntry: { counterId: DROPS, data: { packetCount: 1n, byteCount: -1n } } },
      },
      {
        type: UpdateType.MODIFY,
        entity: { registerEntry: { registerId: STATE, data: { bitstring: bytes(0xff, 0xff) } } },
      },
    ]);
    expect((await read({ counterEntry: { counterId: DROPS, ...at(0n) } }))[0]!.counterEntry!.data!.packetCount).toBe(
      0n,
    );
    expect(
      (await read({ registerEntry: { registerId: STATE, ...at(0n) } }))[0]!.registerEntry!.data!.bitstring,
    ).toEqual(bytes(0));
  });
});
