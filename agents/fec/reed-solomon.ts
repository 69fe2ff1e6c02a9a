import { FABRIC_SOURCE_SYMBOLS } from '../../p4/build/constants.ts';
import { inverse, multiply } from './galois.ts';
import { combineLinearly } from './linear-combination.ts';

/**
 * Systematic Reed-Solomon code over GF(256) from a Cauchy matrix: the first symbols of a block are its source symbols, parity symbol s
 * (64..254) is the sum over j of source symbol j times 1 / (s + j). Every square part of a Cauchy matrix can be inverted, so any k
 * distinct symbols restore a block of k source symbols, for every k <= 64, and a parity symbol can be made without the others.
 */

/** Symbols of a block: 0..63 source, 64..254 parity. */
export const SYMBOLS = 255;

/**
 * Writes one symbol of a block.
 * @param sources the block's source symbols, 1..64; shorter ones count as padded with zeros
 * @param symbol  0..k-1 copies a source symbol, 64..254 makes parity
 * @param out     as long as the longest source symbol; need not be cleared
 */
export function encodeSymbol(sources: readonly Uint8Array[], symbol: number, out: Uint8Array): void {
  if (symbol >= FABRIC_SOURCE_SYMBOLS) {
    encodeParity(sources, [symbol], [out]);
    return;
  }
  out.set(sources[symbol]);
  out.fill(0, sources[symbol].length);
}

/**
 * Writes several parity symbols of a block; cheaper than one by one, because the sources are read once.
 * @param symbols 64..254, at most 64 of them
 * @param outs    one for each, as long as the longest source symbol
 */
export function encodeParity(
  sources: readonly Uint8Array[],
  symbols: readonly number[],
  outs: readonly Uint8Array[],
): void {
  const k = sources.length;
  const coefficients = new Uint8Array(symbols.length * k);
  for (const [row, symbol] of symbols.entries())
    for (let j = 0; j < k; j++) coefficients[row * k + j] = inverse(symbol ^ j);
  combineLinearly(sources, outs, coefficients);
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
   * @param bytes         where the block is put together: at least sourceSymbols * symbolBytes. Default: a new buffer.
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
    const present: number[] = [];
    const missing: number[] = [];
    for (let j = 0; j < this.sourceSymbols; j++) (this.present[j] === 1 ? present : missing).push(j);
    if (missing.length === 0) return 0;
    const parity = this.parity.slice(0, missing.length);
    combineLinearly(
      [...present.map((j) => this.source(j)), ...parity.map(({ bytes }) => bytes)],
      missing.map((j) => this.source(j)),
      solve(
        present,
        parity.map(({ symbol }) => symbol),
        missing,
      ),
    );
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
 * What the missing source symbols are made of: symbol m is the sum over all held symbols h of h's bytes times w(m) w(h) / (h + m), where w(s) is
 * the product of s + t over the symbols t of the other of the two sets `parity` and `missing`, over that of the rest of its own set (a present
 * source symbol counts as one of the first, which it is not in). It comes from the closed form of the inverse of the Cauchy matrix
 * 1 / (parity + missing) (Schechter 1959), times what the parity symbols say about the present ones, by partial fractions.
 *
 * @param parity as many as are missing
 * @returns one row per missing symbol: the coefficients of `present`, then those of `parity`
 */
function solve(present: readonly number[], parity: readonly number[], missing: readonly number[]): Uint8Array {
  const held = [...present, ...parity];
  const heldWeights = held.map((symbol) => weight(symbol, parity, missing));
  const coefficients = new Uint8Array(missing.length * held.length);
  let at = 0;
  for (const symbol of missing) {
    const own = weight(symbol, missing, parity);
    for (let i = 0; i < held.length; i++)
      coefficients[at++] = multiply(multiply(own, heldWeights[i]), inverse(held[i] ^ symbol));
  }
  return coefficients;
}

function weight(symbol: number, own: readonly number[], others: readonly number[]): number {
  let numerator = 1;
  let denominator = 1;
  for (const other of others) numerator = multiply(numerator, symbol ^ other);
  for (const other of own) if (other !== symbol) denominator = multiply(denominator, symbol ^ other);
  return multiply(numerator, inverse(denominator));
}
