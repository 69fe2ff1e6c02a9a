import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, get, type IncomingHttpHeaders, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { RangeReader } from '../../../agents/io/range-client.ts';
import { RangeServer } from '../../../agents/io/range-server.ts';
import { Store } from '../../../agents/store/store.ts';
import { createLogger } from '../../../base/logger.ts';
import { ChunkHasher } from '../../../objects/chunks.ts';
import { formatPayloadId } from '../../../objects/ids.ts';
import { encodeManifest, fullManifest } from '../../../objects/manifest.ts';

const PAYLOAD = { objectId: 0x0001_0000_0000_0001n, version: 3, baseVersion: 0 };
const OTHER = { ...PAYLOAD, version: 4 };
const content = Buffer.from(Uint8Array.from({ length: 300_000 }, (_, i) => i * 7));
const logger = createLogger('silent');

let directory: string;
let store: Store;
let server: RangeServer;
let nowMs = 1_000_000;
const fakes: Server[] = [];

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'ddf-range-'));
  store = new Store({ directory, durable: false });
  const hasher = new ChunkHasher();
  hasher.push(content);
  const work = store.begin(content.length);
  writeFileSync(work.dataPath, content);
  await store.commit(work, fullManifest(PAYLOAD.objectId, PAYLOAD.version, hasher.finish()));
});
afterAll(() => rmSync(directory, { recursive: true, force: true }));

beforeEach(async () => {
  nowMs = 1_000_000;
  server = new RangeServer({
    address: { host: '127.0.0.1', port: 0 },
    find: (id) => store.find(id),
    logger,
    nowMs: () => nowMs,
  });
  await server.listen();
  server.allow(PAYLOAD, 'secret', 60_000);
});
afterEach(async () => {
  await server.close();
  for (const fake of fakes.splice(0)) {
    fake.closeAllConnections();
    fake.close();
  }
});

interface Got {
  status: number;
  headers: IncomingHttpHeaders;
  body: Buffer;
}

function fetchPart(path: string, headers: Record<string, string> = {}): Promise<Got> {
  return new Promise((resolve, reject) => {
    get(
      `${server.url}${path}`,
      { headers: { authorization: 'Bearer secret', ...headers }, agent: false },
      async (response) => {
        const pieces: Buffer[] = [];
        for await (const piece of response) pieces.push(piece as Buffer);
        resolve({ status: response.statusCode!, headers: response.headers, body: Buffer.concat(pieces) });
      },
    ).on('error', reject);
  });
}

const dataPath = `/payloads/${formatPayloadId(PAYLOAD)}/data`;

test.each([
  ['bytes=0-0', 0, 1],
  ['bytes=1000-1999', 1000, 2000],
  ['bytes=299999-400000', 299_999, 300_000],
  ['bytes=250000-', 250_000, 300_000],
  ['bytes=-10', 299_990, 300_000],
  ['bytes=-400000', 0, 300_000],
])('%s is served exactly', async (range, start, end) => {
  const { status, headers, body } = await fetchPart(dataPath, { range });
  expect(status).toBe(206);
  expect(headers['content-range']).toBe(`bytes ${start}-${end - 1}/300000`);
  expect(body.equals(content.subarray(start, end))).toBe(true);
});

test('without a range, or with one that means nothing, the whole is served; manifests too', async () => {
  for (const headers of [{}, { range: 'lines=1-2' }, { range: 'bytes=5-1' }] as Record<string, string>[]) {
    const { status, body } = await fetchPart(dataPath, headers);
    expect([status, body.equals(content)]).toEqual([200, true]);
  }
  const manifest = await fetchPart(`/payloads/${formatPayloadId(PAYLOAD)}/manifest`);
  expect(manifest.body.equals(encodeManifest(store.find(PAYLOAD)!.manifest))).toBe(true);
  expect(server.bytesServed).toBe(3 * content.length + manifest.body.length);
});

test.each(['bytes=300000-', 'bytes=300000-300001', 'bytes=-0'])(
  '%s is behind the end: 416 with the size',
  async (range) => {
    const { status, headers } = await fetchPart(dataPath, { range });
    expect([status, headers['content-range']]).toEqual([416, 'bytes */300000']);
  },
);

test.each([
  ['no token', { authorization: '' }],
  ['a wrong token', { authorization: 'Bearer secreT' }],
  ['another scheme', { authorization: 'Basic secret' }],
])('%s: 401, also for what is not there', async (_, headers) => {
  for (const path of [dataPath, `/payloads/${formatPayloadId(OTHER)}/data`]) {
    const { status, headers: given } = await fetchPart(path, headers);
    expect([status, given['www-authenticate']]).toEqual([401, 'Bearer']);
  }
});

test('a token is good for its payload and its time, until it is withdrawn', async () => {
  expect((await fetchPart(`/payloads/${formatPayloadId(OTHER)}/data`)).status).toBe(401);
  server.allow(OTHER, 'secret', 60_000);
  expect((await fetchPart(`/payloads/${formatPayloadId(OTHER)}/data`)).status).toBe(404);
  nowMs += 59_999;
  expect((await fetchPart(dataPath)).status).toBe(200);
  nowMs += 1;
  expect((await fetchPart(dataPath)).status).toBe(401);
  server.allow(PAYLOAD, 'secret', 10);
  expect((await fetchPart(dataPath)).status).toBe(200);
  server.allow(PAYLOAD, 'secret', 0);
  expect((await fetchPart(dataPath)).status).toBe(401);
});

test.each(['/', '/payloads', '/payloads/x/data', `${dataPath}/..`, '/payloads/%2e%2e/data', `${dataPath}?a=1`])(
  'nothing is at %s',
  async (path) => {
    const { status, body } = await fetchPart(path);
    expect(status).toBe(404);
    expect(JSON.parse(body.toString())).toMatchObject({ code: 'NOT_FOUND' });
  },
);

test('a port that is in use is named', async () => {
  const port = Number(new URL(server.url).port);
  const second = new RangeServer({ address: { host: '127.0.0.1', port }, find: () => undefined, logger });
  await expect(second.listen()).rejects.toMatchObject({
    code: 'ADDRESS_IN_USE',
    message: expect.stringContaining(String(port)),
  });
  await second.close();
});

async function fakeHolder(listener: RequestListener): Promise<{ rangeUrl: string; token: string }> {
  const fake = createServer(listener);
  fakes.push(fake);
  await new Promise<void>((resolve) => fake.listen(0, '127.0.0.1', resolve));
  return { rangeUrl: `http://127.0.0.1:${(fake.address() as AddressInfo).port}`, token: 'any' };
}

const range = { 'content-range': 'bytes 10-19/300000', 'content-length': '10' };
const badHolders: [string, RequestListener, string][] = [
  ['never answers', () => {}, 'TIMEOUT'],
  [
    'stops in the middle of the body',
    (_, response) => {
      response.writeHead(206, range);
      response.write('12345');
    },
    'TIMEOUT',
  ],
  ['cuts the connection', (request) => request.socket.destroy(), 'UNREACHABLE_HOST'],
  [
    'ends the body early',
    (_, response) => {
      response.writeHead(206, { 'content-range': range['content-range'] });
      response.end('12345');
    },
    'UNREACHABLE_HOST',
  ],
  [
    'sends too much',
    (_, response) => {
      response.writeHead(206, { 'content-range': range['content-range'] });
      response.end('12345678901');
    },
    'AGENT_FAILED',
  ],
  [
    'sends another range',
    (_, response) => {
      response.writeHead(206, { 'content-range': 'bytes 0-9/300000' });
      response.end('1234567890');
    },
    'AGENT_FAILED',
  ],
  [
    'ignores the range',
    (_, response) => {
      response.end(content);
    },
    'AGENT_FAILED',
  ],
  [
    'does not have it',
    (_, response) => {
      response.writeHead(404);
      response.end();
    },
    'NOT_FOUND',
  ],
];

test.each(badHolders)('a holder that %s is passed over for the next one', async (_, listener, code) => {
  const bad = await fakeHolder(listener);
  const alone = new RangeReader({ payload: PAYLOAD, holders: [bad], timeoutMs: 150 });
  await expect(alone.read('data', 10, 20)).rejects.toMatchObject({ code });
  const holders = [bad, { rangeUrl: server.url, token: 'secret' }];
  const reader = new RangeReader({ payload: PAYLOAD, holders, timeoutMs: 150 });
  expect(Buffer.from(await reader.read('data', 10, 20)).equals(content.subarray(10, 20))).toBe(true);
  expect(reader.requests).toBe(2);
  // The one that answered is asked first from then on.
  await reader.read('data', 20, 30);
  expect(reader.requests).toBe(3);
});

test('a reader without holders, or closed, says so', async () => {
  await expect(new RangeReader({ payload: PAYLOAD, holders: [] }).read('data', 0, 1)).rejects.toMatchObject({
    code: 'NOT_FOUND',
  });
  const silent = await fakeHolder(() => {});
  const reader = new RangeReader({ payload: PAYLOAD, holders: [silent, silent] });
  const reading = reader.read('data', 0, 1);
  reader.close();
  await expect(reading).rejects.toMatchObject({ code: 'CANCELLED' });
  await expect(reader.read('data', 0, 1)).rejects.toMatchObject({ code: 'CANCELLED' });
  const wrong = new RangeReader({ payload: PAYLOAD, holders: [{ rangeUrl: 'no url', token: 'x' }] });
  await expect(wrong.read('data', 0, 1)).rejects.toMatchObject({ code: 'UNREACHABLE_HOST' });
});
