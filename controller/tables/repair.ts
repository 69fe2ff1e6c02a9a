/** p4/repair.p4: the three intervals of NACK elimination. */
import { DdfError } from '../../base/errors.ts';
import { REPAIR_TICK_US } from '../../p4/build/constants.ts';
import type { Entity } from '../../wire/p4runtime/messages.ts';
import type { EntityFactory } from './entities.ts';

/** Microseconds; what they mean is in docs/protocol.md, "NACK elimination". */
export interface RepairIntervals {
  /** Above a round trip to the sender plus its hold. */
  readonly eliminationUs: number;
  readonly staleUs: number;
  /** At most `staleUs`. */
  readonly graceUs: number;
}

export const DEFAULT_REPAIR_INTERVALS: RepairIntervals = { eliminationUs: 10_000, staleUs: 200_000, graceUs: 10_000 };

/** Rounded up to the switches' ticks. Throws INVALID_OPTION when the switches' signed clock difference cannot hold them. */
export function repairIntervals(factory: EntityFactory, intervals: RepairIntervals): Entity {
  const ticks = (us: number): number => Math.ceil(us / REPAIR_TICK_US);
  const { eliminationUs, staleUs, graceUs } = intervals;
  if (!(eliminationUs > 0 && graceUs >= 0 && graceUs <= staleUs && ticks(Math.max(staleUs, eliminationUs)) < 2 ** 30))
    throw new DdfError('INVALID_OPTION', 'the repair intervals make no sense together', {
      where: `elimination ${eliminationUs} us, stale ${staleUs} us, grace ${graceUs} us`,
      remedy: 'elimination is above 0, grace at most stale, none longer than four hours.',
    });
  return factory.defaultAction('repair_intervals', {
    name: 'set_intervals',
    params: { elimination: ticks(eliminationUs), stale: ticks(staleUs), grace: ticks(graceUs) },
  });
}
