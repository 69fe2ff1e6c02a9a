/**
 * Writes WebAssembly modules byte by byte: the binary format of the WebAssembly core specification 2.0 (chapter 5), as far as one module with
 * an imported memory and exported functions needs it. Code is built from the inside out, as expressions: an operand's code stands before its
 * operator's.
 */

/** Instructions in the binary format. */
export type Code = readonly number[];

export type ValueType = 'i32' | 'v128';

const VALUE_TYPES: Record<ValueType, number> = { i32: 0x7f, v128: 0x7b };

export interface FunctionBody {
  readonly name: string;
  /** They are the locals 0..n-1. No results. */
  readonly parameters: readonly ValueType[];
  /** They are the locals from n on. */
  readonly locals: readonly ValueType[];
  readonly code: Code;
}

export interface ModuleParts {
  /** Names of the memory, as the instance imports it. */
  readonly memory: { readonly module: string; readonly name: string };
  readonly functions: readonly FunctionBody[];
}

const MAGIC_AND_VERSION = [0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00];
const SECTION = { type: 1, import: 2, function: 3, export: 7, code: 10 };
const FUNCTION_TYPE = 0x60;
const FUNCTION_EXPORT = 0x00;
const MEMORY_IMPORT = 0x02;
const END = 0x0b;

/** A module whose functions are exported by their names. */
export function assembleModule({ memory, functions }: ModuleParts): Uint8Array<ArrayBuffer> {
  // A memory of any size fits: at least 0 pages, no maximum.
  const imported = [...text(memory.module), ...text(memory.name), MEMORY_IMPORT, 0x00, ...unsigned(0)];
  const types = functions.map(({ parameters }) => [FUNCTION_TYPE, ...vector(parameters.map(valueType)), ...vector([])]);
  const exported = functions.map(({ name }, i) => [...text(name), FUNCTION_EXPORT, ...unsigned(i)]);
  return Uint8Array.from([
    ...MAGIC_AND_VERSION,
    ...section(SECTION.type, vector(types)),
    ...section(SECTION.import, vector([imported])),
    ...section(SECTION.function, vector(functions.map((_, i) => unsigned(i)))),
    ...section(SECTION.export, vector(exported)),
    ...section(SECTION.code, vector(functions.map(body))),
  ]);
}

function body({ locals, code }: FunctionBody): Code {
  const bytes = [...vector(locals.map((type) => [...unsigned(1), ...valueType(type)])), ...code, END];
  return [...unsigned(bytes.length), ...bytes];
}

function section(id: number, content: Code): Code {
  return [id, ...unsigned(content.length), ...content];
}

function vector(items: readonly Code[]): Code {
  return [...unsigned(items.length), ...items.flat()];
}

function text(value: string): Code {
  const bytes = [...new TextEncoder().encode(value)];
  return [...unsigned(bytes.length), ...bytes];
}

function valueType(type: ValueType): Code {
  return [VALUE_TYPES[type]];
}

/** LEB128 of an integer from 0 to 2^32-1. */
export function unsigned(value: number): Code {
  const bytes: number[] = [];
  let rest = value;
  while (rest > 0x7f) {
    bytes.push((rest & 0x7f) | 0x80);
    rest >>>= 7;
  }
  return [...bytes, rest];
}

/** LEB128 of an integer from -2^31 to 2^31-1. */
export function signed(value: number): Code {
  const bytes: number[] = [];
  let rest = value;
  // The last byte's bit 6 is the sign.
  while (rest < -0x40 || rest > 0x3f) {
    bytes.push((rest & 0x7f) | 0x80);
    rest >>= 7;
  }
  return [...bytes, rest & 0x7f];
}

/** A loop whose body runs again as long as `condition` is not 0, at least once. */
export const doWhile = (condition: Code, ...code: readonly Code[]): Code => [
  ...[0x03, 0x40],
  ...code.flat(),
  ...condition,
  ...[0x0d, ...unsigned(0)],
  END,
];

export const local = (index: number): Code => [0x20, ...unsigned(index)];
export const setLocal = (index: number, value: Code): Code => [...value, 0x21, ...unsigned(index)];

export const i32 = {
  constant: (value: number): Code => [0x41, ...signed(value)],
  loadByte: (address: Code, offset = 0): Code => [...address, 0x2d, ...memoryArgument(0, offset)],
  add: (a: Code, b: Code): Code => [...a, ...b, 0x6a],
  multiply: (a: Code, b: Code): Code => [...a, ...b, 0x6c],
  /** Unsigned. */
  isBelow: (a: Code, b: Code): Code => [...a, ...b, 0x49],
};

const simd = (opcode: number): Code => [0xfd, ...unsigned(opcode)];

/** Sixteen bytes. Addresses need no alignment. */
export const v128 = {
  load: (address: Code, offset = 0): Code => [...address, ...simd(0x00), ...memoryArgument(0, offset)],
  store: (address: Code, value: Code, offset = 0): Code => [
    ...address,
    ...value,
    ...simd(0x0b),
    ...memoryArgument(0, offset),
  ],
  /** The same byte sixteen times. */
  constantOf: (byte: number): Code => [...simd(0x0c), ...new Array<number>(16).fill(byte)],
  and: (a: Code, b: Code): Code => [...a, ...b, ...simd(0x4e)],
  xor: (a: Code, b: Code): Code => [...a, ...b, ...simd(0x51)],
  /** Byte i of the result is byte `indices[i]` of `bytes`, 0 where that is above 15. */
  swizzle: (bytes: Code, indices: Code): Code => [...bytes, ...indices, ...simd(0x0e)],
  /** Each of eight 16-bit integers shifted right. */
  shiftRight16: (value: Code, bits: Code): Code => [...value, ...bits, ...simd(0x8d)],
};

function memoryArgument(alignment: number, offset: number): Code {
  return [...unsigned(alignment), ...unsigned(offset)];
}
