import type { HostNode } from '../../topologies/types.ts';
import type { FabricGraph, Hop } from './graph.ts';

/** Part of a spanning tree: from its root on breadth-first, without branches that end in switches without hosts. */
interface SpanningTree {
  readonly root: string;
  /** Every switch but the root, with the hop by which the root's side reaches it. Parents come before their children. */
  readonly branches: readonly Hop[];
}

/**
 * Trees for ordinary multicast, where anybody may send. A group has one spanning tree for all of its senders and never changes it, so packets
 * cannot go round or arrive twice, in whatever order switches learn of members that come and go. Groups are spread over the trees there are:
 * one for each switch that is as near as can be to all hosts, spines and cores first.
 */
export class MulticastTrees {
  private readonly trees: readonly SpanningTree[];

  /** @param graph hangs together, as every loaded topology does */
  constructor(graph: FabricGraph) {
    this.trees = centres(graph).map((root) => grow(graph, root));
  }

  /**
   * Where a switch sends packets of a group, apart from the port by which they came: every port beyond which there is a member. Switches from
   * which nobody can be reached are left out.
   * @returns ports in ascending order by the switch's name
   */
  portsOf(group: number, members: readonly HostNode[]): Map<string, number[]> {
    const ports = new Map<string, number[]>();
    const add = (name: string, port: number): void => {
      const list = ports.get(name);
      if (list === undefined) ports.set(name, [port]);
      else list.push(port);
    };
    const membersOn = new Map<string, number>();
    for (const host of members) {
      add(host.switch, host.port);
      membersOn.set(host.switch, (membersOn.get(host.switch) ?? 0) + 1);
    }
    const { root, branches } = this.trees[spread(group) % this.trees.length]!;
    // At each switch, the members there and below; children are added to their parents before those are looked at.
    const below = new Map([root, ...branches.map(({ to }) => to)].map((name) => [name, membersOn.get(name) ?? 0]));
    for (const { from, to } of [...branches].reverse()) below.set(from, below.get(from)! + below.get(to)!);
    for (const { from, port, to, toPort } of branches) {
      if (below.get(to)! > 0) add(from, port);
      if (members.length > below.get(to)!) add(to, toPort);
    }
    for (const list of ports.values()) list.sort((a, b) => a - b);
    return ports;
  }
}

/** Switches whose farthest host is as near as possible; only those without hosts, if there are any. */
function centres(graph: FabricGraph): string[] {
  const { switches, hosts } = graph.topology;
  const radius = (name: string): number => {
    const distances = graph.distancesTo(name);
    return hosts.reduce((most, host) => Math.max(most, distances.get(host.switch)!), 0);
  };
  const names = switches.map(({ name }) => name);
  const least = Math.min(...names.map(radius));
  const nearest = names.filter((name) => radius(name) === least);
  const between = nearest.filter((name) => graph.hostsOf(name).length === 0);
  return between.length > 0 ? between : nearest;
}

function grow(graph: FabricGraph, root: string): SpanningTree {
  const reached = new Set([root]);
  const branches: Hop[] = [];
  for (const name of reached)
    for (const hop of graph.hopsFrom(name))
      if (!reached.has(hop.to)) {
        reached.add(hop.to);
        branches.push(hop);
      }
  const needed = new Set(graph.topology.hosts.map((host) => host.switch));
  const kept = branches.reverse().filter(({ from, to }) => {
    if (needed.has(to)) needed.add(from);
    return needed.has(to);
  });
  return { root, branches: kept.reverse() };
}

/** Neighbouring groups go to different trees, and so do those of a program that counts in larger steps (Fibonacci hashing). */
function spread(group: number): number {
  return Math.imul(group, 0x9e37_79b1) >>> 16;
}
