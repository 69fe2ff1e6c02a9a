import { beforeEach, describe, expect, it } from 'vitest';
import { VirtualScheduler } from '../../../base/clock.ts';
import { DdfError } from '../../../base/errors.ts';
import { createLogger } from '../../../base/logger.ts';
import { type MulticastOptions, MulticastRouting } from '../../../controller/fabric/multicast.ts';
import { EntityFactory } from '../../../controller/tables/entities.ts';
import { FIRST_MULTICAST_GROUP } from '../../../controller/tables/forwarding.ts';
import { FabricGraph } from '../../../controller/topology/graph.ts';
import { readFabricProgram } from '../../../lab/p4-program.ts';
import { IP_MULTICAST_SIZE } from '../../../p4/build/constants.ts';
import type { Entity } from '../../../wire/p4runtime/messages.ts';
import { formatMac, parseIpv4, parseMac } from '../../../wire/packet/addresses.ts';
import { parseEthernet } from '../../../wire/packet/ethernet.ts';
import { buildIgmpFrame, type IgmpMessage, parseIgmp } from '../../../wire/packet/igmp.ts';
import { parseIpv4Packet } from '../../../wire/packet/ipv4.ts';
import { leafSpine } from '../planner/fixture.ts';

const graph = new FabricGraph(leafSpine());
const factory = new EntityFactory(readFabricProgram().index);
const SECOND = 1_000_000;
const FLUSHED_US = 20_000;

let scheduler: VirtualScheduler;
/** By owner, then switch: the ports of the multicast group, and its number. */
let wanted: Map<string, Map<string, { ports: number[]; number: number }>>;
let calls: string[];
let sent: { at: string; port: number; frame: Uint8Array; us: number }[];
let warnings: string[];
let full: (owner: string) => boolean;
let routing: MulticastRouting;

function start(options: MulticastOptions = {}): void {
  scheduler = new VirtualScheduler();
  wanted = new Map();
  calls = [];
  sent = [];
  warnings = [];
  full = () => false;
  const logger = Object.assign(createLogger('silent'), {
    warn: (_fields: object, text: string) => void warnings.push(text),
  });
  routing = new MulticastRouting({
    ...options,
    graph,
    factory,
    scheduler,
    logger,
    switches: {
      want(owner, entities) {
        calls.push(`${owner} ${[...entities.keys()].sort().join()}`);
        if (full(owner)) {
          wanted.delete(owner);
          throw new DdfError('TABLE_FULL', 'no room', { where: 'leaf1' });
        }
        const on = wanted.get(owner) ?? new Map();
        wanted.set(owner, on);
        for (const [name, list] of entities) on.set(name, groupIn(list));
      },
      withdraw: (owner) => void wanted.delete(owner),
      send: (at, port, frame) => void sent.push({ at, port, frame, us: scheduler.nowUs() }),
    },
  });
}

function groupIn(entities: readonly Entity[]): { ports: number[]; number: number } {
  const group = entities[0]!.packetReplicationEngineEntry!.multicastGroupEntry!;
  expect(entities[1]!.tableEntry).toBeDefined();
  return {
    number: group.multicastGroupId,
    ports: group.replicas.map(({ port }) => Number.parseInt(Buffer.from(port!).toString('hex'), 16)),
  };
}

function say(name: string, message: IgmpMessage, change: (frame: Uint8Array) => void = () => {}): void {
  const host = graph.host(name);
  const frame = buildIgmpFrame(
    { sourceMac: parseMac(host.mac)!, sourceIp: parseIpv4(host.ip)!, destinationIp: 0xe0000016 },
    message,
  );
  change(frame);
  routing.receive(host.switch, host.port, frame);
}
const address = (group: string): number => parseIpv4(group)!;
const join = (name: string, group: string): void => say(name, { type: 'report', version: 2, group: address(group) });
const leave = (name: string, group: string): void => say(name, { type: 'leave', group: address(group) });
const settle = (): void => scheduler.runUntil(scheduler.nowUs() + FLUSHED_US);
const owners = (): string[] => [...wanted.keys()].sort();
const portsOn = (group: string, name: string): number[] | undefined =>
  wanted.get(`multicast:${group}`)?.get(name)?.ports;

beforeEach(() => start());

describe('membership', () => {
  it('puts a group on the switches, changes only those where something changed, and takes it away with the last member', () => {
    join('gpu01', '239.1.2.3');
    settle();
    expect(portsOn('239.1.2.3', 'leaf1')).toEqual([graph.host('gpu01').port]);
    // Hosts everywhere can send to it.
    for (const name of ['leaf2', 'leaf3', 'leaf4']) expect(portsOn('239.1.2.3', name)).toHaveLength(1);
    expect(routing.groups()).toEqual([{ group: '239.1.2.3', members: ['gpu01'], replicated: true }]);
    calls = [];
    join('gpu02', '239.1.2.3');
    settle();
    expect(calls).toEqual(['multicast:239.1.2.3 leaf1']);
    expect(portsOn('239.1.2.3', 'leaf1')).toEqual([graph.host('gpu01').port, graph.host('gpu02').port]);
    leave('gpu01', '239.1.2.3');
    settle();
    expect(portsOn('239.1.2.3', 'leaf1')).toEqual([graph.host('gpu02').port]);
    leave('gpu02', '239.1.2.3');
    settle();
    expect(owners()).toEqual([]);
    expect(routing.groups()).toEqual([]);
  });

  it('says nothing to the switches when a host reports again, or joins and leaves at once', () => {
    join('gpu01', '239.1.2.3');
    settle();
    calls = [];
    join('gpu01', '239.1.2.3');
    join('gpu02', '239.1.2.4');
    leave('gpu02', '239.1.2.4');
    settle();
    expect(calls).toEqual([]);
  });

  it('ends when nobody has reported it for two queries and an answer', () => {
    join('gpu01', '239.1.2.3');
    scheduler.runUntil(260 * SECOND - 1);
    expect(owners()).toHaveLength(1);
    scheduler.runUntil(260 * SECOND + FLUSHED_US);
    expect(owners()).toEqual([]);
  });

  it('changes groups a few at a time', () => {
    for (let i = 0; i < 40; i++) join('gpu01', `239.1.2.${i}`);
    scheduler.runUntil(10_000);
    expect(owners()).toHaveLength(4);
    scheduler.runUntil(100_000);
    expect(owners()).toHaveLength(40);
    const numbers = [...wanted.values()].map((on) => on.get('leaf1')!.number);
    expect(new Set(numbers).size).toBe(40);
    expect(Math.min(...numbers)).toBeGreaterThanOrEqual(FIRST_MULTICAST_GROUP);
    expect(Math.max(...numbers)).toBeLessThan(FIRST_MULTICAST_GROUP + IP_MULTICAST_SIZE);
  });

  it('does not use a number again at once', () => {
    join('gpu01', '239.1.2.3');
    settle();
    const first = wanted.get('multicast:239.1.2.3')!.get('leaf1')!.number;
    leave('gpu01', '239.1.2.3');
    join('gpu01', '239.1.2.4');
    settle();
    expect(wanted.get('multicast:239.1.2.4')!.get('leaf1')!.number).not.toBe(first);
  });
});

describe('bad input', () => {
  it('counts what is no IGMP of a neighbour, and what comes by a port without a host', () => {
    const report: IgmpMessage = { type: 'report', version: 2, group: address('239.1.2.3') };
    say('gpu01', report, (frame) => {
      frame[38] ^= 1;
    });
    say('gpu01', report, (frame) => {
      frame[14] = 0x65;
    });
    say('gpu01', report, (frame) => {
      // Time to live 2: the checksum's upper byte is one less.
      frame[22]!++;
      frame[24]!--;
    });
    routing.receive('leaf1', 1, new Uint8Array(5));
    routing.receive('leaf1', 400, buildIgmpFrame({ sourceMac: 1, sourceIp: 1, destinationIp: 0xe0000016 }, report));
    routing.receive('spine1', 1, buildIgmpFrame({ sourceMac: 1, sourceIp: 1, destinationIp: 0xe0000016 }, report));
    settle();
    expect(routing.counts).toEqual({ reports: 0, malformed: 6, refused: 0 });
    expect(calls).toEqual([]);
  });

  it('bounds the groups of a host, and says so once until it has left one', () => {
    start({ groupsPerHost: 2 });
    for (let i = 0; i < 5; i++) join('gpu01', `239.1.2.${i}`);
    join('gpu02', '239.1.2.9');
    settle();
    expect(owners()).toHaveLength(3);
    expect(routing.counts.refused).toBe(3);
    expect(warnings).toHaveLength(1);
    leave('gpu01', '239.1.2.0');
    join('gpu01', '239.1.2.3');
    join('gpu01', '239.1.2.4');
    settle();
    expect(warnings).toHaveLength(2);
    expect(owners()).toContain('multicast:239.1.2.3');
  });
});

describe('full switches', () => {
  it('refuse a group, which is said once; the others stay, and it is tried again when there is room', () => {
    join('gpu01', '239.1.2.1');
    settle();
    full = (owner) => owner !== 'multicast:239.1.2.1' && wanted.size > 0;
    join('gpu01', '239.1.2.2');
    join('gpu02', '239.1.2.3');
    settle();
    expect(owners()).toEqual(['multicast:239.1.2.1']);
    expect(warnings).toHaveLength(2);
    expect(routing.groups().map(({ replicated }) => replicated)).toEqual([true, false, false]);
    calls = [];
    scheduler.runUntil(10 * SECOND);
    expect(calls).toEqual([]);
    // With the next report it is tried again, quietly.
    join('gpu01', '239.1.2.2');
    settle();
    expect(calls).toHaveLength(1);
    expect(warnings).toHaveLength(2);
    leave('gpu01', '239.1.2.1');
    settle();
    settle();
    expect(owners()).toEqual(['multicast:239.1.2.3']);
    // Who leaves a refused group is not tried again.
    leave('gpu01', '239.1.2.2');
    settle();
    calls = [];
    leave('gpu02', '239.1.2.3');
    settle();
    settle();
    expect(calls).toEqual([]);
  });
});

describe('queries', () => {
  it('go to every host of a leaf: at once, soon again, then now and then', () => {
    routing.switchReady('leaf1');
    routing.switchReady('spine1');
    const hosts = graph.hostsOf('leaf1');
    expect(sent.map(({ at, port }) => [at, port])).toEqual(hosts.map(({ port }) => ['leaf1', port]));
    scheduler.runUntil(300 * SECOND);
    const times = sent.filter(({ port }) => port === hosts[0]!.port).map(({ us }) => us / SECOND);
    expect(times).toEqual([0, 31.25, 156.25, 281.25]);
    const queries = sent
      .filter(({ port }) => port === hosts[0]!.port)
      .map(({ frame }) => {
        const ethernet = parseEthernet(frame);
        if (typeof ethernet === 'string') throw new Error(ethernet);
        expect(formatMac(ethernet.destination)).toBe('01:00:5e:00:00:01');
        const packet = parseIpv4Packet(ethernet.payload);
        if (typeof packet === 'string') throw new Error(packet);
        expect(packet).toMatchObject({ source: parseIpv4(graph.switch('leaf1').ip), timeToLive: 1 });
        return parseIgmp(packet.payload);
      });
    expect(queries[0]).toMatchObject({ type: 'query', version: 3, group: 0, maxResponseTenths: 10, robustness: 2 });
    expect(queries[2]).toMatchObject({ maxResponseTenths: 100, intervalSeconds: 125 });
  });

  it('begin anew with a switch that comes back, and end with the controller', () => {
    start({ queryIntervalUs: 10 * SECOND, robustness: 3 });
    routing.switchReady('leaf1');
    scheduler.runUntil(4 * SECOND);
    routing.switchReady('leaf1');
    scheduler.runUntil(20 * SECOND);
    const first = graph.hostsOf('leaf1')[0]!.port;
    expect(sent.filter(({ port }) => port === first).map(({ us }) => us / SECOND)).toEqual([0, 2.5, 4, 6.5, 9, 19]);
    join('gpu01', '239.1.2.3');
    routing.stop();
    const before = sent.length;
    scheduler.runUntil(100 * SECOND);
    expect(sent).toHaveLength(before);
    expect(calls).toEqual([]);
  });
});
