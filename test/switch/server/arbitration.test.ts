import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { compareElectionIds } from '../../../switch/server/arbitration.ts';
import { RpcCode } from '../../../switch/server/rpc-error.ts';
import { Bench } from './client.ts';

const OK = { status: RpcCode.OK };
const BACKUP = { status: RpcCode.ALREADY_EXISTS };
const NOBODY = { status: RpcCode.NOT_FOUND };

describe('arbitration (B.1)', () => {
  let bench: Bench;
  beforeEach(async () => {
    bench = await Bench.start({ maxStreams: 5 });
  });
  afterEach(() => bench.stop());

  it('row 1: an unknown device ends the stream with NOT_FOUND', async () => {
    const stream = bench.client.stream();
    stream.arbitrate(1n, { deviceId: 9n });
    expect(await stream.end()).toBe(RpcCode.NOT_FOUND);
  });

  it('row 2: an election id that another live stream has ends the stream with INVALID_ARGUMENT, the holder stays', async () => {
    const holder = await bench.client.contend(5n);
    const first = bench.client.stream();
    first.arbitrate(5n);
    expect(await first.end()).toBe(RpcCode.INVALID_ARGUMENT);
    const later = await bench.client.contend(3n);
    later.arbitrate(5n);
    expect(await later.end()).toBe(RpcCode.INVALID_ARGUMENT);
    await bench.client.contend(5n, { role: { name: 'other' } });
    holder.arbitrate(5n);
    expect(await holder.nextArbitration()).toEqual({ ...OK, electionId: 5n });
  });

  it('row 3: a role config ends the stream with INVALID_ARGUMENT, at the first update and later', async () => {
    const role = { config: { typeUrl: 'type.googleapis.com/x', value: new Uint8Array(0) } };
    const stream = bench.client.stream();
    stream.arbitrate(1n, { role });
    expect(await stream.end()).toBe(RpcCode.INVALID_ARGUMENT);
    const later = await bench.client.contend(1n);
    later.arbitrate(1n, { role });
    expect(await later.end()).toBe(RpcCode.INVALID_ARGUMENT);
  });

  it('row 4: too many streams end with RESOURCE_EXHAUSTED', async () => {
    for (let id = 1n; id <= 5n; id++) await bench.client.contend(id);
    const stream = bench.client.stream();
    stream.arbitrate(6n);
    expect(await stream.end()).toBe(RpcCode.RESOURCE_EXHAUSTED);
  });

  it('row 5: another device or role later ends the stream with FAILED_PRECONDITION', async () => {
    const first = await bench.client.contend(1n);
    first.arbitrate(1n, { deviceId: 2n });
    expect(await first.end()).toBe(RpcCode.FAILED_PRECONDITION);
    const second = await bench.client.contend(2n);
    second.arbitrate(2n, { role: { name: 'other' } });
    expect(await second.end()).toBe(RpcCode.FAILED_PRECONDITION);
  });

  it('row 6: only the highest id ever seen is primary, and nobody is promoted when the primary leaves', async () => {
    const backup = await bench.client.contend(3n);
    const primary = await bench.client.contend(8n);
    expect(await backup.nextArbitration()).toEqual({ ...BACKUP, electionId: 8n });
    await primary.close();
    expect(await backup.nextArbitration()).toEqual({ ...NOBODY, electionId: 8n });
    backup.arbitrate(3n);
    expect(await backup.nextArbitration()).toEqual({ ...NOBODY, electionId: 8n });
    backup.arbitrate(7n);
    expect(await backup.nextArbitration()).toEqual({ ...NOBODY, electionId: 8n });
    backup.arbitrate(8n);
    expect(await backup.nextArbitration()).toEqual({ ...OK, electionId: 8n });
  });

  it('row 7: the primary gets OK, backups ALREADY_EXISTS; without a primary ever there is no election id', async () => {
    const observer = bench.client.stream();
    observer.arbitrate(undefined);
    expect(await observer.nextArbitration()).toEqual({ ...NOBODY, electionId: undefined });
    const primary = bench.client.stream();
    primary.arbitrate(4n);
    expect(await primary.nextArbitration()).toEqual({ ...OK, electionId: 4n });
    expect(await observer.nextArbitration()).toEqual({ ...BACKUP, electionId: 4n });
  });

  it('row 8: streams without an id are backups for ever, any number of them; the id 0 is an id', async () => {
    const observers = [await bench.client.contend(undefined), await bench.client.contend(undefined)];
    const zero = bench.client.stream();
    zero.arbitrate(0n);
    expect(await zero.nextArbitration()).toEqual({ ...OK, electionId: 0n });
    for (const observer of observers) expect(await observer.nextArbitration()).toEqual({ ...BACKUP, electionId: 0n });
  });

  it('row 9: a primary that bids lower becomes a backup, there is no primary, and all are told', async () => {
    const primary = await bench.client.contend(8n);
    const backup = await bench.client.contend(3n);
    primary.arbitrate(7n);
    expect(await primary.nextArbitration()).toEqual({ ...NOBODY, electionId: 8n });
    expect(await backup.nextArbitration()).toEqual({ ...NOBODY, electionId: 8n });
  });

  it('row 10: a primary that bids the same id stays, and all are told', async () => {
    const primary = await bench.client.contend(8n);
    const backup = await bench.client.contend(undefined);
    primary.arbitrate(8n);
    expect(await primary.nextArbitration()).toEqual({ ...OK, electionId: 8n });
    expect(await backup.nextArbitration()).toEqual({ ...BACKUP, electionId: 8n });
  });

  it('row 11: after a hand-over the old primary writes no more', async () => {
    const old = await bench.client.contend(1n);
    await bench.client.contend(2n);
    expect(await old.nextArbitration()).toEqual({ ...BACKUP, electionId: 2n });
    expect((await bench.client.write([], { electionId: { low: 1n } })).code).toBe(RpcCode.PERMISSION_DENIED);
    expect((await bench.client.write([], { electionId: { low: 2n } })).code).toBe(RpcCode.FAILED_PRECONDITION);
  });

  it('row 12: the highest id outlives all streams, per device and role', async () => {
    const stream = await bench.client.contend(1n << 70n);
    await stream.close();
    const lower = bench.client.stream();
    lower.arbitrate(5n);
    expect(await lower.nextArbitration()).toEqual({ ...NOBODY, electionId: 1n << 70n });
    const elsewhere = bench.client.stream();
    elsewhere.arbitrate(5n, { deviceId: 2n });
    expect(await elsewhere.nextArbitration()).toEqual({ ...OK, electionId: 5n });
    const role = bench.client.stream();
    role.arbitrate(5n, { role: { name: 'other' } });
    expect(await role.nextArbitration()).toEqual({ ...OK, electionId: 5n });
  });

  it('row 13: a bad update is never reported as a stream error', async () => {
    const stream = bench.client.stream();
    stream.arbitrate(1n, { deviceId: 9n });
    await stream.end();
    expect(stream.pending).toBe(0);
  });

  it('row 16: ids are 128 bits, compared unsigned', () => {
    const top = 1n << 63n;
    expect(compareElectionIds({ high: top, low: 0n }, { high: 1n, low: top })).toBe(1);
    expect(compareElectionIds({ high: 0n, low: top }, { high: 0n, low: 1n })).toBe(1);
    expect(compareElectionIds({ high: 1n, low: 0n }, { high: 0n, low: top })).toBe(1);
    expect(compareElectionIds({ high: 1n, low: 1n }, { high: 1n, low: 1n })).toBe(0);
  });

  it('a stream that is cut off leaves the election', async () => {
    const backup = await bench.client.contend(undefined);
    const primary = await bench.newClient().contend(4n);
    expect(await backup.nextArbitration()).toEqual({ ...BACKUP, electionId: 4n });
    primary.call.cancel();
    expect(await backup.nextArbitration()).toEqual({ ...NOBODY, electionId: 4n });
  });
});
