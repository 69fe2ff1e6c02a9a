import { DdfError } from '../base/errors.ts';
import type { CoreLink, HostNode, LinkProperties, SwitchNode, Topology } from './types.ts';

/** Front panel ports of a switch; p4/ids.p4 keeps 0, 510 (CPU) and 511 (drop) for itself. */
export const FIRST_PORT = 1;
export const LAST_PORT = 509;

/** As many as there are second bytes: leaf n (from 1) is 10.n.0.1, the host on its port p is 10.n.(1 + p / 256).(p mod 256). */
export const MAX_LEAVES = 254;

/** The destinations that a switch stands for: a leaf for all of its hosts (10.n.0.0/16), any other for itself (10.0.x.y/32). */
export function switchPrefix(node: SwitchNode): { readonly ip: string; readonly length: number } {
  if (node.layer !== 'leaf') return { ip: node.ip, length: 32 };
  return { ip: node.ip.replace(/\.0\.1$/, '.0.0'), length: 16 };
}

/** A topology before numbers: who hangs on whom, and the ports that somebody insists on. */
export interface Draft {
  readonly name: string;
  readonly mtuBytes: number;
  readonly switches: readonly Pick<SwitchNode, 'name' | 'layer'>[];
  readonly hosts: readonly DraftHost[];
  readonly links: readonly DraftLink[];
}

export interface DraftHost {
  readonly name: string;
  readonly kind: HostNode['kind'];
  readonly switch: string;
  readonly link: LinkProperties;
  readonly port?: number;
}

export interface DraftLink {
  readonly a: { readonly switch: string; readonly port?: number };
  readonly b: { readonly switch: string; readonly port?: number };
  readonly link: LinkProperties;
}

/**
 * Gives every port and address. Ports that the draft names are taken first; then hosts in order get the lowest free ports of their switch, then
 * core links the lowest free ones above its hosts (below, where nothing is free above). Device ids count the switches from 1.
 *
 * Every name in the draft is known and unique, hosts hang on leaves, and no port is named twice: the caller has checked.
 * Throws INVALID_TOPOLOGY when a switch has more attachments than ports.
 */
export function assignNumbers(draft: Draft): Topology {
  const ports = new Map(draft.switches.map(({ name }) => [name, new PortPlan(name)]));
  for (const host of draft.hosts) if (host.port !== undefined) ports.get(host.switch)!.reserve(host.port);
  for (const { a, b } of draft.links)
    for (const end of [a, b]) if (end.port !== undefined) ports.get(end.switch)!.reserve(end.port);

  let leaves = 0;
  const leafNumber = new Map<string, number>();
  const switches = draft.switches.map((node, index): SwitchNode => {
    const deviceId = index + 1;
    const identity = { name: node.name, deviceId, layer: node.layer, mac: mac(0, deviceId) };
    if (node.layer !== 'leaf') return { ...identity, ip: `10.0.${deviceId >> 8}.${deviceId & 255}` };
    leafNumber.set(node.name, ++leaves);
    return { ...identity, ip: `10.${leaves}.0.1` };
  });

  const hosts = draft.hosts.map((host): HostNode => {
    const port = host.port ?? ports.get(host.switch)!.takeHostPort();
    ports.get(host.switch)!.hostAt(port);
    const leaf = leafNumber.get(host.switch)!;
    return {
      name: host.name,
      kind: host.kind,
      switch: host.switch,
      port,
      mac: mac(leaf, port),
      ip: `10.${leaf}.${1 + (port >> 8)}.${port & 255}`,
      link: host.link,
    };
  });

  const links = draft.links.map(({ a, b, link }): CoreLink => {
    const end = ({ switch: name, port }: DraftLink['a']): CoreLink['a'] => ({
      switch: name,
      port: port ?? ports.get(name)!.takeCorePort(),
    });
    return { a: end(a), b: end(b), link };
  });

  return { name: draft.name, mtuBytes: draft.mtuBytes, switches, hosts, links };
}

/** Locally administered unicast addresses: 02:00, then leaf (0 for the switches themselves) and port or device id, two bytes each. */
function mac(high: number, low: number): string {
  return [0x02, 0, high >> 8, high & 255, low >> 8, low & 255]
    .map((byte) => byte.toString(16).padStart(2, '0'))
    .join(':');
}

class PortPlan {
  private readonly switchName: string;
  private readonly taken = new Set<number>();
  private lastHostPort = 0;

  constructor(switchName: string) {
    this.switchName = switchName;
  }

  reserve(port: number): void {
    this.taken.add(port);
  }

  hostAt(port: number): void {
    this.lastHostPort = Math.max(this.lastHostPort, port);
  }

  takeHostPort(): number {
    return this.takeFrom(FIRST_PORT);
  }

  takeCorePort(): number {
    return this.takeFrom(this.lastHostPort + 1);
  }

  private takeFrom(first: number): number {
    let port = first;
    while (this.taken.has(port)) port++;
    if (port > LAST_PORT && first > FIRST_PORT) return this.takeFrom(FIRST_PORT);
    if (port > LAST_PORT)
      throw new DdfError('INVALID_TOPOLOGY', `switch ${this.switchName} has more attachments than ports`, {
        where: `switch ${this.switchName}`,
        remedy: `A switch has the ports ${FIRST_PORT}..${LAST_PORT}: spread the hosts over more leaves.`,
      });
    this.taken.add(port);
    return port;
  }
}
