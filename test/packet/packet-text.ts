import { crc32 } from 'node:zlib';
import * as constants from '../../p4/build/constants.ts';
import { parseIpv4, parseMac } from '../../wire/packet/addresses.ts';
import { internetChecksum } from '../../wire/packet/checksum.ts';

/**
 * Packets as scripts write them: layers with the fields that matter, everything else at its default or computed.
 *
 *     ip src=10.0.0.1 fabric type=NACK label=7 need=2 payload bytes=32
 *
 * The encoding is written from docs/protocol.md and the RFCs, not taken from wire/: the packet tests judge the switch by it.
 */

/** Name, width in bits and default; no default: computed from the other layers unless given. */
type FieldSpec = readonly [name: string, widthBits: number, initial?: bigint];

const LAYERS: Readonly<Record<string, readonly FieldSpec[]>> = {
  in: [
    ['ingress_port', 16, 0n],
    ['reason', 8, 0n],
  ],
  out: [['egress_port', 16, 0n]],
  eth: [
    ['dst', 48, 0x02_00_00_00_00_02n],
    ['src', 48, 0x02_00_00_00_00_01n],
    ['type', 16],
  ],
  tag: [
    ['next', 16],
    ['tenant', 16, 1n],
    ['serial', 48, 5n],
    ['object_version', 32, 22n],
    ['switch', 16, 0n],
    ['class', 8, 0n],
    ['hops', 8, 1n],
  ],
  ip: [
    ['version', 4, 4n],
    ['words', 4],
    ['dscp', 6, 0n],
    ['ecn', 2, 0n],
    ['length', 16],
    ['id', 16, 0n],
    ['df', 2, 1n],
    ['mf', 1, 0n],
    ['offset', 13, 0n],
    ['ttl', 8, 64n],
    ['protocol', 8],
    ['checksum', 16],
    ['src', 32, 0x0a_00_00_01n],
    ['dst', 32, 0x0a_00_00_02n],
  ],
  // No-operation options (RFC 791)
  options: [['nops', 32, 0x01_01_01_01n]],
  udp: [
    ['sport', 16, 40000n],
    ['dport', 16],
    ['length', 16],
    ['checksum', 16, 0n],
  ],
  tcp: [
    ['sport', 16, 40000n],
    ['dport', 16, 80n],
    ['rest', 128, 0n],
  ],
  fabric: [
    ['version', 4, 1n],
    ['type', 4, BigInt(constants.FABRIC_TYPE_DATA)],
    ['flags', 8, 0n],
    ['length', 16],
    ['label', 32, 7n],
    ['tenant', 16, 1n],
    ['serial', 48, 5n],
    ['object_version', 32, 22n],
    ['base', 32, 0n],
    ['block', 32, 0n],
    ['symbol', 8, 0n],
    ['source_symbols', 8, 64n],
    ['need', 8, 0n],
    ['epoch', 8, 0n],
    ['crc', 32],
    ['marks', 8, 0n],
    ['queue', 8, 0n],
    ['hops', 8, 0n],
    ['reserved', 8, 0n],
  ],
  // Bytes 0, 1, 2, ...
  payload: [['bytes', 0, 0n]],
  // Only the first bytes of the frame
  cut: [['bytes', 0, 0n]],
};

const ORDER = Object.keys(LAYERS);

/** Layers that are there, each with the fields that the script gave. */
export type PacketSpec = ReadonlyMap<string, ReadonlyMap<string, bigint>>;

/** A number, an IPv4 or MAC address, or a constant of the P4 sources, where some prefixes may be left out. */
export function parseValue(text: string): bigint {
  if (/^(0x[0-9a-f]+|\d+)$/i.test(text)) return BigInt(text);
  const address = text.includes(':') ? parseMac(text) : parseIpv4(text);
  if (address !== undefined) return BigInt(address);
  const byName = constants as unknown as Readonly<Record<string, unknown>>;
  for (const prefix of ['', 'FABRIC_TYPE_', 'DROP_', 'PUNT_REASON_', 'KIND_', 'PORT_']) {
    const value = byName[`${prefix}${text}`];
    if (typeof value === 'number') return BigInt(value);
  }
  throw new Error(`"${text}" is no number, address or constant`);
}

/** Reads a packet; words that name an earlier packet start from a copy of it, `-layer` takes a layer away. */
export function parsePacket(words: readonly string[], earlier: ReadonlyMap<string, PacketSpec>): PacketSpec {
  const layers = new Map<string, Map<string, bigint>>([['eth', new Map()]]);
  const enter = (name: string): Map<string, bigint> => {
    const layer = layers.get(name) ?? new Map<string, bigint>();
    layers.set(name, layer);
    return layer;
  };
  let current: string | undefined;
  for (const word of words) {
    const [, field, value] = /^(\w+)=(\S+)$/.exec(word) ?? [];
    const template = earlier.get(word);
    if (field !== undefined) {
      if (current === undefined || !LAYERS[current]!.some(([name]) => name === field))
        throw new Error(`${current ?? 'no layer'} has no field ${field}`);
      enter(current).set(field, parseValue(value!));
    } else if (template !== undefined) {
      for (const [name, fields] of template) for (const [key, number] of fields) enter(name).set(key, number);
      for (const name of template.keys()) enter(name);
    } else if (word.startsWith('-') && LAYERS[word.slice(1)] !== undefined) {
      layers.delete(word.slice(1));
    } else if (LAYERS[word] !== undefined) {
      current = word;
      enter(word);
      if (word === 'fabric') enter('udp');
      if (['udp', 'tcp', 'fabric', 'options'].includes(word)) enter('ip');
    } else {
      throw new Error(`"${word}" is no layer, field or packet`);
    }
  }
  return layers;
}

function computed(layer: string, field: string, spec: PacketSpec, payloadBytes: number): bigint {
  const has = (name: string): boolean => spec.has(name);
  const udpBytes = 8 + (has('fabric') ? 40 : 0) + payloadBytes;
  const l4Bytes = has('udp') ? udpBytes : has('tcp') ? 20 + payloadBytes : payloadBytes;
  const inner = has('ip') ? constants.ETHERTYPE_IPV4 : constants.ETHERTYPE_ARP;
  switch (`${layer}.${field}`) {
    case 'eth.type':
      return BigInt(has('tag') ? constants.ETHERTYPE_OBJECT_TAG : inner);
    case 'tag.next':
      return BigInt(inner);
    case 'ip.words':
      return has('options') ? 6n : 5n;
    case 'ip.length':
      return BigInt((has('options') ? 24 : 20) + l4Bytes);
    case 'ip.protocol':
      return BigInt(has('udp') ? constants.IP_PROTOCOL_UDP : has('tcp') ? constants.IP_PROTOCOL_TCP : 253);
    case 'udp.dport':
      return BigInt(has('fabric') ? constants.FABRIC_UDP_PORT : 9);
    case 'udp.length':
      return BigInt(udpBytes);
    case 'fabric.length':
      return BigInt(payloadBytes);
    default:
      // Checksums are put in once the bytes are there.
      return 0n;
  }
}

function packFields(fields: readonly (readonly [widthBits: number, value: bigint])[]): Uint8Array {
  let bits = 0n;
  let width = 0;
  for (const [widthBits, value] of fields) {
    bits = (bits << BigInt(widthBits)) | BigInt.asUintN(widthBits, value);
    width += widthBits;
  }
  return Uint8Array.from(Buffer.from(bits.toString(16).padStart(width / 4, '0'), 'hex'));
}

export function encodePacket(spec: PacketSpec): Uint8Array {
  const given = (layer: string, field: string): bigint | undefined => spec.get(layer)?.get(field);
  const payload = Uint8Array.from({ length: Number(given('payload', 'bytes') ?? 0n) }, (_, index) => index & 0xff);
  const chunks = new Map<string, Uint8Array>();
  for (const name of ORDER) {
    if (!spec.has(name) || name === 'cut') continue;
    if (name === 'payload') chunks.set(name, payload);
    else
      chunks.set(
        name,
        packFields(
          LAYERS[name]!.map(([field, width, initial]) => [
            width,
            given(name, field) ?? initial ?? computed(name, field, spec, payload.length),
          ]),
        ),
      );
  }
  const fabric = chunks.get('fabric');
  if (fabric !== undefined && given('fabric', 'crc') === undefined) {
    const covered = Buffer.concat([fabric.subarray(0, 32), payload]);
    Buffer.from(fabric.buffer).writeUInt32BE(crc32(covered), 32);
  }
  const ip = chunks.get('ip');
  if (ip !== undefined && given('ip', 'checksum') === undefined) {
    const header = Buffer.concat([ip, chunks.get('options') ?? new Uint8Array()]);
    Buffer.from(ip.buffer).writeUInt16BE(internetChecksum(header), 10);
  }
  const frame = Uint8Array.from(Buffer.concat([...chunks.values()]));
  return frame.subarray(0, Number(given('cut', 'bytes') ?? BigInt(frame.length)));
}

/** Where the fabric header says how full queues are, unless the packet is about that. */
export function queueLevelOffset(spec: PacketSpec): number | undefined {
  const fabric = spec.get('fabric');
  if (fabric === undefined || fabric.has('queue')) return undefined;
  const upToFabric = ORDER.slice(0, ORDER.indexOf('fabric')).filter((name) => spec.has(name));
  return upToFabric.reduce((sum, name) => sum + layerBytes(name), 0) + 37;
}

function layerBytes(name: string): number {
  return LAYERS[name]!.reduce((sum, [, width]) => sum + width, 0) / 8;
}

/** What bytes say when they are read with the layers of `spec`, one line per layer; what is left over is the payload. */
export function describePacket(bytes: Uint8Array, spec: PacketSpec): string[] {
  const lines: string[] = [];
  let offset = 0;
  for (const name of ORDER) {
    if (!spec.has(name) || name === 'payload' || name === 'cut') continue;
    const words: string[] = [];
    const lengthBytes = layerBytes(name);
    if (offset + lengthBytes > bytes.length) break;
    let bits = BigInt(`0x${Buffer.from(bytes.subarray(offset, offset + lengthBytes)).toString('hex')}`);
    for (const [field, width] of [...LAYERS[name]!].reverse()) {
      words.unshift(`${field}=0x${BigInt.asUintN(width, bits).toString(16)}`);
      bits >>= BigInt(width);
    }
    lines.push(`${name} ${words.join(' ')}`);
    offset += lengthBytes;
  }
  lines.push(`payload ${Buffer.from(bytes.subarray(offset)).toString('hex')}`);
  return lines;
}
