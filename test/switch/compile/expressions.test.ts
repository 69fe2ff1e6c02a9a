import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { assign, callTable, expression, field, hex, type Json, op, send } from '../program-builder.ts';
import { pack, TestDevice, unpack } from '../test-device.ts';

/** bmv2's meaning of an expression, on BigInts: unlimited precision, only assignment truncates. */
interface Tree {
  readonly json: Json;
  readonly value: (fields: readonly bigint[]) => bigint;
}
interface Condition {
  readonly json: Json;
  readonly value: (fields: readonly bigint[]) => boolean;
}

const FIELDS: readonly (readonly [name: string, widthBits: number, signed: boolean])[] = [
  ['a', 1, false],
  ['b', 7, false],
  ['c', 16, false],
  ['d', 32, false],
  ['e', 48, false],
  ['f', 64, false],
  ['g', 128, false],
  ['h', 8, true],
  ['i', 32, true],
  ['j', 24, true],
  ['k', 64, true],
];
const IN_BITS = FIELDS.reduce((sum, [, width]) => sum + width, 0);
const TARGETS: readonly (readonly [number, boolean])[] = [
  [1, false],
  [9, false],
  [32, false],
  [33, false],
  [48, false],
  [64, false],
  [100, false],
  [16, true],
  [32, true],
  [80, true],
];

const leaf: fc.Arbitrary<Tree> = fc.oneof(
  fc.nat(FIELDS.length - 1).map((i): Tree => ({ json: field('in', FIELDS[i]![0]), value: (fields) => fields[i]! })),
  fc
    .oneof(
      fc.bigInt({ min: -300n, max: 300n }),
      fc.bigInt({ min: -(1n << 70n), max: 1n << 70n }),
      fc.constantFrom(0n, 1n, 0xffffffffn, 1n << 32n, (1n << 48n) - 1n, (1n << 64n) - 1n, -1n),
    )
    .map((value): Tree => ({ json: hex(value), value: () => value })),
);

const { tree } = fc.letrec<{ tree: Tree; condition: Condition }>((tie) => ({
  tree: fc.oneof(
    { maxDepth: 5, withCrossShrink: true },
    leaf,
    fc.tuple(fc.constantFrom('+', '-', '*', '&', '|', '^'), tie('tree'), tie('tree')).map(
      ([operator, a, b]): Tree => ({
        json: op(operator, a.json, b.json),
        value: (fields) => binary(operator, a.value(fields), b.value(fields)),
      }),
    ),
    fc.tuple(tie('tree'), fc.bigInt({ min: 0n, max: 70n })).map(
      ([a, shift]): Tree => ({
        json: op('<<', a.json, hex(shift)),
        value: (fields) => a.value(fields) << shift,
      }),
    ),
    fc.tuple(tie('tree'), fc.bigInt({ min: 0n, max: 70n })).map(
      ([a, shift]): Tree => ({
        json: op('>>', a.json, hex(shift)),
        value: (fields) => a.value(fields) >> shift,
      }),
    ),
    // Shifts by a field: its seven bits.
    fc.tuple(fc.constantFrom('<<', '>>'), tie('tree')).map(
      ([operator, a]): Tree => ({
        json: op(operator, a.json, field('in', 'b')),
        value: (fields) => (operator === '<<' ? a.value(fields) << fields[1]! : a.value(fields) >> fields[1]!),
      }),
    ),
    tie('tree').map(
      (a): Tree => ({
        json: expression({ op: '~', left: null, right: a.json }),
        value: (fields) => ~a.value(fields),
      }),
    ),
    fc
      .tuple(fc.constantFrom('two_comp_mod', 'sat_cast', 'usat_cast'), tie('tree'), fc.integer({ min: 1, max: 80 }))
      .map(
        ([cast, a, width]): Tree => ({
          json: op(cast, a.json, hex(width)),
          value: (fields) => casted(cast, a.value(fields), width),
        }),
      ),
    // As p4c masks every result.
    fc.tuple(tie('tree'), fc.integer({ min: 1, max: 80 })).map(
      ([a, width]): Tree => ({
        json: op('&', a.json, hex((1n << BigInt(width)) - 1n)),
        value: (fields) => BigInt.asUintN(width, a.value(fields)),
      }),
    ),
    fc.tuple(tie('condition'), tie('tree'), tie('tree')).map(
      ([c, a, b]): Tree => ({
        json: expression({ op: '?', cond: c.json, left: a.json, right: b.json }),
        value: (fields) => (c.value(fields) ? a.value(fields) : b.value(fields)),
      }),
    ),
    tie('condition').map(
      (c): Tree => ({
        json: expression({ op: 'b2d', left: null, right: c.json }),
        value: (fields) => BigInt(c.value(fields)),
      }),
    ),
  ),
  condition: fc.oneof(
    { maxDepth: 3 },
    fc.tuple(fc.constantFrom('==', '!=', '<', '>', '<=', '>='), tie('tree'), tie('tree')).map(
      ([operator, a, b]): Condition => ({
        json: op(operator, a.json, b.json),
        value: (fields) => compared(operator, a.value(fields), b.value(fields)),
      }),
    ),
    tie('tree').map(
      (a): Condition => ({
        json: expression({ op: 'd2b', left: null, right: a.json }),
        value: (fields) => a.value(fields) !== 0n,
      }),
    ),
    fc.tuple(fc.constantFrom('and', 'or', '==', '!='), tie('condition'), tie('condition')).map(
      ([operator, a, b]): Condition => ({
        json: op(operator, a.json, b.json),
        value: (fields) => {
          const [x, y] = [a.value(fields), b.value(fields)];
          if (operator === 'and') return x && y;
          if (operator === 'or') return x || y;
          return operator === '==' ? x === y : x !== y;
        },
      }),
    ),
    tie('condition').map(
      (a): Condition => ({
        json: expression({ op: 'not', left: null, right: a.json }),
        value: (fields) => !a.value(fields),
      }),
    ),
  ),
}));

function binary(operator: string, a: bigint, b: bigint): bigint {
  switch (operator) {
    case '+':
      return a + b;
    case '-':
      return a - b;
    case '*':
      return a * b;
    case '&':
      return a & b;
    case '|':
      return a | b;
    default:
      return a ^ b;
  }
}

function compared(operator: string, a: bigint, b: bigint): boolean {
  switch (operator) {
    case '==':
      return a === b;
    case '!=':
      return a !== b;
    case '<':
      return a < b;
    case '>':
      return a > b;
    case '<=':
      return a <= b;
    default:
      return a >= b;
  }
}

function casted(cast: string, value: bigint, width: number): bigint {
  if (cast === 'two_comp_mod') return BigInt.asIntN(width, value);
  const low = cast === 'usat_cast' ? 0n : -(1n << BigInt(width - 1));
  const high = cast === 'usat_cast' ? (1n << BigInt(width)) - 1n : (1n << BigInt(width - 1)) - 1n;
  if (value < low) return low;
  return value > high ? high : value;
}

/** A program that stores an expression over `in` into `out.r` for each target width. */
function program(tree: Tree, width: number, signed: boolean): TestDevice {
  const fill = (8 - (IN_BITS % 8)) % 8;
  const pad = (8 - (width % 8)) % 8;
  return new TestDevice({
    headers: {
      in: [...FIELDS, ...(fill === 0 ? [] : [['fill', fill] as const])],
      out: [['r', width, signed], ...(pad === 0 ? [] : [['pad', pad] as const])],
    },
    states: [{ name: 'start', operations: [{ op: 'extract', parameters: [{ type: 'regular', value: 'in' }] }] }],
    actions: [
      {
        name: 'compute',
        primitives: [
          { op: 'add_header', parameters: [{ type: 'header', value: 'out' }] },
          assign(field('out', 'r'), tree.json),
          send(1),
        ],
      },
    ],
    ingress: { tables: [callTable('compute')] },
    deparser: ['out'],
  });
}

const interesting = (width: number) =>
  fc.oneof(
    fc.bigInt({ min: 0n, max: (1n << BigInt(width)) - 1n }),
    fc.constantFrom(0n, 1n, (1n << BigInt(width)) - 1n, 1n << BigInt(width - 1)),
  );
const inputs = fc.tuple(...FIELDS.map(([, width]) => interesting(width)));

describe('expressions', () => {
  test('mean what they mean with unlimited precision, whatever the width of the target', () => {
    fc.assert(
      fc.property(
        tree,
        fc.constantFrom(...TARGETS),
        fc.array(inputs, { minLength: 4, maxLength: 4 }),
        (t, [width, signed], all) => {
          const device = program(t, width, signed);
          for (const raw of all) {
            const fields = raw.map((value, i) => (FIELDS[i]![2] ? BigInt.asIntN(FIELDS[i]![1], value) : value));
            const bytes = pack(raw.map((value, i) => [value, FIELDS[i]![1]] as const));
            const [sent] = device.run(5, bytes);
            expect(sent?.port).toBe(1);
            expect(unpack(sent!.bytes, 0, width)).toBe(BigInt.asUintN(width, t.value(fields)));
          }
        },
      ),
      { seed: 20_240_701, numRuns: 400 },
    );
  });

  test('a target may stand in its own value', () => {
    const device = new TestDevice({
      headers: { in: [['f', 96]] },
      states: [{ name: 'start', operations: [{ op: 'extract', parameters: [{ type: 'regular', value: 'in' }] }] }],
      actions: [
        {
          name: 'turn',
          primitives: [
            assign(field('in', 'f'), op('|', op('<<', field('in', 'f'), hex(40)), op('>>', field('in', 'f'), hex(56)))),
            send(1),
          ],
        },
      ],
      ingress: { tables: [callTable('turn')] },
    });
    const value = 0x0123456789abcdef01234567n;
    const turned = BigInt.asUintN(96, (value << 40n) | (value >> 56n));
    expect(unpack(device.run(1, pack([[value, 96]]))[0]!.bytes, 0, 96)).toBe(turned);
  });

  test('division by zero fails the packet, not the switch', () => {
    const device = new TestDevice({
      headers: {
        in: [
          ['a', 8],
          ['b', 8],
        ],
      },
      states: [{ name: 'start', operations: [{ op: 'extract', parameters: [{ type: 'regular', value: 'in' }] }] }],
      actions: [
        {
          name: 'divide',
          primitives: [assign(field('in', 'a'), op('/', field('in', 'a'), field('in', 'b'))), send(1)],
        },
      ],
      ingress: { tables: [callTable('divide')] },
    });
    expect(device.run(1, [9, 0])).toEqual([]);
    expect(device.device.statistics.errors).toBe(1);
    expect(device.run(1, [9, 2])).toEqual([{ port: 1, bytes: [4, 2] }]);
  });
});
