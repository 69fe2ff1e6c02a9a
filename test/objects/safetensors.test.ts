import fc from 'fast-check';
import { expect, test } from 'vitest';
import { parseSafetensors, safetensorsHeadBytes } from '../../objects/safetensors.ts';

function head(json: unknown): Buffer {
  const text = Buffer.from(typeof json === 'string' ? json : JSON.stringify(json));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(text.length));
  return Buffer.concat([length, text]);
}

const good = {
  __metadata__: { format: 'pt' },
  b: { dtype: 'F32', shape: [], data_offsets: [12, 16] },
  a: { dtype: 'BF16', shape: [2, 3], data_offsets: [0, 12] },
};

test('tensors are listed in the order of their data, with offsets in the file', () => {
  const bytes = head(good);
  expect(safetensorsHeadBytes(bytes.subarray(0, 9), bytes.length + 16)).toBe(bytes.length);
  const listing = parseSafetensors(bytes, bytes.length + 16);
  expect(listing.metadata).toEqual({ format: 'pt' });
  expect(listing.tensors.map((tensor) => tensor.name)).toEqual(['a', 'b']);
  expect(listing.tensors[0]).toMatchObject({ shape: [2, 3], begin: bytes.length, end: bytes.length + 12 });
});

test.each([
  ['an overlap', { ...good, b: { dtype: 'F32', shape: [], data_offsets: [8, 12] } }, 12],
  ['a hole', { ...good, b: { dtype: 'F32', shape: [], data_offsets: [16, 20] } }, 20],
  ['bytes at the end', good, 17],
  ['data behind the end', good, 15],
  ['an unknown type', { a: { dtype: 'F31', shape: [1], data_offsets: [0, 4] } }, 4],
  ['a type of the prototype', { a: { dtype: 'constructor', shape: [1], data_offsets: [0, 4] } }, 4],
  ['a shape that does not fit', { a: { dtype: 'F32', shape: [2], data_offsets: [0, 4] } }, 4],
  ['a shape that overflows', { a: { dtype: 'F32', shape: [2 ** 52, 2 ** 52], data_offsets: [0, 4] } }, 4],
  ['a negative size', { a: { dtype: 'F32', shape: [-1], data_offsets: [0, 4] } }, 4],
  ['offsets backwards', { a: { dtype: 'F32', shape: [0], data_offsets: [4, 0] } }, 4],
  ['no offsets', { a: { dtype: 'F32', shape: [1] } }, 4],
  ['metadata that is no text', { __metadata__: { a: 1 } }, 0],
  ['a list', [], 0],
  ['broken JSON', '{"a":', 0],
])('%s is refused', (_, json, dataBytes) => {
  const bytes = head(json);
  expect(() => parseSafetensors(bytes, bytes.length + dataBytes)).toThrow(
    expect.objectContaining({ code: 'INVALID_FILE' }),
  );
});

test('what is not safetensors travels as bytes', () => {
  expect(safetensorsHeadBytes(Buffer.from('GGUF'), 4)).toBeUndefined();
  expect(safetensorsHeadBytes(Buffer.from('GGUF    anything'), 1000)).toBeUndefined();
  const long = head(good);
  expect(safetensorsHeadBytes(long, long.length - 1)).toBeUndefined();
  long.writeBigUInt64LE(2n ** 63n);
  expect(safetensorsHeadBytes(long, 2 ** 40)).toBeUndefined();
});

test('fuzz: damaged headers are refused as INVALID_FILE or give a consistent listing', () => {
  const original = head(good);
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.nat(original.length - 1), fc.nat(255)), { maxLength: 3 }), (changes) => {
      const damaged = Buffer.from(original);
      for (const [at, value] of changes) damaged[Math.max(8, at)] = value;
      try {
        const { tensors } = parseSafetensors(damaged, damaged.length + 16);
        expect(tensors.reduce((sum, tensor) => sum + tensor.end - tensor.begin, 0)).toBe(16);
      } catch (error) {
        expect(error).toMatchObject({ code: 'INVALID_FILE' });
      }
    }),
    { seed: 7, numRuns: 500 },
  );
});
