import { DdfError } from '../../../base/errors.ts';
import type { ControllerService, RolloutEvent, RolloutRequest } from '../../../controller/service.ts';
import { rolloutView, versionView } from './samples.ts';

const notFound = (what: string) => new DdfError('NOT_FOUND', `there is no ${what}`, { remedy: 'GET the list.' });

/** A service whose answers are samples and which remembers what it was asked: the API is what is tested here. */
export function recordingService(): ControllerService & { asked: unknown[] } {
  const asked: unknown[] = [];
  const event = (id: number): RolloutEvent => ({
    id,
    at: '2026-01-01T00:00:00.000Z',
    type: 'state',
    message: 'on its way',
    state: 'distributing',
    verified: 0,
    total: 64,
  });
  return {
    asked,
    objects: () => [{ name: 'models/demo', objectId: '0001000000000001', tenant: 1, versions: [21, 22] }],
    versions: (object) => {
      if (object !== 'models/demo') throw notFound(`object '${object}'`);
      return [versionView];
    },
    holders: (object, version) => {
      asked.push({ object, version });
      return [];
    },
    servers: () => [],
    memoryNodes: () => [],
    switches: () => [],
    multicastGroups: () => [{ group: '239.1.2.3', members: ['gpu01', 'gpu02'], replicated: true }],
    trace: async (name, request) => {
      asked.push({ name, ...request });
      return [{ port: 9, atUs: 5, events: [{ kind: 'drop', at: 'ingress' }], text: 'packet on port 9' }];
    },
    transfers: () => [],
    topology: () => ({ name: 'test', mtuBytes: 9000, switches: [], hosts: [], links: [] }),
    publish: async (request) => {
      asked.push(request);
      return versionView;
    },
    plan: (request) => {
      asked.push(request);
      return rolloutView.plan;
    },
    startRollout: (request: RolloutRequest) => {
      asked.push(request);
      return rolloutView;
    },
    rollouts: () => [rolloutView],
    rollout: (id) => {
      if (id !== rolloutView.id) throw notFound(`rollout '${id}'`);
      return rolloutView;
    },
    abortRollout: () => ({ ...rolloutView, state: 'aborted' }),
    rolloutEvents: async function* (_id, afterId) {
      for (const id of [1, 2, 3]) if (id > afterId) yield event(id);
    },
    metrics: () => '# HELP ddf_up Whether the controller runs.\n',
    notReady: () => ['switch leaf1: connecting'],
  };
}
