import { describe, expect, it } from 'vitest';
import { chooseStripes } from '../../../controller/planner/stripes.ts';
import { FabricGraph } from '../../../controller/topology/graph.ts';
import { linkKey, planTree, type Tree, withoutReceivers } from '../../../controller/topology/trees.ts';
import { leafSpine } from '../../../lab/study/leaf-spine.ts';

const GIGABIT = 1e9;

function fabric(coreBitsPerSecond: number, sources = 1): FabricGraph {
  const options = { receivers: 4, leaves: 2, spines: 2, mtuBytes: 9000, hostBitsPerSecond: GIGABIT, delayUs: 10 };
  return new FabricGraph(leafSpine({ ...options, coreBitsPerSecond }, sources));
}

const RECEIVERS = ['gpu1', 'gpu2', 'gpu3', 'gpu4'];

function choose(graph: FabricGraph, sources: readonly string[]) {
  const choice = chooseStripes(graph, sources, 8192, (source, chosen) =>
    planTree(
      graph,
      source,
      RECEIVERS,
      new Map(chosen.flatMap(({ coreLinks }) => coreLinks.map((hop) => [linkKey(hop), 1]))),
    ),
  );
  if (!('trees' in choice)) throw new Error('unreachable');
  return choice;
}

const spines = ({ switches }: Tree): string[] =>
  switches.map(({ name }) => name).filter((name) => name.startsWith('spine'));

describe('stripes', () => {
  it('one tree where the links between switches carry as much as those of the hosts', () => {
    expect(choose(fabric(GIGABIT), ['mn1']).trees).toHaveLength(1);
  });

  it('both spines where they carry half as much, with no link in common', () => {
    const { trees, bitsPerSecond } = choose(fabric(GIGABIT / 2), ['mn1']);
    expect(trees.flatMap(spines)).toEqual(['spine1', 'spine2']);
    expect(bitsPerSecond).toBeGreaterThan(0.9 * GIGABIT);
    const links = trees.flatMap(({ coreLinks }) => coreLinks.map(linkKey));
    expect(new Set(links).size).toBe(links.length);
  });

  it('two sources where one is slower than the receivers', () => {
    const graph = fabric(GIGABIT, 2);
    const slow = { ...graph.topology.hosts[0]!.link, rateBitsPerSecond: GIGABIT / 2 };
    const hosts = graph.topology.hosts.map((host) => (host.kind === 'memory-node' ? { ...host, link: slow } : host));
    const { trees } = choose(new FabricGraph({ ...graph.topology, hosts }), ['mn1', 'mn2']);
    expect(trees.map(({ source }) => source)).toEqual(['mn1', 'mn2']);
  });
});

describe('a tree without some of its receivers', () => {
  const graph = fabric(GIGABIT);
  const tree = planTree(graph, 'mn1', RECEIVERS);

  it('loses a port, its bit, and links that lead nowhere any more', () => {
    const one = withoutReceivers(graph, tree, new Set(['gpu3']))!;
    expect(one.receivers).toEqual(['gpu1', 'gpu2', 'gpu4']);
    expect(one.coreLinks).toEqual(tree.coreLinks);
    const leaf = withoutReceivers(graph, tree, new Set(['gpu3', 'gpu4']))!;
    expect(leaf.coreLinks.map(({ to }) => to)).toEqual([...spines(tree), 'leaf1']);
    expect(leaf).toEqual({ ...planTree(graph, 'mn1', ['gpu1', 'gpu2']) });
  });

  it('is none without receivers', () => {
    expect(withoutReceivers(graph, tree, new Set(RECEIVERS))).toBeUndefined();
  });
});
