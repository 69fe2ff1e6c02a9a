import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { writeDemoModel } from '../../lab/demo-model.ts';
import { userObject } from '../../scripts/up-object.ts';

let directory = '';
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'ddf-up-object-'));
});
afterAll(async () => {
  await rm(directory, { recursive: true, force: true });
});

async function file(name: string, bytes: Uint8Array | string): Promise<string> {
  const path = join(directory, name);
  await writeFile(path, bytes);
  return path;
}

test('any bytes are an object', async () => {
  const path = await file('a b.bin', 'abc');
  expect(await userObject(path, undefined)).toEqual({
    name: 'files/a_b.bin',
    version: 22,
    path,
    base: undefined,
    sizeBytes: 3,
    description: [`files/a_b.bin version 22: ${path}, 3 B`],
  });
  const base = await file('base.bin', 'abd');
  expect(await userObject(path, base)).toMatchObject({ base: { version: 21, path: base } });
});

test('the tensors of a safetensors file are listed', async () => {
  const { path } = await writeDemoModel(directory, 1);
  const { description } = await userObject(path, undefined);
  expect(description[1]).toBe('  safetensors with 61 tensors:');
  expect(description).toContainEqual(expect.stringMatching(/^ {2}\S+ I32 \[3\]$/));
  expect(description.at(-1)).toBe('  and 53 more');
});

test('a broken safetensors header is worth a remark', async () => {
  const head = Buffer.alloc(8);
  head.writeBigUInt64LE(4n);
  const path = await file('broken.safetensors', Buffer.concat([head, Buffer.from('{"a}')]));
  const { description } = await userObject(path, undefined);
  expect(description[1]).toMatch(/looks like safetensors, but .*plain bytes/);
});

test.each([
  ['a file that is missing', async () => userObject(join(directory, 'none'), undefined), /no such file/],
  ['an empty file', async () => userObject(await file('empty', ''), undefined), /the file is empty/],
  ['a directory', async () => userObject(directory, undefined), /not a file/],
  [
    'a base that is missing',
    async () => userObject(await file('x', 'x'), join(directory, 'none')),
    /--base: there is no such file/,
  ],
  [
    'a base of another size',
    async () => userObject(await file('x', 'x'), await file('y', 'yy')),
    /the base has 2 bytes, the object 1/,
  ],
])('refuses %s', async (_, attempt, problem) => {
  await expect(attempt()).rejects.toThrow(problem);
});
