import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { FabricGraph } from '../../../controller/topology/graph.ts';
import { routesOf } from '../../../controller/topology/routes.ts';
import { loadTopology } from '../../../topologies/load.ts';

const FILE = new URL('../../../topologies/leaf-spine.yaml', import.meta.url);
const graph = new FabricGraph(loadTopology(readFileSync(FILE, 'utf8'), 'leaf-spine.yaml'));

describe('routes', () => {
  it('of a leaf: its hosts one by one, every other leaf over both spines, the spines themselves', () => {
    const routes = routesOf(graph, 'leaf2');
    expect(routes).toHaveLength(17 + 2 + 3);
    expect(routes[1]).toEqual({
      prefix: { ip: '10.2.1.2', length: 32 },
      nextHops: [{ port: 2, sourceMac: '02:00:00:00:00:04', destinationMac: '02:00:00:02:00:02' }],
    });
    expect(routes.find((route) => route.prefix.ip === '10.4.0.0')).toEqual({
      prefix: { ip: '10.4.0.0', length: 16 },
      nextHops: [
        { port: 18, sourceMac: '02:00:00:00:00:04', destinationMac: '02:00:00:00:00:01' },
        { port: 19, sourceMac: '02:00:00:00:00:04', destinationMac: '02:00:00:00:00:02' },
      ],
    });
    expect(routes.find((route) => route.prefix.ip === '10.0.0.2')?.prefix.length).toBe(32);
    expect(routes.some((route) => route.prefix.ip === '10.2.0.0')).toBe(false);
  });

  it('of a spine: one way to each leaf', () => {
    const toLeaves = routesOf(graph, 'spine1').filter((route) => route.prefix.length === 16);
    expect(toLeaves.map((route) => route.nextHops.map((hop) => hop.port))).toEqual([[1], [2], [3], [4]]);
  });

  it('lead to the destination from every switch, whichever next hop is taken', () => {
    for (const from of graph.topology.switches)
      for (const to of graph.topology.switches)
        for (const hop of graph.nextHops(from.name, to.name))
          expect(graph.distancesTo(to.name).get(hop.to)).toBe(graph.distancesTo(to.name).get(from.name)! - 1);
  });
});
