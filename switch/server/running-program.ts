import { type Entity, type Update, UpdateType } from '../../wire/p4runtime/messages.ts';
import type { P4InfoIndex } from '../../wire/p4runtime/p4info-index.ts';
import { PacketMetadataCodec } from '../../wire/p4runtime/packet-metadata.ts';
import type { ProgramControl } from '../control.ts';
import { Counters } from './entities/counters.ts';
import { DirectCounters } from './entities/direct-counters.ts';
import { type EntityKind, UnservedKind } from './entities/entity-kind.ts';
import { Meters } from './entities/meters.ts';
import { Registers } from './entities/registers.ts';
import { Replication } from './entities/replication.ts';
import { TableEntries } from './entities/table-entries.ts';
import { TableStates } from './entities/table-state.ts';
import { RpcError, toRpcError } from './rpc-error.ts';

/** A handler for every member of the entity oneof. */
type EntityKinds = { readonly [K in keyof Entity]-?: EntityKind<NonNullable<Entity[K]>> };

/** A program that runs on the device, with everything that controllers have written to it. */
export class RunningProgram {
  readonly info: P4InfoIndex;
  /** `undefined` when the program has no such controller header: then packets have no metadata. */
  readonly packetIn: PacketMetadataCodec | undefined;
  readonly packetOut: PacketMetadataCodec | undefined;
  private readonly kinds: EntityKinds;

  /** Throws DdfError INVALID_PROGRAM, or RpcError for entries of the program's own that its P4Info does not describe. */
  constructor(info: P4InfoIndex, control: ProgramControl, cpuPort: number) {
    this.info = info;
    this.packetIn = packetCodec(info, 'packet_in');
    this.packetOut = packetCodec(info, 'packet_out');
    const tables = new TableStates(info.tables, control.tables);
    this.kinds = {
      tableEntry: new TableEntries(tables),
      directCounterEntry: new DirectCounters(tables),
      counterEntry: new Counters(info, control),
      meterEntry: new Meters(info, control),
      registerEntry: new Registers(info, control),
      packetReplicationEngineEntry: new Replication(info, control, cpuPort),
      actionProfileMember: new UnservedKind('action profile members: write one-shot action sets'),
      actionProfileGroup: new UnservedKind('action profile groups: write one-shot action sets'),
      directMeterEntry: new UnservedKind('direct meters'),
      valueSetEntry: new UnservedKind('value sets'),
      digestEntry: new UnservedKind('digests'),
      externEntry: new UnservedKind('extern entries'),
    };
  }

  /** Attempts every update, in order; one outcome for each, `undefined` for success (atomicity CONTINUE_ON_ERROR). */
  write(updates: readonly Update[]): (RpcError | undefined)[] {
    return updates.map((update) => {
      try {
        this.writeOne(update);
        return undefined;
      } catch (error) {
        return toRpcError(error);
      }
    });
  }

  private writeOne({ type, entity }: Update): void {
    if (type !== UpdateType.INSERT && type !== UpdateType.MODIFY && type !== UpdateType.DELETE)
      throw new RpcError('INVALID_ARGUMENT', `Update type ${type} is none of INSERT, MODIFY, DELETE`);
    this.dispatch(entity, (kind, value) => kind.write(type, value));
  }

  /** The entities of one read request; throws RpcError. */
  read(filter: Entity): Entity[] {
    return this.dispatch(filter, (kind, value) => kind.read(value));
  }

  private dispatch<R>(entity: Entity | undefined, action: (kind: EntityKind<unknown>, value: unknown) => R): R {
    if (entity !== undefined)
      for (const name of Object.keys(this.kinds) as (keyof Entity)[]) {
        const value = entity[name];
        // The kind of a name takes what the entity has under that name; TypeScript cannot pair the two.
        if (value !== undefined) return action(this.kinds[name] as EntityKind<unknown>, value);
      }
    throw new RpcError('INVALID_ARGUMENT', 'The entity is not set, or of a kind that P4Runtime 1.5 does not know');
  }
}

function packetCodec(info: P4InfoIndex, name: 'packet_in' | 'packet_out'): PacketMetadataCodec | undefined {
  const header = info.controllerHeaders.get(name);
  return header === undefined ? undefined : new PacketMetadataCodec(header);
}
