import { readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { ERROR_CODES } from '../base/errors.ts';

const ROOT = dirname(dirname(fileURLToPath(import.meta.url)));

/** Which top folders a top folder may import: the order of docs/architecture.md. `p4/build/constants.ts` is free for all. */
const MAY_IMPORT: Record<string, readonly string[]> = {
  base: [],
  wire: ['base'],
  objects: ['base', 'wire'],
  topologies: ['base'],
  switch: ['base', 'wire', 'objects'],
  agents: ['base', 'wire', 'objects'],
  controller: ['base', 'wire', 'objects', 'topologies'],
  lab: ['base', 'wire', 'objects', 'topologies', 'switch', 'agents', 'controller'],
  scripts: ['base', 'wire', 'objects', 'topologies', 'switch', 'agents', 'controller', 'lab'],
};

const PURE = [
  'wire',
  'objects',
  'agents/protocol',
  'agents/fec',
  'controller/topology',
  'controller/planner',
  'controller/rollout',
  'controller/tables',
  'switch/runtime',
  'switch/compile',
  'switch/bmv2',
];

const PACKAGE_HOMES: Record<string, readonly string[]> = {
  '@grpc/grpc-js': ['controller/p4runtime', 'controller/agents', 'agents/io'],
  commander: ['controller/cli', 'scripts/ddf.ts'],
  protobufjs: ['wire'],
  fastify: ['controller/api'],
  'better-sqlite3': ['controller/store'],
  // The doctor only asks whether it is there.
  koffi: ['base/linux', 'scripts/mininet/tools.ts'],
};

const MAX_LINES = 600;

function filesBelow(folder: string): string[] {
  return readdirSync(join(ROOT, folder), { withFileTypes: true }).flatMap((item) => {
    const path = join(folder, item.name);
    if (item.isDirectory()) return filesBelow(path);
    return /\.(ts|mjs|p4)$/.test(item.name) ? [path] : [];
  });
}

function importsOf(file: string): string[] {
  const text = readFileSync(join(ROOT, file), 'utf8').replace(/\/\*[\s\S]*?\*\//g, '');
  const found = [
    ...text.matchAll(/^\s*(?:import|export)\s(?:[^'"`;]*?\sfrom\s)?['"]([^'"]+)['"]/gm),
    ...text.matchAll(/\bimport\(['"]([^'"]+)['"]\)/g),
  ];
  return found.map((match) => match[1]!);
}

/** Imports of our own files, as paths from the root. */
function ownImportsOf(file: string): string[] {
  return importsOf(file)
    .filter((name) => name.startsWith('.'))
    .map((name) => relative(ROOT, resolve(ROOT, dirname(file), name)));
}

const sources = Object.keys(MAY_IMPORT)
  .flatMap(filesBelow)
  .filter((file) => file.endsWith('.ts'));

function violations(check: (file: string) => string[]): string[] {
  return sources.flatMap((file) => check(file).map((problem) => `${file}: ${problem}`));
}

describe('the import law', () => {
  it('lets folders import only what stands before them', () => {
    expect(
      violations((file) => {
        const top = file.split('/')[0]!;
        return ownImportsOf(file).filter((target) => {
          const other = target.split('/')[0]!;
          return target !== 'p4/build/constants.ts' && other !== top && !MAY_IMPORT[top]!.includes(other);
        });
      }),
    ).toEqual([]);
  });

  it('keeps the command line apart from the controller: it speaks HTTP', () => {
    expect(
      violations((file) =>
        file.startsWith('controller/cli/')
          ? ownImportsOf(file).filter(
              (target) =>
                !/^(base|controller\/cli|controller\/service\.ts|controller\/planner\/plan-text\.ts)/.test(target),
            )
          : [],
      ),
    ).toEqual([]);
  });

  it('keeps I/O, clocks and randomness out of the pure folders', () => {
    expect(
      violations((file) => {
        if (!PURE.some((folder) => file.startsWith(`${folder}/`))) return [];
        const text = readFileSync(join(ROOT, file), 'utf8');
        const imports = importsOf(file).filter(
          (name) =>
            /^node:(net|dgram|fs|timers|http|child_process|worker_threads)/.test(name) ||
            /base\/(logger\.ts|linux\/)/.test(name),
        );
        const calls = [
          ...text.matchAll(
            /\b(Date\.now|new Date\(\)|Math\.random|performance\.now|setTimeout|setImmediate|setInterval)\b/g,
          ),
        ].map((match) => match[0]);
        return [...imports, ...calls];
      }),
    ).toEqual([]);
  });

  it('uses each guarded package only in its homes', () => {
    expect(
      violations((file) =>
        importsOf(file).filter((name) => {
          const guarded = Object.keys(PACKAGE_HOMES).find((known) => name === known || name.startsWith(`${known}/`));
          return (
            guarded !== undefined &&
            !PACKAGE_HOMES[guarded]!.some((home) => file === home || file.startsWith(`${home}/`))
          );
        }),
      ),
    ).toEqual([]);
  });

  it('lets only reconcile write to switches', () => {
    expect(
      violations((file) =>
        file.startsWith('controller/') && !/^controller\/(reconcile|p4runtime)\//.test(file)
          ? [...readFileSync(join(ROOT, file), 'utf8').matchAll(/\.writeBatch\(|\.write\(\s*\[/g)].map(
              (match) => match[0],
            )
          : [],
      ),
    ).toEqual([]);
  });

  it('has no cycles between files', () => {
    const graph = new Map(sources.map((file) => [file, valueImportsOf(file)]));
    const state = new Map<string, 'open' | 'done'>();
    const cycles: string[] = [];
    const visit = (file: string, trail: string[]): void => {
      if (state.get(file) === 'done') return;
      if (state.get(file) === 'open') {
        cycles.push([...trail.slice(trail.indexOf(file)), file].join(' -> '));
        return;
      }
      state.set(file, 'open');
      for (const next of graph.get(file) ?? []) visit(next, [...trail, file]);
      state.set(file, 'done');
    };
    for (const file of sources) visit(file, []);
    expect(cycles).toEqual([]);
  });
});

/** Type-only imports vanish before anything runs and may point back. */
function valueImportsOf(file: string): string[] {
  const text = readFileSync(join(ROOT, file), 'utf8').replace(/^\s*(?:import|export) type [^;]*;/gm, '');
  return [...text.matchAll(/^\s*(?:import|export)\s(?:[^'"`;]*?\sfrom\s)?['"](\.[^'"]+)['"]/gm)].map((match) =>
    relative(ROOT, resolve(ROOT, dirname(file), match[1]!)),
  );
}

describe('the house', () => {
  it(`keeps files under ${MAX_LINES} lines`, () => {
    const long = [
      ...sources,
      ...filesBelow('p4').filter((file) => !file.startsWith('p4/build/')),
      ...filesBelow('test'),
    ]
      .filter((file) => !file.endsWith('/messages.ts'))
      .map((file) => ({ file, lines: readFileSync(join(ROOT, file), 'utf8').split('\n').length }))
      .filter(({ lines }) => lines > MAX_LINES);
    expect(long).toEqual([]);
  });

  it('documents every error code, and no other', () => {
    const documented = [...readFileSync(join(ROOT, 'docs/errors.md'), 'utf8').matchAll(/^\| `([A-Z_]+)` \|/gm)].map(
      (match) => match[1]!,
    );
    expect([...documented].sort()).toEqual([...ERROR_CODES].sort());
  });

  it('raises every error code somewhere', () => {
    const text = sources
      .filter((file) => file !== 'base/errors.ts')
      .map((file) => readFileSync(join(ROOT, file), 'utf8'))
      .join('\n');
    expect(ERROR_CODES.filter((code) => !text.includes(`'${code}'`) && code !== 'INTERNAL')).toEqual([]);
  });

  it('names no path of a machine and no registry host', () => {
    const texts = [
      'README.md',
      'CHANGELOG.md',
      ...readdirSync(join(ROOT, 'docs')).map((name) => `docs/${name}`),
      ...sources,
    ].filter((file) => statSync(join(ROOT, file)).isFile());
    const found = texts.filter((file) =>
      /\/(?:work|home|root)\/[a-z]|registry\.npmjs|deb\.debian\.org/.test(readFileSync(join(ROOT, file), 'utf8')),
    );
    expect(found).toEqual([]);
  });
});
