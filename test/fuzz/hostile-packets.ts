import { encodeSymbol } from '../../agents/fec/reed-solomon.ts';
import type { StreamLayout } from '../../agents/protocol/layout.ts';
import type { RejectionCounters } from '../../agents/protocol/rejections.ts';
import type { Random } from '../../base/random.ts';
import {
  FABRIC_FLAG_CLOSED,
  FABRIC_MARK_ANEW,
  FABRIC_SOURCE_SYMBOLS,
  FABRIC_TYPE_DATA,
  FABRIC_TYPE_DONE,
  FABRIC_TYPE_FETCH,
  FABRIC_TYPE_NACK,
  FABRIC_TYPE_REPAIR,
  FABRIC_TYPE_REPORT,
  FABRIC_TYPE_SYNC,
} from '../../p4/build/constants.ts';
import { decodeFabric, encodeFabric, FABRIC_SYMBOLS, type FabricPacket } from '../../wire/fabric/header.ts';
import { mutateBytes, randomBytes } from './mutate.ts';
import { pick } from './target.ts';

/** Packets that a sender or a receiver should not get, made of those that it does get. */

export interface Side {
  /** Types that this side takes. */
  readonly takes: readonly number[];
  /** Types that are only for the other one, or for nobody yet. PROBE is for either. */
  readonly refuses: readonly number[];
}

const DOWN = [FABRIC_TYPE_DATA, FABRIC_TYPE_REPAIR, FABRIC_TYPE_SYNC];
const UP = [FABRIC_TYPE_NACK, FABRIC_TYPE_DONE, FABRIC_TYPE_REPORT];
export const SENDER_SIDE: Side = { takes: UP, refuses: [...DOWN, FABRIC_TYPE_FETCH] };
export const RECEIVER_SIDE: Side = { takes: DOWN, refuses: [...UP, FABRIC_TYPE_FETCH] };

export interface Attack {
  readonly random: Random;
  readonly side: Side;
  /** A packet that this side was to get, well-formed. */
  readonly packet: FabricPacket;
  readonly datagram: Uint8Array;
  /** What either side was sent before, in this transfer. */
  readonly seen: readonly Uint8Array[];
  /** What others were sent. */
  readonly foreign: readonly Uint8Array[];
  readonly layout: StreamLayout;
  readonly stream: Uint8Array;
}

export interface Hostile {
  readonly datagram: Uint8Array;
  /** The counter that has to show it; undefined where that depends. */
  readonly counter?: Exclude<keyof RejectionCounters, 'packetsRejected'>;
}

type Make = (attack: Attack) => Hostile | undefined;

/** None of them can bring a wrong byte that looks right. */
export const TRUTHFUL: Readonly<Record<string, Make>> = {
  noise: ({ random }) => ({ datagram: randomBytes(random, random.below(random.chance(0.9) ? 60 : 2000)) }),
  damage: ({ random, datagram }) => ({ datagram: mutateBytes(random, datagram) }),
  short: ({ random, datagram }) => ({ datagram: datagram.slice(0, random.below(40)), counter: 'rejectedLength' }),
  'length field': ({ random, datagram }) => {
    const bytes = datagram.slice(0, datagram.length + 1 - random.below(2));
    bytes[2 + random.below(2)] ^= 1 + random.below(255);
    return { datagram: bytes, counter: 'rejectedLength' };
  },
  version: ({ random, datagram }) => {
    const bytes = datagram.slice();
    bytes[0] ^= (1 + random.below(15)) << 4;
    return { datagram: bytes, counter: 'rejectedVersion' };
  },
  type: ({ random, datagram }) => {
    const bytes = datagram.slice();
    bytes[0] = (bytes[0]! & 0xf0) | pick(random, [0, 9, 10, 11, 12, 13, 14, 15]);
    return { datagram: bytes, counter: 'rejectedType' };
  },
  'other side': ({ random, side, packet }) => {
    const type = pick(random, side.refuses);
    const sourceSymbols = Math.max(1, packet.sourceSymbols);
    const symbol = type === FABRIC_TYPE_REPAIR ? parity(random) : 0;
    return { datagram: seal({ ...packet, type, sourceSymbols, symbol }), counter: 'rejectedType' };
  },
  crc: ({ random, datagram }) => {
    const bytes = datagram.slice();
    // The CRC itself, or what it covers behind the fields that are checked before it.
    const at = random.chance(0.3) ? 32 + random.below(4) : pick(random, [1, 4, 8, 16, 20, 24, 30, 31, 40]);
    if (at >= bytes.length) return undefined;
    bytes[at] ^= 1 << random.below(8);
    return { datagram: bytes, counter: 'rejectedCrc' };
  },
  label: ({ random, packet }) => ({
    datagram: seal({ ...packet, label: other(random, packet.label) }),
    counter: 'rejectedLabel',
  }),
  'other transfer': ({ random, foreign, packet }) => {
    if (foreign.length === 0) return undefined;
    const decoded = decodeFabric(pick(random, foreign));
    if (typeof decoded === 'string' || decoded.type !== packet.type) return undefined;
    return { datagram: seal({ ...decoded, label: other(random, packet.label) }), counter: 'rejectedLabel' };
  },
  object: ({ random, packet }) => {
    const field = pick(random, ['objectIdHigh', 'objectIdLow', 'objectVersion', 'baseVersion'] as const);
    return { datagram: seal({ ...packet, [field]: other(random, packet[field]) }), counter: 'rejectedObject' };
  },
  'block that does not exist': ({ random, packet, layout }) => {
    if (packet.type === FABRIC_TYPE_DONE || packet.type === FABRIC_TYPE_REPORT) return undefined;
    const beyond = layout.blocks + (packet.type === FABRIC_TYPE_SYNC ? 1 : 0);
    const block = random.chance(0.5) ? beyond + random.below(3) : beyond + random.below(2 ** 31);
    return { datagram: seal({ ...packet, block }), counter: 'rejectedBlock' };
  },
  'source symbols': ({ random, packet }) => {
    if (packet.sourceSymbols === 0) return undefined;
    const sourceSymbols = (packet.sourceSymbols + 1 + random.below(255)) & 255;
    return { datagram: seal({ ...packet, sourceSymbols }), counter: 'rejectedSymbol' };
  },
  'segment length': ({ random, packet }) => {
    if (packet.payload.length === 0) return undefined;
    const payload = random.chance(0.7)
      ? packet.payload.subarray(0, random.below(packet.payload.length))
      : Buffer.concat([packet.payload, randomBytes(random, 1 + random.below(40))]);
    return { datagram: seal({ ...packet, payload }), counter: 'rejectedLength' };
  },
  'parity that is none': ({ random, packet }) => {
    if (packet.type !== FABRIC_TYPE_REPAIR && packet.type !== FABRIC_TYPE_DATA) return undefined;
    const isRepair = packet.type === FABRIC_TYPE_REPAIR;
    const symbol = isRepair ? pick(random, [255, random.below(FABRIC_SOURCE_SYMBOLS)]) : parity(random);
    return { datagram: seal({ ...packet, symbol }), counter: 'rejectedSymbol' };
  },
  'field of no consequence': ({ random, packet }) => {
    const field = pick(random, ['flags', 'need', 'epoch'] as const);
    // A stream that is said to be closed is an attack of its own.
    const value = random.below(256) & (field === 'flags' ? ~FABRIC_FLAG_CLOSED : 255);
    return { datagram: seal({ ...packet, [field]: value }) };
  },
  'marks of switches': ({ random, packet }) => {
    const datagram = seal(packet);
    for (let at = 36; at < 40; at++) datagram[at] = random.below(256);
    return { datagram };
  },
  replay: ({ random, seen }) => ({ datagram: pick(random, seen).slice() }),
  NACK: ({ random, packet, layout }) => {
    const block = random.below(layout.blocks);
    const need = random.chance(0.5) ? random.below(20) : random.below(256);
    const sourceSymbols = layout.sourceSymbols(block);
    const header = { ...packet, type: FABRIC_TYPE_NACK, block, symbol: 0, sourceSymbols, need, payload: EMPTY };
    const datagram = seal(header);
    if (random.chance(0.5)) datagram[36] = FABRIC_MARK_ANEW;
    return { datagram };
  },
  DONE: (attack) => epochPacket(attack, FABRIC_TYPE_DONE),
  REPORT: (attack) => epochPacket(attack, FABRIC_TYPE_REPORT),
  SYNC: (attack) => epochPacket(attack, FABRIC_TYPE_SYNC, { block: attack.random.below(attack.layout.blocks + 1) }),
  'closed SYNC': (attack) =>
    attack.random.chance(0.01) ? epochPacket(attack, FABRIC_TYPE_SYNC, { flags: FABRIC_FLAG_CLOSED }) : undefined,
  'REPAIR nobody asked for': ({ random, packet, layout, stream }) => {
    const block = random.below(layout.blocks);
    const start = layout.blockStart(block);
    const sources = Array.from({ length: layout.sourceSymbols(block) }, (_, symbol) => {
      const offset = start + symbol * layout.segmentBytes;
      return stream.subarray(offset, offset + layout.segmentLength(block, symbol));
    });
    const payload = new Uint8Array(layout.symbolBytes(block));
    const symbol = parity(random);
    encodeSymbol(sources, symbol, payload);
    const need = random.below(20);
    const header = { ...packet, type: FABRIC_TYPE_REPAIR, block, symbol, sourceSymbols: sources.length, need, payload };
    return { datagram: seal(header) };
  },
};

/** These look right and are not: only hashes can tell. */
export const LYING: Readonly<Record<string, Make>> = {
  'wrong bytes': ({ random, packet }) =>
    packet.payload.length === 0
      ? undefined
      : { datagram: seal({ ...packet, payload: mutated(random, packet.payload) }) },
  'another place': ({ random, packet, layout }) => {
    if (packet.type !== FABRIC_TYPE_DATA && packet.type !== FABRIC_TYPE_REPAIR) return undefined;
    const block = random.below(layout.blocks);
    const sourceSymbols = layout.sourceSymbols(block);
    const symbol = packet.type === FABRIC_TYPE_REPAIR ? parity(random) : random.below(sourceSymbols);
    return { datagram: seal({ ...packet, block, symbol, sourceSymbols }) };
  },
};

const EMPTY = new Uint8Array(0);

/** With a right length and CRC; what switches write is 0. */
function seal(packet: FabricPacket): Uint8Array {
  return encodeFabric(new Uint8Array(40 + packet.payload.length), packet, packet.payload);
}

function epochPacket({ random, packet }: Attack, type: number, fields: Partial<FabricPacket> = {}): Hostile {
  const epoch = random.chance(0.5) ? packet.epoch : random.below(256);
  const header = {
    ...packet,
    type,
    epoch,
    flags: 0,
    symbol: 0,
    sourceSymbols: 0,
    need: random.below(256),
    payload: EMPTY,
  };
  return { datagram: seal({ ...header, block: 0, ...fields }) };
}

function parity(random: Random): number {
  return FABRIC_SOURCE_SYMBOLS + random.below(FABRIC_SYMBOLS - FABRIC_SOURCE_SYMBOLS);
}

function other(random: Random, value: number): number {
  return (random.chance(0.5) ? value ^ (1 << random.below(32)) : value + 1 + random.below(2 ** 31)) >>> 0;
}

function mutated(random: Random, bytes: Uint8Array): Uint8Array {
  const out = bytes.slice();
  for (let i = 1 + random.below(4); i > 0; i--) out[random.below(out.length)]! ^= 1 + random.below(255);
  return out;
}
