import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import * as constants from '../../p4/build/constants.ts';
import { BUILD_DIRECTORY, p4Sources } from '../../scripts/p4-build.ts';
import { P4InfoIndex } from '../../wire/p4runtime/p4info-index.ts';
import type { FieldInfo, MatchFieldInfo } from '../../wire/p4runtime/p4info-objects.ts';
import { parseP4InfoText } from '../../wire/p4runtime/p4info-text.ts';

const p4Info = new P4InfoIndex(parseP4InfoText(readFileSync(join(BUILD_DIRECTORY, 'fabric.p4info.txtpb'), 'utf8')));

const sources = p4Sources();

const keysText = (fields: readonly MatchFieldInfo[]): string =>
  fields.map(({ name, kind, widthBits }) => `${name} ${kind} ${widthBits}`).join(', ');
const paramsText = (params: readonly FieldInfo[]): string =>
  params.map(({ name, widthBits }) => `${name} ${widthBits}`).join(', ');

/** What the controller's tables/ modules rely on: keys, actions with parameters (`=` marks the default), size. */
const TABLES: Record<string, { keys: string; actions: string[]; constDefault: boolean; size: number }> = {
  port_role: {
    keys: 'ingress_port exact 9',
    actions: ['host_port()', 'fabric_port()', '=unknown_port()'],
    constDefault: true,
    size: constants.PORT_ROLE_SIZE,
  },
  admission: {
    keys: 'ingress_port exact 9, tenant exact 16, fabric_type exact 4',
    actions: ['permit()', 'deny()'],
    constDefault: true,
    size: constants.ADMISSION_SIZE,
  },
  classify: {
    keys: 'ipv4_source ternary 32, ipv4_destination ternary 32, ip_protocol ternary 8, l4_source_port ternary 16, l4_destination_port ternary 16',
    actions: ['set_tag(object_id 64, object_version 32, traffic_class 8)', '=no_tag()'],
    constDefault: true,
    size: constants.CLASSIFY_SIZE,
  },
  switch_identity: { keys: '', actions: ['=set_switch_id(switch_id 16)'], constDefault: false, size: 1 },
  transfer: {
    keys: 'label exact 32',
    actions: [
      'follow_tree(tenant 16, multicast_group 16, upstream_port 9, tree_mask 32, transfer_index 16)',
      '=unknown_label()',
    ],
    constDefault: true,
    size: constants.TRANSFER_SIZE,
  },
  port_bit: {
    keys: 'ingress_port exact 9',
    actions: ['set_bit(bit 32)', '=no_bit()'],
    constDefault: true,
    size: constants.PORT_BIT_SIZE,
  },
  repair_intervals: {
    keys: '',
    actions: ['=set_intervals(elimination 32, stale 32, grace 32)'],
    constDefault: false,
    size: 1,
  },
  punt: {
    keys: 'ether_type ternary 16, ipv4_destination ternary 32, ip_protocol ternary 8',
    actions: ['punt_to_controller(reason 8)', '=no_punt()'],
    constDefault: true,
    size: constants.PUNT_SIZE,
  },
  ipv4_lpm: {
    keys: 'ipv4_destination lpm 32',
    actions: ['next_hop(port 9, source_mac 48, destination_mac 48)', '=NoAction()'],
    constDefault: true,
    size: constants.IPV4_LPM_SIZE,
  },
  ip_multicast: {
    keys: 'ipv4_destination exact 32',
    actions: ['replicate(multicast_group 16, source_mac 48)', '=no_members()'],
    constDefault: true,
    size: constants.IP_MULTICAST_SIZE,
  },
  egress_role: {
    keys: 'egress_port exact 9',
    actions: ['to_host(bit 32)', 'to_fabric(bit 32)', '=neither()'],
    constDefault: true,
    size: constants.EGRESS_ROLE_SIZE,
  },
  replica_rewrite: {
    keys: 'egress_port exact 9, instance exact 16',
    actions: ['rewrite(destination_mac 48, destination_ip 32, destination_udp_port 16)', '=no_receiver()'],
    constDefault: true,
    size: constants.REPLICA_REWRITE_SIZE,
  },
};

describe('P4Info of the fabric', () => {
  it('has the tables of the program, each with keys, actions, default and guaranteed size', () => {
    const found = Object.fromEntries(
      [...p4Info.tables].map((table) => [
        table.alias,
        {
          keys: keysText(table.fields),
          actions: table.actions.map(
            ({ action, scope }) =>
              `${scope === 'default only' ? '=' : ''}${action.alias}(${paramsText(action.params)})`,
          ),
          constDefault: table.hasConstDefault,
          size: table.size,
        },
      ]),
    );
    expect(found).toEqual(TABLES);
  });

  it('lets the controller choose the default action only of keyless tables', () => {
    for (const table of p4Info.tables) expect(table.hasConstDefault, table.alias).toBe(table.fields.length > 0);
  });

  it('matches nothing wider than 64 bits, and no ranges: not every target can', () => {
    for (const table of p4Info.tables)
      for (const { name, widthBits, kind } of table.fields) {
        expect(widthBits, `${table.alias}, ${name}`).toBeLessThanOrEqual(64);
        expect(kind, `${table.alias}, ${name}`).not.toBe('range');
      }
  });

  it('selects next hops through groups', () => {
    const profile = p4Info.tables.require('ipv4_lpm').profile;
    expect(profile).toMatchObject({
      alias: 'ecmp_selector',
      withSelector: true,
      size: constants.ECMP_MEMBERS_SIZE,
      maxGroupSize: constants.ECMP_MAX_GROUP_SIZE,
    });
  });

  it('counts and meters', () => {
    expect(Object.fromEntries([...p4Info.counters].map(({ alias, size, unit }) => [alias, { size, unit }]))).toEqual({
      ingress_port_counter: { size: constants.PORT_COUNTER_SIZE, unit: 3 },
      egress_port_counter: { size: constants.PORT_COUNTER_SIZE, unit: 3 },
      transfer_egress_counter: { size: constants.TRANSFER_SIZE, unit: 3 },
      drop_counter: { size: constants.DROP_COUNTER_SIZE, unit: 3 },
    });
    expect(p4Info.tables.require('transfer').directCounter).toMatchObject({ alias: 'transfer_counter', unit: 3 });
    expect([...p4Info.meters].map(({ alias, size, unit }) => ({ alias, size, unit }))).toEqual([
      { alias: 'control_meter', size: constants.CONTROL_METER_SIZE, unit: 2 },
      { alias: 'punt_meter', size: constants.PUNT_METER_SIZE, unit: 2 },
    ]);
  });

  it('exchanges packets with the controller in whole bytes', () => {
    const headers = Object.fromEntries(
      [...p4Info.controllerHeaders].map((header) => [header.alias, paramsText(header.fields)]),
    );
    expect(headers).toEqual({ packet_in: 'ingress_port 16, reason 8', packet_out: 'egress_port 16' });
  });

  it('takes every id from the sources, where each is used once', () => {
    const written = sources.flatMap(({ text }) =>
      [...text.matchAll(/@id\((0x[0-9A-F]+)\)/g)].map((match) => Number(match[1])),
    );
    expect(new Set(written).size).toBe(written.length);
    const named = [
      ...p4Info.tables,
      ...p4Info.actions,
      ...p4Info.profiles,
      ...p4Info.counters,
      ...p4Info.directCounters,
      ...p4Info.meters,
      ...p4Info.registers,
    ].filter(({ name }) => name !== 'NoAction');
    expect(named.map(({ id }) => id).sort()).toEqual([...written].sort());
  });
});
