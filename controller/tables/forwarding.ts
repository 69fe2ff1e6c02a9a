/** p4/forwarding.p4: routes of ordinary traffic, groups that it is replicated to, and what comes up to the controller. */
import { DdfError } from '../../base/errors.ts';
import {
  ETHERTYPE_ARP,
  ETHERTYPE_IPV4,
  IP_PROTOCOL_ICMP,
  IP_PROTOCOL_IGMP,
  PUNT_REASON_ARP,
  PUNT_REASON_ICMP,
  PUNT_REASON_IGMP,
  TRANSFER_SIZE,
} from '../../p4/build/constants.ts';
import type { Entity } from '../../wire/p4runtime/messages.ts';
import { parseIpv4, parseMac } from '../../wire/packet/addresses.ts';
import type { Route } from '../topology/routes.ts';
import type { EntityFactory } from './entities.ts';

const PUNT_PRIORITY = 10;

/** Any of the next hops is taken by a hash of the flow. */
export function route(factory: EntityFactory, { prefix, nextHops }: Route): Entity {
  return factory.tableEntry('ipv4_lpm', {
    match: { ipv4_destination: { value: ipv4(prefix.ip), prefixLength: prefix.length } },
    action: nextHops.map((hop) => ({
      name: 'next_hop',
      params: { port: hop.port, source_mac: mac(hop.sourceMac), destination_mac: mac(hop.destinationMac) },
    })),
  });
}

/** Every ARP packet comes up. */
export function puntArp(factory: EntityFactory): Entity {
  return factory.tableEntry('punt', {
    match: { ether_type: ETHERTYPE_ARP },
    action: { name: 'punt_to_controller', params: { reason: PUNT_REASON_ARP } },
    priority: PUNT_PRIORITY,
  });
}

/** ICMP to one of the switch's own addresses comes up. */
export function puntIcmp(factory: EntityFactory, ownIp: string): Entity {
  return factory.tableEntry('punt', {
    match: { ether_type: ETHERTYPE_IPV4, ipv4_destination: ipv4(ownIp), ip_protocol: IP_PROTOCOL_ICMP },
    action: { name: 'punt_to_controller', params: { reason: PUNT_REASON_ICMP } },
    priority: PUNT_PRIORITY,
  });
}

/** IGMP comes up, whatever group it is about. */
export function puntIgmp(factory: EntityFactory): Entity {
  return factory.tableEntry('punt', {
    match: { ether_type: ETHERTYPE_IPV4, ip_protocol: IP_PROTOCOL_IGMP },
    action: { name: 'punt_to_controller', params: { reason: PUNT_REASON_IGMP } },
    priority: PUNT_PRIORITY,
  });
}

/** What comes up of one port: packets above `packetsPerSecond` with bursts of `burstPackets` are dropped. */
export interface PuntRate {
  readonly packetsPerSecond: number;
  readonly burstPackets: number;
}

/** A host that answers a query for hundreds of groups, or asks for all of its neighbours, stays below. */
export const DEFAULT_PUNT_RATE: PuntRate = { packetsPerSecond: 100, burstPackets: 400 };

export function puntMeter(factory: EntityFactory, port: number, rate: PuntRate): Entity {
  return factory.meter('punt_meter', port, {
    committed: rate.packetsPerSecond,
    committedBurst: rate.burstPackets,
    peak: rate.packetsPerSecond,
    peakBurst: rate.burstPackets,
  });
}

/** Groups of the replication engine that are not transfers' have numbers from here on. */
export const FIRST_MULTICAST_GROUP = TRANSFER_SIZE;

export interface MulticastOnSwitch {
  /** The IPv4 address that packets go to. */
  readonly destination: number;
  /** Of the replication engine, from {@link FIRST_MULTICAST_GROUP} on. */
  readonly multicastGroup: number;
  readonly ports: readonly number[];
  /** Of the switch itself. */
  readonly sourceMac: string;
}

/** A group of ordinary multicast and the entry that uses it. Copies have instance 0: nothing of them depends on their port. */
export function multicastEntities(factory: EntityFactory, on: MulticastOnSwitch): Entity[] {
  return [
    factory.multicastGroup(
      on.multicastGroup,
      on.ports.map((port) => ({ port, instance: 0 })),
    ),
    factory.tableEntry('ip_multicast', {
      match: { ipv4_destination: on.destination },
      action: {
        name: 'replicate',
        params: { multicast_group: on.multicastGroup, source_mac: mac(on.sourceMac) },
      },
    }),
  ];
}

/** An address of a topology as a number. */
export function ipv4(text: string): number {
  const address = parseIpv4(text);
  if (address === undefined) throw new DdfError('INTERNAL', `"${text}" is no IPv4 address`);
  return address;
}

/** An address of a topology as a number. */
export function mac(text: string): number {
  const address = parseMac(text);
  if (address === undefined) throw new DdfError('INTERNAL', `"${text}" is no MAC address`);
  return address;
}
