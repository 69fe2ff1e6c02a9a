import { createHash } from 'node:crypto';
import { DdfError } from '../../base/errors.ts';
import { linkMtus } from '../mtu.ts';
import type { LinkProperties, SwitchNode, Topology } from '../types.ts';

/** What network.py builds: namespaces, veth pairs and the commands that set them up. Names of devices are unique on the machine. */
export interface MininetPlan {
  /** Starts the name of everything that is seen outside of the namespaces. */
  readonly prefix: string;
  /** The network between the root namespace and all nodes; gRPC runs over it, nothing of the fabric. */
  readonly management: { readonly bridge: string; readonly address: string; readonly prefixLength: number };
  readonly nodes: readonly PlannedNode[];
  readonly links: readonly PlannedLink[];
}

export interface PlannedNode {
  readonly name: string;
  readonly kind: 'switch' | 'host';
  /** P4Runtime device id of a switch; 0 for hosts. */
  readonly deviceId: number;
  /** A host's fabric address and MAC; empty for switches: the kernel has no address on their ports. */
  readonly ip: string;
  readonly mac: string;
  readonly management: { readonly device: string; readonly rootDevice: string; readonly address: string };
  /** Run in the node's namespace, in this order: before its links are made, and after. */
  readonly before: readonly (readonly string[])[];
  readonly after: readonly (readonly string[])[];
}

export interface PlannedLink {
  readonly a: PlannedEnd;
  readonly b: PlannedEnd;
  /** In each direction. */
  readonly rateMbitPerSecond: number;
}

export interface PlannedEnd {
  readonly node: string;
  /** Of a switch: the port of the program; a host's is 0. */
  readonly port: number;
  readonly device: string;
}

export interface PlanOptions {
  /** Four hexadecimal digits that no other run on the machine has at the time. */
  readonly runId: string;
  /** Which of the management networks 198.18.0.0/22, 198.18.4.0/22, ... (RFC 2544's range) is this run's, from 0. */
  readonly networkIndex: number;
}

/** Starts the name of every device, process mark and directory that a run leaves behind when it cannot clean up. */
export const MININET_PREFIX = 'ddf';
export const MANAGEMENT_NETWORKS = 128;
const MANAGEMENT_PREFIX_LENGTH = 22;
/** Of a /22, less the network's own, the broadcast address and the bridge's. */
export const MAX_NODES = 1021;
/** IFNAMSIZ is 16 with the end. */
const MAX_DEVICE_NAME = 15;

/**
 * A topology as Mininet is to build it. Pure: the same topology and options give the same plan.
 *
 * Every switch and every host has a network namespace of its own. A host has its address as a /32, the leaf as its only neighbour with a
 * permanent ARP entry, and no route out of its management network; a switch's ports have no address and no IPv6, so that its kernel says nothing.
 * @throws DdfError INVALID_TOPOLOGY when there are more nodes than a management network has addresses, INVALID_OPTION
 */
export function planMininet(topology: Topology, { runId, networkIndex }: PlanOptions): MininetPlan {
  if (!/^[0-9a-f]{4}$/.test(runId) || networkIndex < 0 || networkIndex >= MANAGEMENT_NETWORKS)
    throw new DdfError('INVALID_OPTION', `run ${runId}, network ${networkIndex}: not four digits and 0..127`);
  const count = topology.switches.length + topology.hosts.length;
  if (count > MAX_NODES)
    throw new DdfError(
      'INVALID_TOPOLOGY',
      `${count} switches and hosts; Mininet's management network takes ${MAX_NODES}`,
      {
        where: topology.name,
        remedy: 'Ask for fewer servers.',
      },
    );
  const prefix = `${MININET_PREFIX}${runId}`;
  const device = (node: string, port: string): string => deviceName(prefix, node, port);
  const managementOf = (index: number, node: string): PlannedNode['management'] => ({
    device: device(node, 'management'),
    rootDevice: device(node, 'root'),
    address: managementAddress(networkIndex, index + 2),
  });
  const mtus = linkMtus(topology);
  const gateways = new Map(topology.switches.map((node) => [node.name, node]));

  const switches = topology.switches.map((node, index): PlannedNode => {
    const ports = [
      ...topology.hosts.flatMap(({ switch: leaf, port, link }) =>
        leaf === node.name ? [{ port, link, mtuBytes: mtus.host }] : [],
      ),
      ...topology.links.flatMap(({ a, b, link }) =>
        [a, b].flatMap((end) => (end.switch === node.name ? [{ port: end.port, link, mtuBytes: mtus.core }] : [])),
      ),
    ].sort((x, y) => x.port - y.port);
    return {
      name: node.name,
      kind: 'switch',
      deviceId: node.deviceId,
      ip: '',
      mac: '',
      management: managementOf(index, node.name),
      before: QUIET_NAMESPACE,
      after: ports.flatMap(({ port, link, mtuBytes }) => deviceSetup(device(node.name, String(port)), link, mtuBytes)),
    };
  });
  const hosts = topology.hosts.map((host, index): PlannedNode => {
    const own = device(host.name, '0');
    return {
      name: host.name,
      kind: 'host',
      deviceId: 0,
      ip: host.ip,
      mac: host.mac,
      management: managementOf(topology.switches.length + index, host.name),
      before: QUIET_NAMESPACE,
      after: [...deviceSetup(own, host.link, mtus.host), ...hostRoutes(own, gateways.get(host.switch)!)],
    };
  });

  const end = (node: string, port: number): PlannedEnd => ({ node, port, device: device(node, String(port)) });
  const link = (a: PlannedEnd, b: PlannedEnd, { rateBitsPerSecond }: LinkProperties): PlannedLink => ({
    a,
    b,
    rateMbitPerSecond: rateBitsPerSecond / 1e6,
  });
  return {
    prefix,
    management: {
      bridge: `${prefix}m`,
      address: managementAddress(networkIndex, 1),
      prefixLength: MANAGEMENT_PREFIX_LENGTH,
    },
    nodes: [...switches, ...hosts],
    links: [
      ...topology.hosts.map((host) => link(end(host.name, 0), end(host.switch, host.port), host.link)),
      ...topology.links.map((core) =>
        link(end(core.a.switch, core.a.port), end(core.b.switch, core.b.port), core.link),
      ),
    ],
  };
}

/** 198.18.0.0/15 is nobody's (RFC 2544, RFC 6890): `number` within the run's /22 of it. */
export function managementAddress(networkIndex: number, number: number): string {
  const offset = networkIndex * 1024 + number;
  return `198.${18 + (offset >> 16)}.${(offset >> 8) & 255}.${offset & 255}`;
}

/** Names with the node's own would be too long: seven digits of a hash after the run's prefix. */
function deviceName(prefix: string, node: string, port: string): string {
  const digits = MAX_DEVICE_NAME - prefix.length;
  return prefix + createHash('sha256').update(`${node} ${port}`).digest('hex').slice(0, digits);
}

/** No IPv6 (neighbour discovery and multicast listener reports would be frames that nobody sent), no forwarding by the kernel. */
const QUIET_NAMESPACE: readonly (readonly string[])[] = [
  ['ip', 'link', 'set', 'dev', 'lo', 'up'],
  write('/proc/sys/net/ipv6/conf/all/disable_ipv6', '1'),
  write('/proc/sys/net/ipv6/conf/default/disable_ipv6', '1'),
  write('/proc/sys/net/ipv4/ip_forward', '0'),
  // Only for addresses of the device that the question came in by.
  write('/proc/sys/net/ipv4/conf/all/arp_ignore', '1'),
];

/** IPv6 may be missing altogether: then there is nothing to disable. */
function write(path: string, value: string): readonly string[] {
  return ['sh', '-c', `[ ! -e ${path} ] || echo ${value} > ${path}`];
}

/** Checksums have to be in the packet, and segments as long as they will be: switches copy what they get. */
function deviceSetup(device: string, { queueFrames }: LinkProperties, mtuBytes: number): (readonly string[])[] {
  return [
    ['ip', 'link', 'set', 'dev', device, 'mtu', String(mtuBytes), 'txqueuelen', String(queueFrames), 'up'],
    ['ethtool', '-K', device, 'tx', 'off', 'rx', 'off', 'tso', 'off', 'gso', 'off', 'gro', 'off'],
  ];
}

function hostRoutes(device: string, gateway: SwitchNode): (readonly string[])[] {
  return [
    ['ip', 'route', 'replace', gateway.ip, 'dev', device, 'scope', 'link'],
    ['ip', 'neighbour', 'replace', gateway.ip, 'lladdr', gateway.mac, 'dev', device, 'nud', 'permanent'],
    ['ip', 'route', 'replace', 'default', 'via', gateway.ip, 'dev', device, 'onlink'],
  ];
}
