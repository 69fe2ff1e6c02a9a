import type { Header, HeaderField, Program } from '../bmv2/program.ts';
import { type ActionContext, emitPrimitive } from './action.ts';
import { type Code, code, lines, name, nothing } from './code.ts';
import { Concatenation, type Part } from './concatenation.ts';
import type { Scope } from './expression.ts';
import { type Access, accesses, load, store } from './frame-bits.ts';
import { type Layout, maskOf } from './layout.ts';
import { putField } from './put.ts';

/**
 * `deparse(last)`: the valid headers, then the payload, left in `out` from `outStart` to `outEnd`. `last` says that nobody needs the frame afterwards.
 *
 * Nothing moves in most packets: every header stands where it was extracted and their lengths add up to what was parsed. Then only
 * fields that the program writes are stored, into the frame itself if this is its last copy. Otherwise headers are put together
 * anew; a last copy that has not grown keeps its memory. If its headers are among those that were extracted and in that order, they
 * only move back, the last one first, and most of them stand where they belong. One that has grown keeps its memory too if there is
 * room in front, and no header has to move back; then they move the first one first. In new memory the old frame is put where its payload
 * belongs, and headers that this has put into their place stay.
 */
export function deparserFunctions(program: Program, context: ActionContext): Code[] {
  const { layout } = context;
  const emitter = new DeparserEmitter(layout);
  const headers = program.deparser;
  const measure = headers.map((header) => {
    const bytes = layout.bytes(header);
    return code`if ((v = ${layout.validityWord(header)}) !== 0) { if (v !== n) { same = false; if (v < end) ordered = false; if (v > 1 && n - v > ahead) ahead = n - v; } const b = ${bytes}; n += b; end = v + b; }`;
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
    : code`if (last && ahead <= grown && grown <= memory.headroom) { outStart = start - grown; putHeaders(memory, outStart, 0); return; }`;
  const before = program.deparserPrimitives.map((primitive) => emitPrimitive(primitive, { layout }, context));
  return [
    code`const scratch = new FrameMemory(new Uint8Array(${Math.max(1, scratchBytes)}));`,
    code`function updateHeaders(view, shift) {
let v = 0;
${inPlace}
}`,
    code`function putHeaders(target, n, shift) {
const { view } = target, from = memory.view;
let v = 0;
${anew}
}`,
    code`function moveHeadersBack(view, n) {
let v = 0;
${back}
}`,
    code`function deparse(last) {
let n = start + 2, v = 0, end = 2, ahead = 0, same = true, ordered = true;
${before}
${measure}
n -= 2;
const grown = n - parsed;
out = memory;
outEnd = start + length;
if (same && grown === 0) {
outStart = start;
if (last) { updateHeaders(memory.view, 0); return; }
copyFrame(start, length, 0);
updateHeaders(out.view, outStart - start);
} else if (last && grown <= 0 && ordered) {
outStart = start - grown;
moveHeadersBack(memory.view, parsed);
} else if (last && grown <= 0) {
outStart = start - grown;
putHeaders(scratch, 0, ${NOWHERE});
memory.bytes.set(scratch.bytes.subarray(0, parsed - outStart), outStart);
} else {
${growInPlace}
if (grown < 0) copyFrame(start - grown, length + grown, 0);
else copyFrame(start, length, grown);
putHeaders(out, outStart, outEnd - start - length);
}
}
function copyFrame(from, bytes, room) {
out = allocate(room + bytes);
outStart = out.taken;
outEnd = outStart + room + bytes;
out.bytes.set(memory.bytes.subarray(from, from + bytes), outStart + room);
}`,
  ];
}

/** A shift that puts no header where it belongs. */
const NOWHERE = -(2 ** 30);

/**
 * The statements for one header. `v` is where it was extracted, `shift` what lies between there and the same place in the memory that is written; the
 * view of that is `view`.
 */
class DeparserEmitter {
  private readonly layout: Layout;
  private readonly scope: Scope;

  constructor(layout: Layout) {
    this.layout = layout;
    this.scope = { layout };
  }

  /** The header stands at its place: only what may have been written has to be stored. */
  updateInPlace(header: Header): Code {
    // One with a varbit stands there as it came, or is never at its place.
    if (header.varbit !== undefined) return nothing;
    const stores = this.storeWritten(header, name('v'));
    if (stores.length === 0) return nothing;
    return code`if ((v = ${this.layout.validityWord(header)}) !== 0) { v += shift - 2; ${stores} }`;
  }

  /** Appends at `n`: bytes from where it was extracted plus written fields, or all from the vector. */
  appendAnew(header: Header): Code {
    if (header.varbit !== undefined) return this.appendVarying(header);
    const bytes = header.widthBits / 8;
    const valid = this.layout.validityWord(header);
    const moves = this.moves(header, name('from'));
    const copy = moves.length === 0 ? nothing : code`if (v + shift !== n) { ${moves} }`;
    const extracted = lines([code`v -= 2;`, copy, ...this.storeWritten(header, name('n'))]);
    const all = this.concatenation(header, () => true);
    const fromVector = accesses(bytes).map(({ byte, size }) =>
      store(name('view'), code`n + ${byte}`, size, all.at(8 * byte, 8 * size, this.scope).code),
    );
    const body = this.layout.usage.added.has(header)
      ? code`if (v > 1) { ${extracted} } else { ${fromVector} }`
      : extracted;
    return code`if ((v = ${valid}) !== 0) { ${body} n += ${bytes}; }`;
  }

  /** Moves a header that was extracted to end at `n`, which is in the same memory and not in front of where it stands. */
  moveBack(header: Header): Code {
    const { layout } = this;
    const valid = layout.validityWord(header);
    if (header.varbit === undefined) {
      const bytes = header.widthBits / 8;
      // From the last to the first: source and target may overlap.
      const moves = this.moves(header, name('view')).reverse();
      const move = moves.length === 0 ? nothing : code`if (v !== n) { ${moves} }`;
      return code`if ((v = ${valid}) !== 0) { v -= 2; n -= ${bytes}; ${move} ${this.storeWritten(header, name('n'))} }`;
    }
    const bytes = layout.bytes(header);
    if (!layout.usage.rebuilt.has(header))
      return code`if ((v = ${valid}) !== 0) { const b = ${bytes}; v -= 2; n -= b; memory.bytes.copyWithin(n, v, v + b); }`;
    const puts = header.fields.map((field) => putField(field, code`memory.bytes`, this.scope));
    return code`if (${valid} !== 0) { const b = ${bytes}; n -= b; memory.bytes.fill(0, n, n + b); let a = 8 * n; ${puts} }`;
  }

  /** From `v` in one view to `n` in `view`: what is not written anyway. */
  private moves(header: Header, from: Code): Code[] {
    const masks = this.writtenBits(header);
    const moved = accesses(header.widthBits / 8).filter(({ byte, size }) =>
      masks.subarray(byte, byte + size).some((mask) => mask !== 0xff),
    );
    return moved.map(({ byte, size }) =>
      store(name('view'), code`n + ${byte}`, size, load(from, code`v + ${byte}`, size)),
    );
  }

  /** A header with a varbit: all from where it was extracted, or all from the vector. */
  private appendVarying(header: Header): Code {
    const { layout } = this;
    const valid = layout.validityWord(header);
    const bytes = layout.bytes(header);
    if (!layout.usage.rebuilt.has(header)) {
      const copy = code`if (v - 2 + shift !== n) target.bytes.set(memory.bytes.subarray(v - 2, v - 2 + b), n);`;
      return code`if ((v = ${valid}) !== 0) { const b = ${bytes}; ${copy} n += b; }`;
    }
    const puts = header.fields.map((field) => putField(field, code`target.bytes`, this.scope));
    return code`if (${valid} !== 0) { const b = ${bytes}; target.bytes.fill(0, n, n + b); let a = 8 * n; ${puts} n += b; }`;
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

  /** Stores written fields of the header that stands at `base`. */
  private storeWritten(header: Header, base: Code): Code[] {
    const { written } = this.layout.usage;
    const fields = this.concatenation(header, (field) => written.has(field));
    const masks = this.writtenBits(header);
    const view = name('view');
    return accesses(header.widthBits / 8)
      .flatMap((access) => narrowed(access, masks))
      .map(({ byte, size }) => {
        const at = code`${base} + ${byte}`;
        const value = fields.at(8 * byte, 8 * size, this.scope).code;
        const mask = masks.subarray(byte, byte + size).reduce((all, bits) => all * 256 + bits, 0);
        const rest = maskOf(8 * size) - mask;
        if (rest === 0) return store(view, at, size, value);
        return store(view, at, size, code`${load(view, at, size)} & ${rest} | ${value} & ${mask}`);
      });
  }
}

/** What of an access is needed to reach all bits of the masks, which are those of a header's bytes. */
function narrowed(access: Access, masks: Uint8Array): Access[] {
  const { byte, size } = access;
  if (masks.subarray(byte, byte + size).every((mask) => mask === 0)) return [];
  if (size === 1) return [access];
  const half = size === 4 ? 2 : 1;
  const halves = [byte, byte + half].flatMap((at) => narrowed({ byte: at, size: half }, masks));
  return halves.length === 1 ? halves : [access];
}
