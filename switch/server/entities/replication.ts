import { canonicalBits } from '../../../wire/p4runtime/byte-strings.ts';
import {
  type CloneSessionEntry,
  type Entity,
  type MulticastGroupEntry,
  type PacketReplicationEngineEntry,
  type Replica as ReplicaMessage,
  UpdateType,
} from '../../../wire/p4runtime/messages.ts';
import type { P4InfoIndex } from '../../../wire/p4runtime/p4info-index.ts';
import type { PlatformProperties } from '../../../wire/p4runtime/p4info-messages.ts';
import type { Replica, ReplicationControl } from '../../control.ts';
import { parsePort } from '../ports.ts';
import { RpcError } from '../rpc-error.ts';
import type { EntityKind, Undo } from './entity-kind.ts';

/** v1model: 16-bit groups, sessions and instances. */
const MAX_ID = 0xffff;

/** Multicast groups and clone sessions (P4Runtime 1.5, section "PacketReplicationEngineEntry"). */
export class Replication implements EntityKind<PacketReplicationEngineEntry> {
  private readonly groups: MulticastGroups;
  private readonly sessions: CloneSessions;

  constructor(info: P4InfoIndex, control: ReplicationControl, cpuPort: number) {
    this.groups = new MulticastGroups(control, cpuPort, info.p4Info.pkgInfo?.platformProperties);
    this.sessions = new CloneSessions(control, cpuPort);
  }

  write(type: UpdateType, entity: PacketReplicationEngineEntry): Undo {
    if (entity.multicastGroupEntry !== undefined) return this.groups.write(type, entity.multicastGroupEntry);
    if (entity.cloneSessionEntry !== undefined) return this.sessions.write(type, entity.cloneSessionEntry);
    throw noType();
  }

  read(filter: PacketReplicationEngineEntry): Entity[] {
    const entries: PacketReplicationEngineEntry[] = [];
    if (filter.multicastGroupEntry !== undefined)
      for (const multicastGroupEntry of this.groups.read(filter.multicastGroupEntry.multicastGroupId))
        entries.push({ multicastGroupEntry });
    else if (filter.cloneSessionEntry !== undefined)
      for (const cloneSessionEntry of this.sessions.read(filter.cloneSessionEntry.sessionId))
        entries.push({ cloneSessionEntry });
    else throw noType();
    return entries.map((packetReplicationEngineEntry) => ({ packetReplicationEngineEntry }));
  }
}

function noType(): RpcError {
  return new RpcError(
    'INVALID_ARGUMENT',
    'A replication engine entry is a multicast group or a clone session; neither is set',
  );
}

/** Entries by id, with the rules that groups and sessions share. */
abstract class ReplicaSets<E> {
  protected readonly stored = new Map<number, E>();
  private readonly name: string;
  private readonly cpuPort: number;

  constructor(name: string, cpuPort: number) {
    this.name = name;
    this.cpuPort = cpuPort;
  }

  protected abstract remove(id: number): void;
  /** Checks everything, changes the device, and returns what reads give back. */
  protected abstract install(id: number, entity: E): E;

  protected writeById(type: UpdateType, id: number, entity: E): Undo {
    if (id === 0 || id > MAX_ID) throw new RpcError('INVALID_ARGUMENT', `${this.name} ${id}: ids are 1..${MAX_ID}`);
    const before = this.stored.get(id);
    switch (type) {
      case UpdateType.INSERT:
        if (before !== undefined) throw new RpcError('ALREADY_EXISTS', `${this.name} ${id} exists already`);
        break;
      case UpdateType.MODIFY:
      case UpdateType.DELETE:
        if (before === undefined) throw new RpcError('NOT_FOUND', `${this.name} ${id} does not exist`);
        break;
    }
    if (type === UpdateType.DELETE) this.discard(id);
    else this.stored.set(id, this.install(id, entity));
    return () => {
      if (before === undefined) this.discard(id);
      else this.stored.set(id, this.install(id, before));
    };
  }

  private discard(id: number): void {
    this.remove(id);
    this.stored.delete(id);
  }

  read(id: number): E[] {
    if (id === 0) return [...this.stored.values()];
    const entity = this.stored.get(id);
    return entity === undefined ? [] : [entity];
  }

  /** Replicas for the device, and in the form that reads give back: in order, ports as they were given but canonical. */
  protected parseReplicas(
    id: number,
    replicas: readonly ReplicaMessage[],
  ): { replicas: Replica[]; messages: ReplicaMessage[] } {
    const seen = new Set<string>();
    const add = (port: number, instance: number): void => {
      if (instance > MAX_ID) throw this.invalid(id, `instance ${instance} is above ${MAX_ID}`);
      const pair = `port ${port}, instance ${instance}`;
      if (seen.has(pair)) throw this.invalid(id, `${pair} occurs twice`);
      seen.add(pair);
    };
    const parsed = replicas.map((replica) => {
      const port = this.parsePort(id, replica.port ?? replica.egressPort);
      add(port, replica.instance);
      const backups = replica.backupReplicas.map((backup) => {
        const backupPort = this.parsePort(id, backup.port);
        if (backupPort === port) throw this.invalid(id, `port ${port} is its own backup`);
        add(backupPort, backup.instance);
        return { port: backupPort, instance: backup.instance };
      });
      return { port, instance: replica.instance, ...(backups.length === 0 ? {} : { backups }) };
    });
    const messages = replicas.map((replica) => ({
      ...(replica.port === undefined ? { egressPort: replica.egressPort } : { port: canonicalBits(replica.port) }),
      instance: replica.instance,
      backupReplicas: replica.backupReplicas.map((backup) => ({ ...backup, port: canonicalBits(backup.port) })),
    }));
    return { replicas: parsed, messages };
  }

  private parsePort(id: number, given: Uint8Array | number | undefined): number {
    if (given === undefined) throw this.invalid(id, 'a replica has no port');
    try {
      return parsePort(given, this.cpuPort);
    } catch (error) {
      throw this.invalid(id, error instanceof Error ? error.message : String(error));
    }
  }

  protected invalid(id: number, what: string): RpcError {
    return new RpcError('INVALID_ARGUMENT', `${this.name} ${id}: ${what}`);
  }
}

class MulticastGroups extends ReplicaSets<MulticastGroupEntry> {
  private readonly control: ReplicationControl;
  private readonly limits: PlatformProperties | undefined;

  constructor(control: ReplicationControl, cpuPort: number, limits: PlatformProperties | undefined) {
    super('Multicast group', cpuPort);
    this.control = control;
    this.limits = limits;
  }

  write(type: UpdateType, entity: MulticastGroupEntry): Undo {
    return this.writeById(type, entity.multicastGroupId, entity);
  }

  protected override remove(id: number): void {
    this.control.deleteMulticastGroup(id);
  }

  protected override install(id: number, entity: MulticastGroupEntry): MulticastGroupEntry {
    const { replicas, messages } = this.parseReplicas(id, entity.replicas);
    this.checkLimits(id, replicas.length);
    this.control.setMulticastGroup(id, replicas);
    return { multicastGroupId: id, replicas: messages, metadata: entity.metadata };
  }

  /** What the program's @platform_property annotations promise at most; 0 is no limit. */
  private checkLimits(id: number, count: number): void {
    const limits = this.limits;
    if (limits === undefined) return;
    const groups = this.stored.size + (this.stored.has(id) ? 0 : 1);
    let replicas = count;
    for (const [other, { replicas: list }] of this.stored) if (other !== id) replicas += list.length;
    const exceeded = (limit: number, value: number): boolean => limit > 0 && value > limit;
    if (exceeded(limits.multicastGroupTableSize, groups))
      throw new RpcError('RESOURCE_EXHAUSTED', `There are ${groups - 1} multicast groups, and no room for more`);
    if (
      exceeded(limits.multicastGroupTableMaxReplicasPerEntry, count) ||
      exceeded(limits.multicastGroupTableTotalReplicas, replicas)
    )
      throw new RpcError('RESOURCE_EXHAUSTED', `Multicast group ${id}: there is no room for ${count} replicas`);
  }
}

class CloneSessions extends ReplicaSets<CloneSessionEntry> {
  private readonly control: ReplicationControl;

  constructor(control: ReplicationControl, cpuPort: number) {
    super('Clone session', cpuPort);
    this.control = control;
  }

  write(type: UpdateType, entity: CloneSessionEntry): Undo {
    return this.writeById(type, entity.sessionId, entity);
  }

  protected override remove(id: number): void {
    this.control.deleteCloneSession(id);
  }

  protected override install(id: number, entity: CloneSessionEntry): CloneSessionEntry {
    const { replicas, messages } = this.parseReplicas(id, entity.replicas);
    if (entity.classOfService !== 0) throw this.invalid(id, `there is no class of service ${entity.classOfService}`);
    if (entity.packetLengthBytes < 0)
      throw this.invalid(id, `packets cannot be cut to ${entity.packetLengthBytes} bytes`);
    this.control.setCloneSession(id, replicas, entity.packetLengthBytes);
    return { ...entity, replicas: messages };
  }
}
