import { crc32 as zlibCrc32 } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import {
  assign,
  call,
  callTable,
  expression,
  extract,
  field,
  hex,
  type Json,
  named,
  op,
  type ProgramSpec,
  send,
} from '../program-builder.ts';
import { pack, TestDevice, unpack } from '../test-device.ts';

/** `h` in, `h` out; the primitives run in ingress. */
function act(primitives: readonly Json[], more: Partial<ProgramSpec> = {}): TestDevice {
  return new TestDevice({
    headers: {
      h: [
        ['a', 8],
        ['b', 8],
        ['c', 16],
        ['d', 32],
        ['e', 64],
      ],
      g: [
        ['x', 16],
        ['y', 40],
      ],
    },
    sameType: { g2: 'g' },
    states: [{ name: 'start', operations: [extract('h')] }],
    actions: [{ name: 'act', primitives: [...primitives, send(1)] }],
    ingress: { tables: [callTable('act')] },
    deparser: ['h', 'g', 'g2'],
    ...more,
  });
}

const h = (values: { a?: number; b?: number; c?: number; d?: number; e?: bigint } = {}): number[] =>
  pack([
    [BigInt(values.a ?? 0), 8],
    [BigInt(values.b ?? 0), 8],
    [BigInt(values.c ?? 0), 16],
    [BigInt(values.d ?? 0), 32],
    [values.e ?? 0n, 64],
  ]);
const run = (device: TestDevice, bytes: readonly number[]): number[] => device.run(3, bytes)[0]!.bytes;
const D = [32, 32] as const;

describe('actions', () => {
  test('jump forward over what does not apply', () => {
    // if (a == 1) b = 10; else b = 20; c = 7
    const device = act([
      call('_jump_if_zero', expression({ op: '==', left: field('h', 'a'), right: hex(1) }), hex(3)),
      assign(field('h', 'b'), hex(10)),
      call('_jump', hex(4)),
      assign(field('h', 'b'), hex(20)),
      assign(field('h', 'c'), hex(7)),
    ]);
    expect(run(device, h({ a: 1 }))).toEqual(h({ a: 1, b: 10, c: 7 }));
    expect(run(device, h({ a: 2 }))).toEqual(h({ a: 2, b: 20, c: 7 }));
  });

  test('jump back as long as it has to be, but not for ever', () => {
    // while (a != 0) { a--; c += 3 }
    const loop = [
      call('_jump_if_zero', expression({ op: 'd2b', left: null, right: field('h', 'a') }), hex(4)),
      assign(field('h', 'a'), op('-', field('h', 'a'), hex(1))),
      assign(field('h', 'c'), op('+', field('h', 'c'), hex(3))),
      call('_jump', hex(0)),
    ];
    expect(run(act(loop), h({ a: 5 }))).toEqual(h({ a: 0, c: 15 }));
    const endless = act([call('_jump', hex(0))]);
    expect(endless.run(3, h())).toEqual([]);
    expect(endless.device.statistics.errors).toBe(1);
  });

  test('go round in loops within loops no longer than in one', () => {
    // a = 255; while (a != 0) a--; called by a table that follows itself: a hundred thousand times 255 turns, if each counted for itself.
    const device = new TestDevice({
      headers: { h: [['a', 8]] },
      states: [{ name: 'start', operations: [extract('h')] }],
      actions: [
        {
          name: 'spin',
          primitives: [
            assign(field('h', 'a'), hex(255)),
            call('_jump_if_zero', expression({ op: 'd2b', left: null, right: field('h', 'a') }), hex(4)),
            assign(field('h', 'a'), op('-', field('h', 'a'), hex(1))),
            call('_jump', hex(1)),
            call('count', named('counter_array', 'c'), hex(0)),
          ],
        },
      ],
      counters: [{ name: 'c', id: 0, is_direct: false, size: 1 }],
      ingress: { tables: [callTable('spin', 'tbl_spin')] },
    });
    expect(device.run(3, [1])).toEqual([]);
    expect(device.device.statistics.errors).toBe(1);
    expect(Number(device.control.counters.get('c')!.read(0).packets)).toBeLessThan(1000);
  });

  test('add, remove and assign headers', () => {
    const device = act([
      call('add_header', named('header', 'g')),
      assign(field('g', 'y'), hex(0x1122334455)),
      call('assign_header', named('header', 'g2'), named('header', 'g')),
      assign(field('g2', 'x'), hex(9)),
      call('remove_header', named('header', 'g')),
    ]);
    expect(run(device, h())).toEqual([...h(), 0, 9, 0x11, 0x22, 0x33, 0x44, 0x55]);
    const invalid = act([
      call('add_header', named('header', 'g2')),
      call('assign_header', named('header', 'g2'), named('header', 'g')),
    ]);
    expect(run(invalid, h())).toEqual(h());
    const again = act([
      call('add_header', named('header', 'g')),
      assign(field('g', 'x'), hex(5)),
      call('add_header', named('header', 'g')),
      call('remove_header', named('header', 'h')),
      call('add_header', named('header', 'h')),
    ]);
    // Adding a valid header changes nothing; one that was removed and added is all zero.
    expect(run(again, h({ a: 1, e: 5n }))).toEqual([...h(), 0, 5, 0, 0, 0, 0, 0]);
  });

  test('compare whole headers', () => {
    const equal = (left: string, right: string): Json =>
      expression({ op: '==', left: named('header', left), right: named('header', right) });
    const device = act([
      assign(field('h', 'a'), expression({ op: 'b2d', left: null, right: equal('g', 'g2') })),
      call('add_header', named('header', 'g')),
      assign(field('h', 'b'), expression({ op: 'b2d', left: null, right: equal('g', 'g2') })),
      call('add_header', named('header', 'g2')),
      assign(field('h', 'c'), expression({ op: 'b2d', left: null, right: equal('g', 'g2') })),
      assign(field('g', 'y'), hex(1)),
      assign(field('h', 'd'), expression({ op: 'b2d', left: null, right: equal('g', 'g2') })),
    ]);
    expect(run(device, h()).slice(0, 8)).toEqual([1, 0, 0, 1, 0, 0, 0, 0]);
  });

  test('read and write registers; beyond the end nothing happens but a count', () => {
    const device = act(
      [
        call('register_read', field('h', 'd'), named('register_array', 'r'), field('h', 'a')),
        call('register_write', named('register_array', 'r'), field('h', 'a'), op('+', field('h', 'd'), hex(1))),
        call('register_read', field('h', 'e'), named('register_array', 'w'), field('h', 'a')),
        call('register_write', named('register_array', 'w'), field('h', 'a'), op('*', field('h', 'e'), hex(3))),
      ],
      {
        registers: [
          { name: 'r', id: 0, size: 4, bitwidth: 32 },
          { name: 'w', id: 1, size: 4, bitwidth: 60 },
        ],
      },
    );
    const r = device.control.registers.get('r')!;
    const w = device.control.registers.get('w')!;
    r.write(2, 0xffff_ffffn);
    w.write(2, (1n << 60n) - 1n);
    expect(unpack(run(device, h({ a: 2 })), ...D)).toBe(0xffff_ffffn);
    expect(r.read(2)).toBe(0n);
    expect(w.read(2)).toBe(BigInt.asUintN(60, ((1n << 60n) - 1n) * 3n));
    expect(unpack(run(device, h({ a: 2 })), ...D)).toBe(0n);
    expect(device.device.statistics.outOfRange).toBe(0);
    expect(unpack(run(device, h({ a: 4, d: 77 })), ...D)).toBe(77n);
    expect(device.device.statistics.outOfRange).toBe(4);
    expect(() => r.read(4)).toThrow(/no cell 4/);
  });

  test('count packets and the bytes that came in', () => {
    const device = act(
      [call('count', named('counter_array', 'c'), field('h', 'a')), call('add_header', named('header', 'g'))],
      {
        counters: [{ name: 'c', id: 0, size: 8, is_direct: false }],
      },
    );
    run(device, [...h({ a: 3 }), 1, 2, 3]);
    run(device, h({ a: 3 }));
    run(device, h({ a: 9 }));
    const counter = device.control.counters.get('c')!;
    expect(counter.read(3)).toEqual({ packets: 2n, bytes: 35n });
    expect(device.device.statistics.outOfRange).toBe(1);
    counter.write(3, { packets: 10n, bytes: 100n });
    run(device, h({ a: 3 }));
    expect(counter.read(3)).toEqual({ packets: 11n, bytes: 116n });
  });

  test('ask meters for a colour', () => {
    const device = act([call('execute_meter', named('meter_array', 'm'), field('h', 'a'), field('h', 'b'))], {
      meters: [{ name: 'm', id: 0, size: 2, is_direct: false, rate_count: 2, type: 'packets' }],
    });
    device.control.meters.get('m')!.configure(1, { cir: 1n, cburst: 1n, pir: 1n, pburst: 2n });
    const colours = (a: number, count: number) => Array.from({ length: count }, () => run(device, h({ a, b: 9 }))[1]);
    expect(colours(0, 4)).toEqual([0, 0, 0, 0]);
    expect(colours(1, 4)).toEqual([0, 1, 2, 2]);
    device.nowUs = 1_000_000;
    expect(colours(1, 2)).toEqual([0, 2]);
    expect(colours(5, 1)).toEqual([9]);
  });

  test('hash: base + H % max, with invalid headers left out', () => {
    const input = [
      { type: 'field', value: ['h', 'a'] },
      { type: 'field', value: ['g', 'x'] },
      { type: 'hexstr', value: '0xabc', bitwidth: 12 },
      { type: 'field', value: ['h', 'd'] },
    ];
    const hash = (base: Json, max: Json): Json =>
      call('modify_field_with_hash_based_offset', field('h', 'e'), base, named('calculation', 'k'), max);
    const calculations = [{ name: 'k', id: 0, algo: 'crc32', input }];
    const without = Buffer.from(
      pack([
        [0x12n, 8],
        [0xabcn, 12],
        [0x89abcdefn, 32],
      ]),
    );
    const e = (device: TestDevice) => unpack(run(device, h({ a: 0x12, d: 0x89abcdef })), 64, 64);
    expect(e(act([hash(hex(5), hex(1n << 32n))], { calculations }))).toBe(BigInt(zlibCrc32(without)) + 5n);
    expect(e(act([hash(hex(0), hex(1000))], { calculations }))).toBe(BigInt(zlibCrc32(without) % 1000));
    expect(e(act([hash(hex(7), hex(0))], { calculations }))).toBe(7n);
    const fromFields = act([hash(field('h', 'a'), field('h', 'd'))], { calculations });
    expect(e(fromFields)).toBe((BigInt(zlibCrc32(without)) % 0x89abcdefn) + 0x12n);
    const withG = Buffer.from(
      pack([
        [0x12n, 8],
        [0x7788n, 16],
        [0xabcn, 12],
        [0x89abcdefn, 32],
      ]),
    );
    const added = [call('add_header', named('header', 'g')), assign(field('g', 'x'), hex(0x7788))];
    expect(e(act([...added, hash(hex(0), hex(1n << 32n))], { calculations }))).toBe(BigInt(zlibCrc32(withG)));
  });

  test('draw random numbers of any width', () => {
    const most = (1n << 128n) - 1n;
    const device = new TestDevice({
      headers: { h: [['w', 128]] },
      states: [{ name: 'start', operations: [extract('h')] }],
      actions: [
        { name: 'draw', primitives: [call('modify_field_rng_uniform', field('h', 'w'), hex(0), hex(most)), send(1)] },
      ],
      ingress: { tables: [callTable('draw')] },
    });
    const drawn = Array.from({ length: 50 }, () =>
      unpack(device.run(3, new Array<number>(16).fill(0))[0]!.bytes, 0, 128),
    );
    expect(new Set(drawn).size).toBe(50);
    expect(drawn.some((value) => value >> 127n === 1n)).toBe(true);
    expect(drawn.some((value) => value >> 127n === 0n)).toBe(true);
  });

  test('draw random numbers within their bounds', () => {
    const device = act([call('modify_field_rng_uniform', field('h', 'b'), field('h', 'a'), hex(12))]);
    const drawn = new Set(Array.from({ length: 200 }, () => run(device, h({ a: 10 }))[1]!));
    expect([...drawn].sort()).toEqual([10, 11, 12]);
    expect(run(device, h({ a: 13, b: 99 }))[1]).toBe(99);
  });

  test('fail the packet when an assertion does', () => {
    const device = act([call('assert', expression({ op: '==', left: field('h', 'a'), right: hex(1) }))]);
    expect(run(device, h({ a: 1 }))).toEqual(h({ a: 1 }));
    expect(device.run(3, h({ a: 2 }))).toEqual([]);
    expect(device.device.statistics).toMatchObject({ errors: 1, transmitted: 1 });
  });
});
