import type { Replica, ReplicationControl } from '../control.ts';
import type { PortStates } from './port-states.ts';

/** Copies of a packet as the packet path reads them. */
export interface ReplicationGroup {
  readonly ports: Uint16Array;
  readonly instances: Uint16Array;
  readonly count: number;
}

export interface CloneSession {
  readonly group: ReplicationGroup;
  /** Bytes of the clone that are sent at most; 0: all. */
  readonly truncateBytes: number;
}

interface Configured {
  readonly replicas: readonly Replica[];
  readonly truncateBytes: number;
  /** {@link PortStates.version} that `resolved` is for. */
  version: number;
  resolved: CloneSession;
}

/**
 * The packet replication engine: multicast groups and clone sessions to lists of (port, instance), copied in the order they were
 * given, each to the first of its ports that is up.
 */
export class ReplicationEngine implements ReplicationControl {
  private readonly ports: PortStates;
  private readonly groups = new Map<number, Configured>();
  private readonly sessions = new Map<number, Configured>();

  constructor(ports: PortStates) {
    this.ports = ports;
  }

  group(id: number): ReplicationGroup | undefined {
    const configured = this.groups.get(id);
    return configured === undefined ? undefined : this.current(configured).group;
  }

  session(id: number): CloneSession | undefined {
    const configured = this.sessions.get(id);
    return configured === undefined ? undefined : this.current(configured);
  }

  setMulticastGroup(id: number, replicas: readonly Replica[]): void {
    this.groups.set(id, this.configured(replicas, 0));
  }

  deleteMulticastGroup(id: number): void {
    this.groups.delete(id);
  }

  setCloneSession(id: number, replicas: readonly Replica[], truncateBytes: number): void {
    this.sessions.set(id, this.configured(replicas, truncateBytes));
  }

  deleteCloneSession(id: number): void {
    this.sessions.delete(id);
  }

  private configured(replicas: readonly Replica[], truncateBytes: number): Configured {
    const { version } = this.ports;
    return { replicas, truncateBytes, version, resolved: this.resolve(replicas, truncateBytes) };
  }

  private current(configured: Configured): CloneSession {
    if (configured.version !== this.ports.version) {
      configured.version = this.ports.version;
      configured.resolved = this.resolve(configured.replicas, configured.truncateBytes);
    }
    return configured.resolved;
  }

  private resolve(replicas: readonly Replica[], truncateBytes: number): CloneSession {
    const copies = replicas.flatMap(({ port, instance, backups = [] }) => {
      // A port without backups is copied to whatever its state, as if nobody watched it.
      if (backups.length === 0) return [{ port, instance }];
      const up = [{ port, instance }, ...backups].find((candidate) => this.ports.isUp(candidate.port));
      return up === undefined ? [] : [up];
    });
    return {
      group: {
        ports: Uint16Array.from(copies, (copy) => copy.port),
        instances: Uint16Array.from(copies, (copy) => copy.instance),
        count: copies.length,
      },
      truncateBytes,
    };
  }
}
