import { DdfError, type ErrorCode } from '../../base/errors.ts';
import { createRandom, type Random } from '../../base/random.ts';
import { type ByteSource, memorySource } from '../../objects/byte-source.ts';
import { ChunkHasher } from '../../objects/chunks.ts';
import { applyDelta, encodeDelta } from '../../objects/delta.ts';
import { CODEC_XOR_ZSTD, decodeManifest, deltaManifest, encodeManifest, fullManifest } from '../../objects/manifest.ts';
import { parseSafetensors, safetensorsHeadBytes } from '../../objects/safetensors.ts';
import { JsonDocument, mutateBytes, randomBytes } from './mutate.ts';
import { ensure, type FuzzTarget, pick, Tally } from './target.ts';

/** Runs what reads bytes from outside; its own errors are answers. */
function attempt(tally: Tally, codes: readonly ErrorCode[], read: () => void): void {
  try {
    read();
    tally.add('accepted');
  } catch (error) {
    if (!(error instanceof DdfError)) throw error;
    ensure(codes.includes(error.code), () => `refused with ${error.code}: ${error.describe()}`);
    tally.add(error.code);
  }
}

function hashesOf(sizeBytes: number, chunkBytes: number) {
  const hasher = new ChunkHasher(chunkBytes);
  hasher.push(randomBytes(createRandom('bytes'), sizeBytes));
  return hasher.finish();
}

/** Damaged manifests: refused, or exactly what an encoder makes. */
export function manifests(): FuzzTarget {
  const image = { sizeBytes: 99, rootSha256: new Uint8Array(32).fill(7) };
  const id = { objectId: 5n, version: 22, baseVersion: 21 };
  const samples = [
    encodeManifest(fullManifest(5n, 22, hashesOf(20_000, 4096))),
    encodeManifest(fullManifest(5n, 1, hashesOf(1, 4096))),
    encodeManifest(deltaManifest(id, CODEC_XOR_ZSTD, hashesOf(9000, 4096), image, image)),
  ];
  const tally = new Tally();
  return {
    casesPerRound: 5000,
    tally,
    round: (random, cases, step) => {
      for (let i = 0; i < cases; i++) {
        const bytes = mutateBytes(random, pick(random, samples));
        step(() => `manifest ${Buffer.from(bytes).toString('hex')}`);
        attempt(tally, ['INVALID_MANIFEST'], () => {
          const again = encodeManifest(decodeManifest(bytes));
          ensure(Buffer.from(again).equals(bytes), () => 'an accepted manifest is encoded differently');
        });
      }
    },
  };
}

const SAFETENSORS = {
  __metadata__: { format: 'pt' },
  'layer.0.weight': { dtype: 'BF16', shape: [2, 3], data_offsets: [0, 12] },
  'layer.0.bias': { dtype: 'F32', shape: [], data_offsets: [12, 16] },
  empty: { dtype: 'I64', shape: [0, 5], data_offsets: [16, 16] },
  packed: { dtype: 'F4', shape: [8], data_offsets: [16, 20] },
};

function safetensorsHead(json: unknown): Uint8Array {
  const text = Buffer.from(JSON.stringify(json) ?? '');
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(text.length));
  return new Uint8Array(Buffer.concat([length, text]));
}

/** Damaged heads of safetensors files: no safetensors, refused, or tensors that tile the file. */
export function safetensors(): FuzzTarget {
  const document = new JsonDocument(SAFETENSORS);
  const tally = new Tally();
  return {
    casesPerRound: 5000,
    tally,
    round: (random, cases, step) => {
      for (let i = 0; i < cases; i++) {
        const head = random.chance(0.6)
          ? safetensorsHead(document.mutate(random))
          : mutateBytes(random, safetensorsHead(SAFETENSORS));
        step(() => `head ${Buffer.from(head).toString('hex')}`);
        const fileBytes = head.length + (random.chance(0.8) ? 20 : random.below(40));
        const headBytes = safetensorsHeadBytes(head, fileBytes);
        if (headBytes === undefined || headBytes > head.length) {
          tally.add('plain bytes');
          continue;
        }
        attempt(tally, ['INVALID_FILE'], () => {
          const { tensors } = parseSafetensors(head.subarray(0, headBytes), fileBytes);
          let at = headBytes;
          for (const { begin, end } of tensors) {
            ensure(begin === at && end >= begin, () => `a tensor at ${begin}..${end} where ${at} is next`);
            at = end;
          }
          ensure(at === fileBytes, () => 'tensors do not reach the end of the file');
        });
      }
    },
  };
}

/** More than any delta of these samples may make. */
const MAX_TARGET_BYTES = 64 * 1024 * 1024;

class TooMuch extends Error {}

/** Damaged deltas: refused, or a target of the size that they state; never more memory than a few frames. */
export function deltas(): FuzzTarget {
  const random = createRandom('deltas');
  const base = randomBytes(random, 10_000);
  const target = randomBytes(random, 12_000);
  target.set(base.subarray(0, 9000));
  target[77] = 1;
  const samples = [base, target].map((to) => {
    const parts: Uint8Array[] = [];
    encodeDelta(memorySource(base), memorySource(to), (bytes) => parts.push(bytes.slice()));
    return { bytes: new Uint8Array(Buffer.concat(parts)), target: to };
  });
  const tally = new Tally();
  return {
    casesPerRound: 500,
    tally,
    round: (caseRandom, cases, step) => {
      for (let i = 0; i < cases; i++) {
        const { bytes } = pick(caseRandom, samples);
        const damaged = mutateHead(caseRandom, bytes);
        step(() => `delta ${Buffer.from(damaged.subarray(0, 200)).toString('hex')}`);
        const stated = damaged.length >= 24 ? Buffer.from(damaged).readBigUInt64BE(16) : 0n;
        let made = 0;
        try {
          attempt(tally, ['CORRUPT_PAYLOAD', 'BASE_MISMATCH'], () => {
            applyDelta(memorySource(base) as ByteSource, memorySource(damaged), (part) => {
              made += part.length;
              if (made > MAX_TARGET_BYTES) throw new TooMuch();
            });
            ensure(BigInt(made) === stated, () => `${made} bytes were made, ${stated} were stated`);
          });
        } catch (error) {
          if (!(error instanceof TooMuch)) throw error;
          tally.add('endless');
        }
      }
    },
  };
}

/** Headers, of the delta and of its frames, are few bytes among many: they get their share. */
function mutateHead(random: Random, bytes: Uint8Array): Uint8Array {
  if (random.chance(0.4)) return mutateBytes(random, bytes);
  const head = 24 + random.below(12);
  return new Uint8Array(
    Buffer.concat([mutateBytes(random, bytes.subarray(0, head), 1 + random.below(2)), bytes.subarray(head)]),
  );
}
