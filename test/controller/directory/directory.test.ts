import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { DdfError } from '../../../base/errors.ts';
import { Directory } from '../../../controller/directory/directory.ts';
import type { AgentRecord, Claim } from '../../../controller/directory/types.ts';
import { Counters } from '../../../controller/store/counters.ts';
import { MIGRATIONS } from '../../../controller/store/schema.ts';
import { openStore, type Store } from '../../../controller/store/store.ts';

let folder: string;
let store: Store;
let directory: Directory;
let time = 0;

function open(): Directory {
  store = openStore(join(folder, 'controller.db'));
  directory = new Directory(store, () => new Date(1000 * time++).toISOString());
  return directory;
}

/** What a crash leaves: nothing that was only in memory. Without close() the log is not folded into the file. */
function reopen(): Directory {
  return open();
}

const root = (fill: number): Uint8Array => new Uint8Array(32).fill(fill);
const server = (name: string, incarnation: bigint): AgentRecord => ({ name, kind: 'gpu-server', incarnation });
const claim = (objectId: bigint, version: number, fill: number, sizeBytes = 1000): Claim => ({
  objectId,
  version,
  sizeBytes,
  root: root(fill),
});

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'ddf-directory-'));
  open();
});
afterEach(() => {
  store.close();
  rmSync(folder, { recursive: true, force: true });
});

describe('objects', () => {
  it('puts the tenant into the top 16 bits and counts serials up across a restart', () => {
    const first = directory.ensureObject('models/a');
    expect(first.objectId).toBe((1n << 48n) | 1n);
    reopen();
    expect(directory.ensureObject('models/a').objectId).toBe(first.objectId);
    expect(directory.ensureObject('models/b').objectId).toBe((1n << 48n) | 2n);
    expect(directory.ensureObject('models/a', 2).objectId).toBe((2n << 48n) | 1n);
  });

  it('never gives a label twice, whatever crashed in between', () => {
    const labels = new Counters(store);
    expect(labels.takeLabels(3)).toBe(1);
    expect(labels.takeLabels(1)).toBe(4);
    reopen();
    expect(new Counters(store).takeLabels(2)).toBe(5);
  });

  it('keeps versions immutable', () => {
    const { objectId } = directory.ensureObject('models/a');
    const recorded = directory.recordVersion(claim(objectId, 21, 1), 1 << 20);
    expect(directory.recordVersion(claim(objectId, 21, 1), 1 << 20)).toBe(recorded);
    expect(() => directory.recordVersion(claim(objectId, 21, 2), 1 << 20)).toThrowError(
      expect.objectContaining({ code: 'ALREADY_EXISTS', where: 'models/a@21' }),
    );
  });

  it('keeps payloads and the nodes that made them', () => {
    const { objectId } = directory.ensureObject('models/a');
    directory.recordVersion(claim(objectId, 22, 1), 1 << 20);
    const payload = { objectId, version: 22, base: 21, sizeBytes: 10, manifestBytes: 99, manifestSha256: root(7) };
    directory.recordPayload(payload, 'memory-1');
    directory.recordPayload(payload, 'memory-2');
    reopen();
    expect(directory.findPayload(objectId, 22, 21)).toEqual({ ...payload, memoryNodes: ['memory-1', 'memory-2'] });
    directory.recordPayload({ ...payload, manifestSha256: root(8) }, 'memory-3');
    expect(directory.findPayload(objectId, 22, 21)?.memoryNodes).toEqual(['memory-3']);
  });
});

describe('holders', () => {
  it('survives a crash with everything that was acknowledged', () => {
    const { objectId } = directory.ensureObject('models/a');
    directory.recordVersion(claim(objectId, 21, 1), 1 << 20);
    directory.attach(server('gpu-1', 5n), [claim(objectId, 21, 1)], [{ objectId, version: 21 }]);
    directory.attach(server('gpu-2', 5n), [], []);
    directory.recordHeld('gpu-2', claim(objectId, 21, 1));
    reopen();
    expect(directory.holders(objectId, 21).map((h) => h.agent)).toEqual(['gpu-1', 'gpu-2']);
    expect(directory.activeVersions('gpu-1')).toEqual([{ objectId, version: 21 }]);
    expect(directory.findAgent('gpu-1')?.incarnation).toBe(5n);
  });

  it('does not count a wrong root or size, and says so', () => {
    const { objectId } = directory.ensureObject('models/a');
    directory.recordVersion(claim(objectId, 21, 1), 1 << 20);
    const wrong = claim(objectId, 21, 2);
    expect(directory.attach(server('gpu-1', 1n), [wrong], []).get(wrong)).toBe('mismatch');
    expect(directory.recordHeld('gpu-1', claim(objectId, 21, 1, 999))).toBe('mismatch');
    expect(directory.holderCount(objectId, 21)).toBe(0);
    expect(directory.recordHeld('gpu-1', claim(objectId, 21, 1))).toBe('recorded');
    expect(directory.holderCount(objectId, 21)).toBe(1);
    expect(directory.recordHeld('gpu-1', wrong)).toBe('mismatch');
    expect(directory.holds('gpu-1', objectId, 21)).toBe(false);
  });

  it('counts a claim from before the version was published as soon as it is', () => {
    const { objectId } = directory.ensureObject('models/a');
    const early = claim(objectId, 22, 3);
    expect(directory.attach(server('gpu-1', 1n), [early], []).get(early)).toBe('unknown');
    expect(directory.heldBy('gpu-1')).toEqual([]);
    directory.recordVersion(claim(objectId, 22, 3), 1 << 20);
    expect(directory.holds('gpu-1', objectId, 22)).toBe(true);
  });

  it('replaces the holdings of an older incarnation by what hello proves', () => {
    const { objectId } = directory.ensureObject('models/a');
    directory.recordVersion(claim(objectId, 21, 1), 1 << 20);
    directory.recordVersion(claim(objectId, 22, 2), 1 << 20);
    directory.attach(server('gpu-1', 1n), [claim(objectId, 21, 1)], [{ objectId, version: 21 }]);
    const since = directory.holders(objectId, 21)[0]!.since;
    directory.attach(server('gpu-1', 2n), [claim(objectId, 21, 1), claim(objectId, 22, 2)], []);
    expect(directory.holders(objectId, 21)[0]!.since).toBe(since);
    directory.attach(server('gpu-1', 3n), [claim(objectId, 22, 2)], []);
    expect(directory.holds('gpu-1', objectId, 21)).toBe(false);
    expect(directory.heldBy('gpu-1').map((h) => h.version)).toEqual([22]);
    expect(directory.activeVersions('gpu-1')).toEqual([]);
    reopen();
    expect(directory.heldBy('gpu-1').map((h) => h.version)).toEqual([22]);
  });

  it('refuses a stale incarnation and keeps what the newer one proved', () => {
    const { objectId } = directory.ensureObject('models/a');
    directory.recordVersion(claim(objectId, 21, 1), 1 << 20);
    directory.attach(server('gpu-1', 2n), [claim(objectId, 21, 1)], []);
    reopen();
    expect(() => directory.attach(server('gpu-1', 1n), [], [])).toThrowError(
      expect.objectContaining({ code: 'CONFLICT' }),
    );
    expect(directory.holds('gpu-1', objectId, 21)).toBe(true);
  });

  it('forgets what an agent drops', () => {
    const { objectId } = directory.ensureObject('models/a');
    directory.recordVersion(claim(objectId, 21, 1), 1 << 20);
    directory.attach(server('gpu-1', 1n), [claim(objectId, 21, 1)], []);
    directory.recordDropped('gpu-1', objectId, 21);
    directory.recordDropped('gpu-1', objectId, 21);
    reopen();
    expect(directory.holderCount(objectId, 21)).toBe(0);
  });

  it('answers for thousands of agents in order of their arrival', () => {
    const { objectId } = directory.ensureObject('models/a');
    directory.recordVersion(claim(objectId, 1, 1), 1 << 20);
    const names = Array.from({ length: 100 }, (_, i) => `gpu-${i}`);
    for (const [i, name] of names.entries())
      directory.attach(server(name, 1n), i % 3 === 0 ? [claim(objectId, 1, 1)] : [], []);
    expect(directory.holders(objectId, 1).map((h) => h.agent)).toEqual(
      names.filter((_, i) => i % 3 === 0).sort((a, b) => Number(a.slice(4)) - Number(b.slice(4))),
    );
  });
});

describe('database', () => {
  it('refuses a file that is no database', () => {
    const path = join(folder, 'text.db');
    writeFileSync(path, 'not a database, but long enough that nobody takes it for an empty one\n'.repeat(20));
    expect(() => openStore(path)).toThrowError(expect.objectContaining({ code: 'INVALID_FILE', where: path }));
  });

  it('refuses a folder that does not exist', () => {
    expect(() => openStore(join(folder, 'nowhere', 'x.db'))).toThrowError(DdfError);
  });

  it('refuses the schema of a newer release', () => {
    store.pragma(`user_version = ${MIGRATIONS.length + 1}`);
    expect(() => openStore(join(folder, 'controller.db'))).toThrowError(/schema/);
  });
});
