/** p4/admission.p4: who may send what from which port. */
import {
  FABRIC_TYPE_DATA,
  FABRIC_TYPE_DONE,
  FABRIC_TYPE_NACK,
  FABRIC_TYPE_PROBE,
  FABRIC_TYPE_REPAIR,
  FABRIC_TYPE_REPORT,
  FABRIC_TYPE_SYNC,
} from '../../p4/build/constants.ts';
import type { HostNode } from '../../topologies/types.ts';
import type { Entity } from '../../wire/p4runtime/messages.ts';
import type { EntityFactory } from './entities.ts';

/** Fabric types that a host of a kind has reason to send. */
export const ADMITTED_TYPES: Readonly<Record<HostNode['kind'], readonly number[]>> = {
  'memory-node': [FABRIC_TYPE_DATA, FABRIC_TYPE_REPAIR, FABRIC_TYPE_SYNC, FABRIC_TYPE_PROBE],
  'gpu-server': [FABRIC_TYPE_NACK, FABRIC_TYPE_DONE, FABRIC_TYPE_REPORT, FABRIC_TYPE_PROBE],
};

export function portRole(factory: EntityFactory, port: number, role: 'host' | 'fabric'): Entity {
  return factory.tableEntry('port_role', { match: { ingress_port: port }, action: { name: `${role}_port` } });
}

/** Fabric packets of a tenant and a type are let in at a host port; all others are denied there. */
export function permit(factory: EntityFactory, port: number, tenant: number, fabricType: number): Entity {
  return factory.tableEntry('admission', {
    match: { ingress_port: port, tenant, fabric_type: fabricType },
    action: { name: 'permit' },
  });
}

/** NACK, DONE and REPORT packets from a host port: those above `packetsPerSecond` with bursts of `burstPackets` are dropped. */
export interface ControlRate {
  readonly packetsPerSecond: number;
  readonly burstPackets: number;
}

/** Several times what a receiver that loses a tenth of a gigabit stream asks for. */
export const DEFAULT_CONTROL_RATE: ControlRate = { packetsPerSecond: 20_000, burstPackets: 2_000 };

export function controlMeter(factory: EntityFactory, port: number, rate: ControlRate): Entity {
  return factory.meter('control_meter', port, {
    committed: rate.packetsPerSecond,
    committedBurst: rate.burstPackets,
    peak: rate.packetsPerSecond,
    peakBurst: rate.burstPackets,
  });
}
