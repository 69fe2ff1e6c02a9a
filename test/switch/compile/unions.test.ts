import { describe, expect, test } from 'vitest';
import {
  assign,
  call,
  callTable,
  expression,
  extract,
  field,
  goTo,
  hex,
  type Json,
  named,
  type StateSpec,
  send,
} from '../program-builder.ts';
import { TestDevice } from '../test-device.ts';

const on = (value: string, next: string | null): Json => ({ type: 'hexstr', value, mask: null, next_state: next });
const union = (name: string): Json => named('header_union', name);
const unionStack = named('header_union_stack', 'us');

/**
 * Unions of a byte and a pair: `u` and `v` on their own, and a stack `us` of two. The headers come in the order u, v, us; a report with a result
 * stands in front.
 */
function unions(states: readonly StateSpec[], primitives: readonly Json[]): TestDevice {
  const members = ['u', 'v', 'us[0]', 'us[1]'];
  const same = Object.fromEntries(
    members.slice(1).flatMap((name) => [
      [`${name}.one`, 'u.one'],
      [`${name}.two`, 'u.two'],
    ]),
  );
  return new TestDevice({
    headers: { kind: [['k', 8]], 'u.one': [['a', 8]], 'u.two': [['a', 16]], report: [['result', 8]] },
    sameType: same,
    scalars: [['result', 8]],
    states,
    actions: [
      {
        name: 'act',
        primitives: [
          ...primitives,
          call('add_header', named('header', 'report')),
          assign(field('report', 'result'), field('scalars', 'result')),
          send(1),
        ],
      },
    ],
    ingress: { tables: [callTable('act')] },
    deparser: ['report', ...members.flatMap((name) => [`${name}.one`, `${name}.two`])],
    root: {
      header_union_types: [
        {
          name: 'U',
          id: 0,
          headers: [
            ['one', 'u.one_t'],
            ['two', 'u.two_t'],
          ],
        },
      ],
      header_unions: members.map((name, id) => ({
        name,
        id,
        union_type: 'U',
        header_ids: id === 0 ? [3, 4] : [498 + 2 * id, 499 + 2 * id],
      })),
      header_union_stacks: [{ name: 'us', id: 0, union_type: 'U', size: 2, header_union_ids: [2, 3] }],
    },
  });
}

const byKind: readonly StateSpec[] = [
  {
    name: 'start',
    operations: [extract('kind')],
    key: [field('kind', 'k')],
    transitions: [on('0x01', 'one'), on('0x02', 'two'), goTo(null)],
  },
  { name: 'one', operations: [extract('u.one')] },
  { name: 'two', operations: [extract('u.two')] },
];
const result = (condition: Json): Json =>
  assign(field('scalars', 'result'), expression({ op: 'b2d', left: null, right: condition }));
const output = (device: TestDevice, bytes: readonly number[]): number[] => device.run(9, bytes)[0]!.bytes;

describe('a header union', () => {
  test('is what was extracted into it', () => {
    const valid = result(expression({ op: 'valid_union', left: null, right: union('u') }));
    const device = unions(byKind, [valid]);
    expect(output(device, [1, 5, 6])).toEqual([1, 5, 6]);
    expect(output(device, [2, 5, 6, 7])).toEqual([1, 5, 6, 7]);
    expect(output(device, [3, 5])).toEqual([0, 5]);
  });

  test('has one valid header at a time', () => {
    const device = unions(byKind, [
      call('add_header', named('header', 'u.two')),
      assign(field('u.two', 'a'), hex(0x0809)),
    ]);
    expect(output(device, [1, 5, 6])).toEqual([0, 8, 9, 6]);
    const again: StateSpec[] = [
      { name: 'start', operations: [extract('u.one'), extract('u.two')], transitions: [goTo(null)] },
    ];
    expect(output(unions(again, []), [1, 2, 3])).toEqual([0, 2, 3]);
    const assigned = unions(byKind, [
      call('add_header', named('header', 'v.two')),
      assign(field('v.two', 'a'), hex(0x0102)),
      call('assign_header', named('header', 'u.two'), named('header', 'v.two')),
    ]);
    expect(output(assigned, [1, 5])).toEqual([0, 1, 2, 1, 2]);
  });

  test('is assigned as a whole, validity and all', () => {
    const device = unions(byKind, [
      call('add_header', named('header', 'v.one')),
      call('assign_union', union('v'), union('u')),
    ]);
    expect(output(device, [1, 5])).toEqual([0, 5, 5]);
    expect(output(device, [2, 5, 6])).toEqual([0, 5, 6, 5, 6]);
    expect(output(device, [3])).toEqual([0]);
  });

  test('equals another if the same header is valid in both, and equal', () => {
    const device = unions(byKind, [
      call('add_header', named('header', 'v.one')),
      assign(field('v.one', 'a'), hex(5)),
      result(expression({ op: '==', left: union('u'), right: union('v') })),
    ]);
    expect(output(device, [1, 5])[0]).toBe(1);
    expect(output(device, [1, 6])[0]).toBe(0);
    expect(output(device, [2, 5, 5])[0]).toBe(0);
    expect(output(device, [3])[0]).toBe(0);
  });

  test('is chosen by a condition', () => {
    const chosen = expression({
      op: '?',
      left: union('u'),
      right: union('v'),
      cond: expression({ op: '==', left: field('kind', 'k'), right: hex(1) }),
    });
    const device = unions(byKind, [
      call('add_header', named('header', 'v.one')),
      call('assign_union', union('us[0]'), chosen),
    ]);
    expect(output(device, [1, 5])).toEqual([0, 5, 0, 5]);
    expect(output(device, [2, 5, 6])).toEqual([0, 5, 6, 0, 0]);
  });
});

describe('a stack of unions', () => {
  const next = (member: string): Json => ({
    op: 'extract',
    parameters: [{ type: 'union_stack', value: ['us', member] }],
  });
  const states: readonly StateSpec[] = [
    {
      name: 'start',
      operations: [extract('kind')],
      key: [field('kind', 'k')],
      transitions: [on('0x01', 'one'), on('0x02', 'two'), goTo(null)],
    },
    {
      name: 'one',
      operations: [next('one')],
      key: [named('union_stack_field', ['us', 'one', 'a'])],
      transitions: [on('0x09', 'start'), goTo(null)],
    },
    { name: 'two', operations: [next('two')], transitions: [goTo('start')] },
  ];
  const at = (index: Json): Json => expression({ op: 'dereference_union_stack', left: unionStack, right: index });
  const member = (index: Json, place: number): Json =>
    expression({ op: 'access_union_header', left: at(index), right: place });

  test('takes unions, each with what it is', () => {
    const device = unions(states, []);
    expect(output(device, [1, 9, 2, 7, 8, 0])).toEqual([0, 9, 7, 8]);
    expect(output(device, [1, 4, 1, 5])).toEqual([0, 4, 1, 5]);
    // The third does not fit.
    expect(output(device, [1, 9, 1, 9, 1, 9])).toEqual([0, 9, 9, 9]);
  });

  test('is shifted, read at an index, and assigned', () => {
    const popped = unions(states, [call('pop', unionStack, hex(1))]);
    expect(output(popped, [1, 9, 2, 7, 8, 0])).toEqual([0, 7, 8]);
    const read = unions(states, [
      assign(
        field('scalars', 'result'),
        expression({ op: 'access_field', left: member(field('kind', 'k'), 0), right: 0 }),
      ),
    ]);
    expect(output(read, [1, 9, 0, 3])).toEqual([9, 9, 3]);
    const pushed = unions(states, [call('push', unionStack, hex(1)), call('assign_union', union('us[0]'), at(hex(1)))]);
    expect(output(pushed, [2, 7, 8, 0])).toEqual([0, 7, 8, 7, 8]);
    const whole = unions(states, [call('assign_union_stack', unionStack, unionStack)]);
    expect(output(whole, [1, 9, 2, 7, 8, 0])).toEqual([0, 9, 7, 8]);
  });
});
