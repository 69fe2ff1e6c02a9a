import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  bytes,
  CPU_PORT,
  call,
  entity,
  exact,
  FORWARD,
  GROUP_SELECTOR,
  GROUPS,
  oneShot,
  packetOut,
  probe,
  type Request,
  received,
  route,
} from '../../conformance/server/program.ts';
import { Bench } from './bench.ts';
import type { TestStream } from './client.ts';

describe('ports that go down', () => {
  let bench: Bench;
  let primary: TestStream;
  beforeEach(async () => {
    const started = await Bench.startWithProgram();
    bench = started;
    primary = started.primary;
  });
  afterEach(() => bench.stop());

  const send = async (fields: object, request: Request = {}) => {
    primary.send(packetOut(probe(fields), request));
    return received(await primary.nextOf('packet'));
  };
  const tags = async (fields: object): Promise<number[]> => {
    const seen = new Set<number>();
    for (let number = 0; number < 40; number++) seen.add((await send({ ...fields, number: number * 7 })).tag);
    return [...seen].sort();
  };

  it('take the members of one-shot sets out that watch them, and bring them back', async () => {
    const set = {
      actionProfileActions: [
        { ...oneShot(1, 1), watchPort: bytes(3) },
        { ...oneShot(2, 1), watchPort: bytes(0, 4) },
      ],
    };
    expect(await bench.client.insert(entity(route(10, set)))).toBe(0);
    const fields = { address: 0x0a000001 };
    expect(await tags(fields)).toEqual([1, 2]);
    bench.device.setPortUp(3, false);
    expect(await tags(fields)).toEqual([2]);
    bench.device.setPortUp(4, false);
    expect(await tags(fields)).toEqual([0]);
    bench.device.setPortUp(3, true);
    expect(await tags(fields)).toEqual([1]);
  });

  it('do the same to members of groups', async () => {
    for (const memberId of [1, 2])
      await bench.client.insert({
        actionProfileMember: { actionProfileId: GROUP_SELECTOR, memberId, action: call(FORWARD, memberId, memberId) },
      });
    const members = [
      { memberId: 1, weight: 1, watchPort: bytes(3) },
      { memberId: 2, weight: 1 },
    ];
    await bench.client.insert({
      actionProfileGroup: { actionProfileId: GROUP_SELECTOR, groupId: 1, maxSize: 2, members },
    });
    await bench.client.insert(entity({ tableId: GROUPS, match: [exact(1, 5)], action: { actionProfileGroupId: 1 } }));
    expect(await tags({ label: 5 })).toEqual([1, 2]);
    bench.device.setPortUp(3, false);
    expect(await tags({ label: 5 })).toEqual([2]);
  });

  it('leave their copies to the backup replicas', async () => {
    const replicas = [
      {
        port: bytes(3),
        instance: 1,
        backupReplicas: [{ port: bytes(CPU_PORT >> 8, CPU_PORT & 255), instance: 2 }],
      },
    ];
    const group = { packetReplicationEngineEntry: { multicastGroupEntry: { multicastGroupId: 1, replicas } } };
    expect(await bench.client.insert(group)).toBe(0);
    primary.send(packetOut(probe(), { multicastGroup: 1 }));
    await primary.settle(1n);
    expect(primary.pending).toEqual([]);
    bench.device.setPortUp(3, false);
    expect(await send({}, { multicastGroup: 1 })).toMatchObject({ egressPort: CPU_PORT, instance: 2 });
  });
});
