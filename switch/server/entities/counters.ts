import type { CounterEntry, Entity, UpdateType } from '../../../wire/p4runtime/messages.ts';
import type { P4InfoIndex } from '../../../wire/p4runtime/p4info-index.ts';
import type { CounterArrayControl, ProgramControl } from '../../control.ts';
import {
  cellRange,
  cellWork,
  counterMessage,
  objectById,
  objectsById,
  parseCounterData,
  replaceCells,
  requireModify,
} from '../validation.ts';
import type { EntityKind, Undo } from './entity-kind.ts';

/** Indexed counters (P4Runtime 1.5, section "CounterEntry"). */
export class Counters implements EntityKind<CounterEntry> {
  private readonly info: P4InfoIndex;
  private readonly arrays: ReadonlyMap<string, CounterArrayControl>;

  constructor(info: P4InfoIndex, control: ProgramControl) {
    this.info = info;
    this.arrays = control.counters;
  }

  write(type: UpdateType, entity: CounterEntry): Undo {
    requireModify(type, 'counter');
    const counter = objectById(this.info.counters, entity.counterId);
    const array = this.arrays.get(counter.name)!;
    const { first, end } = cellRange(entity.index, array.size, `Counter ${counter.name}`);
    if (entity.data === undefined) return () => undefined;
    const value = parseCounterData(entity.data, `Counter ${counter.name}`);
    return replaceCells(
      first,
      end,
      value,
      (index) => array.read(index),
      (index, cell) => array.write(index, cell),
    );
  }

  workOf(entity: CounterEntry): number {
    return cellWork(entity.index, this.arrays.get(this.info.counters.get(entity.counterId)?.name ?? ''));
  }

  *read(filter: CounterEntry): Generator<Entity> {
    for (const counter of objectsById(this.info.counters, filter.counterId)) {
      const array = this.arrays.get(counter.name)!;
      const { first, end } = cellRange(
        filter.counterId === 0 ? undefined : filter.index,
        array.size,
        `Counter ${counter.name}`,
      );
      for (let index = first; index < end; index++)
        yield {
          counterEntry: {
            counterId: counter.id,
            index: { index: BigInt(index) },
            data: counterMessage(array.read(index)),
          },
        };
    }
  }
}
