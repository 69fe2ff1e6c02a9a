import { createLogger } from '../../base/logger.ts';
import { buildApi } from '../../controller/api/server.ts';
import { recordingService } from '../controller/api/recording-service.ts';
import { JsonDocument, mutateBytes, randomBytes } from './mutate.ts';
import { ensure, type FuzzTarget, pick, Tally } from './target.ts';

const BODIES = [
  { object: 'models/demo', version: 22, servers: 'all', deadlineSeconds: 10 },
  { object: 'models/demo', version: 22, servers: ['gpu01', 'gpu02'] },
  { version: 22, path: '/data/model', base: 21 },
].map((body) => new JsonDocument(body));
const ROUTES = [
  ['POST', '/v1/rollouts'],
  ['POST', '/v1/plans'],
  ['POST', '/v1/objects/models%2Fdemo/versions'],
  ['GET', '/v1/objects/models%2Fdemo/holders?version=22'],
  ['GET', '/v1/rollouts/1/events?after=2'],
  ['DELETE', '/v1/rollouts/1'],
  ['GET', '/metrics'],
] as const;
const METHODS = ['GET', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'HEAD'] as const;

/** Damaged requests to the REST API: an answer of the API's own each time; what is refused is refused with a problem that says why. */
export async function restRequests(): Promise<FuzzTarget> {
  const service = recordingService();
  const app = await buildApi(service, createLogger('silent'));
  const tally = new Tally();
  return {
    casesPerRound: 500,
    tally,
    round: async (random, cases, step) => {
      for (let i = 0; i < cases; i++) {
        const route = pick(random, random.chance(0.7) ? ROUTES.slice(0, 3) : ROUTES);
        const method = random.chance(0.95) ? route[0] : pick(random, METHODS);
        let url: string = route[1];
        const text = JSON.stringify(pick(random, BODIES).mutate(random)) ?? '';
        const payload = random.chance(0.8) ? text : Buffer.from(mutateBytes(random, new TextEncoder().encode(text)));
        if (random.chance(0.2)) {
          const at = random.below(url.length);
          url = `/${url.slice(1, at)}${encodeURI(Buffer.from(randomBytes(random, 3)).toString('latin1'))}${url.slice(at)}`;
        }
        const type = random.chance(0.9)
          ? 'application/json'
          : pick(random, ['text/plain', 'application/json; charset=x', 'multipart/form-data']);
        step(() => `${method} ${url} ${type} ${payload.toString()}`);
        service.asked.length = 0;
        const response = await app.inject({
          method,
          url,
          headers: { 'content-type': type },
          ...(method === 'GET' ? {} : { payload }),
        });
        const status = response.statusCode;
        tally.add(`status ${status}`);
        ensure(status < 500, () => `status ${status}: ${response.body}`);
        if (status < 400 || method === 'HEAD') continue;
        ensure(
          String(response.headers['content-type']).includes('application/problem+json'),
          () => `status ${status} without a problem: ${response.body}`,
        );
        const problem = response.json() as Record<string, unknown>;
        ensure(
          typeof problem.code === 'string' && typeof problem.detail === 'string',
          () => `a problem that says nothing: ${response.body}`,
        );
        ensure(service.asked.length === 0 || status === 404, () => 'a refused request was carried out');
      }
    },
    close: () => app.close(),
  };
}
