import { DdfError } from '../base/errors.ts';
import { assignNumbers, type DraftHost } from './assign.ts';
import type { Topology } from './types.ts';

/**
 * The same fabric with `count` GPU servers (at least 1), spread evenly over the leaves in their order; the first leaves take the remainder. Names
 * continue the first server's (`gpu01`, `gpu02`, ...), links are those of the leaf's first server or of the first server of all. Ports and
 * addresses are assigned anew, Memory Nodes first.
 *
 * Throws INVALID_TOPOLOGY when a leaf has not enough ports, or the topology has no GPU server to copy.
 */
export function withServers(topology: Topology, count: number): Topology {
  if (!Number.isInteger(count) || count < 1)
    throw new DdfError('INVALID_TOPOLOGY', `${count} is not a number of GPU servers`, {
      where: topology.name,
      remedy: 'Ask for one server or more.',
    });
  const model = topology.hosts.find((host) => host.kind === 'gpu-server');
  if (model === undefined)
    throw new DdfError('INVALID_TOPOLOGY', 'the topology has no GPU server to take as the model for others', {
      where: topology.name,
      remedy: 'Give it at least one host of the kind gpu-server.',
    });
  const prefix = model.name.replace(/\d+$/, '');
  const width = Math.max(String(count).length, model.name.length - prefix.length);
  const leaves = topology.switches.filter((node) => node.layer === 'leaf');
  const others = topology.hosts.filter((host) => host.kind !== 'gpu-server');
  const servers: DraftHost[] = [];
  leaves.forEach((leaf, index) => {
    const share = Math.floor(count / leaves.length) + (index < count % leaves.length ? 1 : 0);
    const link = (topology.hosts.find((host) => host.kind === 'gpu-server' && host.switch === leaf.name) ?? model).link;
    for (let i = 0; i < share; i++) {
      const name = `${prefix}${String(servers.length + 1).padStart(width, '0')}`;
      if (others.some((host) => host.name === name))
        throw new DdfError('INVALID_TOPOLOGY', `the name ${name} belongs to a host that is no GPU server`, {
          where: topology.name,
          remedy: 'Name GPU servers with a prefix of their own.',
        });
      servers.push({ name, kind: 'gpu-server', switch: leaf.name, link });
    }
  });
  return assignNumbers({
    name: topology.name,
    mtuBytes: topology.mtuBytes,
    switches: topology.switches,
    hosts: [...others.map(({ name, kind, switch: leaf, link }) => ({ name, kind, switch: leaf, link })), ...servers],
    links: topology.links.map(({ a, b, link }) => ({ a: { switch: a.switch }, b: { switch: b.switch }, link })),
  });
}
