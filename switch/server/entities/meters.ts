import type {
  Entity,
  MeterConfig as MeterConfigMessage,
  MeterEntry,
  UpdateType,
} from '../../../wire/p4runtime/messages.ts';
import type { P4InfoIndex } from '../../../wire/p4runtime/p4info-index.ts';
import { MeterSpecType } from '../../../wire/p4runtime/p4info-messages.ts';
import type { MeterInfo } from '../../../wire/p4runtime/p4info-objects.ts';
import type { MeterArrayControl, MeterConfig, ProgramControl } from '../../control.ts';
import { RpcError } from '../rpc-error.ts';
import { cellRange, objectById, objectsById, requireModify } from '../validation.ts';
import type { EntityKind } from './entity-kind.ts';

/** Indexed meters (P4Runtime 1.5, section "MeterEntry & DirectMeterEntry"): two rates, three colours (RFC 2698); no counters per colour. */
export class Meters implements EntityKind<MeterEntry> {
  private readonly info: P4InfoIndex;
  private readonly arrays: ReadonlyMap<string, MeterArrayControl>;

  constructor(info: P4InfoIndex, control: ProgramControl) {
    this.info = info;
    this.arrays = control.meters;
  }

  write(type: UpdateType, entity: MeterEntry): void {
    requireModify(type, 'meter');
    const meter = objectById(this.info.meters, entity.meterId);
    const array = this.arrays.get(meter.name)!;
    refuseColourCounters(entity, meter);
    const { first, end } = cellRange(entity.index, array.size, `Meter ${meter.name}`);
    const config = entity.config === undefined ? undefined : parseMeterConfig(entity.config, meter);
    for (let index = first; index < end; index++) array.configure(index, config);
  }

  read(filter: MeterEntry): Entity[] {
    const entities: Entity[] = [];
    for (const meter of objectsById(this.info.meters, filter.meterId)) {
      const array = this.arrays.get(meter.name)!;
      refuseColourCounters(filter, meter);
      const { first, end } = cellRange(
        filter.meterId === 0 ? undefined : filter.index,
        array.size,
        `Meter ${meter.name}`,
      );
      for (let index = first; index < end; index++) {
        const config = array.config(index);
        entities.push({
          meterEntry: {
            meterId: meter.id,
            index: { index: BigInt(index) },
            config: config === undefined ? undefined : { ...config, eburst: 0n },
          },
        });
      }
    }
    return entities;
  }
}

function refuseColourCounters(entity: MeterEntry, meter: MeterInfo): void {
  if (entity.counterData !== undefined)
    throw new RpcError('UNIMPLEMENTED', `Meter ${meter.name}: this switch has no counters per colour`);
}

function parseMeterConfig(config: MeterConfigMessage, meter: MeterInfo): MeterConfig {
  const where = `Meter ${meter.name}`;
  if (meter.type !== MeterSpecType.TWO_RATE_THREE_COLOR)
    throw new RpcError('UNIMPLEMENTED', `${where}: this switch has no single-rate meters`);
  if (config.eburst !== 0n) throw new RpcError('INVALID_ARGUMENT', `${where}: a two-rate meter has no eburst`);
  const { cir, cburst, pir, pburst } = config;
  if ([cir, cburst, pir, pburst].some((value) => value < 0n))
    throw new RpcError('INVALID_ARGUMENT', `${where}: rates and bursts are never negative`);
  return { cir, cburst, pir, pburst };
}
