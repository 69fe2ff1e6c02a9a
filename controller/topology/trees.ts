import { DdfError } from '../../base/errors.ts';
import type { FabricGraph, Hop } from './graph.ts';
import { assignPortBits, maskOf, shareBits } from './port-bits.ts';

/** How one payload reaches its receivers: every link of it carries the payload once. */
export interface Tree {
  /** Host that sends. */
  readonly source: string;
  /** Hosts that receive, in the topology's order. */
  readonly receivers: readonly string[];
  /** Breadth-first from the source's switch. */
  readonly switches: readonly TreeSwitch[];
  /** Switch-to-switch links in the direction of the payload, in the order of `switches`. */
  readonly coreLinks: readonly Hop[];
  /** Links towards receivers; the source's own link is not among them. */
  readonly hostLinks: number;
  /** Whether every switch can tell its ports apart, so that DONE at the source means that all are. */
  readonly doneUsable: boolean;
}

export interface TreeSwitch {
  readonly name: string;
  /** Where the payload comes in. */
  readonly upstreamPort: number;
  /** Where copies leave, by port. */
  readonly downstream: readonly TreePort[];
  /** Bits of the downstream ports. */
  readonly treeMask: number;
}

export interface TreePort {
  readonly port: number;
  readonly kind: 'host' | 'fabric';
  /** The host or switch behind it. */
  readonly to: string;
}

/** The key of a directed link in a load map. */
export function linkKey(hop: Pick<Hop, 'from' | 'port'>): string {
  return `${hop.from}:${hop.port}`;
}

/**
 * Plans a tree with as few core links as it finds, and among those the one over the least loaded links.
 *
 * A tree grows from the source's switch by the nearest receiver's switch that it does not reach yet (Takahashi and Matsuyama's shortest-path
 * heuristic for Steiner trees), once freely and once through every other switch; the best of these is taken. Where one spine reaches all of the
 * leaves that is the optimum; on any graph at most twice the optimum. Ties go to the topology's order.
 *
 * @param receivers at least one; duplicates count once
 * @param loadByLink what a directed link (see {@link linkKey}) has to carry already, in any unit that compares; links that are missing carry nothing
 * @throws DdfError NOT_FOUND for unknown hosts, INVALID_REQUEST without receivers or with the source among them, UNREACHABLE_HOST
 */
export function planTree(
  graph: FabricGraph,
  source: string,
  receivers: readonly string[],
  loadByLink: ReadonlyMap<string, number> = new Map(),
): Tree {
  const root = graph.host(source);
  const wanted = new Set(receivers.map((name) => graph.host(name).name));
  if (wanted.size === 0)
    throw new DdfError('INVALID_REQUEST', 'a tree needs at least one receiver', {
      where: `source ${source}`,
      remedy: 'Name the servers that have to receive.',
    });
  if (wanted.has(source))
    throw new DdfError('INVALID_REQUEST', `${source} would send to itself`, {
      where: `source ${source}`,
      remedy: 'Choose another source, or leave this host out of the receivers.',
    });
  const targets = graph.topology.hosts.filter((host) => wanted.has(host.name));
  const terminals = [...new Set(targets.map((host) => host.switch))];
  const reachable = graph.distancesTo(root.switch);
  for (const host of targets)
    if (!reachable.has(host.switch))
      throw new DdfError('UNREACHABLE_HOST', `no path leads from ${source} to ${host.name}`, {
        where: `${root.switch} to ${host.switch}`,
        remedy: 'Check the links of the topology.',
      });

  const load = (hop: Hop): number => loadByLink.get(linkKey(hop)) ?? 0;
  const fixed = new Set([root.switch, ...terminals]);
  const through = graph.topology.switches
    .map(({ name }) => name)
    .filter((name) => !fixed.has(name) && reachable.has(name));
  let best = grow(graph, root.switch, terminals, undefined, load);
  for (const name of through) {
    const candidate = grow(graph, root.switch, terminals, name, load);
    if (isBetter(candidate, best)) best = candidate;
  }
  return describe(graph, source, targets, best.parents);
}

/**
 * The tree without some of its receivers, over the same links as far as they still lead anywhere.
 * @returns undefined when none is left
 */
export function withoutReceivers(graph: FabricGraph, tree: Tree, leaving: ReadonlySet<string>): Tree | undefined {
  const targets = tree.receivers.filter((name) => !leaving.has(name)).map((name) => graph.host(name));
  if (targets.length === 0) return undefined;
  const parents = new Map(tree.coreLinks.map((hop) => [hop.to, hop]));
  prune(parents, new Set(targets.map((host) => host.switch)));
  return describe(graph, tree.source, targets, parents);
}

interface GrownTree {
  /** The hop by which each switch of the tree is entered; the root has none. */
  readonly parents: ReadonlyMap<string, Hop>;
  readonly maximumLoad: number;
  readonly totalLoad: number;
}

function isBetter(a: GrownTree, b: GrownTree): boolean {
  if (a.parents.size !== b.parents.size) return a.parents.size < b.parents.size;
  if (a.maximumLoad !== b.maximumLoad) return a.maximumLoad < b.maximumLoad;
  return a.totalLoad < b.totalLoad;
}

/** @param through a switch that the tree reaches first; it stays only if something hangs on it */
function grow(
  graph: FabricGraph,
  root: string,
  terminals: readonly string[],
  through: string | undefined,
  load: (hop: Hop) => number,
): GrownTree {
  const parents = new Map<string, Hop>();
  const missing = new Set(terminals.filter((name) => name !== root));
  if (through !== undefined) attachNearest(graph, root, parents, new Set([through]), load);
  for (const name of parents.keys()) missing.delete(name);
  while (missing.size > 0) {
    attachNearest(graph, root, parents, missing, load);
    for (const name of parents.keys()) missing.delete(name);
  }
  prune(parents, new Set(terminals));
  const loads = [...parents.values()].map(load);
  return {
    parents,
    maximumLoad: loads.reduce((maximum, value) => Math.max(maximum, value), 0),
    totalLoad: loads.reduce((sum, value) => sum + value, 0),
  };
}

/** Adds the path to the nearest wanted switch: the fewest links, then the least load, then the topology's order. One of them is reachable. */
function attachNearest(
  graph: FabricGraph,
  root: string,
  parents: Map<string, Hop>,
  wanted: ReadonlySet<string>,
  load: (hop: Hop) => number,
): void {
  // Breadth-first from the whole tree; a layer is finished before the next one starts, so the least load of each switch is known by then.
  const entry = new Map<string, { hop: Hop | undefined; load: number }>();
  for (const name of [root, ...parents.keys()]) entry.set(name, { hop: undefined, load: 0 });
  let layer = [...entry.keys()];
  while (layer.length > 0) {
    const next = new Map<string, { hop: Hop; load: number }>();
    for (const name of layer) {
      for (const hop of graph.hopsFrom(name)) {
        if (entry.has(hop.to)) continue;
        const total = entry.get(name)!.load + load(hop);
        const known = next.get(hop.to);
        if (known === undefined || total < known.load) next.set(hop.to, { hop, load: total });
      }
    }
    for (const [name, found] of next) entry.set(name, found);
    const hits = [...next].filter(([name]) => wanted.has(name)).sort(([, a], [, b]) => a.load - b.load);
    if (hits.length > 0) {
      for (let name: string = hits[0]![0]; ; ) {
        const hop = entry.get(name)!.hop;
        if (hop === undefined) return;
        parents.set(name, hop);
        name = hop.from;
      }
    }
    layer = [...next.keys()];
  }
  throw new DdfError('INTERNAL', `no path leads from ${root} to any of ${[...wanted].join(', ')}`);
}

/** Takes away dead ends that nobody asked for. */
function prune(parents: Map<string, Hop>, terminals: ReadonlySet<string>): void {
  for (;;) {
    const used = new Set([...parents.values()].map((hop) => hop.from));
    const dead = [...parents.keys()].filter((name) => !terminals.has(name) && !used.has(name));
    if (dead.length === 0) return;
    for (const name of dead) parents.delete(name);
  }
}

function describe(
  graph: FabricGraph,
  source: string,
  targets: readonly { readonly name: string; readonly switch: string; readonly port: number }[],
  parents: ReadonlyMap<string, Hop>,
): Tree {
  const root = graph.host(source);
  const switches: TreeSwitch[] = [];
  const coreLinks: Hop[] = [];
  const queue = [{ name: root.switch, upstreamPort: root.port }];
  let doneUsable = true;
  for (const { name, upstreamPort } of queue) {
    const children = [...parents.values()].filter((hop) => hop.from === name).sort((a, b) => a.port - b.port);
    const hosts = targets.filter((host) => host.switch === name);
    const downstream = [
      ...hosts.map((host): TreePort => ({ port: host.port, kind: 'host', to: host.name })),
      ...children.map((hop): TreePort => ({ port: hop.port, kind: 'fabric', to: hop.to })),
    ].sort((a, b) => a.port - b.port);
    const bits = assignPortBits(graph.portsOf(name));
    const ports = downstream.map(({ port }) => port);
    if (shareBits(ports, bits)) doneUsable = false;
    switches.push({ name, upstreamPort, downstream, treeMask: maskOf(ports, bits) });
    coreLinks.push(...children);
    for (const hop of children) queue.push({ name: hop.to, upstreamPort: hop.toPort });
  }
  return {
    source,
    receivers: targets.map((host) => host.name),
    switches,
    coreLinks,
    hostLinks: targets.length,
    doneUsable,
  };
}
