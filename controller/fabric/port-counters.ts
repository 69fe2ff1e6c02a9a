import {
  FABRIC_TYPE_DATA,
  FABRIC_TYPE_PROBE,
  KIND_ARP,
  KIND_IPV4,
  KIND_IPV4_MULTICAST,
  KIND_OTHER,
} from '../../p4/build/constants.ts';
import { EGRESS_PORT_COUNTER, INGRESS_PORT_COUNTER, portCounterCell } from '../tables/telemetry.ts';
import type { FabricGraph } from '../topology/graph.ts';

/** What a switch's program counted at one port for one kind of packets; ports without packets of a kind are left out. */
export interface PortCount {
  readonly switch: string;
  readonly port: number;
  readonly direction: 'ingress' | 'egress';
  /** A fabric type (1..8) or one of the KIND_ constants. */
  readonly kind: number;
  readonly packets: number;
  /** Of frames as they are on the wire at this port, without FCS; with the object tag where there is one. */
  readonly bytes: number;
}

/** Cells of a counter array with what they hold. */
export type CounterCells = ReadonlyMap<number, { readonly packets: bigint; readonly bytes: bigint }>;

/** EtherType, object id and version, ingress switch, class, hops: what a switch pushes between Ethernet and IPv4. */
const OBJECT_TAG_BYTES = 18;

const KINDS = [
  KIND_OTHER,
  ...Array.from({ length: FABRIC_TYPE_PROBE - FABRIC_TYPE_DATA + 1 }, (_, i) => FABRIC_TYPE_DATA + i),
  KIND_ARP,
  KIND_IPV4,
  KIND_IPV4_MULTICAST,
];

export const PORT_COUNTERS = { ingress: INGRESS_PORT_COUNTER, egress: EGRESS_PORT_COUNTER } as const;

/** The cells of the ports that something is attached to. */
export function cellsOf(graph: FabricGraph, switchName: string): number[] {
  return graph
    .portsOf(switchName)
    .flatMap((port) => KINDS.flatMap((kind) => [false, true].map((tagged) => portCounterCell(port, tagged, kind))));
}

/**
 * What the cells mean on the wires. The program counts a packet at the length it came in with, and remembers by which cell it counts in whether
 * it came in with a tag: fabric packets get one on their way to another switch, and every tag goes on the way to a host.
 */
export function portCounts(
  graph: FabricGraph,
  switchName: string,
  direction: 'ingress' | 'egress',
  cells: CounterCells,
): PortCount[] {
  const hostPorts = new Set(graph.hostsOf(switchName).map((host) => host.port));
  const counts: PortCount[] = [];
  for (const port of graph.portsOf(switchName))
    for (const kind of KINDS) {
      let packets = 0;
      let bytes = 0;
      for (const tagged of [false, true]) {
        const cell = cells.get(portCounterCell(port, tagged, kind));
        if (cell === undefined) continue;
        const count = Number(cell.packets);
        packets += count;
        bytes += Number(cell.bytes);
        if (direction === 'egress') bytes += count * tagChange(tagged, hostPorts.has(port), kind);
      }
      if (packets > 0) counts.push({ switch: switchName, port, direction, kind, packets, bytes });
    }
  return counts;
}

/** Bytes by which a packet that leaves differs from what it was when it came in. */
function tagChange(cameTagged: boolean, toHost: boolean, kind: number): number {
  if (cameTagged) return toHost ? -OBJECT_TAG_BYTES : 0;
  // Ordinary packets get a tag only if they are classified, and nothing is.
  const isFabric = kind >= FABRIC_TYPE_DATA && kind <= FABRIC_TYPE_PROBE;
  return !toHost && isFabric ? OBJECT_TAG_BYTES : 0;
}
