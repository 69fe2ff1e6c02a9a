import { readFileSync } from 'node:fs';
import type {
  ActionProfileActionSet,
  Entity,
  FieldMatch,
  ForwardingPipelineConfig,
  PacketIn,
  PacketOut,
  TableAction,
  TableEntry,
} from '../../../wire/p4runtime/messages.ts';
import { P4InfoIndex } from '../../../wire/p4runtime/p4info-index.ts';
import { parseP4InfoText } from '../../../wire/p4runtime/p4info-text.ts';
import { PacketMetadataCodec } from '../../../wire/p4runtime/packet-metadata.ts';
import type { MessageInput } from '../../../wire/proto.ts';

/** The two programs of the checks, as p4c compiles them, and short ways to say what is written to them. */

export const PROGRAM_DIRECTORY = new URL('../program/', import.meta.url);
/** What both programs take for the port to the CPU. */
export const CPU_PORT = 510;

export type ProgramName = 'conformance' | 'translation';

export function p4InfoText(name: ProgramName): string {
  return readFileSync(new URL(`${name}.p4info.txtpb`, PROGRAM_DIRECTORY), 'utf8');
}

function configOf(name: ProgramName, cookie: bigint): MessageInput<ForwardingPipelineConfig> {
  return {
    p4info: parseP4InfoText(p4InfoText(name)),
    p4DeviceConfig: new Uint8Array(readFileSync(new URL(`${name}.json`, PROGRAM_DIRECTORY))),
    cookie: { cookie },
  };
}

export const CONFIG = configOf('conformance', 77n);
export const TRANSLATION_CONFIG = configOf('translation', 78n);
export const INFO = new P4InfoIndex(parseP4InfoText(p4InfoText('conformance')));

const table = (alias: string): number => INFO.tables.require(alias).id;
export const EXACT = table('exact_table');
export const TERNARY = table('ternary_table');
export const ONE_SHOT = table('one_shot_table');
export const GROUPS = table('group_table');
export const MEMBERS = table('member_table');
export const CONST = table('const_table');
export const INITIAL = table('initial_table');
export const KEYLESS = table('keyless_table');
export const IDLE = table('idle_table');
export const CONST_DEFAULT = table('const_default_table');
export const METERED = table('metered_table');
export const OTHER = table('other_table');

const action = (alias: string): number => INFO.actions.require(alias).id;
export const FORWARD = action('forward');
export const SKIP = action('skip');
export const MISS = action('miss');
export const HIT = action('hit');
export const ELSEWHERE = action('elsewhere');
export const MEASURE = action('measure');
export const TO_PORT = action('to_port');

export const ONE_SHOT_SELECTOR = INFO.profiles.require('one_shot_selector').id;
export const GROUP_SELECTOR = INFO.profiles.require('group_selector').id;
export const MEMBER_PROFILE = INFO.profiles.require('members').id;
export const SEEN = INFO.counters.require('seen').id;
export const OTHERS = INFO.counters.require('others').id;
export const RATES = INFO.meters.require('rates').id;
export const STATE = INFO.registers.require('state').id;
export const SIGNED = INFO.registers.require('signed').id;
export const KINDS = INFO.valueSets.require('kinds').id;
export const LEARNED = INFO.digests.require('learned_t').id;

export type EntryInput = MessageInput<TableEntry>;
export type MatchInput = MessageInput<FieldMatch>;
export type ActionInput = MessageInput<TableAction>;
export type EntityInput = MessageInput<Entity>;

export const bytes = (...values: number[]): Uint8Array => new Uint8Array(values);
export const exact = (fieldId: number, ...value: number[]): MatchInput => ({
  fieldId,
  exact: { value: bytes(...value) },
});
export const ternary = (fieldId: number, value: Uint8Array, mask: Uint8Array): MatchInput => ({
  fieldId,
  ternary: { value, mask },
});
export const range = (fieldId: number, low: Uint8Array, high: Uint8Array): MatchInput => ({
  fieldId,
  range: { low, high },
});
export const optional = (fieldId: number, ...value: number[]): MatchInput => ({
  fieldId,
  optional: { value: bytes(...value) },
});
export const lpm = (fieldId: number, prefixLen: number, ...value: number[]): MatchInput => ({
  fieldId,
  lpm: { value: bytes(...value), prefixLen },
});

export const call = (actionId: number, ...params: number[]) => ({
  actionId,
  params: params.map((value, i) => ({ paramId: i + 1, value: bytes(value) })),
});
export const skip: ActionInput = { action: call(SKIP) };
/** The packet comes back with this tag. */
export const forward = (tag: number): ActionInput => ({ action: call(FORWARD, tag, tag) });

/** An entry of the exact table: the label 5 and the small 6 unless given. */
export const exactEntry = (more: EntryInput = {}, label = 5, small = 6): EntryInput => ({
  tableId: EXACT,
  match: [exact(1, label), exact(2, small)],
  action: skip,
  ...more,
});
/** An entry of the ternary table: the part 1 and the priority 10 unless given. */
export const ternaryEntry = (match: MatchInput[] = [], more: EntryInput = {}): EntryInput => ({
  tableId: TERNARY,
  match: [exact(4, 1), ...match],
  priority: 10,
  action: skip,
  ...more,
});
export const idleEntry = (more: EntryInput = {}, address = 9): EntryInput => ({
  tableId: IDLE,
  match: [exact(1, address)],
  action: skip,
  ...more,
});
export const meteredEntry = (more: EntryInput = {}, label = 5): EntryInput => ({
  tableId: METERED,
  match: [exact(1, label)],
  action: { action: call(MEASURE) },
  ...more,
});
/** An entry of the one-shot table for the /8 of an address. */
export const route = (octet: number, set: MessageInput<ActionProfileActionSet>): EntryInput => ({
  tableId: ONE_SHOT,
  match: [lpm(1, 8, octet, 0, 0, 0)],
  action: { actionProfileActionSet: set },
});
export const oneShot = (tag: number, weight: number) => ({ action: call(FORWARD, tag, tag), weight });
export const entity = (tableEntry: EntryInput): EntityInput => ({ tableEntry });

/** Fields of the header that every packet of the program has; all 0 unless given. */
export interface Probe {
  readonly kind?: number;
  readonly label?: number;
  readonly small?: number;
  readonly address?: number;
  readonly number?: number;
  readonly flag?: number;
  readonly part?: number;
}

export const PROBE_BYTES = 15;

export function probe(fields: Probe = {}, padding = 45): Uint8Array {
  const frame = new Uint8Array(PROBE_BYTES + padding);
  const view = new DataView(frame.buffer);
  view.setUint8(0, fields.kind ?? 0);
  view.setUint32(1, fields.label ?? 0);
  view.setUint8(5, fields.small ?? 0);
  view.setUint32(6, fields.address ?? 0);
  view.setUint16(10, fields.number ?? 0);
  view.setUint8(12, fields.flag ?? 0);
  view.setUint16(13, fields.part ?? 0);
  return frame;
}

/** What the program is asked to do with a packet; by default it sends it back to the controller. */
export interface Request {
  readonly egressPort?: number;
  readonly multicastGroup?: number;
  readonly cloneSession?: number;
  readonly digest?: boolean;
}

const packetOutCodec = new PacketMetadataCodec(INFO.controllerHeaders.require('packet_out'));
const packetInCodec = new PacketMetadataCodec(INFO.controllerHeaders.require('packet_in'));

export function packetOut(payload: Uint8Array, request: Request = {}): { packet: MessageInput<PacketOut> } {
  const metadata = packetOutCodec.fromValues({
    egress_port: BigInt(request.egressPort ?? CPU_PORT),
    multicast_group: BigInt(request.multicastGroup ?? 0),
    clone_session: BigInt(request.cloneSession ?? 0),
    digest: request.digest === true ? 1n : 0n,
  });
  return { packet: { payload, metadata } };
}

export interface Received {
  readonly ingressPort: number;
  readonly egressPort: number;
  readonly instance: number;
  readonly tag: number;
  readonly sameTag: number;
  readonly colour: number;
  readonly inSet: number;
  readonly payload: Uint8Array;
}

export function received(packet: PacketIn): Received {
  const values = packetInCodec.toValues(packet.metadata);
  const number = (name: string): number => Number(values[name]);
  return {
    ingressPort: number('ingress_port'),
    egressPort: number('egress_port'),
    instance: number('instance'),
    tag: number('tag'),
    sameTag: number('same_tag'),
    colour: number('colour'),
    inSet: number('in_set'),
    payload: packet.payload,
  };
}
