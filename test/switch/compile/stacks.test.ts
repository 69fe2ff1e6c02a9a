import { describe, expect, test } from 'vitest';
import {
  assign,
  call,
  callTable,
  expression,
  field,
  goTo,
  hex,
  type Json,
  named,
  op,
  send,
  standard,
} from '../program-builder.ts';
import { TestDevice } from '../test-device.ts';

const ERROR = { none: 0, tooShort: 1, stackOutOfBounds: 3 };
const SIZE = 3;
const stack = named('header_stack', 's');
const extractNext: Json = { op: 'extract', parameters: [{ type: 'stack', value: 's' }] };
const last = named('stack_field', ['s', 'label']);
const element = (index: Json): Json => expression({ op: 'dereference_header_stack', left: stack, right: index });
const labelAt = (index: Json): Json => expression({ op: 'access_field', left: element(index), right: 0 });
const bottom = (next: string): Json => ({ type: 'hexstr', value: '0x01', mask: null, next_state: next });

/**
 * Labels of 24 bits and a bottom mark of 8 in a stack of three, extracted up to the mark, then whatever the actions do. A report of parser error
 * and result comes first.
 */
function labelled(primitives: readonly Json[]): TestDevice {
  return new TestDevice({
    headers: {
      report: [
        ['error', 8],
        ['result', 24],
      ],
      's[0]': [
        ['label', 24],
        ['bottom', 8],
      ],
    },
    sameType: { 's[1]': 's[0]', 's[2]': 's[0]', 't[0]': 's[0]', 't[1]': 's[0]', 't[2]': 's[0]' },
    scalars: [['result', 24]],
    states: [
      {
        name: 'start',
        operations: [extractNext],
        key: [named('stack_field', ['s', 'bottom'])],
        transitions: [bottom('end'), goTo('start')],
      },
      { name: 'end', operations: [{ op: 'set', parameters: [field('scalars', 'result'), last] }] },
    ],
    actions: [
      {
        name: 'act',
        primitives: [
          ...primitives,
          call('add_header', named('header', 'report')),
          assign(field('report', 'error'), standard('parser_error')),
          assign(field('report', 'result'), field('scalars', 'result')),
          send(1),
        ],
      },
    ],
    ingress: { tables: [callTable('act')] },
    deparser: ['report', 's[0]', 's[1]', 's[2]', 't[0]', 't[1]', 't[2]'],
    root: {
      header_stacks: [
        { name: 's', id: 0, header_type: 's[0]_t', size: SIZE, header_ids: [3, 500, 501] },
        { name: 't', id: 1, header_type: 's[0]_t', size: SIZE, header_ids: [502, 503, 504] },
      ],
    },
  });
}

const label = (value: number, mark = 0): number[] => [0, 0, value, mark];
const output = (device: TestDevice, bytes: readonly number[]): number[] => device.run(9, bytes)[0]!.bytes;
const none = [ERROR.none, 0, 0];

describe('a header stack', () => {
  test('takes one header after the other; the last is the one that was taken last', () => {
    const device = labelled([]);
    const bytes = [...label(1), ...label(2), ...label(3, 1), 77];
    expect(output(device, bytes)).toEqual([...none, 3, ...bytes]);
    expect(output(device, [...label(5, 1), 77])).toEqual([...none, 5, ...label(5, 1), 77]);
  });

  test('is out of bounds when it is full; what it has stays', () => {
    const bytes = [...label(1), ...label(2), ...label(3), ...label(4, 1)];
    expect(output(labelled([]), bytes)).toEqual([ERROR.stackOutOfBounds, 0, 0, 0, ...bytes]);
    expect(output(labelled([]), label(1))).toEqual([ERROR.tooShort, 0, 0, 0, ...label(1)]);
  });

  test('has no last before anything is taken', () => {
    const device = new TestDevice({
      headers: { 's[0]': [['label', 24]], report: [['error', 8]] },
      scalars: [['result', 24]],
      states: [{ name: 'start', operations: [{ op: 'set', parameters: [field('scalars', 'result'), last] }] }],
      actions: [
        {
          name: 'act',
          primitives: [
            call('add_header', named('header', 'report')),
            assign(field('report', 'error'), standard('parser_error')),
            send(1),
          ],
        },
      ],
      ingress: { tables: [callTable('act')] },
      deparser: ['report'],
      root: { header_stacks: [{ name: 's', id: 0, header_type: 's[0]_t', size: 1, header_ids: [2] }] },
    });
    expect(output(device, [])).toEqual([ERROR.stackOutOfBounds]);
  });

  const three = [...label(1), ...label(2), ...label(3, 1)];
  const pushed = (count: Json) => output(labelled([call('push', stack, count)]), [...three, 7]).slice(4);
  const popped = (count: Json) => output(labelled([call('pop', stack, count)]), [...three, 7]).slice(4);

  test('is shifted as a whole; what comes in is invalid, what goes over the end is lost', () => {
    expect(pushed(hex(0))).toEqual([...three, 7]);
    expect(pushed(hex(1))).toEqual([...label(1), ...label(2), 7]);
    expect(pushed(hex(2))).toEqual([...label(1), 7]);
    expect(pushed(hex(9))).toEqual([7]);
    expect(popped(hex(1))).toEqual([...label(2), ...label(3, 1), 7]);
    expect(popped(hex(3))).toEqual([7]);
    // A count that only the packet tells
    const at = field('s[0]', 'bottom');
    expect(pushed(at)).toEqual([...three, 7]);
    expect(popped(op('+', at, hex(2)))).toEqual([...label(3, 1), 7]);
  });

  test('keeps values in place that are written after it was shifted', () => {
    const device = labelled([
      call('push', stack, hex(1)),
      call('add_header', named('header', 's[0]')),
      assign(field('s[0]', 'label'), hex(9)),
      assign(field('s[2]', 'label'), op('+', field('s[2]', 'label'), hex(40))),
    ]);
    expect(output(device, [...label(1), ...label(2, 1), 7])).toEqual([
      ...none,
      2,
      ...label(9),
      ...label(1),
      ...label(42, 1),
      7,
    ]);
  });

  test('counts what was taken: index of the last, and size', () => {
    const index = labelled([
      assign(field('scalars', 'result'), expression({ op: 'last_stack_index', left: null, right: stack })),
    ]);
    expect(output(index, three).slice(1, 4)).toEqual([0, 0, 2]);
    const size = labelled([
      call('pop', stack, hex(1)),
      assign(field('scalars', 'result'), expression({ op: 'size_stack', left: null, right: stack })),
    ]);
    expect(output(size, three).slice(1, 4)).toEqual([0, 0, 2]);
  });

  test('is read and written at an index that the packet tells', () => {
    const read = labelled([assign(field('scalars', 'result'), labelAt(field('s[0]', 'label')))]);
    for (const [index, value] of [
      [1, 50],
      [2, 51],
    ] as const)
      expect(output(read, [...label(index), ...label(50), ...label(51, 1)])[3]).toBe(value);
    const write = labelled([assign(labelAt(field('s[0]', 'label')), hex(0x99))]);
    expect(output(write, [...label(2), ...label(50), ...label(51, 1)]).slice(4)).toEqual([
      ...label(2),
      ...label(50),
      ...label(0x99, 1),
    ]);
    // Beyond the end nothing is written.
    const beyond = [...label(3), ...label(50), ...label(51, 1)];
    expect(output(write, beyond).slice(4)).toEqual(beyond);
  });

  test('tells whether an element is valid, and whether two are equal', () => {
    const test = (condition: Json): number =>
      output(labelled([assign(field('scalars', 'result'), expression({ op: 'b2d', left: null, right: condition }))]), [
        ...label(1),
        ...label(1),
        ...label(2, 1),
      ])[3]!;
    const validAt = (index: number): Json => expression({ op: 'valid', left: null, right: element(hex(index)) });
    expect(test(validAt(2))).toBe(1);
    expect(test(expression({ op: '==', left: element(field('s[0]', 'label')), right: named('header', 's[0]') }))).toBe(
      1,
    );
    expect(test(expression({ op: '==', left: element(hex(2)), right: named('header', 's[0]') }))).toBe(0);
  });

  test('is assigned with its validity and its size', () => {
    const other = named('header_stack', 't');
    const device = labelled([
      call('assign_header_stack', other, stack),
      call('remove_header', named('header', 's[0]')),
      assign(field('scalars', 'result'), expression({ op: 'size_stack', left: null, right: other })),
    ]);
    expect(output(device, [...label(1), ...label(2, 1), 7])).toEqual([
      ...none,
      2,
      ...label(2, 1),
      ...label(1),
      ...label(2, 1),
      7,
    ]);
  });
});
