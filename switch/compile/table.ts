import type { Action, DataExpression, HeaderField, PipelineNode, Table } from '../bmv2/program.ts';
import { calculationName } from './calculation.ts';
import { type Code, code, lines, name, nothing } from './code.ts';
import { type Bits, bits, normal, type Scope } from './expression.ts';
import { wordCount } from './layout.ts';
import type { Tracing } from './tracing.ts';

/** Where a key stands in the words that a table is looked up by. Narrow keys share a word, wide ones have words of their own. */
export interface KeyPlace {
  readonly word: number;
  readonly shift: number;
}

export interface KeyLayout {
  readonly places: readonly KeyPlace[];
  readonly words: number;
}

/** A value that is looked up by. */
export interface LookupKey {
  readonly value: DataExpression;
  readonly widthBits: number;
}

export function keyLayout(keys: readonly { readonly widthBits: number }[]): KeyLayout {
  const used: number[] = [];
  const places = keys.map(({ widthBits }) => {
    if (widthBits > 32) {
      const word = used.length;
      for (let left = widthBits; left > 0; left -= 32) used.push(32);
      return { word, shift: 0 };
    }
    const found = used.findIndex((taken) => taken + widthBits <= 32);
    const word = found >= 0 ? found : used.push(0) - 1;
    const shift = used[word]!;
    used[word] = shift + widthBits;
    return { word, shift };
  });
  return { places, words: used.length };
}

/** Whether a table is but a call: p4c wraps every statement of a control into one. */
export function isPlainCall(table: Table): boolean {
  return (
    table.keys.length === 0 &&
    table.defaultCall !== undefined &&
    table.defaultIsConst &&
    table.defaultCall.params.length === 0 &&
    table.entries.length === 0
  );
}

/** The words of the key that the packet is looked up by. */
export function keyWords(keys: readonly LookupKey[], layout: KeyLayout, scope: Scope): Code[] {
  const words: Code[] = Array.from({ length: layout.words }, () => nothing);
  const put = (word: number, value: Bits, width: number, shift: number) => {
    const cut = normal(value, width);
    const moved = shift === 0 ? cut : code`(${cut} << ${shift})`;
    words[word] = words[word]!.isEmpty ? moved : code`${words[word]!} | ${moved}`;
  };
  keys.forEach((key, i) => {
    const { word, shift } = layout.places[i]!;
    for (let low = 0, at = word; low < key.widthBits; low += 32, at++) {
      const width = Math.min(32, key.widthBits - low);
      put(at, bits(key.value, scope, low, width), width, shift);
    }
  });
  return words;
}

/** Where a table leads, with as few branches as its successors differ. */
export type TableExit =
  | { readonly kind: 'one'; readonly next: PipelineNode | undefined }
  | { readonly kind: 'hit-miss'; readonly hit: PipelineNode | undefined; readonly miss: PipelineNode | undefined }
  /** By action, in the table's order; without any action (a miss without a default) to `none`. */
  | {
      readonly kind: 'by-action';
      readonly next: readonly (PipelineNode | undefined)[];
      readonly none: PipelineNode | undefined;
    };

export function tableExit(table: Table): TableExit {
  if (table.next.kind === 'hit-miss') {
    const { hit, miss } = table.next;
    if (table.keys.length === 0 || hit === miss) return { kind: 'one', next: miss };
    return { kind: 'hit-miss', hit, miss };
  }
  const { byAction } = table.next;
  if (isPlainCall(table)) return { kind: 'one', next: byAction.get(table.defaultCall!.action) };
  const next = table.actions.map((action) => byAction.get(action));
  if (next.every((node) => node === table.baseNext)) return { kind: 'one', next: table.baseNext };
  return { kind: 'by-action', next, none: table.baseNext };
}

export function tableSuccessors(table: Table): (PipelineNode | undefined)[] {
  const exit = tableExit(table);
  switch (exit.kind) {
    case 'one':
      return [exit.next];
    case 'hit-miss':
      return [exit.hit, exit.miss];
    case 'by-action':
      return [...exit.next, exit.none];
  }
}

export interface TableContext {
  readonly scope: Scope;
  readonly tracing: Tracing;
  /** Runs an action on an entry's data. */
  call(action: Action, data: Code): Code;
  /** Leaves the pipeline if the action executed `exit`; nothing where it cannot. */
  leaveAfter(action: Action): Code;
}

/** Looks up, runs the action, continues where the result says. */
export function emitTable(table: Table, context: TableContext, go: (next: PipelineNode | undefined) => Code): Code {
  const exit = tableExit(table);
  const byAction = exit.kind === 'by-action';
  const cases = table.actions.map((action, i) => {
    const next = byAction ? go(exit.next[i]) : code`break;`;
    return code`case ${i}:\n${lines([context.call(action, code`r.data`), context.leaveAfter(action), next])}`;
  });
  if (byAction) cases.push(code`default:\n${go(exit.none)}`);
  const run = cases.length === 0 ? nothing : code`switch (r.action) {\n${cases}\n}`;
  const look = table.keys.length === 0 ? emitMiss(table, context) : emitLookup(table, context);
  switch (exit.kind) {
    case 'one':
      // The names of the lookup end here: what follows may be another table.
      return lines([code`{\n${look}\n${run}\n}`, go(exit.next)]);
    case 'hit-miss':
      return code`{\n${look}\n${run}\nif (e !== undefined) {\n${go(exit.hit)}\n} else {\n${go(exit.miss)}\n}\n}`;
    case 'by-action':
      return code`{\n${look}\n${run}\n}`;
  }
}

function emitMiss(table: Table, { tracing }: TableContext): Code {
  const told = tracing.tell(name('table'), table.index, code`[]`, code`undefined`, code`r`);
  return lines([code`const r = ${name('T', table.index)}.miss;`, told]);
}

/** Leaves the entry in `e` and what it does in `r`. */
function emitLookup(table: Table, { scope, tracing }: TableContext): Code {
  const runtime = name('T', table.index);
  const index = name('X', table.index);
  const words = keyWords(table.keys, keyLayout(table.keys), scope);
  const single = code`(${words[0]!}) >>> 0`;
  const look =
    words.length === 1
      ? tracing.on
        ? code`const k = ${single}, e = ${index}.find1(k);`
        : code`const e = ${index}.find1(${single});`
      : lines([
          ...words.map((word, i) => code`${name('K', table.index)}[${i}] = ${word};`),
          code`const e = ${index}.find(${name('K', table.index)});`,
        ]);
  const row =
    table.selector === undefined
      ? code`e.row`
      : code`e.choices === undefined ? e.row : e.choices.pick(${calculationName(table.selector.calculation)}())`;
  const counts = table.directCounter === undefined ? nothing : code`e.packets++; e.bytes += length;`;
  const missCounts =
    table.directCounter === undefined ? nothing : code`${runtime}.missPackets++; ${runtime}.missBytes += length;`;
  const target = table.directMeter?.direct?.target;
  const colour =
    target === undefined
      ? nothing
      : storeColour(target, code`e.meter === undefined ? 0 : ${executed(code`e.meter`, tracing)}`, scope);
  const missColour =
    target === undefined
      ? nothing
      : code`if (${runtime}.missMeter !== undefined) { ${storeColour(target, executed(code`${runtime}.missMeter`, tracing), scope)} }`;
  const keys = words.length === 1 ? code`[k]` : name('K', table.index);
  return lines([
    look,
    code`let r;`,
    code`if (e === undefined) { r = ${runtime}.miss; ${ifLive(missCounts, tracing)} ${missColour} }`,
    code`else { r = ${row}; ${ifLive(code`e.lastHitUs = now; ${counts}`, tracing)} ${colour} }`,
    tracing.tell(name('table'), table.index, keys, code`e`, code`r`),
  ]);
}

/** The trace of a packet that is only tried leaves no marks. */
function ifLive(marks: Code, tracing: Tracing): Code {
  return tracing.on && !marks.isEmpty ? code`if (trace.live) { ${marks} }` : marks;
}

function executed(meter: Code, tracing: Tracing): Code {
  return tracing.on ? code`trace.meter(${meter}).execute(length, now)` : code`${meter}.execute(length, now)`;
}

/** A colour is 0, 1 or 2; a field of one bit has only room for its lowest bit. */
function storeColour(target: HeaderField, colour: Code, { layout }: Scope): Code {
  const low = target.widthBits === 1 ? code`(${colour}) & 1` : colour;
  const high = Array.from(
    { length: wordCount(target.widthBits) - 1 },
    (_, word) => code`${layout.word(target, word + 1)} = 0;`,
  );
  return code`${layout.word(target)} = ${low}; ${high}`;
}
