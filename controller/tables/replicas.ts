/** p4/replicas.p4: what becomes of a copy on its way out. */
import { FABRIC_UDP_PORT } from '../../p4/build/constants.ts';
import type { HostNode } from '../../topologies/types.ts';
import type { Entity } from '../../wire/p4runtime/messages.ts';
import type { EntityFactory } from './entities.ts';
import { ipv4, mac } from './forwarding.ts';
import { TREE_INSTANCE } from './transfers.ts';

/** @param bit the port's mask bit: copies whose mask lacks it are pruned */
export function egressRole(factory: EntityFactory, port: number, role: 'host' | 'fabric', bit: number): Entity {
  return factory.tableEntry('egress_role', {
    match: { egress_port: port },
    action: { name: `to_${role}`, params: { bit } },
  });
}

/**
 * Fabric packets that leave towards a host get its addresses: copies of a tree go to its receiver's socket, control packets, which leave unicast, to
 * its sender's.
 */
export function hostRewrites(factory: EntityFactory, host: HostNode, receiverUdpPort: number): Entity[] {
  const rewrite = (instance: number, udpPort: number): Entity =>
    factory.tableEntry('replica_rewrite', {
      match: { egress_port: host.port, instance },
      action: {
        name: 'rewrite',
        params: {
          destination_mac: mac(host.mac),
          destination_ip: ipv4(host.ip),
          destination_udp_port: udpPort,
        },
      },
    });
  return [rewrite(0, FABRIC_UDP_PORT), rewrite(TREE_INSTANCE, receiverUdpPort)];
}
