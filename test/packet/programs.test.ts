import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { compilerVersion, findCompiler, readBuildRecord } from '../../scripts/p4-build.ts';

const DIRECTORY = fileURLToPath(new URL('programs', import.meta.url));
const compiler = findCompiler();
const sources = readdirSync(DIRECTORY).filter((name) => name.endsWith('.p4'));

/** Other releases of p4c number and name things differently. */
const sameRelease =
  compiler !== undefined && !compiler.isDriver && compilerVersion(compiler) === readBuildRecord().p4cVersion;

test.skipIf(!sameRelease).each(sources)(
  '%s is compiled as its JSON says',
  (name) => {
    const output = mkdtempSync(join(tmpdir(), 'ddf-p4-'));
    try {
      const made = join(output, 'made.json');
      const { status } = spawnSync(compiler!.path, ['--std', 'p4-16', name, '-o', made], {
        cwd: DIRECTORY,
        encoding: 'utf8',
      });
      expect(status).toBe(0);
      const read = (path: string): unknown => JSON.parse(readFileSync(path, 'utf8')) as unknown;
      expect(read(join(DIRECTORY, name.replace('.p4', '.json')))).toEqual(read(made));
    } finally {
      rmSync(output, { recursive: true, force: true });
    }
  },
  60_000,
);
