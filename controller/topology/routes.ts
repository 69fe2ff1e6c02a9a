import { switchPrefix } from '../../topologies/assign.ts';
import type { FabricGraph } from './graph.ts';

/** Where a switch sends packets for a prefix: any of the next hops is as near as the others. */
export interface Route {
  readonly prefix: { readonly ip: string; readonly length: number };
  /** At least one, by port. */
  readonly nextHops: readonly NextHop[];
}

export interface NextHop {
  readonly port: number;
  /** Of the switch itself. */
  readonly sourceMac: string;
  /** Of the host or the switch behind the port. */
  readonly destinationMac: string;
}

/**
 * The IPv4 routes of one switch: a /32 for each of its own hosts, and for every other switch its prefix over all equal-cost next hops. Switches
 * that cannot be reached get none.
 */
export function routesOf(graph: FabricGraph, switchName: string): Route[] {
  const own = graph.switch(switchName);
  const local = graph.hostsOf(switchName).map((host) => ({
    prefix: { ip: host.ip, length: 32 },
    nextHops: [{ port: host.port, sourceMac: own.mac, destinationMac: host.mac }],
  }));
  const remote = graph.topology.switches.flatMap((node) => {
    const hops = graph.nextHops(switchName, node.name);
    if (hops.length === 0) return [];
    const nextHops = hops.map((hop) => ({
      port: hop.port,
      sourceMac: own.mac,
      destinationMac: graph.switch(hop.to).mac,
    }));
    return [{ prefix: switchPrefix(node), nextHops }];
  });
  return [...local, ...remote];
}
