import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { Program } from '../../../scripts/mininet/program.ts';

/** util-linux; programs are started through it. */
const onLinux = process.platform === 'linux';
let directory: string;
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'ddf-program-'));
});
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const start = (name: string, script: string): Program =>
  new Program({
    name,
    command: [process.execPath, '-e', script],
    environment: process.env,
    logFile: join(directory, name),
  });

async function failureOf(program: Program): Promise<{ code: string; message: string }> {
  for (let i = 0; i < 1000; i++) {
    try {
      program.requireRunning();
    } catch (error) {
      return error as { code: string; message: string };
    }
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  throw new Error('it still runs');
}

it.skipIf(!onLinux)('a program that ends says how, with its last lines', async () => {
  const script = `for (let i = 1; i <= 20; i++) console.error('line ' + i); process.exitCode = 3;`;
  const { code, message } = await failureOf(start('leaf1', script));
  expect(code).toBe('PROCESS_FAILED');
  expect(message).toMatch(/^leaf1 ended with exit code 3:\nline 9\n.*line 20$/s);
});

it.skipIf(!onLinux)('a program that is stopped has not failed', async () => {
  const program = start('leaf2', `setInterval(() => undefined, 1000);`);
  await program.stop();
  program.requireRunning();
});
