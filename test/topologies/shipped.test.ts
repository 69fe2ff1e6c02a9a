import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { FabricGraph } from '../../controller/topology/graph.ts';
import { routesOf } from '../../controller/topology/routes.ts';
import { planTree, type Tree } from '../../controller/topology/trees.ts';
import { formatTopology } from '../../topologies/format.ts';
import { loadTopology } from '../../topologies/load.ts';
import { withHostRate } from '../../topologies/rates.ts';
import { withServers } from '../../topologies/servers.ts';
import type { Topology } from '../../topologies/types.ts';

const FILES = ['single-switch.yaml', 'leaf-spine.yaml', 'fat-tree-k4.yaml', 'ring.yaml'];

function load(file: string): Topology {
  const path = fileURLToPath(new URL(`../../topologies/${file}`, import.meta.url));
  return loadTopology(readFileSync(path, 'utf8'), file);
}

/** Follows copies of one packet over the links as the switches would; how often each host gets it. */
function deliveries(graph: FabricGraph, tree: Tree): Map<string, number> {
  const nodes = new Map(tree.switches.map((node) => [node.name, node]));
  const got = new Map<string, number>();
  const visited = new Set<string>();
  const queue = [{ name: graph.host(tree.source).switch, port: graph.host(tree.source).port }];
  for (const { name, port } of queue) {
    expect(visited.has(name), `${name} is reached twice`).toBe(false);
    visited.add(name);
    const node = nodes.get(name)!;
    expect(node.upstreamPort).toBe(port);
    for (const copy of node.downstream) {
      if (copy.kind === 'host') got.set(copy.to, (got.get(copy.to) ?? 0) + 1);
      else {
        const hop = graph.hopsFrom(name).find((candidate) => candidate.port === copy.port)!;
        expect(hop.to).toBe(copy.to);
        queue.push({ name: hop.to, port: hop.toPort });
      }
    }
  }
  expect(visited.size).toBe(tree.switches.length);
  return got;
}

/** Every packet comes one link nearer with every hop, whichever of the next hops is taken. */
function checkRoutes(graph: FabricGraph): void {
  const { switches, hosts } = graph.topology;
  for (const { name } of switches)
    for (const route of routesOf(graph, name)) {
      const host = hosts.find(({ ip }) => ip === route.prefix.ip);
      for (const { port } of route.nextHops) {
        const hop = graph.hopsFrom(name).find((candidate) => candidate.port === port);
        if (hop === undefined) expect(host).toMatchObject({ switch: name, port });
        else {
          const target = switches.find(
            ({ ip }) => ip.replace(/\.0\.1$/, '') === route.prefix.ip.replace(/\.0\.[01]$/, ''),
          )!;
          const distances = graph.distancesTo(target.name);
          expect(distances.get(hop.to)).toBe(distances.get(name)! - 1);
        }
      }
    }
}

describe.each(FILES)('%s', (file) => {
  const topology = load(file);
  const graph = new FabricGraph(topology);

  it('has trees that reach every receiver once, without loops, and tell when all are done', () => {
    const servers = topology.hosts.filter(({ kind }) => kind === 'gpu-server').map(({ name }) => name);
    for (const { name, kind } of topology.hosts) {
      if (kind !== 'memory-node') continue;
      const tree = planTree(graph, name, servers);
      expect([...deliveries(graph, tree)].sort()).toEqual(servers.map((server) => [server, 1]).sort());
      expect(tree.doneUsable).toBe(true);
      expect(tree.coreLinks.length).toBe(tree.switches.length - 1);
    }
  });

  it('routes from everywhere to everywhere, always nearer', () => {
    checkRoutes(graph);
    for (const { name } of topology.switches)
      expect(routesOf(graph, name).length).toBe(topology.switches.length - 1 + graph.hostsOf(name).length);
  });

  it.each([1, 5, 24])('carries %i servers', (count) => {
    const changed = withServers(topology, count);
    const changedGraph = new FabricGraph(changed);
    const servers = changed.hosts.filter(({ kind }) => kind === 'gpu-server').map(({ name }) => name);
    const tree = planTree(changedGraph, 'mn1', servers);
    expect(deliveries(changedGraph, tree).size).toBe(count);
    checkRoutes(changedGraph);
  });

  it('is the same after it was written to a file', () => {
    for (const changed of [topology, withServers(topology, 7)])
      expect(loadTopology(formatTopology(changed), 'written.yaml')).toEqual(changed);
  });

  it('can be slowed down as a whole', () => {
    const slow = withHostRate(topology, 50e6);
    expect(Math.max(...slow.hosts.map(({ link }) => link.rateBitsPerSecond))).toBe(50e6);
    const ratio = (a: Topology): number[] =>
      a.links.map(({ link }) => link.rateBitsPerSecond / a.hosts[0]!.link.rateBitsPerSecond);
    expect(ratio(slow)).toEqual(ratio(topology));
    expect(loadTopology(formatTopology(slow), 'written.yaml')).toEqual(slow);
  });
});

describe('the tiers', () => {
  it('a fat tree with k = 4 has 20 switches, 4 ports on each for links or hosts, and 4 ways between pods', () => {
    const graph = new FabricGraph(load('fat-tree-k4.yaml'));
    const count = (layer: string): number => graph.topology.switches.filter((node) => node.layer === layer).length;
    expect([count('core'), count('spine'), count('leaf')]).toEqual([4, 8, 8]);
    expect(graph.topology.links).toHaveLength(32);
    for (const { name, layer } of graph.topology.switches)
      expect(graph.hopsFrom(name).length).toBe(layer === 'leaf' ? 2 : 4);
    expect(graph.distancesTo('leaf8').get('leaf1')).toBe(4);
    // Two spines upwards, two cores above each.
    const ups = graph.nextHops('leaf1', 'leaf8').map(({ to }) => to);
    expect(ups).toHaveLength(2);
    for (const up of ups) expect(graph.nextHops(up, 'leaf8')).toHaveLength(2);
  });

  it('a ring has two ways to the opposite leaf', () => {
    const graph = new FabricGraph(load('ring.yaml'));
    expect(
      graph
        .nextHops('leaf1', 'leaf4')
        .map(({ to }) => to)
        .sort(),
    ).toEqual(['leaf2', 'leaf6']);
  });
});
