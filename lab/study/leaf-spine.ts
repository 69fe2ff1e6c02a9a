import { loadTopology } from '../../topologies/load.ts';
import type { Topology } from '../../topologies/types.ts';

export interface LeafSpineOptions {
  readonly receivers: number;
  readonly leaves: number;
  readonly spines: number;
  readonly mtuBytes: number;
  readonly hostBitsPerSecond: number;
  readonly coreBitsPerSecond: number;
  /** One way, of every link. */
  readonly delayUs: number;
}

/** Hosts that can send in {@link leafSpine}: one, or as many as there are sources asked for. */
export const SOURCE_LEAF = 'leaf0';

/**
 * Sources on a leaf of their own (`mn1`..), every leaf joined to every spine, receivers (`gpu1`..) spread evenly over the other leaves.
 * @param sources Memory Nodes
 * @throws DdfError INVALID_TOPOLOGY where a switch has not enough ports
 */
export function leafSpine(options: LeafSpineOptions, sources = 1): Topology {
  const { receivers, spines, mtuBytes, hostBitsPerSecond, coreBitsPerSecond, delayUs } = options;
  const leaves = Math.min(options.leaves, receivers);
  const range = (prefix: string, first: number, last: number): string =>
    first === last ? `${prefix}${first}` : `${prefix}{${first}..${last}}`;
  const host = `{ rate: ${hostBitsPerSecond} b/s, delay: ${delayUs} us, queue: 256 frames }`;
  const core = `{ rate: ${coreBitsPerSecond} b/s, delay: ${delayUs} us, queue: 512 frames }`;
  const perLeaf = Array.from(
    { length: leaves },
    (_, leaf) => Math.floor(((leaf + 1) * receivers) / leaves) - Math.floor((leaf * receivers) / leaves),
  );
  let next = 1;
  const servers = perLeaf.map((count, leaf) => {
    const names = range('gpu', next, next + count - 1);
    next += count;
    return `  - { name: "${names}", kind: gpu-server, switch: leaf${leaf + 1}, link: ${host} }`;
  });
  return loadTopology(
    [
      'name: simulated',
      `mtu: ${mtuBytes} B`,
      'switches:',
      `  - { name: "${range('spine', 1, spines)}", layer: spine }`,
      `  - { name: "${range('leaf', 0, leaves)}", layer: leaf }`,
      'hosts:',
      `  - { name: "${range('mn', 1, sources)}", kind: memory-node, switch: ${SOURCE_LEAF}, link: ${host} }`,
      ...servers,
      'links:',
      `  - { between: "${range('leaf', 0, leaves)}", and: "${range('spine', 1, spines)}", link: ${core} }`,
    ].join('\n'),
    'simulated',
  );
}
