import type { Random } from '../../base/random.ts';

/**
 * Something that is fed made-up input. It works in rounds: a round starts from nothing and depends on its random numbers alone, so that seed
 * and number of a round reproduce a failure without what ran before it.
 */
export interface FuzzTarget {
  /** Cases that share the state which a round builds up. */
  readonly casesPerRound: number;
  /** How the cases went, so that a run which never got anywhere shows: `ran` and `refused`, for example. */
  readonly tally: Tally;
  /**
   * Feeds `cases` cases and throws an Error if what is fed breaks a promise.
   * @param step called before each case: tells the watchdog that nothing hangs, and the reader of a failure which case it was
   */
  round(random: Random, cases: number, step: (detail?: () => string) => void): void | Promise<void>;
  /** Ends what the target started; nothing by default. */
  close?(): Promise<void>;
}

/** Counts by name. */
export class Tally {
  readonly counts: Record<string, number> = {};

  add(name: string, count = 1): void {
    this.counts[name] = (this.counts[name] ?? 0) + count;
  }
}

/** For properties that are checked in passing: a failed one ends the round. */
export function ensure(holds: boolean, what: () => string): asserts holds {
  if (!holds) throw new Error(what());
}

export function pick<T>(random: Random, values: readonly T[]): T {
  if (values.length === 0) throw new Error('nothing to pick from');
  return values[random.below(values.length)]!;
}
