import { createHash } from 'node:crypto';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { toBfloat16, writeDemoModel } from '../../lab/demo-model.ts';

let directory = '';
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'ddf-demo-model-'));
});
afterAll(async () => {
  await rm(directory, { recursive: true, force: true });
});

interface Header {
  [name: string]: { dtype: string; shape: number[]; data_offsets: [number, number] };
}

function parse(file: Buffer): { header: Header; data: Buffer } {
  const headerBytes = Number(file.readBigUInt64LE(0));
  const { __metadata__, ...header } = JSON.parse(file.subarray(8, 8 + headerBytes).toString()) as Header;
  return { header, data: file.subarray(8 + headerBytes) };
}

describe('demo model', () => {
  test('both versions are safetensors files that differ in exactly 1 % of the elements, by a few units in the last place', async () => {
    const model = await writeDemoModel(directory, 1);
    const [base, next] = await Promise.all([readFile(model.basePath), readFile(model.path)]);
    expect(model.parameters).toBeGreaterThan(6_900_000);
    expect(model.changed).toBe(Math.round(model.parameters / 100));
    expect(base.length).toBe(model.sizeBytes);
    const before = parse(base);
    const after = parse(next);
    expect(after.header).toEqual(before.header);
    let end = 0;
    let changed = 0;
    let farthest = 0;
    for (const { dtype, shape, data_offsets } of Object.values(before.header)) {
      expect(data_offsets[0]).toBe(end);
      end = data_offsets[1];
      const width = dtype === 'BF16' ? 2 : 4;
      expect(end - data_offsets[0]).toBe(width * shape.reduce((a, b) => a * b, 1));
      if (dtype !== 'BF16') continue;
      for (let i = data_offsets[0]; i < end; i += 2) {
        const a = before.data.readUInt16LE(i);
        const b = after.data.readUInt16LE(i);
        if (a === b) continue;
        changed++;
        if ((a & 0x7fff) !== 0) farthest = Math.max(farthest, Math.abs((a & 0x7fff) - (b & 0x7fff)));
      }
    }
    expect(end).toBe(before.data.length);
    expect(changed).toBe(model.changed);
    expect(farthest).toBeGreaterThanOrEqual(1);
    expect(farthest).toBeLessThanOrEqual(4);
  });

  test('a seed reproduces version 22 and changes nothing in version 21', async () => {
    const hashes = async (seed: number): Promise<string[]> => {
      const model = await writeDemoModel(directory, seed);
      const files = await Promise.all([readFile(model.basePath), readFile(model.path)]);
      return files.map((file) => createHash('sha256').update(file).digest('hex'));
    };
    const first = await hashes(5);
    expect(await hashes(5)).toEqual(first);
    const other = await hashes(6);
    expect(other[0]).toBe(first[0]);
    expect(other[1]).not.toBe(first[1]);
  });
});

test('float32 is rounded to bf16 to nearest, ties to even', () => {
  expect(toBfloat16(0x3f800000)).toBe(0x3f80); // 1
  expect(toBfloat16(0x3f808000)).toBe(0x3f80); // tie: down to even
  expect(toBfloat16(0x3f818000)).toBe(0x3f82); // tie: up to even
  expect(toBfloat16(0x3f808001)).toBe(0x3f81);
  expect(toBfloat16(0xbf807fff)).toBe(0xbf80);
  expect(toBfloat16(0x7f7fffff)).toBe(0x7f80); // the largest float32 rounds to infinity
  expect(toBfloat16(0xff800000)).toBe(0xff80); // -infinity
  expect(toBfloat16(0x7f800001) & 0x7fff).toBeGreaterThan(0x7f80); // NaN stays NaN
});
