import { DdfError } from '../base/errors.ts';

/**
 * Encoder and decoder of the protobuf wire format (https://protobuf.dev/programming-guides/encoding/) for message plans. Plans are made from
 * schemas in proto.ts; here is what the representation of this project needs and no library gives: 64-bit integers are bigint, decoded messages are
 * plain objects with every scalar and array present.
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
const WIRE_FIXED64 = 1;
const WIRE_BYTES = 2;
const WIRE_FIXED32 = 5;
/** As deep as other implementations go: deeper input is an attack on the stack. */
const MAX_DEPTH = 100;

/** A message with every scalar and array at its default. */
export function emptyMessage(plan: MessagePlan): MessageObject {
  const message: MessageObject = {};
  for (const field of plan.fields) {
    if (field.shape === 'repeated') message[field.name] = [];
    else if (field.shape === 'map') message[field.name] = new Map<string, unknown>();
    else if (field.kind !== 'message' && field.oneofOthers === undefined)
      message[field.name] = scalarDefault(field.kind);
  }
  return message;
}

const NO_BYTES = new Uint8Array(0);

function scalarDefault(kind: ScalarKind | 'enum'): unknown {
  switch (kind) {
    case 'uint64':
    case 'int64':
      return 0n;
    case 'bool':
      return false;
    case 'string':
      return '';
    case 'bytes':
      return NO_BYTES;
    default:
      return 0;
  }
}

// Decoding

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

class Reader {
  private readonly bytes: Uint8Array;
  position = 0;
  end: number;
  /** The low and high 32 bits of the last varint. */
  low = 0;
  high = 0;

  constructor(bytes: Uint8Array) {
    this.bytes = bytes;
    this.end = bytes.length;
  }

  varint(): void {
    let low = 0;
    let high = 0;
    for (let shift = 0; shift < 70; shift += 7) {
      if (this.position >= this.end) throw malformed('a number is cut off');
      const byte = this.bytes[this.position++]!;
      const part = byte & 0x7f;
      if (shift < 28) low |= part << shift;
      else if (shift === 28) {
        low |= part << 28;
        high = part >>> 4;
      } else if (shift < 63) high |= part << (shift - 32);
      else high |= (part & 1) << 31;
      if (byte < 0x80) {
        this.low = low >>> 0;
        this.high = high >>> 0;
        return;
      }
    }
    throw malformed('a number has more than ten bytes');
  }

  uint32(): number {
    this.varint();
    return this.low;
  }

  uint64(): bigint {
    this.varint();
    if (this.high < 0x20_0000) return BigInt(this.high * 0x1_0000_0000 + this.low);
    return (BigInt(this.high) << 32n) | BigInt(this.low);
  }

  /** The end of a length-delimited field that starts here. */
  delimitedEnd(): number {
    this.varint();
    const end = this.position + this.low;
    if (this.high !== 0 || end > this.end) throw malformed('a field is longer than what holds it');
    return end;
  }

  slice(): Uint8Array {
    const end = this.delimitedEnd();
    const copy = new Uint8Array(end - this.position);
    copy.set(this.bytes.subarray(this.position, end));
    this.position = end;
    return copy;
  }

  text(): string {
    const end = this.delimitedEnd();
    const start = this.position;
    this.position = end;
    try {
      return utf8.decode(this.bytes.subarray(start, end));
    } catch {
      throw malformed('a text is not UTF-8');
    }
  }

  skip(wireType: number): void {
    if (wireType === WIRE_VARINT) this.varint();
    else if (wireType === WIRE_BYTES) this.position = this.delimitedEnd();
    else if (wireType === WIRE_FIXED64) this.position += 8;
    else if (wireType === WIRE_FIXED32) this.position += 4;
    else throw malformed(`wire type ${wireType} is not used by proto3`);
    if (this.position > this.end) throw malformed('a field is cut off');
  }
}

function malformed(what: string): DdfError {
  return new DdfError('INVALID_REQUEST', `Malformed protobuf message: ${what}`);
}

/** Throws DdfError INVALID_REQUEST (where: the message's name) for bytes that are no such message. */
export function decodeMessage(plan: MessagePlan, bytes: Uint8Array): MessageObject {
  try {
    return readMessage(plan, new Reader(bytes), 0);
  } catch (error) {
    if (error instanceof DdfError) throw new DdfError(error.code, error.message, { where: plan.fullName });
    throw error;
  }
}

function readMessage(plan: MessagePlan, reader: Reader, depth: number): MessageObject {
  if (depth > MAX_DEPTH) throw malformed('messages are nested too deep');
  const message = emptyMessage(plan);
  while (reader.position < reader.end) {
    const tag = reader.uint32();
    const field = plan.byNumber.get(tag >>> 3);
    const wireType = tag & 7;
    if (tag >>> 3 === 0) throw malformed('field number 0');
    if (field === undefined) reader.skip(wireType);
    else readField(field, wireType, message, reader, depth);
  }
  return message;
}

function readField(field: FieldPlan, wireType: number, message: MessageObject, reader: Reader, depth: number): void {
  const expected = wireTypeOf(field);
  if (wireType !== expected) {
    if (wireType === WIRE_BYTES && field.shape === 'repeated') readPacked(field, message, reader);
    else reader.skip(wireType);
    return;
  }
  if (field.shape === 'map') {
    const [key, value] = readMapEntry(field, reader, depth);
    (message[field.name] as Map<string, unknown>).set(key, value);
    return;
  }
  const value = readValue(field, reader, depth);
  if (field.shape === 'repeated') {
    (message[field.name] as unknown[]).push(value);
    return;
  }
  if (field.oneofOthers !== undefined) for (const other of field.oneofOthers) delete message[other];
  const before = message[field.name];
  message[field.name] =
    field.kind === 'message' && before !== undefined
      ? merge(field.message!, before as MessageObject, value as MessageObject)
      : value;
}

function wireTypeOf(field: FieldPlan): number {
  if (field.shape === 'map') return WIRE_BYTES;
  return field.kind === 'message' || field.kind === 'bytes' || field.kind === 'string' ? WIRE_BYTES : WIRE_VARINT;
}

function readValue(field: FieldPlan, reader: Reader, depth: number): unknown {
  switch (field.kind) {
    case 'uint32':
      return reader.uint32();
    case 'int32':
    case 'enum':
      return reader.uint32() | 0;
    case 'uint64':
      return reader.uint64();
    case 'int64':
      return BigInt.asIntN(64, reader.uint64());
    case 'bool':
      reader.varint();
      return reader.low !== 0 || reader.high !== 0;
    case 'string':
      return reader.text();
    case 'bytes':
      return reader.slice();
    case 'message': {
      const outerEnd = reader.end;
      reader.end = reader.delimitedEnd();
      const value = readMessage(field.message!, reader, depth + 1);
      reader.end = outerEnd;
      return value;
    }
  }
}

function readPacked(field: FieldPlan, message: MessageObject, reader: Reader): void {
  const outerEnd = reader.end;
  reader.end = reader.delimitedEnd();
  const list = message[field.name] as unknown[];
  while (reader.position < reader.end) list.push(readValue(field, reader, 0));
  reader.end = outerEnd;
}

function readMapEntry(field: FieldPlan, reader: Reader, depth: number): [string, unknown] {
  const outerEnd = reader.end;
  reader.end = reader.delimitedEnd();
  let key = '';
  let value: unknown;
  while (reader.position < reader.end) {
    const tag = reader.uint32();
    if (tag === ((1 << 3) | WIRE_BYTES)) key = reader.text();
    else if (tag === ((2 << 3) | WIRE_BYTES) && field.kind === 'message') value = readValue(field, reader, depth + 1);
    else reader.skip(tag & 7);
  }
  reader.end = outerEnd;
  return [key, value ?? emptyMessage(field.message!)];
}

/** A singular message that occurs twice is the merge of both. */
function merge(plan: MessagePlan, first: MessageObject, second: MessageObject): MessageObject {
  const bytes = [encodeMessage(plan, first), encodeMessage(plan, second)];
  return readMessage(plan, new Reader(Buffer.concat(bytes)), 0);
}

// Encoding

class Writer {
  private bytes = new Uint8Array(256);
  length = 0;

  reserve(count: number): void {
    if (this.length + count <= this.bytes.length) return;
    const larger = new Uint8Array(Math.max(this.bytes.length * 2, this.length + count));
    larger.set(this.bytes.subarray(0, this.length));
    this.bytes = larger;
  }

  uint32(value: number): void {
    this.reserve(5);
    let rest = value;
    while (rest > 0x7f) {
      this.bytes[this.length++] = (rest & 0x7f) | 0x80;
      rest >>>= 7;
    }
    this.bytes[this.length++] = rest;
  }

  uint64(value: bigint): void {
    if (value <= 0x7fff_ffffn) {
      this.uint32(Number(value));
      return;
    }
    this.reserve(10);
    let rest = value;
    while (rest > 0x7fn) {
      this.bytes[this.length++] = Number(rest & 0x7fn) | 0x80;
      rest >>= 7n;
    }
    this.bytes[this.length++] = Number(rest);
  }

  delimited(bytes: Uint8Array): void {
    this.uint32(bytes.length);
    this.reserve(bytes.length);
    this.bytes.set(bytes, this.length);
    this.length += bytes.length;
  }

  /** Writes a body with its length before it: one byte is set aside for it, which nearly always does. */
  nested(body: () => void): void {
    this.reserve(1);
    const start = ++this.length;
    body();
    const size = this.length - start;
    let extra = 0;
    for (let rest = size; rest > 0x7f; rest >>>= 7) extra++;
    if (extra > 0) {
      this.reserve(extra);
      this.bytes.copyWithin(start + extra, start, this.length);
    }
    this.length = start - 1;
    this.uint32(size);
    this.length += size;
  }

  finish(): Uint8Array {
    return this.bytes.slice(0, this.length);
  }
}

/**
 * Throws DdfError INTERNAL for a value that its field cannot hold: that is a mistake of ours, since the types forbid it.
 */
export function encodeMessage(plan: MessagePlan, message: MessageObject): Uint8Array {
  const writer = new Writer();
  writeMessage(plan, message, writer);
  return writer.finish();
}

function writeMessage(plan: MessagePlan, message: MessageObject, writer: Writer): void {
  for (const field of plan.fields) {
    const value = message[field.name];
    if (value === undefined) continue;
    if (field.shape === 'repeated') writeRepeated(plan, field, value as readonly unknown[], writer);
    else if (field.shape === 'map') writeMap(plan, field, value as ReadonlyMap<string, unknown>, writer);
    else if (field.oneofOthers !== undefined || field.kind === 'message' || !isDefault(value)) {
      writer.uint32((field.number << 3) | wireTypeOf(field));
      writeValue(plan, field, value, writer);
    }
  }
}

function isDefault(value: unknown): boolean {
  return (
    value === 0 ||
    value === 0n ||
    value === false ||
    value === '' ||
    (value instanceof Uint8Array && value.length === 0)
  );
}

function writeRepeated(plan: MessagePlan, field: FieldPlan, values: readonly unknown[], writer: Writer): void {
  if (values.length === 0) return;
  if (wireTypeOf(field) === WIRE_VARINT) {
    writer.uint32((field.number << 3) | WIRE_BYTES);
    writer.nested(() => {
      for (const value of values) writeValue(plan, field, value, writer);
    });
    return;
  }
  for (const value of values) {
    writer.uint32((field.number << 3) | WIRE_BYTES);
    writeValue(plan, field, value, writer);
  }
}

function writeMap(plan: MessagePlan, field: FieldPlan, map: ReadonlyMap<string, unknown>, writer: Writer): void {
  for (const [key, value] of map) {
    writer.uint32((field.number << 3) | WIRE_BYTES);
    writer.nested(() => {
      writer.uint32((1 << 3) | WIRE_BYTES);
      writer.delimited(Buffer.from(key, 'utf8'));
      writer.uint32((2 << 3) | WIRE_BYTES);
      writeValue(plan, field, value, writer);
    });
  }
}

function writeValue(plan: MessagePlan, field: FieldPlan, value: unknown, writer: Writer): void {
  switch (field.kind) {
    case 'uint32':
      if (typeof value !== 'number' || value >>> 0 !== value) break;
      writer.uint32(value);
      return;
    case 'int32':
    case 'enum':
      if (typeof value !== 'number' || (value | 0) !== value) break;
      if (value >= 0) writer.uint32(value);
      else writer.uint64(BigInt.asUintN(64, BigInt(value)));
      return;
    case 'uint64':
      if (typeof value !== 'bigint' || BigInt.asUintN(64, value) !== value) break;
      writer.uint64(value);
      return;
    case 'int64':
      if (typeof value !== 'bigint' || BigInt.asIntN(64, value) !== value) break;
      writer.uint64(BigInt.asUintN(64, value));
      return;
    case 'bool':
      if (typeof value !== 'boolean') break;
      writer.uint32(value ? 1 : 0);
      return;
    case 'string':
      if (typeof value !== 'string') break;
      writer.delimited(Buffer.from(value, 'utf8'));
      return;
    case 'bytes':
      if (!(value instanceof Uint8Array)) break;
      writer.delimited(value);
      return;
    case 'message':
      if (typeof value !== 'object' || value === null) break;
      writer.nested(() => writeMessage(field.message!, value as MessageObject, writer));
      return;
  }
  throw new DdfError('INTERNAL', `${String(value)} is no ${field.kind} for field ${field.name}`, {
    where: plan.fullName,
  });
}
