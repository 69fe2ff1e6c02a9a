import { DdfError } from '../../base/errors.ts';
import type { FabricGraph } from '../topology/graph.ts';
import { linkKey, type Tree } from '../topology/trees.ts';
import { linksOfTree, shareRates } from './rates.ts';

/** A part of a payload goes over each; together they are all of it. */
export interface Stripes {
  /** At least one. */
  readonly trees: readonly Tree[];
  /** Payload bits per second that they carry together when nobody else sends. */
  readonly bitsPerSecond: number;
  /** Sources that could not reach the receivers. */
  readonly unreachable: readonly { readonly source: string; readonly error: DdfError }[];
}

/** More would cost entries in every switch and gain little: a leaf has few uplinks. */
const MAX_STRIPES = 8;
/** Another stripe has to bring this much. */
const WORTHWHILE = 1.1;

/**
 * Chooses over how many trees, from which sources, a payload travels. One from the first source that reaches the receivers; more, from the same
 * source or from others, as long as they share no link between switches with those chosen before and together carry more: where the links
 * between switches, or a source's own, are slower than the receivers'.
 *
 * @param sources in order of preference
 * @param tree    the best tree from a source, away from those that are given
 * @returns undefined where no source reaches all receivers
 */
export function chooseStripes(
  graph: FabricGraph,
  sources: readonly string[],
  segmentBytes: number,
  tree: (source: string, chosen: readonly Tree[]) => Tree,
): Stripes | { readonly unreachable: Stripes['unreachable'] } {
  const unreachable: { source: string; error: DdfError }[] = [];
  const candidate = (source: string, chosen: readonly Tree[]): Tree | undefined => {
    try {
      return tree(source, chosen);
    } catch (error) {
      if (!(error instanceof DdfError && error.code === 'UNREACHABLE_HOST')) throw error;
      if (!unreachable.some((known) => known.source === source)) unreachable.push({ source, error });
      return undefined;
    }
  };
  let first: Tree | undefined;
  for (const source of sources) {
    first = candidate(source, []);
    if (first !== undefined) break;
  }
  if (first === undefined) return { unreachable };
  let trees = [first];
  let rate = rateOf(graph, trees, segmentBytes);
  while (trees.length < MAX_STRIPES) {
    let better: { trees: Tree[]; rate: number } | undefined;
    for (const source of sources) {
      const next = candidate(source, trees);
      if (next === undefined || sharesCoreLink(next, trees)) continue;
      const together = rateOf(graph, [...trees, next], segmentBytes);
      if (together > (better?.rate ?? WORTHWHILE * rate)) better = { trees: [...trees, next], rate: together };
    }
    if (better === undefined) break;
    ({ trees, rate } = better);
  }
  return { trees, bitsPerSecond: rate, unreachable };
}

/** Payload bits per second over all trees, each a stripe of the same size: the slowest one decides. */
function rateOf(graph: FabricGraph, trees: readonly Tree[], segmentBytes: number): number {
  const shares = new Map(trees.map((tree, i) => [i, { links: linksOfTree(graph, tree), weight: 1 }]));
  return trees.length * Math.min(...shareRates(shares, segmentBytes).values());
}

function sharesCoreLink(tree: Tree, others: readonly Tree[]): boolean {
  const used = new Set(others.flatMap(({ coreLinks }) => coreLinks.map(linkKey)));
  return tree.coreLinks.some((hop) => used.has(linkKey(hop)));
}
