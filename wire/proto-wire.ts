import { DdfError } from '../base/errors.ts';

/** The primitives of the protobuf wire format: variable-length numbers, and bytes with their length before them. */

const WIRE_VARINT = 0;
const WIRE_FIXED64 = 1;
const WIRE_BYTES = 2;
const WIRE_FIXED32 = 5;
/** The buffer of a writer; a larger one is let go after the message that needed it. */
const BUFFER_BYTES = 64 * 1024;
const KEPT_BUFFER_BYTES = 1024 * 1024;
/** Strings up to here are copied byte by byte, which is faster than asking for a copy. */
const SHORT_BYTES = 24;

/** Messages within one, at any depth: an empty one takes 2 bytes on the wire and a hundred times that in memory. */
const MAX_MESSAGES = 2_000_000;

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Throws DdfError INVALID_REQUEST for bytes that make no sense. */
export class WireReader {
  private readonly bytes: Uint8Array;
  position = 0;
  end: number;
  /** The low and high 32 bits of the last varint. */
  private low = 0;
  private high = 0;
  private messagesLeft = MAX_MESSAGES;

  constructor(bytes: Uint8Array) {
    this.bytes = bytes;
    this.end = bytes.length;
  }

  /** Throws once there are more messages than memory may hold. */
  countMessage(): void {
    if (--this.messagesLeft < 0) throw malformed(`there are more than ${MAX_MESSAGES} messages in it`);
  }

  private varint(): void {
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
    if (this.position < this.end) {
      const byte = this.bytes[this.position]!;
      if (byte < 0x80) {
        this.position++;
        return byte;
      }
    }
    this.varint();
    return this.low;
  }

  uint64(): bigint {
    this.varint();
    if (this.high < 0x20_0000) return BigInt(this.high * 0x1_0000_0000 + this.low);
    return (BigInt(this.high) << 32n) | BigInt(this.low);
  }

  bool(): boolean {
    this.varint();
    return this.low !== 0 || this.high !== 0;
  }

  /** The end of a length-delimited field that starts here. */
  private delimitedEnd(): number {
    this.varint();
    const end = this.position + this.low;
    if (this.high !== 0 || end > this.end) throw malformed('a field is longer than what holds it');
    return end;
  }

  /** Confines the reader to the length-delimited field that starts here. */
  enter(): void {
    this.end = this.delimitedEnd();
  }

  /** Undoes {@link enter}. @param value is passed on */
  leave<T>(end: number, value?: T): T | undefined {
    this.end = end;
    return value;
  }

  slice(): Uint8Array {
    const end = this.delimitedEnd();
    const length = end - this.position;
    const copy = new Uint8Array(length);
    if (length > SHORT_BYTES) copy.set(this.bytes.subarray(this.position, end));
    else for (let i = 0; i < length; i++) copy[i] = this.bytes[this.position + i]!;
    this.position = end;
    return copy;
  }

  text(): string {
    const end = this.delimitedEnd();
    const start = this.position;
    this.position = end;
    if (start === end) return '';
    try {
      return utf8.decode(this.bytes.subarray(start, end));
    } catch {
      throw malformed('a text is not UTF-8');
    }
  }

  /** Skips a field that the schema does not know, or knows with another wire type. */
  skipField(tag: number): void {
    if (tag >>> 3 === 0) throw malformed('field number 0');
    const wireType = tag & 7;
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

/** Collects bytes; after {@link finish} and {@link reset} it is used again, buffer and all. */
export class WireWriter {
  private bytes = new Uint8Array(BUFFER_BYTES);
  private length = 0;

  reset(): void {
    this.length = 0;
  }

  private reserve(count: number): void {
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

  int32(value: number): void {
    if (value >= 0) this.uint32(value);
    else this.uint64(BigInt.asUintN(64, BigInt(value)));
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
    const { length } = bytes;
    this.uint32(length);
    this.reserve(length);
    if (length > SHORT_BYTES) this.bytes.set(bytes, this.length);
    else for (let i = 0; i < length; i++) this.bytes[this.length + i] = bytes[i]!;
    this.length += length;
  }

  text(text: string): void {
    this.delimited(Buffer.from(text, 'utf8'));
  }

  /** Begins a body with its length before it: one byte is set aside for that, which nearly always does. @returns what {@link close} wants */
  open(): number {
    this.reserve(1);
    return ++this.length;
  }

  close(start: number): void {
    const size = this.length - start;
    let extra = 0;
    for (let rest = size; rest > 0x7f; rest >>>= 7) extra++;
    if (extra === 0) {
      this.bytes[start - 1] = size;
      return;
    }
    this.reserve(extra);
    this.bytes.copyWithin(start + extra, start, this.length);
    this.length = start - 1;
    this.uint32(size);
    this.length += size;
  }

  /** A copy of what was written. */
  finish(): Uint8Array {
    const bytes = this.bytes.slice(0, this.length);
    if (this.bytes.length > KEPT_BUFFER_BYTES) this.bytes = new Uint8Array(BUFFER_BYTES);
    return bytes;
  }
}
