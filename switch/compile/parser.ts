import type {
  BooleanExpression,
  DataExpression,
  Header,
  Parser,
  ParserOperation,
  ParserState,
  Program,
} from '../bmv2/program.ts';
import { type ActionContext, emitPrimitive } from './action.ts';
import { type Code, code, comment, joined, lines, name, nothing } from './code.ts';
import { type Graph, structured } from './control-flow.ts';
import { assign, condition, number, type Scope, unsignedBits } from './expression.ts';
import { frameBits } from './frame-bits.ts';
import { phv, wordCount } from './layout.ts';

/** A packet that goes through more states than this has met a loop that consumes nothing. */
const MAX_STATES = 4096;

/**
 * Where the parser stands: a number of bytes after the frame's start where every path to a state consumes the same, otherwise after
 * the variable `p`.
 */
interface Cursor {
  readonly variable: boolean;
  readonly offset: number;
}

/** `parse(frame, length)`: fills the vector, sets `parsed` and `parserError`. Errors end it but do not drop the packet. */
export function parserFunction(program: Program, context: ActionContext): Code {
  const { parser } = program;
  if (parser.initial === undefined) return code`function parse(frame, length) { parsed = 0; }`;
  const emitter = new ParserEmitter(program, context, fixedOffsets(parser));
  const graph: Graph<ParserState> = {
    entry: parser.initial,
    successors: (state) =>
      state.transitions.map((transition) => transition.next).concat(lastDefault(state) ? [] : [undefined]),
    emit: (state, go) => emitter.state(state, go),
    end: code`return;`,
    turn: code`if (++turns > ${MAX_STATES}) { parsed = p; parserError = ${program.errors.parserTimeout}; return; }`,
  };
  return code`function parse(frame, length) {
let p = 0, turns = 0;
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
    if (operation.kind === 'extract') bytes += operation.header.widthBits / 8;
    if (operation.kind === 'advance') {
      if (operation.bits.kind !== 'constant') return undefined;
      bytes += Number(operation.bits.value) / 8;
    }
  }
  return Number.isInteger(bytes) ? bytes : undefined;
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
    const tests = state.transitions.map((transition) => this.test(state, transition.parts));
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
    if (!cursor.variable) return code`${offset}`;
    return offset === 0 ? name('p') : code`p + ${offset}`;
  }

  private get scope(): Scope {
    return {
      layout: this.context.layout,
      lookahead: (offset, width) => this.frameBits(offset, width),
    };
  }

  private frameBits(start: number, width: number) {
    const cursor = this.cursor;
    return frameBits(name('frame'), (byte) => this.position(cursor, byte), start, width);
  }

  private fail(error: Code): Code {
    return code`{ parsed = ${this.position(this.cursor, 0)}; parserError = ${error}; return; }`;
  }

  private require(bytes: number): Code {
    if (bytes === 0) return nothing;
    const error = code`${this.program.errors.packetTooShort}`;
    return code`if (length < ${this.position(this.cursor, bytes)}) ${this.fail(error)}`;
  }

  private requireLookahead(values: readonly (DataExpression | BooleanExpression)[]): Code {
    return this.require(Math.max(0, ...values.map((value) => Math.ceil(lookaheadBits(value) / 8))));
  }

  private operation(operation: ParserOperation): Code {
    switch (operation.kind) {
      case 'extract':
        return this.extract(operation.header);
      case 'set': {
        const check = this.requireLookahead([operation.value]);
        if (!this.context.layout.isLive(operation.target)) return check;
        return lines([check, assign(operation.target, operation.value, this.scope)]);
      }
      case 'verify': {
        const check = this.requireLookahead([operation.condition, operation.error]);
        const error = unsignedBits(operation.error, this.scope, 0, 32);
        return lines([check, code`if (!${condition(operation.condition, this.scope)}) ${this.fail(error)}`]);
      }
      case 'advance':
        return this.advance(operation.bits);
      case 'primitive':
        return emitPrimitive(operation.primitive, this.scope, this.context);
    }
  }

  private extract(header: Header): Code {
    const { layout } = this.context;
    const bytes = header.widthBits / 8;
    const check = this.require(bytes);
    const valid = code`${layout.validityWord(header)} = ${this.position(this.cursor, 2)};`;
    const stores = header.fields
      .filter((field) => layout.isLive(field))
      .flatMap((field) =>
        Array.from({ length: wordCount(field.widthBits) }, (_, word) => {
          const part = Math.min(32, field.widthBits - 32 * word);
          const start = field.offsetBits + field.widthBits - 32 * word - part;
          return code`${phv(layout.place(field) + word)} = ${this.frameBits(start, part).code};`;
        }),
      );
    this.cursor = { ...this.cursor, offset: this.cursor.offset + bytes };
    return lines([check, valid, ...stores]);
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
if (length - (${position}) < n / 8 || n < 0) ${short}
p = ${position} + n / 8; }`;
    this.cursor = { variable: true, offset: 0 };
    return code_;
  }

  private test(state: ParserState, parts: ParserState['transitions'][number]['parts']): Code {
    const tests: Code[] = [];
    parts.forEach(({ value, mask }, i) => {
      const key = state.key[i]!;
      if (value >> BigInt(key.widthBits) !== 0n) tests.push(code`false`);
      else if (mask !== 0n) {
        const constant = (of: bigint): DataExpression => ({ kind: 'constant', value: of });
        const masked: DataExpression = {
          kind: 'arithmetic',
          operator: '&',
          left: key.value,
          right: constant(mask),
        };
        const full = mask === (1n << BigInt(key.widthBits)) - 1n;
        const left = full ? unsignedKey(key.value, key.widthBits) : masked;
        tests.push(condition({ kind: 'comparison', operator: '==', left, right: constant(value) }, this.scope));
      }
    });
    return joined(tests, '&&', code`true`);
  }
}

/** Keys are compared as bits, also those of signed fields. */
function unsignedKey(value: DataExpression, widthBits: number): DataExpression {
  if (value.kind !== 'field' || !value.field.signed) return value;
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
      return Math.max(lookaheadBits(expression.condition), lookaheadBits(expression.yes), lookaheadBits(expression.no));
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
