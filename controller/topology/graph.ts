import { DdfError } from '../../base/errors.ts';
import type { CoreLink, HostNode, SwitchNode, Topology } from '../../topologies/types.ts';

/** One direction of a link between two switches, seen from the switch that sends into it. */
export interface Hop {
  readonly from: string;
  readonly port: number;
  readonly to: string;
  /** The port by which it arrives there. */
  readonly toPort: number;
  readonly link: CoreLink['link'];
}

/** A topology that can be asked who is next to whom. Immutable; orders are those of the topology, so answers are deterministic. */
export class FabricGraph {
  readonly topology: Topology;
  private readonly switchByName: ReadonlyMap<string, SwitchNode>;
  private readonly hostByName: ReadonlyMap<string, HostNode>;
  private readonly hops: ReadonlyMap<string, readonly Hop[]>;
  private readonly hostsBySwitch: ReadonlyMap<string, readonly HostNode[]>;
  private readonly distances = new Map<string, ReadonlyMap<string, number>>();

  constructor(topology: Topology) {
    this.topology = topology;
    this.switchByName = new Map(topology.switches.map((node) => [node.name, node]));
    this.hostByName = new Map(topology.hosts.map((host) => [host.name, host]));
    const hops = new Map<string, Hop[]>(topology.switches.map((node) => [node.name, []]));
    for (const { a, b, link } of topology.links) {
      hops.get(a.switch)!.push({ from: a.switch, port: a.port, to: b.switch, toPort: b.port, link });
      hops.get(b.switch)!.push({ from: b.switch, port: b.port, to: a.switch, toPort: a.port, link });
    }
    for (const list of hops.values()) list.sort((x, y) => x.port - y.port);
    this.hops = hops;
    const hosts = new Map<string, HostNode[]>(topology.switches.map((node) => [node.name, []]));
    for (const host of topology.hosts) hosts.get(host.switch)!.push(host);
    for (const list of hosts.values()) list.sort((x, y) => x.port - y.port);
    this.hostsBySwitch = hosts;
  }

  /** Throws NOT_FOUND. */
  switch(name: string): SwitchNode {
    const node = this.switchByName.get(name);
    if (node === undefined) throw this.unknown('switch', name);
    return node;
  }

  /** Throws NOT_FOUND. */
  host(name: string): HostNode {
    const host = this.hostByName.get(name);
    if (host === undefined) throw this.unknown('host', name);
    return host;
  }

  /** Hosts on a switch, by port. */
  hostsOf(switchName: string): readonly HostNode[] {
    this.switch(switchName);
    return this.hostsBySwitch.get(switchName)!;
  }

  /** Links out of a switch towards other switches, by port. */
  hopsFrom(switchName: string): readonly Hop[] {
    this.switch(switchName);
    return this.hops.get(switchName)!;
  }

  /** Every port of a switch that something is attached to, ascending. */
  portsOf(switchName: string): number[] {
    return [...this.hostsOf(switchName), ...this.hopsFrom(switchName)].map(({ port }) => port).sort((a, b) => a - b);
  }

  /** The hops by which shortest paths (fewest links) from one switch to another start; empty when they are one or no path exists. */
  nextHops(from: string, to: string): readonly Hop[] {
    const distance = this.distancesTo(to);
    const own = distance.get(from);
    return own === undefined ? [] : this.hopsFrom(from).filter((hop) => distance.get(hop.to) === own - 1);
  }

  /** Links on a shortest path to `to`, for every switch that has a path; links work both ways, so it is the distance from `to` as well. */
  distancesTo(to: string): ReadonlyMap<string, number> {
    const known = this.distances.get(to);
    if (known !== undefined) return known;
    this.switch(to);
    const distance = new Map([[to, 0]]);
    for (const [name, links] of distance)
      for (const hop of this.hops.get(name)!) if (!distance.has(hop.to)) distance.set(hop.to, links + 1);
    this.distances.set(to, distance);
    return distance;
  }

  private unknown(kind: string, name: string): DdfError {
    return new DdfError('NOT_FOUND', `the topology has no ${kind} "${name}"`, {
      where: this.topology.name,
      remedy: `Names of ${kind}s are those of the topology file: \`ddf topo\` lists them.`,
    });
  }
}
