import type { FastifyInstance, FastifyRequest } from 'fastify';
import { DdfError } from '../../base/errors.ts';
import type { ControllerService, PublishRequest, RolloutRequest, TraceRequest } from '../service.ts';
import { sendEvents } from './events.ts';
import * as schemas from './schemas.ts';

interface ObjectParams {
  name: string;
}

interface RolloutParams {
  id: string;
}

/** Every route of /v1 and the health checks. Handlers only translate: what happens is the service's. */
export function registerRoutes(app: FastifyInstance, service: ControllerService): void {
  const answer = (schema: object, status = 200) => ({
    [status]: schema,
    '4xx': schemas.problemSchema,
    '5xx': schemas.problemSchema,
  });

  const lists: [path: string, summary: string, item: Record<string, unknown>, read: () => unknown[]][] = [
    ['/v1/objects', 'Objects and their versions', schemas.objectView, () => service.objects()],
    ['/v1/servers', 'GPU servers and what they hold', schemas.agentView, () => service.servers()],
    ['/v1/memory-nodes', 'Memory Nodes and what they hold', schemas.agentView, () => service.memoryNodes()],
    ['/v1/switches', 'Switches, their state and what they dropped', schemas.switchView, () => service.switches()],
    [
      '/v1/multicast-groups',
      'Groups of ordinary IP multicast and the hosts that have joined them',
      schemas.multicastGroupView,
      () => service.multicastGroups(),
    ],
    ['/v1/transfers', 'Transfers that are under way', schemas.transferView, () => service.transfers()],
    ['/v1/rollouts', 'Rollouts, newest first', schemas.rolloutView, () => service.rollouts()],
  ];
  for (const [path, summary, item, read] of lists) {
    app.get(path, { schema: { summary, response: answer(schemas.listOf(item)) } }, () => ({ items: read() }));
  }

  app.post(
    '/v1/switches/:name/traces',
    {
      schema: {
        summary: 'What happens to a frame, or to the next packets, inside a switch of the same process',
        params: schemas.switchParams,
        body: schemas.traceBody,
        response: answer(schemas.listOf(schemas.traceView)),
      },
    },
    async (request: FastifyRequest<{ Params: ObjectParams; Body: TraceRequest }>) => {
      if (service.trace === undefined)
        throw new DdfError('NOT_FOUND', 'The switches of this controller are programs of their own', {
          remedy: 'Ask the switch itself: ddf trace --admin URL, with the address that it was started with.',
        });
      return { items: await service.trace(request.params.name, request.body) };
    },
  );

  app.get('/v1/topology', { schema: { summary: 'The network', response: answer(schemas.topologyView) } }, () =>
    service.topology(),
  );

  app.get(
    '/v1/objects/:name/versions',
    {
      schema: {
        summary: 'Versions of an object, with the payloads that bring them',
        params: schemas.objectParams,
        response: answer(schemas.listOf(schemas.versionView)),
      },
    },
    (request: FastifyRequest<{ Params: ObjectParams }>) => ({ items: service.versions(request.params.name) }),
  );

  app.post(
    '/v1/objects/:name/versions',
    {
      schema: {
        summary: 'Publish a version from a file that a Memory Node can read',
        params: schemas.objectParams,
        body: schemas.publishBody,
        response: answer(schemas.versionView, 201),
      },
    },
    async (request: FastifyRequest<{ Params: ObjectParams; Body: Omit<PublishRequest, 'object'> }>, reply) => {
      const version = await service.publish({ object: request.params.name, ...request.body });
      return reply.code(201).send(version);
    },
  );

  app.get(
    '/v1/objects/:name/holders',
    {
      schema: {
        summary: 'Who has proved to hold a version',
        params: schemas.objectParams,
        querystring: schemas.holdersQuery,
        response: answer(schemas.listOf(schemas.holderView)),
      },
    },
    (request: FastifyRequest<{ Params: ObjectParams; Querystring: { version?: string } }>) => {
      const { version } = request.query;
      return { items: service.holders(request.params.name, version === undefined ? undefined : Number(version)) };
    },
  );

  app.post(
    '/v1/plans',
    {
      schema: {
        summary: 'What a rollout would do, and why; nothing is changed',
        body: schemas.rolloutBody,
        response: answer(schemas.planView),
      },
    },
    (request: FastifyRequest<{ Body: RolloutRequest }>) => service.plan(request.body),
  );

  app.post(
    '/v1/rollouts',
    {
      schema: {
        summary: 'Make a version present on servers; the same request while it runs joins it',
        body: schemas.rolloutBody,
        response: answer(schemas.rolloutView, 202),
      },
    },
    (request: FastifyRequest<{ Body: RolloutRequest }>, reply) => {
      const rollout = service.startRollout(request.body);
      return reply
        .code(202)
        .header('location', `/v1/rollouts/${encodeURIComponent(rollout.id)}`)
        .send(rollout);
    },
  );

  app.get(
    '/v1/rollouts/:id',
    {
      schema: {
        summary: 'A rollout: its plan, its servers and what it cost',
        params: schemas.rolloutParams,
        response: answer(schemas.rolloutView),
      },
    },
    (request: FastifyRequest<{ Params: RolloutParams }>) => service.rollout(request.params.id),
  );

  app.delete(
    '/v1/rollouts/:id',
    {
      schema: {
        summary: 'Abort a rollout; what servers hold stays as it was',
        params: schemas.rolloutParams,
        response: answer(schemas.rolloutView),
      },
    },
    (request: FastifyRequest<{ Params: RolloutParams }>) => service.abortRollout(request.params.id),
  );

  app.get(
    '/v1/rollouts/:id/events',
    {
      schema: {
        summary: 'What happens to a rollout, as server-sent events; resumes after Last-Event-ID or ?after=',
        params: schemas.rolloutParams,
        querystring: schemas.eventsQuery,
        response: { '4xx': schemas.problemSchema },
      },
    },
    (request: FastifyRequest<{ Params: RolloutParams; Querystring: { after?: string } }>, reply) => {
      service.rollout(request.params.id);
      const header = request.headers['last-event-id'];
      const after = Number(
        request.query.after ?? (typeof header === 'string' && /^\d{1,12}$/.test(header) ? header : 0),
      );
      return sendEvents(reply, (signal) => service.rolloutEvents(request.params.id, after, signal));
    },
  );

  app.get(
    '/metrics',
    { schema: { summary: 'Prometheus text exposition', produces: ['text/plain'] } },
    (_request, reply) => reply.type('text/plain; version=0.0.4; charset=utf-8').send(service.metrics()),
  );

  app.get('/healthz', { schema: { summary: 'Alive', response: answer(schemas.statusView) } }, () => ({
    status: 'ok',
    reasons: [],
  }));

  app.get(
    '/readyz',
    {
      schema: { summary: 'Ready to work, or why not', response: { 200: schemas.statusView, 503: schemas.statusView } },
    },
    (_request, reply) => {
      const reasons = service.notReady();
      return reply
        .code(reasons.length === 0 ? 200 : 503)
        .send({ status: reasons.length === 0 ? 'ready' : 'not ready', reasons });
    },
  );
}
