import type { Entity, MeterEntry, UpdateType } from '../../../wire/p4runtime/messages.ts';
import type { P4InfoIndex } from '../../../wire/p4runtime/p4info-index.ts';
import type { MeterArrayControl, ProgramControl } from '../../control.ts';
import {
  cellRange,
  cellWork,
  meterMessage,
  objectById,
  objectsById,
  parseMeterConfig,
  refuseColourCounters,
  replaceCells,
  requireModify,
} from '../validation.ts';
import type { EntityKind, Undo } from './entity-kind.ts';

/** Indexed meters (P4Runtime 1.5, section "MeterEntry & DirectMeterEntry"): two rates, three colours (RFC 2698); no counters per colour. */
export class Meters implements EntityKind<MeterEntry> {
  private readonly info: P4InfoIndex;
  private readonly arrays: ReadonlyMap<string, MeterArrayControl>;

  constructor(info: P4InfoIndex, control: ProgramControl) {
    this.info = info;
    this.arrays = control.meters;
  }

  write(type: UpdateType, entity: MeterEntry): Undo {
    requireModify(type, 'meter');
    const meter = objectById(this.info.meters, entity.meterId);
    const array = this.arrays.get(meter.name)!;
    refuseColourCounters(entity.counterData, `Meter ${meter.name}`);
    const { first, end } = cellRange(entity.index, array.size, `Meter ${meter.name}`);
    const config = entity.config && parseMeterConfig(entity.config, meter.type, `Meter ${meter.name}`);
    return replaceCells(
      first,
      end,
      config,
      (index) => array.config(index),
      (index, cell) => array.configure(index, cell),
    );
  }

  workOf(entity: MeterEntry): number {
    return cellWork(entity.index, this.arrays.get(this.info.meters.get(entity.meterId)?.name ?? ''));
  }

  *read(filter: MeterEntry): Generator<Entity> {
    for (const meter of objectsById(this.info.meters, filter.meterId)) {
      const array = this.arrays.get(meter.name)!;
      refuseColourCounters(filter.counterData, `Meter ${meter.name}`);
      const { first, end } = cellRange(
        filter.meterId === 0 ? undefined : filter.index,
        array.size,
        `Meter ${meter.name}`,
      );
      for (let index = first; index < end; index++) {
        const config = array.config(index);
        yield {
          meterEntry: {
            meterId: meter.id,
            index: { index: BigInt(index) },
            config: meterMessage(config),
          },
        };
      }
    }
  }
}
