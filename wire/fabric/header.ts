import { crc32 } from 'node:zlib';
import {
  FABRIC_SOURCE_SYMBOLS,
  FABRIC_TYPE_DATA,
  FABRIC_TYPE_NACK,
  FABRIC_TYPE_PROBE,
  FABRIC_TYPE_REPAIR,
  FABRIC_VERSION,
} from '../../p4/build/constants.ts';
import { readUint16, readUint32, writeUint16, writeUint32 } from '../packet/integers.ts';
import type { ObjectIdHalves } from './object-id.ts';

export const FABRIC_HEADER_BYTES = 40;
/** Symbols of a block, source and parity: 0..254. */
export const FABRIC_SYMBOLS = 255;

/** The CRC covers what no switch changes: bytes 0..31 and the payload. */
const COVERED_BYTES = 32;
const CRC_TABLE = makeCrcTable();
const NO_PAYLOAD = new Uint8Array(0);

/** The fabric header as hosts see it; docs/protocol.md has the table. */
export interface FabricHeader extends ObjectIdHalves {
  /** FABRIC_TYPE_*: 1..8. */
  readonly type: number;
  /** FABRIC_FLAG_*. */
  readonly flags: number;
  readonly label: number;
  readonly objectVersion: number;
  /** 0: a full image. */
  readonly baseVersion: number;
  /** SYNC: the number of blocks whose source symbols have all been sent. */
  readonly block: number;
  readonly symbol: number;
  /** Of this block; 0 where no block is meant. */
  readonly sourceSymbols: number;
  /** NACK: symbols still missing. REPAIR: symbols of the same answer still to come. REPORT: worst queue level. */
  readonly need: number;
  readonly epoch: number;
}

/** A header that passed every check, what switches wrote into it, and its payload. */
export interface FabricPacket extends FabricHeader {
  /** FABRIC_MARK_*. */
  readonly marks: number;
  /** Worst queue level along the path, 0..255. */
  readonly queueLevel: number;
  readonly hops: number;
  /** A view into the datagram. */
  readonly payload: Uint8Array;
}

/** A packet that is filled in again for every datagram, where one at a time is looked at. */
export type ReusableFabricPacket = { -readonly [Field in keyof FabricPacket]: FabricPacket[Field] };

export function emptyFabricPacket(): ReusableFabricPacket {
  return {
    type: 0,
    flags: 0,
    label: 0,
    objectIdHigh: 0,
    objectIdLow: 0,
    objectVersion: 0,
    baseVersion: 0,
    block: 0,
    symbol: 0,
    sourceSymbols: 0,
    need: 0,
    epoch: 0,
    marks: 0,
    queueLevel: 0,
    hops: 0,
    payload: NO_PAYLOAD,
  };
}

/** Why a datagram is not a fabric packet, in the order of the checks. */
export type FabricFault = 'too short' | 'version' | 'type' | 'payload length' | 'source symbols' | 'symbol' | 'crc';

/**
 * Checks everything that can be checked without knowing the transfer. Faults are results, not exceptions: a lossy network makes them
 * at line rate.
 */
export function decodeFabric(datagram: Uint8Array): FabricPacket | FabricFault {
  const packet = emptyFabricPacket();
  return decodeFabricInto(packet, datagram) ?? packet;
}

/**
 * The same without a new object.
 * @param packet filled in, and valid as long as the datagram; untouched where there is a fault
 */
export function decodeFabricInto(packet: ReusableFabricPacket, datagram: Uint8Array): FabricFault | undefined {
  if (datagram.length < FABRIC_HEADER_BYTES) return 'too short';
  if (datagram[0] >> 4 !== FABRIC_VERSION) return 'version';
  const type = datagram[0] & 15;
  if (type < FABRIC_TYPE_DATA || type > FABRIC_TYPE_PROBE) return 'type';
  const payloadBytes = datagram.length - FABRIC_HEADER_BYTES;
  if (readUint16(datagram, 2) !== payloadBytes) return 'payload length';
  const symbol = datagram[28];
  const sourceSymbols = datagram[29];
  const aboutBlock = type === FABRIC_TYPE_DATA || type === FABRIC_TYPE_REPAIR || type === FABRIC_TYPE_NACK;
  if (sourceSymbols > FABRIC_SOURCE_SYMBOLS || (aboutBlock && sourceSymbols === 0)) return 'source symbols';
  if (type === FABRIC_TYPE_DATA && symbol >= sourceSymbols) return 'symbol';
  if (type === FABRIC_TYPE_REPAIR && (symbol < FABRIC_SOURCE_SYMBOLS || symbol >= FABRIC_SYMBOLS)) return 'symbol';
  const payload =
    payloadBytes === 0
      ? NO_PAYLOAD
      : new Uint8Array(datagram.buffer, datagram.byteOffset + FABRIC_HEADER_BYTES, payloadBytes);
  if (checksumOf(datagram, payload) !== readUint32(datagram, COVERED_BYTES)) return 'crc';
  packet.type = type;
  packet.flags = datagram[1];
  packet.label = readUint32(datagram, 4);
  packet.objectIdHigh = readUint32(datagram, 8);
  packet.objectIdLow = readUint32(datagram, 12);
  packet.objectVersion = readUint32(datagram, 16);
  packet.baseVersion = readUint32(datagram, 20);
  packet.block = readUint32(datagram, 24);
  packet.symbol = symbol;
  packet.sourceSymbols = sourceSymbols;
  packet.need = datagram[30];
  packet.epoch = datagram[31];
  packet.marks = datagram[36];
  packet.queueLevel = datagram[37];
  packet.hops = datagram[38];
  packet.payload = payload;
  return undefined;
}

/**
 * Writes the header in front of a payload that already stands at byte 40, CRC included; what switches write is 0.
 * @param datagram exactly the header and the payload
 */
export function sealFabric(datagram: Uint8Array, header: FabricHeader): void {
  datagram[0] = (FABRIC_VERSION << 4) | header.type;
  datagram[1] = header.flags;
  writeUint16(datagram, 2, datagram.length - FABRIC_HEADER_BYTES);
  writeUint32(datagram, 4, header.label);
  writeUint32(datagram, 8, header.objectIdHigh);
  writeUint32(datagram, 12, header.objectIdLow);
  writeUint32(datagram, 16, header.objectVersion);
  writeUint32(datagram, 20, header.baseVersion);
  writeUint32(datagram, 24, header.block);
  datagram[28] = header.symbol;
  datagram[29] = header.sourceSymbols;
  datagram[30] = header.need;
  datagram[31] = header.epoch;
  writeUint32(datagram, COVERED_BYTES, checksumOf(datagram, datagram.subarray(FABRIC_HEADER_BYTES)));
  writeUint32(datagram, 36, 0);
}

/**
 * Writes header and payload into `buffer`.
 * @param buffer at least 40 bytes plus the payload
 * @returns the datagram, a view on `buffer`
 */
export function encodeFabric(buffer: Uint8Array, header: FabricHeader, payload: Uint8Array): Uint8Array {
  const datagram = buffer.subarray(0, FABRIC_HEADER_BYTES + payload.length);
  datagram.set(payload, FABRIC_HEADER_BYTES);
  sealFabric(datagram, header);
  return datagram;
}

/** The label that a datagram claims, for handing it to its transfer; nothing is checked but the length. */
export function peekFabricLabel(datagram: Uint8Array): number | undefined {
  return datagram.length < FABRIC_HEADER_BYTES ? undefined : readUint32(datagram, 4);
}

/** The few bytes of the header by table: a second call of the library would cost more than they do. */
function checksumOf(datagram: Uint8Array, payload: Uint8Array): number {
  let crc = 0xffffffff;
  for (let i = 0; i < COVERED_BYTES; i++) crc = CRC_TABLE[(crc ^ datagram[i]) & 255] ^ (crc >>> 8);
  const covered = ~crc >>> 0;
  return payload.length === 0 ? covered : crc32(payload, covered);
}

/** Reflected, polynomial 0x04c11db7 (IEEE 802.3). */
function makeCrcTable(): Uint32Array {
  return Uint32Array.from({ length: 256 }, (_, byte) => {
    let crc = byte;
    for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0xedb88320 : crc >>> 1;
    return crc;
  });
}
