import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { FabricGraph } from '../../../controller/topology/graph.ts';
import { MulticastTrees } from '../../../controller/topology/multicast.ts';
import { loadTopology } from '../../../topologies/load.ts';
import type { HostNode } from '../../../topologies/types.ts';
import { parseIpv4 } from '../../../wire/packet/addresses.ts';

const NAMES = ['single-switch', 'leaf-spine', 'fat-tree-k4', 'ring'] as const;
const graphs = new Map(
  NAMES.map((name) => {
    const file = `${name}.yaml`;
    const text = readFileSync(new URL(`../../../topologies/${file}`, import.meta.url), 'utf8');
    return [name, new FabricGraph(loadTopology(text, file))];
  }),
);
type Ports = ReadonlyMap<string, readonly number[]>;

/** Follows a packet and all of its copies as switches would. Returns the hosts that get it, and the links that it takes. */
function send(graph: FabricGraph, from: HostNode, portsOf: (name: string) => readonly number[] | undefined) {
  const delivered: string[] = [];
  const links: string[] = [];
  const queue = [{ name: from.switch, ingress: from.port }];
  for (const { name, ingress } of queue) {
    for (const port of portsOf(name) ?? []) {
      if (port === ingress) continue;
      const host = graph.hostsOf(name).find((other) => other.port === port);
      const hop = graph.hopsFrom(name).find((other) => other.port === port);
      if (host !== undefined) delivered.push(host.name);
      else links.push(`${name}:${port}`);
      if (hop !== undefined) queue.push({ name: hop.to, ingress: hop.toPort });
    }
    if (queue.length > 1000) throw new Error('packets go round');
  }
  return { delivered, links };
}

const group = fc.integer({ min: parseIpv4('224.0.1.0')!, max: parseIpv4('239.255.255.255')! });

describe.each(NAMES)('ordinary multicast over %s', (name) => {
  const graph = graphs.get(name)!;
  const { hosts } = graph.topology;
  const trees = new MulticastTrees(graph);
  const members = fc.subarray([...hosts], { maxLength: Math.min(20, hosts.length) });
  const host = fc.constantFrom(...hosts);

  it('reaches every member from every host once, and nobody else, over every link once at most', () => {
    fc.assert(
      fc.property(group, members, host, (address, listeners, sender) => {
        const ports = trees.portsOf(address, listeners);
        const { delivered, links } = send(graph, sender, (at) => ports.get(at));
        const wanted = listeners.map((listener) => listener.name).filter((other) => other !== sender.name);
        expect(delivered.sort()).toEqual(wanted.sort());
        expect(new Set(links).size).toBe(links.length);
        // Nothing goes where nobody listens: every link leads to a member.
        if (wanted.length === 0) expect(links).toEqual([]);
      }),
      { numRuns: 150, seed: 4 },
    );
  });

  it('never goes round, and reaches nobody twice, while some switches know of a change and others do not', () => {
    fc.assert(
      fc.property(group, members, members, host, fc.infiniteStream(fc.boolean()), (address, a, b, sender, choice) => {
        const [old, young] = [trees.portsOf(address, a), trees.portsOf(address, b)] as [Ports, Ports];
        const mixed = new Map(
          graph.topology.switches.map(({ name: at }) => [at, (choice.next().value ? old : young).get(at)]),
        );
        const { delivered } = send(graph, sender, (at) => mixed.get(at));
        expect(new Set(delivered).size).toBe(delivered.length);
        const both = a.filter((one) => b.includes(one) && one !== sender).map((one) => one.name);
        expect(delivered).toEqual(expect.arrayContaining(both));
      }),
      { numRuns: 150, seed: 5 },
    );
  });

  it('needs nothing where nobody listens', () => {
    expect(trees.portsOf(parseIpv4('239.1.2.3')!, []).size).toBe(0);
  });
});

it('spreads groups over the spines, and leaves the other spine alone', () => {
  const graph = graphs.get('leaf-spine')!;
  const trees = new MulticastTrees(graph);
  const listeners = graph.topology.hosts.filter(({ name }) => name === 'gpu01' || name === 'gpu64');
  const uses = new Map<string, number>();
  for (let i = 0; i < 256; i++) {
    const spines = [...trees.portsOf(parseIpv4('239.0.0.0')! + i, listeners).keys()].filter((at) => /spine/.test(at));
    expect(spines).toHaveLength(1);
    uses.set(spines[0]!, (uses.get(spines[0]!) ?? 0) + 1);
  }
  expect(uses.size).toBe(2);
  expect(Math.min(...uses.values())).toBeGreaterThan(80);
});
