import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { DdfError } from '../../../base/errors.ts';
import { describeEntity } from '../../../controller/p4runtime/entity-text.ts';
import { baseState, transferState } from '../../../controller/tables/desired.ts';
import { EntityFactory } from '../../../controller/tables/entities.ts';
import { repairIntervals } from '../../../controller/tables/repair.ts';
import { checkSizes } from '../../../controller/tables/sizes.ts';
import { TransferSlots } from '../../../controller/tables/slots.ts';
import { classify } from '../../../controller/tables/tagging.ts';
import { portCounterCell } from '../../../controller/tables/telemetry.ts';
import { transferEntities } from '../../../controller/tables/transfers.ts';
import { FabricGraph } from '../../../controller/topology/graph.ts';
import { planTree } from '../../../controller/topology/trees.ts';
import { PORT_COUNTER_SIZE } from '../../../p4/build/constants.ts';
import { loadTopology } from '../../../topologies/load.ts';
import { withServers } from '../../../topologies/servers.ts';
import type { Entity } from '../../../wire/p4runtime/messages.ts';
import { P4InfoIndex } from '../../../wire/p4runtime/p4info-index.ts';
import { parseP4InfoText } from '../../../wire/p4runtime/p4info-text.ts';

const read = (path: string): string => readFileSync(new URL(`../../../${path}`, import.meta.url), 'utf8');
const index = new P4InfoIndex(parseP4InfoText(read('p4/build/fabric.p4info.txtpb')));
const factory = new EntityFactory(index);
const leafSpine = loadTopology(read('topologies/leaf-spine.yaml'), 'leaf-spine.yaml');
const small = new FabricGraph(withServers(leafSpine, 4));
const text = (entities: readonly Entity[]): string[] => entities.map((entity) => describeEntity(index, entity));

function errorOf(action: () => unknown): DdfError {
  try {
    action();
  } catch (error) {
    if (error instanceof DdfError) return error;
    throw error;
  }
  throw new Error('nothing was thrown');
}

describe('the base state', () => {
  it('of a leaf with a Memory Node and a GPU server', () => {
    expect(text(baseState(factory, small, 'leaf1', { tenantsOf: () => [7] }))).toMatchInlineSnapshot(`
      [
        "table switch_identity, default action -> set_switch_id(switch_id=0x3)",
        "table repair_intervals, default action -> set_intervals(elimination=0x271, stale=0x30d4, grace=0x271)",
        "table port_role, ingress_port=0x1 -> host_port()",
        "table port_bit, ingress_port=0x1 -> set_bit(bit=0x1)",
        "table egress_role, egress_port=0x1 -> to_host(bit=0x1)",
        "meter punt_meter[1]",
        "table port_role, ingress_port=0x2 -> host_port()",
        "table port_bit, ingress_port=0x2 -> set_bit(bit=0x2)",
        "table egress_role, egress_port=0x2 -> to_host(bit=0x2)",
        "meter punt_meter[2]",
        "table port_role, ingress_port=0x3 -> fabric_port()",
        "table port_bit, ingress_port=0x3 -> set_bit(bit=0x4)",
        "table egress_role, egress_port=0x3 -> to_fabric(bit=0x4)",
        "meter punt_meter[3]",
        "table port_role, ingress_port=0x4 -> fabric_port()",
        "table port_bit, ingress_port=0x4 -> set_bit(bit=0x8)",
        "table egress_role, egress_port=0x4 -> to_fabric(bit=0x8)",
        "meter punt_meter[4]",
        "table replica_rewrite, egress_port=0x1, instance=0x0 -> rewrite(destination_mac=0x20000010001, destination_ip=0xa010101, destination_udp_port=0xddf0)",
        "table replica_rewrite, egress_port=0x1, instance=0x1 -> rewrite(destination_mac=0x20000010001, destination_ip=0xa010101, destination_udp_port=0xde00)",
        "table admission, ingress_port=0x1, tenant=0x7, fabric_type=0x1 -> permit()",
        "table admission, ingress_port=0x1, tenant=0x7, fabric_type=0x2 -> permit()",
        "table admission, ingress_port=0x1, tenant=0x7, fabric_type=0x4 -> permit()",
        "table admission, ingress_port=0x1, tenant=0x7, fabric_type=0x8 -> permit()",
        "meter control_meter[1]",
        "table replica_rewrite, egress_port=0x2, instance=0x0 -> rewrite(destination_mac=0x20000010002, destination_ip=0xa010102, destination_udp_port=0xddf0)",
        "table replica_rewrite, egress_port=0x2, instance=0x1 -> rewrite(destination_mac=0x20000010002, destination_ip=0xa010102, destination_udp_port=0xde00)",
        "table admission, ingress_port=0x2, tenant=0x7, fabric_type=0x3 -> permit()",
        "table admission, ingress_port=0x2, tenant=0x7, fabric_type=0x5 -> permit()",
        "table admission, ingress_port=0x2, tenant=0x7, fabric_type=0x7 -> permit()",
        "table admission, ingress_port=0x2, tenant=0x7, fabric_type=0x8 -> permit()",
        "meter control_meter[2]",
        "table ipv4_lpm, ipv4_destination=0xa010101/32 -> one of next_hop(port=0x1, source_mac=0x20000000003, destination_mac=0x20000010001)",
        "table ipv4_lpm, ipv4_destination=0xa010102/32 -> one of next_hop(port=0x2, source_mac=0x20000000003, destination_mac=0x20000010002)",
        "table ipv4_lpm, ipv4_destination=0xa000001/32 -> one of next_hop(port=0x3, source_mac=0x20000000003, destination_mac=0x20000000001)",
        "table ipv4_lpm, ipv4_destination=0xa000002/32 -> one of next_hop(port=0x4, source_mac=0x20000000003, destination_mac=0x20000000002)",
        "table ipv4_lpm, ipv4_destination=0xa020000/16 -> one of next_hop(port=0x3, source_mac=0x20000000003, destination_mac=0x20000000001) | next_hop(port=0x4, source_mac=0x20000000003, destination_mac=0x20000000002)",
        "table ipv4_lpm, ipv4_destination=0xa030000/16 -> one of next_hop(port=0x3, source_mac=0x20000000003, destination_mac=0x20000000001) | next_hop(port=0x4, source_mac=0x20000000003, destination_mac=0x20000000002)",
        "table ipv4_lpm, ipv4_destination=0xa040000/16 -> one of next_hop(port=0x3, source_mac=0x20000000003, destination_mac=0x20000000001) | next_hop(port=0x4, source_mac=0x20000000003, destination_mac=0x20000000002)",
        "table punt, ether_type=0x806&&&0xffff, priority 10 -> punt_to_controller(reason=0x1)",
        "table punt, ether_type=0x800&&&0xffff, ip_protocol=0x2&&&0xff, priority 10 -> punt_to_controller(reason=0x3)",
        "table punt, ether_type=0x800&&&0xffff, ipv4_destination=0xa010001&&&0xffffffff, ip_protocol=0x1&&&0xff, priority 10 -> punt_to_controller(reason=0x2)",
      ]
    `);
  });

  it('of a spine', () => {
    expect(text(baseState(factory, small, 'spine2', { tenantsOf: () => [7] }))).toMatchInlineSnapshot(`
      [
        "table switch_identity, default action -> set_switch_id(switch_id=0x2)",
        "table repair_intervals, default action -> set_intervals(elimination=0x271, stale=0x30d4, grace=0x271)",
        "table port_role, ingress_port=0x1 -> fabric_port()",
        "table port_bit, ingress_port=0x1 -> set_bit(bit=0x1)",
        "table egress_role, egress_port=0x1 -> to_fabric(bit=0x1)",
        "meter punt_meter[1]",
        "table port_role, ingress_port=0x2 -> fabric_port()",
        "table port_bit, ingress_port=0x2 -> set_bit(bit=0x2)",
        "table egress_role, egress_port=0x2 -> to_fabric(bit=0x2)",
        "meter punt_meter[2]",
        "table port_role, ingress_port=0x3 -> fabric_port()",
        "table port_bit, ingress_port=0x3 -> set_bit(bit=0x4)",
        "table egress_role, egress_port=0x3 -> to_fabric(bit=0x4)",
        "meter punt_meter[3]",
        "table port_role, ingress_port=0x4 -> fabric_port()",
        "table port_bit, ingress_port=0x4 -> set_bit(bit=0x8)",
        "table egress_role, egress_port=0x4 -> to_fabric(bit=0x8)",
        "meter punt_meter[4]",
        "table ipv4_lpm, ipv4_destination=0xa000001/32 -> one of next_hop(port=0x1, source_mac=0x20000000002, destination_mac=0x20000000003) | next_hop(port=0x2, source_mac=0x20000000002, destination_mac=0x20000000004) | next_hop(port=0x3, source_mac=0x20000000002, destination_mac=0x20000000005) | next_hop(port=0x4, source_mac=0x20000000002, destination_mac=0x20000000006)",
        "table ipv4_lpm, ipv4_destination=0xa010000/16 -> one of next_hop(port=0x1, source_mac=0x20000000002, destination_mac=0x20000000003)",
        "table ipv4_lpm, ipv4_destination=0xa020000/16 -> one of next_hop(port=0x2, source_mac=0x20000000002, destination_mac=0x20000000004)",
        "table ipv4_lpm, ipv4_destination=0xa030000/16 -> one of next_hop(port=0x3, source_mac=0x20000000002, destination_mac=0x20000000005)",
        "table ipv4_lpm, ipv4_destination=0xa040000/16 -> one of next_hop(port=0x4, source_mac=0x20000000002, destination_mac=0x20000000006)",
        "table punt, ether_type=0x800&&&0xffff, ipv4_destination=0xa000002&&&0xffffffff, ip_protocol=0x1&&&0xff, priority 10 -> punt_to_controller(reason=0x2)",
      ]
    `);
  });

  it('admits nobody without a tenant and follows the receivers to their ports', () => {
    const state = text(
      baseState(factory, small, 'leaf1', { tenantsOf: () => [], receiverPortOf: (host) => 57000 + host.port }),
    );
    expect(state.filter((line) => line.startsWith('table admission'))).toEqual([]);
    expect(state.filter((line) => line.includes('replica_rewrite') && line.includes('instance=0x1'))).toEqual([
      'table replica_rewrite, egress_port=0x1, instance=0x1 -> rewrite(destination_mac=0x20000010001, destination_ip=0xa010101, destination_udp_port=0xdea9)',
      'table replica_rewrite, egress_port=0x2, instance=0x1 -> rewrite(destination_mac=0x20000010002, destination_ip=0xa010102, destination_udp_port=0xdeaa)',
    ]);
  });

  it('fits on every switch of the largest fabric', () => {
    const large = new FabricGraph(withServers(leafSpine, 2000));
    for (const { name } of large.topology.switches) {
      const state = baseState(factory, large, name, { tenantsOf: () => [1, 2, 3] });
      expect(() => checkSizes(index, state, name)).not.toThrow();
    }
  });
});

describe('the state of a transfer', () => {
  it('is a group and an entry on each switch of its tree', () => {
    const tree = planTree(small, 'mn1', ['gpu01', 'gpu03', 'gpu04']);
    const state = transferState(factory, tree, { label: 42, tenant: 7, slot: 3 });
    expect(Object.fromEntries([...state].map(([name, entities]) => [name, text(entities)]))).toMatchInlineSnapshot(`
      {
        "leaf1": [
          "multicast group 3",
          "table transfer, label=0x2a -> follow_tree(tenant=0x7, multicast_group=0x3, upstream_port=0x1, tree_mask=0x6, transfer_index=0x3)",
        ],
        "leaf3": [
          "multicast group 3",
          "table transfer, label=0x2a -> follow_tree(tenant=0x7, multicast_group=0x3, upstream_port=0x3, tree_mask=0x2, transfer_index=0x3)",
        ],
        "leaf4": [
          "multicast group 3",
          "table transfer, label=0x2a -> follow_tree(tenant=0x7, multicast_group=0x3, upstream_port=0x3, tree_mask=0x2, transfer_index=0x3)",
        ],
        "spine1": [
          "multicast group 3",
          "table transfer, label=0x2a -> follow_tree(tenant=0x7, multicast_group=0x3, upstream_port=0x1, tree_mask=0xc, transfer_index=0x3)",
        ],
      }
    `);
    const group = state.get('leaf1')![0]!.packetReplicationEngineEntry!.multicastGroupEntry!;
    expect(group.replicas).toEqual([
      { port: new Uint8Array([2]), instance: 1, backupReplicas: [] },
      { port: new Uint8Array([3]), instance: 1, backupReplicas: [] },
    ]);
  });
});

describe('a classified flow', () => {
  it('leaves out what does not matter', () => {
    const flow = { destination: { address: 0x0a010203, mask: 0xffffff00 }, ipProtocol: 6 };
    const tag = { objectId: 0x0007_0000_0000_0001n, objectVersion: 22, trafficClass: 3 };
    expect(text([classify(factory, flow, tag, 5)])).toEqual([
      'table classify, ipv4_destination=0xa010200&&&0xffffff00, ip_protocol=0x6&&&0xff, priority 5 -> set_tag(object_id=0x7000000000001, object_version=0x16, traffic_class=0x3)',
    ]);
  });
});

describe('what does not fit', () => {
  it('is refused by table, size and number wanted', () => {
    const entities = Array.from({ length: 16_385 }, (_, label) =>
      transferEntities(factory, {
        label,
        tenant: 1,
        multicastGroup: 1,
        upstreamPort: 1,
        downstreamPorts: [],
        treeMask: 0,
        transferIndex: 0,
      }),
    ).flat();
    const error = errorOf(() => checkSizes(index, entities, 'leaf1'));
    expect(error.code).toBe('TABLE_FULL');
    expect(error.message).toMatch(/table transfer has room for 16384, 16385 are wanted/);
    expect(error.where).toBe('switch leaf1');
  });

  it('is refused for selectors as well: members in all, and members of one group', () => {
    const entry = (prefix: number, ways: number): Entity =>
      factory.tableEntry('ipv4_lpm', {
        match: { ipv4_destination: prefix },
        action: Array.from({ length: ways }, (_, port) => ({
          name: 'next_hop',
          params: { port: port + 1, source_mac: 1, destination_mac: 2 },
        })),
      });
    expect(errorOf(() => checkSizes(index, [entry(1, 65)], 's')).message).toMatch(
      /group of action selector ecmp_selector has room for 64, 65/,
    );
    const many = Array.from({ length: 65 }, (_, i) => entry(i, 64));
    expect(errorOf(() => checkSizes(index, many, 's')).message).toMatch(
      /action selector ecmp_selector has room for 4096, 4160/,
    );
  });

  it('is refused for values that are too wide', () => {
    expect(
      errorOf(() => factory.tableEntry('port_role', { match: { ingress_port: 512 }, action: { name: 'host_port' } }))
        .message,
    ).toMatch(/table port_role, key ingress_port: 512 does not fit into 9 bits/);
  });

  it('is refused for repair intervals that contradict each other', () => {
    for (const intervals of [
      { eliminationUs: 0, staleUs: 10, graceUs: 5 },
      { eliminationUs: 10, staleUs: 10, graceUs: 11 },
      { eliminationUs: 10, staleUs: 2 ** 40, graceUs: 5 },
      { eliminationUs: Number.NaN, staleUs: 10, graceUs: 5 },
    ])
      expect(errorOf(() => repairIntervals(factory, intervals)).code).toBe('INVALID_OPTION');
  });
});

describe('a foreign program', () => {
  it('is recognised by the first name that it lacks', () => {
    const { tables, ...rest } = index.p4Info;
    const foreign = new EntityFactory(
      new P4InfoIndex({
        ...rest,
        actionProfiles: [],
        directCounters: [],
        tables: tables.filter(({ preamble }) => preamble?.alias === 'port_role'),
      }),
    );
    const error = errorOf(() => baseState(foreign, small, 'leaf1', { tenantsOf: () => [] }));
    expect(error.code).toBe('PROGRAM_MISMATCH');
    expect(error.message).toMatch(/there is no table/);
  });

  it('is recognised by keys, actions and parameters', () => {
    const wrong = (action: () => unknown): string => errorOf(action).message;
    expect(wrong(() => factory.tableEntry('port_role', { match: { port: 1 }, action: { name: 'host_port' } }))).toMatch(
      /no key port/,
    );
    expect(
      wrong(() => factory.tableEntry('port_role', { match: { ingress_port: 1 }, action: { name: 'permit' } })),
    ).toMatch(/no action permit/);
    expect(wrong(() => factory.defaultAction('switch_identity', { name: 'set_switch_id' }))).toMatch(
      /switch_id that nobody gives/,
    );
    expect(
      wrong(() =>
        factory.defaultAction('switch_identity', { name: 'set_switch_id', params: { switch_id: 1, other: 2 } }),
      ),
    ).toMatch(/no parameter other/);
    expect(wrong(() => factory.tableEntry('punt', { match: {}, action: { name: 'no_punt' } }))).toMatch(
      /needs priorities/,
    );
  });
});

describe('transfer slots', () => {
  it('go round, skip those in use, and end', () => {
    const tables = index.p4Info.tables.map((table) =>
      table.preamble?.alias === 'transfer' ? { ...table, size: 4n } : table,
    );
    const slots = new TransferSlots(new P4InfoIndex({ ...index.p4Info, tables }));
    expect([slots.take(), slots.take()]).toEqual([1, 2]);
    slots.release(1);
    expect([slots.take(), slots.take()]).toEqual([3, 1]);
    expect(errorOf(() => slots.take()).code).toBe('TABLE_FULL');
    slots.release(2);
    expect(slots.take()).toBe(2);
  });
});

describe('counter cells', () => {
  it('stay inside the counters for every port', () => {
    expect(portCounterCell(1, false, 1)).toBe(0b1_0_0001);
    expect(portCounterCell(511, true, 15)).toBe(PORT_COUNTER_SIZE - 1);
  });
});
