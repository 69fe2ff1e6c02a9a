import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

const read = (path: string): string => readFileSync(new URL(`../../../${path}`, import.meta.url), 'utf8');
const ROWS = 42;

/** Rows of the list in docs/targets.md with what they name as proof. */
function listed(): Map<number, string> {
  const [, section = ''] = read('docs/targets.md').split('## What goes wrong in the field');
  const rows = new Map<number, string>();
  for (const line of section.split('\n## ')[0]!.split('\n')) {
    const [, numbers, rest] = /^\| ([\d, ]+) \|.*\|([^|]+)\|$/.exec(line) ?? [];
    for (const number of numbers?.split(', ') ?? []) {
      expect(rows.has(Number(number)), `row ${number} twice`).toBe(false);
      rows.set(Number(number), rest!);
    }
  }
  return rows;
}

/** `row 2`, `rows 8 and 9` in titles of tests. */
function tested(): Set<number> {
  const titles = read('test/controller/targets/field-issues.test.ts').matchAll(/'rows? (\d+)(?: and (\d+))?:? /g);
  return new Set([...titles].flatMap(([, ...numbers]) => numbers.filter((each) => each !== undefined).map(Number)));
}

describe('the list of what goes wrong in the field', () => {
  const rows = listed();

  it('has every row once', () => {
    expect([...rows.keys()].sort((a, b) => a - b)).toEqual(Array.from({ length: ROWS }, (_, i) => i + 1));
  });

  it('names tests that there are', () => {
    for (const [row, proof] of rows) {
      const paths = [...proof.matchAll(/`([^`]+)`/g)].map(([, path]) => path!);
      for (const path of paths)
        expect(existsSync(new URL(`../../${path}`, import.meta.url)), `row ${row}: ${path}`).toBe(true);
      expect(paths.length > 0 || /field|bmv2/.test(proof), `row ${row} has a proof`).toBe(true);
    }
  });

  it('refers to exactly the rows that the tests with a bad target have', () => {
    const referred = [...rows].flatMap(([row, proof]) =>
      new RegExp(`field [\\d and]*\\b${row}\\b`).test(proof) ? [row] : [],
    );
    expect(new Set(referred)).toEqual(tested());
  });
});
