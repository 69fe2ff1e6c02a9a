import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type Code, code, lines, nothing } from '../../../switch/compile/code.ts';
import { LabelSource, structured } from '../../../switch/compile/control-flow.ts';

interface Node {
  readonly id: number;
  readonly next: readonly (Node | undefined)[];
}

/** Runs the structured code: the branch at step i is given by `choices[i]`; returns the nodes in the order of their visits. */
function trace(entry: Node, choices: readonly number[]): number[] {
  const text = structured<Node>(
    {
      entry,
      successors: (node) => node.next,
      emit(node, go) {
        const cases = node.next.map((next, i): Code => code`if (choice === ${i}) {\n${go(next)}\n}`);
        return lines([
          code`visited.push(${node.id}); if (visited.length > choices.length) return;`,
          code`choice = choices[visited.length - 1] % ${node.next.length};`,
          ...cases,
        ]);
      },
      end: code`return;`,
      turn: nothing,
    },
    new LabelSource(),
  );
  const visited: number[] = [];
  new Function('visited', 'choices', `let choice = 0;\n${text}`)(visited, choices);
  return visited;
}

function expected(entry: Node, choices: readonly number[]): number[] {
  const visited: number[] = [];
  for (let node: Node | undefined = entry; node !== undefined; ) {
    visited.push(node.id);
    if (visited.length > choices.length) break;
    node = node.next[choices[visited.length - 1]! % node.next.length];
  }
  return visited;
}

const choices = fc.array(fc.nat(5), { minLength: 1, maxLength: 40 });

/** Graphs whose edges go forward, with loops back to the entry if `loops`. */
function graph(loops: boolean): fc.Arbitrary<Node> {
  return fc
    .array(fc.array(fc.nat(11), { minLength: 1, maxLength: 3 }), { minLength: 1, maxLength: 10 })
    .map((edges) => {
      const nodes: { id: number; next: (Node | undefined)[] }[] = edges.map((_, id) => ({ id, next: [] }));
      edges.forEach((targets, id) => {
        for (const step of targets) {
          // A loop to the entry is always reducible: the entry dominates everything.
          const target = loops && step === 0 ? nodes[0] : nodes[id + 1 + (step % 4)];
          nodes[id]!.next.push(target);
        }
      });
      return nodes[0]!;
    });
}

/** Edges from anywhere to anywhere, or to the end. */
const anyGraph: fc.Arbitrary<Node> = fc
  .array(fc.array(fc.nat(9), { minLength: 1, maxLength: 3 }), { minLength: 1, maxLength: 8 })
  .map((edges) => {
    const nodes: { id: number; next: (Node | undefined)[] }[] = edges.map((_, id) => ({ id, next: [] }));
    edges.forEach((targets, id) => {
      nodes[id]!.next.push(...targets.map((target) => nodes[target]));
    });
    return nodes[0]!;
  });

describe('structured control flow', () => {
  test('visits what an acyclic graph says, whatever the branches', () => {
    fc.assert(
      fc.property(graph(false), choices, (entry, steps) => {
        expect(trace(entry, steps)).toEqual(expected(entry, steps));
      }),
      { seed: 7, numRuns: 500 },
    );
  });

  test('follows loops', () => {
    fc.assert(
      fc.property(graph(true), choices, (entry, steps) => {
        expect(trace(entry, steps)).toEqual(expected(entry, steps));
      }),
      { seed: 8, numRuns: 500 },
    );
  });

  test('follows loops that are entered at several nodes', () => {
    const a: { id: number; next: Node[] } = { id: 1, next: [] };
    const b: Node = { id: 2, next: [a] };
    a.next.push(b);
    expect(trace({ id: 0, next: [a, b] }, [1, 0, 0, 0])).toEqual([0, 2, 1, 2, 1]);
    fc.assert(
      fc.property(anyGraph, choices, (entry, steps) => {
        expect(trace(entry, steps)).toEqual(expected(entry, steps));
      }),
      { seed: 9, numRuns: 500 },
    );
  });

  test('takes hundreds of nodes in a row', () => {
    let node: Node | undefined;
    for (let id = 300; id >= 0; id--) node = { id, next: [node] };
    expect(trace(node!, new Array<number>(400).fill(0)).length).toBe(301);
  });
});
