import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { RangeReader } from '../../agents/io/range-client.ts';
import { UnicastLane } from '../../agents/unicast-lane.ts';
import { VirtualScheduler } from '../../base/clock.ts';
import { CHUNK_BYTES } from '../../objects/chunks.ts';

const PAYLOAD = { objectId: 1n, version: 2, baseVersion: 0 };
const MANIFEST_BYTES = 100;

let server: Server | undefined;
afterEach(() => {
  server?.closeAllConnections();
  server?.close();
});

/** Serves zeros for any range, except where `answer` has done something itself. */
async function setUp(answer: (asked: string, response: ServerResponse) => boolean) {
  server = createServer((request, response) => {
    const [, start, last] = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range!)!.map(Number);
    if (answer(`${request.url!.split('/').at(-1)} ${start}-${last}`, response)) return;
    response.writeHead(206, { 'content-range': `bytes ${start}-${last}/9999999` });
    response.end(Buffer.alloc(last! - start! + 1));
  });
  await new Promise<void>((resolve) => server!.listen(0, '127.0.0.1', resolve));
  const rangeUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const scheduler = new VirtualScheduler();
  const got: string[] = [];
  const failures: string[] = [];
  const lane = new UnicastLane({
    reader: new RangeReader({ payload: PAYLOAD, holders: [{ rangeUrl, token: 't' }] }),
    manifestBytes: MANIFEST_BYTES,
    scheduler,
    onData: (offset, bytes) => got.push(`${offset}+${bytes.length}`),
    onFailure: (error) => failures.push(error.code),
  });
  /** Lets virtual time pass whenever the network has nothing to say, until the lane is idle. */
  const settle = async (): Promise<void> => {
    while (!lane.isIdle) {
      await new Promise((resolve) => setTimeout(resolve, 2));
      scheduler.runUntil(scheduler.nowUs() + 50_000);
    }
  };
  return { lane, scheduler, got, failures, settle };
}

test('stream ranges are read as parts of manifest and payload, a chunk at a time', async () => {
  const asked: string[] = [];
  const { lane, got, settle } = await setUp((what) => {
    asked.push(what);
    return false;
  });
  lane.read([
    { start: 0, end: MANIFEST_BYTES },
    { start: MANIFEST_BYTES + 10, end: MANIFEST_BYTES + 20 + CHUNK_BYTES },
  ]);
  await settle();
  expect(asked.sort()).toEqual([
    `data 10-${CHUNK_BYTES + 9}`,
    `data ${CHUNK_BYTES + 10}-${CHUNK_BYTES + 19}`,
    'manifest 0-99',
  ]);
  expect(new Set(got)).toEqual(new Set(['0+100', `110+${CHUNK_BYTES}`, `${CHUNK_BYTES + 110}+10`]));
});

test('holders that come back in time are asked again', async () => {
  let refusals = 3;
  const { lane, got, failures, scheduler, settle } = await setUp((_, response) => {
    if (refusals === 0) return false;
    refusals--;
    response.writeHead(503);
    response.end();
    return true;
  });
  lane.read([{ start: 200, end: 300 }]);
  await settle();
  expect(got).toEqual(['200+100']);
  expect(failures).toEqual([]);
  expect(scheduler.nowUs()).toBeGreaterThanOrEqual(700_000);
});

test('holders that never have it end in one failure', async () => {
  let requests = 0;
  const { lane, got, failures, settle } = await setUp((_, response) => {
    requests++;
    response.writeHead(404);
    response.end();
    return true;
  });
  lane.read([{ start: 200, end: 300 }]);
  await settle();
  expect(failures).toEqual(['NOT_FOUND']);
  expect(got).toEqual([]);
  expect(requests).toBe(7);
});

test('a lane that is closed says nothing more', async () => {
  const { lane, got, failures, settle } = await setUp(() => false);
  lane.read([{ start: 200, end: 300 }]);
  lane.close();
  lane.read([{ start: 300, end: 400 }]);
  await settle();
  expect([got, failures]).toEqual([[], []]);
});
