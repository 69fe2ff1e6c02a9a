import { RECEIVER_UDP_PORT_FIRST } from '../../p4/build/constants.ts';
import type { HostNode } from '../../topologies/types.ts';
import type { Entity } from '../../wire/p4runtime/messages.ts';
import type { FabricGraph } from '../topology/graph.ts';
import { assignPortBits } from '../topology/port-bits.ts';
import { routesOf } from '../topology/routes.ts';
import type { Tree } from '../topology/trees.ts';
import { ADMITTED_TYPES, type ControlRate, controlMeter, DEFAULT_CONTROL_RATE, permit, portRole } from './admission.ts';
import type { EntityFactory } from './entities.ts';
import { DEFAULT_PUNT_RATE, type PuntRate, puntArp, puntIcmp, puntIgmp, puntMeter, route } from './forwarding.ts';
import { DEFAULT_REPAIR_INTERVALS, type RepairIntervals, repairIntervals } from './repair.ts';
import { egressRole, hostRewrites } from './replicas.ts';
import { switchIdentity } from './tagging.ts';
import { portBit, transferEntities } from './transfers.ts';

export interface BaseStateOptions {
  /** Tenants (1..65535) whose packets a host may send. */
  readonly tenantsOf: (host: HostNode) => readonly number[];
  /** UDP port of a host's receiver. Default: the first port of the receivers' range, for every host. */
  readonly receiverPortOf?: (host: HostNode) => number;
  /** Default: {@link DEFAULT_REPAIR_INTERVALS}. */
  readonly intervals?: RepairIntervals;
  /** Limit of control packets for every host port. Default: {@link DEFAULT_CONTROL_RATE}. */
  readonly controlRate?: ControlRate;
  /** Limit of what comes up to the controller, for every port. Default: {@link DEFAULT_PUNT_RATE}. */
  readonly puntRate?: PuntRate;
}

/** What a switch needs whether or not anything is being transferred: roles, bits, routes, punts, rewrites, admission. */
export function baseState(
  factory: EntityFactory,
  graph: FabricGraph,
  switchName: string,
  options: BaseStateOptions,
): Entity[] {
  const own = graph.switch(switchName);
  const hosts = graph.hostsOf(switchName);
  const bits = assignPortBits(graph.portsOf(switchName));
  const ports = [
    ...hosts.map(({ port }) => ({ port, role: 'host' as const })),
    ...graph.hopsFrom(switchName).map(({ port }) => ({ port, role: 'fabric' as const })),
  ];
  const receiverPortOf = options.receiverPortOf ?? (() => RECEIVER_UDP_PORT_FIRST);
  const controlRate = options.controlRate ?? DEFAULT_CONTROL_RATE;
  return [
    switchIdentity(factory, own.deviceId),
    repairIntervals(factory, options.intervals ?? DEFAULT_REPAIR_INTERVALS),
    ...ports.flatMap(({ port, role }) => [
      portRole(factory, port, role),
      portBit(factory, port, bits.get(port)!),
      egressRole(factory, port, role, bits.get(port)!),
      puntMeter(factory, port, options.puntRate ?? DEFAULT_PUNT_RATE),
    ]),
    ...hosts.flatMap((host) => [
      ...hostRewrites(factory, host, receiverPortOf(host)),
      ...options
        .tenantsOf(host)
        .flatMap((tenant) => ADMITTED_TYPES[host.kind].map((type) => permit(factory, host.port, tenant, type))),
      controlMeter(factory, host.port, controlRate),
    ]),
    ...routesOf(graph, switchName).map((entry) => route(factory, entry)),
    ...(hosts.length > 0 ? [puntArp(factory), puntIgmp(factory)] : []),
    puntIcmp(factory, own.ip),
  ];
}

export interface TransferNumbers {
  /** What packets carry; never used twice. */
  readonly label: number;
  readonly tenant: number;
  /** A number of {@link TransferSlots}: multicast group and counter cell on every switch of the tree. */
  readonly slot: number;
}

/** What a transfer adds to each switch of its tree, by the switch's name. */
export function transferState(factory: EntityFactory, tree: Tree, numbers: TransferNumbers): Map<string, Entity[]> {
  return new Map(
    tree.switches.map((node) => [
      node.name,
      transferEntities(factory, {
        label: numbers.label,
        tenant: numbers.tenant,
        multicastGroup: numbers.slot,
        transferIndex: numbers.slot,
        upstreamPort: node.upstreamPort,
        downstreamPorts: node.downstream.map(({ port }) => port),
        treeMask: node.treeMask,
      }),
    ]),
  );
}
