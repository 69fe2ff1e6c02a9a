/** Reads what a safetensors file says about itself: an 8-byte little-endian length, that many bytes of JSON, then the tensors' data. */
import { DdfError } from '../base/errors.ts';

export interface Tensor {
  readonly name: string;
  readonly dtype: string;
  readonly shape: readonly number[];
  /** First byte and the one behind the last, from the start of the file. */
  readonly begin: number;
  readonly end: number;
}

export interface TensorListing {
  /** In the order of their data. */
  readonly tensors: readonly Tensor[];
  readonly metadata: Readonly<Record<string, string>>;
  readonly headerBytes: number;
}

/** Bits of one element. The 4- and 6-bit types are packed; a tensor of them has to end at a byte. */
const DTYPE_BITS: Readonly<Record<string, number>> = {
  BOOL: 8,
  F4: 4,
  F6_E2M3: 6,
  F6_E3M2: 6,
  U8: 8,
  I8: 8,
  F8_E5M2: 8,
  F8_E4M3: 8,
  F8_E8M0: 8,
  U16: 16,
  I16: 16,
  F16: 16,
  BF16: 16,
  U32: 32,
  I32: 32,
  F32: 32,
  U64: 64,
  I64: 64,
  F64: 64,
  C64: 64,
};

/** The format's own limit for the JSON. */
const MAX_HEADER_BYTES = 100_000_000;
const LENGTH_BYTES = 8;

/**
 * How many bytes of the file's start {@link parseSafetensors} needs; undefined if the file cannot be safetensors and travels as plain bytes.
 * @param start at least the first 9 bytes
 */
export function safetensorsHeadBytes(start: Uint8Array, fileBytes: number): number | undefined {
  if (start.length < LENGTH_BYTES + 1 || start[LENGTH_BYTES] !== 0x7b) return undefined;
  const length = new DataView(start.buffer, start.byteOffset).getBigUint64(0, true);
  if (length > BigInt(MAX_HEADER_BYTES) || length + BigInt(LENGTH_BYTES) > BigInt(fileBytes)) return undefined;
  return LENGTH_BYTES + Number(length);
}

/**
 * Parses and checks the head of a safetensors file: known types, shapes that fit their bytes, data without overlap or holes to the end.
 * @param head as many bytes as {@link safetensorsHeadBytes} said
 * @throws DdfError INVALID_FILE
 */
export function parseSafetensors(head: Uint8Array, fileBytes: number): TensorListing {
  const dataBytes = fileBytes - head.length;
  let json: unknown;
  try {
    json = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(head.subarray(LENGTH_BYTES)));
  } catch (error) {
    throw new DdfError('INVALID_FILE', 'the safetensors header is not JSON', { cause: error });
  }
  check(isRecord(json), 'is not an object');
  const tensors: Tensor[] = [];
  let metadata: Record<string, string> = {};
  for (const [name, value] of Object.entries(json)) {
    if (name === '__metadata__') metadata = parseMetadata(value);
    else tensors.push(parseTensor(name, value, head.length, dataBytes));
  }
  tensors.sort((a, b) => a.begin - b.begin || a.end - b.end);
  let position = head.length;
  for (const tensor of tensors) {
    const fault = tensor.begin < position ? 'overlaps' : 'leaves a hole before';
    check(tensor.begin === position, `${fault} tensor "${tensor.name}"`);
    position = tensor.end;
  }
  check(position === fileBytes, `leaves ${fileBytes - position} bytes at the end of the file`);
  return { tensors, metadata, headerBytes: head.length };
}

function parseTensor(name: string, value: unknown, dataStart: number, dataBytes: number): Tensor {
  const what = `tensor "${name}"`;
  check(isRecord(value), `has no description of ${what}`);
  const { dtype, shape, data_offsets: offsets } = value;
  const bits = typeof dtype === 'string' && Object.hasOwn(DTYPE_BITS, dtype) ? DTYPE_BITS[dtype] : undefined;
  check(typeof dtype === 'string' && bits !== undefined, `gives ${what} the unknown type ${JSON.stringify(dtype)}`);
  check(isSizes(shape), `gives ${what} a shape that is not a list of sizes`);
  check(isSizes(offsets) && offsets.length === 2, `gives ${what} data_offsets that are not two offsets`);
  const [begin, end] = offsets as [number, number];
  check(begin <= end && end <= dataBytes, `places ${what} at ${begin}..${end} of ${dataBytes} bytes`);
  const elements = shape.reduce((product, size) => product * BigInt(size), 1n);
  check(
    elements * BigInt(bits) === BigInt(end - begin) * 8n,
    `gives ${what} ${end - begin} bytes for ${elements} ${dtype}`,
  );
  return { name, dtype, shape, begin: dataStart + begin, end: dataStart + end };
}

function parseMetadata(value: unknown): Record<string, string> {
  check(isRecord(value), 'has a __metadata__ that is not an object');
  const metadata: Record<string, string> = {};
  for (const [key, text] of Object.entries(value)) {
    check(typeof text === 'string', `has metadata "${key}" that is not a string`);
    metadata[key] = text;
  }
  return metadata;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isSizes(value: unknown): value is number[] {
  return Array.isArray(value) && value.every((size) => Number.isSafeInteger(size) && size >= 0);
}

function check(holds: boolean, what: string): asserts holds {
  if (!holds)
    throw new DdfError('INVALID_FILE', `the safetensors header ${what}`, {
      remedy: 'Write the file anew with a safetensors library.',
    });
}
