/** p4/transfers.p4: what a switch has to know of a transfer, and of its ports to tell who asked. */
import type { Entity } from '../../wire/p4runtime/messages.ts';
import type { EntityFactory } from './entities.ts';

/** Copies of DATA, REPAIR and SYNC carry this instance; packets that leave unicast have 0. */
export const TREE_INSTANCE = 1;

export interface TransferOnSwitch {
  readonly label: number;
  readonly tenant: number;
  /** Of the replication engine, 1 or more. */
  readonly multicastGroup: number;
  readonly upstreamPort: number;
  readonly downstreamPorts: readonly number[];
  readonly treeMask: number;
  /** Cell of the transfer's counter and registers. */
  readonly transferIndex: number;
}

/** The transfer's group and the entry that uses it. */
export function transferEntities(factory: EntityFactory, transfer: TransferOnSwitch): Entity[] {
  return [
    factory.multicastGroup(
      transfer.multicastGroup,
      transfer.downstreamPorts.map((port) => ({ port, instance: TREE_INSTANCE })),
    ),
    factory.tableEntry('transfer', {
      match: { label: transfer.label },
      action: {
        name: 'follow_tree',
        params: {
          tenant: transfer.tenant,
          multicast_group: transfer.multicastGroup,
          upstream_port: transfer.upstreamPort,
          tree_mask: transfer.treeMask,
          transfer_index: transfer.transferIndex,
        },
      },
    }),
  ];
}

export function portBit(factory: EntityFactory, port: number, bit: number): Entity {
  return factory.tableEntry('port_bit', {
    match: { ingress_port: port },
    action: { name: 'set_bit', params: { bit } },
  });
}
