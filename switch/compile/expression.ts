import type { BooleanExpression, DataExpression, Header, HeaderField } from '../bmv2/program.ts';
import { type Code, code, joined, name } from './code.ts';
import { type Layout, maskOf, phv, wordCount } from './layout.ts';
import { bitLength, isWithin, MAX_SHIFT, type Range, rangeOf, signedRange, unsignedRange } from './ranges.ts';

/** What expressions mean depends on where they stand. */
export interface Scope {
  readonly layout: Layout;
  /** The first word of an action's parameter in the entry's data `d`. */
  readonly parameterWord?: (index: number) => number;
  /** Bits of the packet ahead of the parser's cursor, as {@link bits} gives them. */
  readonly lookahead?: (offsetBits: number, widthBits: number) => Bits;
}

/**
 * Code whose value is congruent to the wanted bits modulo two to their number, as a 32-bit integer of either sign; when `max` is
 * given it is moreover an integer in 0..max.
 */
export interface Bits {
  readonly code: Code;
  readonly max?: number;
  /** The bits themselves, where they are known now. */
  readonly constant?: number;
}

/** Code for the exact value: a double that is an integer, or a BigInt. */
interface Exact {
  readonly code: Code;
  readonly wide: boolean;
}

const UINT32 = unsignedRange(32);
const INT32 = signedRange(32);
const SAFE: Range = { low: BigInt(Number.MIN_SAFE_INTEGER), high: BigInt(Number.MAX_SAFE_INTEGER) };
const INT32_MAX = 0x7fff_ffff;
const UINT32_MAX = 0xffff_ffff;

/** An unsigned integer of exactly these bits of the (two's complement) value. At most 32. */
export function unsignedBits(expression: DataExpression, scope: Scope, low: number, width: number): Code {
  return normal(bits(expression, scope, low, width), width);
}

/** Cuts to an unsigned integer of `width` bits. */
export function normal({ code: value, max }: Bits, width: number): Code {
  if (max !== undefined && max <= maskOf(width)) return value;
  return width === 32 ? code`(${value} >>> 0)` : code`(${value} & ${maskOf(width)})`;
}

/** The bits `low`..`low + width - 1` of the value; `width` is at most 32. */
export function bits(expression: DataExpression, scope: Scope, low: number, width: number): Bits {
  switch (expression.kind) {
    case 'constant': {
      const value = Number(BigInt.asUintN(width, expression.value >> BigInt(low)));
      return { code: code`${value}`, max: value, constant: value };
    }
    case 'field':
      if (expression.field.signed && low + width > expression.field.widthBits) break;
      return wordBits((word) => scope.layout.word(expression.field, word), expression.field.widthBits, low, width);
    case 'parameter':
      return wordBits((word) => parameter(scope, expression.index, word), expression.widthBits, low, width);
    case 'lookahead':
      if (low >= expression.widthBits) return ZERO;
      return scope.lookahead!(
        expression.offsetBits + Math.max(0, expression.widthBits - low - width),
        Math.min(width, expression.widthBits - low),
      );
    case 'validity':
      return low > 0 ? ZERO : { code: code`(${scope.layout.isValid(expression.header)} ? 1 : 0)`, max: 1 };
    case 'from-boolean':
      return low > 0 ? ZERO : { code: code`(${condition(expression.operand, scope)} ? 1 : 0)`, max: 1 };
    case 'complement':
      return { code: code`(~${bits(expression.operand, scope, low, width).code})` };
    case 'choice': {
      const yes = bits(expression.yes, scope, low, width);
      const no = bits(expression.no, scope, low, width);
      const value = code`(${condition(expression.condition, scope)} ? ${yes.code} : ${no.code})`;
      return yes.max !== undefined && no.max !== undefined
        ? { code: value, max: Math.max(yes.max, no.max) }
        : { code: value };
    }
    case 'cast':
      if (expression.cast === 'two_comp_mod' && low + width <= expression.widthBits)
        return bits(expression.operand, scope, low, width);
      break;
    case 'arithmetic': {
      const result = arithmeticBits(expression, scope, low, width);
      if (result !== undefined) return result;
      break;
    }
  }
  return bitsOfExact(exact(expression, scope), rangeOf(expression), low, width);
}

const ZERO: Bits = { code: code`0`, max: 0, constant: 0 };

function parameter(scope: Scope, index: number, word: number): Code {
  return code`${name('d')}[${scope.parameterWord!(index) + word}]`;
}

function wordBits(word: (index: number) => Code, widthBits: number, low: number, width: number): Bits {
  if (low >= widthBits) return ZERO;
  const first = Math.floor(low / 32);
  const shift = low % 32;
  const available = Math.min(32, widthBits - 32 * first);
  const part = shift === 0 ? word(first) : code`(${word(first)} >>> ${shift})`;
  if (shift + width <= 32 || 32 * (first + 1) >= widthBits) return { code: part, max: maskOf(available - shift) };
  return { code: code`(${part} | ${word(first + 1)} << ${32 - shift})` };
}

type Arithmetic = Extract<DataExpression, { kind: 'arithmetic' }>;

/** Operations whose low bits depend on nothing but low bits, and shifts. `undefined`: not one of these. */
function arithmeticBits(expression: Arithmetic, scope: Scope, low: number, width: number): Bits | undefined {
  const { operator, left, right } = expression;
  const a = () => bits(left, scope, low, width);
  const b = () => bits(right, scope, low, width);
  switch (operator) {
    case '&':
      return and(a(), b(), width);
    case '|':
    case '^':
      return or(a(), operator, b());
    case '+':
    case '-':
      return low === 0 ? sum(a(), operator, b()) : undefined;
    case '*':
      return low === 0 ? product(a(), b()) : undefined;
    case '<<':
      if (right.kind === 'constant') return shiftedLeft(left, Number(right.value), scope, low, width);
      if (low > 0 || rangeOf(right).low < 0n || !isWithin(rangeOf(right), SAFE)) return undefined;
      return { code: code`${name('shiftLeft')}(${a().code}, ${number(right, scope)})` };
    case '>>':
      if (right.kind === 'constant') return bits(left, scope, low + Number(right.value), width);
      if (low > 0 || rangeOf(right).low < 0n || !isWithin(rangeOf(right), SAFE)) return undefined;
      if (!isWithin(rangeOf(left), UINT32)) return undefined;
      return {
        code: code`${name('shiftRight')}(${number(left, scope)}, ${number(right, scope)})`,
        max: Number(rangeOf(left).high),
      };
    default:
      return undefined;
  }
}

function and(a: Bits, b: Bits, width: number): Bits {
  if (a.max === 0 || b.max === 0) return ZERO;
  // A mask of ones changes nothing modulo two to the width.
  if (b.constant === maskOf(width)) return a;
  if (a.constant === maskOf(width)) return b;
  const max = Math.min(a.max ?? UINT32_MAX, b.max ?? UINT32_MAX);
  const value = code`(${a.code} & ${b.code})`;
  return max <= INT32_MAX ? { code: value, max } : { code: value };
}

function or(a: Bits, operator: '|' | '^', b: Bits): Bits {
  if (a.max === 0) return b;
  if (b.max === 0) return a;
  const value = operator === '|' ? code`(${a.code} | ${b.code})` : code`(${a.code} ^ ${b.code})`;
  const width = 32 - Math.clz32(Math.max(a.max ?? UINT32_MAX, b.max ?? UINT32_MAX));
  return width < 32 ? { code: value, max: maskOf(width) } : { code: value };
}

function sum(a: Bits, operator: '+' | '-', b: Bits): Bits {
  if (b.max === 0) return a;
  if (operator === '-') return { code: code`(${a.code} - ${b.code} | 0)` };
  if (a.max === 0) return b;
  const max = (a.max ?? Number.POSITIVE_INFINITY) + (b.max ?? 0);
  if (max <= INT32_MAX && b.max !== undefined) return { code: code`(${a.code} + ${b.code})`, max };
  return { code: code`(${a.code} + ${b.code} | 0)` };
}

function product(a: Bits, b: Bits): Bits {
  if (a.max === 0 || b.max === 0) return ZERO;
  const value = code`${name('imul')}(${a.code}, ${b.code})`;
  if (a.max === undefined || b.max === undefined || a.max * b.max > INT32_MAX) return { code: value };
  return { code: value, max: a.max * b.max };
}

function shiftedLeft(operand: DataExpression, shift: number, scope: Scope, low: number, width: number): Bits {
  if (low >= shift) return bits(operand, scope, low - shift, width);
  const zeros = shift - low;
  if (zeros >= width) return ZERO;
  const moved = bits(operand, scope, 0, width - zeros);
  const value = code`(${moved.code} << ${zeros})`;
  const max = (moved.max ?? UINT32_MAX) * 2 ** zeros;
  return max <= INT32_MAX ? { code: value, max } : { code: value };
}

function bitsOfExact(value: Exact, range: Range, low: number, width: number): Bits {
  if (value.wide)
    return {
      code: code`Number(BigInt.asUintN(${width}, ${value.code} >> ${BigInt(low)}))`,
      max: maskOf(width),
    };
  if (isWithin(range, UINT32)) {
    if (low > 31) return ZERO;
    const max = Number(range.high >> BigInt(low));
    return low === 0 ? { code: value.code, max } : { code: code`(${value.code} >>> ${low})`, max };
  }
  if (isWithin(range, INT32)) return { code: code`(${value.code} >> ${Math.min(low, 31)})` };
  if (low === 0) return { code: code`(${value.code} | 0)` };
  // Division by a power of two is exact; what is beyond 53 bits is the sign.
  return { code: code`(${name('floor')}(${value.code} / ${2 ** Math.min(low, 53)}) | 0)` };
}

/** Whether {@link bits} gets at any bits of it without computing all of it. */
function isSliceable(expression: DataExpression): boolean {
  switch (expression.kind) {
    case 'constant':
    case 'parameter':
    case 'lookahead':
    case 'validity':
    case 'from-boolean':
      return true;
    case 'field':
      return !expression.field.signed;
    case 'choice':
      return isSliceable(expression.yes) && isSliceable(expression.no);
    case 'arithmetic':
      switch (expression.operator) {
        case '&':
        case '|':
        case '^':
          return isSliceable(expression.left) && isSliceable(expression.right);
        case '<<':
        case '>>':
          return expression.right.kind === 'constant' && isSliceable(expression.left);
        default:
          return false;
      }
    default:
      return false;
  }
}

function exact(expression: DataExpression, scope: Scope): Exact {
  const range = rangeOf(expression);
  if (range.low >= 0n) {
    const length = bitLength(range.high);
    const cheap = isSliceable(expression) || (expression.kind === 'arithmetic' && '&|^'.includes(expression.operator));
    if (cheap && length <= 32) return { code: unsignedBits(expression, scope, 0, Math.max(1, length)), wide: false };
    if (isSliceable(expression) && length <= 53) {
      const high = unsignedBits(expression, scope, 32, length - 32);
      return { code: code`(${high} * 4294967296 + ${unsignedBits(expression, scope, 0, 32)})`, wide: false };
    }
  }
  switch (expression.kind) {
    case 'constant':
      return isWithin(range, SAFE)
        ? { code: code`${Number(expression.value)}`, wide: false }
        : { code: code`${expression.value}`, wide: true };
    case 'field':
      return exactField(expression.field, scope);
    case 'parameter': {
      const data = name('d');
      const first = scope.parameterWord!(expression.index);
      return { code: code`${name('readWide')}(${data}, ${first}, ${wordCount(expression.widthBits)})`, wide: true };
    }
    case 'lookahead': {
      const words: Code[] = [];
      for (let low = 0; low < expression.widthBits; low += 32) {
        const word = unsignedBits(expression, scope, low, Math.min(32, expression.widthBits - low));
        words.push(code`(BigInt(${word}) << ${BigInt(low)})`);
      }
      return { code: joined(words, '|'), wide: true };
    }
    case 'complement': {
      const operand = exact(expression.operand, scope);
      if (isWithin(range, SAFE) && !operand.wide) return { code: code`(-1 - ${operand.code})`, wide: false };
      return { code: code`(-1n - ${wide(operand)})`, wide: true };
    }
    case 'cast':
      return exactCast(expression, scope);
    case 'choice': {
      const test = condition(expression.condition, scope);
      const yes = exact(expression.yes, scope);
      const no = exact(expression.no, scope);
      return yes.wide || no.wide
        ? { code: code`(${test} ? ${wide(yes)} : ${wide(no)})`, wide: true }
        : { code: code`(${test} ? ${yes.code} : ${no.code})`, wide: false };
    }
    case 'arithmetic':
      return exactArithmetic(expression, range, scope);
    case 'register': {
      const { index, size, widthBits } = expression.register;
      const cells = name('R', index);
      const at = code`Number(${bigint(expression.index, scope)})`;
      return { code: code`${name('registerCell')}(${cells}, ${at}, ${size}, ${wordCount(widthBits)})`, wide: true };
    }
    case 'validity':
    case 'from-boolean':
      return { code: unsignedBits(expression, scope, 0, 1), wide: false };
  }
}

function exactField(field: HeaderField, scope: Scope): Exact {
  const width = field.widthBits;
  if (field.signed && width <= 32)
    return { code: code`(${scope.layout.word(field)} << ${32 - width} >> ${32 - width})`, wide: false };
  const value = code`${name('readWide')}(${name('phv')}, ${scope.layout.place(field)}, ${wordCount(width)})`;
  return { code: field.signed ? code`BigInt.asIntN(${width}, ${value})` : value, wide: true };
}

function exactCast(expression: Extract<DataExpression, { kind: 'cast' }>, scope: Scope): Exact {
  const { operand, cast, widthBits } = expression;
  const target = cast === 'usat_cast' ? unsignedRange(widthBits) : signedRange(widthBits);
  if (isWithin(rangeOf(operand), target)) return exact(operand, scope);
  if (cast === 'two_comp_mod') {
    if (widthBits <= 32) {
      const shift = 32 - widthBits;
      return { code: code`(${bits(operand, scope, 0, widthBits).code} << ${shift} >> ${shift})`, wide: false };
    }
    return { code: code`BigInt.asIntN(${widthBits}, ${wide(exact(operand, scope))})`, wide: true };
  }
  const value = exact(operand, scope);
  if (!value.wide && isWithin(target, SAFE)) {
    const { low, high } = target;
    return { code: code`${name('clamp')}(${value.code}, ${Number(low)}, ${Number(high)})`, wide: false };
  }
  return { code: code`${name('clampWide')}(${wide(value)}, ${target.low}, ${target.high})`, wide: true };
}

function exactArithmetic(expression: Arithmetic, range: Range, scope: Scope): Exact {
  const { operator, left, right } = expression;
  const a = exact(left, scope);
  const b = exact(right, scope);
  const safe = !a.wide && !b.wide && isWithin(range, SAFE);
  switch (operator) {
    case '+':
      if (safe) return { code: code`(${a.code} + ${b.code})`, wide: false };
      return { code: code`(${wide(a)} + ${wide(b)})`, wide: true };
    case '-':
      if (safe) return { code: code`(${a.code} - ${b.code})`, wide: false };
      return { code: code`(${wide(a)} - ${wide(b)})`, wide: true };
    case '*':
      if (safe) return { code: code`(${a.code} * ${b.code})`, wide: false };
      return { code: code`(${wide(a)} * ${wide(b)})`, wide: true };
    case '/':
      return { code: code`${name('divide')}(${wide(a)}, ${wide(b)})`, wide: true };
    case '%':
      return { code: code`${name('remainder')}(${wide(a)}, ${wide(b)})`, wide: true };
    case '<<':
      if (right.kind === 'constant' && safe && right.value <= 53n)
        return { code: code`(${a.code} * ${2 ** Number(right.value)})`, wide: false };
      return { code: code`${name('shiftLeftWide')}(${wide(a)}, ${wide(b)}, ${MAX_SHIFT})`, wide: true };
    case '>>':
      if (safe && isWithin(rangeOf(left), UINT32) && rangeOf(right).low >= 0n)
        return { code: code`${name('shiftRight')}(${a.code}, ${b.code})`, wide: false };
      if (right.kind === 'constant' && safe && right.value <= 53n)
        return { code: code`${name('floor')}(${a.code} / ${2 ** Number(right.value)})`, wide: false };
      return { code: code`${name('shiftRightWide')}(${wide(a)}, ${wide(b)}, ${MAX_SHIFT})`, wide: true };
    default:
      return exactBitwise(operator, left, right, a, b);
  }
}

function exactBitwise(
  operator: '&' | '|' | '^',
  left: DataExpression,
  right: DataExpression,
  a: Exact,
  b: Exact,
): Exact {
  // x & (2^k - 1) on a double: p4c writes it after every addition to a field of 33..53 bits.
  if (operator === '&' && right.kind === 'constant' && !a.wide && isWithin(rangeOf(right), SAFE)) {
    const size = right.value + 1n;
    if (right.value >= 0n && (right.value & size) === 0n)
      return isWithin(rangeOf(left), { low: 0n, high: right.value })
        ? a
        : { code: code`${name('modulo')}(${a.code}, ${Number(size)})`, wide: false };
  }
  const small = isWithin(rangeOf(left), INT32) && isWithin(rangeOf(right), INT32);
  const x = small ? narrow(a) : wide(a);
  const y = small ? narrow(b) : wide(b);
  const value = operator === '&' ? code`(${x} & ${y})` : operator === '|' ? code`(${x} | ${y})` : code`(${x} ^ ${y})`;
  return { code: value, wide: !small };
}

function wide(value: Exact): Code {
  return value.wide ? value.code : code`BigInt(${value.code})`;
}

function narrow(value: Exact): Code {
  return value.wide ? code`Number(${value.code})` : value.code;
}

/** The exact value as a number; for values that fit into 53 bits. */
export function number(expression: DataExpression, scope: Scope): Code {
  return narrow(exact(expression, scope));
}

/** The exact value as a BigInt. */
export function bigint(expression: DataExpression, scope: Scope): Code {
  return wide(exact(expression, scope));
}

/** A JavaScript boolean. */
export function condition(expression: BooleanExpression, scope: Scope): Code {
  switch (expression.kind) {
    case 'literal':
      return code`${expression.value}`;
    case 'comparison':
      return comparison(expression, scope);
    case 'boolean-comparison': {
      const left = condition(expression.left, scope);
      const right = condition(expression.right, scope);
      return expression.equal ? code`(${left} === ${right})` : code`(${left} !== ${right})`;
    }
    case 'header-comparison': {
      const equal = equalHeaders(expression.left, expression.right, scope.layout);
      return expression.equal ? equal : code`!${equal}`;
    }
    case 'logic': {
      const operands = [condition(expression.left, scope), condition(expression.right, scope)];
      return joined(operands, expression.operator === 'and' ? '&&' : '||');
    }
    case 'boolean-choice': {
      const [yes, no] = [condition(expression.yes, scope), condition(expression.no, scope)];
      return code`(${condition(expression.condition, scope)} ? ${yes} : ${no})`;
    }
    case 'not':
      return code`!${condition(expression.operand, scope)}`;
    case 'is-valid':
      return scope.layout.isValid(expression.header);
    case 'non-zero':
      return nonZero(expression.operand, scope);
  }
}

function nonZero(operand: DataExpression, scope: Scope): Code {
  if (operand.kind === 'validity') return scope.layout.isValid(operand.header);
  if (operand.kind === 'from-boolean') return condition(operand.operand, scope);
  const zero: DataExpression = { kind: 'constant', value: 0n };
  return comparison({ operator: '!=', left: operand, right: zero }, scope);
}

function comparison(
  expression: { readonly operator: string; readonly left: DataExpression; readonly right: DataExpression },
  scope: Scope,
): Code {
  const { operator, left, right } = expression;
  const a = rangeOf(left);
  const b = rangeOf(right);
  const equality = operator === '==' || operator === '!=';
  if (equality && a.low >= 0n && b.low >= 0n && isSliceable(left) && isSliceable(right)) {
    const words: Code[] = [];
    for (let low = 0; low < Math.max(1, bitLength(a.high), bitLength(b.high)); low += 32) {
      const x = unsignedBits(left, scope, low, 32);
      words.push(code`(${x} === ${unsignedBits(right, scope, low, 32)})`);
    }
    const equal = joined(words, '&&');
    return operator === '==' ? equal : code`!${equal}`;
  }
  const x = exact(left, scope);
  const y = exact(right, scope);
  const mixed = x.wide !== y.wide;
  const l = mixed ? wide(x) : x.code;
  const r = mixed ? wide(y) : y.code;
  switch (operator) {
    case '==':
      return code`(${l} === ${r})`;
    case '!=':
      return code`(${l} !== ${r})`;
    case '<':
      return code`(${l} < ${r})`;
    case '>':
      return code`(${l} > ${r})`;
    case '<=':
      return code`(${l} <= ${r})`;
    default:
      return code`(${l} >= ${r})`;
  }
}

function equalHeaders(left: Header, right: Header, layout: Layout): Code {
  const words = left.fields.flatMap((field, i) =>
    Array.from(
      { length: wordCount(field.widthBits) },
      (_, word) => code`${layout.word(field, word)} === ${layout.word(right.fields[i]!, word)}`,
    ),
  );
  const fields = joined(words, '&&', code`true`);
  return code`(${layout.isValid(left)} ? ${layout.isValid(right)} && ${fields} : !${layout.isValid(right)})`;
}

/** `target = value`, cut to the target's width. */
export function assign(target: HeaderField, value: DataExpression, scope: Scope): Code {
  const place = scope.layout.place(target);
  const width = target.widthBits;
  if (width <= 32) return code`${phv(place)} = ${stored(bits(value, scope, 0, width), width)};`;
  const words = wordCount(width);
  if (isSliceable(value)) {
    // All words are computed before any is stored: the value may read the target.
    const temporaries: Code[] = [];
    const stores: Code[] = [];
    for (let word = 0; word < words; word++) {
      const part = Math.min(32, width - 32 * word);
      const temporary = name('w', word);
      temporaries.push(code`const ${temporary} = ${stored(bits(value, scope, 32 * word, part), part)};`);
      stores.push(code`${phv(place + word)} = ${temporary};`);
    }
    return code`{ ${temporaries} ${stores} }`;
  }
  const all = exact(value, scope);
  if (all.wide) return code`${name('storeWide')}(${name('phv')}, ${place}, ${width}, ${all.code});`;
  const temporary = name('x');
  const high = normal({ code: code`${name('floor')}(${temporary} / 4294967296)` }, Math.min(32, width - 32));
  const sign = code`(${temporary} < 0 ? ${UINT32_MAX} : 0)`;
  const rest = Array.from({ length: words - 2 }, (_, i) => {
    const part = Math.min(32, width - 32 * (i + 2));
    return code`${phv(place + 2 + i)} = ${normal({ code: sign, max: UINT32_MAX }, part)};`;
  });
  return code`{ const ${temporary} = ${all.code}; ${phv(place)} = ${temporary}; ${phv(place + 1)} = ${high}; ${rest} }`;
}

/** What a Uint32Array may be given: it takes the low 32 bits by itself. */
function stored(value: Bits, width: number): Code {
  return width === 32 ? value.code : normal(value, width);
}
