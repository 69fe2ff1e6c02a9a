import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { hashFile } from '../../../agents/store/files.ts';
import { Store, type StoreOptions } from '../../../agents/store/store.ts';
import { createRandom } from '../../../base/random.ts';
import { CHUNK_BYTES, ChunkHasher, chunkLength } from '../../../objects/chunks.ts';
import { encodeManifest, fullManifest, manifestSha256 } from '../../../objects/manifest.ts';

const OBJECT = 0x0001_0000_0000_0005n;
const bytes = randomBytes(2 * CHUNK_BYTES + 1000);
let directory: string;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'ddf-store-'));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

function randomBytes(length: number, seed = 'store'): Buffer {
  const random = createRandom(seed);
  return Buffer.from(Uint8Array.from({ length }, () => random.uint32()));
}

function manifestFor(version: number, content: Uint8Array) {
  const hasher = new ChunkHasher();
  hasher.push(content);
  return fullManifest(OBJECT, version, hasher.finish());
}

function openStore(options: Partial<StoreOptions> = {}): Store {
  return new Store({ directory, durable: false, ...options });
}

async function put(store: Store, version: number, content: Uint8Array = bytes) {
  const work = store.begin(content.length);
  writeFileSync(work.dataPath, content);
  return store.commit(work, manifestFor(version, content));
}

function expectedOf(version: number, content: Uint8Array) {
  const encoded = encodeManifest(manifestFor(version, content));
  return {
    encoded,
    expected: {
      objectId: OBJECT,
      version,
      baseVersion: 0,
      sizeBytes: content.length,
      manifestSha256: manifestSha256(encoded),
    },
  };
}

test('a committed version is there after the store is opened again, byte for byte', async () => {
  const store = openStore({ durable: true });
  const stored = await put(store, 21);
  expect(store.usedBytes).toBe(bytes.length);
  const again = openStore();
  expect(again.damaged).toEqual([]);
  const found = again.findVersion(OBJECT, 21);
  expect(found?.manifestSha256).toEqual(stored.manifestSha256);
  expect(readFileSync(found!.dataPath).equals(bytes)).toBe(true);
  expect(hashFile(found!.dataPath).rootSha256).toEqual(found!.manifest.rootSha256);
});

test('a version is immutable: the same bytes again are no error, others are', async () => {
  const store = openStore();
  const first = await put(store, 21);
  expect((await put(store, 21)).dataPath).toBe(first.dataPath);
  await expect(put(store, 21, randomBytes(500, 'other'))).rejects.toMatchObject({ code: 'ALREADY_EXISTS' });
  expect(store.usedBytes).toBe(bytes.length);
  expect(readdirSync(join(directory, 'temporary'))).toEqual([]);
});

test('two commits of one version at the same time leave one', async () => {
  const store = openStore({ durable: true });
  const [a, b] = await Promise.all([put(store, 21), put(store, 21)]);
  expect(a?.dataPath).toBe(b?.dataPath);
  expect(store.usedBytes).toBe(bytes.length);
});

test('no space: nothing is begun', () => {
  const store = openStore({ capacityBytes: 1000 });
  expect(() => store.begin(1001)).toThrow(expect.objectContaining({ code: 'NO_SPACE', recoverable: true }));
  const work = store.begin(600);
  expect(() => store.begin(401)).toThrow(expect.objectContaining({ code: 'NO_SPACE' }));
  store.discard(work);
  store.discard(store.begin(1000));
});

test('activation needs the version, survives a restart, and keeps it from being dropped', async () => {
  const store = openStore();
  expect(() => store.activate(OBJECT, 21)).toThrow(expect.objectContaining({ code: 'NOT_FOUND' }));
  await put(store, 21);
  await put(store, 22, randomBytes(10, 'small'));
  store.activate(OBJECT, 21);
  expect(() => store.drop(OBJECT, 21)).toThrow(expect.objectContaining({ code: 'CONFLICT' }));
  const again = openStore();
  expect(again.active()).toEqual([{ objectId: OBJECT, version: 21 }]);
  again.activate(OBJECT, 22);
  expect(again.drop(OBJECT, 21)).toBe(true);
  expect(again.drop(OBJECT, 21)).toBe(false);
  expect(
    openStore()
      .versions()
      .map(({ manifest }) => manifest.version),
  ).toEqual([22]);
});

test('a pinned version is not dropped before it is released', async () => {
  const store = openStore();
  await put(store, 21);
  const release = store.pin({ objectId: OBJECT, version: 21, baseVersion: 0 });
  expect(() => store.drop(OBJECT, 21)).toThrow(expect.objectContaining({ code: 'CONFLICT', recoverable: true }));
  release();
  release();
  expect(store.drop(OBJECT, 21)).toBe(true);
});

test('a version of one store is adopted by another without a copy', async () => {
  const stored = await put(openStore(), 21);
  const other = new Store({ directory: join(directory, 'other'), durable: false });
  const adopted = await other.adopt(stored);
  expect(statSync(adopted.dataPath).ino).toBe(statSync(stored.dataPath).ino);
  other.drop(OBJECT, 21);
  expect(existsSync(stored.dataPath)).toBe(true);
});

test('receiving: bytes in place, verified chunks kept over a restart, committed when all are', async () => {
  const { encoded, expected } = expectedOf(22, bytes);
  const first = openStore().receive(expected);
  first.write(CHUNK_BYTES, bytes.subarray(CHUNK_BYTES, 2 * CHUNK_BYTES));
  first.setManifest(encoded);
  first.markVerified(1);
  first.markVerified(1);
  expect(first.verifiedBytes).toBe(CHUNK_BYTES);
  // No close: the process was killed.

  const store = openStore();
  expect(store.usedBytes).toBe(bytes.length);
  const second = store.receive(expected);
  expect(() => store.receive(expected)).toThrow(expect.objectContaining({ code: 'CONFLICT' }));
  expect(second.manifest?.version).toBe(22);
  expect(second.claimedChunks).toEqual([1]);
  expect(second.isVerified(1)).toBe(false);
  second.markVerified(1);
  second.write(0, bytes.subarray(0, CHUNK_BYTES + 10));
  second.write(2 * CHUNK_BYTES, bytes.subarray(2 * CHUNK_BYTES));
  await expect(store.commitReceived(second)).rejects.toMatchObject({ code: 'INTERNAL' });
  second.markVerified(0);
  second.markVerified(2);
  const stored = await store.commitReceived(second);
  expect(readFileSync(stored.dataPath).equals(bytes)).toBe(true);
  expect(store.usedBytes).toBe(bytes.length);
  expect(readdirSync(join(directory, 'receiving'))).toEqual([]);
  expect(readdirSync(join(directory, 'payloads', readdirSync(join(directory, 'payloads'))[0]!)).sort()).toEqual([
    'data',
    'manifest',
  ]);
});

test('a verified chunk is not overwritten by what comes late', () => {
  const { encoded, expected } = expectedOf(22, bytes);
  const receiving = openStore().receive(expected);
  receiving.setManifest(encoded);
  receiving.write(0, bytes);
  receiving.markVerified(1);
  receiving.write(CHUNK_BYTES - 5, Buffer.alloc(CHUNK_BYTES + 10));
  expect(
    Buffer.from(receiving.read(CHUNK_BYTES - 6, 7)).equals(
      Buffer.concat([
        bytes.subarray(CHUNK_BYTES - 6, CHUNK_BYTES - 5),
        Buffer.alloc(5),
        bytes.subarray(CHUNK_BYTES, CHUNK_BYTES + 1),
      ]),
    ),
  ).toBe(true);
  const written = readFileSync(receiving.dataPath);
  expect(written.subarray(CHUNK_BYTES, 2 * CHUNK_BYTES).equals(bytes.subarray(CHUNK_BYTES, 2 * CHUNK_BYTES))).toBe(
    true,
  );
  expect(written.subarray(CHUNK_BYTES - 5, CHUNK_BYTES).equals(Buffer.alloc(5))).toBe(true);
  expect(written.subarray(2 * CHUNK_BYTES, 2 * CHUNK_BYTES + 5).equals(Buffer.alloc(5))).toBe(true);
  expect(written.length).toBe(bytes.length);
});

test('only the announced manifest is taken', () => {
  const { encoded, expected } = expectedOf(22, bytes);
  const receiving = openStore().receive({ ...expected, manifestSha256: new Uint8Array(32) });
  expect(() => receiving.setManifest(encoded)).toThrow(expect.objectContaining({ code: 'INVALID_MANIFEST' }));
  expect(() => receiving.setManifest(encoded.subarray(1))).toThrow(
    expect.objectContaining({ code: 'INVALID_MANIFEST' }),
  );
  expect(receiving.manifest).toBeUndefined();
});

test('a version that is held takes what was on its way to it with it', async () => {
  const { expected } = expectedOf(22, bytes);
  const store = openStore();
  store.suspendReceived(store.receive({ ...expected, baseVersion: 21 }));
  expect(store.usedBytes).toBe(bytes.length);
  await put(store, 22);
  expect(store.usedBytes).toBe(bytes.length);
  expect(readdirSync(join(directory, 'receiving'))).toEqual([]);
});

/** What the disk looks like after a crash, by where it happened. */
const crashes: [string, (path: (...parts: string[]) => string) => void][] = [
  [
    'while data was being made',
    (path) => {
      mkdirSync(path('temporary', '0'));
      writeFileSync(path('temporary', '0', 'data'), 'half');
    },
  ],
  [
    'before the rename of a commit',
    (path) => {
      cpSync(path('payloads'), path('temporary', '1'), { recursive: true });
    },
  ],
  [
    'while a dropped version was being removed',
    (path) => {
      mkdirSync(path('temporary', '2'));
      writeFileSync(path('temporary', '2', 'manifest'), 'x');
    },
  ],
  ['before the rename of an activation', (path) => writeFileSync(path('active', '0001000000000005.new'), '99\n')],
  [
    'and the disk lost the end of the data',
    (path) => {
      const name = readdirSync(path('payloads')).find((entry) => entry.includes('-22-'))!;
      truncateSync(path('payloads', name, 'data'), 3);
    },
  ],
  [
    'and the disk lost the manifest',
    (path) => {
      const name = readdirSync(path('payloads')).find((entry) => entry.includes('-22-'))!;
      writeFileSync(path('payloads', name, 'manifest'), Buffer.alloc(170));
    },
  ],
];

test.each(crashes)('a crash %s leaves whole versions only', async (_, damage) => {
  const store = openStore();
  await put(store, 21);
  await put(store, 22, randomBytes(100, 'v22'));
  store.activate(OBJECT, 21);
  damage((...parts) => join(directory, ...parts));
  const again = openStore();
  for (const { manifest, dataPath } of again.versions())
    expect(hashFile(dataPath).rootSha256).toEqual(manifest.rootSha256);
  expect(again.findVersion(OBJECT, 21)).toBeDefined();
  expect(again.active()).toEqual([{ objectId: OBJECT, version: 21 }]);
  expect(readdirSync(join(directory, 'temporary'))).toEqual([]);
  expect(readdirSync(join(directory, 'active'))).toEqual(['0001000000000005']);
  const whole = again.findVersion(OBJECT, 22) !== undefined;
  expect(again.damaged.filter((path) => path.includes('payloads')).length).toBe(whole ? 0 : 1);
  // What was lost can come again.
  await put(again, 22, randomBytes(100, 'v22'));
  expect(openStore().versions().length).toBe(2);
});

test('a journal cut short by a crash counts its whole records and goes on', () => {
  const { encoded, expected } = expectedOf(22, bytes);
  const first = openStore().receive(expected);
  first.setManifest(encoded);
  first.markVerified(2);
  const journal = join(first.directory, 'verified');
  appendFileSync(journal, Buffer.from([0, 0, 0, 77, 0, 0]));
  const second = openStore().receive(expected);
  expect(second.claimedChunks).toEqual([2]);
  second.markVerified(0);
  const third = openStore().receive(expected);
  expect([...third.claimedChunks].sort()).toEqual([0, 2]);
  expect(chunkLength(bytes.length, 2)).toBe(1000);
});
