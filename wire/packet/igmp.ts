import { ETHERTYPE_IPV4, IP_PROTOCOL_IGMP } from '../../p4/build/constants.ts';
import { multicastMac } from './addresses.ts';
import { internetChecksum } from './checksum.ts';
import { ETHERNET_HEADER_BYTES, emitEthernet } from './ethernet.ts';
import { readUint16, readUint32, writeUint16, writeUint32 } from './integers.ts';
import { emitIpv4, IPV4_HEADER_BYTES } from './ipv4.ts';

/** Where general queries go. */
export const ALL_SYSTEMS_GROUP = 0xe000_0001;
/** Where hosts say that they leave (RFC 2236). */
export const ALL_ROUTERS_GROUP = 0xe000_0002;
/** Where reports of version 3 go. */
export const IGMPV3_ROUTERS_GROUP = 0xe000_0016;

/** Record types of version 3 (RFC 3376, section 4.2.12). */
export const MODE_IS_INCLUDE = 1;
export const MODE_IS_EXCLUDE = 2;
export const CHANGE_TO_INCLUDE_MODE = 3;
export const CHANGE_TO_EXCLUDE_MODE = 4;
export const ALLOW_NEW_SOURCES = 5;
export const BLOCK_OLD_SOURCES = 6;

const TYPE_QUERY = 0x11;
const TYPE_REPORT_1 = 0x12;
const TYPE_REPORT_2 = 0x16;
const TYPE_LEAVE = 0x17;
const TYPE_REPORT_3 = 0x22;

/** Of a message of versions 1 and 2, and of the fixed part of a report of version 3. */
const SHORT_BYTES = 8;
const QUERY_3_BYTES = 12;
const RECORD_BYTES = 8;
/** Internetwork control (RFC 3376, section 4). */
const TRAFFIC_CLASS = 0xc0;
/** Tells routers to look at packets that are not addressed to them (RFC 2113). */
const ROUTER_ALERT = Uint8Array.of(0x94, 0x04, 0x00, 0x00);

/** A querier asks who is a member: of anything (group 0), of one group, or of one group's sources. */
export interface IgmpQuery {
  readonly type: 'query';
  readonly version: 1 | 2 | 3;
  readonly group: number;
  /** Within this time answers are wanted, in tenths of a second; version 1 has none: 100. */
  readonly maxResponseTenths: number;
  /** Version 3; otherwise false, 0, 0 and none. */
  readonly suppress: boolean;
  readonly robustness: number;
  /** Seconds between general queries. */
  readonly intervalSeconds: number;
  readonly sources: readonly number[];
}

/** A host is a member of a group (versions 1 and 2). */
export interface IgmpReport {
  readonly type: 'report';
  readonly version: 1 | 2;
  readonly group: number;
}

/** A host leaves a group (version 2). */
export interface IgmpLeave {
  readonly type: 'leave';
  readonly group: number;
}

/** What a host listens to, or what has changed of it (version 3). */
export interface IgmpReport3 {
  readonly type: 'report of records';
  readonly records: readonly IgmpRecord[];
}

export interface IgmpRecord {
  /** One of the constants above; receivers ignore others. */
  readonly type: number;
  readonly group: number;
  readonly sources: readonly number[];
}

export type IgmpMessage = IgmpQuery | IgmpReport | IgmpLeave | IgmpReport3;

export type IgmpFault = 'too short' | 'checksum' | 'type' | 'length';

/**
 * Reads messages of all versions (RFC 1112, RFC 2236, RFC 3376). What follows a message is ignored, auxiliary data too.
 * @param bytes the payload of a whole IPv4 packet of protocol 2
 */
export function parseIgmp(bytes: Uint8Array): IgmpMessage | IgmpFault {
  if (bytes.length < SHORT_BYTES) return 'too short';
  if (internetChecksum(bytes) !== 0) return 'checksum';
  const group = readUint32(bytes, 4);
  switch (bytes[0]) {
    case TYPE_QUERY:
      return parseQuery(bytes, group);
    case TYPE_REPORT_1:
      return { type: 'report', version: 1, group };
    case TYPE_REPORT_2:
      return { type: 'report', version: 2, group };
    case TYPE_LEAVE:
      return { type: 'leave', group };
    case TYPE_REPORT_3:
      return parseRecords(bytes);
    default:
      return 'type';
  }
}

/** The version is told by length and time (RFC 3376, section 7.1). */
function parseQuery(bytes: Uint8Array, group: number): IgmpQuery | IgmpFault {
  if (bytes.length === SHORT_BYTES) {
    const version = bytes[1] === 0 ? 1 : 2;
    const maxResponseTenths = version === 1 ? 100 : bytes[1];
    const rest = { suppress: false, robustness: 0, intervalSeconds: 0, sources: [] };
    return { type: 'query', version, group, maxResponseTenths, ...rest };
  }
  if (bytes.length < QUERY_3_BYTES) return 'length';
  const sources = readSources(bytes, QUERY_3_BYTES, readUint16(bytes, 10));
  if (sources === undefined) return 'length';
  return {
    type: 'query',
    version: 3,
    group,
    maxResponseTenths: decodeTime(bytes[1]),
    suppress: (bytes[8] & 8) !== 0,
    robustness: bytes[8] & 7,
    intervalSeconds: decodeTime(bytes[9]),
    sources,
  };
}

function parseRecords(bytes: Uint8Array): IgmpReport3 | IgmpFault {
  const count = readUint16(bytes, 6);
  const records: IgmpRecord[] = [];
  let offset = SHORT_BYTES;
  for (let i = 0; i < count; i++) {
    if (offset + RECORD_BYTES > bytes.length) return 'length';
    const sources = readSources(bytes, offset + RECORD_BYTES, readUint16(bytes, offset + 2));
    if (sources === undefined) return 'length';
    records.push({ type: bytes[offset], group: readUint32(bytes, offset + 4), sources });
    offset += RECORD_BYTES + 4 * sources.length + 4 * bytes[offset + 1];
    if (offset > bytes.length) return 'length';
  }
  return { type: 'report of records', records };
}

function readSources(bytes: Uint8Array, offset: number, count: number): number[] | undefined {
  if (offset + 4 * count > bytes.length) return undefined;
  return Array.from({ length: count }, (_, i) => readUint32(bytes, offset + 4 * i));
}

/** Length of {@link emitIgmp}'s output. */
export function igmpBytes(message: IgmpMessage): number {
  if (message.type === 'query') return message.version === 3 ? QUERY_3_BYTES + 4 * message.sources.length : SHORT_BYTES;
  if (message.type !== 'report of records') return SHORT_BYTES;
  return message.records.reduce((sum, { sources }) => sum + RECORD_BYTES + 4 * sources.length, SHORT_BYTES);
}

/** Writes the message at `offset`. Times that the format cannot say become the next shorter ones that it can. */
export function emitIgmp(bytes: Uint8Array, offset: number, message: IgmpMessage): void {
  const length = igmpBytes(message);
  bytes.fill(0, offset, offset + length);
  switch (message.type) {
    case 'query':
      emitQuery(bytes, offset, message);
      break;
    case 'report':
      bytes[offset] = message.version === 1 ? TYPE_REPORT_1 : TYPE_REPORT_2;
      writeUint32(bytes, offset + 4, message.group);
      break;
    case 'leave':
      bytes[offset] = TYPE_LEAVE;
      writeUint32(bytes, offset + 4, message.group);
      break;
    case 'report of records':
      emitRecords(bytes, offset, message);
  }
  writeUint16(bytes, offset + 2, internetChecksum(bytes, offset, length));
}

function emitQuery(bytes: Uint8Array, offset: number, query: IgmpQuery): void {
  bytes[offset] = TYPE_QUERY;
  writeUint32(bytes, offset + 4, query.group);
  if (query.version !== 1) bytes[offset + 1] = Math.min(query.maxResponseTenths, 255);
  if (query.version !== 3) return;
  bytes[offset + 1] = encodeTime(query.maxResponseTenths);
  bytes[offset + 8] = (query.suppress ? 8 : 0) | (query.robustness > 7 ? 0 : query.robustness);
  bytes[offset + 9] = encodeTime(query.intervalSeconds);
  emitSources(bytes, offset + 10, offset + QUERY_3_BYTES, query.sources);
}

function emitRecords(bytes: Uint8Array, offset: number, { records }: IgmpReport3): void {
  bytes[offset] = TYPE_REPORT_3;
  writeUint16(bytes, offset + 6, records.length);
  let at = offset + SHORT_BYTES;
  for (const { type, group, sources } of records) {
    bytes[at] = type;
    writeUint32(bytes, at + 4, group);
    emitSources(bytes, at + 2, at + RECORD_BYTES, sources);
    at += RECORD_BYTES + 4 * sources.length;
  }
}

function emitSources(bytes: Uint8Array, countAt: number, at: number, sources: readonly number[]): void {
  writeUint16(bytes, countAt, sources.length);
  for (const [i, source] of sources.entries()) writeUint32(bytes, at + 4 * i, source);
}

/** From 128 on a byte is a number in floating point: 3 bits of exponent, 4 of mantissa (RFC 3376, section 4.1.1). */
function decodeTime(code: number): number {
  return code < 128 ? code : ((code & 15) | 16) << (((code >> 4) & 7) + 3);
}

function encodeTime(value: number): number {
  if (value < 128) return Math.max(0, Math.floor(value));
  let exponent = 0;
  while (exponent < 7 && value >= 32 * 2 ** (exponent + 3)) exponent++;
  return 0x80 | (exponent << 4) | (Math.min(Math.floor(value / 2 ** (exponent + 3)), 31) & 15);
}

/** A new frame around a message: to the group's MAC address, for one link only, with the router alert option. */
export function buildIgmpFrame(
  { sourceMac, sourceIp, destinationIp }: { sourceMac: number; sourceIp: number; destinationIp: number },
  message: IgmpMessage,
): Uint8Array {
  const payloadBytes = igmpBytes(message);
  const headerBytes = IPV4_HEADER_BYTES + ROUTER_ALERT.length;
  const frame = new Uint8Array(ETHERNET_HEADER_BYTES + headerBytes + payloadBytes);
  const destination = multicastMac(destinationIp);
  emitEthernet(frame, 0, { destination, source: sourceMac, etherType: ETHERTYPE_IPV4 });
  const header = {
    source: sourceIp,
    destination: destinationIp,
    protocol: IP_PROTOCOL_IGMP,
    timeToLive: 1,
    trafficClass: TRAFFIC_CLASS,
  };
  emitIpv4(frame, ETHERNET_HEADER_BYTES, header, payloadBytes, ROUTER_ALERT);
  emitIgmp(frame, ETHERNET_HEADER_BYTES + headerBytes, message);
  return frame;
}
