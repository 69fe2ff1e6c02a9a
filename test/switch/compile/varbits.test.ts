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
  type ProgramSpec,
  send,
  standard,
} from '../program-builder.ts';
import { TestDevice } from '../test-device.ts';

const ERROR = { none: 0, tooShort: 1, headerTooShort: 4, invalidArgument: 6 };

/**
 * A byte that tells how many bytes follow in `options`, of which four bits stand in front of it in the header and four behind it; a
 * second header of the same type with nothing in it. A report with the parser's error comes first.
 */
function varying(primitives: readonly Json[], further: Partial<ProgramSpec> & { lengthBits?: Json } = {}): TestDevice {
  const { lengthBits = op('*', field('size', 'bytes'), hex(8)), ...rest } = further;
  return new TestDevice({
    headers: {
      size: [['bytes', 8]],
      h: [
        ['before', 4],
        ['options', '*'],
        ['after', 4],
      ],
      report: [
        ['error', 8],
        ['sum', 16],
      ],
    },
    maxBytes: { h: 6 },
    sameType: { g: 'h' },
    scalars: [['sum', 16]],
    states: [
      {
        name: 'start',
        operations: [
          { op: 'extract', parameters: [{ type: 'regular', value: 'size' }] },
          { op: 'extract_VL', parameters: [{ type: 'regular', value: 'h' }, lengthBits] },
        ],
        transitions: [goTo(null)],
      },
    ],
    actions: [
      {
        name: 'act',
        primitives: [
          ...primitives,
          call('add_header', named('header', 'report')),
          assign(field('report', 'error'), standard('parser_error')),
          assign(field('report', 'sum'), field('scalars', 'sum')),
          send(1),
        ],
      },
      { name: 'look', primitives: [assign(field('report', 'sum'), standard('packet_length'))] },
    ],
    ingress: { tables: [callTable('act')] },
    deparser: ['report', 'size', 'h', 'g'],
    ...rest,
  });
}

const output = (device: TestDevice, bytes: readonly number[]): number[] => device.run(9, bytes)[0]!.bytes;
const report = (error: number, sum = 0): number[] => [error, sum >> 8, sum & 255];

describe('a field of variable length', () => {
  const cases = [
    [0, 0xab, 9],
    [1, 0xa1, 0x2b, 9],
    [5, 0xa1, 0x23, 0x45, 0x67, 0x89, 0xab, 9],
  ];

  test('is put back as it came, whatever is done around it', () => {
    const written = varying([assign(field('h', 'after'), op('^', field('h', 'before'), hex(1)))]);
    for (const bytes of cases) {
      expect(output(varying([]), bytes)).toEqual([...report(ERROR.none), ...bytes]);
      const changed = [...bytes];
      changed[bytes.length - 2] = (bytes[bytes.length - 2]! & 0xf0) | 0xb;
      expect(output(written, bytes)).toEqual([...report(ERROR.none), ...changed]);
    }
  });

  test('may be as long as the header type says, and no longer than the packet', () => {
    const device = varying([]);
    expect(output(device, [6, 1, 2, 3, 4, 5, 6, 7])).toEqual([
      ...report(ERROR.headerTooShort),
      ...[6, 1, 2, 3, 4, 5, 6, 7],
    ]);
    expect(output(device, [5, 1, 2, 3, 4, 5])).toEqual([...report(ERROR.tooShort), ...[5, 1, 2, 3, 4, 5]]);
    const odd = varying([], { lengthBits: expression(field('size', 'bytes')) });
    expect(output(odd, [9, 1, 2, 3])).toEqual([...report(ERROR.invalidArgument), 9, 1, 2, 3]);
    expect(output(odd, [16, 1, 2, 3, 4])).toEqual([...report(ERROR.none), 16, 1, 2, 3, 4]);
  });

  test('is assigned with its length', () => {
    const header = varying([call('assign_header', named('header', 'g'), named('header', 'h'))]);
    const alone = varying([
      call('add_header', named('header', 'g')),
      call('assign_VL', field('g', 'options'), field('h', 'options')),
    ]);
    for (const bytes of cases) {
      const [size, ...rest] = bytes;
      const own = rest.slice(0, -1);
      expect(output(header, bytes)).toEqual([...report(ERROR.none), size, ...own, ...own, 9]);
      const bare = [own[0]! & 0x0f, ...own.slice(1, -1), own[own.length - 1]! & 0xf0];
      expect(output(alone, bytes)).toEqual([...report(ERROR.none), size, ...own, ...(size === 0 ? [0] : bare), 9]);
    }
  });

  test('may be very long', () => {
    const device = varying(
      [call('add_header', named('header', 'g')), call('assign_header', named('header', 'g'), named('header', 'h'))],
      { maxBytes: { h: 201 } },
    );
    const bytes = [200, ...Array.from({ length: 201 }, (_, i) => (i * 7 + 1) & 255)];
    expect(output(device, [...bytes, 9])).toEqual([...report(ERROR.none), ...bytes, ...bytes.slice(1), 9]);
  });

  test('takes part in hashes with the bits that it has', () => {
    const device = varying(
      [
        call(
          'modify_field_with_hash_based_offset',
          field('scalars', 'sum'),
          hex(0),
          named('calculation', 'k'),
          hex(65536),
        ),
      ],
      {
        calculations: [
          {
            name: 'k',
            id: 0,
            algo: 'xor16',
            input: [
              { type: 'field', value: ['h', 'before'] },
              { type: 'field', value: ['h', 'options'] },
              { type: 'field', value: ['h', 'after'] },
            ],
          },
        ],
      },
    );
    expect(output(device, [1, 0xa1, 0x2b]).slice(0, 3)).toEqual(report(ERROR.none, 0xa12b));
    expect(output(device, [3, 0xa1, 0x2b, 0x11, 0x22]).slice(0, 3)).toEqual(report(ERROR.none, 0xa12b ^ 0x1122));
    expect(output(device, [0, 0xab]).slice(0, 3)).toEqual(report(ERROR.none, 0xab00));
  });

  test('counts for the length that egress sees', () => {
    const device = varying([call('remove_header', named('header', 'h'))], {
      egress: { tables: [callTable('look')] },
    });
    expect(output(device, [1, 0xa1, 0x2b, 9])).toEqual([...report(ERROR.none, 4 - 2 + 3), 1, 9]);
    expect(output(device, [3, 0xa1, 0x2b, 0x11, 0x22, 9])).toEqual([...report(ERROR.none, 6 - 4 + 3), 3, 9]);
  });
});
