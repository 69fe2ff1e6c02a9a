import { readFileSync } from 'node:fs';
import { beforeEach, describe, expect, test } from 'vitest';
import type { ActionCall, MatchValue, TableControl } from '../../switch/control.ts';
import { pack, TestDevice } from '../switch/test-device.ts';

const PROGRAM = new URL('programs/resources.json', import.meta.url);

const NAMED = 1;
const COUNTED = 2;
const ADDRESSED = 3;
const ROUTED = 4;
const SPREAD = 5;
const METERED = 6;

const GREEN = 0;
const YELLOW = 1;
const RED = 2;
/** What the program puts there before any meter. */
const UNTOUCHED = 3;

const LENGTH = 30;

let device: TestDevice;

beforeEach(() => {
  device = new TestDevice(readFileSync(PROGRAM));
});

const table = (name: string): TableControl => device.control.tables.get(`ResourcesIngress.${name}`)!;
const call = (action: string, ...params: bigint[]): ActionCall => ({ action: `ResourcesIngress.${action}`, params });
const exact = (value: bigint): MatchValue[] => [{ kind: 'exact', value }];

interface Sent {
  readonly port: number;
  readonly colour: number;
  readonly indirect: number;
}

function send(kind: number, { name = 0n, address = 0n, flow = 0 } = {}): Sent | undefined {
  const bytes = pack([
    [BigInt(kind), 8],
    [name, 72],
    [address, 128],
    [BigInt(flow), 16],
    [0xffn, 8],
    [0xffn, 8],
  ]);
  const sent = device.run(4, bytes);
  expect(sent.length).toBeLessThan(2);
  return sent.map((copy) => ({ port: copy.port, colour: copy.bytes[28]!, indirect: copy.bytes[29]! }))[0];
}

/** Two names that agree in their low 64 bits. */
const NAME = (7n << 64n) | 0x1234n;
const OTHER = (8n << 64n) | 0x1234n;

describe('direct meters', () => {
  // 60 bytes a second committed, 120 at peak: two packets of burst, then four.
  const config = { cir: 60n, cburst: 60n, pir: 120n, pburst: 120n };

  test('colour what hits, each entry by itself, before the action', () => {
    const entry = table('named').insert(exact(NAME), 0, call('metered', 1n));
    table('named').insert(exact(OTHER), 0, call('metered', 2n));
    expect(table('named').hasMeter).toBe(true);
    // Never configured: green.
    expect(send(NAMED, { name: NAME })).toEqual({ port: 1, colour: GREEN, indirect: 0 });
    table('named').configureMeter(entry, config);
    const colours = () => send(NAMED, { name: NAME })!.colour;
    expect([1, 2, 3, 4, 5].map(colours)).toEqual([GREEN, GREEN, YELLOW, YELLOW, RED]);
    expect(send(NAMED, { name: OTHER })!.colour).toBe(GREEN);
    device.nowUs = 500_000;
    expect([1, 2, 3].map(colours)).toEqual([GREEN, YELLOW, RED]);
    expect(table('named').meterConfig(entry)).toEqual(config);
    table('named').configureMeter(entry, undefined);
    expect(colours()).toBe(GREEN);
    expect(table('named').meterConfig(entry)).toBeUndefined();
  });

  test('are kept by a modification, and gone with their entry', () => {
    const first = table('named').insert(exact(NAME), 0, call('metered', 1n));
    table('named').configureMeter(first, { ...config, pburst: 0n, pir: 0n });
    const second = table('named').modify(first, call('metered', 3n));
    expect(send(NAMED, { name: NAME })).toEqual({ port: 3, colour: RED, indirect: 0 });
    table('named').delete(second);
    table('named').insert(exact(NAME), 0, call('metered', 1n));
    expect(send(NAMED, { name: NAME })!.colour).toBe(GREEN);
  });

  test('leave the field alone after a miss, unless the default entry has a meter', () => {
    expect(send(NAMED)).toEqual({ port: 9, colour: UNTOUCHED, indirect: 0 });
    table('named').configureDefaultMeter({ ...config, pburst: 30n });
    expect([send(NAMED)!.colour, send(NAMED)!.colour]).toEqual([GREEN, RED]);
    expect(table('named').defaultMeterConfig()!.pburst).toBe(30n);
    table('named').configureDefaultMeter(undefined);
    expect(send(NAMED)!.colour).toBe(UNTOUCHED);
  });

  test('are refused where a table has none', () => {
    const entry = table('counted').insert(exact(1n), 0, call('forward', 1n));
    expect(() => table('counted').configureMeter(entry, config)).toThrow('no direct meters');
    expect(table('counted').hasMeter).toBe(false);
  });
});

describe('indexed meters', () => {
  test('count packets, and do nothing beyond their size', () => {
    const meter = device.control.meters.get('ResourcesIngress.packets')!;
    expect([...device.control.meters.keys()]).toEqual(['ResourcesIngress.packets']);
    meter.configure(2, { cir: 1n, cburst: 1n, pir: 2n, pburst: 2n });
    const colours = (flow: number) => send(METERED, { flow })!.indirect;
    expect([2, 2, 2, 1].map(colours)).toEqual([GREEN, YELLOW, RED, GREEN]);
    // Whole tokens only: half a second is one of the peak's, none of the committed ones.
    device.nowUs = 500_000;
    expect([2, 2].map(colours)).toEqual([YELLOW, RED]);
    device.nowUs = 999_999;
    expect(colours(2)).toBe(RED);
    device.nowUs = 1_000_000;
    expect(colours(2)).toBe(GREEN);
    expect(colours(4)).toBe(0);
    expect(device.device.statistics.outOfRange).toBe(1);
  });

  test('without a burst are never green', () => {
    const meter = device.control.meters.get('ResourcesIngress.packets')!;
    meter.configure(0, { cir: 1000n, cburst: 0n, pir: 1000n, pburst: 1n });
    expect(send(METERED)!.indirect).toBe(YELLOW);
    meter.configure(0, { cir: 1000n, cburst: 0n, pir: 1000n, pburst: 0n });
    expect(send(METERED)!.indirect).toBe(RED);
  });
});

describe('direct counters and times of last hits', () => {
  test('belong to entries; the default entry counts misses', () => {
    const counted = table('counted');
    const entry = counted.insert(exact(NAME), 0, call('forward', 1n));
    expect(counted.lastHitUs(entry)).toBe(0);
    device.nowUs = 77;
    send(COUNTED, { name: NAME });
    send(COUNTED, { name: OTHER });
    send(COUNTED, { name: OTHER });
    expect(counted.counter(entry)).toEqual({ packets: 1n, bytes: BigInt(LENGTH) });
    expect(counted.defaultCounter()).toEqual({ packets: 2n, bytes: BigInt(2 * LENGTH) });
    expect(counted.lastHitUs(entry)).toBe(77);
    counted.setDefaultCounter({ packets: 5n, bytes: 0n });
    counted.setCounter(entry, { packets: 1n << 40n, bytes: 3n });
    send(COUNTED, { name: NAME });
    send(COUNTED, { name: OTHER });
    expect(counted.counter(entry)).toEqual({ packets: (1n << 40n) + 1n, bytes: BigInt(LENGTH + 3) });
    expect(counted.defaultCounter()).toEqual({ packets: 6n, bytes: BigInt(LENGTH) });
    expect(table('named').defaultCounter()).toBeUndefined();
  });
});

describe('selectors', () => {
  const member = (port: bigint, weight = 1, watchPort?: number) => ({
    ...call('forward', port),
    weight,
    ...(watchPort === undefined ? {} : { watchPort }),
  });
  const ports = (count: number) => Array.from({ length: count }, (_, flow) => send(SPREAD, { name: NAME, flow })?.port);

  test('choose by the hash of the packet, as often as the weights say', () => {
    table('spread').insert(exact(NAME), 0, { selector: [member(1n), member(2n, 2)] });
    expect(ports(6)).toEqual([1, 2, 2, 1, 2, 2]);
  });

  test('leave out members whose watch port is down, until it is up again', () => {
    table('spread').insert(exact(NAME), 0, { selector: [member(1n, 1, 11), member(2n, 1, 12), member(3n)] });
    expect(ports(3)).toEqual([1, 2, 3]);
    device.device.setPortUp(12, false);
    expect(device.device.isPortUp(12)).toBe(false);
    expect(ports(4)).toEqual([1, 3, 1, 3]);
    device.device.setPortUp(11, false);
    expect(ports(2)).toEqual([3, 3]);
    device.device.setPortUp(12, true);
    expect(ports(4)).toEqual([2, 3, 2, 3]);
  });

  test('without an eligible member run no action', () => {
    table('spread').insert(exact(NAME), 0, { selector: [member(1n, 1, 11)] });
    device.device.setPortUp(11, false);
    expect(ports(1)).toEqual([7]);
    device.device.setPortUp(11, true);
    expect(ports(1)).toEqual([1]);
  });

  test('stand beside entries with one action', () => {
    table('spread').insert(exact(NAME), 0, call('forward', 5n));
    expect(ports(3)).toEqual([5, 5, 5]);
  });
});

describe('wide keys', () => {
  test('match in all of their bits', () => {
    table('named').insert(exact(NAME), 0, call('metered', 1n));
    expect(send(NAMED, { name: NAME })!.port).toBe(1);
    expect(send(NAMED, { name: OTHER })!.port).toBe(9);
  });

  test('match by masks and ranges, the higher priority first', () => {
    const high = 0xffn << 120n;
    const all = { kind: 'range', low: 0n, high: 0xffffn } as const;
    table('addressed').insert([{ kind: 'ternary', value: 0xabn << 120n, mask: high }, all], 1, call('forward', 1n));
    table('addressed').insert(
      [
        { kind: 'ternary', value: 0xabn << 120n, mask: high },
        { kind: 'range', low: 10n, high: 20n },
      ],
      5,
      call('forward', 2n),
    );
    table('addressed').insert([{ kind: 'ternary', value: 1n, mask: 1n }, all], 3, call('forward', 3n));
    const port = (address: bigint, flow: number) => send(ADDRESSED, { address, flow })?.port;
    expect(port(0xabn << 120n, 9)).toBe(1);
    expect(port(0xabn << 120n, 10)).toBe(2);
    expect(port((0xabn << 120n) | 1n, 20)).toBe(2);
    expect(port((0xabn << 120n) | 1n, 21)).toBe(3);
    expect(port(2n, 15)).toBeUndefined();
  });

  test('match by their longest prefix', () => {
    const net = 0x20010db8n << 96n;
    for (const [prefixLength, port] of [
      [0, 1n],
      [32, 2n],
      [100, 3n],
      [128, 4n],
    ] as const)
      table('routed').insert([{ kind: 'lpm', value: net, prefixLength }], 0, call('forward', port));
    const port = (address: bigint) => send(ROUTED, { address })?.port;
    expect([1n, net | (1n << 90n), net | 0xfn, net].map(port)).toEqual([1, 2, 3, 4]);
  });
});
