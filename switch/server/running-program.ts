import type { Scheduler } from '../../base/clock.ts';
import {
  WriteRequestAtomicity as Atomicity,
  type DigestListAck,
  type Entity,
  type TableEntry,
  type Update,
  UpdateType,
  type WriteRequestAtomicity,
} from '../../wire/p4runtime/messages.ts';
import type { P4InfoIndex } from '../../wire/p4runtime/p4info-index.ts';
import { PacketMetadataCodec } from '../../wire/p4runtime/packet-metadata.ts';
import type { ProgramControl } from '../control.ts';
import type { DigestListToSend } from './digests.ts';
import { Counters } from './entities/counters.ts';
import { DigestEntries } from './entities/digest-entries.ts';
import { DirectCounters, DirectMeters } from './entities/direct-resources.ts';
import { type EntityKind, type Undo, UnservedKind } from './entities/entity-kind.ts';
import { Meters } from './entities/meters.ts';
import { ProfileGroups, ProfileMembers } from './entities/profile-members.ts';
import { Registers } from './entities/registers.ts';
import { Replication } from './entities/replication.ts';
import { TableEntries } from './entities/table-entries.ts';
import { TableStates } from './entities/table-state.ts';
import { ValueSets } from './entities/value-sets.ts';
import { FieldValues } from './field-values.ts';
import { IdleTimeouts } from './idle-timeouts.ts';
import { RpcError, toRpcError } from './rpc-error.ts';

/**
 * Cells and entries that the updates of one batch may touch together, beside the first: some hundred milliseconds, in which the switch does nothing
 * else. One update alone may always be for a whole array, whose size the program states.
 */
export const MAX_BATCH_WORK = 262_144;

/** A handler for every member of the entity oneof. */
type EntityKinds = { readonly [K in keyof Entity]-?: EntityKind<NonNullable<Entity[K]>> };

/** What a program that runs tells controllers. */
export interface ProgramListener {
  /** Returns whether anybody got the list. */
  digestList(list: DigestListToSend): boolean;
  idle(entries: TableEntry[]): void;
}

/** A program on the device, with everything that controllers have written to it. */
export class RunningProgram {
  readonly info: P4InfoIndex;
  /** `undefined` when the program has no such controller header: then packets have no metadata. */
  readonly packetIn: PacketMetadataCodec | undefined;
  readonly packetOut: PacketMetadataCodec | undefined;
  readonly tables: TableStates;
  private readonly control: ProgramControl;
  private readonly scheduler: Scheduler;
  private readonly kinds: EntityKinds;
  private readonly kindNames: readonly (keyof Entity)[];
  private readonly tableEntries: TableEntries;
  private readonly digests: DigestEntries;
  private idleTimeouts: IdleTimeouts | undefined;

  /** Throws DdfError INVALID_PROGRAM, UNSUPPORTED_PROGRAM, PROGRAM_MISMATCH, or RpcError for entries of the program's own that its P4Info does not describe. */
  constructor(info: P4InfoIndex, control: ProgramControl, cpuPort: number, scheduler: Scheduler) {
    this.info = info;
    this.control = control;
    this.scheduler = scheduler;
    this.packetIn = packetCodec(info, 'packet_in');
    this.packetOut = packetCodec(info, 'packet_out');
    const values = new FieldValues(info, control, cpuPort);
    this.tables = new TableStates(info, control, values, cpuPort);
    this.tableEntries = new TableEntries(this.tables, () => scheduler.nowUs());
    this.digests = new DigestEntries(info, control);
    this.kinds = {
      actionProfileMember: new ProfileMembers(this.tables),
      actionProfileGroup: new ProfileGroups(this.tables),
      tableEntry: this.tableEntries,
      directCounterEntry: new DirectCounters(this.tables),
      directMeterEntry: new DirectMeters(this.tables),
      counterEntry: new Counters(info, control),
      meterEntry: new Meters(info, control),
      registerEntry: new Registers(info, control),
      packetReplicationEngineEntry: new Replication(info, control, cpuPort),
      valueSetEntry: new ValueSets(info, control, values),
      digestEntry: this.digests,
      externEntry: new UnservedKind('extern entries'),
    };
    this.kindNames = Object.keys(this.kinds) as (keyof Entity)[];
  }

  /** The device runs it now: from here on it tells of digests and idle entries. */
  start(listener: ProgramListener): void {
    this.idleTimeouts = new IdleTimeouts(this.tables, this.scheduler, (entries) => listener.idle(entries));
    this.tableEntries.onIdleTimeout = () => this.idleTimeouts?.rearm();
    this.idleTimeouts.rearm();
    this.digests.start(this.scheduler, (list) => listener.digestList(list));
    this.control.onDigest = (digest, values) => this.digests.message(digest.name, values);
  }

  stop(): void {
    this.control.onDigest = undefined;
    this.digests.stop();
    this.idleTimeouts?.stop();
    this.tableEntries.onIdleTimeout = undefined;
  }

  /** Throws RpcError INVALID_ARGUMENT for a digest that the program does not have. */
  acknowledge({ digestId, listId }: DigestListAck): void {
    this.digests.acknowledge(digestId, listId);
  }

  /**
   * Attempts the updates in order; one outcome for each, `undefined` for success (P4Runtime 1.5, section "Batch Atomicity"). No packet is processed
   * meanwhile, so that a batch that is rolled back when something fails is also atomic for packets.
   * @param mayWrite throws RpcError when the role may not
   */
  write(
    updates: readonly Update[],
    atomicity: WriteRequestAtomicity,
    mayWrite: (entity: Entity | undefined) => void,
  ): (RpcError | undefined)[] {
    const undos: Undo[] = [];
    let work = 0;
    const outcomes: (RpcError | undefined)[] = [];
    for (const update of updates) {
      try {
        mayWrite(update.entity);
        const more = this.workOf(update.entity);
        if (work > 0 && work + more > MAX_BATCH_WORK)
          throw new RpcError('RESOURCE_EXHAUSTED', 'The batch writes more cells and entries than one may: divide it');
        work += more;
        const undo = this.writeOne(update);
        if (atomicity !== Atomicity.CONTINUE_ON_ERROR) undos.push(undo);
        outcomes.push(undefined);
      } catch (error) {
        outcomes.push(toRpcError(error));
        if (atomicity !== Atomicity.CONTINUE_ON_ERROR) return rollBack(updates, outcomes, undos);
      }
    }
    return outcomes;
  }

  private workOf(entity: Entity | undefined): number {
    if (entity === undefined || entity.tableEntry !== undefined) return 1;
    const name = this.kindOf(entity);
    return (this.kinds[name] as EntityKind<unknown>).workOf?.(entity[name]) ?? 1;
  }

  /** Throws RpcError. */
  writeOne({ type, entity }: Update): Undo {
    if (type !== UpdateType.INSERT && type !== UpdateType.MODIFY && type !== UpdateType.DELETE)
      throw new RpcError('INVALID_ARGUMENT', `Update type ${type} is none of INSERT, MODIFY, DELETE`);
    const name = this.kindOf(entity);
    return (this.kinds[name] as EntityKind<unknown>).write(type, entity![name]);
  }

  /** The entities of one read request; throws RpcError, at once or while they are taken. */
  read(filter: Entity): Iterable<Entity> {
    const name = this.kindOf(filter);
    return (this.kinds[name] as EntityKind<unknown>).read(filter[name]);
  }

  /** The kind of a name takes what the entity has under that name; TypeScript cannot pair the two. */
  private kindOf(entity: Entity | undefined): keyof Entity {
    if (entity !== undefined) {
      // Nearly all are of this kind.
      if (entity.tableEntry !== undefined) return 'tableEntry';
      for (const name of this.kindNames) if (entity[name] !== undefined) return name;
    }
    throw new RpcError('INVALID_ARGUMENT', 'The entity is not set, or of a kind that P4Runtime 1.5 does not know');
  }
}

/** The last outcome is the failure; what stood before it is taken back, what came after it was never tried. */
function rollBack(
  updates: readonly Update[],
  outcomes: readonly (RpcError | undefined)[],
  undos: readonly Undo[],
): (RpcError | undefined)[] {
  for (const undo of [...undos].reverse()) undo();
  const aborted = new RpcError('ABORTED', `Update ${outcomes.length - 1} of the batch failed, so nothing was changed`);
  return updates.map((_, i) => outcomes[i] ?? aborted);
}

function packetCodec(info: P4InfoIndex, name: 'packet_in' | 'packet_out'): PacketMetadataCodec | undefined {
  const header = info.controllerHeaders.get(name);
  return header === undefined ? undefined : new PacketMetadataCodec(header);
}
