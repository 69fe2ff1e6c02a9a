import { DdfError } from '../../base/errors.ts';
import type { Store } from './store.ts';

const LABEL_COUNTER = 'label';
const MAX_LABEL = 0xffff_ffff;

/** Numbers that are handed out once and never again, across restarts. */
export class Counters {
  private readonly advance;

  constructor(store: Store) {
    // The row holds the next number; the statement returns the one that was taken.
    this.advance = store.prepare<[{ name: string; count: number }], { first: number }>(
      `INSERT INTO counters (name, next) VALUES (@name, 1 + @count)
         ON CONFLICT (name) DO UPDATE SET next = next + @count RETURNING next - @count AS first`,
    );
  }

  /**
   * Takes `count` transfer labels.
   * @returns the first; the others follow it. Labels start at 1: 0 is no label.
   * @throws DdfError INTERNAL when 2^32 labels were used
   */
  takeLabels(count: number): number {
    const first = this.advance.get({ name: LABEL_COUNTER, count })!.first;
    if (first + count - 1 > MAX_LABEL)
      throw new DdfError('INTERNAL', 'all 2^32 transfer labels are used', {
        where: 'counters',
        remedy: 'Start with a new database once no switch has entries of the old labels.',
      });
    return first;
  }

  /** Takes the next object serial of a tenant, from 1 on (48 bits: more than there will ever be objects). */
  takeSerial(tenant: number): number {
    return this.advance.get({ name: `serial/${tenant}`, count: 1 })!.first;
  }
}
