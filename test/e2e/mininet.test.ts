import { spawn, spawnSync } from 'node:child_process';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createRandom } from '../../base/random.ts';
import { findLeftovers, RUN_VARIABLE } from '../../scripts/mininet/runs.ts';
import type { SwitchKind } from '../../scripts/mininet/switches.ts';
import { mininetTools } from '../../scripts/mininet/tools.ts';

const MININET = fileURLToPath(new URL('../../scripts/mininet.mjs', import.meta.url));
const DDF = fileURLToPath(new URL('../../scripts/ddf.mjs', import.meta.url));
const LEAF_SPINE = fileURLToPath(new URL('../../topologies/leaf-spine.yaml', import.meta.url));
const SINGLE_SWITCH = fileURLToPath(new URL('../../topologies/single-switch.yaml', import.meta.url));
/** For machines that do other things too; a run takes about 15 s. */
const RUN_TIMEOUT_MS = 180_000;

function missing(kind: SwitchKind): string[] {
  return mininetTools(kind)
    .filter(({ found }) => found === undefined)
    .map(({ name }) => name);
}

let directory = '';
let temporary = '';
const running = new Set<{ pid?: number | undefined; kill(signal: NodeJS.Signals): boolean }>();

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'ddf-mininet-test-'));
  temporary = await mkdtemp(join(directory, 'tmp-'));
});

afterEach(async () => {
  // What a test that failed has started: it cleans up by itself when it is asked to end.
  for (const child of running) child.kill('SIGTERM');
  for (const deadline = Date.now() + 30_000; running.size > 0 && Date.now() < deadline; )
    await new Promise((resolve) => setTimeout(resolve, 100));
  for (const child of running) child.kill('SIGKILL');
  await rm(directory, { recursive: true, force: true });
});

interface Ended {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

function start(options: readonly string[], input: 'ignore' | 'pipe' = 'ignore') {
  const child = spawn(process.execPath, [MININET, ...options], {
    env: { ...process.env, TMPDIR: temporary },
    stdio: [input, 'pipe', 'pipe'],
    timeout: RUN_TIMEOUT_MS,
  });
  running.add(child);
  let out = '';
  let err = '';
  child.stdout!.on('data', (bytes: Buffer) => {
    out += bytes;
  });
  child.stderr!.on('data', (bytes: Buffer) => {
    err += bytes;
  });
  const ended = new Promise<Ended>((resolve) => {
    child.on('close', (code) => {
      running.delete(child);
      resolve({ code, out, err });
    });
  });
  const until = async (text: string): Promise<void> => {
    for (const deadline = Date.now() + RUN_TIMEOUT_MS; !(out + err).includes(text); ) {
      if (Date.now() > deadline || !running.has(child)) throw new Error(`never said '${text}':\n${out}\n${err}`);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  };
  return { child, ended, until };
}

async function objectFile(bytes: number): Promise<string> {
  const random = createRandom('mininet');
  const path = join(directory, 'object.bin');
  await writeFile(
    path,
    Uint8Array.from({ length: bytes }, () => random.below(256)),
  );
  return path;
}

/** No file, and no process or device that carries the number of the run; other runs may be under way on this machine. */
async function expectNothingLeft({ out, err }: Pick<Ended, 'out' | 'err'>): Promise<void> {
  expect(await readdir(temporary)).toEqual([]);
  const [, run] = /agents over ddf([0-9a-f]{4})m/.exec(out + err) ?? [];
  expect(run).toBeDefined();
  expect((await readdir('/sys/class/net')).filter((name) => name.startsWith(`ddf${run}`))).toEqual([]);
  expect(findLeftovers().filter((leftover) => leftover.run === run)).toEqual([]);
}

describe.each(['embedded', 'bmv2'] as const)('the main job in Mininet on %s switches', (kind) => {
  const lacks = missing(kind);
  const run = test.skipIf(lacks.length > 0);
  const reason = lacks.length > 0 ? ` (skipped: this machine lacks ${lacks.join(', ')})` : '';

  run(
    `brings a file to every server through leaves and spines, again and again${reason}`,
    async () => {
      const object = await objectFile(1_500_000);
      for (const seed of kind === 'embedded' ? ['1', '2'] : ['1']) {
        const ended = await start([
          LEAF_SPINE,
          ...['--switch', kind, '--servers', '4', '--job', object, '--cohorts', '1,0,3', '--loss', '1', '--seed', seed],
          '--json',
        ]).ended;
        const { code, out, err } = ended;
        expect(err).toMatch(/verified by SHA-256 on 4\/4 servers/);
        expect(code).toBe(0);
        const figures = JSON.parse(out.trimEnd().split('\n').at(-1)!) as Record<string, number>;
        expect(figures).toMatchObject({ servers: 4, verified: 4, objectBytes: 1_500_000 });
        // The kernel saw at least the payload once on every link of the tree.
        expect(figures.sourceBytes).toBeGreaterThan(1_500_000);
        expect(figures.linkBytes).toBeGreaterThanOrEqual(figures.linkBytesLowerBound!);
        expect(figures.hostLinkBytes).toBeGreaterThanOrEqual(figures.hostLinkBytesLowerBound!);
        await expectNothingLeft(ended);
      }
    },
    2 * RUN_TIMEOUT_MS,
  );
});

describe('a run in Mininet', () => {
  const kind = missing('embedded').length === 0 ? 'embedded' : 'bmv2';
  const lacks = missing(kind);
  const run = test.skipIf(lacks.length > 0);
  const reason = lacks.length > 0 ? ` (skipped: this machine lacks ${lacks.join(', ')})` : '';

  run(
    `is cleaned up after an interruption${reason}`,
    async () => {
      const { child, ended, until } = start([
        SINGLE_SWITCH,
        '--switch',
        kind,
        '--servers',
        '1',
        '--job',
        await objectFile(1000),
      ]);
      await until('REST API at');
      child.kill('SIGINT');
      const { code, err } = await ended;
      expect(err).toContain('Interrupted');
      expect(code).toBe(130);
      await expectNothingLeft(await ended);
    },
    RUN_TIMEOUT_MS,
  );

  run(
    `is cleaned up by doctor --clean after kill -9${reason}`,
    async () => {
      const { child, ended, until } = start([
        SINGLE_SWITCH,
        '--switch',
        kind,
        '--servers',
        '1',
        '--job',
        await objectFile(1000),
      ]);
      await until('REST API at');
      child.kill('SIGKILL');
      await ended;
      const clean = spawnSync(process.execPath, [DDF, 'doctor', '--clean'], {
        encoding: 'utf8',
        env: { ...process.env, TMPDIR: temporary },
      });
      expect(clean.stdout).toMatch(/Run [0-9a-f]{4} had left .* removed/);
      await expectNothingLeft(await ended);
    },
    RUN_TIMEOUT_MS,
  );

  run(
    `hands over to Mininet's command line${reason}`,
    async () => {
      const options = [SINGLE_SWITCH, '--switch', kind, '--servers', '1', '--job', await objectFile(1000), '--cli'];
      const { child, ended } = start(options, 'pipe');
      child.stdin!.end('gpu01 ping -c 1 -W 5 mn1\nexit\n');
      const { code, out, err } = await ended;
      expect(out + err).toContain('1 received');
      expect(code).toBe(0);
      await expectNothingLeft(await ended);
    },
    RUN_TIMEOUT_MS,
  );
});

test('without what it needs it says what is missing, and 2 for wrong options', async () => {
  const { code, err } = await start([LEAF_SPINE, '--switch', 'tofino']).ended;
  expect(err).toContain('INVALID_OPTION: --switch tofino: not one of embedded, bmv2');
  expect(code).toBe(2);
  expect(process.env[RUN_VARIABLE]).toBeUndefined();
});
