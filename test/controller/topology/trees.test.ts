import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { FabricGraph } from '../../../controller/topology/graph.ts';
import { assignPortBits, maskOf, shareBits } from '../../../controller/topology/port-bits.ts';
import { linkKey, planTree, type Tree } from '../../../controller/topology/trees.ts';
import { assignNumbers } from '../../../topologies/assign.ts';
import { loadTopology } from '../../../topologies/load.ts';
import { withServers } from '../../../topologies/servers.ts';
import type { Topology } from '../../../topologies/types.ts';

const FILE = new URL('../../../topologies/leaf-spine.yaml', import.meta.url);
const leafSpine = new FabricGraph(loadTopology(readFileSync(FILE, 'utf8'), 'leaf-spine.yaml'));
const gpus = (from: number, to: number): string[] =>
  Array.from({ length: to - from + 1 }, (_, i) => `gpu${String(from + i).padStart(2, '0')}`);

/** Follows copies through the tree as switches would and returns what arrives where; fails on anything that is not a tree. */
function deliver(graph: FabricGraph, tree: Tree): Map<string, number> {
  const bySwitch = new Map(tree.switches.map((node) => [node.name, node]));
  const arrived = new Map<string, number>();
  const carried = new Set<string>();
  const source = graph.host(tree.source);
  const walk = (name: string, port: number): void => {
    const node = bySwitch.get(name)!;
    expect(node.upstreamPort).toBe(port);
    for (const { port: out, kind, to } of node.downstream) {
      const key = linkKey({ from: name, port: out });
      expect(carried.has(key)).toBe(false);
      carried.add(key);
      if (kind === 'host') {
        expect(graph.host(to)).toMatchObject({ switch: name, port: out });
        arrived.set(to, (arrived.get(to) ?? 0) + 1);
      } else {
        const hop = graph.hopsFrom(name).find((candidate) => candidate.port === out)!;
        expect(hop.to).toBe(to);
        walk(hop.to, hop.toPort);
      }
    }
  };
  walk(source.switch, source.port);
  expect(carried.size).toBe(tree.coreLinks.length + tree.hostLinks);
  expect(new Set(tree.coreLinks.map(linkKey)).size).toBe(tree.coreLinks.length);
  expect(tree.coreLinks).toHaveLength(tree.switches.length - 1);
  return arrived;
}

describe('a tree on the leaf-spine fabric', () => {
  it('stays on the leaf when the receivers are there', () => {
    const tree = planTree(leafSpine, 'mn1', ['gpu02', 'gpu01', 'gpu02']);
    expect(tree).toEqual({
      source: 'mn1',
      receivers: ['gpu01', 'gpu02'],
      switches: [
        {
          name: 'leaf1',
          upstreamPort: 1,
          downstream: [
            { port: 2, kind: 'host', to: 'gpu01' },
            { port: 3, kind: 'host', to: 'gpu02' },
          ],
          treeMask: 0b110,
        },
      ],
      coreLinks: [],
      hostLinks: 2,
      doneUsable: true,
    });
  });

  it('crosses one spine, whichever leaves receive', () => {
    const tree = planTree(leafSpine, 'mn2', gpus(1, 64));
    expect(tree.switches.map((node) => node.name)).toEqual(['leaf2', 'spine1', 'leaf1', 'leaf3', 'leaf4']);
    expect(tree.coreLinks.map((hop) => `${hop.from}>${hop.to}`)).toEqual([
      'leaf2>spine1',
      'spine1>leaf1',
      'spine1>leaf3',
      'spine1>leaf4',
    ]);
    expect(deliver(leafSpine, tree)).toEqual(new Map(gpus(1, 64).map((name) => [name, 1])));
  });

  it('takes the spine that has less to carry', () => {
    const first = planTree(leafSpine, 'mn1', gpus(17, 64));
    const load = new Map(first.coreLinks.map((hop) => [linkKey(hop), 5]));
    const second = planTree(leafSpine, 'mn1', gpus(17, 64), load);
    expect(first.switches[1]?.name).toBe('spine1');
    expect(second.switches[1]?.name).toBe('spine2');
    // Only one busy link behind the spine: seen as well, although the first hop is as good as the other.
    const hop = first.coreLinks[2]!;
    expect(planTree(leafSpine, 'mn1', gpus(17, 64), new Map([[linkKey(hop), 1]])).switches[1]?.name).toBe('spine2');
    // The other direction of the same cable carries something else.
    const back = { from: hop.to, port: hop.toPort };
    expect(planTree(leafSpine, 'mn1', gpus(17, 64), new Map([[linkKey(back), 1]])).switches[1]?.name).toBe('spine1');
  });

  it('finds the spine that reaches everybody where others do not', () => {
    const { switches, hosts, links, ...rest } = leafSpine.topology;
    const cut = links.filter(({ a, b }) => !(b.switch === 'spine1' && a.switch === 'leaf4'));
    const tree = planTree(new FabricGraph({ ...rest, switches, hosts, links: cut }), 'mn1', gpus(17, 64));
    expect(tree.switches[1]?.name).toBe('spine2');
    expect(tree.coreLinks).toHaveLength(4);
  });

  it('refuses hosts that do not exist, nobody, and the source itself', () => {
    expect(() => planTree(leafSpine, 'mn9', ['gpu01'])).toThrow(/no host "mn9"/);
    expect(() => planTree(leafSpine, 'mn1', ['gpu99'])).toThrow(/no host "gpu99"/);
    expect(() => planTree(leafSpine, 'mn1', [])).toThrow(/at least one receiver/);
    expect(() => planTree(leafSpine, 'mn1', ['mn1'])).toThrow(/send to itself/);
  });

  it('says when a leaf cannot be reached', () => {
    const island = { ...leafSpine.topology, links: leafSpine.topology.links.filter(({ a }) => a.switch !== 'leaf4') };
    expect(() => planTree(new FabricGraph(island), 'mn1', ['gpu64'])).toThrow(/no path leads from mn1 to gpu64/);
  });
});

describe('port bits', () => {
  it('are one-hot and shared beyond 32 ports', () => {
    const ports = Array.from({ length: 40 }, (_, i) => 3 * i + 1);
    const bits = assignPortBits([...ports].reverse());
    expect(bits.get(1)).toBe(1);
    expect(bits.get(3 * 31 + 1)).toBe(0x8000_0000);
    expect(bits.get(3 * 32 + 1)).toBe(1);
    expect(shareBits(ports.slice(0, 32), bits)).toBe(false);
    expect(shareBits(ports.slice(1, 33), bits)).toBe(false);
    expect(shareBits([1, 97], bits)).toBe(true);
    expect(maskOf(ports.slice(0, 32), bits)).toBe(0xffff_ffff);
  });

  it('rule DONE out on a switch whose receivers share them', () => {
    const crowded = new FabricGraph(withServers(leafSpine.topology, 160));
    const onLeaf1 = crowded.hostsOf('leaf1').map((host) => host.name);
    expect(planTree(crowded, 'mn1', onLeaf1.slice(1, 33)).doneUsable).toBe(true);
    expect(planTree(crowded, 'mn1', onLeaf1.slice(1, 35)).doneUsable).toBe(false);
  });
});

/** Random connected fabrics of leaves and other switches, with parallel links. */
const anyFabric: fc.Arbitrary<Topology> = fc
  .record({
    leaves: fc.integer({ min: 1, max: 7 }),
    others: fc.integer({ min: 0, max: 5 }),
    parents: fc.array(fc.nat(), { minLength: 12, maxLength: 12 }),
    extra: fc.array(fc.tuple(fc.nat(), fc.nat()), { maxLength: 15 }),
    hosts: fc.array(fc.nat(), { minLength: 2, maxLength: 20 }),
  })
  .map(({ leaves, others, parents, extra, hosts }) => {
    const link = { rateBitsPerSecond: 1e9, delayUs: 1, queueFrames: 9 };
    const names = [...Array(leaves + others).keys()].map((i) => (i < leaves ? `leaf${i}` : `spine${i}`));
    const pairs = [
      ...names.slice(1).map((name, i) => [name, names[parents[i]! % (i + 1)]!] as const),
      ...extra.map(([a, b]) => [names[a % names.length]!, names[b % names.length]!] as const),
    ].filter(([a, b]) => a !== b);
    return assignNumbers({
      name: 'random',
      mtuBytes: 1500,
      switches: names.map((name, i) => ({ name, layer: i < leaves ? 'leaf' : 'spine' })),
      hosts: hosts.map((leaf, i) => ({ name: `h${i}`, kind: 'gpu-server', switch: `leaf${leaf % leaves}`, link })),
      links: pairs.map(([a, b]) => ({ a: { switch: a }, b: { switch: b }, link })),
    });
  });

describe('a tree on any fabric', () => {
  it('brings one copy to every receiver and to nobody else, over every link once', () => {
    fc.assert(
      fc.property(
        anyFabric,
        fc.nat(),
        fc.array(fc.nat(), { minLength: 1 }),
        fc.infiniteStream(fc.nat(9)),
        (topology, from, to, loads) => {
          const graph = new FabricGraph(topology);
          const source = `h${from % topology.hosts.length}`;
          const receivers = to.map((index) => `h${index % topology.hosts.length}`).filter((name) => name !== source);
          fc.pre(receivers.length > 0);
          const load = new Map(
            topology.links
              .flatMap(({ a, b }) => [a, b])
              .map((end) => [`${end.switch}:${end.port}`, loads.next().value as number]),
          );
          const tree = planTree(graph, source, receivers, load);
          expect(deliver(graph, tree)).toEqual(new Map([...new Set(receivers)].map((name) => [name, 1])));
          for (const { name, downstream, treeMask } of tree.switches)
            expect(treeMask).toBe(
              maskOf(
                downstream.map(({ port }) => port),
                assignPortBits(graph.portsOf(name)),
              ),
            );
          expect(planTree(graph, source, [...receivers].reverse(), load)).toEqual(tree);
          // Nothing is cheaper than the shortest paths' union, and one path is the shortest.
          const leaves = new Set(receivers.map((name) => graph.host(name).switch));
          const distance = graph.distancesTo(graph.host(source).switch);
          if (leaves.size === 1) expect(tree.coreLinks).toHaveLength(distance.get([...leaves][0]!)!);
          const unicast = [...leaves].reduce((sum, leaf) => sum + distance.get(leaf)!, 0);
          expect(tree.coreLinks.length).toBeLessThanOrEqual(unicast);
        },
      ),
      { seed: 7, numRuns: 300 },
    );
  });

  it('leaves no dead ends: every switch without receivers passes something on', () => {
    fc.assert(
      fc.property(anyFabric, (topology) => {
        const [source, ...receivers] = topology.hosts.map((host) => host.name);
        const tree = planTree(new FabricGraph(topology), source!, receivers);
        for (const node of tree.switches) expect(node.downstream.length).toBeGreaterThan(0);
      }),
      { seed: 8, numRuns: 100 },
    );
  });
});
