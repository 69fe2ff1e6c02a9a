import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { batchFailure, RpcCode, RpcError } from '../../../switch/server/rpc-error.ts';
import { WriteRequestAtomicity as Atomicity, UpdateType } from '../../../wire/p4runtime/messages.ts';
import {
  bytes,
  call,
  entity,
  exact,
  exactEntry,
  FORWARD,
  forward,
  GROUP_SELECTOR,
  GROUPS,
  MEMBER_PROFILE,
  probe,
  SEEN,
  STATE,
} from '../../conformance/server/program.ts';
import { Bench } from './bench.ts';

describe('batches', () => {
  let bench: Bench;
  beforeAll(async () => {
    bench = await Bench.startWithProgram();
  });
  afterAll(() => bench.stop());

  it('keep the trailer small enough for grpc-js: texts go first, then the details', async () => {
    const updates = Array.from({ length: 1000 }, () => ({
      type: UpdateType.DELETE,
      entity: entity(exactEntry({}, 99)),
    }));
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
    expect((await bench.client.write([])).code).toBe(RpcCode.OK);
  });

  it('change nothing where they fail', async () => {
    await bench.client.write([
      {
        type: UpdateType.MODIFY,
        entity: { counterEntry: { counterId: SEEN, data: { packetCount: 1n, byteCount: -1n } } },
      },
      {
        type: UpdateType.MODIFY,
        entity: { registerEntry: { registerId: STATE, data: { bitstring: bytes(0xff, 0xff) } } },
      },
    ]);
    const { entities } = await bench.client.read([
      { counterEntry: { counterId: SEEN, index: { index: 0n } } },
      { registerEntry: { registerId: STATE, index: { index: 0n } } },
    ]);
    expect(entities).toMatchObject([
      { counterEntry: { data: { packetCount: 0n } } },
      { registerEntry: { data: { bitstring: bytes(0) } } },
    ]);
  });

  it('put back entries with their members when they roll back, so that packets see no difference', async () => {
    const fresh = await Bench.startWithProgram();
    const { client, primary, device } = fresh;
    const received: Uint8Array[] = [];
    device.onTransmit = (_, frame) => received.push(frame.slice());
    const member = (memberId: number, tag: number) => ({
      actionProfileMember: { actionProfileId: GROUP_SELECTOR, memberId, action: call(FORWARD, tag, tag) },
    });
    const group = (...memberIds: number[]) => ({
      actionProfileGroup: {
        actionProfileId: GROUP_SELECTOR,
        groupId: 1,
        maxSize: 6,
        members: memberIds.map((memberId) => ({ memberId, weight: 1 })),
      },
    });
    const entry = entity({ tableId: GROUPS, match: [exact(1, 5)], action: { actionProfileGroupId: 1 } });
    for (const each of [member(1, 11), member(2, 12), group(1, 2), entry, entity(exactEntry({ metadata: bytes(1) }))])
      expect(await client.insert(each)).toBe(RpcCode.OK);
    const everything = async () =>
      (
        await client.read([
          { actionProfileMember: {} },
          { actionProfileGroup: {} },
          { tableEntry: { counterData: {} } },
        ])
      ).entities;
    const before = await everything();
    const outcome = await client.write(
      [
        { type: UpdateType.DELETE, entity: entry },
        { type: UpdateType.DELETE, entity: group() },
        { type: UpdateType.DELETE, entity: member(1, 0) },
        { type: UpdateType.MODIFY, entity: member(2, 99) },
        {
          type: UpdateType.INSERT,
          entity: { ...entry, tableEntry: { ...entry.tableEntry, action: { actionProfileMemberId: 2 } } },
        },
        {
          type: UpdateType.MODIFY,
          entity: { directCounterEntry: { tableEntry: exactEntry(), data: { packetCount: 7n } } },
        },
        { type: UpdateType.DELETE, entity: entity(exactEntry()) },
        { type: UpdateType.INSERT, entity: entity(exactEntry({ action: forward(3) })) },
        { type: UpdateType.DELETE, entity: { actionProfileMember: { actionProfileId: MEMBER_PROFILE, memberId: 9 } } },
      ],
      { atomicity: Atomicity.ROLLBACK_ON_ERROR },
    );
    expect(outcome.errors!.map(({ canonicalCode }) => canonicalCode)).toEqual([
      ...new Array(8).fill(RpcCode.ABORTED),
      RpcCode.NOT_FOUND,
    ]);
    expect(await everything()).toEqual(expect.arrayContaining(before));
    expect(await everything()).toHaveLength(before.length);
    // The entry leads to its group again.
    device.receive(3, probe({ label: 5 }));
    await primary.settle(1n);
    expect(await client.delete(member(2, 0))).toBe(RpcCode.FAILED_PRECONDITION);
    expect(await client.delete(group())).toBe(RpcCode.FAILED_PRECONDITION);
    await fresh.stop();
  });
});
