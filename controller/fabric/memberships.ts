import type { Scheduler, Timer } from '../../base/clock.ts';
import type { HostNode } from '../../topologies/types.ts';
import { isLinkLocalGroup, isMulticastIpv4 } from '../../wire/packet/addresses.ts';
import {
  ALLOW_NEW_SOURCES,
  BLOCK_OLD_SOURCES,
  CHANGE_TO_EXCLUDE_MODE,
  CHANGE_TO_INCLUDE_MODE,
  type IgmpMessage,
  type IgmpRecord,
  MODE_IS_EXCLUDE,
  MODE_IS_INCLUDE,
} from '../../wire/packet/igmp.ts';

export interface MembershipsOptions {
  readonly scheduler: Scheduler;
  /** Groups that one host may be a member of; more are refused. */
  readonly groupsPerHost: number;
  /** A membership that nobody reports for so long ends, microseconds. */
  readonly lifetimeUs: number;
  /** A host has joined or left a group. */
  readonly onChange: (group: number) => void;
  /** A host that is a member of as many groups as it may be wants to join another one. */
  readonly onRefused: (host: HostNode, group: number) => void;
}

interface Membership {
  /** What the host listens to, as far as it says so; undefined: to everybody. */
  sources: Set<number> | undefined;
  expiresAtUs: number;
  timer: Timer;
}

/** Sources that are remembered of one membership; a host that names more counts as one that listens to everybody. */
const MAX_SOURCES = 64;

/**
 * Which host listens to which group, by what it says in IGMP of any version. There is one host on a port, and its kernel speaks for all of its
 * programs: who says that it leaves has left, and nobody else has to be asked (RFC 3376, section 7.2.2, without the last-member query).
 *
 * Sources are remembered only to know when a host has left the last one: a group is delivered with all of its sources, also in 232.0.0.0/8, and
 * the host's kernel takes what it wants.
 */
export class Memberships {
  private readonly options: MembershipsOptions;
  private readonly byGroup = new Map<number, Map<HostNode, Membership>>();
  private readonly countOf = new Map<HostNode, number>();

  constructor(options: MembershipsOptions) {
    this.options = options;
  }

  /** Groups that have members. */
  groups(): number[] {
    return [...this.byGroup.keys()];
  }

  /** Hosts that listen to a group, in the order in which they joined. */
  membersOf(group: number): HostNode[] {
    return [...(this.byGroup.get(group)?.keys() ?? [])];
  }

  /** Whether a host may not join another group. */
  isFull(host: HostNode): boolean {
    return (this.countOf.get(host) ?? 0) >= this.options.groupsPerHost;
  }

  /** @returns the groups that a host has reported; links' own groups, which are not routed, are not among them */
  apply(host: HostNode, message: IgmpMessage): number[] {
    switch (message.type) {
      case 'report':
        return this.join(host, message.group, undefined) ? [message.group] : [];
      case 'leave':
        this.leave(host, message.group);
        return [];
      case 'report of records':
        return message.records.flatMap((record) => (this.applyRecord(host, record) ? [record.group] : []));
      case 'query':
        return [];
    }
  }

  /** Forgets everything without a word. */
  clear(): void {
    for (const members of this.byGroup.values()) for (const { timer } of members.values()) timer.cancel();
    this.byGroup.clear();
    this.countOf.clear();
  }

  private applyRecord(host: HostNode, { type, group, sources }: IgmpRecord): boolean {
    switch (type) {
      case MODE_IS_EXCLUDE:
      case CHANGE_TO_EXCLUDE_MODE:
        return this.join(host, group, undefined);
      case CHANGE_TO_INCLUDE_MODE:
        if (sources.length === 0) return this.leave(host, group);
        // From now on these and no others.
        this.byGroup.get(group)?.get(host)?.sources?.clear();
        return this.join(host, group, sources, true);
      case MODE_IS_INCLUDE:
      case ALLOW_NEW_SOURCES:
        return sources.length > 0 && this.join(host, group, sources);
      case BLOCK_OLD_SOURCES:
        return this.block(host, group, sources);
      default:
        return false;
    }
  }

  /** @param only whether a host that listened to everybody now listens to these sources only */
  private join(host: HostNode, group: number, sources: readonly number[] | undefined, only = false): boolean {
    if (!isMulticastIpv4(group) || isLinkLocalGroup(group)) return false;
    const { scheduler, lifetimeUs, onChange, onRefused } = this.options;
    const expiresAtUs = scheduler.nowUs() + lifetimeUs;
    const known = this.byGroup.get(group)?.get(host);
    if (known !== undefined) {
      known.expiresAtUs = expiresAtUs;
      if (sources === undefined) known.sources = undefined;
      else if (known.sources !== undefined || only) known.sources = bounded([...(known.sources ?? []), ...sources]);
      return true;
    }
    if (this.isFull(host)) {
      onRefused(host, group);
      return false;
    }
    const members = this.byGroup.get(group) ?? new Map<HostNode, Membership>();
    this.byGroup.set(group, members);
    members.set(host, {
      sources: sources && bounded(sources),
      expiresAtUs,
      timer: scheduler.at(expiresAtUs, () => this.expire(host, group)),
    });
    this.countOf.set(host, (this.countOf.get(host) ?? 0) + 1);
    onChange(group);
    return true;
  }

  private block(host: HostNode, group: number, sources: readonly number[]): boolean {
    const known = this.byGroup.get(group)?.get(host)?.sources;
    if (known === undefined) return false;
    for (const source of sources) known.delete(source);
    return known.size === 0 ? this.leave(host, group) : false;
  }

  private leave(host: HostNode, group: number): false {
    const members = this.byGroup.get(group);
    const known = members?.get(host);
    if (members === undefined || known === undefined) return false;
    known.timer.cancel();
    members.delete(host);
    if (members.size === 0) this.byGroup.delete(group);
    this.countOf.set(host, this.countOf.get(host)! - 1);
    this.options.onChange(group);
    return false;
  }

  /** Reports move only the time: the timer finds out when it is there, so that many reports make no more timers. */
  private expire(host: HostNode, group: number): void {
    const known = this.byGroup.get(group)?.get(host);
    if (known === undefined) return;
    const { scheduler } = this.options;
    if (known.expiresAtUs <= scheduler.nowUs()) this.leave(host, group);
    else known.timer = scheduler.at(known.expiresAtUs, () => this.expire(host, group));
  }
}

function bounded(sources: readonly number[]): Set<number> | undefined {
  const set = new Set(sources);
  return set.size > MAX_SOURCES ? undefined : set;
}
