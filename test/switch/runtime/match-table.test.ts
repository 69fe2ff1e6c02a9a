import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { DdfError } from '../../../base/errors.ts';
import type { ActionCall, EntryHandle, MatchValue } from '../../../switch/control.ts';
import type { Entry } from '../../../switch/runtime/entry.ts';
import { MatchTable, type TableShape } from '../../../switch/runtime/match-table.ts';
import { PortStates } from '../../../switch/runtime/port-states.ts';

type Kind = 'exact' | 'lpm' | 'ternary' | 'range';
type Key = TableShape['keys'][number];

/** Keys in words as the compiler would place them: narrow ones one to a word here, wide ones in words of their own. */
function shapeOf(keys: readonly (readonly [Kind, number])[], size = 1000): TableShape {
  let word = 0;
  const placed = keys.map(([kind, widthBits], i): Key => {
    const key = { name: `k${i}`, kind, widthBits, word, shift: widthBits <= 28 ? i % 4 : 0 };
    word += Math.ceil(widthBits / 32);
    return key;
  });
  return {
    name: 't',
    size,
    keys: placed,
    words: word,
    actions: [{ name: 'act', parameters: [{ widthBits: 32, word: 0 }], words: 1 }],
    hasCounter: true,
    meterUnit: undefined,
    defaultCall: undefined,
    entries: [],
  };
}

const act = (value: number): ActionCall => ({ action: 'act', params: [BigInt(value)] });

function lookUp(table: MatchTable, shape: TableShape, values: readonly bigint[]): Entry | undefined {
  const words = new Uint32Array(shape.words);
  shape.keys.forEach((key, i) => {
    for (let low = 0; low < key.widthBits; low += 32)
      words[key.word + low / 32]! |= Number((values[i]! >> BigInt(low)) & 0xffff_ffffn) << key.shift;
  });
  return shape.words === 1 ? table.index.find1(words[0]!) : table.index.find(words);
}

function matches(match: MatchValue, value: bigint, widthBits: number): boolean {
  switch (match.kind) {
    case 'exact':
      return match.value === value;
    case 'lpm': {
      const shift = BigInt(widthBits - match.prefixLength);
      return match.value >> shift === value >> shift;
    }
    case 'ternary':
      return (value & match.mask) === match.value;
    case 'range':
      return match.low <= value && value <= match.high;
    case 'optional':
      return match.value === undefined || match.value === value;
  }
}

/** A few values, so that entries collide and overlap. */
const small = (widthBits: number) =>
  fc.oneof(
    fc.bigInt({ min: 0n, max: 3n }),
    fc.constantFrom((1n << BigInt(widthBits)) - 1n, 1n << BigInt(widthBits - 1)),
    fc.bigInt({ min: 0n, max: (1n << BigInt(widthBits)) - 1n }),
  );

function matchOf(kind: Kind, widthBits: number): fc.Arbitrary<MatchValue> {
  const ones = (1n << BigInt(widthBits)) - 1n;
  const value = small(widthBits).map((v) => v & ones);
  switch (kind) {
    case 'exact':
      return value.map((v) => ({ kind, value: v }));
    case 'lpm':
      return fc.tuple(value, fc.integer({ min: 0, max: widthBits })).map(([v, prefixLength]) => {
        const shift = BigInt(widthBits - prefixLength);
        return { kind, value: (v >> shift) << shift, prefixLength };
      });
    case 'ternary':
      return fc.oneof(
        fc
          .tuple(value, fc.constantFrom(0n, ones, ones >> 1n, 3n & ones))
          .map(([v, mask]) => ({ kind, value: v & mask, mask })),
        fc
          .option(value, { nil: undefined })
          .map((v): MatchValue => (v === undefined ? { kind: 'optional' } : { kind: 'optional', value: v })),
      );
    case 'range':
      return fc.tuple(value, value).map(([a, b]) => (a < b ? { kind, low: a, high: b } : { kind, low: b, high: a }));
  }
}

const SHAPES: readonly (readonly (readonly [Kind, number])[])[] = [
  [['exact', 9]],
  [['exact', 32]],
  [
    ['exact', 48],
    ['exact', 5],
  ],
  [['lpm', 32]],
  [
    ['exact', 3],
    ['lpm', 128],
  ],
  [['ternary', 8]],
  [
    ['ternary', 32],
    ['ternary', 16],
    ['exact', 2],
  ],
  [['range', 16]],
  [
    ['range', 40],
    ['ternary', 4],
    ['lpm', 8],
  ],
];

interface Step {
  readonly kind: 'insert' | 'delete' | 'modify' | 'look';
  readonly match: readonly MatchValue[];
  readonly priority: number;
  readonly pick: number;
  readonly values: readonly bigint[];
}

describe.each(SHAPES.map((keys) => [keys.map(([kind, width]) => `${kind} ${width}`).join(', '), keys] as const))(
  'a table of %s',
  (_name, keys) => {
    test('finds what a scan of all entries finds, whatever was inserted and deleted', () => {
      const shape = shapeOf(keys);
      const byPriority = keys.some(([kind]) => kind === 'ternary' || kind === 'range');
      const step: fc.Arbitrary<Step> = fc.record({
        kind: fc.constantFrom(
          'insert' as const,
          'insert' as const,
          'delete' as const,
          'modify' as const,
          'look' as const,
          'look' as const,
        ),
        match: fc.tuple(...keys.map(([kind, width]) => matchOf(kind, width))),
        priority: byPriority ? fc.integer({ min: 1, max: 4 }) : fc.constant(0),
        pick: fc.nat(1000),
        values: fc.tuple(...keys.map(([, width]) => small(width).map((v) => v & ((1n << BigInt(width)) - 1n)))),
      });
      fc.assert(
        fc.property(fc.array(step, { maxLength: 120 }), (steps) => {
          const table = new MatchTable(shape, () => 0, new PortStates());
          const model: { handle: EntryHandle; order: number; value: number }[] = [];
          let order = 0;
          for (const { kind, match, priority, pick, values } of steps) {
            if (kind === 'insert') {
              try {
                const handle = table.insert(match, priority, act(order));
                model.push({ handle, order, value: order });
                order++;
              } catch (error) {
                expect((error as DdfError).code).toBe('ALREADY_EXISTS');
              }
            } else if (kind === 'delete' && model.length > 0) {
              table.delete(model.splice(pick % model.length, 1)[0]!.handle);
            } else if (kind === 'modify' && model.length > 0) {
              const entry = model[pick % model.length]!;
              entry.value = 10_000 + pick;
              table.modify(entry.handle, act(entry.value));
            }
            const rank = (handle: EntryHandle): number => {
              if (byPriority) return handle.priority;
              return handle.match.reduce((length, value) => (value.kind === 'lpm' ? value.prefixLength : length), 0);
            };
            const best = model
              .filter(({ handle }) => handle.match.every((value, i) => matches(value, values[i]!, keys[i]![1])))
              .sort((a, b) => rank(b.handle) - rank(a.handle) || a.order - b.order)[0];
            expect(lookUp(table, shape, values)?.row.data[0]).toBe(best?.value);
          }
          expect([...table.entries()].length).toBe(model.length);
        }),
        { seed: 4242, numRuns: 120 },
      );
    });
  },
);

describe('a table', () => {
  const exact = (value: number): MatchValue[] => [{ kind: 'exact', value: BigInt(value) }];

  test('is full at its size, and refuses an entry twice', () => {
    const table = new MatchTable(shapeOf([['exact', 32]], 2), () => 0, new PortStates());
    table.insert(exact(1), 0, act(1));
    expect(() => table.insert(exact(1), 0, act(2))).toThrow(expect.objectContaining({ code: 'ALREADY_EXISTS' }));
    const second = table.insert(exact(2), 0, act(2));
    expect(() => table.insert(exact(3), 0, act(3))).toThrow(expect.objectContaining({ code: 'TABLE_FULL' }));
    table.delete(second);
    table.insert(exact(3), 0, act(3));
    expect(() => table.delete(second)).toThrow(expect.objectContaining({ code: 'NOT_FOUND' }));
    expect(() => table.modify(second, act(4))).toThrow(DdfError);
  });

  test('holds thousands of entries through growth and deletion', () => {
    const shape = shapeOf([['exact', 32]], 20_000);
    const table = new MatchTable(shape, () => 0, new PortStates());
    const handles = Array.from({ length: 20_000 }, (_, i) => table.insert(exact(i * 65_537), 0, act(i)));
    for (let i = 0; i < 20_000; i += 2) table.delete(handles[i]!);
    for (let i = 0; i < 20_000; i++)
      expect(lookUp(table, shape, [BigInt.asUintN(32, BigInt(i * 65_537))])?.row.data[0]).toBe(
        i % 2 === 0 ? undefined : i,
      );
  });

  test('holds entries of more priorities than a function takes arguments', () => {
    const count = 150_000;
    const shape = shapeOf([['ternary', 32]], count);
    const table = new MatchTable(shape, () => 0, new PortStates());
    const match: MatchValue[] = [{ kind: 'ternary', value: 0n, mask: 0n }];
    const handles = Array.from({ length: count }, (_, i) => table.insert(match, i + 1, act(i)));
    expect(lookUp(table, shape, [5n])).toBe(handles.at(-1));
    table.delete(handles.at(-1)!);
    expect(lookUp(table, shape, [5n])).toBe(handles.at(-2));
  });

  test('keeps counters when an entry is modified, and knows when it was last hit', () => {
    let nowUs = 5;
    const table = new MatchTable(shapeOf([['exact', 32]]), () => nowUs, new PortStates());
    const handle = table.insert(exact(1), 0, act(1));
    expect(table.lastHitUs(handle)).toBe(5);
    table.setCounter(handle, { packets: 3n, bytes: 300n });
    nowUs = 9;
    const modified = table.modify(handle, act(2));
    expect(table.counter(modified)).toEqual({ packets: 3n, bytes: 300n });
    expect(table.lastHitUs(modified)).toBe(5);
    expect(modified.action).toEqual(act(2));
  });

  test('has the default of the program until another is set, and again after', () => {
    const table = new MatchTable({ ...shapeOf([['exact', 32]]), defaultCall: act(7) }, () => 0, new PortStates());
    expect(table.miss.data[0]).toBe(7);
    table.setDefault(act(8));
    expect(table.miss.data[0]).toBe(8);
    expect(table.defaultAction()).toEqual(act(8));
    table.setDefault(undefined);
    expect(table.miss.data[0]).toBe(7);
    expect(table.defaultAction()).toEqual(act(7));
  });

  test('knows the entries of the program', () => {
    const table = new MatchTable(
      { ...shapeOf([['exact', 32]]), entries: [{ match: exact(1), priority: 0, action: act(1) }] },
      () => 0,
      new PortStates(),
    );
    const own = table.insert(exact(2), 0, act(2));
    expect([...table.entries()].map((entry) => table.isConst(entry))).toEqual([true, false]);
    expect(table.isConst(own)).toBe(false);
  });

  test('shares a selector among its members by weight', () => {
    const table = new MatchTable(shapeOf([['exact', 32]]), () => 0, new PortStates());
    const member = (value: number, weight: number) => ({ ...act(value), weight });
    table.insert(exact(1), 0, { selector: [member(1, 1), member(2, 3)] });
    const choices = table.index.find1(1)!.choices!;
    const picked = Array.from({ length: 8 }, (_, hash) => choices.pick(hash).data[0]);
    expect(picked).toEqual([1, 2, 2, 2, 1, 2, 2, 2]);
    expect(choices.pick((1n << 60n) + 1n).data[0]).toBe(2);
    const empty = table.insert(exact(2), 0, { selector: [] });
    expect(table.index.find1(2)!.row.action).toBe(-1);
    table.modify(empty, { selector: [member(9, 1)] });
    expect(table.index.find1(2)!.choices!.pick(5).data[0]).toBe(9);
  });

  test('refuses actions that it does not have', () => {
    const table = new MatchTable(shapeOf([['exact', 32]]), () => 0, new PortStates());
    expect(() => table.insert(exact(1), 0, { action: 'nope', params: [] })).toThrow(DdfError);
    expect(() => table.insert(exact(1), 0, { action: 'act', params: [] })).toThrow(DdfError);
    expect(() => table.insert([], 0, act(1))).toThrow(DdfError);
    expect([...table.entries()]).toEqual([]);
  });
});
