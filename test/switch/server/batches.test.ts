import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { batchFailure, RpcCode, RpcError } from '../../../switch/server/rpc-error.ts';
import { WriteRequestAtomicity as Atomicity, type Entity, UpdateType } from '../../../wire/p4runtime/messages.ts';
import type { MessageInput } from '../../../wire/proto.ts';
import { Bench } from './client.ts';

const bytes = (...values: number[]): Uint8Array => new Uint8Array(values);

function exactEntry(label: number): MessageInput<Entity> {
  return {
    tableEntry: {
      tableId: 0x02000001,
      match: [
        { fieldId: 1, exact: { value: bytes(label) } },
        { fieldId: 2, exact: { value: bytes(1) } },
      ],
      action: { action: { actionId: 0x01000002 } },
    },
  };
}

describe('batches (B.2, B.3)', () => {
  let bench: Bench;
  beforeAll(async () => {
    bench = await Bench.startWithProgram();
  });
  afterAll(() => bench.stop());

  it('row 20: an entity that is not set is INVALID_ARGUMENT', async () => {
    expect(await bench.client.insert({})).toBe(RpcCode.INVALID_ARGUMENT);
    const outcome = await bench.client.write([{ type: UpdateType.INSERT }]);
    expect(outcome.errors![0]!.canonicalCode).toBe(RpcCode.INVALID_ARGUMENT);
    expect(await bench.client.readCode({})).toBe(RpcCode.INVALID_ARGUMENT);
  });

  it('row 21: a read delivers what is good, then says what is not', async () => {
    const outcome = await bench.client.read([
      { counterEntry: { counterId: 0x12000001 } },
      { counterEntry: { counterId: 0x12000009 } },
      { counterEntry: { counterId: 0x12000002 } },
      {},
    ]);
    expect(outcome.entities).toHaveLength(12);
    expect(outcome.code).toBe(RpcCode.UNKNOWN);
    expect(outcome.errors!.map((error) => error.canonicalCode)).toEqual([
      0,
      RpcCode.INVALID_ARGUMENT,
      0,
      RpcCode.INVALID_ARGUMENT,
    ]);
  });

  it('row 26: one error for each update in their order; RPC-wide failures have no details', async () => {
    const { client } = bench;
    const outcome = await client.write([
      { type: UpdateType.INSERT, entity: exactEntry(1) },
      { type: UpdateType.INSERT, entity: exactEntry(1) },
      { type: UpdateType.DELETE, entity: exactEntry(2) },
      { type: UpdateType.DELETE, entity: exactEntry(1) },
    ]);
    expect(outcome.code).toBe(RpcCode.UNKNOWN);
    expect(outcome.errors!.map((error) => error.canonicalCode)).toEqual([
      0,
      RpcCode.ALREADY_EXISTS,
      RpcCode.NOT_FOUND,
      0,
    ]);
    expect(outcome.errors![1]!.message).toContain('Ingress.exact_table');
    expect((await client.write([], { electionId: { low: 9n } })).errors).toBeUndefined();
    expect((await client.write([{ type: UpdateType.INSERT, entity: exactEntry(1) }])).code).toBe(0);
    expect(await client.delete(exactEntry(1))).toBe(0);
  });

  it('row 27: atomicity other than CONTINUE_ON_ERROR is UNIMPLEMENTED by name, and nothing happens', async () => {
    for (const atomicity of [Atomicity.ROLLBACK_ON_ERROR, Atomicity.DATAPLANE_ATOMIC]) {
      const outcome = await bench.client.write([{ type: UpdateType.INSERT, entity: exactEntry(3) }], { atomicity });
      expect(outcome).toMatchObject({
        code: RpcCode.UNIMPLEMENTED,
        message: expect.stringMatching(/ROLLBACK_ON_ERROR.*DATAPLANE_ATOMIC/),
      });
    }
    expect((await bench.client.write([], { atomicity: 7 })).code).toBe(RpcCode.INVALID_ARGUMENT);
    expect(await bench.client.delete(exactEntry(3))).toBe(RpcCode.NOT_FOUND);
  });

  it('row 28: codes of updates', async () => {
    const { client } = bench;
    expect(await client.insert(exactEntry(5))).toBe(0);
    expect(await client.insert(exactEntry(5))).toBe(RpcCode.ALREADY_EXISTS);
    expect(await client.modify(exactEntry(6))).toBe(RpcCode.NOT_FOUND);
    expect(await client.delete(exactEntry(6))).toBe(RpcCode.NOT_FOUND);
    expect(await client.writeOne(UpdateType.UNSPECIFIED, exactEntry(6))).toBe(RpcCode.INVALID_ARGUMENT);
    expect(await client.writeOne(12, exactEntry(6))).toBe(RpcCode.INVALID_ARGUMENT);
    for (let label = 10; label < 25; label++) expect(await client.insert(exactEntry(label))).toBe(0);
    expect(await client.insert(exactEntry(25))).toBe(RpcCode.RESOURCE_EXHAUSTED);
    expect(await client.delete(exactEntry(10))).toBe(0);
    expect(await client.insert(exactEntry(25))).toBe(0);
  });

  it('keeps the trailer small enough for grpc-js: texts go first, then the details', async () => {
    const updates = Array.from({ length: 1000 }, () => ({ type: UpdateType.DELETE, entity: exactEntry(99) }));
    const outcome = await bench.client.write(updates);
    expect(outcome.code).toBe(RpcCode.UNKNOWN);
    expect(outcome.errors!.map((error) => error.canonicalCode)).toEqual(new Array(1000).fill(RpcCode.NOT_FOUND));
    expect(outcome.errors![0]!.message).toBe('');
    const few = await bench.client.write(updates.slice(0, 256));
    expect(few.errors![255]!.message).not.toBe('');
    expect(batchFailure(new Array(5000).fill(new RpcError('NOT_FOUND', 'x'))).details).toBeUndefined();
    for (const count of [1, 256, 800, 1100])
      expect(
        batchFailure(new Array(count).fill(new RpcError('NOT_FOUND', 'a long text '.repeat(500)))).details!.length,
      ).toBeLessThanOrEqual(48 * 1024);
    expect((await bench.client.write([])).code).toBe(0);
  });

  it('refuses the kinds that it does not serve by name', async () => {
    const kinds: [MessageInput<Entity>, string][] = [
      [{ actionProfileMember: {} }, 'action profile members'],
      [{ actionProfileGroup: {} }, 'action profile groups'],
      [{ directMeterEntry: {} }, 'direct meters'],
      [{ valueSetEntry: {} }, 'value sets'],
      [{ digestEntry: {} }, 'digests'],
      [{ externEntry: {} }, 'extern entries'],
    ];
    for (const [entity, name] of kinds) {
      const written = await bench.client.write([{ type: UpdateType.MODIFY, entity }]);
      expect(written.errors![0]).toMatchObject({
        canonicalCode: RpcCode.UNIMPLEMENTED,
        message: expect.stringContaining(name),
      });
      expect(await bench.client.readCode(entity)).toBe(RpcCode.UNIMPLEMENTED);
    }
  });
});
