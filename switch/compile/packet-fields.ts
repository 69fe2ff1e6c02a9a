import type { HeaderField, StandardMetadata } from '../bmv2/program.ts';
import { type Code, code, nothing } from './code.ts';
import { type Layout, maskOf, wordCount } from './layout.ts';

/** simple_switch's metadata as code: what a program never touches costs nothing. */
export class PacketFields {
  private readonly layout: Layout;
  private readonly metadata: StandardMetadata;

  constructor(layout: Layout, metadata: StandardMetadata) {
    this.layout = layout;
    this.metadata = metadata;
  }

  has(field: keyof StandardMetadata): boolean {
    return this.layout.isLive(this.metadata[field]);
  }

  /** Stores an unsigned number below 2^53, cut to the field's width. */
  set(name: keyof StandardMetadata, value: Code): Code {
    const field: HeaderField | undefined = this.metadata[name];
    if (!this.layout.isLive(field)) return nothing;
    const width = field.widthBits;
    if (width < 32) return code`${this.layout.word(field)} = ${value} & ${maskOf(width)};`;
    const low = code`${this.layout.word(field)} = ${value};`;
    if (width === 32) return low;
    const mask = maskOf(Math.min(21, width - 32));
    const rest = Array.from({ length: wordCount(width) - 2 }, (_, i) => code`${this.layout.word(field, i + 2)} = 0;`);
    return code`${low} ${this.layout.word(field, 1)} = ${value} / 4294967296 & ${mask}; ${rest}`;
  }

  /** The field as a number, 0 if the program does not have it; for fields of at most 32 bits. */
  get(name: keyof StandardMetadata): Code {
    const field: HeaderField | undefined = this.metadata[name];
    return this.layout.isLive(field) ? this.layout.word(field) : code`0`;
  }
}
