import type { DataExpression } from '../bmv2/program.ts';
import { type Code, code, joined } from './code.ts';
import { type Bits, bits, normal, type Scope } from './expression.ts';
import { maskOf } from './layout.ts';

/** Values put one after the other as bits, the most significant first: a header on the wire, the input of a hash. */
export interface Part {
  readonly value: DataExpression;
  readonly widthBits: number;
}

interface Placed extends Part {
  readonly start: number;
  readonly end: number;
}

export class Concatenation {
  readonly widthBits: number;
  private readonly parts: readonly Placed[];

  constructor(parts: readonly Part[]) {
    let start = 0;
    this.parts = parts.map((part) => {
      const placed = { ...part, start, end: start + part.widthBits };
      start = placed.end;
      return placed;
    });
    this.widthBits = start;
  }

  /**
   * The `width` (at most 32) bits from `start` on, as a number; beyond the end there are zeros. What stands above those bits may be
   * dirty: see {@link Bits}.
   */
  at(start: number, width: number, scope: Scope): Bits {
    const end = start + width;
    const found: Bits[] = [];
    for (const part of this.parts) {
      const from = Math.max(part.start, start);
      const to = Math.min(part.end, end);
      if (from >= to) continue;
      const piece = bits(part.value, scope, part.end - to, to - from);
      if (piece.constant === 0) continue;
      const shift = end - to;
      // Only the topmost piece may be dirty above: there its dirt is above the whole.
      const value = from === start ? piece.code : normal(piece, to - from);
      const max = from === start ? piece.max : Math.min(piece.max ?? maskOf(to - from), maskOf(to - from));
      const moved = shift === 0 ? value : code`(${value} << ${shift})`;
      const movedMax = max === undefined ? undefined : max * 2 ** shift;
      found.push(movedMax !== undefined && movedMax <= 0x7fff_ffff ? { code: moved, max: movedMax } : { code: moved });
    }
    if (found.length === 0) return { code: code`0`, max: 0, constant: 0 };
    if (found.length === 1) return found[0]!;
    const whole = joined(
      found.map((piece) => piece.code),
      '|',
    );
    const max = found.reduce((most, piece) => most + (piece.max ?? Number.POSITIVE_INFINITY), 0);
    return max <= 0x7fff_ffff ? { code: whole, max } : { code: whole };
  }
}

/** The bytes of a concatenation stored from `base` on. A Uint8Array cuts what is above its 8 bits. */
export function storeBytes(concatenation: Concatenation, target: Code, base: Code, scope: Scope): Code[] {
  const stores: Code[] = [];
  for (let byte = 0; 8 * byte < concatenation.widthBits; byte++)
    stores.push(code`${target}[${base} + ${byte}] = ${concatenation.at(8 * byte, 8, scope).code};`);
  return stores;
}
