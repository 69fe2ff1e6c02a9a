import { permit, portRole } from '../../controller/tables/admission.ts';
import { EntityFactory } from '../../controller/tables/entities.ts';
import { egressRole, hostRewrites } from '../../controller/tables/replicas.ts';
import { portBit, transferEntities } from '../../controller/tables/transfers.ts';
import { readFabricProgram } from '../../lab/p4-program.ts';
import {
  FABRIC_TYPE_DATA,
  FABRIC_TYPE_NACK,
  FABRIC_TYPE_REPAIR,
  FABRIC_UDP_PORT,
  RECEIVER_UDP_PORT_FIRST,
} from '../../p4/build/constants.ts';
import { FrameMemory } from '../../switch/runtime/frames.ts';
import type { HostNode } from '../../topologies/types.ts';
import { encodeFabric, FABRIC_HEADER_BYTES } from '../../wire/fabric/header.ts';
import { splitObjectId } from '../../wire/fabric/object-id.ts';
import type { Entity } from '../../wire/p4runtime/messages.ts';
import { buildUdpFrame, UDP_FRAME_OVERHEAD_BYTES } from '../../wire/packet/udp.ts';

/** Lengths of the frames that come in: of an MTU of 1,500 and of 9,000, with room for what is in front of them. */
export const FRAME_SIZES = [1400, 8300] as const;
export const UPSTREAM = 1;
export const DOWNSTREAM = 2;

const TAG_BYTES = 18;
/** NACK, REPAIR and 18 DATA make a turn; every turn asks for another block. */
export const TURN = 20;
/** So many that a block is not asked for again before its NACKs are no longer eliminated (10 ms), at up to a million packets per second. */
const BLOCKS = 512;
/** Turns between a NACK and the REPAIR that answers it: they come in at different ports, and ports do not wait for each other. */
const TURNS_TO_REPAIR = 32;
/** Other transfers on the switch: the label is found among them. */
const OTHER_TRANSFERS = 1000;
const TENANT = 7;
const OBJECT_ID = (BigInt(TENANT) << 48n) | 1234n;
const LABEL = 0x2a01;
const GROUP = 1;

/** Where in the tree the switch stands: what is on the ports decides whether tags are pushed, popped or kept. */
export interface Place {
  readonly name: string;
  readonly upstreamIsHost: boolean;
  readonly downstreamIsHost: boolean;
}

export const PLACES: readonly Place[] = [
  { name: 'first switch (pushes the tag)', upstreamIsHost: true, downstreamIsHost: false },
  { name: 'middle switch (keeps the tag)', upstreamIsHost: false, downstreamIsHost: false },
  { name: 'last switch (pops the tag, rewrites)', upstreamIsHost: false, downstreamIsHost: true },
];

/** A frame that comes in: where it stands. */
export interface Arrival {
  readonly port: number;
  readonly memory: FrameMemory;
  readonly start: number;
  readonly end: number;
}

/** What the controller would write to a switch at this place for the transfer, and for many others. */
export function entitiesOf(place: Place): Entity[] {
  const factory = new EntityFactory(readFabricProgram().index);
  const ports = [
    { port: UPSTREAM, host: place.upstreamIsHost },
    { port: DOWNSTREAM, host: place.downstreamIsHost },
  ];
  const perPort = ports.flatMap(({ port, host }) => {
    const bit = 1 << port;
    const role = host ? 'host' : 'fabric';
    const both = [portRole(factory, port, role), portBit(factory, port, bit), egressRole(factory, port, role, bit)];
    if (!host) return both;
    const node: HostNode = {
      name: `host${port}`,
      kind: 'gpu-server',
      switch: 'bench',
      port,
      mac: `02:00:00:00:01:0${port}`,
      ip: `10.0.1.${port}`,
      link: { rateBitsPerSecond: 1e9, delayUs: 0, queueFrames: 1 },
    };
    return [
      ...both,
      ...[FABRIC_TYPE_DATA, FABRIC_TYPE_NACK, FABRIC_TYPE_REPAIR].map((type) => permit(factory, port, TENANT, type)),
      ...hostRewrites(factory, node, RECEIVER_UDP_PORT_FIRST),
    ];
  });
  const transfers = Array.from({ length: OTHER_TRANSFERS + 1 }, (_, i) =>
    transferEntities(factory, {
      label: LABEL + i,
      tenant: TENANT,
      multicastGroup: GROUP + i,
      upstreamPort: UPSTREAM,
      downstreamPorts: [DOWNSTREAM],
      treeMask: 1 << DOWNSTREAM,
      transferIndex: 1 + i,
    }),
  );
  return [...perPort, ...transfers.flat()];
}

/**
 * One turn per block: a receiver asks, the sender answers a block that was asked for before, then new data. To be sent again and again; all frames stand in
 * one memory. Every frame comes out once, except that the first time the first REPAIRs answer what nobody asked for.
 */
export function arrivals(place: Place, frameBytes: number): Arrival[] {
  const downTagged = !place.upstreamIsHost;
  const data = Array.from({ length: TURN - 2 }, (_, i) =>
    fabricFrame(FABRIC_TYPE_DATA, BLOCKS, i, frameBytes, downTagged),
  );
  const frames = [
    ...data,
    ...Array.from({ length: BLOCKS }, (_, block) => [
      fabricFrame(FABRIC_TYPE_NACK, block, 0, frameBytes, !place.downstreamIsHost),
      fabricFrame(FABRIC_TYPE_REPAIR, block, 64, frameBytes, downTagged),
    ]).flat(),
  ];
  const memory = new FrameMemory(new Uint8Array(frames.length * frameBytes));
  for (const [i, frame] of frames.entries()) memory.bytes.set(frame, i * frameBytes);
  const arrival = (port: number, i: number): Arrival => ({
    port,
    memory,
    start: i * frameBytes,
    end: (i + 1) * frameBytes,
  });
  const everyData = data.map((_, i) => arrival(UPSTREAM, i));
  return Array.from({ length: BLOCKS }, (_, turn) => {
    const repaired = (turn + BLOCKS - TURNS_TO_REPAIR) % BLOCKS;
    return [
      arrival(DOWNSTREAM, data.length + 2 * turn),
      arrival(UPSTREAM, data.length + 2 * repaired + 1),
      ...everyData,
    ];
  }).flat();
}

/** Packets after which every REPAIR has been asked for. */
export const SETTLED_AFTER = TURN * TURNS_TO_REPAIR;

/** Bytes by which frames grow on average on their way through, NACKs included. */
export function averageGrowth(place: Place): number {
  const growth = TAG_BYTES * (Number(place.upstreamIsHost) - Number(place.downstreamIsHost));
  // NACKs go the other way: what tags add to the rest they take from them.
  return (growth * (TURN - 2)) / TURN;
}

function fabricFrame(type: number, block: number, symbol: number, frameBytes: number, tagged: boolean): Uint8Array {
  const payloadBytes = frameBytes - UDP_FRAME_OVERHEAD_BYTES - FABRIC_HEADER_BYTES - (tagged ? TAG_BYTES : 0);
  const datagram = encodeFabric(
    new Uint8Array(FABRIC_HEADER_BYTES + payloadBytes),
    {
      type,
      flags: 0,
      label: LABEL,
      ...splitObjectId(OBJECT_ID),
      objectVersion: 22,
      baseVersion: 0,
      block,
      symbol,
      sourceSymbols: 64,
      need: type === FABRIC_TYPE_NACK ? 1 : 0,
      epoch: 0,
    },
    new Uint8Array(payloadBytes).fill(symbol),
  );
  const frame = buildUdpFrame(
    {
      sourceMac: 0x0200_0000_0001,
      destinationMac: 0x0200_0000_0002,
      sourceIp: 0x0a00_0001,
      destinationIp: 0x0a00_0002,
      sourcePort: FABRIC_UDP_PORT,
      destinationPort: FABRIC_UDP_PORT,
    },
    datagram,
  );
  return tagged ? withTag(frame) : frame;
}

function withTag(frame: Uint8Array): Uint8Array {
  const tagged = new Uint8Array(frame.length + TAG_BYTES);
  tagged.set(frame.subarray(0, 12));
  const view = new DataView(tagged.buffer);
  view.setUint16(12, 0x88b5);
  view.setUint16(14, 0x0800);
  view.setBigUint64(16, OBJECT_ID);
  view.setUint32(24, 22);
  view.setUint8(31, 1);
  tagged.set(frame.subarray(14), 14 + TAG_BYTES);
  return tagged;
}
