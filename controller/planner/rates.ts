import type { FabricGraph } from '../topology/graph.ts';
import type { Tree } from '../topology/trees.ts';

/** Payload of a packet, bytes, where every link carries jumbo frames, and elsewhere (protocol.md, Units). */
const JUMBO_SEGMENT_BYTES = 8192;
const SMALL_SEGMENT_BYTES = 1376;
const JUMBO_MTU_BYTES = 9000;

/** Ethernet with FCS, object tag, IPv4, UDP and the fabric header: what a segment carries at most beside itself. */
const PACKET_OVERHEAD_BYTES = 18 + 18 + 20 + 8 + 40;

/** Share of the slowest link that data may take: the rest is for repairs, control packets and ordinary traffic. */
const CEILING_SHARE = 0.95;
/** A sender that lowers its rate stays above this share of its ceiling. */
const FLOOR_SHARE = 0.05;

/** Segment size for a fabric whose links carry IP packets of `mtuBytes`. */
export function segmentBytesFor(mtuBytes: number): number {
  return mtuBytes >= JUMBO_MTU_BYTES ? JUMBO_SEGMENT_BYTES : SMALL_SEGMENT_BYTES;
}

/** Whether the MTU carries even the smaller segment (tag and Ethernet header do not count towards an IP packet). */
export function carriesSegments(mtuBytes: number): boolean {
  return mtuBytes >= SMALL_SEGMENT_BYTES + 20 + 8 + 40;
}

/** A directed link and the bits per second that it carries. */
export interface LinkUse {
  readonly key: string;
  readonly rateBitsPerSecond: number;
}

/** Every directed link of a tree: the source's own, those between switches, and those to the receivers. */
export function linksOfTree(graph: FabricGraph, tree: Tree): LinkUse[] {
  return [
    { key: `${tree.source}>`, rateBitsPerSecond: graph.host(tree.source).link.rateBitsPerSecond },
    ...tree.coreLinks.map((hop) => ({ key: `${hop.from}:${hop.port}`, rateBitsPerSecond: hop.link.rateBitsPerSecond })),
    ...tree.receivers.map((name) => ({ key: `>${name}`, rateBitsPerSecond: graph.host(name).link.rateBitsPerSecond })),
  ];
}

/** Payload bits per second that a link of this rate carries in packets of full segments, less the margin. */
export function payloadRate(linkBitsPerSecond: number, segmentBytes: number): number {
  return Math.floor((linkBitsPerSecond * CEILING_SHARE * segmentBytes) / (segmentBytes + PACKET_OVERHEAD_BYTES));
}

export function floorOf(ceilingBitsPerSecond: number): number {
  return Math.max(1, Math.floor(ceilingBitsPerSecond * FLOOR_SHARE));
}

/** What a transfer takes of the links that it uses. */
export interface Share {
  readonly links: readonly LinkUse[];
  /** Against the others on the same link. */
  readonly weight: number;
}

/**
 * Ceilings for transfers that run at the same time: a link is divided among those that use it by their weights, and a transfer's ceiling is
 * what it gets of its tightest link.
 * @returns payload bits per second by key
 */
export function shareRates<K>(transfers: ReadonlyMap<K, Share>, segmentBytes: number): Map<K, number> {
  const claims = new Map<string, number>();
  for (const { links, weight } of transfers.values())
    for (const { key } of links) claims.set(key, (claims.get(key) ?? 0) + weight);
  return new Map(
    [...transfers].map(([transfer, { links, weight }]) => {
      const shares = links.map((link) => (link.rateBitsPerSecond * weight) / claims.get(link.key)!);
      return [transfer, payloadRate(Math.min(...shares), segmentBytes)];
    }),
  );
}

/** Round trip from the source to the farthest receiver and back, microseconds: propagation and one segment's serialisation per link each way. */
export function roundTripUs(graph: FabricGraph, tree: Tree, segmentBytes: number): number {
  const wireBits = 8 * (segmentBytes + PACKET_OVERHEAD_BYTES);
  const crossing = (link: { delayUs: number; rateBitsPerSecond: number }): number =>
    2 * link.delayUs + (1e6 * wireBits) / link.rateBitsPerSecond;
  const reached = new Map([[tree.switches[0]!.name, crossing(graph.host(tree.source).link)]]);
  // Core links come breadth-first: a link's start has been reached before it.
  for (const hop of tree.coreLinks) reached.set(hop.to, reached.get(hop.from)! + crossing(hop.link));
  const farthest = Math.max(
    ...tree.receivers.map((name) => {
      const host = graph.host(name);
      return reached.get(host.switch)! + crossing(host.link);
    }),
  );
  return Math.ceil(farthest);
}
