import { formatObjectId } from '../../objects/ids.ts';
import type { HostNode, Topology } from '../../topologies/types.ts';
import type { AgentServer } from '../agents/agent-server.ts';
import type { Directory } from '../directory/directory.ts';
import type { VersionRecord } from '../directory/types.ts';
import type { AgentView, HolderView, ObjectView, TopologyView, VersionView } from '../service.ts';

type Agents = Pick<AgentServer, 'find'>;

export function objectViews(directory: Directory): ObjectView[] {
  return directory.listObjects().map(({ record, versions }) => ({
    name: record.name,
    objectId: formatObjectId(record.objectId),
    tenant: record.tenant,
    versions,
  }));
}

export function versionView(directory: Directory, object: string, record: VersionRecord): VersionView {
  const { objectId, version, sizeBytes, root, createdAt } = record;
  return {
    object,
    objectId: formatObjectId(objectId),
    version,
    sizeBytes,
    rootSha256: hex(root),
    createdAt,
    payloads: directory.listPayloads(objectId, version).map((payload) => ({
      base: payload.base === 0 ? null : payload.base,
      sizeBytes: payload.sizeBytes,
      memoryNodes: [...payload.memoryNodes],
    })),
    holders: directory.holderCount(objectId, version),
  };
}

export function holderViews(directory: Directory, agents: Agents, versions: readonly VersionRecord[]): HolderView[] {
  return versions.flatMap(({ objectId, version }) =>
    directory.holders(objectId, version).map((holding): HolderView => {
      const agent = directory.findAgent(holding.agent)!;
      return {
        agent: holding.agent,
        kind: agent.kind,
        version,
        rootSha256: hex(holding.root),
        incarnation: String(agent.incarnation),
        attached: agents.find(holding.agent) !== undefined,
        since: holding.since,
      };
    }),
  );
}

export function agentViews(
  topology: Topology,
  kind: HostNode['kind'],
  directory: Directory,
  agents: Agents,
): AgentView[] {
  const nameOf = (objectId: bigint): string => directory.objectById(objectId)?.name ?? formatObjectId(objectId);
  return topology.hosts
    .filter((host) => host.kind === kind)
    .map((host) => ({
      name: host.name,
      kind,
      attached: agents.find(host.name) !== undefined,
      ip: host.ip,
      switch: host.switch,
      incarnation: directory.findAgent(host.name)?.incarnation.toString() ?? null,
      held: directory
        .heldBy(host.name)
        .map(({ objectId, version, root }) => ({ object: nameOf(objectId), version, rootSha256: hex(root) })),
      active: directory
        .activeVersions(host.name)
        .map(({ objectId, version }) => ({ object: nameOf(objectId), version })),
    }));
}

export function topologyView(topology: Topology): TopologyView {
  return {
    name: topology.name,
    mtuBytes: topology.mtuBytes,
    switches: topology.switches.map(({ name, layer }) => ({ name, layer })),
    hosts: topology.hosts.map(({ name, kind, switch: leaf, port, ip }) => ({ name, kind, switch: leaf, port, ip })),
    links: topology.links.map(({ a, b, link }) => ({
      a: a.switch,
      b: b.switch,
      rateBitsPerSecond: link.rateBitsPerSecond,
    })),
  };
}

function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('hex');
}
