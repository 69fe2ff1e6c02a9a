import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { PcapFile } from '../../../switch/ports/pcap-file.ts';

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'ddf-pcap-'));
});
afterEach(() => rm(directory, { recursive: true }));

/** Lengths of the frames in a capture, by the format's definition. */
function frames(bytes: Buffer): Buffer[] {
  expect(bytes.readUInt32BE(0)).toBe(0xa1b2c3d4);
  expect(bytes.readUInt32BE(20)).toBe(1);
  const found: Buffer[] = [];
  for (let at = 24; at < bytes.length; ) {
    const length = bytes.readUInt32BE(at + 8);
    found.push(bytes.subarray(at + 16, at + 16 + length));
    at += 16 + length;
  }
  return found;
}

describe('a capture', () => {
  it('has every frame as it was when it was added', async () => {
    const path = join(directory, 'a.pcap');
    const file = await PcapFile.create(path);
    const frame = new Uint8Array(9000);
    for (let i = 0; i < 100; i++) {
      frame.fill(i);
      file.add(frame.subarray(0, 9000 - i), 1_700_000_000_123_456 + i);
    }
    frame.fill(255);
    await file.close();
    const bytes = await readFile(path);
    const found = frames(bytes);
    expect(found.map((each) => each.length)).toEqual(Array.from({ length: 100 }, (_, i) => 9000 - i));
    expect(found.every((each, i) => each.every((byte) => byte === i))).toBe(true);
    expect([bytes.readUInt32BE(24), bytes.readUInt32BE(28)]).toEqual([1_700_000_000, 123_456]);
    expect(file.omitted).toBe(0);
  });

  it('is a capture even without a frame', async () => {
    const path = join(directory, 'a.pcap');
    await (await PcapFile.create(path)).close();
    expect(frames(await readFile(path))).toEqual([]);
  });

  it('leaves frames out instead of taking memory without bound', async () => {
    const path = join(directory, 'a.pcap');
    const file = await PcapFile.create(path);
    const frame = new Uint8Array(60_000);
    // The event loop gets no turn, so nothing is written meanwhile.
    for (let i = 0; i < 300; i++) file.add(frame, 0);
    expect(file.omitted).toBeGreaterThan(0);
    const { omitted } = file;
    await file.close();
    expect(frames(await readFile(path)).length).toBe(300 - omitted);
  });

  it('says where it cannot be written', async () => {
    await expect(PcapFile.create(join(directory, 'no', 'such.pcap'))).rejects.toMatchObject({ code: 'INVALID_OPTION' });
  });
});
