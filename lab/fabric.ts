import type { Scheduler } from '../base/clock.ts';
import { createRandom } from '../base/random.ts';
import { ETHERTYPE_ARP, ETHERTYPE_IPV4, PORT_CPU } from '../p4/build/constants.ts';
import { Device } from '../switch/device.ts';
import { Impairment, type ImpairmentProperties } from '../switch/ports/impairments.ts';
import type { Frame, Port } from '../switch/ports/port.ts';
import { type FrameStage, Wire, type WireDirection, type WireStatistics } from '../switch/ports/wire.ts';
import { linkMtus } from '../topologies/mtu.ts';
import type { Topology } from '../topologies/types.ts';
import { parseIpv4 } from '../wire/packet/addresses.ts';
import { ETHERNET_HEADER_BYTES } from '../wire/packet/ethernet.ts';
import { readUint16, readUint32 } from '../wire/packet/integers.ts';
import { VirtualHost } from './host.ts';

/** Of the source address in an IPv4 header (RFC 791). */
const IPV4_SOURCE_OFFSET = 12;

export interface FabricOptions {
  readonly seed: number | string;
  /** What every link between a host and its switch does to frames, in both directions. */
  readonly hostLinks?: ImpairmentProperties;
  /** Links that carry less than the topology says. */
  readonly narrowLinks?: readonly NarrowLink[];
  /** Sees every frame at the far end of a host's link, in the direction from the host (`upwards`) or towards it. */
  readonly observe?: FrameObserver;
}

/** The MTU, bytes, of the link, or of all links, between two switches, or between a host and its switch. */
export interface NarrowLink {
  readonly between: readonly [string, string];
  readonly mtuBytes: number;
}

/** @param frame only valid, and unchanged, during the call */
export type FrameObserver = (host: string, upwards: boolean, frame: Frame, arrived: boolean) => void;

export type LinkClass = 'host-up' | 'host-down' | 'core';

export interface SwitchPort {
  readonly switch: string;
  readonly port: number;
}

/** One direction of a link, between two switch ports or a host and a switch port. */
export interface LinkDirection {
  readonly class: LinkClass;
  /** Undefined: the host sends. */
  readonly from: SwitchPort | undefined;
  /** Undefined: the host receives. */
  readonly to: SwitchPort | undefined;
  /** Undefined on core links. */
  readonly host: string | undefined;
  statistics(): WireStatistics;
  /**
   * Part of what a switch handed in: frames that it is itself the author of (ARP, and IPv4 from its own address). Its controller
   * sent them by packet-out, past the counters of its program.
   */
  authored(): { readonly frames: number; readonly bytes: number };
}

/**
 * A topology as one process runs it: embedded switches without a program yet, wires, and hosts with network stacks. Everything that
 * happens in it happens on the scheduler; the same seed on a virtual scheduler gives the same run.
 */
export class Fabric {
  readonly topology: Topology;
  readonly devices: ReadonlyMap<string, Device>;
  readonly hosts: ReadonlyMap<string, VirtualHost>;
  readonly links: readonly LinkDirection[];

  constructor(topology: Topology, scheduler: Scheduler, options: FabricOptions) {
    this.topology = topology;
    const random = createRandom(options.seed);
    const ports = new Map<string, Map<number, Port>>();
    const devices = new Map<string, Device>();
    const hosts = new Map<string, VirtualHost>();
    const links: LinkDirection[] = [];
    const authored = new Map<string, { frames: number; bytes: number }>();
    const addLink = (
      linkClass: LinkClass,
      from: SwitchPort | undefined,
      to: SwitchPort | undefined,
      host: string | undefined,
      wire: WireDirection,
    ): void => {
      links.push({
        class: linkClass,
        from,
        to,
        host,
        statistics: () => wire.statistics(),
        authored: () => (from === undefined ? undefined : authored.get(portKey(from))) ?? { frames: 0, bytes: 0 },
      });
    };

    for (const node of topology.switches) {
      const portsOfSwitch = new Map<number, Port>();
      ports.set(node.name, portsOfSwitch);
      const device = new Device({
        deviceId: BigInt(node.deviceId),
        cpuPort: PORT_CPU,
        clock: scheduler,
        random: random.fork(`switch/${node.name}`),
        queueDepth: (port) => portsOfSwitch.get(port)?.queueDepth() ?? 0,
      });
      const ip = parseIpv4(node.ip)!;
      device.onTransmit = (port, frame) => {
        if (isAuthor(frame, ip)) count(authored, { switch: node.name, port }, frame.length);
        portsOfSwitch.get(port)?.send(frame);
      };
      devices.set(node.name, device);
    }
    const attach = (at: SwitchPort, end: Port): void => {
      const device = devices.get(at.switch)!;
      ports.get(at.switch)!.set(at.port, end);
      end.onFrame = (frame) => device.receive(at.port, frame);
    };

    const mtus = linkMtus(topology);
    const maxFrameBytes = (one: string, other: string, mtuBytes: number): number => {
      const narrow = options.narrowLinks?.find(({ between }) => between.includes(one) && between.includes(other));
      return ETHERNET_HEADER_BYTES + (narrow?.mtuBytes ?? mtuBytes);
    };
    for (const node of topology.hosts) {
      const impair = (direction: 'up' | 'down'): FrameStage =>
        observed(
          new Impairment(scheduler, random.fork(`link/${node.name}/${direction}`), options.hostLinks ?? {}),
          options.observe,
          node.name,
          direction,
        );
      const wire = new Wire(
        scheduler,
        { ...node.link, maxFrameBytes: maxFrameBytes(node.name, node.switch, mtus.host) },
        { aToB: impair('up'), bToA: impair('down') },
      );
      const gateway = topology.switches.find(({ name }) => name === node.switch)!;
      hosts.set(
        node.name,
        new VirtualHost(wire.a, scheduler, {
          name: node.name,
          mac: node.mac,
          ip: node.ip,
          gatewayIp: gateway.ip,
          mtuBytes: topology.mtuBytes,
        }),
      );
      const at = { switch: node.switch, port: node.port };
      attach(at, wire.b);
      addLink('host-up', undefined, at, node.name, wire.aToB);
      addLink('host-down', at, undefined, node.name, wire.bToA);
    }

    for (const { a, b, link } of topology.links) {
      const wire = new Wire(scheduler, { ...link, maxFrameBytes: maxFrameBytes(a.switch, b.switch, mtus.core) });
      attach(a, wire.a);
      attach(b, wire.b);
      addLink('core', a, b, undefined, wire.aToB);
      addLink('core', b, a, undefined, wire.bToA);
    }

    this.devices = devices;
    this.hosts = hosts;
    this.links = links;
  }

  /** Takes the hosts off the network; switches forward what is on its way until the scheduler stops. */
  close(): void {
    for (const host of this.hosts.values()) host.close();
  }
}

function portKey({ switch: name, port }: SwitchPort): string {
  return `${name} ${port}`;
}

function count(counts: Map<string, { frames: number; bytes: number }>, at: SwitchPort, bytes: number): void {
  const key = portKey(at);
  const old = counts.get(key) ?? { frames: 0, bytes: 0 };
  counts.set(key, { frames: old.frames + 1, bytes: old.bytes + bytes });
}

function isAuthor(frame: Frame, switchIp: number): boolean {
  const etherType = readUint16(frame, 12);
  return (
    etherType === ETHERTYPE_ARP ||
    (etherType === ETHERTYPE_IPV4 && readUint32(frame, ETHERNET_HEADER_BYTES + IPV4_SOURCE_OFFSET) === switchIp)
  );
}

/** Tells of a frame before the stage has its way with it: who takes a delivered frame owns it. */
function observed(
  stage: FrameStage,
  observe: FrameObserver | undefined,
  host: string,
  direction: 'up' | 'down',
): FrameStage {
  if (observe === undefined) return stage;
  return {
    pass(frame, deliver) {
      let arrived = false;
      const passed = stage.pass(frame, (copy) => {
        if (!arrived) observe(host, direction === 'up', copy, true);
        arrived = true;
        deliver(copy);
      });
      if (!passed) observe(host, direction === 'up', frame, false);
      return passed;
    },
  };
}
