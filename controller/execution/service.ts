import { DdfError } from '../../base/errors.ts';
import type { Topology } from '../../topologies/types.ts';
import type { AgentServer } from '../agents/agent-server.ts';
import type { Directory } from '../directory/directory.ts';
import type { VersionRecord } from '../directory/types.ts';
import type { SwitchFleet } from '../fabric/switch-fleet.ts';
import type { ControllerService } from '../service.ts';
import { metricsText } from './metrics.ts';
import type { Publisher } from './publisher.ts';
import type { Rollouts } from './rollouts.ts';
import { agentViews, holderViews, objectViews, topologyView, versionView } from './views.ts';

export interface ServiceParts {
  readonly topology: Topology;
  readonly directory: Directory;
  readonly agents: Pick<AgentServer, 'find'>;
  readonly fleet: Pick<SwitchFleet, 'views' | 'notReady' | 'multicast'>;
  readonly rollouts: Rollouts;
  readonly publisher: Publisher;
  /** Between start and stop. */
  readonly isRunning: () => boolean;
}

/** What the controller offers, over its parts. */
export function createService(parts: ServiceParts): ControllerService {
  const { topology, directory, agents, fleet, rollouts, publisher } = parts;

  function requireVersions(object: string, version?: number): readonly VersionRecord[] {
    const record = directory.findObject(object);
    if (record === undefined)
      throw new DdfError('NOT_FOUND', `there is no object "${object}"`, {
        where: 'object',
        remedy: 'GET /v1/objects lists what there is.',
      });
    const versions = directory.listVersions(record.objectId);
    if (version === undefined) return versions;
    const wanted = versions.filter((candidate) => candidate.version === version);
    if (wanted.length === 0)
      throw new DdfError('NOT_FOUND', `object "${object}" has no version ${version}`, {
        where: 'version',
        remedy: 'GET /v1/objects/{name}/versions lists what there is.',
      });
    return wanted;
  }

  function metrics(): string {
    const kinds = ['memory-node', 'gpu-server'] as const;
    const byKind = kinds.map((kind) => ({ kind, views: agentViews(topology, kind, directory, agents) }));
    const switches = fleet.views();
    const transfers = rollouts.transfers();
    return metricsText([
      {
        name: 'ddf_agents_attached',
        help: 'Agents that are attached.',
        type: 'gauge',
        samples: byKind.map(({ kind, views }) => ({
          labels: { kind },
          value: views.filter((view) => view.attached).length,
        })),
      },
      {
        name: 'ddf_versions',
        help: 'Object versions in the directory.',
        type: 'gauge',
        samples: [{ value: directory.listObjects().reduce((sum, { versions }) => sum + versions.length, 0) }],
      },
      {
        name: 'ddf_holders',
        help: 'Agents that have proved a version by its root hash.',
        type: 'gauge',
        samples: directory.listObjects().flatMap(({ record, versions }) =>
          versions.map((version) => ({
            labels: { object: record.name, version: String(version) },
            value: directory.holderCount(record.objectId, version),
          })),
        ),
      },
      {
        name: 'ddf_rollouts',
        help: 'Rollouts since the database was made, by state.',
        type: 'gauge',
        samples: [...rollouts.countByState()].map(([state, value]) => ({ labels: { state }, value })),
      },
      {
        name: 'ddf_transfers_running',
        help: 'Transfers that are under way.',
        type: 'gauge',
        samples: [{ value: transfers.length }],
      },
      {
        name: 'ddf_switch_primary',
        help: 'Whether this controller is primary on the switch.',
        type: 'gauge',
        samples: switches.map(({ name, state }) => ({ labels: { switch: name }, value: state === 'primary' ? 1 : 0 })),
      },
      {
        name: 'ddf_switch_entries',
        help: 'Entries and groups on the switch.',
        type: 'gauge',
        samples: switches.map(({ name, entries }) => ({ labels: { switch: name }, value: entries })),
      },
      {
        name: 'ddf_switch_dropped_packets_total',
        help: 'Packets that the P4 program dropped, by reason.',
        type: 'counter',
        samples: switches.flatMap(({ name, drops }) =>
          drops.map(({ reason, packets }) => ({ labels: { switch: name, reason }, value: packets })),
        ),
      },
    ]);
  }

  return {
    objects: () => objectViews(directory),
    versions: (object) => requireVersions(object).map((record) => versionView(directory, object, record)),
    holders: (object, version) => holderViews(directory, agents, requireVersions(object, version)),
    servers: () => agentViews(topology, 'gpu-server', directory, agents),
    memoryNodes: () => agentViews(topology, 'memory-node', directory, agents),
    switches: () => fleet.views(),
    multicastGroups: () => fleet.multicast.groups(),
    transfers: () => rollouts.transfers(),
    topology: () => topologyView(topology),
    async publish(request) {
      const objectId = await publisher.publish(request);
      return versionView(directory, request.object, directory.findVersion(objectId, request.version)!);
    },
    plan: (request) => rollouts.plan(request).view,
    startRollout: (request) => rollouts.start(request),
    rollouts: () => rollouts.list(),
    rollout: (id) => rollouts.view(id),
    abortRollout: (id) => rollouts.abort(id),
    rolloutEvents: (id, afterId, signal) => rollouts.events(id, afterId, signal),
    metrics,
    notReady: () => (parts.isRunning() ? fleet.notReady() : ['the controller is not running']),
  };
}
