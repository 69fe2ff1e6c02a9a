import { spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { hashFile } from '../../../agents/store/files.ts';
import { Store } from '../../../agents/store/store.ts';

/** Puts, activates and drops versions as fast as it can, until it is killed. */
const WRITER = `
  import { writeFileSync } from 'node:fs';
  const { Store } = await import(process.env.STORE_URL);
  const { ChunkHasher } = await import(process.env.CHUNKS_URL);
  const { fullManifest } = await import(process.env.MANIFEST_URL);
  const store = new Store({ directory: process.env.DIRECTORY, durable: false });
  for (let version = 1 + Math.max(0, ...store.versions().map(({ manifest }) => manifest.version)); ; version++) {
    const bytes = Buffer.alloc(200_000, String(version));
    const work = store.begin(bytes.length);
    writeFileSync(work.dataPath, bytes);
    const hasher = new ChunkHasher();
    hasher.push(bytes);
    await store.commit(work, fullManifest(1n, version, hasher.finish()));
    store.activate(1n, version);
    if (version > 2) store.drop(1n, version - 2);
    process.stdout.write('.');
  }
`;

test('a process that is killed at any moment leaves whole versions and a whole pointer', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'ddf-crash-'));
  const url = (path: string) => new URL(`../../../${path}`, import.meta.url).href;
  let lastVersion = 0;
  try {
    for (let round = 0; round < 5; round++) {
      const writer = spawn(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', WRITER], {
        stdio: ['ignore', 'pipe', 'inherit'],
        env: {
          ...process.env,
          DIRECTORY: directory,
          STORE_URL: url('agents/store/store.ts'),
          CHUNKS_URL: url('objects/chunks.ts'),
          MANIFEST_URL: url('objects/manifest.ts'),
        },
      });
      const exited = new Promise((resolve) => writer.on('exit', resolve));
      // Killed after a few versions, wherever the next one is by then.
      let written = 0;
      writer.stdout.on('data', (dots: Buffer) => {
        written += dots.length;
        if (written >= 2 + 3 * round) writer.kill('SIGKILL');
      });
      await exited;

      const store = new Store({ directory, durable: false });
      expect(store.damaged).toEqual([]);
      expect(readdirSync(join(directory, 'temporary'))).toEqual([]);
      const versions = store.versions();
      for (const { dataPath, manifest } of versions) expect(hashFile(dataPath).rootSha256).toEqual(manifest.rootSha256);
      const newest = Math.max(...versions.map(({ manifest }) => manifest.version));
      expect(newest).toBeGreaterThan(lastVersion);
      // The pointer is at the newest version, or at the one before if the crash came between commit and activation.
      if (newest > 1) expect([newest, newest - 1]).toContain(store.active()[0]?.version);
      lastVersion = newest;
    }
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
});
