import { DdfError } from '../../base/errors.ts';
import type { Replica, ReplicationControl } from '../control.ts';

/** A multicast group as the packet path reads it. */
export interface ReplicationGroup {
  readonly ports: Uint16Array;
  readonly instances: Uint16Array;
  readonly count: number;
}

/** The packet replication engine: multicast groups to lists of (port, instance), copied in the order they were given. */
export class ReplicationEngine implements ReplicationControl {
  private readonly groups = new Map<number, ReplicationGroup>();

  group(id: number): ReplicationGroup | undefined {
    return this.groups.get(id);
  }

  setMulticastGroup(id: number, replicas: readonly Replica[]): void {
    this.groups.set(id, {
      ports: Uint16Array.from(replicas, (replica) => replica.port),
      instances: Uint16Array.from(replicas, (replica) => replica.instance),
      count: replicas.length,
    });
  }

  deleteMulticastGroup(id: number): void {
    this.groups.delete(id);
  }

  setCloneSession(): void {
    throw noClones();
  }

  deleteCloneSession(): void {
    throw noClones();
  }
}

function noClones(): DdfError {
  return new DdfError('UNSUPPORTED_PROGRAM', 'This switch does not clone packets, so it has no clone sessions', {
    remedy: 'Use a multicast group.',
  });
}
