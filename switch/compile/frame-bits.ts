import { type Code, code, joined, name } from './code.ts';
import type { Bits } from './expression.ts';
import { maskOf } from './layout.ts';

/** What one access to memory takes. */
export type AccessBytes = 1 | 2 | 4;

export interface Access {
  /** Counted from the first. */
  readonly byte: number;
  readonly size: AccessBytes;
}

/** So many bytes of the memory as a number, the first the most significant. */
export function load(view: Code, at: Code, bytes: AccessBytes): Code {
  switch (bytes) {
    case 1:
      return code`${view}.getUint8(${at})`;
    case 2:
      return code`${view}.getUint16(${at})`;
    case 4:
      return code`${view}.getUint32(${at})`;
  }
}

/** The other way round; what is above those bytes is cut off. */
export function store(view: Code, at: Code, bytes: AccessBytes, value: Code): Code {
  switch (bytes) {
    case 1:
      return code`${view}.setUint8(${at}, ${value});`;
    case 2:
      return code`${view}.setUint16(${at}, ${value});`;
    case 4:
      return code`${view}.setUint32(${at}, ${value});`;
  }
}

/** Cuts bytes into what can be accessed at once. */
export function accesses(bytes: number): Access[] {
  const cut: Access[] = [];
  for (let byte = 0; byte < bytes; ) {
    const size: AccessBytes = bytes - byte >= 4 ? 4 : bytes - byte >= 2 ? 2 : 1;
    cut.push({ byte, size });
    byte += size;
  }
  return cut;
}

/**
 * `width` (at most 32) bits of `view`, the first of which is bit `start` (0 is the most significant) counted from byte `base`.
 * @param at a place in the view that is `offset` bytes after the base
 */
export function frameBits(at: (offset: number) => Code, start: number, width: number): Bits {
  const end = start + width;
  const first = Math.floor(start / 8);
  const pieces = accesses(Math.ceil(end / 8) - first).map(({ byte, size }) => {
    const loaded = load(name('view'), at(first + byte), size);
    return slice(loaded, 8 * size, 8 * (first + byte), start, end);
  });
  const value = joined(pieces, '|');
  return width < 32 ? { code: value, max: maskOf(width) } : { code: value };
}

/** The bits from `start` to `end` as far as they are in a loaded number of `bits` bits whose first is bit `first`; shifted to where they belong. */
export function slice(loaded: Code, bits: number, first: number, start: number, end: number): Code {
  const above = Math.max(0, start - first);
  const shift = end - (first + bits);
  const kept = above === 0 || shift < 0 ? loaded : code`(${loaded} & ${maskOf(bits - above)})`;
  if (shift > 0) return code`(${kept} << ${shift})`;
  if (shift === 0) return kept;
  const moved = code`(${kept} >>> ${-shift})`;
  return above === 0 ? moved : code`(${moved} & ${maskOf(bits - above + shift)})`;
}
