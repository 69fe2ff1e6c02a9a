import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { DROP_COUNTER_SIZE, DROP_REASON_NAMES } from '../../p4/build/constants.ts';
import {
  BUILD_DIRECTORY,
  buildFiles,
  compileFabric,
  compilerVersion,
  constantsModule,
  findCompiler,
  p4Sources,
  readBuildRecord,
  remainingDiagnostics,
  sourceDigest,
  sourceNamed,
  withoutMachinePaths,
} from '../../scripts/p4-build.ts';

const built = (name: string): string => readFileSync(join(BUILD_DIRECTORY, name), 'utf8');

const compiler = findCompiler();
/** Another release numbers nodes differently. */
const whyNotCompared = ((): string | undefined => {
  if (compiler === undefined) return 'no p4c on the PATH';
  const [here, built] = [compilerVersion(compiler), readBuildRecord().p4cVersion];
  return here === built ? undefined : `made by p4c ${built}, here is ${here}`;
})();

describe('p4/build', () => {
  const sources = p4Sources();

  it('was made of exactly these sources', () => {
    expect(readBuildRecord().sourceDigest).toBe(sourceDigest(sources));
  });

  it('has the constants of ids.p4 and sizes.p4', () => {
    expect(built('constants.ts')).toBe(
      constantsModule(sourceNamed(sources, 'ids.p4'), sourceNamed(sources, 'sizes.p4')),
    );
  });

  it('names every drop reason, and the drop counter has room for it', () => {
    const reasons = Object.keys(DROP_REASON_NAMES).map(Number);
    expect(reasons).toEqual(reasons.map((_, index) => index));
    expect(new Set(Object.values(DROP_REASON_NAMES)).size).toBe(reasons.length);
    expect(reasons.length).toBeLessThanOrEqual(DROP_COUNTER_SIZE);
    expect(DROP_REASON_NAMES[16]).toBe('eliminated');
  });

  it('names no place of the machine that made it', () => {
    const names = [...built('fabric.json').matchAll(/"(?:filename|program)": "([^"]*)"/g)].map((match) => match[1]!);
    expect(names.length).toBeGreaterThan(0);
    expect(names.filter((name) => !/^[a-z]+\.p4$/.test(name))).toEqual([]);
  });

  it.skipIf(whyNotCompared !== undefined)(
    `is what p4c makes, and p4c says nothing against it that could be helped${whyNotCompared === undefined ? '' : ` (skipped: ${whyNotCompared})`}`,
    () => {
      for (const [name, text] of buildFiles(sources, compileFabric(compiler!)))
        expect(built(name) === text, name).toBe(true);
    },
    120_000,
  );
});

describe('the build script', () => {
  it('refuses a constant that it would lose', () => {
    const sizes = { name: 'sizes.p4', text: 'const int A_SIZE = 4;\n' };
    expect(() => constantsModule({ name: 'ids.p4', text: '\nconst bit<8> DROP_X = 1 + 1;\n' }, sizes)).toThrow(
      expect.objectContaining({ code: 'INVALID_PROGRAM', where: 'p4/ids.p4:2' }),
    );
  });

  it('notices a source that changed, moved or lost its name', () => {
    const sources = [
      { name: 'a.p4', text: 'x' },
      { name: 'b.p4', text: 'y' },
    ];
    const digests = [
      sources,
      [sources[0]!],
      [sources[0]!, { name: 'b.p4', text: 'z' }],
      [sources[0]!, { name: 'c.p4', text: 'y' }],
    ].map(sourceDigest);
    expect(new Set(digests).size).toBe(digests.length);
  });

  it('takes machine paths out of the JSON and leaves the rest', () => {
    const json = JSON.stringify({
      program: '/home/someone/p4/fabric.p4',
      actions: [
        { source_info: { filename: '/home/someone/p4/repair.p4', line: 3 } },
        { source_info: { filename: '/usr/lib/core.p4' } },
      ],
      value: '/home/someone/p4/kept',
    });
    expect(JSON.parse(withoutMachinePaths(json, '/home/someone/p4'))).toEqual({
      program: 'fabric.p4',
      actions: [{ source_info: { filename: 'repair.p4', line: 3 } }, { source_info: { filename: 'core.p4' } }],
      value: '/home/someone/p4/kept',
    });
  });

  it('lets nothing pass that p4c says but the warning about the selector', () => {
    const selector =
      'forwarding.p4(50): [--Wwarn=unsupported] warning: Target does not support default_action for FabricIngress.forwarding.ipv4_lpm (due to action profiles)\n' +
      '    table ipv4_lpm {\n          ^^^^^^^^\n';
    const other = 'repair.p4(3): [--Wwarn=unused] warning: x: unused instance\n    x\n    ^';
    expect(remainingDiagnostics(selector)).toBe('');
    expect(remainingDiagnostics(`${selector}${other}\n`)).toBe(other);
    expect(remainingDiagnostics(`${other}\n${selector}`)).toBe(other);
    expect(remainingDiagnostics(selector.replace('ipv4_lpm', 'l2'))).not.toBe('');
  });
});
