import { beforeEach, describe, expect, it } from 'vitest';
import { VirtualScheduler } from '../../../base/clock.ts';
import { Memberships } from '../../../controller/fabric/memberships.ts';
import { FabricGraph } from '../../../controller/topology/graph.ts';
import { parseIpv4 } from '../../../wire/packet/addresses.ts';
import {
  ALLOW_NEW_SOURCES,
  BLOCK_OLD_SOURCES,
  CHANGE_TO_EXCLUDE_MODE,
  CHANGE_TO_INCLUDE_MODE,
  type IgmpMessage,
  MODE_IS_EXCLUDE,
  MODE_IS_INCLUDE,
} from '../../../wire/packet/igmp.ts';
import { leafSpine } from '../planner/fixture.ts';

const graph = new FabricGraph(leafSpine());
const one = graph.host('gpu01');
const two = graph.host('gpu02');
const A = parseIpv4('239.1.2.3')!;
const B = parseIpv4('232.1.2.3')!;
const LIFETIME_US = 260_000_000;

let scheduler: VirtualScheduler;
let changes: number[];
let refused: string[];
let memberships: Memberships;

const report = (group: number, version: 1 | 2 = 2): IgmpMessage => ({ type: 'report', version, group });
const leave = (group: number): IgmpMessage => ({ type: 'leave', group });
const record = (type: number, group: number, ...sources: number[]): IgmpMessage => ({
  type: 'report of records',
  records: [{ type, group, sources }],
});
const members = (group: number): string[] => memberships.membersOf(group).map(({ name }) => name);

beforeEach(() => {
  scheduler = new VirtualScheduler();
  changes = [];
  refused = [];
  memberships = new Memberships({
    scheduler,
    groupsPerHost: 3,
    lifetimeUs: LIFETIME_US,
    onChange: (group) => changes.push(group),
    onRefused: (host, group) => refused.push(`${host.name} ${group}`),
  });
});

describe('versions 1 and 2', () => {
  it('a report joins, once', () => {
    expect(memberships.apply(one, report(A, 1))).toEqual([A]);
    expect(memberships.apply(one, report(A, 2))).toEqual([A]);
    memberships.apply(two, report(A));
    expect(members(A)).toEqual(['gpu01', 'gpu02']);
    expect(changes).toEqual([A, A]);
  });

  it('who leaves is gone, and nobody else', () => {
    memberships.apply(one, report(A));
    memberships.apply(two, report(A));
    memberships.apply(one, leave(A));
    expect(members(A)).toEqual(['gpu02']);
    memberships.apply(one, leave(A));
    memberships.apply(one, leave(B));
    expect(changes).toEqual([A, A, A]);
  });

  it('a query of somebody else changes nothing', () => {
    memberships.apply(one, report(A));
    memberships.apply(one, {
      type: 'query',
      version: 2,
      group: 0,
      maxResponseTenths: 1,
      suppress: false,
      robustness: 0,
      intervalSeconds: 0,
      sources: [],
    });
    expect(members(A)).toEqual(['gpu01']);
  });
});

describe('version 3', () => {
  it.each([MODE_IS_EXCLUDE, CHANGE_TO_EXCLUDE_MODE])('record type %i joins, whatever is excluded', (type) => {
    memberships.apply(one, record(type, A, 1, 2));
    expect(members(A)).toEqual(['gpu01']);
    memberships.apply(one, record(BLOCK_OLD_SOURCES, A, 3));
    expect(members(A)).toEqual(['gpu01']);
    memberships.apply(one, record(CHANGE_TO_INCLUDE_MODE, A));
    expect(members(A)).toEqual([]);
  });

  it.each([MODE_IS_INCLUDE, ALLOW_NEW_SOURCES, CHANGE_TO_INCLUDE_MODE])(
    'record type %i joins with sources only, and the membership ends with its last source',
    (type) => {
      memberships.apply(one, record(type, B));
      expect(members(B)).toEqual([]);
      memberships.apply(one, record(type, B, 1, 2));
      memberships.apply(one, record(ALLOW_NEW_SOURCES, B, 3));
      memberships.apply(one, record(BLOCK_OLD_SOURCES, B, 1, 2));
      expect(members(B)).toEqual(['gpu01']);
      memberships.apply(one, record(BLOCK_OLD_SOURCES, B, 3, 4));
      expect(members(B)).toEqual([]);
    },
  );

  it('a change to other sources forgets the earlier ones, and everybody', () => {
    memberships.apply(one, record(ALLOW_NEW_SOURCES, B, 1));
    memberships.apply(one, record(CHANGE_TO_INCLUDE_MODE, B, 2));
    memberships.apply(one, record(BLOCK_OLD_SOURCES, B, 2));
    expect(members(B)).toEqual([]);
    memberships.apply(one, record(CHANGE_TO_EXCLUDE_MODE, B));
    memberships.apply(one, record(CHANGE_TO_INCLUDE_MODE, B, 2));
    memberships.apply(one, record(BLOCK_OLD_SOURCES, B, 2));
    expect(members(B)).toEqual([]);
  });

  it('who names too many sources listens to everybody', () => {
    const many = Array.from({ length: 65 }, (_, i) => i);
    memberships.apply(one, record(ALLOW_NEW_SOURCES, B, ...many));
    memberships.apply(one, record(BLOCK_OLD_SOURCES, B, ...many));
    expect(members(B)).toEqual(['gpu01']);
    memberships.apply(one, record(CHANGE_TO_INCLUDE_MODE, B));
    expect(members(B)).toEqual([]);
  });

  it('many records in one report; types that there are not are passed by', () => {
    const records = [CHANGE_TO_EXCLUDE_MODE, 9, MODE_IS_EXCLUDE].map((type, i) => ({
      type,
      group: A + i,
      sources: [],
    }));
    expect(memberships.apply(one, { type: 'report of records', records })).toEqual([A, A + 2]);
    expect(members(A + 1)).toEqual([]);
  });
});

it('links keep their own groups, and nobody joins what is no group', () => {
  for (const address of ['224.0.0.1', '224.0.0.251', '10.1.1.1', '240.0.0.1', '255.255.255.255'])
    expect(memberships.apply(one, report(parseIpv4(address)!))).toEqual([]);
  memberships.apply(one, report(parseIpv4('224.0.1.0')!));
  memberships.apply(one, report(parseIpv4('239.255.255.255')!));
  expect(changes).toHaveLength(2);
});

it('a host has so many groups and no more, until it leaves one', () => {
  for (let i = 0; i < 5; i++) memberships.apply(one, report(A + i));
  expect(refused).toEqual([`gpu01 ${A + 3}`, `gpu01 ${A + 4}`]);
  memberships.apply(one, report(A));
  memberships.apply(two, report(A + 4));
  expect(refused).toHaveLength(2);
  expect(memberships.isFull(one)).toBe(true);
  memberships.apply(one, leave(A));
  memberships.apply(one, report(A + 3));
  expect(members(A + 3)).toEqual(['gpu01']);
});

it('what nobody reports ends, what is reported goes on', () => {
  memberships.apply(one, report(A));
  memberships.apply(two, report(A));
  scheduler.runUntil(LIFETIME_US - 1);
  memberships.apply(two, report(A));
  expect(members(A)).toEqual(['gpu01', 'gpu02']);
  scheduler.runUntil(LIFETIME_US);
  expect(members(A)).toEqual(['gpu02']);
  scheduler.runUntil(2 * LIFETIME_US - 2);
  expect(members(A)).toEqual(['gpu02']);
  scheduler.runUntil(2 * LIFETIME_US);
  expect(members(A)).toEqual([]);
  // A membership that ended and began again has its own time.
  memberships.apply(one, report(A));
  memberships.apply(one, leave(A));
  scheduler.runUntil(2 * LIFETIME_US + 10);
  memberships.apply(one, report(A));
  scheduler.runUntil(3 * LIFETIME_US + 9);
  expect(members(A)).toEqual(['gpu01']);
  memberships.clear();
  scheduler.runUntil(4 * LIFETIME_US);
  expect(changes).toHaveLength(7);
});
