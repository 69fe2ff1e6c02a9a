import type { Scheduler } from '../../base/clock.ts';
import { DdfError } from '../../base/errors.ts';
import type { Random } from '../../base/random.ts';
import type { Frame } from './port.ts';
import type { FrameStage } from './wire.ts';

/** Probabilities per frame, 0 to 1, decided independently; all default to 0. */
export interface ImpairmentProperties {
  readonly loss?: number;
  /** The frame arrives twice, one copy right after the other. */
  readonly duplication?: number;
  /** The frame is held back and arrives {@link reorderDelayUs} later, behind those that follow it in that time. */
  readonly reordering?: number;
  /** Required with `reordering`. */
  readonly reorderDelayUs?: number;
  /** One bit of the frame is flipped. */
  readonly corruption?: number;
}

export interface ImpairmentStatistics {
  readonly lost: number;
  readonly duplicated: number;
  readonly reordered: number;
  readonly corrupted: number;
}

/**
 * Does to frames what bad links do, reproducibly: the same frames in the same order meet the same fate for the same `random`.
 * It wraps any direction: give it to a Wire as a stage, or call {@link pass} between any two parts that hand frames over.
 */
export class Impairment implements FrameStage {
  private readonly scheduler: Scheduler;
  private readonly random: Random;
  private readonly properties: Required<ImpairmentProperties>;
  private lost = 0;
  private duplicated = 0;
  private reordered = 0;
  private corrupted = 0;

  /** Throws INVALID_OPTION for a probability outside 0..1, or reordering without a delay. */
  constructor(scheduler: Scheduler, random: Random, properties: ImpairmentProperties) {
    const { loss = 0, duplication = 0, reordering = 0, reorderDelayUs = 0, corruption = 0 } = properties;
    for (const [name, value] of Object.entries({ loss, duplication, reordering, corruption })) {
      if (!(value >= 0 && value <= 1))
        throw new DdfError('INVALID_OPTION', `${name} is ${value}; a probability is between 0 and 1`);
    }
    if (reordering > 0 && !(reorderDelayUs > 0))
      throw new DdfError('INVALID_OPTION', 'reordering needs a reorderDelayUs above 0');
    this.scheduler = scheduler;
    this.random = random;
    this.properties = { loss, duplication, reordering, reorderDelayUs, corruption };
  }

  pass(frame: Frame, deliver: (frame: Frame) => void): boolean {
    const { random, properties } = this;
    if (random.chance(properties.loss)) {
      this.lost++;
      return false;
    }
    if (frame.length > 0 && random.chance(properties.corruption)) {
      this.corrupted++;
      frame[random.below(frame.length)]! ^= 1 << random.below(8);
    }
    const copy = random.chance(properties.duplication) ? frame.slice() : undefined;
    if (random.chance(properties.reordering)) {
      this.reordered++;
      this.scheduler.at(this.scheduler.nowUs() + properties.reorderDelayUs, () => deliver(frame));
    } else {
      deliver(frame);
    }
    if (copy !== undefined) {
      this.duplicated++;
      deliver(copy);
    }
    return true;
  }

  statistics(): ImpairmentStatistics {
    const { lost, duplicated, reordered, corrupted } = this;
    return { lost, duplicated, reordered, corrupted };
  }
}
