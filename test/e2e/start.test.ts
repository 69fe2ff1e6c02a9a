import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createRandom } from '../../base/random.ts';

const START = fileURLToPath(new URL('../../scripts/start.mjs', import.meta.url));

let directory = '';
let temporary = '';
const children = new Set<ChildProcess>();

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'ddf-start-'));
  temporary = await mkdtemp(join(directory, 'tmp-'));
});

afterEach(async () => {
  for (const child of children) child.kill('SIGKILL');
  await rm(directory, { recursive: true, force: true });
});

interface Ended {
  code: number | null;
  out: string;
  err: string;
}

/** Runs the main job with its temporary files in a directory of the test's. */
function start(options: string[]): {
  child: ChildProcess;
  ended: Promise<Ended>;
  until: (text: string) => Promise<void>;
} {
  const child = spawn(process.execPath, [START, ...options], { env: { ...process.env, TMPDIR: temporary } });
  children.add(child);
  let out = '';
  let err = '';
  const watchers = new Set<() => void>();
  child.stdout.on('data', (bytes: Buffer) => {
    out += bytes;
    for (const watch of watchers) watch();
  });
  child.stderr.on('data', (bytes: Buffer) => {
    err += bytes;
  });
  const ended = new Promise<Ended>((resolve) => {
    child.on('close', (code) => {
      children.delete(child);
      resolve({ code, out, err });
    });
  });
  const until = (text: string): Promise<void> =>
    new Promise((resolve, reject) => {
      const watch = (): void => {
        if (out.includes(text)) resolve();
      };
      watchers.add(watch);
      void ended.then(() => reject(new Error(`ended without saying '${text}':\n${out}\n${err}`)));
      watch();
    });
  return { child, ended, until };
}

async function objectFiles(bytes: number): Promise<{ object: string; base: string }> {
  const random = createRandom('start');
  const object = Uint8Array.from({ length: bytes }, () => random.below(256));
  const base = object.slice();
  for (let i = 0; i < bytes / 100; i++) base[random.below(bytes)]! ^= 1;
  const paths = { object: join(directory, 'object.bin'), base: join(directory, 'base.bin') };
  await Promise.all([writeFile(paths.object, object), writeFile(paths.base, base)]);
  return paths;
}

describe('npm start', () => {
  test("brings the user's file to every server, prints one JSON object last, leaves nothing behind", async () => {
    const { object, base } = await objectFiles(2_000_000);
    const { ended } = start(['--object', object, '--base', base, '--servers', '8', '--seed', '3', '--json']);
    const { code, out, err } = await ended;
    expect(err).toMatch(/verified by SHA-256 on 8\/8 servers/);
    expect(code).toBe(0);
    const lines = out.trimEnd().split('\n');
    expect(lines).toHaveLength(1);
    const figures = JSON.parse(lines[0]!) as Record<string, number>;
    expect(figures).toMatchObject({
      servers: 8,
      verified: 8,
      cohorts: { current: 5, delta: 2, full: 1 },
      objectBytes: 2_000_000,
    });
    for (const name of ['deltaBytes', 'sourceBytes', 'unicastBytes', 'linkBytes', 'linkBytesLowerBound', 'seconds'])
      expect(figures[name], name).toBeGreaterThan(0);
    for (const name of ['hostLinkBytes', 'hostLinkBytesLowerBound', 'nacksSent', 'nacksAtSource', 'repairSymbols'])
      expect(figures[name], name).toBeTypeOf('number');
    expect(await readdir(temporary)).toEqual([]);
  });

  test('--serve answers REST until it is interrupted, then leaves nothing behind', async () => {
    const { object } = await objectFiles(300_000);
    const { child, ended, until } = start(['--object', object, '--servers', '2', '--loss', '0', '--serve']);
    await until('until Ctrl-C');
    child.kill('SIGINT');
    const { code, out } = await ended;
    expect(code).toBe(0);
    expect(out).toMatch(/Serving at http:\/\/127\.0\.0\.1:\d+/);
    expect(await readdir(temporary)).toEqual([]);
  });

  test('an interruption in the middle cleans up', async () => {
    const { object } = await objectFiles(300_000);
    const { child, ended, until } = start(['--object', object, '--servers', '4']);
    await until('Fabric');
    child.kill('SIGTERM');
    const { code, err } = await ended;
    expect(err).toMatch(/Interrupted/);
    expect(code).toBe(130);
    expect(await readdir(temporary)).toEqual([]);
  });

  test.each([
    [['--loss', '99'], /INVALID_OPTION: --loss 99: not a number of per cent from 0 to 30/],
    [['--cohorts', '1,2'], /INVALID_OPTION: --cohorts 1,2/],
    [['--nonsense'], /unknown option '--nonsense'/],
    [['--object', 'no-such-file'], /INVALID_FILE: --object: there is no such file/],
    [['--topology', 'no-such-file'], /INVALID_FILE: --topology/],
    [['--object='], /INVALID_OPTION: --object is empty/],
  ])('%j ends with 2 and says why', async (options, message) => {
    const { code, out, err } = await start(options).ended;
    expect(err).toMatch(message);
    expect(out).toBe('');
    expect(code).toBe(2);
    expect(await readdir(temporary)).toEqual([]);
  });

  test.each([
    [['--cohorts', '1,2'], 'INVALID_OPTION', /three whole numbers/],
    [['--nonsense'], 'INVALID_OPTION', /unknown option '--nonsense'/],
  ])('with --json the failure of %j is one JSON object', async (options, errorCode, message) => {
    const { code, out } = await start([...options, '--json']).ended;
    expect(out.trimEnd().split('\n')).toHaveLength(1);
    expect(JSON.parse(out)).toEqual({
      error: expect.objectContaining({ code: errorCode, message: expect.stringMatching(message) }),
    });
    expect(code).toBe(2);
  });

  test('a topology without a Memory Node is refused before anything starts', async () => {
    const topology = join(directory, 'topology.yaml');
    const link = '{ rate: 1 Gb/s, delay: 10 us, queue: 64 frames }';
    await writeFile(
      topology,
      `name: lone\nmtu: 9000 B\nswitches: [{ name: leaf1, layer: leaf }]\n` +
        `hosts: [{ name: gpu1, kind: gpu-server, switch: leaf1, link: ${link} }]\nlinks: []\n`,
    );
    const { code, out, err } = await start(['--topology', topology]).ended;
    expect(err).toMatch(/INVALID_TOPOLOGY: the topology lone has no memory-node \(.*topology\.yaml\)/);
    expect(out).toBe('');
    expect(code).toBe(2);
  });

  test('a port that is in use is named, and what had been started is stopped', async () => {
    const { object } = await objectFiles(1000);
    const blocker = createServer().listen(0, '127.0.0.1');
    try {
      await once(blocker, 'listening');
      const { port } = blocker.address() as AddressInfo;
      const { code, err } = await start(['--object', object, '--servers', '1', '--port', String(port)]).ended;
      expect(err).toMatch(new RegExp(`ADDRESS_IN_USE: the REST API cannot listen on 127\\.0\\.0\\.1:${port}`));
      expect(code).toBe(1);
      expect(await readdir(temporary)).toEqual([]);
    } finally {
      blocker.close();
    }
  });
});
