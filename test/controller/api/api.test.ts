import { createServer } from 'node:net';
import type { FastifyInstance } from 'fastify';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createLogger } from '../../../base/logger.ts';
import { buildApi, startApi } from '../../../controller/api/server.ts';
import { recordingService } from './recording-service.ts';
import { rolloutView, versionView } from './samples.ts';

describe('REST API', () => {
  let service: ReturnType<typeof recordingService>;
  let app: FastifyInstance;
  beforeEach(async () => {
    service = recordingService();
    app = await buildApi(service, createLogger('silent'));
  });
  afterEach(() => app.close());

  it('publishes to a name with a slash', async () => {
    const response = await app.inject({
      method: 'POST',
      url: '/v1/objects/models%2Fdemo/versions',
      payload: { version: 22, path: '/data/model', base: 21 },
    });
    expect(response.statusCode).toBe(201);
    expect(service.asked).toEqual([{ object: 'models/demo', version: 22, path: '/data/model', base: 21 }]);
    expect(response.json()).toEqual(versionView);
  });

  it('starts a rollout and says where to follow it', async () => {
    const response = await app.inject({
      method: 'POST',
      url: '/v1/rollouts',
      payload: { object: 'models/demo', version: 22, servers: 'all' },
    });
    expect(response.statusCode).toBe(202);
    expect(response.headers.location).toBe(`/v1/rollouts/${rolloutView.id}`);
    expect(response.json()).toEqual(rolloutView);
  });

  it.each([
    [
      'an unknown field',
      { object: 'models/demo', version: 22, servers: 'all', urgent: true },
      /unknown field 'urgent'/,
    ],
    ['a missing field', { object: 'models/demo', servers: 'all' }, /version/],
    ['a number as text', { object: 'models/demo', version: '22', servers: 'all' }, /version/],
    ['a version out of range', { object: 'models/demo', version: 0, servers: 'all' }, /version/],
    ['a name with odd characters', { object: 'models demo', version: 22, servers: 'all' }, /object/],
    [
      'servers that are neither',
      { object: 'models/demo', version: 22, servers: 'some' },
      /servers must be "all", or body.servers must be array/,
    ],
    [
      'servers that have no name',
      { object: 'models/demo', version: 22, servers: [7] },
      /body.servers.0 must be string/,
    ],
    ['a list', [], /body must be object/],
    [
      'a deadline below zero',
      { object: 'models/demo', version: 22, servers: 'all', deadlineSeconds: -1 },
      /deadlineSeconds/,
    ],
  ])('refuses a body with %s and says which field', async (_what, payload, field) => {
    const response = await app.inject({ method: 'POST', url: '/v1/rollouts', payload });
    expect(response.statusCode).toBe(400);
    expect(response.headers['content-type']).toMatch('application/problem+json');
    expect(response.json()).toMatchObject({ code: 'INVALID_REQUEST', detail: expect.stringMatching(field) });
    expect(service.asked).toEqual([]);
  });

  it.each([
    ['that is not JSON', 'application/json', '{', /not valid JSON/],
    ['that is not declared as JSON', 'application/x-www-form-urlencoded', 'object=a', /Content-Type/],
    ['that is too large', 'application/json', ' '.repeat((4 << 20) + 1), /larger than/],
  ])('refuses a body %s and says what to do', async (_what, type, payload, detail) => {
    const headers = { 'content-type': type };
    const response = await app.inject({ method: 'POST', url: '/v1/rollouts', headers, payload });
    expect(response.statusCode).toBe(400);
    expect(response.headers['content-type']).toMatch('application/problem+json');
    expect(response.json()).toMatchObject({
      code: 'INVALID_REQUEST',
      detail: expect.stringMatching(detail),
      where: 'body',
      remedy: expect.any(String),
    });
    expect(service.asked).toEqual([]);
  });

  it('refuses a URL that cannot be decoded with a problem too', async () => {
    const response = await app.inject({ url: '/v1/objects/%E0%A4%A/versions' });
    expect(response.statusCode).toBe(400);
    expect(response.headers['content-type']).toMatch('application/problem+json');
    expect(response.json()).toMatchObject({ code: 'INVALID_REQUEST', where: 'URL', remedy: expect.any(String) });
  });

  it.each(['/v1/objects/models%2Fother/versions', '/v1/rollouts/none', '/v1/rollouts/none/events', '/v1/nothing'])(
    'answers 404 with a problem for %s',
    async (url) => {
      const response = await app.inject({ url });
      expect(response.statusCode).toBe(404);
      expect(response.json()).toMatchObject({
        code: 'NOT_FOUND',
        type: 'urn:ddf:error:NOT_FOUND',
        status: 404,
        remedy: expect.any(String),
      });
    },
  );

  it('asks for the holders of one version', async () => {
    await app.inject({ url: '/v1/objects/models%2Fdemo/holders?version=22' });
    expect(service.asked).toEqual([{ object: 'models/demo', version: 22 }]);
    expect((await app.inject({ url: '/v1/objects/models%2Fdemo/holders?version=new' })).statusCode).toBe(400);
  });

  it('traces packets through a switch where there is one to look into', async () => {
    const request = { method: 'POST', url: '/v1/switches/leaf1/traces', payload: { port: 9, frame: '00ff' } } as const;
    const response = await app.inject(request);
    expect(service.asked).toEqual([{ name: 'leaf1', port: 9, frame: '00ff' }]);
    expect(response.json()).toEqual({
      items: [{ port: 9, atUs: 5, events: [{ kind: 'drop', at: 'ingress' }], text: 'packet on port 9' }],
    });
    for (const payload of [{ frame: '0' }, { count: 0 }, { seconds: 61 }, { port: 512 }])
      expect((await app.inject({ ...request, payload })).statusCode).toBe(400);
    const { trace: _, ...blind } = recordingService();
    const other = await buildApi(blind, createLogger('silent'));
    try {
      expect((await other.inject(request)).json()).toMatchObject({ code: 'NOT_FOUND' });
    } finally {
      await other.close();
    }
  });

  it('streams events and resumes after the last id', async () => {
    const response = await app.inject({
      url: `/v1/rollouts/${rolloutView.id}/events`,
      headers: { 'last-event-id': '2' },
    });
    expect(response.headers['content-type']).toBe('text/event-stream');
    expect(response.body.match(/^id: /gm)).toHaveLength(1);
    expect(response.body).toContain('id: 3\nevent: state\ndata: {"id":3');
  });

  it('says why it is not ready', async () => {
    const response = await app.inject({ url: '/readyz' });
    expect(response.statusCode).toBe(503);
    expect(response.json()).toEqual({ status: 'not ready', reasons: ['switch leaf1: connecting'] });
  });

  it('describes every route in its OpenAPI document', async () => {
    const document = (await app.inject({ url: '/openapi.json' })).json();
    expect(document.openapi).toBe('3.1.0');
    expect(Object.keys(document.paths).sort()).toEqual([
      '/healthz',
      '/metrics',
      '/readyz',
      '/v1/memory-nodes',
      '/v1/multicast-groups',
      '/v1/objects',
      '/v1/objects/{name}/holders',
      '/v1/objects/{name}/versions',
      '/v1/plans',
      '/v1/rollouts',
      '/v1/rollouts/{id}',
      '/v1/rollouts/{id}/events',
      '/v1/servers',
      '/v1/switches',
      '/v1/switches/{name}/traces',
      '/v1/topology',
      '/v1/transfers',
    ]);
  });

  it('names a port that is in use', async () => {
    const blocker = createServer().listen(0, '127.0.0.1');
    await new Promise((resolve) => blocker.once('listening', resolve));
    const { port } = blocker.address() as { port: number };
    await expect(
      startApi({ service, address: `127.0.0.1:${port}`, logger: createLogger('silent') }),
    ).rejects.toMatchObject({
      code: 'ADDRESS_IN_USE',
      where: `127.0.0.1:${port}`,
    });
    blocker.close();
  });
});
