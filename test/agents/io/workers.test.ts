import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createWorkers, type Workers } from '../../../agents/io/workers.ts';
import { CHUNK_BYTES, ChunkHasher, sha256 } from '../../../objects/chunks.ts';

let directory: string;
let workers: Workers;
const path = (name: string) => join(directory, name);
const base = Buffer.alloc(3 * CHUNK_BYTES + 77, 'base weights');
const target = Buffer.from(base);
target.write('changed', CHUNK_BYTES);

function hashesOf(bytes: Uint8Array) {
  const hasher = new ChunkHasher();
  hasher.push(bytes);
  const { rootSha256, sizeBytes } = hasher.finish();
  return { root: Buffer.from(rootSha256).toString('hex'), sizeBytes };
}

beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'ddf-workers-'));
  writeFileSync(path('base'), base);
  writeFileSync(path('target'), target);
  workers = createWorkers();
});
afterAll(async () => {
  await workers.close();
  rmSync(directory, { recursive: true, force: true });
});

test('chunks and files are hashed, deltas made and applied off the event loop', async () => {
  const chunk = await workers.run({ kind: 'hash-chunk', path: path('base'), chunk: 3, sizeBytes: base.length }, 'a');
  expect(Buffer.compare(chunk, sha256(base.subarray(3 * CHUNK_BYTES)))).toBe(0);
  const imported = await workers.run({ kind: 'import-file', source: path('target'), target: path('copy') }, 'a');
  expect(Buffer.from(imported.rootSha256).toString('hex')).toBe(hashesOf(target).root);
  const delta = await workers.run(
    { kind: 'make-delta', base: path('base'), target: path('copy'), delta: path('delta') },
    'a',
  );
  expect(delta.sizeBytes).toBe(readFileSync(path('delta')).length);
  expect(delta.sizeBytes).toBeLessThan(200);
  const applied = await workers.run(
    { kind: 'apply-delta', base: path('base'), delta: path('delta'), target: path('result') },
    'a',
  );
  expect(Buffer.from(applied.rootSha256).toString('hex')).toBe(hashesOf(target).root);
  expect(readFileSync(path('result')).equals(target)).toBe(true);
  const whole = await workers.run({ kind: 'hash-file', path: path('result') }, 'a');
  expect(whole).toMatchObject({ sizeBytes: target.length });
});

test('errors keep their code, place and remedy on the way between threads', async () => {
  await expect(
    workers.run({ kind: 'import-file', source: path('missing'), target: path('copy') }, 'a'),
  ).rejects.toMatchObject({
    name: 'DdfError',
    code: 'INVALID_FILE',
    where: path('missing'),
    remedy: expect.stringContaining('Check the path'),
  });
  writeFileSync(path('nonsense'), 'no delta at all, but long enough');
  await expect(
    workers.run({ kind: 'apply-delta', base: path('base'), delta: path('nonsense'), target: path('result') }, 'a'),
  ).rejects.toMatchObject({ code: 'CORRUPT_PAYLOAD' });
});

test('what waits for one owner is given up, what others wait for is not', async () => {
  const job = { kind: 'hash-file', path: path('base') } as const;
  const running = Array.from({ length: 6 }, () => workers.run(job, 'keep'));
  const given = Array.from({ length: 6 }, () => workers.run(job, 'give up'));
  workers.cancel('give up');
  const outcomes = await Promise.allSettled(given);
  for (const outcome of outcomes) expect(outcome).toMatchObject({ status: 'rejected', reason: { code: 'CANCELLED' } });
  for (const hashes of await Promise.all(running)) expect(hashes.sizeBytes).toBe(base.length);
});

test('a job that runs is given up at its next MiB', async () => {
  const big = path('big');
  writeFileSync(big, Buffer.alloc(200 * CHUNK_BYTES));
  const single = createWorkers({ threads: 1 });
  await single.run({ kind: 'hash-chunk', path: big, chunk: 0, sizeBytes: CHUNK_BYTES }, 'warm up');
  const running = single.run({ kind: 'hash-file', path: big }, 'give up');
  single.cancel('give up');
  await expect(running).rejects.toMatchObject({ code: 'CANCELLED' });
  await single.close();
});

test('too many waiting jobs are refused, and closing rejects the rest', async () => {
  const small = createWorkers({ threads: 1, maxWaiting: 2 });
  const job = { kind: 'hash-file', path: path('base') } as const;
  const accepted = [small.run(job, 'a'), small.run(job, 'a'), small.run(job, 'a')].map((p) => p.catch((e) => e.code));
  await expect(small.run(job, 'a')).rejects.toMatchObject({ code: 'AGENT_FAILED', recoverable: true });
  await small.close();
  expect(await Promise.all(accepted)).toEqual(['CANCELLED', 'CANCELLED', 'CANCELLED']);
  await expect(small.run(job, 'a')).rejects.toMatchObject({ code: 'CANCELLED' });
});
