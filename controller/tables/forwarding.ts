/** p4/forwarding.p4: routes of ordinary traffic, and what comes up to the controller. */
import { DdfError } from '../../base/errors.ts';
import {
  ETHERTYPE_ARP,
  ETHERTYPE_IPV4,
  IP_PROTOCOL_ICMP,
  PUNT_REASON_ARP,
  PUNT_REASON_ICMP,
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
