import type { PortCount } from '../controller/fabric/port-counters.ts';
import type { Plan, RolloutView, VersionView } from '../controller/service.ts';
import { FABRIC_TYPE_NACK, FABRIC_TYPE_REPAIR } from '../p4/build/constants.ts';
import type { HostNode } from '../topologies/types.ts';
import type { Fabric, LinkClass, SwitchPort } from './fabric.ts';
import type { MainJobFigures } from './report.ts';

/** What one direction of a link carried. */
export interface WireCount {
  readonly class: LinkClass;
  readonly from: SwitchPort | undefined;
  readonly to: SwitchPort | undefined;
  readonly host: string | undefined;
  readonly framesIn: number;
  readonly bytesIn: number;
  readonly framesDelivered: number;
  readonly bytesDelivered: number;
  /** Queue drops and losses together. */
  readonly framesLost: number;
  readonly bytesLost: number;
  /** Part of framesIn: what the switch itself is the author of, which the P4 counters leave out. */
  readonly authoredFrames: number;
  readonly authoredBytes: number;
}

/** What the wires of a fabric have carried so far, in the order of its links. */
export function wireCounts(fabric: Pick<Fabric, 'links'>): WireCount[] {
  return fabric.links.map((link) => {
    const wire = link.statistics();
    const authored = link.authored();
    return {
      class: link.class,
      from: link.from,
      to: link.to,
      host: link.host,
      framesIn: wire.framesIn,
      bytesIn: wire.bytesIn,
      framesDelivered: wire.framesDelivered,
      bytesDelivered: wire.bytesDelivered,
      framesLost: wire.framesLost + wire.framesQueueDropped + wire.framesTooLong,
      bytesLost: wire.bytesLost + wire.bytesQueueDropped + wire.bytesTooLong,
      authoredFrames: authored.frames,
      authoredBytes: authored.bytes,
    };
  });
}

/** The P4 counters and the wires at one moment when nothing was on its way. */
export interface Snapshot {
  readonly ports: readonly PortCount[];
  readonly wires: readonly WireCount[];
}

/** What happened between two snapshots. */
export function difference(before: Snapshot, after: Snapshot): Snapshot {
  const key = ({ switch: name, port, direction, kind }: PortCount): string => `${name} ${port} ${direction} ${kind}`;
  const earlier = new Map(before.ports.map((count) => [key(count), count]));
  return {
    ports: after.ports.map((count) => {
      const old = earlier.get(key(count));
      return { ...count, packets: count.packets - (old?.packets ?? 0), bytes: count.bytes - (old?.bytes ?? 0) };
    }),
    wires: after.wires.map((wire, i) => {
      const old = before.wires[i]!;
      return {
        ...wire,
        framesIn: wire.framesIn - old.framesIn,
        bytesIn: wire.bytesIn - old.bytesIn,
        framesDelivered: wire.framesDelivered - old.framesDelivered,
        bytesDelivered: wire.bytesDelivered - old.bytesDelivered,
        framesLost: wire.framesLost - old.framesLost,
        bytesLost: wire.bytesLost - old.bytesLost,
        authoredFrames: wire.authoredFrames - old.authoredFrames,
        authoredBytes: wire.authoredBytes - old.authoredBytes,
      };
    }),
  };
}

export interface CounterCheck {
  /** Ends of links that were compared. */
  readonly compared: number;
  readonly packets: number;
  /** Texts, one for every end whose counter and wire differ. */
  readonly mismatches: readonly string[];
}

/** Holds the switches' own counters against what the wires carried: packets and bytes at every switch port, both ways. */
export function compareWithWires({ ports, wires }: Snapshot): CounterCheck {
  const sums = new Map<string, { packets: number; bytes: number }>();
  for (const { switch: name, port, direction, packets, bytes } of ports) {
    const key = `${name} port ${port} ${direction}`;
    const sum = sums.get(key) ?? { packets: 0, bytes: 0 };
    sums.set(key, { packets: sum.packets + packets, bytes: sum.bytes + bytes });
  }
  const mismatches: string[] = [];
  let compared = 0;
  let total = 0;
  const compare = (at: SwitchPort, direction: string, packets: number, bytes: number): void => {
    const key = `${at.switch} port ${at.port} ${direction}`;
    const counted = sums.get(key) ?? { packets: 0, bytes: 0 };
    compared++;
    total += packets;
    if (counted.packets !== packets || counted.bytes !== bytes)
      mismatches.push(
        `${key}: the switch counted ${counted.packets} packets, ${counted.bytes} bytes; the wire ${packets}, ${bytes}`,
      );
  };
  for (const wire of wires) {
    if (wire.from !== undefined)
      compare(wire.from, 'egress', wire.framesIn - wire.authoredFrames, wire.bytesIn - wire.authoredBytes);
    if (wire.to !== undefined) compare(wire.to, 'ingress', wire.framesDelivered, wire.bytesDelivered);
  }
  return { compared, packets: total, mismatches };
}

export interface RunRecord {
  readonly rollout: RolloutView;
  readonly version: VersionView;
  readonly hosts: readonly HostNode[];
  /** What happened between the request for the rollout and the end of its last transfer. */
  readonly change: Snapshot;
  readonly phases: MainJobFigures['phases'];
  readonly seconds: number;
}

/** What a rollout's own view says, wherever it ran. */
export function rolloutFigures(
  rollout: RolloutView,
  version: VersionView,
): Pick<
  MainJobFigures,
  | 'object'
  | 'version'
  | 'servers'
  | 'verified'
  | 'cohorts'
  | 'objectBytes'
  | 'deltaBytes'
  | 'rangeReadBytes'
  | 'nacksSent'
> {
  const { plan } = rollout;
  const sizeOf = (kind: string): number => plan.cohorts.find((cohort) => cohort.kind === kind)?.servers.length ?? 0;
  const total = (name: 'nacksSent' | 'unicastBytes'): number =>
    rollout.transfers.reduce((sum, transfer) => sum + (transfer.receiverTotals[name] ?? 0), 0);
  return {
    object: rollout.object,
    version: rollout.version,
    servers: plan.targets,
    verified: rollout.verified,
    cohorts: { current: sizeOf('current'), delta: sizeOf('delta'), full: sizeOf('full') },
    objectBytes: version.sizeBytes,
    deltaBytes: version.payloads.find(({ base }) => base !== null)?.sizeBytes ?? 0,
    rangeReadBytes: total('unicastBytes'),
    nacksSent: total('nacksSent'),
  };
}

/** What of the plan the figures are compared with. */
export function planBounds({
  bytes,
}: Plan): Record<'source' | 'coreLinks' | 'hostLinks', { lowerBoundBytes: number; unicastBytes: number }> {
  return {
    source: { lowerBoundBytes: bytes.source, unicastBytes: bytes.unicastSource },
    coreLinks: { lowerBoundBytes: bytes.coreLinks, unicastBytes: bytes.unicastCoreLinks },
    hostLinks: { lowerBoundBytes: bytes.source + bytes.hostLinks, unicastBytes: 2 * bytes.unicastSource },
  };
}

/** Hosts that send payloads by the plan. */
export function sourcesOf({ cohorts }: Plan): ReadonlySet<string> {
  return new Set(cohorts.flatMap(({ source }) => (source === null ? [] : [source])));
}

/**
 * The figures of a rollout. Bytes and packets are the P4 counters'; what a host sent and the wire lost before a switch could count
 * it is added from the wires.
 */
export function figuresOf({ rollout, version, hosts, change, phases, seconds }: RunRecord): MainJobFigures {
  const { plan } = rollout;
  const sources = sourcesOf(plan);
  const bounds = planBounds(plan);
  const hostAt = new Map(hosts.map((host) => [`${host.switch} ${host.port}`, host.name]));
  const hostOf = (count: PortCount): string | undefined => hostAt.get(`${count.switch} ${count.port}`);
  const isSource = (name: string | undefined): boolean => name !== undefined && sources.has(name);
  const fromHosts = change.ports.filter((count) => count.direction === 'ingress' && hostOf(count) !== undefined);
  const toHosts = change.ports.filter((count) => count.direction === 'egress' && hostOf(count) !== undefined);
  const core = change.ports.filter((count) => count.direction === 'egress' && hostOf(count) === undefined);
  const lostUp = change.wires.filter((wire) => wire.class === 'host-up');

  return {
    ...rolloutFigures(rollout, version),
    source: {
      bytes:
        sum(
          fromHosts.filter((count) => isSource(hostOf(count))),
          'bytes',
        ) +
        sum(
          lostUp.filter(({ host }) => isSource(host)),
          'bytesLost',
        ),
      ...bounds.source,
    },
    coreLinks: {
      bytes: sum(core, 'bytes'),
      ...bounds.coreLinks,
    },
    hostLinks: {
      bytes: sum(fromHosts, 'bytes') + sum(lostUp, 'bytesLost') + sum(toHosts, 'bytes'),
      ...bounds.hostLinks,
    },
    nacksAtSource: sum(
      toHosts.filter((count) => count.kind === FABRIC_TYPE_NACK && isSource(hostOf(count))),
      'packets',
    ),
    repairSymbols: sum(
      fromHosts.filter((count) => count.kind === FABRIC_TYPE_REPAIR),
      'packets',
    ),
    lostPackets: sum(change.wires, 'framesLost'),
    packets: sum(change.wires, 'framesIn'),
    phases,
    seconds,
  };
}

function sum<K extends string>(items: readonly Record<K, number>[], field: K): number {
  return items.reduce((total, item) => total + item[field], 0);
}
