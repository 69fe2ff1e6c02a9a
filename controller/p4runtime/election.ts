import type { Uint128 } from '../../wire/p4runtime/messages.ts';

const MAX_UINT64 = 0xffff_ffff_ffff_ffffn;

/**
 * An election id that is higher than those of earlier runs of the same controller: milliseconds since 1970 above, something random below, so that two
 * controllers that start in the same millisecond differ.
 */
export function electionIdAt(wallMs: number, low: bigint): Uint128 {
  return { high: BigInt(Math.floor(wallMs)), low: BigInt.asUintN(64, low) };
}

/** Orders ids as the unsigned 128-bit numbers that they are. */
export function compareElectionIds(a: Uint128, b: Uint128): number {
  if (a.high !== b.high) return a.high < b.high ? -1 : 1;
  return a.low === b.low ? 0 : a.low < b.low ? -1 : 1;
}

/** The next higher id; the highest of all stays. */
export function nextElectionId({ high, low }: Uint128): Uint128 {
  if (low < MAX_UINT64) return { high, low: low + 1n };
  return high < MAX_UINT64 ? { high: high + 1n, low: 0n } : { high, low };
}
