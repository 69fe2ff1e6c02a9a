/** What the directory knows. Object ids: tenant in the top 16 bits, serial in the other 48. */

export type AgentKindName = 'memory-node' | 'gpu-server';

export interface ObjectRecord {
  readonly objectId: bigint;
  readonly tenant: number;
  readonly name: string;
}

export interface VersionRecord {
  readonly objectId: bigint;
  readonly version: number;
  readonly sizeBytes: number;
  readonly chunkBytes: number;
  /** SHA-256 that proves size, chunk size and every chunk. */
  readonly root: Uint8Array;
  readonly createdAt: string;
}

/** What can travel to bring a server to a version. */
export interface PayloadRecord {
  readonly objectId: bigint;
  readonly version: number;
  /** 0: the full image. */
  readonly base: number;
  readonly sizeBytes: number;
  readonly manifestBytes: number;
  readonly manifestSha256: Uint8Array;
  /** Memory Nodes that have made it. */
  readonly memoryNodes: readonly string[];
}

/** What an agent proved by hash. */
export interface Claim {
  readonly objectId: bigint;
  readonly version: number;
  readonly sizeBytes: number;
  readonly root: Uint8Array;
}

export interface Holding extends Claim {
  readonly agent: string;
  readonly since: string;
}

export interface AgentRecord {
  readonly name: string;
  readonly kind: AgentKindName;
  /** Of the last attachment. */
  readonly incarnation: bigint;
}
