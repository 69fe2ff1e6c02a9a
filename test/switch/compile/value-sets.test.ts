import { describe, expect, test } from 'vitest';
import type { MatchValue } from '../../../switch/control.ts';
import { callTable, extract, field, goTo, hex, type Json, type StateSpec, send } from '../program-builder.ts';
import { TestDevice } from '../test-device.ts';

const vset = (name: string, next: string | null, mask: string | null = null): Json => ({
  type: 'parse_vset',
  value: name,
  mask,
  next_state: next,
});
const mark = (value: number): Json => ({ op: 'set', parameters: [field('h', 'mark'), hex(value)] });

/** Selects by (kind, wide) and marks the packet with what was taken. */
function device(transitions: readonly Json[], sets: readonly Json[]): TestDevice {
  const states: StateSpec[] = [
    {
      name: 'start',
      operations: [extract('h'), mark(0)],
      key: [field('h', 'kind'), field('h', 'wide')],
      transitions,
    },
    { name: 'one', operations: [mark(1)] },
    { name: 'two', operations: [mark(2)] },
  ];
  return new TestDevice({
    headers: {
      h: [
        ['kind', 12],
        ['mark', 4],
        ['wide', 40],
      ],
    },
    states,
    actions: [{ name: 'act', primitives: [send(1)] }],
    ingress: { tables: [callTable('act')] },
    root: { parse_vsets: sets },
  });
}

const marked = (on: TestDevice, kind: number, wide: number): number =>
  on.run(9, [kind >> 4, (kind & 15) << 4, 0, 0, 0, wide >> 8, wide & 255])[0]!.bytes[1]! & 15;
const exact = (value: bigint): MatchValue => ({ kind: 'exact', value });

describe('a parser value set', () => {
  const both = [
    { name: 'a', id: 0, compressed_bitwidth: 52, max_size: 2 },
    { name: 'b', id: 1, compressed_bitwidth: 52 },
  ];

  test('is empty until the control plane gives it members, which replace those before', () => {
    const on = device([vset('a', 'one'), vset('b', 'two'), goTo(null)], both);
    const [a, b] = ['a', 'b'].map((name) => on.control.valueSets.get(name)!);
    expect(marked(on, 0x123, 7)).toBe(0);
    a!.setMembers([[exact(0x123n), exact(7n)]]);
    b!.setMembers([
      [exact(0x123n), exact(7n)],
      [exact(0x123n), exact(8n)],
    ]);
    expect([7, 8, 9].map((wide) => marked(on, 0x123, wide))).toEqual([1, 2, 0]);
    a!.setMembers([]);
    expect(marked(on, 0x123, 7)).toBe(2);
    expect(b!.members()).toHaveLength(2);
  });

  test('matches as its members say: under masks, by prefix, in a range, or anything', () => {
    const on = device([vset('b', 'one'), goTo(null)], both);
    const set = on.control.valueSets.get('b')!;
    expect(set.keys.map((key) => key.widthBits)).toEqual([12, 40]);
    set.setMembers([
      [{ kind: 'ternary', value: 0x100n, mask: 0xf00n }, exact(1n)],
      [exact(5n), { kind: 'range', low: 10n, high: 20n }],
      [exact(6n), { kind: 'lpm', value: 0x1200n, prefixLength: 32 }],
      [exact(7n), { kind: 'optional' }],
    ]);
    expect([0x100, 0x1ff, 0x200].map((kind) => marked(on, kind, 1))).toEqual([1, 1, 0]);
    expect([9, 10, 20, 21].map((wide) => marked(on, 5, wide))).toEqual([0, 1, 1, 0]);
    expect([0x1200, 0x12ff, 0x1300].map((wide) => marked(on, 6, wide))).toEqual([1, 1, 0]);
    expect(marked(on, 7, 0xffff)).toBe(1);
  });

  test('is compared under the mask of the transition; members that become one there are no fault', () => {
    const on = device([vset('b', 'one', '0x0f00ffffffffff'), goTo(null)], both);
    const set = on.control.valueSets.get('b')!;
    set.setMembers([
      [exact(0x123n), exact(7n)],
      [exact(0x1ffn), exact(7n)],
    ]);
    expect([0x100, 0x1aa, 0x200].map((kind) => marked(on, kind, 7))).toEqual([1, 1, 0]);
    expect(() => set.setMembers([[{ kind: 'range', low: 1n, high: 2n }, exact(7n)]])).toThrow(/range/);
    expect(marked(on, 0x100, 7)).toBe(1);
  });

  test('holds as many members as the program says', () => {
    const on = device([vset('a', 'one'), goTo(null)], both);
    const members = [1n, 2n, 3n].map((value) => [exact(value), exact(0n)]);
    expect(() => on.control.valueSets.get('a')!.setMembers(members)).toThrow(/holds 2 members/);
    expect(marked(on, 1, 0)).toBe(0);
  });

  test('serves several states, if they compare the same parts', () => {
    const on = device([vset('b', 'one', '0x0f00ffffffffff'), vset('b', 'two'), goTo(null)], both);
    on.control.valueSets.get('b')!.setMembers([[exact(0x123n), exact(7n)]]);
    expect(marked(on, 0x123, 7)).toBe(1);
  });
});
