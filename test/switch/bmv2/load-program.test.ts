import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { DdfError } from '../../../base/errors.ts';
import { loadProgram } from '../../../switch/bmv2/load-program.ts';
import { compileProgram } from '../../../switch/compile/compile-program.ts';
import {
  assign,
  buildJson,
  call,
  callTable,
  encode,
  expression,
  extract,
  field,
  goTo,
  hex,
  named,
  send,
  standard,
} from '../program-builder.ts';

type Loose = { [key: string]: Loose } & Loose[];

/** A program with something of everything. */
function sample(): { [key: string]: unknown } {
  const json = buildJson({
    headers: {
      h: [
        ['a', 8],
        ['b', 24],
      ],
    },
    scalars: [['s', 32]],
    states: [
      {
        name: 'start',
        operations: [extract('h'), { op: 'advance', parameters: [hex(16)] }],
        key: [field('h', 'a')],
        transitions: [{ type: 'hexstr', value: '0x01', mask: null, next_state: 'more' }, goTo(null)],
      },
      { name: 'more' },
    ],
    actions: [
      {
        name: 'go',
        parameters: [['port', 9]],
        primitives: [assign(standard('egress_spec'), named('runtime_data', 0))],
      },
      { name: 'count', primitives: [call('count', named('counter_array', 'c'), hex(1)), send(3)] },
    ],
    counters: [{ name: 'c', id: 0, size: 4, is_direct: false }],
    meters: [{ name: 'm', id: 0, size: 4, is_direct: false, rate_count: 2, type: 'bytes' }],
    registers: [{ name: 'r', id: 0, size: 4, bitwidth: 32 }],
    calculations: [{ name: 'k', id: 0, algo: 'crc16', input: [{ type: 'field', value: ['h', 'a'] }] }],
    ingress: {
      tables: [
        {
          name: 't',
          keys: [{ match: 'ternary', field: ['h', 'a'] }],
          actions: ['go', 'count'],
          default: 'count',
          after: 'tbl_count',
          entries: [
            {
              match_key: [{ match_type: 'ternary', key: '0x10', mask: '0xf0' }],
              action_entry: { action_id: 0, action_data: ['0x5'] },
              priority: 1,
            },
          ],
        },
        callTable('count'),
      ],
      conditionals: [
        { name: 'if', expression: { op: '==', left: field('h', 'a'), right: hex(1) }, yes: 't', no: null },
      ],
    },
    checksums: [
      {
        name: 'x',
        id: 0,
        target: ['h', 'b'],
        type: 'generic',
        calculation: 'k',
        verify: false,
        update: true,
        if_cond: null,
      },
    ],
  });
  // Shares nothing with other samples: tests change it.
  return JSON.parse(JSON.stringify(json)) as { [key: string]: unknown };
}

function refusal(change: (json: Loose) => void): DdfError {
  const json = sample();
  change(json as unknown as Loose);
  try {
    loadProgram(encode(json));
  } catch (error) {
    if (error instanceof DdfError) return error;
    throw error;
  }
  throw new Error('the program was accepted');
}

/** `entries` is also a method of arrays, so that the type above cannot say it. */
const firstEntry = (json: Loose): Loose => (json.pipelines![0]!.tables![0]! as { entries?: unknown }).entries as Loose;

const put = (target: Loose, key: string | number, value: unknown): void => {
  (target as { [key: string | number]: unknown })[key] = value;
};

describe('a bmv2 JSON', () => {
  test('of ours loads, with names resolved', () => {
    const program = loadProgram(encode(sample()));
    expect(program.tables.map((table) => table.name)).toEqual(['t', 'tbl_count']);
    const [table] = program.tables;
    expect(table!.next.kind === 'action' && table!.next.byAction.get(program.actions[0]!)).toBe(program.tables[1]);
    expect(table!.entries[0]).toMatchObject({ priority: 1, match: [{ kind: 'ternary', value: 0x10n, mask: 0xf0n }] });
    expect(program.deparser.map((header) => header.name)).toEqual(['h']);
  });

  test('of the fabric loads', () => {
    const program = loadProgram(readFileSync(new URL('../../../p4/build/fabric.json', import.meta.url)));
    expect(program.tables.length).toBeGreaterThan(10);
  });

  const wrong: readonly (readonly [string, string, (json: Loose) => void])[] = [
    ['$', 'headers is missing', (j) => delete (j as { headers?: unknown }).headers],
    ['$.headers[2].header_type', 'type unknown', (j) => put(j.headers![2]!, 'header_type', 'nope')],
    ['$.headers[2].header_type', 'not whole bytes', (j) => put(j.header_types![2]!, 'fields', [['a', 3]])],
    [
      '$.headers[2].header_type',
      'field twice',
      (j) =>
        put(j.header_types![2]!, 'fields', [
          ['a', 8],
          ['a', 8],
        ]),
    ],
    ['$.header_types[2].fields[0][1]', 'no width', (j) => put(j.header_types![2]!.fields![0]!, 1, 0)],
    ['$.headers[2].name', 'name twice', (j) => put(j.headers![2]!, 'name', 'scalars')],
    ['$.parsers[0].init_state', 'state unknown', (j) => put(j.parsers![0]!, 'init_state', 'nope')],
    [
      '$.parsers[0].parse_states[0].transitions[0].next_state',
      'state unknown',
      (j) => put(j.parsers![0]!.parse_states![0]!.transitions![0]!, 'next_state', 'nope'),
    ],
    [
      '$.parsers[0].parse_states[0].transitions[0].value',
      'value too wide',
      (j) => put(j.parsers![0]!.parse_states![0]!.transitions![0]!, 'value', '0x100'),
    ],
    [
      '$.parsers[0].parse_states[0].transition_key[0].value[1]',
      'field unknown',
      (j) => put(j.parsers![0]!.parse_states![0]!.transition_key![0]!.value!, 1, 'z'),
    ],
    [
      '$.actions[0].primitives[0].parameters[1].value',
      'parameter unknown',
      (j) => put(j.actions![0]!.primitives![0]!.parameters![1]!, 'value', 1),
    ],
    [
      '$.actions[0].primitives[0].parameters',
      'operands missing',
      (j) => put(j.actions![0]!.primitives![0]!, 'parameters', []),
    ],
    [
      '$.actions[1].primitives[0].parameters[0].value',
      'counter unknown',
      (j) => put(j.actions![1]!.primitives![0]!.parameters![0]!, 'value', 'z'),
    ],
    [
      '$.actions[1].primitives[0].parameters[1].value',
      'not hexadecimal',
      (j) => put(j.actions![1]!.primitives![0]!.parameters![1]!, 'value', '0xzz'),
    ],
    ['$.actions[1].id', 'id twice', (j) => put(j.actions![1]!, 'id', 0)],
    ['$.pipelines[0].init_table', 'table unknown', (j) => put(j.pipelines![0]!, 'init_table', 'z')],
    [
      '$.pipelines[0].tables[0].next_tables',
      'action without successor',
      (j) => put(j.pipelines![0]!.tables![0]!, 'next_tables', { go: null }),
    ],
    [
      '$.pipelines[0].tables[0].next_tables.go',
      'successor unknown',
      (j) => put(j.pipelines![0]!.tables![0]!.next_tables!, 'go', 'z'),
    ],
    [
      '$.pipelines[0].tables[0].default_entry.action_data',
      'data missing',
      (j) => put(j.pipelines![0]!.tables![0]!.default_entry!, 'action_id', 0),
    ],
    [
      '$.pipelines[0].tables[1].default_entry.action_id',
      'not of this table',
      (j) => put(j.pipelines![0]!.tables![1]!.default_entry!, 'action_id', 0),
    ],
    ['$.pipelines[0].tables[0].entries[0].match_key', 'keys missing', (j) => put(firstEntry(j)[0]!, 'match_key', [])],
    [
      '$.pipelines[0].tables[0].entries[0].match_key[0].key',
      'key too wide',
      (j) => put(firstEntry(j)[0]!.match_key![0]!, 'key', '0x100'),
    ],
    [
      '$.pipelines[0].conditionals[0].expression.value.left.value[0]',
      'header unknown',
      (j) => put(j.pipelines![0]!.conditionals![0]!.expression!.value!.left!.value!, 0, 'z'),
    ],
    [
      '$.pipelines[0].conditionals[0].expression',
      'not a boolean',
      (j) => put(j.pipelines![0]!.conditionals![0]!, 'expression', hex(1)),
    ],
    [
      '$.pipelines[0].tables[0].action_ids[1]',
      'two actions of one name in a table',
      (j) => put(j.actions![1]!, 'name', 'go'),
    ],
    ['$.deparsers[0].order[0]', 'metadata emitted', (j) => put(j.deparsers![0]!.order!, 0, 'scalars')],
    ['$.checksums[0].calculation', 'calculation unknown', (j) => put(j.checksums![0]!, 'calculation', 'z')],
    ['$.learn_lists[0]', 'learn list without id', (j) => put(j, 'learn_lists', [{ name: 'd' }])],
    ['$.field_lists[0].id', 'field list id negative', (j) => put(j, 'field_lists', [{ id: -1, elements: [] }])],
    [
      '$.actions[1].primitives[0].parameters[1]',
      'field list unknown',
      (j) => put(j.actions![1]!.primitives!, 0, call('clone_ingress_pkt_to_egress', hex(1), hex(9))),
    ],
    [
      '$.actions[1].primitives[0].parameters[0]',
      'field list unknown',
      (j) => put(j.actions![1]!.primitives!, 0, call('recirculate', hex(9))),
    ],
    [
      '$.actions[1].primitives[0].parameters[1]',
      'learn list unknown',
      (j) => put(j.actions![1]!.primitives!, 0, call('generate_digest', hex(1), hex(9))),
    ],
    ['$.meter_arrays[0]', 'direct meter without a table', (j) => put(j.meter_arrays![0]!, 'is_direct', true)],
    [
      '$.pipelines[0].tables[0].direct_meters',
      'meter of another table',
      (j) => put(j.pipelines![0]!.tables![0]!, 'direct_meters', 'm'),
    ],
    ['$.header_types[2]', 'varbit without a length', (j) => put(j.header_types![2]!.fields![0]!, 1, '*')],
    [
      '$.header_types[2].fields',
      'two varbits',
      (j) =>
        put(j.header_types![2]!, 'fields', [
          ['a', '*'],
          ['b', '*'],
        ]),
    ],
    [
      '$.header_stacks[0].header_ids[1]',
      'header unknown',
      (j) => put(j, 'header_stacks', [{ name: 's', header_ids: [2, 9] }]),
    ],
    ['$.header_stacks[0]', 'stack of nothing', (j) => put(j, 'header_stacks', [{ name: 's', header_ids: [] }])],
    ['$.header_stacks[0]', 'stack of metadata', (j) => put(j, 'header_stacks', [{ name: 's', header_ids: [0] }])],
    [
      '$.header_unions[0].union_type',
      'union type unknown',
      (j) => put(j, 'header_unions', [{ name: 'u', id: 0, union_type: 'z', header_ids: [2] }]),
    ],
    [
      '$.header_union_stacks[0].header_union_ids[0]',
      'union unknown',
      (j) => put(j, 'header_union_stacks', [{ name: 'u', header_union_ids: [3] }]),
    ],
    [
      '$.actions[1].primitives[0].parameters[0].value',
      'stack unknown',
      (j) => put(j.actions![1]!.primitives!, 0, call('push', named('header_stack', 's'), hex(1))),
    ],
    [
      '$.actions[1].primitives[0].parameters[0].value.op',
      'assignment to a sum',
      (j) => put(j.actions![1]!.primitives!, 0, assign(expression({ op: '+', left: hex(1), right: hex(1) }), hex(1))),
    ],
    [
      '$.parsers[0].parse_states[0].parser_ops[0].parameters[0].value',
      'no varbit to extract',
      (j) =>
        put(j.parsers![0]!.parse_states![0]!.parser_ops!, 0, {
          op: 'extract_VL',
          parameters: [{ type: 'regular', value: 'h' }, hex(8)],
        }),
    ],
    [
      '$.parsers[0].parse_states[0].transitions[0].value',
      'value set unknown',
      (j) =>
        put(j.parsers![0]!.parse_states![0]!.transitions!, 0, { type: 'parse_vset', value: 'v', next_state: null }),
    ],
    [
      '$.parsers[0].parse_states[0].transitions[0].value',
      'value set of another width',
      (j) => {
        put(j, 'parse_vsets', [{ name: 'v', id: 0, compressed_bitwidth: 9 }]);
        put(j.parsers![0]!.parse_states![0]!.transitions!, 0, { type: 'parse_vset', value: 'v', next_state: null });
      },
    ],
    ['$.__meta__.version', 'version malformed', (j) => put(j.__meta__!, 'version', [2])],
  ];
  test.each(wrong)('is wrong at %s: %s', (path, _what, change) => {
    const error = refusal(change);
    expect(error.code).toBe('INVALID_PROGRAM');
    expect(error.where).toBe(path);
    expect(error.message).toContain(path);
  });

  const unknown: readonly (readonly [string, string, (json: Loose) => void])[] = [
    ['$.__meta__.version[0]', 'version 3', (j) => put(j.__meta__!.version!, 0, 3)],
    ['$.extern_instances[0]', 'extern objects', (j) => put(j, 'extern_instances', [{ name: 'e' }])],
    ['$.meter_arrays[0].rate_count', '3 rates', (j) => put(j.meter_arrays![0]!, 'rate_count', 3)],
    ['$.calculations[0].algo', 'sha1', (j) => put(j.calculations![0]!, 'algo', 'sha1')],
    [
      '$.header_types[2].length_exp',
      'headers whose type tells the length of a field',
      (j) => put(j.header_types![2]!, 'length_exp', {}),
    ],
    ['$.checksums[0].type', 'ipv4', (j) => put(j.checksums![0]!, 'type', 'ipv4')],
  ];
  test.each(unknown)('asks at %s for what is not implemented: %s', (path, what, change) => {
    const error = refusal(change);
    expect(error.code).toBe('UNSUPPORTED_PROGRAM');
    expect(error.where).toBe(path);
    expect(error.message).toContain(what);
  });

  test('that is no JSON is refused', () => {
    for (const bytes of [new TextEncoder().encode('{'), new Uint8Array([0xff, 0xfe]), new Uint8Array()])
      expect(() => loadProgram(bytes)).toThrow(DdfError);
    for (const root of [null, [], 3, 'x', {}]) expect(() => loadProgram(encode(root))).toThrow(DdfError);
  });

  test('with anything replaced by anything else is loaded or refused with a place, never more', () => {
    const paths: (string | number)[][] = [];
    const walk = (value: unknown, path: (string | number)[]): void => {
      if (path.length > 0) paths.push(path);
      if (Array.isArray(value)) for (const [i, item] of value.entries()) walk(item, [...path, i]);
      else if (typeof value === 'object' && value !== null)
        for (const [key, item] of Object.entries(value)) walk(item, [...path, key]);
    };
    walk(sample(), []);
    for (const path of paths) {
      for (const junk of [null, -1, 1e9, 'junk', [], {}, true]) {
        const json = sample() as unknown as Loose;
        const parent = path.slice(0, -1).reduce<Loose>((at, key) => (at as Loose)[key as number]!, json);
        put(parent, path[path.length - 1]!, junk);
        try {
          compileProgram(loadProgram(encode(json)), { dropPort: 511, priorityQueues: 1 });
        } catch (error) {
          expect(error).toBeInstanceOf(DdfError);
          expect((error as DdfError).where).toMatch(/^\$/);
        }
      }
    }
  });
});
