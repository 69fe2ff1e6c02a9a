import { DdfError } from '../base/errors.ts';
import { chunkCount, type ObjectHashes, rootSha256, SHA256_BYTES, sha256 } from './chunks.ts';
import { formatPayloadId, type PayloadId } from './ids.ts';

/** How a payload's bytes lead to the version: they are it, or {@link file://./delta.ts} says how. */
export const CODEC_FULL = 'full';
export const CODEC_XOR_ZSTD = 'xor-zstd';
export type CodecName = typeof CODEC_FULL | typeof CODEC_XOR_ZSTD;
const CODECS: readonly CodecName[] = [CODEC_FULL, CODEC_XOR_ZSTD];

/** Size and root of an image: what a delta starts from or leads to. */
export interface ImageProof {
  readonly sizeBytes: number;
  readonly rootSha256: Uint8Array;
}

/** What proves a payload: of a full image (`base` undefined; the payload is `target`) or of a delta. */
export interface Manifest extends PayloadId, ObjectHashes {
  readonly codec: CodecName;
  readonly base: ImageProof | undefined;
  readonly target: ImageProof;
}

/** Larger objects are refused: no file system here has them, and it bounds what a forged manifest can make us allocate. */
export const MAX_PAYLOAD_BYTES = 2 ** 46;

const MAGIC = 0x4444464d; // "DDFM"
const FORMAT = 1;
/** magic 4, format 1, codec 1, chunkBytes 4, objectId 8, version 4, baseVersion 4, sizeBytes 8, chunks 4, root 32 */
const HEAD_BYTES = 70;
/** base and target: size 8, root 32, each */
const DELTA_BYTES = 80;

export function fullManifest(objectId: bigint, version: number, hashes: ObjectHashes): Manifest {
  const target = { sizeBytes: hashes.sizeBytes, rootSha256: hashes.rootSha256 };
  return { objectId, version, baseVersion: 0, ...hashes, codec: CODEC_FULL, base: undefined, target };
}

export function deltaManifest(
  id: PayloadId,
  codec: CodecName,
  hashes: ObjectHashes,
  base: ImageProof,
  target: ImageProof,
): Manifest {
  const { objectId, version, baseVersion } = id;
  return { objectId, version, baseVersion, ...hashes, codec, base, target };
}

/** How many bytes {@link encodeManifest} makes. */
export function manifestBytes(manifest: Manifest): number {
  return HEAD_BYTES + (manifest.base === undefined ? 0 : DELTA_BYTES) + manifest.chunkSha256.length;
}

/** Big-endian; fields in the order of the constants above, then base and target of a delta, then the chunks' SHA-256. */
export function encodeManifest(manifest: Manifest): Uint8Array {
  const out = Buffer.alloc(manifestBytes(manifest));
  out.writeUInt32BE(MAGIC, 0);
  out.writeUInt8(FORMAT, 4);
  out.writeUInt8(CODECS.indexOf(manifest.codec), 5);
  out.writeUInt32BE(manifest.chunkBytes, 6);
  out.writeBigUInt64BE(manifest.objectId, 10);
  out.writeUInt32BE(manifest.version, 18);
  out.writeUInt32BE(manifest.baseVersion, 22);
  out.writeBigUInt64BE(BigInt(manifest.sizeBytes), 26);
  out.writeUInt32BE(manifest.chunkSha256.length / SHA256_BYTES, 34);
  out.set(manifest.rootSha256, 38);
  let offset = HEAD_BYTES;
  if (manifest.base !== undefined) {
    for (const image of [manifest.base, manifest.target]) {
      out.writeBigUInt64BE(BigInt(image.sizeBytes), offset);
      out.set(image.rootSha256, offset + 8);
      offset += 40;
    }
  }
  out.set(manifest.chunkSha256, offset);
  return out;
}

/** What {@link encodeManifest} made: a payload names its manifest by this. */
export function manifestSha256(encoded: Uint8Array): Uint8Array {
  return sha256(encoded);
}

/**
 * Takes only what {@link encodeManifest} can have made: every field in its range, no byte too many, the root right.
 * @throws DdfError INVALID_MANIFEST
 */
export function decodeManifest(encoded: Uint8Array): Manifest {
  const bytes = Buffer.from(encoded.buffer, encoded.byteOffset, encoded.length);
  check(bytes.length >= HEAD_BYTES, `has ${bytes.length} bytes, fewer than its ${HEAD_BYTES} fixed ones`);
  check(bytes.readUInt32BE(0) === MAGIC, 'does not start with DDFM');
  check(bytes.readUInt8(4) === FORMAT, `has format ${bytes.readUInt8(4)}, this program reads ${FORMAT}`);
  const codec = CODECS[bytes.readUInt8(5)];
  check(codec !== undefined, `names an unknown codec ${bytes.readUInt8(5)}`);
  const chunkBytes = bytes.readUInt32BE(6);
  check(chunkBytes >= 4096 && chunkBytes <= 2 ** 28 && (chunkBytes & (chunkBytes - 1)) === 0, `chunk of ${chunkBytes}`);
  const objectId = bytes.readBigUInt64BE(10);
  const version = bytes.readUInt32BE(18);
  const baseVersion = bytes.readUInt32BE(22);
  check(version > 0, 'names version 0');
  const sizeBytes = readSize(bytes, 26);
  const count = bytes.readUInt32BE(34);
  check(count === chunkCount(sizeBytes, chunkBytes), `has ${count} chunks for ${sizeBytes} bytes`);
  const root = copy(bytes, 38);

  const isDelta = codec !== CODEC_FULL;
  check(isDelta === (baseVersion !== 0), `codec ${codec} does not go with base version ${baseVersion}`);
  check(baseVersion !== version, 'is a delta from a version to itself');
  const hashesAt = HEAD_BYTES + (isDelta ? DELTA_BYTES : 0);
  const expected = hashesAt + count * SHA256_BYTES;
  check(bytes.length === expected, `has ${bytes.length} bytes instead of ${expected}`);
  const chunkSha256 = Uint8Array.prototype.slice.call(bytes, hashesAt);
  check(
    Buffer.compare(rootSha256(sizeBytes, chunkBytes, chunkSha256), root) === 0,
    'has a root that is not its chunks',
  );

  const hashes = { sizeBytes, chunkBytes, chunkSha256, rootSha256: root };
  if (!isDelta) return fullManifest(objectId, version, hashes);
  const base = { sizeBytes: readSize(bytes, HEAD_BYTES), rootSha256: copy(bytes, HEAD_BYTES + 8) };
  const target = { sizeBytes: readSize(bytes, HEAD_BYTES + 40), rootSha256: copy(bytes, HEAD_BYTES + 48) };
  return deltaManifest({ objectId, version, baseVersion }, codec, hashes, base, target);
}

/**
 * Decodes a manifest that has to be the one of `payload`.
 * @throws DdfError INVALID_MANIFEST
 */
export function decodeManifestOf(payload: PayloadId & { sizeBytes: number }, encoded: Uint8Array): Manifest {
  const manifest = decodeManifest(encoded);
  check(formatPayloadId(manifest) === formatPayloadId(payload), `is of payload ${formatPayloadId(manifest)}`);
  check(manifest.sizeBytes === payload.sizeBytes, `is of ${manifest.sizeBytes} bytes, not of ${payload.sizeBytes}`);
  return manifest;
}

/** SHA-256 of chunk `index`, a view. */
export function chunkSha256At(manifest: ObjectHashes, index: number): Uint8Array {
  return manifest.chunkSha256.subarray(index * SHA256_BYTES, (index + 1) * SHA256_BYTES);
}

function readSize(bytes: Buffer, offset: number): number {
  const size = bytes.readBigUInt64BE(offset);
  check(size > 0n && size <= BigInt(MAX_PAYLOAD_BYTES), `states a size of ${size} bytes`);
  return Number(size);
}

function copy(bytes: Buffer, offset: number): Uint8Array {
  return Uint8Array.prototype.slice.call(bytes, offset, offset + SHA256_BYTES);
}

function check(holds: boolean, what: string): asserts holds {
  if (!holds) throw new DdfError('INVALID_MANIFEST', `the manifest ${what}`);
}
