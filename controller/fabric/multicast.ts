import type { Scheduler, Timer } from '../../base/clock.ts';
import { DdfError, toDdfError } from '../../base/errors.ts';
import type { Logger } from '../../base/logger.ts';
import { IP_PROTOCOL_IGMP } from '../../p4/build/constants.ts';
import type { HostNode } from '../../topologies/types.ts';
import type { Entity } from '../../wire/p4runtime/messages.ts';
import { formatIpv4, parseIpv4, parseMac } from '../../wire/packet/addresses.ts';
import { parseEthernet } from '../../wire/packet/ethernet.ts';
import { ALL_SYSTEMS_GROUP, buildIgmpFrame, type IgmpMessage, parseIgmp } from '../../wire/packet/igmp.ts';
import { parseIpv4Packet } from '../../wire/packet/ipv4.ts';
import type { MulticastGroupView } from '../service.ts';
import type { EntityFactory } from '../tables/entities.ts';
import { FIRST_MULTICAST_GROUP, multicastEntities } from '../tables/forwarding.ts';
import type { FabricGraph } from '../topology/graph.ts';
import { MulticastTrees } from '../topology/multicast.ts';
import { Memberships } from './memberships.ts';

/** Times and counts of RFC 3376, section 8, and a limit of ours. */
export interface MulticastOptions {
  /** Between general queries. Default 125 s. */
  readonly queryIntervalUs?: number;
  /** Within it hosts answer. Default 10 s. */
  readonly queryResponseUs?: number;
  /** Of messages that follow each other so many less one may be lost. Default 2. */
  readonly robustness?: number;
  /** Groups that one host may be a member of. Default 64. */
  readonly groupsPerHost?: number;
}

/** What ordinary multicast needs of the switches. */
export interface MulticastSwitches {
  /** @throws DdfError TABLE_FULL; then the owner wants nothing any more */
  want(owner: string, entities: ReadonlyMap<string, readonly Entity[]>): void;
  withdraw(owner: string): void;
  /** Sends a frame out of a port, if the switch is there. */
  send(switchName: string, port: number, frame: Uint8Array): void;
}

export interface MulticastRoutingOptions extends MulticastOptions {
  readonly graph: FabricGraph;
  readonly factory: EntityFactory;
  readonly scheduler: Scheduler;
  readonly logger: Logger;
  readonly switches: MulticastSwitches;
}

/** What came up as IGMP, by what became of it. */
export interface IgmpCounts {
  /** Packets that report or end memberships, of all versions. */
  reports: number;
  /** Not from a host's port, damaged, not for one link only, or of a type that there is not. */
  malformed: number;
  /** Joins of hosts that are members of as many groups as they may be. */
  refused: number;
}

/** A group that is replicated. */
interface Installed {
  readonly number: number;
  /** The ports by the switch's name, as one text. */
  readonly ports: ReadonlyMap<string, string>;
}

const SECOND_US = 1_000_000;
const TENTH_US = 100_000;
/** A switch that has just come may have hosts that wait: they answer its first queries within this time. */
const STARTUP_RESPONSE_US = SECOND_US;
/** Groups are changed in portions: however many hosts join and leave, the controller has time for other things. */
const FLUSH_INTERVAL_US = 10_000;
const GROUPS_PER_FLUSH = 4;

/**
 * Ordinary IP multicast: hosts join and leave groups by IGMP (RFC 1112, 2236, 3376), and every group is replicated along a tree of the fabric to
 * the hosts that listen. Each switch with hosts is their querier, with its own address. Hosts send without joining.
 */
export class MulticastRouting {
  readonly counts: IgmpCounts = { reports: 0, malformed: 0, refused: 0 };
  private readonly options: MulticastRoutingOptions;
  private readonly trees: MulticastTrees;
  private readonly memberships: Memberships;
  private readonly queryIntervalUs: number;
  private readonly queryResponseUs: number;
  private readonly robustness: number;
  private readonly hosts: ReadonlyMap<string, HostNode>;
  private readonly queries = new Map<string, Timer>();
  private readonly installed = new Map<number, Installed>();
  /** Groups that some switch has no room for. */
  private readonly refused = new Set<number>();
  /** Hosts whose joins are being refused: said once. */
  private readonly limited = new Set<HostNode>();
  /** Groups whose members have changed, in that order. */
  private readonly changed = new Set<number>();
  private flushTimer: Timer | undefined;
  private readonly capacity: number;
  private readonly taken = new Set<number>();
  private lastNumber = 0;

  constructor(options: MulticastRoutingOptions) {
    const { graph, factory, scheduler, logger } = options;
    this.options = options;
    this.trees = new MulticastTrees(graph);
    this.queryIntervalUs = options.queryIntervalUs ?? 125 * SECOND_US;
    this.queryResponseUs = options.queryResponseUs ?? 10 * SECOND_US;
    this.robustness = options.robustness ?? 2;
    this.hosts = new Map(graph.topology.hosts.map((host) => [portKey(host.switch, host.port), host]));
    this.capacity = factory.index.tables.require('ip_multicast').size;
    const groupsPerHost = options.groupsPerHost ?? 64;
    this.memberships = new Memberships({
      scheduler,
      groupsPerHost,
      lifetimeUs: this.robustness * this.queryIntervalUs + this.queryResponseUs,
      onChange: (group) => {
        for (const host of this.limited) if (!this.memberships.isFull(host)) this.limited.delete(host);
        this.touch(group);
      },
      onRefused: (host, group) => {
        this.counts.refused++;
        if (this.limited.has(host)) return;
        this.limited.add(host);
        logger.warn(
          { host: host.name, group: formatIpv4(group), groups: groupsPerHost },
          'a host is a member of as many multicast groups as it may be: no more are joined',
        );
      },
    });
  }

  /** Groups that have members, in the order of their addresses. */
  groups(): MulticastGroupView[] {
    return this.memberships
      .groups()
      .sort((a, b) => a - b)
      .map((group) => ({
        group: formatIpv4(group),
        members: this.memberships.membersOf(group).map(({ name }) => name),
        replicated: this.installed.has(group),
      }));
  }

  /** A frame that a switch has punted because it is IGMP. */
  receive(switchName: string, port: number, frame: Uint8Array): void {
    const host = this.hosts.get(portKey(switchName, port));
    const message = host && messageIn(frame);
    if (host === undefined || message === undefined) {
      this.counts.malformed++;
      return;
    }
    // Another querier there has a higher address than ours, and we are the one (RFC 3376, section 6.6.2).
    if (message.type === 'query') return;
    this.counts.reports++;
    for (const group of this.memberships.apply(host, message)) if (this.refused.has(group)) this.touch(group);
  }

  /** A switch has what it needs to hear hosts: they are asked at once, then a few times soon, then now and then (RFC 3376, section 8). */
  switchReady(switchName: string): void {
    this.queries.get(switchName)?.cancel();
    const hosts = this.options.graph.hostsOf(switchName);
    if (hosts.length > 0) this.query(switchName, hosts, this.robustness);
  }

  stop(): void {
    this.memberships.clear();
    for (const timer of this.queries.values()) timer.cancel();
    this.flushTimer?.cancel();
    this.changed.clear();
  }

  private query(switchName: string, hosts: readonly HostNode[], startupQueries: number): void {
    const { graph, scheduler, switches } = this.options;
    const own = graph.switch(switchName);
    const addresses = {
      sourceMac: parseMac(own.mac)!,
      sourceIp: parseIpv4(own.ip)!,
      destinationIp: ALL_SYSTEMS_GROUP,
    };
    const responseUs = startupQueries > 0 ? Math.min(STARTUP_RESPONSE_US, this.queryResponseUs) : this.queryResponseUs;
    const frame = buildIgmpFrame(addresses, {
      type: 'query',
      version: 3,
      group: 0,
      maxResponseTenths: Math.max(1, Math.floor(responseUs / TENTH_US)),
      suppress: false,
      robustness: this.robustness,
      intervalSeconds: Math.floor(this.queryIntervalUs / SECOND_US),
      sources: [],
    });
    for (const { port } of hosts) switches.send(switchName, port, frame);
    const left = Math.max(0, startupQueries - 1);
    const pauseUs = left > 0 ? this.queryIntervalUs / 4 : this.queryIntervalUs;
    const timer = scheduler.at(scheduler.nowUs() + pauseUs, () => this.query(switchName, hosts, left));
    this.queries.set(switchName, timer);
  }

  private touch(group: number): void {
    this.changed.add(group);
    const { scheduler } = this.options;
    this.flushTimer ??= scheduler.at(scheduler.nowUs() + FLUSH_INTERVAL_US, () => this.flush());
  }

  private flush(): void {
    this.flushTimer = undefined;
    const portion = [...this.changed].slice(0, GROUPS_PER_FLUSH);
    for (const group of portion) {
      this.changed.delete(group);
      this.update(group);
    }
    const [next] = this.changed;
    if (next !== undefined) this.touch(next);
  }

  /** Makes the switches replicate a group to those who listen now. */
  private update(group: number): void {
    const { graph, factory, switches, logger } = this.options;
    const before = this.installed.get(group);
    const ports = this.trees.portsOf(group, this.memberships.membersOf(group));
    if (ports.size === 0) {
      this.refused.delete(group);
      if (before === undefined) return;
      switches.withdraw(ownerOf(group));
      this.forget(group);
      // There is room for another one.
      const [waiting] = this.refused;
      if (waiting !== undefined) this.touch(waiting);
      logger.info({ group: formatIpv4(group) }, 'a multicast group has lost its last member');
      return;
    }
    try {
      const number = before?.number ?? this.takeNumber();
      const after: Installed = { number, ports: new Map([...ports].map(([name, list]) => [name, list.join()])) };
      this.installed.set(group, after);
      const names = new Set([...ports.keys(), ...(before?.ports.keys() ?? [])]);
      const different = [...names].filter((name) => before?.ports.get(name) !== after.ports.get(name));
      const entitiesOn = (name: string): Entity[] => {
        const list = ports.get(name);
        if (list === undefined) return [];
        const sourceMac = graph.switch(name).mac;
        return multicastEntities(factory, { destination: group, multicastGroup: number, ports: list, sourceMac });
      };
      switches.want(ownerOf(group), new Map(different.map((name) => [name, entitiesOn(name)])));
      this.refused.delete(group);
      if (before === undefined) logger.info({ group: formatIpv4(group) }, 'a multicast group has a member');
    } catch (error) {
      this.forget(group);
      // It waits behind the others that were refused.
      if (!this.refused.delete(group))
        logger.warn(
          { group: formatIpv4(group), error: toDdfError(error).describe() },
          'a multicast group is not replicated: its members get nothing of it',
        );
      this.refused.add(group);
    }
  }

  private forget(group: number): void {
    const known = this.installed.get(group);
    if (known === undefined) return;
    this.installed.delete(group);
    this.taken.delete(known.number);
  }

  /** Numbers go round, so that one rests as long as possible: switches forget the last group that had it meanwhile. */
  private takeNumber(): number {
    if (this.taken.size >= this.capacity)
      throw new DdfError('TABLE_FULL', `${this.capacity} multicast groups have members, there is no room for another`, {
        where: 'table ip_multicast',
        remedy: 'Use fewer groups, or raise IP_MULTICAST_SIZE in p4/sizes.p4.',
        recoverable: true,
      });
    do this.lastNumber = (this.lastNumber + 1) % this.capacity;
    while (this.taken.has(FIRST_MULTICAST_GROUP + this.lastNumber));
    const number = FIRST_MULTICAST_GROUP + this.lastNumber;
    this.taken.add(number);
    return number;
  }
}

function portKey(switchName: string, port: number): string {
  return `${switchName} ${port}`;
}

function ownerOf(group: number): string {
  return `multicast:${formatIpv4(group)}`;
}

/** Only what a neighbour sent, whole and right. */
function messageIn(frame: Uint8Array): IgmpMessage | undefined {
  const ethernet = parseEthernet(frame);
  if (typeof ethernet === 'string') return undefined;
  const packet = parseIpv4Packet(ethernet.payload);
  if (typeof packet === 'string' || packet.isFragment) return undefined;
  if (packet.protocol !== IP_PROTOCOL_IGMP || packet.timeToLive !== 1) return undefined;
  const message = parseIgmp(packet.payload);
  return typeof message === 'string' ? undefined : message;
}
