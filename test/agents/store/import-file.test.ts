import { appendFileSync, mkdtempSync, readFileSync, renameSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { importFile, userFileBytes } from '../../../agents/store/import-file.ts';
import { CHUNK_BYTES, ChunkHasher } from '../../../objects/chunks.ts';

let directory: string;
let source: string;
let target: string;
const content = Buffer.alloc(3 * CHUNK_BYTES + 5, 'weights');

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'ddf-import-'));
  source = join(directory, 'model');
  target = join(directory, 'copy');
  writeFileSync(source, content);
  utimesSync(source, 1000, 1000);
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

test('a file is copied and hashed', () => {
  const progress: number[] = [];
  const hashes = importFile(source, target, (done) => progress.push(done));
  const hasher = new ChunkHasher();
  hasher.push(content);
  expect(hashes).toEqual(hasher.finish());
  expect(readFileSync(target).equals(content)).toBe(true);
  expect(progress.at(-1)).toBe(content.length);
});

test.each([
  ['a missing file', () => join(directory, 'nothing'), 'no such file'],
  ['a directory', () => directory, 'directory'],
  [
    'an empty file',
    () => {
      writeFileSync(source, '');
      return source;
    },
    'empty',
  ],
  ['a device', () => '/dev/null', 'not a regular file'],
])('%s is refused with its path and a remedy', (_, path, text) => {
  expect(() => importFile(path(), target)).toThrow(
    expect.objectContaining({
      code: 'INVALID_FILE',
      message: expect.stringContaining(text),
      where: path(),
      remedy: expect.stringMatching(/\.$/),
    }),
  );
});

test('the size of a file is asked for before it is read: paths that lead nowhere are refused there already', () => {
  expect(userFileBytes(source)).toBe(content.length);
  expect(userFileBytes(join(directory, 'nothing'))).toBe(0);
  for (const path of [join(source, 'below-a-file'), 'a\u0000b', 'x'.repeat(5000)])
    expect(() => userFileBytes(path)).toThrow(
      expect.objectContaining({ code: 'INVALID_FILE', where: path, remedy: expect.any(String) }),
    );
});

test.each([
  ['grows', () => appendFileSync(source, 'more')],
  ['shrinks', () => writeFileSync(source, 'short')],
  ['is written to in place', () => utimesSync(source, 1000, 1001)],
  [
    'is replaced by another file',
    () => {
      const other = join(directory, 'other');
      writeFileSync(other, content);
      utimesSync(other, 1000, 1000);
      renameSync(other, source);
    },
  ],
])('a file that %s while it is read is refused', (_, change) => {
  let changed = false;
  expect(() =>
    importFile(source, target, (done) => {
      if (done > 0 && !changed) change();
      changed ||= done > 0;
    }),
  ).toThrow(expect.objectContaining({ code: 'FILE_CHANGED', where: source }));
  expect(changed).toBe(true);
});
