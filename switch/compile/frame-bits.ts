import { type Code, code, joined } from './code.ts';
import type { Bits } from './expression.ts';
import { maskOf } from './layout.ts';

/**
 * `width` (at most 32) bits of the frame, the first of which is bit `start` (0 is the most significant) counted from byte `base`.
 * @param at an index into the frame that is `offset` bytes after the base
 */
export function frameBits(frame: Code, at: (offset: number) => Code, start: number, width: number): Bits {
  const end = start + width;
  const first = Math.floor(start / 8);
  const pieces: Code[] = [];
  for (let byte = first; 8 * byte < end; byte++) {
    const above = byte === first ? start - 8 * byte : 0;
    const raw = code`${frame}[${at(byte)}]`;
    const kept = above === 0 ? raw : code`(${raw} & ${0xff >> above})`;
    const shift = end - 8 * (byte + 1);
    if (shift > 0) pieces.push(code`(${kept} << ${shift})`);
    else if (shift < 0) pieces.push(code`(${kept} >> ${-shift})`);
    else pieces.push(kept);
  }
  const value = joined(pieces, '|');
  return width < 32 ? { code: value, max: maskOf(width) } : { code: value };
}
