import { describe, expect, it } from 'vitest';
import { compareElectionIds } from '../../../switch/server/arbitration.ts';
import { RpcCode } from '../../../switch/server/rpc-error.ts';
import type { P4RoleConfig } from '../../../wire/p4runtime/role-messages.ts';
import { messageCodec, packAny } from '../../../wire/proto.ts';
import { CONFIG, EXACT, entity, exactEntry, TERNARY, ternaryEntry } from '../../conformance/server/program.ts';
import { Bench } from './bench.ts';
import { uint128 } from './client.ts';

const { ALREADY_EXISTS, INVALID_ARGUMENT, NOT_FOUND, OK, PERMISSION_DENIED } = RpcCode;
const roleConfig = messageCodec<P4RoleConfig>('stratum.P4RoleConfig');
const INSERT = 1;

describe('arbitration', () => {
  it('compares election ids of 128 bits, unsigned', () => {
    const top = 1n << 63n;
    expect(compareElectionIds({ high: top, low: 0n }, { high: 1n, low: top })).toBe(1);
    expect(compareElectionIds({ high: 0n, low: top }, { high: 0n, low: 1n })).toBe(1);
    expect(compareElectionIds({ high: 1n, low: 0n }, { high: 0n, low: top })).toBe(1);
    expect(compareElectionIds({ high: 1n, low: 1n }, { high: 1n, low: 1n })).toBe(0);
  });

  it('takes a stream that is cut off out of the election', async () => {
    const bench = await Bench.start();
    const backup = await bench.client.contend(undefined);
    const primary = await bench.newClient().contend(4n);
    expect(await backup.nextArbitration()).toEqual({ status: ALREADY_EXISTS, electionId: 4n });
    primary.call.cancel();
    expect(await backup.nextArbitration()).toEqual({ status: NOT_FOUND, electionId: 4n });
    await bench.stop();
  });

  it('keeps devices apart', async () => {
    const bench = await Bench.startWithProgram();
    const onTwo = { deviceId: 2n };
    expect((await bench.client.write([], onTwo)).code).toBe(PERMISSION_DENIED);
    await bench.client.contend(1n, onTwo);
    expect((await bench.client.write([], onTwo)).code).toBe(RpcCode.FAILED_PRECONDITION);
    await bench.stop();
  });
});

describe('roles', () => {
  const as = (name: string, id: bigint) => ({ role: name, electionId: uint128(id) });
  const role = (name: string, config: Partial<P4RoleConfig>) => ({
    role: { name, config: packAny(roleConfig, config) },
  });

  it('has a primary each, who writes for it alone', async () => {
    const bench = await Bench.startWithProgram();
    await bench.client.contend(5n, { role: { name: 'second' } });
    expect((await bench.client.write([], as('second', 5n))).code).toBe(OK);
    expect((await bench.client.write([], as('second', 1n))).code).toBe(PERMISSION_DENIED);
    await bench.stop();
  });

  it('writes what its config names, and nobody else what it has for itself but the default role', async () => {
    const bench = await Bench.startWithProgram();
    const { client } = bench;
    await client.contend(5n, role('exact', { exclusiveP4Ids: [EXACT] }));
    await client.contend(6n, { role: { name: 'any' } });
    expect(await client.writeOne(INSERT, entity(exactEntry()), as('exact', 5n))).toBe(OK);
    expect(await client.writeOne(INSERT, entity(ternaryEntry()), as('exact', 5n))).toBe(PERMISSION_DENIED);
    const group = { packetReplicationEngineEntry: { multicastGroupEntry: { multicastGroupId: 1 } } };
    expect(await client.writeOne(INSERT, group, as('exact', 5n))).toBe(PERMISSION_DENIED);
    expect(await client.writeOne(INSERT, entity(exactEntry({}, 6)), as('any', 6n))).toBe(PERMISSION_DENIED);
    expect(await client.writeOne(INSERT, group, as('any', 6n))).toBe(OK);
    expect(await client.insert(entity(exactEntry({}, 6)))).toBe(OK);
    await bench.stop();
  });

  it('cannot have what another role has for itself, as long as that has a primary', async () => {
    const bench = await Bench.startWithProgram();
    const { client } = bench;
    const holder = await client.contend(5n, role('exact', { exclusiveP4Ids: [EXACT] }));
    const late = client.stream();
    late.arbitrate(1n, role('late', { sharedP4Ids: [EXACT, TERNARY] }));
    expect(await late.end()).toBe(INVALID_ARGUMENT);
    await holder.close();
    const later = client.stream();
    later.arbitrate(1n, role('late', { sharedP4Ids: [EXACT, TERNARY] }));
    expect(await later.nextArbitration()).toEqual({ status: OK, electionId: 1n });
    await bench.stop();
  });

  it('sets a pipeline only if its config says so', async () => {
    const bench = await Bench.startWithProgram();
    const { client } = bench;
    await client.contend(5n, role('reader', {}));
    await client.contend(5n, role('pusher', { canPushPipeline: true }));
    const VERIFY = 1;
    expect((await client.set(VERIFY, CONFIG, as('reader', 5n))).code).toBe(PERMISSION_DENIED);
    expect((await client.set(VERIFY, CONFIG, as('pusher', 5n))).code).toBe(OK);
    await bench.stop();
  });

  it('has no config if it is the default one, and no number', async () => {
    const bench = await Bench.start();
    for (const wrong of [role('', { canPushPipeline: true }), { role: { id: 7n } }]) {
      const stream = bench.client.stream();
      stream.arbitrate(1n, wrong);
      expect(await stream.end()).toBe(INVALID_ARGUMENT);
    }
    await bench.stop();
  });
});
