/**
 * Compiles p4/fabric.p4 and writes p4/build/: fabric.json, fabric.p4info.txtpb, constants.ts and build.json. Then the programs of the conformance
 * checks, each beside its source.
 *
 *     npm run p4:build               needs p4c (p4c-bm2-ss or p4c on the PATH)
 *     npm run p4:build -- --check    only says whether p4/build/ is what the sources make; compiles if p4c is there
 */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  accessSync,
  constants as fsConstants,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, delimiter, isAbsolute, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { DdfError, toDdfError } from '../base/errors.ts';

export const P4_DIRECTORY = fileURLToPath(new URL('../p4', import.meta.url));
export const BUILD_DIRECTORY = join(P4_DIRECTORY, 'build');

/** What `npm run conformance` runs on switches; compiled by the same p4c. */
export const CONFORMANCE_DIRECTORY = fileURLToPath(new URL('../test/conformance/program', import.meta.url));
export const CONFORMANCE_PROGRAMS: readonly string[] = ['conformance', 'translation'];

/** A P4 source: its name within p4/ and its text. */
export interface P4Source {
  readonly name: string;
  readonly text: string;
}

/** Which compiler made p4/build/, of which sources. */
export interface BuildRecord {
  readonly p4cVersion: string;
  /** SHA-256 in hex over names and texts of all sources, in the order of their names. */
  readonly sourceDigest: string;
}

export interface CompiledProgram {
  readonly bmv2Json: string;
  readonly p4Info: string;
  readonly p4cVersion: string;
}

/** A compiler on this machine: `p4c` is the driver, `p4c-bm2-ss` its back end alone. */
export interface P4Compiler {
  readonly path: string;
  readonly isDriver: boolean;
}

/**
 * What p4c says of this program and nothing can silence: it gives every table a default action (NoAction if the source has none) and then
 * notes of a table with a selector that bmv2 ignores it. Any other warning fails the build.
 */
const UNAVOIDABLE_WARNING =
  /warning: Target does not support default_action for \S+\.(?:ipv4_lpm|one_shot_table|group_table|member_table) \(due to action profiles\)$/;

export function p4Sources(directory: string = P4_DIRECTORY): P4Source[] {
  return readdirSync(directory)
    .filter((name) => name.endsWith('.p4'))
    .sort()
    .map((name) => ({ name, text: readFileSync(join(directory, name), 'utf8') }));
}

export function sourceDigest(sources: readonly P4Source[]): string {
  const hash = createHash('sha256');
  for (const { name, text } of sources) hash.update(`${name}\0${text}\0`);
  return hash.digest('hex');
}

interface P4Constant {
  readonly name: string;
  /** As written in the source: decimal or hexadecimal. */
  readonly value: string;
}

function constantsOf(source: P4Source): P4Constant[] {
  const found: P4Constant[] = [];
  for (const [index, line] of source.text.split('\n').entries()) {
    if (!line.startsWith('const ')) continue;
    const match = /^const (?:bit<\d+>|int) (\w+) = (0x[0-9A-Fa-f]+|\d+);/.exec(line);
    if (match === null)
      throw new DdfError('INVALID_PROGRAM', `Not a constant that can be exported: ${line}`, {
        where: `p4/${source.name}:${index + 1}`,
        remedy: 'Write it as `const bit<N> NAME = NUMBER;` or `const int NAME = NUMBER;`.',
      });
    found.push({ name: match[1]!, value: match[2]! });
  }
  return found;
}

/** The TypeScript of p4/build/constants.ts: every constant of ids.p4 and sizes.p4, and the drop reasons by name. */
export function constantsModule(ids: P4Source, sizes: P4Source): string {
  const numbers = constantsOf(ids);
  const names = numbers
    .filter(({ name }) => name.startsWith('DROP_'))
    .map(
      ({ name, value }) => `  ${Number(value)}: '${name.slice('DROP_'.length).toLowerCase().replaceAll('_', '-')}',`,
    );
  return [
    '// Generated from p4/ids.p4 and p4/sizes.p4 by `npm run p4:build`. Do not edit.',
    '',
    ...[...numbers, ...constantsOf(sizes)].map(({ name, value }) => `export const ${name} = ${value};`),
    '',
    '/** Drop reasons, as indexes of the drop counter, and what they are called. */',
    'export const DROP_REASON_NAMES: Readonly<Record<number, string>> = {',
    ...names,
    '};',
    '',
  ].join('\n');
}

/** The same bmv2 JSON with file names relative to p4/, so that any machine makes the same bytes. */
export function withoutMachinePaths(fabricJson: string, directory: string): string {
  const relativeName = (name: string): string => {
    if (!isAbsolute(name)) return name;
    const path = relative(directory, name);
    return path.startsWith('..') ? basename(name) : path;
  };
  const program = JSON.parse(fabricJson, (key, value: unknown) =>
    (key === 'filename' || key === 'program') && typeof value === 'string' ? relativeName(value) : value,
  ) as unknown;
  return `${JSON.stringify(program, null, 1)}\n`;
}

/** What p4c printed, without the one warning that cannot be helped; empty when it has nothing else to say. */
export function remainingDiagnostics(stderr: string): string {
  const kept: string[] = [];
  let skipping = false;
  for (const line of stderr.split('\n')) {
    // A diagnostic is a line `file(line): ...` and the source lines under it.
    if (!/^\s/.test(line)) skipping = UNAVOIDABLE_WARNING.test(line);
    if (!skipping) kept.push(line);
  }
  return kept.join('\n').trim();
}

export function findCompiler(path: string = process.env.PATH ?? ''): P4Compiler | undefined {
  for (const name of ['p4c-bm2-ss', 'p4c'])
    for (const directory of path.split(delimiter)) {
      const candidate = join(directory, name);
      try {
        accessSync(candidate, fsConstants.X_OK);
        return { path: candidate, isDriver: name === 'p4c' };
      } catch {
        // Not in this directory.
      }
    }
  return undefined;
}

export function compilerVersion(compiler: P4Compiler): string {
  // The back end says it on stderr, the driver on stdout, below the path that it was called by.
  const { stdout, stderr } = spawnSync(compiler.path, ['--version'], { encoding: 'utf8' });
  return /(?:Version|^p4c)\s+(\d\S*)/m.exec(`${stdout}\n${stderr}`)?.[1] ?? 'unknown';
}

/** Throws INVALID_PROGRAM with p4c's own words when it refuses the program or warns about it. */
export function compileP4(compiler: P4Compiler, directory: string, name: string): CompiledProgram {
  const output = mkdtempSync(join(tmpdir(), 'ddf-p4-'));
  const source = `${name}.p4`;
  try {
    const jsonPath = join(output, `${name}.json`);
    const p4InfoPath = join(output, `${name}.p4info.txt`);
    const target = compiler.isDriver ? ['-b', 'bmv2', '-a', 'v1model', '-o', output] : ['-o', jsonPath];
    // In the directory of the source, so that source positions in the JSON are relative to it.
    const { status, stderr } = spawnSync(
      compiler.path,
      [...target, '--std', 'p4-16', '--p4runtime-files', p4InfoPath, source],
      { cwd: directory, encoding: 'utf8' },
    );
    const said = remainingDiagnostics(stderr);
    const where = relative(join(P4_DIRECTORY, '..'), join(directory, source));
    if (status !== 0 || said !== '')
      throw new DdfError('INVALID_PROGRAM', `p4c does not accept ${where}:\n${said}`, { where });
    return {
      bmv2Json: withoutMachinePaths(readFileSync(jsonPath, 'utf8'), directory),
      p4Info: readFileSync(p4InfoPath, 'utf8'),
      p4cVersion: compilerVersion(compiler),
    };
  } finally {
    rmSync(output, { recursive: true });
  }
}

export function compileFabric(compiler: P4Compiler): CompiledProgram {
  return compileP4(compiler, P4_DIRECTORY, 'fabric');
}

/** Everything that is generated beside the sources of the conformance checks, by file name. */
export function conformanceFiles(compiler: P4Compiler): Map<string, string> {
  return new Map(
    CONFORMANCE_PROGRAMS.flatMap((name) => {
      const { bmv2Json, p4Info } = compileP4(compiler, CONFORMANCE_DIRECTORY, name);
      return [
        [`${name}.json`, bmv2Json],
        [`${name}.p4info.txtpb`, p4Info],
      ] as const;
    }),
  );
}

/** Everything in p4/build/, by file name. */
export function buildFiles(sources: readonly P4Source[], program: CompiledProgram): Map<string, string> {
  const record: BuildRecord = { p4cVersion: program.p4cVersion, sourceDigest: sourceDigest(sources) };
  return new Map([
    ['fabric.json', program.bmv2Json],
    ['fabric.p4info.txtpb', program.p4Info],
    ['constants.ts', constantsModule(sourceNamed(sources, 'ids.p4'), sourceNamed(sources, 'sizes.p4'))],
    ['build.json', `${JSON.stringify(record, null, 2)}\n`],
  ]);
}

export function sourceNamed(sources: readonly P4Source[], name: string): P4Source {
  const source = sources.find((candidate) => candidate.name === name);
  if (source === undefined) throw new DdfError('INVALID_PROGRAM', `p4/${name} is missing`);
  return source;
}

export function readBuildRecord(): BuildRecord {
  return JSON.parse(readFileSync(join(BUILD_DIRECTORY, 'build.json'), 'utf8')) as BuildRecord;
}

const UPDATE = 'Run `npm run p4:build` on a machine with p4c and commit p4/build/.';

function build(): void {
  const compiler = findCompiler();
  if (compiler === undefined)
    throw new DdfError('NOT_FOUND', 'There is no p4c on the PATH', {
      remedy: 'Install p4c, or leave p4/ as it is: p4/build/ is checked in.',
    });
  const files = buildFiles(p4Sources(), compileFabric(compiler));
  for (const [name, text] of files) writeFileSync(join(BUILD_DIRECTORY, name), text);
  const others = conformanceFiles(compiler);
  for (const [name, text] of others) writeFileSync(join(CONFORMANCE_DIRECTORY, name), text);
  const written = [
    ...[...files.keys()].map((name) => `p4/build/${name}`),
    ...[...others.keys()].map((name) => `test/conformance/program/${name}`),
  ];
  console.log(`wrote ${written.join(', ')}`);
}

function check(): void {
  const sources = p4Sources();
  const record = readBuildRecord();
  const stale = (what: string): DdfError =>
    new DdfError('PROGRAM_MISMATCH', what, { where: 'p4/build', remedy: UPDATE });
  if (record.sourceDigest !== sourceDigest(sources)) throw stale('p4/build/ was made of other P4 sources');
  const compiler = findCompiler();
  if (compiler === undefined) {
    console.log('p4/build/ belongs to these sources; not compiled again: there is no p4c on the PATH');
    return;
  }
  const program = compileFabric(compiler);
  if (program.p4cVersion !== record.p4cVersion) {
    console.log(
      `p4/build/ belongs to these sources; not compared: made by p4c ${record.p4cVersion}, here is ${program.p4cVersion}`,
    );
    return;
  }
  for (const [name, text] of buildFiles(sources, program))
    if (readFileSync(join(BUILD_DIRECTORY, name), 'utf8') !== text)
      throw stale(`p4/build/${name} is not what p4c makes`);
  for (const [name, text] of conformanceFiles(compiler))
    if (readFileSync(join(CONFORMANCE_DIRECTORY, name), 'utf8') !== text)
      throw stale(`test/conformance/program/${name} is not what p4c makes`);
  console.log(`p4/build/ is what p4c ${program.p4cVersion} makes of these sources`);
}

function main(options: readonly string[]): void {
  try {
    const unknown = options.find((option) => option !== '--check');
    if (unknown !== undefined)
      throw new DdfError('INVALID_OPTION', `Unknown option ${unknown}`, { remedy: 'The only option is --check.' });
    if (options.length > 0) check();
    else build();
  } catch (error) {
    console.error(toDdfError(error).describe());
    process.exitCode = 1;
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) main(process.argv.slice(2));
