import { AgentSet } from './agent-set.ts';

/** Who holds what, in memory: per object and version the set of agents whose root hash is the version's. */
export class HolderIndex {
  private readonly ordinals = new Map<string, number>();
  private readonly names: string[] = [];
  private readonly sets = new Map<bigint, Map<number, AgentSet>>();

  add(agent: string, objectId: bigint, version: number): void {
    const versions = this.sets.get(objectId) ?? new Map<number, AgentSet>();
    this.sets.set(objectId, versions);
    const holders = versions.get(version) ?? new AgentSet();
    versions.set(version, holders);
    holders.add(this.ordinal(agent));
  }

  remove(agent: string, objectId: bigint, version: number): void {
    this.sets.get(objectId)?.get(version)?.delete(this.ordinal(agent));
  }

  has(agent: string, objectId: bigint, version: number): boolean {
    const ordinal = this.ordinals.get(agent);
    return ordinal !== undefined && (this.sets.get(objectId)?.get(version)?.has(ordinal) ?? false);
  }

  /** Names in the order in which the agents were first seen. */
  holders(objectId: bigint, version: number): string[] {
    return Array.from(this.sets.get(objectId)?.get(version) ?? [], (ordinal) => this.names[ordinal]!);
  }

  count(objectId: bigint, version: number): number {
    return this.sets.get(objectId)?.get(version)?.size ?? 0;
  }

  private ordinal(agent: string): number {
    let ordinal = this.ordinals.get(agent);
    if (ordinal === undefined) {
      ordinal = this.names.length;
      this.ordinals.set(agent, ordinal);
      this.names.push(agent);
    }
    return ordinal;
  }
}
