import { describe, expect, it } from 'vitest';
import { p4Sources, sourceNamed } from '../../scripts/p4-build.ts';

/** The rules of docs/dataplane.md that keep the v1model program within what a stateful ALU and a pipeline of stages can do. */

const MAX_LINES = 600;

const sources = p4Sources().map(({ name, text }) => ({ name, text, code: text.replace(/\/\/.*$/gm, '') }));
const program = sources.map(({ code }) => code).join('\n');

const count = (pattern: RegExp, text: string = program): number => [...text.matchAll(pattern)].length;
const namesOf = (pattern: RegExp): string[] => [...program.matchAll(pattern)].map((match) => match[1]!);

/** Bodies of all controls, by name. */
function controlBodies(): Map<string, string> {
  const bodies = new Map<string, string>();
  for (const match of program.matchAll(/^control (\w+)\([^)]*\)\s*\{/gm)) {
    const start = match.index + match[0].length;
    let depth = 1;
    let end = start;
    while (depth > 0) {
      const character = program[end++];
      if (character === '{') depth++;
      if (character === '}') depth--;
    }
    bodies.set(match[1]!, program.slice(start, end - 1));
  }
  return bodies;
}

describe('the P4 sources', () => {
  const tables = namesOf(/\btable (\w+) \{/g);
  const registers = namesOf(/\bregister<.*?>\(\w+\) (\w+);/g);

  it('keep to files that one can read', () => {
    for (const { name, text } of sources) expect(text.split('\n').length, name).toBeLessThanOrEqual(MAX_LINES);
  });

  it('have a top file of includes and apply() calls only', () => {
    const top = sourceNamed(sources, 'fabric.p4');
    expect(count(/\bif\b|\btable\b|\baction\b|[^<>=!]=[^=]/g, top.text.replace(/\/\/.*$/gm, ''))).toBe(0);
  });

  it('apply every table in exactly one place', () => {
    expect(tables.length).toBe(12);
    for (const table of tables) expect(count(new RegExp(`\\b${table}\\.apply\\(\\)`, 'g')), table).toBe(1);
  });

  it('read and write every register once, the read first, with the same index', () => {
    expect(registers.length).toBe(11);
    for (const register of registers) {
      const reads = [...program.matchAll(new RegExp(`\\b${register}\\.read\\(\\w+, (\\w+)\\)`, 'g'))];
      const writes = [...program.matchAll(new RegExp(`\\b${register}\\.write\\((\\w+), \\w+\\)`, 'g'))];
      expect([reads.length, writes.length], register).toEqual([1, 1]);
      expect(reads[0]!.index, register).toBeLessThan(writes[0]!.index);
      expect(reads[0]![1], register).toBe(writes[0]![1]);
      // Nothing else of that pair's neighbours comes between: A is done before B begins, B before C.
      const between = program.slice(reads[0]!.index, writes[0]!.index);
      expect(count(/\.read\(/g, between), register).toBeLessThanOrEqual(2);
    }
  });

  it('set the multicast group only where nothing marks the packet to be dropped afterwards', () => {
    const setters = [...controlBodies()].filter(([, body]) => /\bmcast_grp = /.test(body));
    expect(setters.map(([name]) => name)).toEqual(['IngressVerdict']);
    const body = setters[0]![1];
    expect(body.indexOf('mark_to_drop(')).toBeLessThan(body.indexOf('mcast_grp ='));
    const markers = [...controlBodies()].filter(([, text]) => text.includes('mark_to_drop(')).map(([name]) => name);
    expect(markers).toEqual(['IngressVerdict', 'EgressVerdict']);
    // The ingress verdict is the last word of the ingress.
    const calls = [
      ...controlBodies()
        .get('FabricIngress')!
        .matchAll(/(\w+)\.apply\(hdr/g),
    ].map((match) => match[1]);
    expect(calls.at(-1)).toBe('ingress_verdict');
  });

  it('count drops where packets are dropped, and nowhere else', () => {
    for (const [name, body] of controlBodies())
      expect(count(/drop_counter\.count\(/g, body), name).toBe(count(/mark_to_drop\(/g, body));
  });

  it('use every drop reason that they number', () => {
    const reasons = namesOf(/^const bit<8> (DROP_\w+) =/gm);
    expect(reasons.length).toBeGreaterThan(20);
    const used = sources
      .filter(({ name }) => name !== 'ids.p4')
      .map(({ code }) => code)
      .join('\n');
    expect(reasons.filter((reason) => !new RegExp(`\\b${reason}\\b`).test(used))).toEqual([]);
  });

  it('state the size of every table', () => {
    for (const table of tables) {
      const body = program.slice(program.search(new RegExp(`\\btable ${table} \\{`)));
      expect(/\bsize = (?:[A-Z0-9_]+_SIZE|1);/.exec(body.slice(0, body.search(/\n {4}\}/)))?.[0], table).toBeDefined();
    }
  });
});
