import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { RpcCode } from '../../../switch/server/rpc-error.ts';
import {
  type CloneSessionEntry,
  SetForwardingPipelineConfigRequestAction as ConfigAction,
  type MulticastGroupEntry,
  type PacketReplicationEngineEntry,
  type Replica,
} from '../../../wire/p4runtime/messages.ts';
import { parseP4InfoText } from '../../../wire/p4runtime/p4info-text.ts';
import type { MessageInput } from '../../../wire/proto.ts';
import { Bench, SAMPLE_CONFIG } from './client.ts';
import { SAMPLE_P4INFO } from './sample-program.ts';

const { ALREADY_EXISTS, INVALID_ARGUMENT, NOT_FOUND, RESOURCE_EXHAUSTED, UNIMPLEMENTED } = RpcCode;
const bytes = (...values: number[]): Uint8Array => new Uint8Array(values);

describe('packet replication engine (B.9)', () => {
  let bench: Bench;
  beforeEach(async () => {
    bench = await Bench.startWithProgram();
  });
  afterEach(() => bench.stop());

  const group = (
    multicastGroupId: number,
    replicas: MessageInput<Replica>[] = [],
    more: MessageInput<MulticastGroupEntry> = {},
  ) => ({
    packetReplicationEngineEntry: { multicastGroupEntry: { multicastGroupId, replicas, ...more } },
  });
  const session = (sessionId: number, more: MessageInput<CloneSessionEntry> = {}) => ({
    packetReplicationEngineEntry: { cloneSessionEntry: { sessionId, replicas: [{ port: bytes(3) }], ...more } },
  });
  const replica = (port: number, instance = 0): MessageInput<Replica> => ({ port: bytes(0, port), instance });
  const read = async (entry: MessageInput<PacketReplicationEngineEntry>): Promise<PacketReplicationEngineEntry[]> =>
    (await bench.client.read([{ packetReplicationEngineEntry: entry }])).entities.map(
      (entity) => entity.packetReplicationEngineEntry!,
    );

  it('row 65: group ids begin at 1, instances end at 65535 and begin at 0', async () => {
    expect(await bench.client.insert(group(0))).toBe(INVALID_ARGUMENT);
    expect(await bench.client.insert(group(65536))).toBe(INVALID_ARGUMENT);
    expect(await bench.client.insert(group(1, [replica(1, 65536)]))).toBe(INVALID_ARGUMENT);
    expect(await bench.client.insert(group(1, [replica(1, 65535), replica(1, 0)]))).toBe(0);
    expect(bench.device.program!.groups.get(1)).toEqual([
      { port: 1, instance: 65535 },
      { port: 1, instance: 0 },
    ]);
  });

  it('row 66: pairs of port and instance are unique, no port is its own backup', async () => {
    expect(await bench.client.insert(group(1, [replica(1), replica(1)]))).toBe(INVALID_ARGUMENT);
    expect(await bench.client.insert(group(1, [replica(1), { egressPort: 1 }]))).toBe(INVALID_ARGUMENT);
    const backup = (port: number, instance: number) => ({
      ...replica(1),
      backupReplicas: [{ port: bytes(port), instance }],
    });
    expect(await bench.client.insert(group(1, [backup(1, 9)]))).toBe(INVALID_ARGUMENT);
    expect(await bench.client.insert(group(1, [backup(2, 9), replica(2, 9)]))).toBe(INVALID_ARGUMENT);
  });

  it('row 67: backup replicas are UNIMPLEMENTED; order and metadata come back', async () => {
    expect(await bench.client.insert(group(1, [{ ...replica(1), backupReplicas: [{ port: bytes(2) }] }]))).toBe(
      UNIMPLEMENTED,
    );
    expect(await bench.client.insert(group(1, [replica(5, 1), replica(3, 2)], { metadata: bytes(9, 9) }))).toBe(0);
    expect(await read({ multicastGroupEntry: {} })).toMatchObject([
      {
        multicastGroupEntry: {
          multicastGroupId: 1,
          metadata: bytes(9, 9),
          replicas: [
            { port: bytes(5), instance: 1 },
            { port: bytes(3), instance: 2 },
          ],
        },
      },
    ]);
  });

  it('row 68: the deprecated egress_port is echoed as such, port bytes are canonical', async () => {
    await bench.client.insert(group(1, [{ egressPort: 4, instance: 1 }, replica(5)]));
    const [entry] = await read({ multicastGroupEntry: { multicastGroupId: 1 } });
    const [first, second] = entry!.multicastGroupEntry!.replicas;
    expect([first!.egressPort, first!.port, second!.egressPort, second!.port]).toEqual([
      4,
      undefined,
      undefined,
      bytes(5),
    ]);
  });

  it('row 82: port 0 and ports beyond v1model are INVALID_ARGUMENT, the SDN port of the CPU is the CPU port', async () => {
    for (const port of [bytes(0), bytes(1, 0xff), bytes(2, 0), bytes(), bytes(1, 0, 0, 0, 0)])
      expect(await bench.client.insert(group(1, [{ port }]))).toBe(INVALID_ARGUMENT);
    expect(await bench.client.insert(group(1, [{}]))).toBe(INVALID_ARGUMENT);
    expect(await bench.client.insert(group(1, [{ port: bytes(0xff, 0xff, 0xff, 0xfd) }]))).toBe(0);
    expect(bench.device.program!.groups.get(1)).toEqual([{ port: 510, instance: 0 }]);
  });

  it('groups and sessions are inserted, modified and deleted once', async () => {
    for (const make of [(id: number) => group(id, [replica(1)]), (id: number) => session(id)]) {
      expect(await bench.client.modify(make(7))).toBe(NOT_FOUND);
      expect(await bench.client.delete(make(7))).toBe(NOT_FOUND);
      expect(await bench.client.insert(make(7))).toBe(0);
      expect(await bench.client.insert(make(7))).toBe(ALREADY_EXISTS);
      expect(await bench.client.modify(make(7))).toBe(0);
      expect(await bench.client.delete(make(7))).toBe(0);
    }
    expect(bench.device.program!.groups.size + bench.device.program!.sessions.size).toBe(0);
    expect(await bench.client.insert({ packetReplicationEngineEntry: {} })).toBe(INVALID_ARGUMENT);
    expect(await bench.client.readCode({ packetReplicationEngineEntry: {} })).toBe(INVALID_ARGUMENT);
  });

  it('row 70: clone sessions', async () => {
    expect(await bench.client.insert(session(0))).toBe(INVALID_ARGUMENT);
    expect(await bench.client.insert(session(1, { classOfService: 3 }))).toBe(INVALID_ARGUMENT);
    expect(await bench.client.insert(session(1, { packetLengthBytes: -1 }))).toBe(INVALID_ARGUMENT);
    expect(await bench.client.insert(session(1, { packetLengthBytes: 128 }))).toBe(0);
    expect(bench.device.program!.sessions.get(1)).toEqual({ replicas: [{ port: 3, instance: 0 }], truncateBytes: 128 });
    expect(await read({ cloneSessionEntry: {} })).toMatchObject([
      { cloneSessionEntry: { sessionId: 1, packetLengthBytes: 128 } },
    ]);
  });

  it('row 71: reads consider the id only, 0 is all', async () => {
    await bench.client.insert(group(1, [replica(1)]));
    await bench.client.insert(group(2, [replica(2)]));
    expect(await read({ multicastGroupEntry: { metadata: bytes(1) } })).toHaveLength(2);
    expect(await read({ multicastGroupEntry: { multicastGroupId: 2, replicas: [{ egressPort: 9 }] } })).toHaveLength(1);
    expect(await read({ multicastGroupEntry: { multicastGroupId: 3 } })).toHaveLength(0);
    expect(await read({ cloneSessionEntry: {} })).toHaveLength(0);
  });

  it('keeps to the limits that the program states', async () => {
    const limits =
      'pkg_info { platform_properties { multicast_group_table_size: 2 multicast_group_table_total_replicas: 3 multicast_group_table_max_replicas_per_entry: 2 } }';
    await bench.client.set(ConfigAction.VERIFY_AND_COMMIT, {
      ...SAMPLE_CONFIG,
      p4info: parseP4InfoText(limits + SAMPLE_P4INFO),
    });
    expect(await bench.client.insert(group(1, [replica(1), replica(2), replica(3)]))).toBe(RESOURCE_EXHAUSTED);
    expect(await bench.client.insert(group(1, [replica(1), replica(2)]))).toBe(0);
    expect(await bench.client.insert(group(2, [replica(1), replica(2)]))).toBe(RESOURCE_EXHAUSTED);
    expect(await bench.client.insert(group(2))).toBe(0);
    expect(await bench.client.insert(group(3))).toBe(RESOURCE_EXHAUSTED);
    expect(await bench.client.modify(group(2, [replica(1)]))).toBe(0);
  });
});
