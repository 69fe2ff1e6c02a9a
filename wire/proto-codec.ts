import { DdfError } from '../base/errors.ts';
import { WireReader, WireWriter } from './proto-wire.ts';

/**
 * Encoder and decoder of the protobuf wire format (https://protobuf.dev/programming-guides/encoding/) for message plans. Plans are made from
 * schemas in proto.ts; here is what the representation of this project needs and no library gives: 64-bit integers are bigint, decoded messages are
 * plain objects with every scalar and array present.
 *
 * A plan is compiled to JavaScript when it is first used: a switch's tables are ten thousands of small messages, and objects that are made by one
 * literal and read by constant names are several times faster than those that a loop over the plan makes.
 */

export type ScalarKind = 'uint32' | 'int32' | 'uint64' | 'int64' | 'bool' | 'string' | 'bytes';

export interface FieldPlan {
  /** As in the schema. */
  readonly protoName: string;
  /** The property: camelCase. */
  readonly name: string;
  readonly number: number;
  readonly shape: 'single' | 'repeated' | 'map';
  /** For maps the kind of the value; keys are strings. */
  readonly kind: ScalarKind | 'enum' | 'message';
  readonly message?: MessagePlan;
  readonly enumeration?: EnumPlan;
  /** The other members of the field's oneof; `undefined` outside of oneofs. */
  readonly oneofOthers: readonly string[] | undefined;
}

export interface EnumPlan {
  readonly fullName: string;
  readonly values: ReadonlyMap<string, number>;
}

export interface MessagePlan {
  readonly fullName: string;
  /** In the order of their numbers. */
  readonly fields: readonly FieldPlan[];
  readonly byNumber: ReadonlyMap<number, FieldPlan>;
  readonly byProtoName: ReadonlyMap<string, FieldPlan>;
}

/** A message as a bag of properties; `messageCodec` gives it its type. */
export type MessageObject = Record<string, unknown>;

const WIRE_VARINT = 0;
const WIRE_BYTES = 2;
/** As deep as other implementations go: deeper input is an attack on the stack. */
const MAX_DEPTH = 100;

/** What a plan is compiled to. */
interface CompiledMessage {
  create(): MessageObject;
  /** @param into a message that the bytes go on with, since a singular message may come in several pieces */
  decode(reader: WireReader, depth: number, into?: MessageObject): MessageObject;
  encode(message: MessageObject, writer: WireWriter): void;
}

const compiled = new Map<MessagePlan, CompiledMessage>();

/** A message with every scalar and array at its default, and everything else undefined. */
export function emptyMessage(plan: MessagePlan): MessageObject {
  return compile(plan).create();
}

/** Throws DdfError INVALID_REQUEST (where: the message's name) for bytes that are no such message. */
export function decodeMessage(plan: MessagePlan, bytes: Uint8Array): MessageObject {
  try {
    return compile(plan).decode(new WireReader(bytes), 0);
  } catch (error) {
    if (error instanceof DdfError) throw new DdfError(error.code, error.message, { where: plan.fullName });
    throw error;
  }
}

const writer = new WireWriter();

/**
 * Throws DdfError INTERNAL for a value that its field cannot hold: that is a mistake of ours, since the types forbid it.
 */
export function encodeMessage(plan: MessagePlan, message: MessageObject): Uint8Array {
  writer.reset();
  compile(plan).encode(message, writer);
  return writer.finish();
}

/** What compiled code calls. `messages` are the compiled plans of fields, by the index of the field; they are looked up late, since types contain themselves. */
interface Library {
  readonly plan: MessagePlan;
  readonly compile: (plan: MessagePlan) => CompiledMessage;
  readonly tooDeep: () => never;
  readonly wrong: (plan: MessagePlan, index: number, value: unknown) => never;
  readonly noBytes: Uint8Array;
}

function compile(plan: MessagePlan): CompiledMessage {
  const known = compiled.get(plan);
  if (known !== undefined) return known;
  const source = `
const { plan, compile, tooDeep, wrong, noBytes } = library;
const fields = plan.fields;
${plan.fields.map((field, i) => (field.kind === 'message' ? `let m${i};` : '')).join('\n')}
function link() {
  ${plan.fields.map((field, i) => (field.kind === 'message' ? `m${i} = compile(fields[${i}].message);` : '')).join('\n  ')}
  linked = true;
}
let linked = false;
return {
  create() {
    return ${literal(plan)};
  },
  decode(r, depth, into) {
    if (depth > ${MAX_DEPTH}) tooDeep();
    if (!linked) link();
    r.countMessage();
    const m = into === undefined ? ${literal(plan)} : into;
    const end = r.end;
    while (r.position < end) {
      const tag = r.uint32();
      switch (tag) {
${plan.fields.map(decodeCases).join('\n')}
        default:
          r.skipField(tag);
      }
    }
    return m;
  },
  encode(m, w) {
    if (!linked) link();
    let v;
${plan.fields.map(encodeField).join('\n')}
  },
};`;
  const library: Library = { plan, compile, tooDeep, wrong, noBytes: NO_BYTES };
  const made = (new Function('library', source) as (library: Library) => CompiledMessage)(library);
  compiled.set(plan, made);
  return made;
}

const NO_BYTES = new Uint8Array(0);

/** Names come from our schemas: they are identifiers. */
function literal(plan: MessagePlan): string {
  return `{ ${plan.fields.map((field) => `${field.name}: ${initial(field)}`).join(', ')} }`;
}

function initial(field: FieldPlan): string {
  if (field.shape === 'repeated') return '[]';
  if (field.shape === 'map') return 'new Map()';
  if (field.kind === 'message' || field.oneofOthers !== undefined) return 'undefined';
  switch (field.kind) {
    case 'uint64':
    case 'int64':
      return '0n';
    case 'bool':
      return 'false';
    case 'string':
      return "''";
    case 'bytes':
      return 'noBytes';
    default:
      return '0';
  }
}

function wireTypeOf(field: FieldPlan): number {
  if (field.shape === 'map') return WIRE_BYTES;
  return field.kind === 'message' || field.kind === 'bytes' || field.kind === 'string' ? WIRE_BYTES : WIRE_VARINT;
}

function tagOf(field: FieldPlan, wireType = wireTypeOf(field)): number {
  return ((field.number << 3) | wireType) >>> 0;
}

// Decoding

function decodeCases(field: FieldPlan, i: number): string {
  const tag = `        case ${tagOf(field)}:`;
  if (field.shape === 'map') return `${tag} { ${decodeMapEntry(field, i)} break; }`;
  if (field.shape === 'repeated') {
    const one = `${tag} { const value = ${decodeValue(field, i)}; m.${field.name}.push(value); break; }`;
    if (wireTypeOf(field) !== WIRE_VARINT) return one;
    const packed = `r.enter(); while (r.position < r.end) m.${field.name}.push(${decodeValue(field, i)}); r.leave(end);`;
    return `${one}\n        case ${tagOf(field, WIRE_BYTES)}: { ${packed} break; }`;
  }
  const others = (field.oneofOthers ?? []).map((other) => `m.${other} = undefined;`).join(' ');
  if (field.kind !== 'message') return `${tag} ${others} m.${field.name} = ${decodeValue(field, i)}; break;`;
  // A singular message that occurs twice is the merge of both.
  const merged = `r.leave(end, (r.enter(), m${i}.decode(r, depth + 1, m.${field.name})))`;
  return `${tag} { const value = ${merged}; ${others} m.${field.name} = value; break; }`;
}

function decodeValue(field: FieldPlan, i: number): string {
  switch (field.kind) {
    case 'uint32':
      return 'r.uint32()';
    case 'int32':
    case 'enum':
      return '(r.uint32() | 0)';
    case 'uint64':
      return 'r.uint64()';
    case 'int64':
      return 'BigInt.asIntN(64, r.uint64())';
    case 'bool':
      return 'r.bool()';
    case 'string':
      return 'r.text()';
    case 'bytes':
      return 'r.slice()';
    case 'message':
      return `r.leave(end, (r.enter(), m${i}.decode(r, depth + 1)))`;
  }
}

function decodeMapEntry(field: FieldPlan, i: number): string {
  // The value's end is the entry's, to which the reader goes back after it.
  const value = `{ const inner = r.end; r.enter(); value = r.leave(inner, m${i}.decode(r, depth + 2)); }`;
  return `r.enter(); let key = ''; let value;
          while (r.position < r.end) {
            const part = r.uint32();
            if (part === ${(1 << 3) | WIRE_BYTES}) key = r.text();
            else if (part === ${(2 << 3) | WIRE_BYTES}) ${value}
            else r.skipField(part);
          }
          r.leave(end);
          m.${field.name}.set(key, value ?? m${i}.create());`;
}

function tooDeep(): never {
  throw new DdfError('INVALID_REQUEST', 'Malformed protobuf message: messages are nested too deep');
}

// Encoding

function encodeField(field: FieldPlan, i: number): string {
  const start = `    v = m.${field.name};`;
  const tag = `w.uint32(${tagOf(field, field.shape === 'repeated' ? WIRE_BYTES : wireTypeOf(field))});`;
  if (field.shape === 'map') {
    const entry = `w.uint32(${(1 << 3) | WIRE_BYTES}); w.text(key); w.uint32(${(2 << 3) | WIRE_BYTES}); ${encodeValue(field, i, 'value')}`;
    return `${start} if (v !== undefined) for (const [key, value] of v) { ${tag} const at = w.open(); ${entry} w.close(at); }`;
  }
  if (field.shape === 'repeated') {
    if (wireTypeOf(field) !== WIRE_VARINT)
      return `${start} if (v !== undefined) for (let j = 0; j < v.length; j++) { const e = v[j]; ${tag} ${encodeValue(field, i, 'e')} }`;
    const all = `for (let j = 0; j < v.length; j++) { const e = v[j]; ${encodeValue(field, i, 'e')} }`;
    return `${start} if (v !== undefined && v.length > 0) { ${tag} const at = w.open(); ${all} w.close(at); }`;
  }
  const isSet =
    field.oneofOthers !== undefined || field.kind === 'message'
      ? 'v !== undefined'
      : `v !== undefined && ${differsFromDefault(field)}`;
  return `${start} if (${isSet}) { ${tag} ${encodeValue(field, i, 'v')} }`;
}

function differsFromDefault(field: FieldPlan): string {
  if (field.kind === 'bytes') return '!(v instanceof Uint8Array && v.length === 0)';
  return `v !== ${initial(field)}`;
}

function encodeValue(field: FieldPlan, i: number, v: string): string {
  const check = (test: string): string => `if (${test}) wrong(plan, ${i}, ${v});`;
  switch (field.kind) {
    case 'uint32':
      return `${check(`typeof ${v} !== 'number' || ${v} >>> 0 !== ${v}`)} w.uint32(${v});`;
    case 'int32':
    case 'enum':
      return `${check(`typeof ${v} !== 'number' || (${v} | 0) !== ${v}`)} w.int32(${v});`;
    case 'uint64':
      return `${check(`typeof ${v} !== 'bigint' || BigInt.asUintN(64, ${v}) !== ${v}`)} w.uint64(${v});`;
    case 'int64':
      return `${check(`typeof ${v} !== 'bigint' || BigInt.asIntN(64, ${v}) !== ${v}`)} w.uint64(BigInt.asUintN(64, ${v}));`;
    case 'bool':
      return `${check(`typeof ${v} !== 'boolean'`)} w.uint32(${v} ? 1 : 0);`;
    case 'string':
      return `${check(`typeof ${v} !== 'string'`)} w.text(${v});`;
    case 'bytes':
      return `${check(`!(${v} instanceof Uint8Array)`)} w.delimited(${v});`;
    case 'message':
      return `${check(`typeof ${v} !== 'object' || ${v} === null`)} { const at = w.open(); m${i}.encode(${v}, w); w.close(at); }`;
  }
}

function wrong(plan: MessagePlan, index: number, value: unknown): never {
  const { kind, name } = plan.fields[index]!;
  throw new DdfError('INTERNAL', `${String(value)} is no ${kind} for field ${name}`, { where: plan.fullName });
}
