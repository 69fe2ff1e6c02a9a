import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { xxh64 } from '../../../switch/runtime/xxh64.ts';
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

const WIDE = 100;

/** `h` in, `h` out, with a wide field and saturating ones; the primitives run in ingress. */
function act(primitives: readonly Json[], more: Partial<ProgramSpec> = {}): TestDevice {
  return new TestDevice({
    headers: {
      h: [
        ['a', 8],
        ['b', 8],
        ['c', 16],
        ['wide', WIDE],
        ['rest', 28],
      ],
    },
    states: [{ name: 'start', operations: [extract('h')] }],
    actions: [{ name: 'act', primitives: [...primitives, send(1)] }],
    ingress: { tables: [callTable('act')] },
    ...more,
  });
}

const frame = (a: number, b: number, c = 0, wide = 0n): number[] =>
  pack([
    [BigInt(a), 8],
    [BigInt(b), 8],
    [BigInt(c), 16],
    [wide, WIDE],
    [0n, 28],
  ]);
const run = (device: TestDevice, bytes: readonly number[]): number[] => device.run(3, bytes)[0]!.bytes;
const c = (bytes: readonly number[]): bigint => unpack(bytes, 16, 16);

describe("P4-14's primitives", () => {
  const [a, b, target] = [field('h', 'a'), field('h', 'b'), field('h', 'c')];
  const cases: readonly (readonly [string, (x: bigint, y: bigint) => bigint])[] = [
    ['add', (x, y) => x + y],
    ['subtract', (x, y) => x - y],
    ['bit_and', (x, y) => x & y],
    ['bit_or', (x, y) => x | y],
    ['bit_xor', (x, y) => x ^ y],
    ['shift_left', (x, y) => x << y],
    ['shift_right', (x, y) => x >> y],
  ];
  test.each(cases)('%s', (primitive, result) => {
    const device = act([call(primitive, target, a, b)]);
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 255 }), fc.integer({ min: 0, max: 20 }), (x, y) => {
        expect(c(run(device, frame(x, y)))).toBe(BigInt.asUintN(16, result(BigInt(x), BigInt(y))));
      }),
      { seed: 14, numRuns: 40 },
    );
  });

  test('change a field by a number, copy and drop', () => {
    const device = act([
      call('modify_field', target, hex(0x1200)),
      call('add_to_field', target, a),
      call('subtract_from_field', target, b),
      call('no_op'),
    ]);
    expect(c(run(device, frame(5, 3)))).toBe(0x1202n);
    expect(act([call('drop')], { actions: [{ name: 'act', primitives: [call('drop')] }] }).run(3, frame(0, 0))).toEqual(
      [],
    );
  });

  test('add_header_fast brings back what a header last was, add_header zeros', () => {
    const again = (primitive: string) =>
      act([call('remove_header', named('header', 'h')), call(primitive, named('header', 'h'))]);
    const bytes = frame(1, 2, 3, 4n);
    expect(run(again('add_header_fast'), bytes)).toEqual(bytes);
    expect(run(again('add_header'), bytes)).toEqual(bytes.map(() => 0));
  });
});

describe('saturating fields', () => {
  const scalars: ProgramSpec['scalars'] = [['u', 8, false, true] as never, ['s', 8, true, true] as never];
  test('stop at their ends, whatever is assigned', () => {
    const device = act(
      [
        call('add_to_field', field('scalars', 'u'), op('+', field('h', 'a'), field('h', 'b'))),
        call('modify_field', field('scalars', 's'), op('-', field('h', 'a'), field('h', 'b'))),
        assign(
          field('h', 'c'),
          op('+', op('*', field('scalars', 'u'), hex(256)), op('&', field('scalars', 's'), hex(255))),
        ),
      ],
      { scalars },
    );
    const both = (x: number, y: number): bigint => c(run(device, frame(x, y)));
    expect(both(200, 100)).toBe(0xff64n);
    expect(both(10, 255)).toBe(0xff80n);
    expect(both(250, 1)).toBe(0xfb7fn);
    expect(both(1, 2)).toBe(0x03ffn);
  });
});

describe('wide fields', () => {
  const wide = (bytes: readonly number[]): bigint => unpack(bytes, 32, WIDE);
  const width = op('-', hex(1n << BigInt(WIDE)), hex(1));
  const cases: readonly (readonly [string, (x: bigint, y: bigint) => bigint])[] = [
    ['+', (x, y) => x + y],
    ['-', (x, y) => x - y],
    ['*', (x, y) => x * y],
    ['&', (x, y) => x & y],
    ['|', (x, y) => x | y],
    ['^', (x, y) => x ^ y],
    ['<<', (x, y) => x << (y & 127n)],
    ['>>', (x, y) => x >> (y & 127n)],
  ];
  test.each(cases)('are computed with in full: %s', (operator, result) => {
    const shifts = operator.length === 2;
    const right = shifts ? op('&', field('h', 'c'), hex(127)) : field('h', 'c');
    const device = act([assign(field('h', 'wide'), op('&', op(operator, field('h', 'wide'), right), width))]);
    fc.assert(
      fc.property(fc.bigInt(0n, (1n << BigInt(WIDE)) - 1n), fc.integer({ min: 0, max: 65535 }), (x, y) => {
        const expected = BigInt.asUintN(WIDE, result(x, BigInt(y)));
        expect(wide(run(device, frame(0, 0, y, x)))).toBe(expected);
      }),
      { seed: 100, numRuns: 30 },
    );
  });
});

describe('cells of registers as operands', () => {
  const cell = (index: Json): Json => named('register', ['r', index]);
  test('are read and assigned; beyond the end they are zero, and nothing is stored', () => {
    const device = act(
      [
        assign(cell(field('h', 'a')), op('+', cell(field('h', 'a')), field('h', 'b'))),
        assign(field('h', 'c'), cell(field('h', 'a'))),
      ],
      { registers: [{ name: 'r', id: 0, size: 4, bitwidth: 12 }] },
    );
    expect([1, 2, 3].map(() => c(run(device, frame(3, 7))))).toEqual([7n, 14n, 21n]);
    expect(c(run(device, frame(4, 7)))).toBe(0n);
    expect(device.control.registers.get('r')!.read(3)).toBe(21n);
    expect(device.device.statistics.outOfRange).toBe(2);
  });
});

describe('hashes by name', () => {
  const hashed = (algo: string, max: number | bigint = 65536): TestDevice =>
    act([call('modify_field_with_hash_based_offset', field('h', 'c'), hex(0), named('calculation', 'k'), hex(max))], {
      calculations: [
        {
          name: 'k',
          id: 0,
          algo,
          input: ['a', 'b'].map((name) => ({ type: 'field', value: ['h', name] })),
        },
      ],
    });
  test('take the remainder in 64 bits', () => {
    expect(c(run(hashed('xxh64', 1009), frame(1, 2)))).toBe(xxh64(Uint8Array.of(1, 2), 2) % 1009n);
    expect(c(run(hashed('crc_16_dect'), frame(0x31, 0x32)))).toBe(BigInt(dect(Uint8Array.of(0x31, 0x32))));
  });

  test('count packets', () => {
    const [each, same] = [hashed('round_robin', 3), hashed('round_robin_consistent')];
    expect([1, 2, 3, 4].map(() => c(run(each, frame(1, 1))))).toEqual([0n, 1n, 2n, 0n]);
    expect([5, 6, 5, 7].map((x) => c(run(same, frame(x, 1))))).toEqual([0n, 1n, 0n, 2n]);
  });
});

/** CRC-16/DECT bit by bit. */
function dect(bytes: Uint8Array): number {
  let rest = 0;
  for (const byte of bytes) {
    rest ^= byte << 8;
    for (let bit = 0; bit < 8; bit++) rest = (rest & 0x8000 ? (rest << 1) ^ 0x0589 : rest << 1) & 0xffff;
  }
  return rest ^ 1;
}

describe('a deparser', () => {
  test('runs its primitives first, and emits a header as often as it is told to', () => {
    const device = act([], {
      deparser: ['h', 'h'],
      root: {
        deparsers: [
          {
            name: 'deparser',
            id: 0,
            order: ['h', 'h'],
            primitives: [assign(field('h', 'b'), expression({ op: '+', left: field('h', 'a'), right: hex(1) }))],
          },
        ],
      },
    });
    const once = frame(5, 6, 0, 9n);
    const sent = run(device, once);
    expect(sent).toEqual([...sent.slice(0, 20), ...sent.slice(0, 20)]);
    expect(sent.slice(0, 2)).toEqual([5, 6]);
  });
});
