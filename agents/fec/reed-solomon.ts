import { FABRIC_SOURCE_SYMBOLS } from '../../p4/build/constants.ts';
import { EXP, inverse, LOG, multiplyAccumulate } from './galois.ts';

/**
 * Systematic Reed-Solomon code over GF(256) from a Cauchy matrix: the first symbols of a block are its source symbols, parity symbol s
 * (64..254) is the sum over j of source symbol j times 1 / (s + j). Every square part of a Cauchy matrix can be inverted, so any k
 * distinct symbols restore a block of k source symbols, for every k <= 64, and a parity symbol can be made without the others.
 */

/** Symbols of a block: 0..63 source, 64..254 parity. */
export const SYMBOLS = 255;

const ORDER = 255;

/**
 * Writes one symbol of a block.
 * @param sources the block's source symbols, 1..64; shorter ones count as padded with zeros
 * @param symbol  0..k-1 copies a source symbol, 64..254 makes parity
 * @param out     as long as the longest source symbol; need not be cleared
 */
export function encodeSymbol(sources: readonly Uint8Array[], symbol: number, out: Uint8Array): void {
  out.fill(0);
  if (symbol < FABRIC_SOURCE_SYMBOLS) {
    out.set(sources[symbol]);
    return;
  }
  for (let j = 0; j < sources.length; j++) multiplyAccumulate(out, sources[j], inverse(symbol ^ j));
}

/** Collects the symbols of one block until they suffice, and solves for the missing source symbols only. */
export class BlockDecoder {
  readonly sourceSymbols: number;
  readonly symbolBytes: number;
  /** The source symbols one after another at their places; those not held are undefined bytes until `restore`. */
  readonly bytes: Uint8Array;
  private readonly present = new Uint8Array(SYMBOLS);
  private readonly parity: { readonly symbol: number; readonly bytes: Uint8Array }[] = [];
  private sourceHeld = 0;

  /**
   * @param sourceSymbols 1..64
   * @param symbolBytes   length of the block's longest symbol
   * @param bytes         where the block is put together: at least sourceSymbols * symbolBytes, starting on a word. Default: a new buffer.
   */
  constructor(
    sourceSymbols: number,
    symbolBytes: number,
    bytes: Uint8Array = new Uint8Array(sourceSymbols * symbolBytes),
  ) {
    this.sourceSymbols = sourceSymbols;
    this.symbolBytes = symbolBytes;
    this.bytes = bytes;
  }

  /** Distinct symbols held that count; never above sourceSymbols. */
  get held(): number {
    return Math.min(this.sourceHeld + this.parity.length, this.sourceSymbols);
  }

  /** Source symbols not held. */
  get missing(): number {
    return this.sourceSymbols - this.sourceHeld;
  }

  get complete(): boolean {
    return this.sourceHeld + this.parity.length >= this.sourceSymbols;
  }

  has(symbol: number): boolean {
    return this.present[symbol] === 1;
  }

  /**
   * Copies a symbol in.
   * @param symbol 0..k-1 or 64..254
   * @param bytes  at most symbolBytes; a shorter source symbol counts as padded with zeros
   * @returns whether it was new
   */
  add(symbol: number, bytes: Uint8Array): boolean {
    if (this.present[symbol] === 1) return false;
    this.present[symbol] = 1;
    if (symbol < FABRIC_SOURCE_SYMBOLS) {
      const start = symbol * this.symbolBytes;
      this.bytes.set(bytes, start);
      this.bytes.fill(0, start + bytes.length, start + this.symbolBytes);
      this.sourceHeld++;
    } else {
      this.parity.push({ symbol, bytes: bytes.slice() });
    }
    return true;
  }

  /**
   * Fills in the missing source symbols; call it when `complete`, once.
   * @returns how many were missing
   */
  restore(): number {
    const missing: number[] = [];
    for (let j = 0; j < this.sourceSymbols; j++) if (this.present[j] === 0) missing.push(j);
    const rows = this.parity.slice(0, missing.length);
    // What each parity symbol says about the missing ones alone.
    for (const row of rows)
      for (let j = 0; j < this.sourceSymbols; j++)
        if (this.present[j] === 1) multiplyAccumulate(row.bytes, this.source(j), inverse(row.symbol ^ j));
    const solution = invertCauchy(
      rows.map((row) => row.symbol),
      missing,
    );
    for (let m = 0; m < missing.length; m++) {
      const target = this.source(missing[m]);
      target.fill(0);
      for (let r = 0; r < rows.length; r++) multiplyAccumulate(target, rows[r].bytes, solution[m * rows.length + r]);
    }
    for (const j of missing) this.present[j] = 1;
    this.sourceHeld = this.sourceSymbols;
    this.parity.length = 0;
    return missing.length;
  }

  private source(symbol: number): Uint8Array {
    return this.bytes.subarray(symbol * this.symbolBytes, (symbol + 1) * this.symbolBytes);
  }
}

/**
 * The inverse of the matrix 1 / (x_r + y_m), by its closed form (Schechter 1959): entry (m, r) is
 * prod_k (x_r + y_k)(x_k + y_m)  /  ((x_r + y_m) prod_{k != r} (x_r + x_k) prod_{k != m} (y_m + y_k)).
 * @returns rows in the order of `ys`, one column per element of `xs`
 */
function invertCauchy(xs: readonly number[], ys: readonly number[]): Uint8Array {
  const n = xs.length;
  const product = (terms: Iterable<number>): number => {
    let log = 0;
    for (const term of terms) log += LOG[term];
    return log;
  };
  const xLogs = xs.map((x) => product(ys.map((y) => x ^ y)) - product(xs.filter((o) => o !== x).map((o) => x ^ o)));
  const yLogs = ys.map((y) => product(xs.map((x) => x ^ y)) - product(ys.filter((o) => o !== y).map((o) => y ^ o)));
  const inverted = new Uint8Array(n * n);
  for (let m = 0; m < n; m++)
    for (let r = 0; r < n; r++) {
      const log = (xLogs[r] + yLogs[m] - LOG[xs[r] ^ ys[m]]) % ORDER;
      inverted[m * n + r] = EXP[log < 0 ? log + ORDER : log];
    }
  return inverted;
}
