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

export interface ParitySymbol {
  /** 64..254 */
  readonly symbol: number;
  /** As long as the block's longest source symbol. */
  readonly bytes: Uint8Array;
}

/**
 * Restores the source symbols that a block misses.
 * @param sources the block's source symbols, 1..64; shorter ones count as padded with zeros, those that are missing are not read
 * @param missing 0..k-1 in any order, at least one
 * @param parity  distinct, at least as many as are missing
 * @param outs    one for each that is missing, as long as the longest source symbol; need not be cleared, and may not be among the sources
 */
export function restoreSources(
  sources: readonly Uint8Array[],
  missing: readonly number[],
  parity: readonly ParitySymbol[],
  outs: readonly Uint8Array[],
): void {
  const present = sources.map((_, j) => j).filter((j) => !missing.includes(j));
  const used = parity.slice(0, missing.length);
  combineLinearly(
    [...present.map((j) => sources[j]), ...used.map(({ bytes }) => bytes)],
    outs,
    solve(
      present,
      used.map(({ symbol }) => symbol),
      missing,
    ),
  );
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
