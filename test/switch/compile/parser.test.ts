import { describe, expect, test } from 'vitest';
import {
  assign,
  callTable,
  expression,
  extract,
  field,
  goTo,
  hex,
  type Json,
  named,
  op,
  type StateSpec,
  send,
  standard,
} from '../program-builder.ts';
import { pack, TestDevice, unpack } from '../test-device.ts';

const ERROR = { none: 0, tooShort: 1, timeout: 5, invalidArgument: 6 };

/** Parses, then sends `report` (parser error and a scalar) in front of whatever was not parsed. */
function parserProgram(
  states: readonly StateSpec[],
  further: { readonly deparser?: readonly string[] } = {},
): TestDevice {
  return new TestDevice({
    headers: {
      report: [
        ['error', 8],
        ['seen', 8],
      ],
      h: [
        ['a', 8],
        ['b', 16],
        ['c', 4],
        ['d', 12],
      ],
      w: [
        ['x', 3],
        ['y', 45],
        ['z', 72],
        ['s', 8, true],
      ],
    },
    scalars: [['seen', 8]],
    states,
    actions: [
      {
        name: 'finish',
        primitives: [
          { op: 'add_header', parameters: [named('header', 'report')] },
          assign(field('report', 'error'), standard('parser_error')),
          assign(field('report', 'seen'), field('scalars', 'seen')),
          send(1),
        ],
      },
    ],
    ingress: { tables: [callTable('finish')] },
    deparser: ['report', ...(further.deparser ?? ['h', 'w'])],
  });
}

const set = (value: Json): Json => ({ op: 'set', parameters: [field('scalars', 'seen'), value] });
const on = (value: string, next: string | null, mask: string | null = null): Json => ({
  type: 'hexstr',
  value,
  mask,
  next_state: next,
});
const output = (device: TestDevice, bytes: readonly number[], port = 9): number[] => device.run(port, bytes)[0]!.bytes;

describe('a parser', () => {
  test('of nothing leaves the whole packet as payload', () => {
    expect(output(parserProgram([]), [7, 8, 9])).toEqual([0, 0, 7, 8, 9]);
  });

  test('puts back what it took, whatever the alignment', () => {
    const device = parserProgram([{ name: 'start', operations: [extract('h'), extract('w')] }]);
    const bytes = Array.from({ length: 30 }, (_, i) => (i * 37 + 11) & 255);
    expect(output(device, bytes)).toEqual([ERROR.none, 0, ...bytes]);
  });

  test('that runs out of packet says so; what was extracted stays, the rest is payload', () => {
    const device = parserProgram([{ name: 'start', operations: [extract('h'), extract('w')] }]);
    const bytes = [1, 2, 3, 4, 5, 6, 7];
    expect(output(device, bytes)).toEqual([ERROR.tooShort, 0, ...bytes]);
    expect(output(device, [1, 2])).toEqual([ERROR.tooShort, 0, 1, 2]);
    expect(output(device, [])).toEqual([ERROR.tooShort, 0]);
  });

  test('takes the first transition whose masked value agrees', () => {
    const device = parserProgram([
      {
        name: 'start',
        operations: [extract('h')],
        key: [field('h', 'a'), field('h', 'd')],
        transitions: [on('0x010234', 'one'), on('0xf00000', 'two', '0xf00000'), on('0xff0fff', 'three'), goTo(null)],
      },
      { name: 'one', operations: [set(hex(1))] },
      { name: 'two', operations: [set(hex(2))] },
      { name: 'three', operations: [set(hex(3))] },
    ]);
    const seen = (a: number, d: number) => output(device, [a, 0, 0, d >> 8, d & 255])[1];
    expect(seen(0x01, 0x234)).toBe(1);
    expect(seen(0x01, 0x235)).toBe(0);
    expect(seen(0xf5, 0x111)).toBe(2);
    // The mask comes first.
    expect(seen(0xff, 0xfff)).toBe(2);
  });

  test('takes the default when nothing else agrees, wherever it stands', () => {
    const device = parserProgram([
      {
        name: 'start',
        operations: [extract('h')],
        key: [field('h', 'a')],
        transitions: [goTo('two'), on('0x01', 'one'), goTo('three')],
      },
      { name: 'one', operations: [set(hex(1))] },
      { name: 'two', operations: [set(hex(2))] },
      { name: 'three', operations: [set(hex(3))] },
    ]);
    expect([1, 2].map((a) => output(device, [a, 0, 0, 0, 0])[1])).toEqual([1, 3]);
  });

  test('compares keys wider than a word, and signed ones by their bits', () => {
    const device = parserProgram([
      {
        name: 'start',
        operations: [extract('w')],
        key: [field('w', 'z'), field('w', 's')],
        transitions: [on('0x112233445566778899fe', 'hit'), goTo(null)],
      },
      { name: 'hit', operations: [set(hex(1))] },
    ]);
    const frame = (z: bigint, s: bigint) =>
      pack([
        [5n, 3],
        [6n, 45],
        [z, 72],
        [s, 8],
      ]);
    expect(output(device, frame(0x112233445566778899n, 0xfen))[1]).toBe(1);
    expect(output(device, frame(0x122233445566778899n, 0xfen))[1]).toBe(0);
    expect(output(device, frame(0x112233445566778899n, 0x7en))[1]).toBe(0);
  });

  test('without a matching transition ends where it stands', () => {
    const device = parserProgram([
      { name: 'start', operations: [extract('h')], key: [field('h', 'a')], transitions: [on('0x01', 'more')] },
      { name: 'more', operations: [set(hex(9))] },
    ]);
    expect(output(device, [2, 0, 0, 0, 0])).toEqual([ERROR.none, 0, 2, 0, 0, 0, 0]);
  });

  test('looks ahead without consuming', () => {
    const device = parserProgram([
      {
        name: 'start',
        operations: [set({ type: 'lookahead', value: [12, 8] })],
        key: [{ type: 'lookahead', value: [0, 16] }],
        transitions: [on('0x1234', 'take'), goTo(null)],
      },
      { name: 'take', operations: [extract('h'), set(field('h', 'c'))] },
    ]);
    expect(output(device, [0x12, 0x35, 0x60])).toEqual([ERROR.none, 0x56, 0x12, 0x35, 0x60]);
    expect(output(device, [0x12, 0x34, 0x60, 0x70, 0x80])[1]).toBe(7);
    expect(output(device, [0x12, 0x35])).toEqual([ERROR.tooShort, 0, 0x12, 0x35]);
  });

  test('advances by a constant or a computed number of bits; what it passes is gone', () => {
    const constant = parserProgram([
      { name: 'start', operations: [extract('h'), { op: 'advance', parameters: [hex(16)] }] },
    ]);
    expect(output(constant, [1, 2, 3, 4, 5, 6, 7, 8])).toEqual([ERROR.none, 0, 1, 2, 3, 4, 5, 8]);
    expect(output(constant, [1, 2, 3, 4, 5, 6])).toEqual([ERROR.tooShort, 0, 1, 2, 3, 4, 5, 6]);
    const computed = parserProgram(
      [
        {
          name: 'start',
          operations: [
            extract('h'),
            { op: 'advance', parameters: [expression({ op: '*', left: field('h', 'a'), right: hex(8) })] },
            extract('w'),
          ],
        },
      ],
      { deparser: ['w'] },
    );
    const tail = Array.from({ length: 16 }, (_, i) => i);
    expect(output(computed, [3, 0, 0, 0, 0, 90, 91, 92, ...tail])).toEqual([ERROR.none, 0, ...tail]);
    expect(output(computed, [4, 0, 0, 0, 0, 90, 91, 92])[0]).toBe(ERROR.tooShort);
    const odd = parserProgram([
      { name: 'start', operations: [extract('h'), { op: 'advance', parameters: [field('h', 'a')] }] },
    ]);
    expect(output(odd, [5, 0, 0, 0, 0, 1])[0]).toBe(ERROR.invalidArgument);
    expect(output(odd, [8, 0, 0, 0, 0, 1])).toEqual([ERROR.none, 0, 8, 0, 0, 0, 0]);
  });

  test('verifies, and ends with the error that the program names', () => {
    const device = parserProgram([
      {
        name: 'start',
        operations: [
          extract('h'),
          { op: 'verify', parameters: [op('<', field('h', 'a'), hex(10)), hex(77)] },
          set(hex(1)),
        ],
      },
    ]);
    expect(output(device, [9, 0, 0, 0, 0]).slice(0, 2)).toEqual([ERROR.none, 1]);
    expect(output(device, [10, 0, 0, 0, 0]).slice(0, 2)).toEqual([77, 0]);
  });

  test('loops as long as there is something to take', () => {
    const device = parserProgram(
      [
        {
          name: 'start',
          operations: [extract('h'), set(op('+', field('scalars', 'seen'), hex(1)))],
          key: [field('h', 'a')],
          transitions: [on('0x01', 'start'), goTo(null)],
        },
      ],
      { deparser: ['h'] },
    );
    const one = [1, 0, 0, 0, 0];
    const end = [2, 0, 0, 0, 9];
    expect(output(device, [...one, ...one, ...end, 55])).toEqual([ERROR.none, 3, ...end, 55]);
    expect(output(device, [...one, ...one])[0]).toBe(ERROR.tooShort);
  });

  test('that would loop for ever is stopped', () => {
    const device = parserProgram([{ name: 'start', transitions: [goTo('start')] }]);
    expect(output(device, [4])).toEqual([ERROR.timeout, 0, 4]);
  });

  test('meets again after paths of different lengths', () => {
    const device = parserProgram([
      {
        name: 'start',
        key: [{ type: 'lookahead', value: [0, 8] }],
        transitions: [on('0x07', 'long'), goTo('wide')],
      },
      { name: 'long', operations: [extract('h')], transitions: [goTo('wide')] },
      { name: 'wide', operations: [extract('w'), set(field('w', 's'))] },
    ]);
    const wide = pack([
      [1n, 3],
      [2n, 45],
      [3n, 72],
      [200n, 8],
    ]);
    expect(output(device, wide)).toEqual([ERROR.none, 200, ...wide]);
    expect(output(device, [7, 1, 2, 3, 4, ...wide])).toEqual([ERROR.none, 200, 7, 1, 2, 3, 4, ...wide]);
    expect(unpack(wide, 3, 45)).toBe(2n);
  });
});
