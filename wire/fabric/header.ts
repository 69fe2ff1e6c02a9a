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

/** Why a datagram is not a fabric packet, in the order of the checks. */
export type FabricFault = 'too short' | 'version' | 'type' | 'payload length' | 'source symbols' | 'symbol' | 'crc';

/**
 * Checks everything that can be checked without knowing the transfer. Faults are results, not exceptions: a lossy network makes them
 * at line rate.
 */
export function decodeFabric(datagram: Uint8Array): FabricPacket | FabricFault {
  if (datagram.length < FABRIC_HEADER_BYTES) return 'too short';
  if (datagram[0] >> 4 !== FABRIC_VERSION) return 'version';
  const type = datagram[0] & 15;
  if (type < FABRIC_TYPE_DATA || type > FABRIC_TYPE_PROBE) return 'type';
  if (readUint16(datagram, 2) !== datagram.length - FABRIC_HEADER_BYTES) return 'payload length';
  const symbol = datagram[28];
  const sourceSymbols = datagram[29];
  const aboutBlock = type === FABRIC_TYPE_DATA || type === FABRIC_TYPE_REPAIR || type === FABRIC_TYPE_NACK;
  if (sourceSymbols > FABRIC_SOURCE_SYMBOLS || (aboutBlock && sourceSymbols === 0)) return 'source symbols';
  if (type === FABRIC_TYPE_DATA && symbol >= sourceSymbols) return 'symbol';
  if (type === FABRIC_TYPE_REPAIR && (symbol < FABRIC_SOURCE_SYMBOLS || symbol >= FABRIC_SYMBOLS)) return 'symbol';
  if (checksumOf(datagram) !== readUint32(datagram, COVERED_BYTES)) return 'crc';
  return {
    type,
    flags: datagram[1],
    label: readUint32(datagram, 4),
    objectIdHigh: readUint32(datagram, 8),
    objectIdLow: readUint32(datagram, 12),
    objectVersion: readUint32(datagram, 16),
    baseVersion: readUint32(datagram, 20),
    block: readUint32(datagram, 24),
    symbol,
    sourceSymbols,
    need: datagram[30],
    epoch: datagram[31],
    marks: datagram[36],
    queueLevel: datagram[37],
    hops: datagram[38],
    payload: datagram.subarray(FABRIC_HEADER_BYTES),
  };
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
  writeUint32(datagram, COVERED_BYTES, checksumOf(datagram));
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

function checksumOf(datagram: Uint8Array): number {
  const covered = crc32(datagram.subarray(0, COVERED_BYTES));
  return datagram.length === FABRIC_HEADER_BYTES ? covered : crc32(datagram.subarray(FABRIC_HEADER_BYTES), covered);
}
