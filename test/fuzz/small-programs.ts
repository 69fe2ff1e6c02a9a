import {
  assign,
  buildJson,
  call,
  callTable,
  expression,
  extract,
  field,
  goTo,
  hex,
  named,
  op,
  send,
  standard,
  valid,
} from '../switch/program-builder.ts';

/** Programs of a few lines, each around something that a program can do: quick to load, so that many damaged ones are. */

const HEADERS = {
  one: [
    ['a', 8],
    ['b', 16],
    ['c', 40],
  ],
  two: [
    ['x', 72],
    ['y', 4, true],
    ['z', 4],
  ],
} as const;

const START = { name: 'start', operations: [extract('one')], transitions: [goTo(null)] } as const;

const loop = buildJson({
  headers: HEADERS,
  scalars: [['turns', 8]],
  states: [
    {
      name: 'start',
      operations: [
        extract('one'),
        call('set', field('scalars', 'turns'), op('+', field('scalars', 'turns'), hex(1))),
        { op: 'verify', parameters: [expression({ op: '<', left: field('scalars', 'turns'), right: hex(9) }), hex(3)] },
      ],
      key: [field('one', 'a'), { type: 'lookahead', value: [4, 8] }],
      transitions: [
        { type: 'hexstr', value: '0x0102', mask: '0xff0f', next_state: 'start' },
        { type: 'hexstr', value: '0x0203', mask: null, next_state: 'more' },
        goTo(null),
      ],
    },
    {
      name: 'more',
      operations: [
        { op: 'advance', parameters: [named('expression', op('*', field('one', 'a'), hex(8)))] },
        extract('two'),
      ],
      key: [field('two', 'x')],
      transitions: [{ type: 'hexstr', value: '0x000000000000000001', mask: null, next_state: 'start' }, goTo('more')],
    },
  ],
  actions: [{ name: 'out', primitives: [send(2)] }],
  ingress: { tables: [callTable('out')] },
});

const tables = buildJson({
  headers: HEADERS,
  states: [START],
  actions: [
    { name: 'out', parameters: [['port', 9]], primitives: [assign(standard('egress_spec'), named('runtime_data', 0))] },
    { name: 'drop', primitives: [call('mark_to_drop', named('header', 'standard_metadata'))] },
    { name: 'set', parameters: [['value', 40]], primitives: [assign(field('one', 'c'), named('runtime_data', 0))] },
  ],
  ingress: {
    start: 'whether',
    conditionals: [
      {
        name: 'whether',
        expression: {
          op: 'and',
          left: expression(valid('one') as never),
          right: expression({ op: '>', left: field('one', 'b'), right: hex(3) }),
        },
        yes: 'exact',
        no: 'mixed',
      },
    ],
    tables: [
      {
        name: 'exact',
        keys: [
          { match: 'exact', field: ['one', 'a'] },
          { match: 'lpm', field: ['one', 'c'] },
        ],
        actions: ['out', 'drop'],
        default: 'drop',
        next: { out: 'mixed', drop: null },
      },
      {
        name: 'mixed',
        keys: [
          { match: 'ternary', field: ['one', 'b'] },
          { match: 'range', field: ['one', 'a'] },
          { match: 'exact', field: ['one', '$valid$'] },
        ],
        actions: ['out', 'set'],
        size: 4,
        entries: [
          {
            match_key: [
              { match_type: 'ternary', key: '0x0001', mask: '0x00ff' },
              { match_type: 'range', start: '0x01', end: '0x04' },
              { match_type: 'exact', key: '0x01' },
            ],
            action_entry: { action_id: 0, action_data: ['0x4'] },
            priority: 1,
          },
        ],
      },
    ],
  },
  egress: {
    tables: [
      { name: 'leave', keys: [{ match: 'exact', field: ['standard_metadata', 'egress_port'] }], actions: ['set'] },
    ],
  },
});

const jumps = buildJson({
  headers: HEADERS,
  scalars: [
    ['n', 32],
    ['wide', 128],
  ],
  states: [START],
  actions: [
    {
      name: 'round',
      primitives: [
        call('_jump_if_zero', op('-', field('one', 'a'), hex(1)), hex(5)),
        assign(field('scalars', 'n'), op('+', field('scalars', 'n'), hex(1))),
        assign(field('scalars', 'wide'), op('<<', field('scalars', 'wide'), field('one', 'a'))),
        call('_jump_if_zero', op('>>', field('scalars', 'n'), hex(2)), hex(1)),
        call('_jump', hex(6)),
        send(4),
        assign(
          field('one', 'c'),
          expression({ op: 'two_comp_mod', left: op('*', field('scalars', 'n'), hex(-7)), right: hex(40) }),
        ),
      ],
    },
    { name: 'out', primitives: [send(2), call('exit')] },
  ],
  ingress: { tables: [callTable('round', 'tbl_out'), callTable('out')] },
});

const stateful = buildJson({
  headers: HEADERS,
  scalars: [
    ['n', 32],
    ['colour', 8],
  ],
  states: [START],
  counters: [{ name: 'c', id: 0, is_direct: false, size: 16 }],
  meters: [{ name: 'm', id: 0, is_direct: false, size: 4, rate_count: 2, type: 'packets' }],
  registers: [
    { name: 'r', id: 0, size: 8, bitwidth: 40 },
    { name: 's', id: 1, size: 8, bitwidth: 12 },
  ],
  calculations: [
    {
      name: 'h',
      id: 0,
      algo: 'crc16',
      input: [field('one', 'b'), field('one', 'c'), { type: 'hexstr', value: '0x7', bitwidth: 9 }],
    },
    { name: 'k', id: 1, algo: 'csum16', input: [field('one', 'b'), field('one', 'c'), { type: 'payload' }] },
  ],
  actions: [
    {
      name: 'all',
      primitives: [
        call('count', named('counter_array', 'c'), field('one', 'a')),
        call('execute_meter', named('meter_array', 'm'), field('one', 'a'), field('scalars', 'colour')),
        call('register_read', field('one', 'c'), named('register_array', 'r'), field('one', 'a')),
        call('register_write', named('register_array', 's'), field('one', 'b'), field('one', 'c')),
        call('modify_field_with_hash_based_offset', field('scalars', 'n'), hex(3), named('calculation', 'h'), hex(17)),
        call('modify_field_rng_uniform', field('one', 'b'), hex(1), field('scalars', 'n')),
        call('log_msg', named('string', 'n {} {}'), {
          type: 'parameters_vector',
          value: [field('scalars', 'n')],
        } as never),
        call('assert', expression({ op: '!=', left: field('one', 'b'), right: hex(0xffff) })),
        send(2),
      ],
    },
  ],
  ingress: { tables: [callTable('all')] },
  checksums: [
    {
      name: 'check',
      id: 0,
      target: ['one', 'b'],
      type: 'generic',
      calculation: 'k',
      verify: true,
      update: true,
      if_cond: null,
    },
  ],
});

export const SMALL_PROGRAMS: readonly unknown[] = [loop, tables, jumps, stateful];
