import type { DataExpression } from '../bmv2/program.ts';

/** Between which integers, both included, an expression's value lies. */
export interface Range {
  readonly low: bigint;
  readonly high: bigint;
}

/** Shifts beyond this leave nothing of any field: see load-expressions.ts. */
export const MAX_SHIFT = 8192n;

const known = new WeakMap<DataExpression, Range>();

/**
 * bmv2 computes with unlimited precision. The range tells how little of it an expression needs: 32-bit operations, a double, or
 * a BigInt.
 */
export function rangeOf(expression: DataExpression): Range {
  let range = known.get(expression);
  if (range === undefined) {
    range = compute(expression);
    known.set(expression, range);
  }
  return range;
}

export function bitLength(value: bigint): number {
  return value === 0n ? 0 : value.toString(2).length;
}

export function unsignedRange(widthBits: number): Range {
  return { low: 0n, high: (1n << BigInt(widthBits)) - 1n };
}

export function signedRange(widthBits: number): Range {
  const half = 1n << BigInt(widthBits - 1);
  return { low: -half, high: half - 1n };
}

export function isWithin(inner: Range, outer: Range): boolean {
  return inner.low >= outer.low && inner.high <= outer.high;
}

function compute(expression: DataExpression): Range {
  switch (expression.kind) {
    case 'constant':
      return { low: expression.value, high: expression.value };
    case 'field':
      return expression.field.signed
        ? signedRange(expression.field.widthBits)
        : unsignedRange(expression.field.widthBits);
    case 'validity':
    case 'from-boolean':
      return { low: 0n, high: 1n };
    case 'parameter':
    case 'lookahead':
      return unsignedRange(expression.widthBits);
    case 'register':
      return unsignedRange(expression.register.widthBits);
    case 'complement': {
      const { low, high } = rangeOf(expression.operand);
      return { low: -1n - high, high: -1n - low };
    }
    case 'cast':
      return computeCast(rangeOf(expression.operand), expression.cast, expression.widthBits);
    case 'choice':
      return hull([
        rangeOf(expression.yes).low,
        rangeOf(expression.yes).high,
        rangeOf(expression.no).low,
        rangeOf(expression.no).high,
      ]);
    case 'arithmetic':
      return computeArithmetic(expression.operator, rangeOf(expression.left), rangeOf(expression.right));
  }
}

function computeCast(operand: Range, cast: 'two_comp_mod' | 'sat_cast' | 'usat_cast', widthBits: number): Range {
  const target = cast === 'usat_cast' ? unsignedRange(widthBits) : signedRange(widthBits);
  if (cast === 'two_comp_mod') return isWithin(operand, target) ? operand : target;
  return { low: clamp(operand.low, target), high: clamp(operand.high, target) };
}

function clamp(value: bigint, range: Range): bigint {
  if (value < range.low) return range.low;
  return value > range.high ? range.high : value;
}

function computeArithmetic(operator: string, a: Range, b: Range): Range {
  switch (operator) {
    case '+':
      return { low: a.low + b.low, high: a.high + b.high };
    case '-':
      return { low: a.low - b.high, high: a.high - b.low };
    case '*':
      return hull([a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high]);
    case '/': {
      const size = magnitude(a);
      return { low: a.low < 0n || b.low < 0n ? -size : 0n, high: size };
    }
    case '%': {
      const size = min(magnitude(a), magnitude(b));
      return { low: a.low < 0n ? -size : 0n, high: size };
    }
    case '<<': {
      const shift = b.high > MAX_SHIFT ? MAX_SHIFT : b.high;
      const least = b.low < 0n ? 0n : min(b.low, MAX_SHIFT);
      return hull([a.low << shift, a.low << least, a.high << shift, a.high << least]);
    }
    case '>>': {
      const least = b.low < 0n ? 0n : min(b.low, MAX_SHIFT);
      const shift = min(b.high, MAX_SHIFT);
      return hull([a.low >> least, a.low >> shift, a.high >> least, a.high >> shift]);
    }
    default:
      return computeBitwise(operator, a, b);
  }
}

function computeBitwise(operator: string, a: Range, b: Range): Range {
  if (operator === '&') {
    if (a.low >= 0n && b.low >= 0n) return { low: 0n, high: min(a.high, b.high) };
    if (a.low >= 0n) return { low: 0n, high: a.high };
    if (b.low >= 0n) return { low: 0n, high: b.high };
  }
  const bits = Math.max(bitLength(magnitude(a)), bitLength(magnitude(b)));
  return a.low >= 0n && b.low >= 0n ? unsignedRange(bits) : signedRange(bits + 1);
}

function magnitude({ low, high }: Range): bigint {
  return -low > high ? -low : high;
}

function min(a: bigint, b: bigint): bigint {
  return b < a ? b : a;
}

function max(a: bigint, b: bigint): bigint {
  return b > a ? b : a;
}

function hull(values: readonly bigint[]): Range {
  return { low: values.reduce(min), high: values.reduce(max) };
}
