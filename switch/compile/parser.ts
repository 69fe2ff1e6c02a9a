import type {
  BooleanExpression,
  DataExpression,
  Header,
  Parser,
  ParserOperation,
  ParserState,
  ParserTransition,
  Program,
} from '../bmv2/program.ts';
import { type ActionContext, emitPrimitive, invalidateRivals } from './action.ts';
import { type Code, code, comment, joined, lines, list, name, nothing } from './code.ts';
import { type Graph, structured } from './control-flow.ts';
import { condition, number, type Scope, unsignedBits } from './expression.ts';
import { accesses, frameBits, load, slice } from './frame-bits.ts';
import { phv, wordCount } from './layout.ts';
import { rangeOf } from './ranges.ts';
import { keyLayout, keyWords } from './table.ts';

/** A packet that goes through more states than this has met a loop that consumes nothing. */
const MAX_STATES = 4096;

/**
 * Where the parser stands: a number of bytes after the frame's start where every path to a state consumes the same, otherwise after
 * the variable `p`. Both are places in the memory.
 */
interface Cursor {
  readonly variable: boolean;
  readonly offset: number;
}

/**
 * `parse(view, start, end)`: fills the vector from the frame that stands there, sets `parsed` (where it has stopped) and `parserError`. Errors end it
 * but do not drop the packet.
 */
export function parserFunction(program: Program, context: ActionContext): Code {
  const { parser } = program;
  if (parser.initial === undefined) return code`function parse(view, start) { parsed = start; }`;
  const emitter = new ParserEmitter(program, context, fixedOffsets(parser));
  const graph: Graph<ParserState> = {
    entry: parser.initial,
    successors: (state) =>
      state.transitions.map((transition) => transition.next).concat(lastDefault(state) ? [] : [undefined]),
    emit: (state, go) => emitter.state(state, go),
    end: code`return;`,
    turn: code`if (++turns > ${MAX_STATES}) { parsed = p; parserError = ${program.errors.parserTimeout}; return; }`,
  };
  return code`function parse(view, start, end) {
let p = start, w = 0, turns = 0;
${structured(graph, context.labels)}
}`;
}

function lastDefault(state: ParserState): boolean {
  return state.transitions.some((transition) => transition.parts.length === 0);
}

/** How far each state is from the frame's start, where that is always the same. */
function fixedOffsets(parser: Parser): ReadonlyMap<ParserState, number | undefined> {
  const offsets = new Map<ParserState, number | undefined>([[parser.initial!, 0]]);
  const pending = [parser.initial!];
  for (let state = pending.pop(); state !== undefined; state = pending.pop()) {
    const start = offsets.get(state);
    const consumed = consumedBytes(state);
    const end = start === undefined || consumed === undefined ? undefined : start + consumed;
    for (const { next } of state.transitions) {
      if (next === undefined) continue;
      if (!offsets.has(next)) {
        offsets.set(next, end);
        pending.push(next);
      } else if (offsets.get(next) !== undefined && offsets.get(next) !== end) {
        offsets.set(next, undefined);
        pending.push(next);
      }
    }
  }
  return offsets;
}

function consumedBytes(state: ParserState): number | undefined {
  let bytes = 0;
  for (const operation of state.operations) {
    if (operation.kind === 'extract' || operation.kind === 'extract-next') {
      if (operation.lengthBits !== undefined) return undefined;
      bytes += headersOf(operation)[0]!.widthBits / 8;
    }
    if (operation.kind === 'advance') {
      if (operation.bits.kind !== 'constant') return undefined;
      bytes += Number(operation.bits.value) / 8;
    }
  }
  return Number.isInteger(bytes) ? bytes : undefined;
}

type Extraction = Extract<ParserOperation, { kind: 'extract' | 'extract-next' }>;

/** The header, or that of each element of a stack. */
function headersOf(operation: Extraction): readonly Header[] {
  if (operation.kind === 'extract') return [operation.header];
  return operation.stack.elements.map((element) => element[operation.member]!);
}

class ParserEmitter {
  private readonly program: Program;
  private readonly context: ActionContext;
  private readonly offsets: ReadonlyMap<ParserState, number | undefined>;
  private cursor: Cursor = { variable: false, offset: 0 };

  constructor(program: Program, context: ActionContext, offsets: ReadonlyMap<ParserState, number | undefined>) {
    this.program = program;
    this.context = context;
    this.offsets = offsets;
  }

  state(state: ParserState, go: (next: ParserState | undefined) => Code): Code {
    const start = this.offsets.get(state);
    this.cursor = start === undefined ? { variable: true, offset: 0 } : { variable: false, offset: start };
    const body = state.operations.map((operation) => this.operation(operation));
    const keyCheck = this.requireLookahead(state.key.map((part) => part.value));
    const tests = state.transitions.map((transition) => this.test(state, transition));
    const end = this.cursor;
    const cases: Code[] = [];
    let decided = false;
    state.transitions.forEach(({ next, parts }, i) => {
      if (decided) return;
      const taken = lines([this.leave(end, next), go(next)]);
      decided = parts.length === 0;
      cases.push(decided ? taken : code`if (${tests[i]!}) {\n${taken}\n}`);
    });
    // bmv2's default next state is none: the parser ends.
    if (!decided) cases.push(lines([this.leave(end, undefined), go(undefined)]));
    const told = this.context.tracing.tell(name('state'), state.index);
    return lines([comment(`state ${state.name}`), told, ...body, keyCheck, ...cases]);
  }

  /** What has to be stored before the next state starts, or the parser ends. */
  private leave(cursor: Cursor, next: ParserState | undefined): Code {
    const position = this.position(cursor, 0);
    if (next === undefined) return code`parsed = ${position};`;
    if (this.offsets.get(next) !== undefined || (cursor.variable && cursor.offset === 0)) return nothing;
    return code`p = ${position};`;
  }

  private position(cursor: Cursor, more: number): Code {
    const offset = cursor.offset + more;
    const base = name(cursor.variable ? 'p' : 'start');
    return offset === 0 ? base : code`${base} + ${offset}`;
  }

  private get scope(): Scope {
    return {
      layout: this.context.layout,
      lookahead: (offset, width) => this.frameBits(offset, width),
    };
  }

  /** @param after behind a varbit of `m` bytes */
  private frameBits(start: number, width: number, after = false) {
    const cursor = this.cursor;
    const at = (byte: number): Code => (after ? code`${this.position(cursor, byte)} + m` : this.position(cursor, byte));
    return frameBits(at, start, width);
  }

  private fail(error: Code): Code {
    return code`{ parsed = ${this.position(this.cursor, 0)}; parserError = ${error}; return; }`;
  }

  private require(bytes: number): Code {
    if (bytes === 0) return nothing;
    const error = code`${this.program.errors.packetTooShort}`;
    return code`if (end < ${this.position(this.cursor, bytes)}) ${this.fail(error)}`;
  }

  private requireLookahead(values: readonly (DataExpression | BooleanExpression)[]): Code {
    return this.require(Math.max(0, ...values.map((value) => Math.ceil(lookaheadBits(value) / 8))));
  }

  private operation(operation: ParserOperation): Code {
    switch (operation.kind) {
      case 'extract':
      case 'extract-next':
        return this.extract(operation);
      case 'require-last': {
        const next = this.context.layout.word(operation.stack.next);
        return code`if (${next} === 0) ${this.fail(code`${this.program.errors.stackOutOfBounds}`)}`;
      }
      case 'verify': {
        const check = this.requireLookahead([operation.condition, operation.error]);
        const error = unsignedBits(operation.error, this.scope, 0, 32);
        return lines([check, code`if (!${condition(operation.condition, this.scope)}) ${this.fail(error)}`]);
      }
      case 'advance':
        return this.advance(operation.bits);
      case 'primitive': {
        const { primitive } = operation;
        const check = primitive.kind === 'assign' ? this.requireLookahead([primitive.value]) : nothing;
        return lines([check, emitPrimitive(primitive, this.scope, this.context)]);
      }
    }
  }

  private extract(operation: Extraction): Code {
    const { lengthBits } = operation;
    const headers = headersOf(operation);
    const full =
      operation.kind === 'extract'
        ? nothing
        : code`if (${this.context.layout.word(operation.stack.next)} >= ${headers.length}) ${this.fail(code`${this.program.errors.stackOutOfBounds}`)}`;
    if (lengthBits === undefined) {
      const bytes = headers[0]!.widthBits / 8;
      const extracted = this.select(operation, (header) => this.fill(header));
      const check = this.require(bytes);
      this.cursor = { ...this.cursor, offset: this.cursor.offset + bytes };
      return lines([full, check, extracted]);
    }
    const measured = this.measureVarbit(headers[0]!, lengthBits);
    const extracted = this.select(operation, (header) => this.fill(header));
    const end = code`p = ${this.position(this.cursor, headers[0]!.widthBits / 8)} + m;`;
    this.cursor = { variable: true, offset: 0 };
    return lines([full, code`{ ${measured} ${extracted} ${end} }`]);
  }

  /** The code for the header, or for the next of a stack's, which then is the last. */
  private select(operation: Extraction, emit: (header: Header) => Code): Code {
    if (operation.kind === 'extract') return emit(operation.header);
    const next = this.context.layout.word(operation.stack.next);
    const cases = headersOf(operation).map((header, place) => code`case ${place}:\n${emit(header)}\nbreak;`);
    return code`switch (${next}) {\n${cases}\n}\n${next}++;`;
  }

  /** Leaves the bytes of the varbit in `m`, once it is known that they are there and may be. */
  private measureVarbit(header: Header, lengthBits: DataExpression): Code {
    const { packetTooShort, headerTooShort, parserInvalidArgument } = this.program.errors;
    const fixed = header.widthBits / 8;
    const most = header.varbit!.widthBits / 8;
    return lines([
      this.requireLookahead([lengthBits]),
      code`const m = ${number(lengthBits, this.scope)} / 8;`,
      code`if (m % 1 !== 0) ${this.fail(code`${parserInvalidArgument}`)}`,
      code`if (m < 0 || end - (${this.position(this.cursor, fixed)}) < m) ${this.fail(code`${packetTooShort}`)}`,
      code`if (m > ${most}) ${this.fail(code`${headerTooShort}`)}`,
    ]);
  }

  /** Makes the header valid and its live fields what stands at the cursor; a varbit has `m` bytes. */
  private fill(header: Header): Code {
    const { layout } = this.context;
    const { varbit } = header;
    const valid = code`${layout.validityWord(header)} = ${layout.usage.rebuilt.has(header) ? code`1` : this.position(this.cursor, 2)};`;
    const stores = this.extraction(header);
    const variable =
      varbit === undefined
        ? []
        : [
            code`${layout.word(varbit.length!)} = 8 * m;`,
            layout.isLive(varbit)
              ? code`${name('loadVarbit')}(phv, ${layout.place(varbit)}, ${wordCount(varbit.widthBits)}, memory.bytes, 8 * (${this.position(this.cursor, 0)}) + ${varbit.offsetBits}, 8 * m);`
              : nothing,
          ];
    return lines([valid, ...invalidateRivals(header, layout), ...stores, ...variable]);
  }

  /** Live fields from where they stand to the vector; what several of them share is loaded once. */
  private extraction(header: Header): Code[] {
    const { layout } = this.context;
    const { varbit } = header;
    const behind = varbit === undefined ? header.fields.length : header.fields.indexOf(varbit);
    const pieces = header.fields.flatMap((field, i) => {
      if (!layout.isLive(field) || field === varbit) return [];
      return Array.from({ length: wordCount(field.widthBits) }, (_, word) => {
        const end = field.offsetBits + field.widthBits - 32 * word;
        const start = Math.max(field.offsetBits, end - 32);
        return { target: phv(layout.place(field) + word), start, end, after: i > behind };
      });
    });
    const shared = accesses(header.widthBits / 8).flatMap(({ byte, size }) => {
      const inside = pieces.filter(
        ({ start, end, after }) => !after && start >= 8 * byte && end <= 8 * (byte + size) && end - start < 8 * size,
      );
      return inside.length > 1 ? [{ byte, size, inside }] : [];
    });
    const alone = pieces.filter((piece) => !shared.some(({ inside }) => inside.includes(piece)));
    return [
      ...alone.map(
        ({ target, start, end, after }) => code`${target} = ${this.frameBits(start, end - start, after).code};`,
      ),
      ...shared.map(({ byte, size, inside }) => {
        const stores = inside.map(
          ({ target, start, end }) => code`${target} = ${slice(name('w'), 8 * size, 8 * byte, start, end)};`,
        );
        return lines([code`w = ${load(name('view'), this.position(this.cursor, byte), size)};`, ...stores]);
      }),
    ];
  }

  private advance(bits: DataExpression): Code {
    const invalid = this.fail(code`${this.program.errors.parserInvalidArgument}`);
    if (bits.kind === 'constant') {
      if (bits.value % 8n !== 0n || bits.value < 0n) return lines([code`if (true) ${invalid}`]);
      const bytes = Number(bits.value) / 8;
      const check = this.require(bytes);
      this.cursor = { ...this.cursor, offset: this.cursor.offset + bytes };
      return check;
    }
    const short = this.fail(code`${this.program.errors.packetTooShort}`);
    const position = this.position(this.cursor, 0);
    const check = this.requireLookahead([bits]);
    const code_ = code`${check}
{ const n = ${number(bits, this.scope)};
if (n % 8 !== 0) ${invalid}
if (end - (${position}) < n / 8 || n < 0) ${short}
p = ${position} + n / 8; }`;
    this.cursor = { variable: true, offset: 0 };
    return code_;
  }

  private test(state: ParserState, transition: ParserTransition): Code {
    if (transition.valueSet !== undefined) return this.contains(state, transition);
    const tests: Code[] = [];
    transition.parts.forEach(({ value, mask }, i) => {
      const key = state.key[i]!;
      if (value >> BigInt(key.widthBits) !== 0n) tests.push(code`false`);
      else if (mask !== 0n) {
        const left = keyUnderMask(key, mask);
        tests.push(condition({ kind: 'comparison', operator: '==', left, right: constant(value) }, this.scope));
      }
    });
    return joined(tests, '&&', code`true`);
  }

  /** Whether a member of the value set agrees with the key. */
  private contains(state: ParserState, transition: ParserTransition): Code {
    const place = this.program.valueSetUses.indexOf(transition);
    const keys = state.key.map((key, i) => {
      const { mask } = transition.parts[i]!;
      return { value: keyUnderMask(key, mask), widthBits: key.widthBits };
    });
    const words = keyWords(keys, keyLayout(keys), this.scope);
    const members = name('V', place);
    if (words.length === 1) return code`${members}.index.find1((${words[0]!}) >>> 0) !== undefined`;
    const buffer = name('Q', place);
    const stores = words.map((word, i) => code`${buffer}[${i}] = ${word}`);
    return code`(${list(stores)}, ${members}.index.find(${buffer}) !== undefined)`;
  }
}

type KeyPart = ParserState['key'][number];

function constant(value: bigint): DataExpression {
  return { kind: 'constant', value };
}

function keyUnderMask({ value, widthBits }: KeyPart, mask: bigint): DataExpression {
  if (mask === (1n << BigInt(widthBits)) - 1n) return unsignedKey(value, widthBits);
  return { kind: 'arithmetic', operator: '&', left: value, right: constant(mask) };
}

/** Keys are compared as bits, also those of signed fields. */
function unsignedKey(value: DataExpression, widthBits: number): DataExpression {
  if (rangeOf(value).low >= 0n) return value;
  const mask: DataExpression = { kind: 'constant', value: (1n << BigInt(widthBits)) - 1n };
  return { kind: 'arithmetic', operator: '&', left: value, right: mask };
}

/** How many bits ahead of the cursor an expression looks. */
function lookaheadBits(expression: DataExpression | BooleanExpression): number {
  switch (expression.kind) {
    case 'lookahead':
      return expression.offsetBits + expression.widthBits;
    case 'arithmetic':
    case 'comparison':
    case 'boolean-comparison':
    case 'logic':
      return Math.max(lookaheadBits(expression.left), lookaheadBits(expression.right));
    case 'choice':
    case 'boolean-choice':
      return Math.max(lookaheadBits(expression.condition), lookaheadBits(expression.yes), lookaheadBits(expression.no));
    case 'register':
      return lookaheadBits(expression.index);
    case 'complement':
    case 'cast':
    case 'from-boolean':
    case 'not':
    case 'non-zero':
      return lookaheadBits(expression.operand);
    default:
      return 0;
  }
}
