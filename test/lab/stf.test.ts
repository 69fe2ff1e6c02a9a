import { describe, expect, test } from 'vitest';
import { DdfError } from '../../base/errors.ts';
import { runStf } from '../../lab/stf/run.ts';
import { parseStf } from '../../lab/stf/script.ts';
import { assign, buildProgram, call, extract, field, hex, named, send } from '../switch/program-builder.ts';

const command = (line: string) => parseStf(line, 'x.stf')[0]?.command;

describe('an STF script', () => {
  test('adds entries with keys, priorities, arguments and names', () => {
    expect(command('add c.t 5 data.f1:0x****0101 h.$valid$:0b1 c.act(val:0x7f, port:2) = A')).toEqual({
      kind: 'add',
      table: 'c.t',
      priority: 5,
      keys: [
        { name: 'data.f1', text: '0x****0101' },
        { name: 'h.$valid$', text: '0b1' },
      ],
      call: {
        action: 'c.act',
        arguments: [
          { name: 'val', value: 0x7fn },
          { name: 'port', value: 2n },
        ],
      },
      id: 'A',
    });
    expect(command('add t act()')).toMatchObject({
      priority: undefined,
      keys: [],
      call: { arguments: [] },
      id: undefined,
    });
    expect(command('setdefault t act(x:0o17)')).toMatchObject({
      kind: 'set-default',
      call: { arguments: [{ name: 'x', value: 15n }] },
    });
  });

  test('sends and expects packets, with wildcards and an exact end', () => {
    expect(command('packet 3 0a0B 0c')).toEqual({ kind: 'packet', port: 3, bytes: Uint8Array.of(10, 11, 12) });
    expect(command('packet 3')).toMatchObject({ bytes: new Uint8Array() });
    expect(command('expect 3 0A** 0c $')).toEqual({
      kind: 'expect',
      port: 3,
      pattern: { digits: '0a**0c', exact: true },
    });
    expect(command('expect 3')).toMatchObject({ pattern: undefined });
  });

  test('has commands for replication, counters, registers and meters', () => {
    expect(command('mirroring_add_mc 5 9')).toEqual({ kind: 'mirror', session: 5, port: undefined, group: 9 });
    expect(command('mc_node_create 400 6 7')).toEqual({ kind: 'create-node', instance: 400, ports: [6, 7] });
    expect(command('check_counter cnt($A) bytes >= 12')).toEqual({
      kind: 'check-counter',
      counter: 'cnt',
      cell: 'A',
      check: { unit: 'bytes', operator: '>=', value: 12n },
    });
    expect(command('check_counter cnt(7)')).toMatchObject({ cell: 7, check: undefined });
    expect(command('register_reset r')).toEqual({ kind: 'register-write', register: 'r', cell: undefined, value: 0n });
    expect(command('meter_set_rates m 2 0.000005:4 0.00002:5')).toMatchObject({
      cell: 2,
      committed: { perUs: 0.000005, burst: 4n },
      peak: { perUs: 0.00002, burst: 5n },
    });
  });

  test('says in which line it is wrong', () => {
    for (const line of [
      'fly 3',
      'packet x 00',
      'packet 1 0',
      'add t',
      'add t k:1',
      'check_counter c',
      'remove 3',
      'meter_set_rates m 1 x y',
    ]) {
      try {
        parseStf(`# first\n\n${line}`, 'x.stf');
        expect.unreachable(line);
      } catch (error) {
        expect(error).toBeInstanceOf(DdfError);
        expect((error as DdfError).where).toBe('x.stf:3');
      }
    }
  });
});

describe('a script that is run', () => {
  const program = buildProgram({
    headers: { h: [['a', 8]] },
    states: [{ name: 'start', operations: [extract('h')] }],
    actions: [
      {
        name: 'c.go',
        parameters: [['port', 9]],
        primitives: [
          call('count', named('counter_array', 'c.seen'), hex(1)),
          assign(field('standard_metadata', 'egress_spec'), named('runtime_data', 0)),
        ],
      },
      { name: 'c.away', primitives: [send(511)] },
    ],
    counters: [{ name: 'c.seen', id: 0, size: 4, is_direct: false }],
    registers: [{ name: 'c.r', id: 0, size: 2, bitwidth: 8 }],
    ingress: {
      tables: [
        {
          name: 'c.t',
          keys: [{ match: 'ternary', field: ['h', 'a'] }],
          actions: ['c.go', 'c.away'],
          default: 'c.away',
        },
      ],
    },
  });
  const run = (text: string): string => {
    try {
      runStf(parseStf(text, 'x.stf'), program);
      return 'passed';
    } catch (error) {
      if (error instanceof DdfError) return `${error.where ?? 'end'}: ${error.message}`;
      throw error;
    }
  };
  const go = 'add t 7 a:0x1* go(port:2)\n';

  test('passes if everything is as expected, in any order of commands', () => {
    expect(run(`${go}expect 2 15\npacket 1 15ff\nexpect 2 16** $\npacket 1 1600`)).toBe('passed');
    expect(run(`${go}packet 1 25\nno_packet\nexpect 2\npacket 1 15\npacket 1 16`)).toBe('passed');
  });

  test('names what is missing, different or too much', () => {
    expect(run(`${go}expect 2 15\npacket 1 16`)).toContain('packet 1 of port 2 is 16, not 15');
    expect(run(`${go}expect 2 15 $\npacket 1 1500`)).toContain('is 1500, not 15');
    expect(run(`${go}expect 2 15\npacket 1 25`)).toContain('port 2 sent 0 packets where 1 are expected');
    expect(run(`${go}expect 2 15\npacket 1 15\npacket 1 16`)).toContain('port 2 sent 2 packets where 1 are expected');
    expect(run(`${go}packet 1 15\nexpect 2 15\nno_packet`)).toContain('line 4');
  });

  test('lets the higher priority win, forgets entries, sets defaults', () => {
    const lower = 'add t 3 a:0x15 go(port:3)\n';
    expect(run(`${go}${lower}packet 1 15\nexpect 2 15\npacket 3 00`)).toBe('passed');
    expect(run(`${go}remove all\npacket 2 15\nno_packet`)).toBe('passed');
    expect(run(`setdefault t go(port:4)\npacket 1 15\nexpect 4 15`)).toBe('passed');
  });

  test('checks counters, with or without the frame check sequence', () => {
    const text = `${go}packet 1 15ff\npacket 1 16ff\nexpect 2 15\nexpect 2 16\n`;
    expect(run(`${text}check_counter seen(1) packets == 2`)).toBe('passed');
    expect(run(`${text}check_counter seen(1) bytes == 4`)).toBe('passed');
    expect(run(`${text}check_counter seen(1) bytes == 12`)).toBe('passed');
    expect(run(`${text}check_counter seen(1) bytes == 5`)).toContain('it counted 2 packets, 4 bytes');
    expect(run(`${text}counter_write seen 1 9 0\ncheck_counter seen(1) packets > 8`)).toBe('passed');
  });

  test('refuses names and values that the program does not have', () => {
    expect(run('add nope a:1 go(port:1)')).toContain('there is no table nope');
    expect(run('add t b:1 go(port:1)')).toContain('has no key b');
    expect(run('add t a:0x100 go(port:1)')).toContain('wider than');
    expect(run('add t a:1 fly(port:1)')).toContain('fly');
    expect(run('add t a:1 go(gate:1)')).toContain('no parameter gate');
    expect(run('register_read nope 1')).toContain('there is no register nope');
    expect(run('mc_node_associate 1 0')).toContain('no multicast group 1');
  });
});
