import type {
  Action,
  BooleanExpression,
  DataExpression,
  Header,
  HeaderField,
  Primitive,
  Stack,
} from '../bmv2/program.ts';
import { calculationName, hashBits } from './calculation.ts';
import { type Code, code, lines, list, literal, name, nothing } from './code.ts';
import { type Graph, type LabelSource, structured } from './control-flow.ts';
import { assign, bigint, condition, number, type Scope, unsignedBits } from './expression.ts';
import { type Layout, maskOf, phv, wordCount } from './layout.ts';
import { rangeOf } from './ranges.ts';
import type { Tracing } from './tracing.ts';

export interface ActionContext {
  readonly layout: Layout;
  readonly labels: LabelSource;
  /** The egress_spec of a packet that is dropped. */
  readonly dropPort: number;
  readonly tracing: Tracing;
}

/** Where an action's parameters stand in the data of an entry: each starts on a word. */
export function parameterWords(action: Action): { readonly starts: readonly number[]; readonly words: number } {
  let words = 0;
  const starts = action.parameters.map((parameter) => {
    const start = words;
    words += wordCount(parameter.widthBits);
    return start;
  });
  return { starts, words };
}

/** The statements of an action; its parameters are read from `d`. */
export function actionBody(action: Action, context: ActionContext): Code {
  const { starts } = parameterWords(action);
  const scope: Scope = { layout: context.layout, parameterWord: (index) => starts[index]! };
  if (!action.primitives.some((primitive) => primitive.kind === 'jump'))
    return lines(action.primitives.map((primitive) => emitPrimitive(primitive, scope, context)));
  const end = context.labels.next();
  return code`${end}: {\n${structured(blocksOf(action, scope, context, code`break ${end};`), context.labels)}\n}`;
}

interface Block {
  readonly primitives: readonly Primitive[];
  /** Absent: goes to `next`. */
  readonly unless: BooleanExpression | undefined;
  readonly jumpTo: number | undefined;
  readonly next: number | undefined;
}

/** Cuts at jumps and at what they jump to. */
function blocksOf(action: Action, scope: Scope, context: ActionContext, end: Code): Graph<Block> {
  const { primitives } = action;
  const starts = new Set([0]);
  primitives.forEach((primitive, i) => {
    if (primitive.kind === 'jump') {
      starts.add(primitive.to);
      starts.add(i + 1);
    }
  });
  const blocks = new Map<number, Block>();
  for (const start of starts) {
    if (start >= primitives.length) continue;
    let at = start;
    while (at < primitives.length && primitives[at]!.kind !== 'jump' && (at === start || !starts.has(at))) at++;
    const last = primitives[at];
    const jump = last?.kind === 'jump' && (at === start || !starts.has(at)) ? last : undefined;
    blocks.set(start, {
      primitives: primitives.slice(start, at),
      unless: jump?.unless,
      jumpTo: jump?.to,
      next: jump === undefined ? at : jump.unless === undefined ? jump.to : at + 1,
    });
  }
  const find = (index: number | undefined) => (index === undefined ? undefined : blocks.get(index));
  return {
    entry: blocks.get(0)!,
    successors: (block) => (block.unless === undefined ? [find(block.next)] : [find(block.jumpTo), find(block.next)]),
    emit(block, go) {
      const body = block.primitives.map((primitive) => emitPrimitive(primitive, scope, context));
      if (block.unless === undefined) return lines([...body, go(find(block.next))]);
      const test = condition(block.unless, scope);
      const yes = go(find(block.next));
      return lines([...body, code`if (${test}) {\n${yes}\n} else {\n${go(find(block.jumpTo))}\n}`]);
    },
    end,
    turn: loopGuard,
  };
}

/** Of a clone session's number simple_switch sees so many bits. */
const SESSION_BITS = 15;

/** A packet that goes round in an action or a pipeline more often than this is a fault of the program. */
const MAX_TURNS = 100_000;

/** At every turn of a loop; counts in `turns`, which is the packet's: loops within loops, passes and copies share it. */
export const loopGuard: Code = code`if (++turns > ${MAX_TURNS}) ${name('endlessLoop')}();`;

export function emitPrimitive(primitive: Primitive, scope: Scope, context: ActionContext): Code {
  const { layout } = context;
  switch (primitive.kind) {
    case 'assign':
      return assign(primitive.target, primitive.value, scope);
    case 'assign-header':
      return assignHeader(primitive, layout);
    case 'assign-varbit':
      return copyField(primitive.target, primitive.source, layout);
    case 'add-header': {
      if (primitive.header.metadata) return nothing;
      const zeros = primitive.header.fields
        .filter((field) => layout.isLive(field))
        .flatMap((field) => zeroWords(field, layout));
      const valid = layout.validityWord(primitive.header);
      const longer = lengthChange(layout, code`+=`, primitive.header);
      return code`if (${valid} === 0) { ${makeValid(primitive.header, layout)} ${longer} ${zeros} }`;
    }
    case 'validate-header': {
      if (primitive.header.metadata) return nothing;
      const valid = layout.validityWord(primitive.header);
      return code`if (${valid} === 0) { ${makeValid(primitive.header, layout)} }`;
    }
    case 'remove-header': {
      if (primitive.header.metadata) return nothing;
      const valid = layout.validityWord(primitive.header);
      const shorter = lengthChange(layout, code`-=`, primitive.header);
      return code`if (${valid} !== 0) { ${valid} = 0; ${shorter} }`;
    }
    case 'push':
    case 'pop':
      return emitShift(primitive, scope);
    case 'sequence':
      return lines(primitive.primitives.map((each) => emitPrimitive(each, scope, context)));
    case 'branch': {
      const [yes, no] = [primitive.yes, primitive.no].map((each) => emitPrimitive(each, scope, context));
      return code`if (${condition(primitive.condition, scope)}) {\n${yes!}\n} else {\n${no!}\n}`;
    }
    case 'jump':
      throw new TypeError('jumps are laid out by actionBody');
    case 'exit':
      return code`exiting = true;`;
    case 'mark-to-drop': {
      const constant = (value: number): DataExpression => ({ kind: 'constant', value: BigInt(value) });
      const { egressSpec, multicastGroup } = primitive;
      const clear = multicastGroup === undefined ? nothing : assign(multicastGroup, constant(0), scope);
      return lines([assign(egressSpec, constant(context.dropPort), scope), clear]);
    }
    case 'truncate':
      return code`${phv(layout.requests.truncate!)} = truncation(${phv(layout.requests.truncate!)}, ${unsignedBits(primitive.lengthBytes, scope, 0, 32)});`;
    case 'clone': {
      const session = unsignedBits(primitive.session, scope, 0, SESSION_BITS);
      return code`${phv(layout.requests.clone!)} = 1 + ${session}; ${phv(layout.requests.cloneKeeps!)} = ${primitive.keep.id};`;
    }
    case 'resubmit':
      return code`${phv(layout.requests.resubmit!)} = ${primitive.keep.id};`;
    case 'recirculate':
      return code`${phv(layout.requests.recirculate!)} = ${primitive.keep.id};`;
    case 'digest':
      return code`${phv(layout.requests.digest!)} = ${primitive.list?.id ?? 0};`;
    case 'count': {
      const counter = name('C', primitive.counter.index);
      return indexed(
        primitive.index,
        primitive.counter.size,
        scope,
        (i) => code`${counter}[2 * ${i}]++; ${counter}[2 * ${i} + 1] += length;`,
      );
    }
    case 'execute-meter': {
      const meter = name('M', primitive.meter.index);
      return indexed(primitive.index, primitive.meter.size, scope, (i) => {
        const colour = code`${meter}.execute(${i}, length, now)`;
        return store(primitive.target.widthBits, layout.word(primitive.target), colour, 2);
      });
    }
    case 'register-read':
      return indexed(primitive.index, primitive.register.size, scope, (i) => readRegister(primitive, i, layout));
    case 'register-write':
      return indexed(primitive.index, primitive.register.size, scope, (i) => writeRegister(primitive, i, scope));
    case 'hash':
      return emitHash(primitive, scope, layout);
    case 'random': {
      const { target, low, high } = primitive;
      const value = code`${name('uniform')}(${bigint(low, scope)}, ${bigint(high, scope)})`;
      return code`{ const x = ${value}; if (x !== undefined) storeWide(phv, ${layout.place(target)}, ${target.widthBits}, x); }`;
    }
    case 'log': {
      const values = primitive.values.map((value) => bigint(value, scope));
      return code`${name('log')}(${literal(primitive.format)}, [${list(values)}]);`;
    }
    case 'assert':
      return code`if (!${condition(primitive.condition, scope)}) { statistics.failedAssertions++; assertionFailed(${literal(primitive.place)}); }`;
    case 'no-op':
      return nothing;
  }
}

function lengthChange(layout: Layout, operator: Code, header: Header): Code {
  return layout.lengthWord === undefined
    ? nothing
    : code`${phv(layout.lengthWord)} ${operator} ${layout.bytes(header)};`;
}

/** Wholly in the vector; the other headers of its union are no more. */
function makeValid(header: Header, layout: Layout): Code {
  return lines([code`${layout.validityWord(header)} = 1;`, ...invalidateRivals(header, layout)]);
}

export function invalidateRivals(header: Header, layout: Layout): Code[] {
  return header.rivals.map((rival) => code`${layout.validityWord(rival)} = 0;`);
}

/** What is live of a field: its words, and how long it is. */
function copyField(target: HeaderField, source: HeaderField, layout: Layout): Code {
  const words = layout.isLive(target) ? copyWords(target, source, layout) : [];
  if (target.length !== undefined && source.length !== undefined)
    words.push(code`${layout.word(target.length)} = ${layout.word(source.length)};`);
  return lines(words);
}

/** So many words are written one by one; more at once. */
const MAX_UNROLLED = 16;

function copyWords(target: HeaderField, source: HeaderField, layout: Layout): Code[] {
  const [count, given] = [wordCount(target.widthBits), wordCount(source.widthBits)];
  if (count === given && count > MAX_UNROLLED) {
    const start = layout.place(source);
    return [code`phv.copyWithin(${layout.place(target)}, ${start}, ${start + count});`];
  }
  return Array.from({ length: count }, (_, word) => {
    const value = word < given ? layout.word(source, word) : code`0`;
    return code`${layout.word(target, word)} = ${value};`;
  });
}

function zeroWords(field: HeaderField, layout: Layout): Code[] {
  const [start, count] = [layout.place(field), wordCount(field.widthBits)];
  if (count > MAX_UNROLLED) return [code`phv.fill(0, ${start}, ${start + count});`];
  return Array.from({ length: count }, (_, word) => code`${layout.word(field, word)} = 0;`);
}

function assignHeader(primitive: Extract<Primitive, { kind: 'assign-header' }>, layout: Layout): Code {
  const { target, source } = primitive;
  const copies = target.fields.map((field, i) => copyField(field, source.fields[i]!, layout));
  if (target.metadata || source.metadata)
    return lines([target.metadata ? nothing : makeValid(target, layout), ...copies]);
  const valid = layout.validityWord(target);
  return code`if (${layout.isValid(source)}) { ${makeValid(target, layout)} ${copies} } else ${valid} = 0;`;
}

/** As simple_switch shifts by P4-16: the whole stack, however much of it is used. */
function emitShift({ kind, stack, count }: Extract<Primitive, { kind: 'push' | 'pop' }>, scope: Scope): Code {
  const size = stack.elements.length;
  const next = scope.layout.word(stack.next);
  const by = (amount: number): Code =>
    lines([
      code`${next} = ${name('clamp')}(${next} + ${kind === 'push' ? amount : -amount}, 0, ${size});`,
      ...shiftBy(kind, stack, amount, scope.layout),
    ]);
  if (count.kind === 'constant') return by(Number(count.value > BigInt(size) ? size : count.value));
  const times = code`${name('clamp')}(Number(${bigint(count, scope)}), 0, ${size})`;
  return code`for (let i = ${times}; i > 0; i--) {\n${by(1)}\n}`;
}

function shiftBy(kind: 'push' | 'pop', { elements }: Stack, amount: number, layout: Layout): Code[] {
  const places = [...elements.keys()];
  // Elements are overwritten only once they have been copied.
  if (kind === 'push') places.reverse();
  return places.flatMap((place) => {
    const from = elements[kind === 'push' ? place - amount : place + amount];
    return elements[place]!.flatMap((target, member) => {
      const source = from?.[member];
      if (source === undefined) return [code`${layout.validityWord(target)} = 0;`];
      const fields = target.fields.map((field, i) => copyField(field, source.fields[i]!, layout));
      return [code`${layout.validityWord(target)} = ${layout.validityWord(source)};`, ...fields];
    });
  });
}

/** Out of range: nothing happens but that it is counted. */
function indexed(index: DataExpression, size: number, scope: Scope, body: (index: Code) => Code): Code {
  const range = rangeOf(index);
  if (range.low >= 0n && range.high < 2n ** 32n) {
    const value = unsignedBits(index, scope, 0, 32);
    if (range.high < BigInt(size)) return code`{ const i = ${value}; ${body(name('i'))} }`;
    return code`{ const i = ${value}; if (i < ${size}) { ${body(name('i'))} } else statistics.outOfRange++; }`;
  }
  const value = code`Number(${bigint(index, scope)})`;
  return code`{ const i = ${value}; if (i >= 0 && i < ${size}) { ${body(name('i'))} } else statistics.outOfRange++; }`;
}

/** One word into a field that may be narrower, or wider, than it. */
function store(widthBits: number, word: Code, value: Code, valueBits: number): Code {
  if (widthBits >= 32 || valueBits <= widthBits) return code`${word} = ${value};`;
  return code`${word} = ${value} & ${maskOf(widthBits)};`;
}

function readRegister(
  { register, target }: Extract<Primitive, { kind: 'register-read' }>,
  index: Code,
  layout: Layout,
): Code {
  const cells = name('R', register.index);
  const words = wordCount(register.widthBits);
  return lines(
    Array.from({ length: wordCount(target.widthBits) }, (_, word) => {
      const part = Math.min(32, target.widthBits - 32 * word);
      if (word >= words) return code`${layout.word(target, word)} = 0;`;
      const cell = words === 1 ? code`${cells}[${index}]` : code`${cells}[${words} * ${index} + ${word}]`;
      return store(part, layout.word(target, word), cell, Math.min(32, register.widthBits - 32 * word));
    }),
  );
}

function writeRegister(
  { register, value }: Extract<Primitive, { kind: 'register-write' }>,
  index: Code,
  scope: Scope,
): Code {
  const cells = name('R', register.index);
  const words = wordCount(register.widthBits);
  return lines(
    Array.from({ length: words }, (_, word) => {
      const part = Math.min(32, register.widthBits - 32 * word);
      const cell = words === 1 ? code`${cells}[${index}]` : code`${cells}[${words} * ${index} + ${word}]`;
      return code`${cell} = ${unsignedBits(value, scope, 32 * word, part)};`;
    }),
  );
}

/** 64-bit unsigned arithmetic as in simple_switch, in doubles where the hash is short and the rest small. */
function emitHash(primitive: Extract<Primitive, { kind: 'hash' }>, scope: Scope, layout: Layout): Code {
  const { target, calculation, base, max } = primitive;
  const hash = code`${calculationName(calculation)}()`;
  const base32 = rangeOf(base).low >= 0n && rangeOf(base).high < 2n ** 32n;
  const short = hashBits(calculation.algorithm) <= 32;
  if (short && base32 && max.kind === 'constant' && max.value >= 0n && max.value <= 2n ** 32n) {
    const size = Number(max.value === 0n ? 1n : max.value);
    const rest = size === 2 ** 32 ? hash : code`(${hash} % ${size})`;
    const sum = rangeOf(base).high === 0n ? rest : code`(${rest} + ${number(base, scope)})`;
    const bits = Math.min(32, target.widthBits);
    const high = Array.from({ length: wordCount(target.widthBits) - 1 }, (_, i) =>
      i === 0 ? code`${layout.word(target, 1)} = x > 4294967295 ? 1 : 0;` : code`${layout.word(target, i + 1)} = 0;`,
    );
    return code`{ const x = ${sum}; ${store(bits, layout.word(target), name('x'), 33)} ${high} }`;
  }
  const value = code`hashOffset(${hash}, ${bigint(base, scope)}, ${bigint(max, scope)})`;
  return code`storeWide(phv, ${layout.place(target)}, ${target.widthBits}, ${value});`;
}
