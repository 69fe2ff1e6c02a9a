import type { Header, HeaderField, Program } from '../bmv2/program.ts';
import { type ActionContext, emitPrimitive } from './action.ts';
import { type Code, code, lines, name, nothing } from './code.ts';
import { Concatenation, type Part, storeBytes } from './concatenation.ts';
import type { Scope } from './expression.ts';
import type { Layout } from './layout.ts';
import { putField } from './put.ts';

/**
 * `deparse(frame, length, last)`: the valid headers, then the payload.
 *
 * Nothing moves in most packets: every header stands where it was extracted and their lengths add up to what was parsed. Then only
 * fields that the program writes are stored, into the frame itself if this is its last copy. Otherwise headers are put together
 * anew; a last copy that has not grown keeps its buffer. If its headers are among those that were extracted and in that order, they
 * only move back, the last one first, and most of them stand where they belong. One that has grown keeps its buffer too if there is
 * room in front, and no header has to move back; then they move the first one first. In a new buffer the old frame is put where its payload
 * belongs, and headers that this has put into their place stay.
 */
export function deparserFunctions(program: Program, context: ActionContext): Code[] {
  const { layout } = context;
  const emitter = new DeparserEmitter(layout);
  const headers = program.deparser;
  const measure = headers.map((header) => {
    const bytes = layout.bytes(header);
    return code`if ((v = ${layout.validityWord(header)}) !== 0) { if (v !== n + 2) { same = false; if (v < end) ordered = false; if (v > 1 && n + 2 - v > ahead) ahead = n + 2 - v; } const b = ${bytes}; n += b; end = v + b; }`;
  });
  const inPlace = headers.map((header) => emitter.updateInPlace(header));
  const anew = headers.map((header) => emitter.appendAnew(header));
  const back = [...headers].reverse().map((header) => emitter.moveBack(header));
  const scratchBytes = headers.reduce(
    (sum, header) => sum + (header.widthBits + (header.varbit?.widthBits ?? 0)) / 8,
    0,
  );
  // A packet that comes round again has used the room in front of its frame already.
  const growInPlace = layout.usage.recirculates
    ? nothing
    : code`if (last && ahead <= shift && (out = grown(frame, shift, length)) !== undefined) { putHeaders(out, frame, shift); return out; }`;
  const before = program.deparserPrimitives.map((primitive) => emitPrimitive(primitive, { layout }, context));
  return [
    code`const scratch = new Uint8Array(${Math.max(1, scratchBytes)});`,
    code`function putHeaders(target, frame, shift) {
let n = 0, v = 0;
${anew}
}`,
    code`function moveHeadersBack(target, frame, n) {
const shift = n - parsed;
let v = 0;
${back}
}`,
    code`function deparse(frame, length, last) {
let n = 0, v = 0, end = 2, ahead = 0, same = true, ordered = true, out;
${before}
${measure}
if (same && n === parsed) {
if (last) out = frame; else { out = allocate(length); out.set(frame); }
${inPlace}
} else if (last && n <= parsed && ordered) {
out = part(frame, parsed - n, length);
moveHeadersBack(out, frame, n);
} else if (last && n <= parsed) {
putHeaders(scratch, frame, ${NOWHERE});
const start = parsed - n;
for (let i = 0; i < n; i++) frame[start + i] = scratch[i];
out = part(frame, start, length);
} else {
const shift = n - parsed;
${growInPlace}
out = allocate(length + shift);
if (shift >= 0) out.set(frame, shift); else out.set(part(frame, -shift, length));
putHeaders(out, frame, shift);
}
return out;
}`,
  ];
}

/** So many single bytes are moved one by one; more in a loop. */
const MAX_UNROLLED = 8;
/** A shift that puts no header where it belongs. */
const NOWHERE = -(2 ** 30);

class DeparserEmitter {
  private readonly layout: Layout;
  private readonly scope: Scope;

  constructor(layout: Layout) {
    this.layout = layout;
    this.scope = { layout };
  }

  /** The header stands at its place in `out`: only what may have been written has to be stored. */
  updateInPlace(header: Header): Code {
    // One with a varbit stands there as it came, or is never at its place.
    if (header.varbit !== undefined) return nothing;
    const base = code`v`;
    const stores = this.storeWritten(header, name('out'), base);
    if (stores.length === 0) return nothing;
    return code`if ((v = ${this.layout.validityWord(header)}) !== 0) { v -= 2; ${stores} }`;
  }

  /** Appends at `target[n]`: bytes from where it was extracted plus written fields, or all from the vector. */
  appendAnew(header: Header): Code {
    if (header.varbit !== undefined) return this.appendVarying(header);
    const bytes = header.widthBits / 8;
    const valid = this.layout.validityWord(header);
    const target = name('target');
    const masks = this.writtenBits(header);
    const kept = Array.from(masks.keys()).filter((byte) => masks[byte] !== 0xff);
    const moves =
      kept.length > MAX_UNROLLED
        ? [code`for (let i = 0; i < ${bytes}; i++) target[n + i] = frame[v + i];`]
        : kept.map((byte) => code`target[n + ${byte}] = frame[v + ${byte}];`);
    const copy = moves.length === 0 ? nothing : code`if (v + shift !== n) { ${moves} }`;
    const extracted = lines([code`v -= 2;`, copy, ...this.storeWritten(header, target, name('n'))]);
    const fromVector = storeBytes(
      this.concatenation(header, () => true),
      target,
      name('n'),
      this.scope,
    );
    const body = this.layout.usage.added.has(header)
      ? code`if (v > 1) { ${extracted} } else { ${fromVector} }`
      : extracted;
    return code`if ((v = ${valid}) !== 0) { ${body} n += ${bytes}; }`;
  }

  /** Moves a header that was extracted to end at `target[n]`, which is in the same buffer and not in front of where it stands. */
  moveBack(header: Header): Code {
    const { layout } = this;
    const valid = layout.validityWord(header);
    const target = name('target');
    // Bytes go from the last to the first: source and target may overlap.
    const move = (bytes: Code): Code =>
      code`if (v + shift !== n) for (let i = ${bytes} - 1; i >= 0; i--) target[n + i] = frame[v + i];`;
    if (header.varbit === undefined) {
      const bytes = header.widthBits / 8;
      const stores = this.storeWritten(header, target, name('n'));
      return code`if ((v = ${valid}) !== 0) { v -= 2; n -= ${bytes}; ${move(code`${bytes}`)} ${stores} }`;
    }
    const bytes = layout.bytes(header);
    if (!layout.usage.rebuilt.has(header))
      return code`if ((v = ${valid}) !== 0) { const b = ${bytes}; v -= 2; n -= b; ${move(code`b`)} }`;
    const puts = header.fields.map((field) => putField(field, target, this.scope));
    return code`if (${valid} !== 0) { const b = ${bytes}; n -= b; target.fill(0, n, n + b); let a = 8 * n; ${puts} }`;
  }

  /** A header with a varbit: all from where it was extracted, or all from the vector. */
  private appendVarying(header: Header): Code {
    const { layout } = this;
    const valid = layout.validityWord(header);
    const bytes = layout.bytes(header);
    if (!layout.usage.rebuilt.has(header)) {
      const copy = code`if (v - 2 + shift !== n) for (let i = 0; i < b; i++) target[n + i] = frame[v - 2 + i];`;
      return code`if ((v = ${valid}) !== 0) { const b = ${bytes}; ${copy} n += b; }`;
    }
    const puts = header.fields.map((field) => putField(field, name('target'), this.scope));
    return code`if (${valid} !== 0) { const b = ${bytes}; target.fill(0, n, n + b); let a = 8 * n; ${puts} n += b; }`;
  }

  /** Fields that are not wanted, or that live nowhere (then nobody ever set them), are zero. */
  private concatenation(header: Header, wanted: (field: HeaderField) => boolean): Concatenation {
    return new Concatenation(
      header.fields.map((field): Part => {
        const known = wanted(field) && this.layout.isLive(field);
        return {
          value: known ? { kind: 'field', field } : { kind: 'constant', value: 0n },
          widthBits: field.widthBits,
        };
      }),
    );
  }

  /** Of each byte, the bits that belong to written fields. */
  private writtenBits(header: Header): Uint8Array {
    const { written } = this.layout.usage;
    const masks = new Uint8Array(header.widthBits / 8);
    for (const field of header.fields)
      if (written.has(field))
        for (let bit = field.offsetBits; bit < field.offsetBits + field.widthBits; bit++)
          masks[bit >> 3]! |= 0x80 >> (bit & 7);
    return masks;
  }

  private storeWritten(header: Header, target: Code, base: Code): Code[] {
    const fields = this.concatenation(header, (field) => this.layout.usage.written.has(field));
    const stores: Code[] = [];
    this.writtenBits(header).forEach((mask, byte) => {
      if (mask === 0) return;
      const place = code`${target}[${base} + ${byte}]`;
      const value = fields.at(8 * byte, 8, this.scope).code;
      stores.push(
        mask === 0xff ? code`${place} = ${value};` : code`${place} = ${place} & ${0xff & ~mask} | ${value} & ${mask};`,
      );
    });
    return stores;
  }
}
