import { access, constants, open, stat } from 'node:fs/promises';
import { basename, resolve } from 'node:path';
import { DdfError, toDdfError } from '../base/errors.ts';
import { DEMO_PACKAGE, writeDemoModel } from '../lab/demo-model.ts';
import { formatBytes, formatCount } from '../lab/report.ts';
import { parseSafetensors, safetensorsHeadBytes, type Tensor } from '../objects/safetensors.ts';

/** What the main job distributes: one version of an object, and the one before it if there is one. */
export interface JobObject {
  readonly name: string;
  readonly version: number;
  readonly path: string;
  readonly base: { readonly version: number; readonly path: string } | undefined;
  readonly sizeBytes: number;
  /** Lines that say what it is. */
  readonly description: readonly string[];
}

const BASE_VERSION = 21;
const VERSION = 22;
const SHOWN_TENSORS = 8;

/** Writes the demo model into `directory`. */
export async function demoObject(directory: string, seed: number): Promise<JobObject> {
  const model = await writeDemoModel(directory, seed);
  return {
    name: 'models/demo',
    version: model.version,
    path: model.path,
    base: { version: model.baseVersion, path: model.basePath },
    sizeBytes: model.sizeBytes,
    description: [
      `models/demo version ${model.baseVersion}: the weights of ${DEMO_PACKAGE} (npm, Apache-2.0), a sentence encoder, in bf16: ` +
        `${model.tensors} tensors, ${formatCount(model.parameters)} parameters, ${formatBytes(model.sizeBytes)}`,
      `models/demo version ${model.version}: derived from version ${model.baseVersion}, not trained: an optimiser-like update (seed ${seed}) ` +
        `of ${formatCount(model.changed)} elements (1 %), scattered evenly, by a few units in the last place`,
    ],
  };
}

/** The user's files. Throws INVALID_FILE, or BASE_MISMATCH when the base has another size. */
export async function userObject(objectFile: string, baseFile: string | undefined): Promise<JobObject> {
  const path = resolveFile('--object', objectFile);
  const sizeBytes = await checkedSize('--object', path);
  const name = `files/${basename(path).replace(/[^A-Za-z0-9._-]/g, '_')}`.slice(0, 200);
  const description = [`${name} version ${VERSION}: ${path}, ${formatBytes(sizeBytes)}`, ...(await tensorLines(path))];
  if (baseFile === undefined) return { name, version: VERSION, path, base: undefined, sizeBytes, description };
  const basePath = resolveFile('--base', baseFile);
  const baseBytes = await checkedSize('--base', basePath);
  if (baseBytes !== sizeBytes)
    throw new DdfError('BASE_MISMATCH', `the base has ${baseBytes} bytes, the object ${sizeBytes}`, {
      where: basePath,
      remedy:
        'The two are compared byte by byte: give the version that the object was made from, or leave --base away.',
    });
  const base = { version: BASE_VERSION, path: basePath };
  description.unshift(`${name} version ${BASE_VERSION}: ${basePath}, ${formatBytes(baseBytes)}`);
  return { name, version: VERSION, path, base, sizeBytes, description };
}

function resolveFile(option: string, file: string): string {
  if (file === '') throw new DdfError('INVALID_OPTION', `${option} is empty`, { remedy: 'Give the path of a file.' });
  return resolve(file);
}

async function checkedSize(option: string, path: string): Promise<number> {
  const invalid = (problem: string, remedy: string, cause?: unknown): DdfError =>
    new DdfError('INVALID_FILE', `${option}: ${problem}`, { where: path, remedy, cause });
  const info = await stat(path).catch((cause: NodeJS.ErrnoException) => {
    throw cause.code === 'ENOENT'
      ? invalid('there is no such file', 'Check the path.', cause)
      : invalid(`the file cannot be read (${cause.code})`, 'Check its permissions.', cause);
  });
  if (!info.isFile()) throw invalid('this is not a file', 'Name a file, not a directory or a device.');
  await access(path, constants.R_OK).catch((cause: unknown) => {
    throw invalid('the file cannot be read', 'Check its permissions.', cause);
  });
  if (info.size === 0) throw invalid('the file is empty', 'An object has at least one byte.');
  return info.size;
}

/** The tensors of a safetensors file; nothing for other files. */
async function tensorLines(path: string): Promise<string[]> {
  const file = await open(path, 'r');
  try {
    const { size } = await file.stat();
    const start = Buffer.alloc(Math.min(16, size));
    await file.read(start, 0, start.length, 0);
    const headBytes = safetensorsHeadBytes(start, size);
    if (headBytes === undefined) return [];
    const head = Buffer.alloc(headBytes);
    await file.read(head, 0, headBytes, 0);
    const tensors = tensorsOf(head, size);
    if (typeof tensors === 'string') return [`  looks like safetensors, but ${tensors}: distributed as plain bytes`];
    const shown = tensors.slice(0, SHOWN_TENSORS).map(({ name, dtype, shape }) => `  ${name} ${dtype} [${shape}]`);
    const rest = tensors.length - shown.length;
    return [`  safetensors with ${tensors.length} tensors:`, ...shown, ...(rest > 0 ? [`  and ${rest} more`] : [])];
  } finally {
    await file.close();
  }
}

/** Any bytes can be distributed, so a broken header is worth a remark and no more. */
function tensorsOf(head: Uint8Array, fileBytes: number): readonly Tensor[] | string {
  try {
    return parseSafetensors(head, fileBytes).tensors;
  } catch (error) {
    return toDdfError(error).message;
  }
}
