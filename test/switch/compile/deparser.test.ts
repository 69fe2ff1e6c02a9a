import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { FrameMemory } from '../../../switch/runtime/frames.ts';
import {
  assign,
  call,
  callTable,
  extract,
  field,
  hex,
  type Json,
  named,
  op,
  send,
  standard,
} from '../program-builder.ts';
import { pack, TestDevice } from '../test-device.ts';

/** Five headers of different shapes; `e` is never extracted. */
const SHAPES: { readonly [name: string]: readonly (readonly [string, number])[] } = {
  a: [
    ['x', 4],
    ['y', 12],
    ['z', 8],
  ],
  b: [
    ['x', 48],
    ['y', 16],
  ],
  c: [
    ['x', 1],
    ['y', 3],
    ['z', 28],
  ],
  d: [
    ['x', 8],
    ['y', 64],
  ],
  e: [
    ['x', 9],
    ['y', 7],
  ],
};
const NAMES = Object.keys(SHAPES);
const GUARD_BYTES = 8;

interface Plan {
  readonly extracted: readonly string[];
  readonly order: readonly string[];
  readonly removed: readonly string[];
  readonly added: readonly string[];
  readonly written: readonly (readonly [string, string, bigint])[];
  readonly copies: number;
}

const plan: fc.Arbitrary<Plan> = fc.record({
  extracted: fc.shuffledSubarray(['a', 'b', 'c', 'd']),
  order: fc.shuffledSubarray(NAMES, { minLength: 3 }),
  removed: fc.subarray(NAMES),
  added: fc.subarray(NAMES),
  written: fc.array(
    fc
      .constantFrom(...NAMES)
      .chain((name) =>
        fc.tuple(
          fc.constant(name),
          fc.constantFrom(...SHAPES[name]!.map(([fieldName]) => fieldName)),
          fc.bigInt({ min: 0n, max: (1n << 64n) - 1n }),
        ),
      ),
    { maxLength: 5 },
  ),
  copies: fc.integer({ min: 1, max: 3 }),
});

/** @param headroom bytes in front of the frame that it may grow into; those before them must stay as they are */
function run(p: Plan, frame: readonly number[], headroom: number): number[][] {
  const primitives: Json[] = [
    ...p.removed.map((name) => call('remove_header', named('header', name))),
    ...p.added.map((name) => call('add_header', named('header', name))),
    ...p.written.map(([name, fieldName, value]) => assign(field(name, fieldName), hex(value))),
  ];
  const device = new TestDevice({
    headers: SHAPES,
    states: [{ name: 'start', operations: p.extracted.map(extract) }],
    actions: [
      { name: 'in', primitives: [send(1), ...(p.copies > 1 ? [assign(standard('mcast_grp'), hex(1))] : [])] },
      { name: 'out', primitives },
    ],
    ingress: { tables: [callTable('in')] },
    egress: { tables: [callTable('out')] },
    deparser: p.order,
  });
  device.control.setMulticastGroup(
    1,
    Array.from({ length: p.copies }, (_, i) => ({ port: 1, instance: i })),
  );
  const memory = new Uint8Array(GUARD_BYTES + headroom + frame.length).fill(0xee);
  memory.set(frame, GUARD_BYTES + headroom);
  device.device.receiveAt(1, new FrameMemory(memory, headroom), GUARD_BYTES + headroom, memory.length);
  expect(memory.subarray(0, GUARD_BYTES).every((byte) => byte === 0xee)).toBe(true);
  return device.sent.map(({ bytes }) => bytes);
}

/** What has to come out, computed without any of the deparser's shortcuts. */
function model(p: Plan, frame: readonly number[]): number[] {
  const values = new Map<string, bigint[]>();
  let at = 0;
  const bits = (name: string) => SHAPES[name]!.reduce((sum, [, width]) => sum + width, 0);
  for (const name of p.extracted) {
    if (frame.length - at < bits(name) / 8) break;
    const bytes = frame.slice(at, at + bits(name) / 8);
    let all = bytes.reduce((value, byte) => (value << 8n) | BigInt(byte), 0n);
    const fields: bigint[] = [];
    for (const [, width] of [...SHAPES[name]!].reverse()) {
      fields.unshift(BigInt.asUintN(width, all));
      all >>= BigInt(width);
    }
    values.set(name, fields);
    at += bytes.length;
  }
  for (const name of p.removed) values.delete(name);
  for (const name of p.added)
    if (!values.has(name))
      values.set(
        name,
        SHAPES[name]!.map(() => 0n),
      );
  for (const [name, fieldName, value] of p.written) {
    const index = SHAPES[name]!.findIndex(([candidate]) => candidate === fieldName);
    const fields = values.get(name);
    if (fields !== undefined) fields[index] = BigInt.asUintN(SHAPES[name]![index]![1], value);
  }
  const headers = p.order
    .filter((name) => values.has(name))
    .flatMap((name) => pack(values.get(name)!.map((value, i) => [value, SHAPES[name]![i]![1]] as const)));
  return [...headers, ...frame.slice(at)];
}

describe('the deparser', () => {
  test('emits every copy as if it had been put together anew', () => {
    fc.assert(
      fc.property(plan, fc.array(fc.nat(255), { maxLength: 40 }), fc.constantFrom(0, 3, 20), (p, frame, headroom) => {
        const expected = model(p, frame);
        expect(run(p, frame, headroom)).toEqual(Array.from({ length: p.copies }, () => expected));
      }),
      { seed: 99, numRuns: 1000 },
    );
  });

  test('grows into the room in front of the frame, and into no more', () => {
    const device = new TestDevice({
      headers: SHAPES,
      states: [{ name: 'start', operations: ['a', 'd'].map(extract) }],
      actions: [{ name: 'in', primitives: [call('add_header', named('header', 'c')), send(1)] }],
      ingress: { tables: [callTable('in')] },
      deparser: ['a', 'c', 'd'],
    });
    const sentFrom = (headroom: number): { buffer: ArrayBufferLike; given: ArrayBufferLike; bytes: number[] } => {
      const memory = Uint8Array.from({ length: headroom + 20 }, (_, i) => i - headroom);
      let got: Uint8Array = memory;
      device.device.onTransmit = (_port, frame) => {
        got = frame;
      };
      device.device.receiveAt(1, new FrameMemory(memory, headroom), headroom, memory.length);
      return { buffer: got.buffer, given: memory.buffer, bytes: [...got] };
    };
    const expected = [0, 1, 2, 0, 0, 0, 0, ...Array.from({ length: 17 }, (_, i) => i + 3)];
    const inPlace = sentFrom(4);
    expect(inPlace.bytes).toEqual(expected);
    expect(inPlace.buffer).toBe(inPlace.given);
    const copied = sentFrom(3);
    expect(copied.bytes).toEqual(expected);
    expect(copied.buffer).not.toBe(copied.given);
  });

  test('a packet that comes round again and grows each time leaves what stands in front of its room alone', () => {
    const device = new TestDevice({
      headers: { h: [['x', 8]], r: [['value', 64]] },
      states: [{ name: 'start', operations: [extract('h')] }],
      actions: [
        { name: 'in', primitives: [send(1)] },
        {
          name: 'out',
          primitives: [
            call('add_header', named('header', 'r')),
            assign(field('h', 'x'), op('-', field('h', 'x'), hex(1))),
            call('recirculate', hex(1)),
          ],
        },
      ],
      ingress: { tables: [callTable('in')] },
      egress: { tables: [callTable('out')] },
      deparser: ['r', 'h'],
      root: { field_lists: [{ id: 1, name: 'none', elements: [] }] },
    });
    const memory = new Uint8Array(200).fill(0xee);
    device.device.receiveAt(1, new FrameMemory(memory, 8), 150, memory.length);
    expect(memory.subarray(0, 142).every((byte) => byte === 0xee)).toBe(true);
  });

  test('works in the frame itself where nothing moves or it shrinks', () => {
    const same: Plan = { extracted: ['a'], order: ['a'], removed: [], added: [], written: [['a', 'x', 3n]], copies: 1 };
    const sent = (p: Plan): { given: Uint8Array; got: Uint8Array } => {
      const device = new TestDevice({
        headers: SHAPES,
        states: [{ name: 'start', operations: p.extracted.map(extract) }],
        actions: [
          {
            name: 'in',
            primitives: [
              ...p.removed.map((name) => call('remove_header', named('header', name))),
              ...p.written.map(([name, fieldName, value]) => assign(field(name, fieldName), hex(value))),
              send(1),
            ],
          },
        ],
        ingress: { tables: [callTable('in')] },
        deparser: p.order,
      });
      let got = new Uint8Array();
      device.device.onTransmit = (_port, frame) => {
        got = Uint8Array.from(frame);
        expect(frame.buffer).toBe(given.buffer);
      };
      const given = Uint8Array.from({ length: 30 }, (_, i) => i);
      device.device.receive(1, given);
      return { given, got };
    };
    expect([...sent(same).got]).toEqual([0x30, ...Array.from({ length: 29 }, (_, i) => i + 1)]);
    const shrinking: Plan = { ...same, extracted: ['a', 'b'], order: ['a', 'b'], removed: ['b'], written: [] };
    expect([...sent(shrinking).got]).toEqual([0, 1, 2, ...Array.from({ length: 19 }, (_, i) => i + 11)]);
  });
});
