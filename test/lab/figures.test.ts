import { expect, test } from 'vitest';
import type { PortCount } from '../../controller/fabric/port-counters.ts';
import type { RolloutView, VersionView } from '../../controller/service.ts';
import { compareWithWires, difference, figuresOf, type Snapshot, type WireCount } from '../../lab/figures.ts';
import { FABRIC_TYPE_DATA, FABRIC_TYPE_NACK, FABRIC_TYPE_REPAIR, KIND_ARP } from '../../p4/build/constants.ts';
import type { HostNode } from '../../topologies/types.ts';

const LINK = { rateBitsPerSecond: 1e9, delayUs: 10, queueFrames: 100 };
const host = (name: string, kind: HostNode['kind'], at: string, port: number): HostNode => ({
  name,
  kind,
  switch: at,
  port,
  mac: '02:00:00:00:00:09',
  ip: '10.1.1.1',
  link: LINK,
});
/** One Memory Node and one server, a leaf each, one link between the leaves. */
const HOSTS = [host('mn1', 'memory-node', 'leaf1', 1), host('gpu1', 'gpu-server', 'leaf2', 1)];

const port = (
  at: string,
  number: number,
  direction: 'ingress' | 'egress',
  kind: number,
  packets: number,
  bytes: number,
): PortCount => ({ switch: at, port: number, direction, kind, packets, bytes });

const wire = (
  part: Partial<WireCount> & Pick<WireCount, 'class' | 'framesIn' | 'bytesIn' | 'framesLost' | 'bytesLost'>,
): WireCount => ({
  from: undefined,
  to: undefined,
  host: undefined,
  framesDelivered: part.framesIn - part.framesLost,
  bytesDelivered: part.bytesIn - part.bytesLost,
  authoredFrames: 0,
  authoredBytes: 0,
  ...part,
});

/** 100 DATA of 1,000 B, of which 2 get lost on the way up and 1 on the way down; a NACK of 100 B, a repair; an ARP reply by leaf2. */
const RUN: Snapshot = {
  ports: [
    port('leaf1', 1, 'ingress', FABRIC_TYPE_DATA, 98, 98_000),
    port('leaf1', 1, 'ingress', FABRIC_TYPE_REPAIR, 1, 1_000),
    port('leaf1', 2, 'egress', FABRIC_TYPE_DATA, 98, 99_764),
    port('leaf1', 2, 'egress', FABRIC_TYPE_REPAIR, 1, 1_018),
    port('leaf2', 2, 'ingress', FABRIC_TYPE_DATA, 98, 99_764),
    port('leaf2', 2, 'ingress', FABRIC_TYPE_REPAIR, 1, 1_018),
    port('leaf2', 1, 'egress', FABRIC_TYPE_DATA, 98, 98_000),
    port('leaf2', 1, 'egress', FABRIC_TYPE_REPAIR, 1, 1_000),
    port('leaf2', 1, 'ingress', KIND_ARP, 1, 42),
    port('leaf2', 1, 'ingress', FABRIC_TYPE_NACK, 1, 100),
    port('leaf2', 2, 'egress', FABRIC_TYPE_NACK, 1, 118),
    port('leaf1', 2, 'ingress', FABRIC_TYPE_NACK, 1, 118),
    port('leaf1', 1, 'egress', FABRIC_TYPE_NACK, 1, 100),
  ],
  wires: [
    wire({
      class: 'host-up',
      host: 'mn1',
      to: { switch: 'leaf1', port: 1 },
      framesIn: 101,
      bytesIn: 101_000,
      framesLost: 2,
      bytesLost: 2_000,
    }),
    wire({
      class: 'host-down',
      host: 'mn1',
      from: { switch: 'leaf1', port: 1 },
      framesIn: 1,
      bytesIn: 100,
      framesLost: 0,
      bytesLost: 0,
    }),
    wire({
      class: 'core',
      from: { switch: 'leaf1', port: 2 },
      to: { switch: 'leaf2', port: 2 },
      framesIn: 99,
      bytesIn: 100_782,
      framesLost: 0,
      bytesLost: 0,
    }),
    wire({
      class: 'core',
      from: { switch: 'leaf2', port: 2 },
      to: { switch: 'leaf1', port: 2 },
      framesIn: 1,
      bytesIn: 118,
      framesLost: 0,
      bytesLost: 0,
    }),
    wire({
      class: 'host-up',
      host: 'gpu1',
      to: { switch: 'leaf2', port: 1 },
      framesIn: 2,
      bytesIn: 142,
      framesLost: 0,
      bytesLost: 0,
    }),
    wire({
      class: 'host-down',
      host: 'gpu1',
      from: { switch: 'leaf2', port: 1 },
      framesIn: 100,
      bytesIn: 99_042,
      framesLost: 1,
      bytesLost: 1_000,
      authoredFrames: 1,
      authoredBytes: 42,
    }),
  ],
};

test('counters and wires that agree are counted, whichever side leaves something out', () => {
  expect(compareWithWires(RUN)).toEqual({ compared: 8, packets: 401, mismatches: [] });
});

test('a counter that differs from its wire is named with both figures', () => {
  const ports = RUN.ports.map((count) => (count.kind === KIND_ARP ? { ...count, bytes: 60 } : count));
  expect(compareWithWires({ ...RUN, ports }).mismatches).toEqual([
    'leaf2 port 1 ingress: the switch counted 2 packets, 160 bytes; the wire 2, 142',
  ]);
  const missing = RUN.ports.filter((count) => count.switch !== 'leaf1' || count.port !== 2);
  expect(compareWithWires({ ...RUN, ports: missing }).mismatches).toHaveLength(2);
});

test('a difference leaves out what was there before', () => {
  const again: Snapshot = {
    ports: RUN.ports.map((count) => ({ ...count, packets: 3 * count.packets, bytes: 3 * count.bytes })),
    wires: RUN.wires.map((count) => ({
      ...count,
      framesIn: 2 * count.framesIn,
      bytesIn: 2 * count.bytesIn,
      framesDelivered: 2 * count.framesDelivered,
      bytesDelivered: 2 * count.bytesDelivered,
      framesLost: 2 * count.framesLost,
      bytesLost: 2 * count.bytesLost,
      authoredFrames: 2 * count.authoredFrames,
      authoredBytes: 2 * count.authoredBytes,
    })),
  };
  const change = difference(RUN, again);
  expect(change.wires).toEqual(RUN.wires);
  expect(change.ports[0]).toMatchObject({ packets: 2 * 98, bytes: 2 * 98_000 });
});

test('bytes by class of link, NACKs and repairs come from the counters, what got lost before them from the wires', () => {
  const version: VersionView = {
    object: 'o',
    objectId: '0001000000000001',
    version: 2,
    sizeBytes: 95_000,
    rootSha256: '',
    createdAt: '',
    payloads: [
      { base: null, sizeBytes: 95_000, memoryNodes: ['mn1'] },
      { base: 1, sizeBytes: 900, memoryNodes: ['mn1'] },
    ],
    holders: 1,
  };
  const rollout: RolloutView = {
    id: 'r',
    object: 'o',
    version: 2,
    state: 'active',
    plan: {
      object: 'o',
      objectId: '0001000000000001',
      version: 2,
      targets: 1,
      cohorts: [
        {
          kind: 'full',
          from: null,
          servers: ['gpu1'],
          mechanism: 'multicast',
          payload: { base: null, sizeBytes: 95_000 },
          source: 'mn1',
          stripes: [],
          predictedSeconds: null,
          reasons: [],
          rejected: [],
        },
      ],
      bytes: {
        source: 95_000,
        coreLinks: 95_000,
        hostLinks: 95_000,
        unicastSource: 95_000,
        unicastCoreLinks: 95_000,
      },
      warnings: [],
    },
    servers: [],
    transfers: [
      {
        label: 1,
        rollout: 'r',
        object: 'o',
        version: 2,
        base: null,
        source: 'mn1',
        state: 'closed',
        receivers: 1,
        complete: 1,
        payloadBytes: 95_000,
        segmentBytes: 8192,
        pathSegmentBytes: null,
        error: null,
        sender: {},
        receiverTotals: { nacksSent: 2, unicastBytes: 10 },
      },
    ],
    verified: 1,
    phases: [],
    startedAt: '',
    endedAt: '',
    error: null,
  };
  const phases = [{ name: 'distribute', seconds: 1 }];
  expect(figuresOf({ rollout, version, hosts: HOSTS, change: RUN, phases, seconds: 2 })).toEqual({
    object: 'o',
    version: 2,
    servers: 1,
    verified: 1,
    cohorts: { current: 0, delta: 0, full: 1 },
    objectBytes: 95_000,
    deltaBytes: 900,
    source: { bytes: 101_000, lowerBoundBytes: 95_000, unicastBytes: 95_000 },
    coreLinks: { bytes: 100_900, lowerBoundBytes: 95_000, unicastBytes: 95_000 },
    hostLinks: { bytes: 101_000 + 142 + 99_000 + 100, lowerBoundBytes: 190_000, unicastBytes: 190_000 },
    rangeReadBytes: 10,
    nacksSent: 2,
    nacksAtSource: 1,
    repairSymbols: 1,
    lostPackets: 3,
    packets: 304,
    phases,
    seconds: 2,
  });
});
