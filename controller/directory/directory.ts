import { DdfError } from '../../base/errors.ts';
import { formatObjectId, makeObjectId } from '../../objects/ids.ts';
import { Counters } from '../store/counters.ts';
import type { Store } from '../store/store.ts';
import { HolderIndex } from './holder-index.ts';
import { DirectoryTables } from './tables.ts';
import type { AgentRecord, Claim, Holding, ObjectRecord, PayloadRecord, VersionRecord } from './types.ts';

/** The tenant of everybody until there are others. */
export const DEFAULT_TENANT = 1;

/** `recorded`: it counts; `unknown`: no such version (yet); `mismatch`: the root is not the version's. */
export type ClaimOutcome = 'recorded' | 'unknown' | 'mismatch';

interface ObjectEntry {
  readonly record: ObjectRecord;
  readonly versions: Map<number, VersionEntry>;
}

interface VersionEntry {
  record: VersionRecord;
  readonly payloads: Map<number, PayloadRecord>;
}

/**
 * Objects, versions, payloads and who holds them. Reads are answered from memory; a write has returned only when it is on disk.
 *
 * A holder counts only while the root it proved is the version's: claims with another root, or of versions that nobody published,
 * are kept but stay out of every answer.
 */
export class Directory {
  private readonly tables: DirectoryTables;
  private readonly counters: Counters;
  private readonly nowIso: () => string;
  private readonly objects = new Map<bigint, ObjectEntry>();
  private readonly byName = new Map<string, ObjectEntry>();
  private readonly agents = new Map<string, AgentRecord>();
  /** agent -> `object/version` -> what it proved. */
  private readonly claims = new Map<string, Map<string, Holding>>();
  private readonly active = new Map<string, Map<bigint, number>>();
  private readonly index = new HolderIndex();

  /** @param nowIso the present time, ISO 8601 */
  constructor(store: Store, nowIso: () => string) {
    this.tables = new DirectoryTables(store);
    this.counters = new Counters(store);
    this.nowIso = nowIso;
    this.load();
  }

  // ---- objects and versions

  /** Objects that have a version, by name: an id that was given for a publication that failed is nobody's to see. */
  listObjects(): { record: ObjectRecord; versions: number[] }[] {
    return [...this.objects.values()]
      .filter(({ versions }) => versions.size > 0)
      .map(({ record, versions }) => ({ record, versions: [...versions.keys()].sort((a, b) => a - b) }))
      .sort((a, b) => (a.record.name < b.record.name ? -1 : 1));
  }

  /** An object that has a version. */
  findObject(name: string, tenant: number = DEFAULT_TENANT): ObjectRecord | undefined {
    const entry = this.byName.get(nameKey(tenant, name));
    return entry === undefined || entry.versions.size === 0 ? undefined : entry.record;
  }

  objectById(objectId: bigint): ObjectRecord | undefined {
    return this.objects.get(objectId)?.record;
  }

  /** The id that a name has, or from now on will have: the tenant's next serial. The object is there with its first version. */
  ensureObject(name: string, tenant: number = DEFAULT_TENANT): ObjectRecord {
    const known = this.byName.get(nameKey(tenant, name))?.record;
    if (known !== undefined) return known;
    const record = this.tables.transaction(() => {
      const objectId = makeObjectId(tenant, BigInt(this.counters.takeSerial(tenant)));
      const made: ObjectRecord = { objectId, tenant, name };
      this.tables.insertObject(made);
      return made;
    });
    this.keepObject(record);
    return record;
  }

  /** Ascending by version. */
  listVersions(objectId: bigint): VersionRecord[] {
    const entry = this.objects.get(objectId);
    return entry === undefined
      ? []
      : [...entry.versions.values()].map((v) => v.record).sort((a, b) => a.version - b.version);
  }

  findVersion(objectId: bigint, version: number): VersionRecord | undefined {
    return this.objects.get(objectId)?.versions.get(version)?.record;
  }

  /**
   * Records a version that a Memory Node has stored and hashed. Versions are immutable: the same again is no change.
   * @throws DdfError ALREADY_EXISTS if the version is known with other bytes; NOT_FOUND if the object is unknown
   */
  recordVersion(claim: Claim, chunkBytes: number): VersionRecord {
    const entry = this.requireObject(claim.objectId);
    const known = entry.versions.get(claim.version)?.record;
    if (known !== undefined) {
      if (sameBytes(known.root, claim.root)) return known;
      throw new DdfError('ALREADY_EXISTS', `version ${claim.version} of ${entry.record.name} exists with other bytes`, {
        where: `${entry.record.name}@${claim.version}`,
        remedy: 'A version never changes: publish these bytes under a new version number.',
      });
    }
    const record: VersionRecord = {
      objectId: claim.objectId,
      version: claim.version,
      sizeBytes: claim.sizeBytes,
      chunkBytes,
      root: Uint8Array.from(claim.root),
      createdAt: this.nowIso(),
    };
    this.tables.insertVersion(record);
    this.keepVersion(record);
    // Agents may have proved it before anybody published it.
    for (const holdings of this.claims.values()) {
      const held = holdings.get(claimKey(claim.objectId, claim.version));
      if (held !== undefined) this.count(held);
    }
    return record;
  }

  // ---- payloads

  listPayloads(objectId: bigint, version: number): PayloadRecord[] {
    const entry = this.objects.get(objectId)?.versions.get(version);
    return entry === undefined ? [] : [...entry.payloads.values()].sort((a, b) => a.base - b.base);
  }

  findPayload(objectId: bigint, version: number, base: number): PayloadRecord | undefined {
    return this.objects.get(objectId)?.versions.get(version)?.payloads.get(base);
  }

  /**
   * Records that a Memory Node has made a payload. Nodes whose payload differs (another release's codec) do not serve the
   * same transfer: the newest one replaces the payload and its list of nodes.
   */
  recordPayload(payload: Omit<PayloadRecord, 'memoryNodes'>, memoryNode: string): PayloadRecord {
    const version = this.requireObject(payload.objectId).versions.get(payload.version);
    if (version === undefined)
      throw new DdfError('NOT_FOUND', `version ${payload.version} is not in the directory`, { where: 'recordPayload' });
    const known = version.payloads.get(payload.base);
    const same = known !== undefined && sameBytes(known.manifestSha256, payload.manifestSha256);
    const memoryNodes = same ? [...new Set([...known.memoryNodes, memoryNode])] : [memoryNode];
    const record: PayloadRecord = {
      ...payload,
      manifestSha256: Uint8Array.from(payload.manifestSha256),
      memoryNodes,
    };
    this.tables.putPayload(record);
    version.payloads.set(payload.base, record);
    return record;
  }

  // ---- agents

  findAgent(name: string): AgentRecord | undefined {
    return this.agents.get(name);
  }

  /**
   * An agent has attached: from now on it holds exactly what its hello proves.
   * @throws DdfError CONFLICT for an incarnation older than the last one seen
   */
  attach(
    agent: AgentRecord,
    held: readonly Claim[],
    active: readonly { readonly objectId: bigint; readonly version: number }[],
  ): Map<Claim, ClaimOutcome> {
    const known = this.agents.get(agent.name);
    if (known !== undefined && known.incarnation > agent.incarnation)
      throw new DdfError(
        'CONFLICT',
        `incarnation ${agent.incarnation} of ${agent.name} is older than ${known.incarnation}`,
        {
          where: agent.name,
          remedy: 'A newer process of this agent has attached: stop the old one, and check the clock of its host.',
        },
      );
    const before = this.claims.get(agent.name);
    const since = this.nowIso();
    const holdings = held.map((claim): Holding => {
      const old = before?.get(claimKey(claim.objectId, claim.version));
      const unchanged = old !== undefined && sameBytes(old.root, claim.root);
      return { ...ownClaim(claim), agent: agent.name, since: unchanged ? old.since : since };
    });
    this.tables.replaceAgent(agent, holdings, active);
    for (const holding of before?.values() ?? []) this.index.remove(agent.name, holding.objectId, holding.version);
    this.agents.set(agent.name, agent);
    this.claims.set(agent.name, new Map());
    this.active.set(agent.name, new Map(active.map((a) => [a.objectId, a.version])));
    return new Map(holdings.map((holding, i) => [held[i]!, this.keepClaim(holding)]));
  }

  /** An attached agent has proved one more version. */
  recordHeld(agent: string, claim: Claim): ClaimOutcome {
    this.requireAgent(agent);
    const holding: Holding = { ...ownClaim(claim), agent, since: this.nowIso() };
    const known = this.claims.get(agent)?.get(claimKey(claim.objectId, claim.version));
    if (known !== undefined && sameBytes(known.root, claim.root) && known.sizeBytes === claim.sizeBytes)
      return this.outcome(known);
    this.tables.putHolding(holding);
    return this.keepClaim(holding);
  }

  recordDropped(agent: string, objectId: bigint, version: number): void {
    this.tables.deleteHolding(agent, objectId, version);
    this.claims.get(agent)?.delete(claimKey(objectId, version));
    this.index.remove(agent, objectId, version);
  }

  /** The version that consumers on the agent's server read from now on. */
  recordActive(agent: string, objectId: bigint, version: number): void {
    this.requireAgent(agent);
    this.tables.putActive(agent, objectId, version);
    this.active.get(agent)!.set(objectId, version);
  }

  activeVersions(agent: string): { objectId: bigint; version: number }[] {
    return [...(this.active.get(agent) ?? [])].map(([objectId, version]) => ({ objectId, version }));
  }

  // ---- who holds what

  /** Whether the agent has proved the version with the right root. */
  holds(agent: string, objectId: bigint, version: number): boolean {
    return this.index.has(agent, objectId, version);
  }

  holders(objectId: bigint, version: number): Holding[] {
    const key = claimKey(objectId, version);
    return this.index.holders(objectId, version).map((agent) => this.claims.get(agent)!.get(key)!);
  }

  holderCount(objectId: bigint, version: number): number {
    return this.index.count(objectId, version);
  }

  /** Everything that the agent holds and that counts. */
  heldBy(agent: string): Holding[] {
    return [...(this.claims.get(agent)?.values() ?? [])].filter((h) => this.outcome(h) === 'recorded');
  }

  // ---- inside

  private load(): void {
    for (const record of this.tables.objects()) this.keepObject(record);
    for (const record of this.tables.versions()) this.keepVersion(record);
    for (const record of this.tables.payloads())
      this.objects.get(record.objectId)?.versions.get(record.version)?.payloads.set(record.base, record);
    for (const agent of this.tables.agents()) {
      this.agents.set(agent.name, agent);
      this.claims.set(agent.name, new Map());
      this.active.set(agent.name, new Map());
    }
    for (const holding of this.tables.holdings()) this.keepClaim(holding);
    for (const { agent, objectId, version } of this.tables.active()) this.active.get(agent)?.set(objectId, version);
  }

  private keepObject(record: ObjectRecord): void {
    const entry: ObjectEntry = { record, versions: new Map() };
    this.objects.set(record.objectId, entry);
    this.byName.set(nameKey(record.tenant, record.name), entry);
  }

  private keepVersion(record: VersionRecord): void {
    this.objects.get(record.objectId)!.versions.set(record.version, { record, payloads: new Map() });
  }

  private keepClaim(holding: Holding): ClaimOutcome {
    this.claims.get(holding.agent)!.set(claimKey(holding.objectId, holding.version), holding);
    return this.count(holding);
  }

  private count(holding: Holding): ClaimOutcome {
    const outcome = this.outcome(holding);
    if (outcome === 'recorded') this.index.add(holding.agent, holding.objectId, holding.version);
    else this.index.remove(holding.agent, holding.objectId, holding.version);
    return outcome;
  }

  private outcome(claim: Claim): ClaimOutcome {
    const version = this.findVersion(claim.objectId, claim.version);
    if (version === undefined) return 'unknown';
    return sameBytes(version.root, claim.root) && version.sizeBytes === claim.sizeBytes ? 'recorded' : 'mismatch';
  }

  private requireObject(objectId: bigint): ObjectEntry {
    const entry = this.objects.get(objectId);
    if (entry === undefined)
      throw new DdfError('NOT_FOUND', `object ${formatObjectId(objectId)} is not in the directory`, {
        where: 'directory',
      });
    return entry;
  }

  private requireAgent(name: string): void {
    if (!this.agents.has(name))
      throw new DdfError('NOT_FOUND', `agent ${name} has never attached`, { where: 'directory' });
  }
}

function nameKey(tenant: number, name: string): string {
  return `${tenant}/${name}`;
}

function claimKey(objectId: bigint, version: number): string {
  return `${objectId}/${version}`;
}

/** A copy that owns its bytes: the caller's may lie in a receive buffer. */
function ownClaim(claim: Claim): Claim {
  return {
    objectId: claim.objectId,
    version: claim.version,
    sizeBytes: claim.sizeBytes,
    root: Uint8Array.from(claim.root),
  };
}

function sameBytes(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, i) => byte === b[i]);
}
