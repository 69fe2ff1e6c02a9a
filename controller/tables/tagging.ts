/** p4/tagging.p4: what switches tell each other about a packet's object, ordinary traffic included. */
import type { Entity } from '../../wire/p4runtime/messages.ts';
import type { EntityFactory, MatchValue } from './entities.ts';

/** Packets of a flow; a part that is missing is any. Addresses are numbers, as wire/packet/addresses.ts has them. */
export interface Flow {
  readonly source?: { readonly address: number; readonly mask: number };
  readonly destination?: { readonly address: number; readonly mask: number };
  readonly ipProtocol?: number;
  readonly sourcePort?: number;
  readonly destinationPort?: number;
}

export interface ObjectTag {
  readonly objectId: bigint;
  readonly objectVersion: number;
  readonly trafficClass: number;
}

/** @param priority 1 or more; where flows overlap the higher one wins */
export function classify(factory: EntityFactory, flow: Flow, tag: ObjectTag, priority: number): Entity {
  const masked = (part: Flow['source']): MatchValue | undefined => part && { value: part.address, mask: part.mask };
  const match: Record<string, MatchValue | undefined> = {
    ipv4_source: masked(flow.source),
    ipv4_destination: masked(flow.destination),
    ip_protocol: flow.ipProtocol,
    l4_source_port: flow.sourcePort,
    l4_destination_port: flow.destinationPort,
  };
  return factory.tableEntry('classify', {
    match: Object.fromEntries(
      Object.entries(match).filter((part): part is [string, MatchValue] => part[1] !== undefined),
    ),
    action: {
      name: 'set_tag',
      params: { object_id: tag.objectId, object_version: tag.objectVersion, traffic_class: tag.trafficClass },
    },
    priority,
  });
}

/** The number that tags carry as the switch that added them: its device id. */
export function switchIdentity(factory: EntityFactory, deviceId: number): Entity {
  return factory.defaultAction('switch_identity', { name: 'set_switch_id', params: { switch_id: deviceId } });
}
