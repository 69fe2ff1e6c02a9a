import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ChunkHasher, chunkCount, chunkLength, rootSha256, sha256 } from '../../objects/chunks.ts';
import {
  CODEC_XOR_ZSTD,
  decodeManifest,
  decodeManifestOf,
  deltaManifest,
  encodeManifest,
  fullManifest,
  type Manifest,
  manifestBytes,
  manifestSha256,
} from '../../objects/manifest.ts';

function hashesOf(bytes: Uint8Array, chunkBytes = 4096) {
  const hasher = new ChunkHasher(chunkBytes);
  hasher.push(bytes);
  return hasher.finish();
}

const base = { sizeBytes: 5000, rootSha256: sha256(new Uint8Array([1])) };
const target = { sizeBytes: 6000, rootSha256: sha256(new Uint8Array([2])) };
const bytes = new Uint8Array(10_000).map((_, i) => i * 7);
const full = fullManifest(0x0007_0000_0000_0001n, 22, hashesOf(bytes));
const delta = deltaManifest(
  { objectId: 0x0007_0000_0000_0001n, version: 22, baseVersion: 21 },
  CODEC_XOR_ZSTD,
  hashesOf(bytes),
  base,
  target,
);

function plain(manifest: Manifest) {
  return JSON.stringify(manifest, (_, value) =>
    typeof value === 'bigint'
      ? String(value)
      : value instanceof Uint8Array
        ? Buffer.from(value).toString('hex')
        : value,
  );
}

test('chunk hashes do not depend on how the bytes were cut on their way', () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 9000 }), { maxLength: 6 }), (pieces) => {
      const hasher = new ChunkHasher(4096);
      for (const piece of pieces) hasher.push(piece);
      const whole = Buffer.concat(pieces);
      const hashes = hasher.finish();
      const expected = [];
      for (let i = 0; i < chunkCount(whole.length, 4096); i++)
        expected.push(sha256(whole.subarray(i * 4096, i * 4096 + chunkLength(whole.length, i, 4096))));
      expect(Buffer.from(hashes.chunkSha256)).toEqual(Buffer.concat(expected));
      expect(hashes.rootSha256).toEqual(rootSha256(whole.length, 4096, Buffer.concat(expected)));
    }),
    { seed: 2, numRuns: 50 },
  );
});

test('manifests of full images and of deltas survive the way', () => {
  for (const manifest of [full, delta]) {
    const encoded = encodeManifest(manifest);
    expect(encoded.length).toBe(manifestBytes(manifest));
    expect(plain(decodeManifest(encoded))).toBe(plain(manifest));
    expect(encodeManifest(decodeManifest(encoded))).toEqual(encoded);
    expect(manifestSha256(encoded)).toEqual(sha256(encoded));
  }
});

test('a manifest of another payload is refused', () => {
  const encoded = encodeManifest(delta);
  expect(decodeManifestOf(delta, encoded).version).toBe(22);
  expect(() => decodeManifestOf({ ...delta, baseVersion: 20 }, encoded)).toThrow('is of payload');
  expect(() => decodeManifestOf({ ...delta, sizeBytes: 9999 }, encoded)).toThrow('not of 9999');
});

test('fuzz: mutated manifests are decoded to what they say, or refused as INVALID_MANIFEST', () => {
  const originals = [encodeManifest(full), encodeManifest(delta)];
  let accepted = 0;
  fc.assert(
    fc.property(
      fc.nat(1),
      fc.array(fc.tuple(fc.nat(300), fc.nat(255)), { minLength: 1, maxLength: 4 }),
      fc.option(fc.nat(300), { nil: undefined }),
      (which, changes, cut) => {
        const mutated = Uint8Array.from(originals[which]!);
        for (const [at, value] of changes) if (at < mutated.length) mutated[at] = value;
        const input = cut === undefined ? mutated : mutated.subarray(0, Math.min(cut, mutated.length));
        try {
          const manifest = decodeManifest(input);
          accepted++;
          expect(Buffer.compare(encodeManifest(manifest), input)).toBe(0);
        } catch (error) {
          expect(error).toMatchObject({ code: 'INVALID_MANIFEST' });
        }
      },
    ),
    { seed: 3, numRuns: 2000 },
  );
  // Version numbers and the names of base and target are not covered by the root: the manifest's own SHA-256 covers them.
  expect(accepted).toBeGreaterThan(0);
});

test('fuzz: random bytes are never a manifest', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 400 }), (input) => {
      expect(() => decodeManifest(input)).toThrow(expect.objectContaining({ code: 'INVALID_MANIFEST' }));
    }),
    { seed: 4, numRuns: 500 },
  );
});
