import { formatObjectId } from '../../objects/ids.ts';
import type { Store } from '../store/store.ts';
import type { AgentKindName, AgentRecord, Holding, ObjectRecord, PayloadRecord, VersionRecord } from './types.ts';

interface VersionKey {
  object_id: string;
  version: number;
}

interface VersionRow extends VersionKey {
  size_bytes: number;
  chunk_bytes: number;
  root: Buffer;
  created_at: string;
}

interface PayloadRow extends VersionKey {
  base: number;
  size_bytes: number;
  manifest_bytes: number;
  manifest_sha256: Buffer;
}

interface HoldingRow extends VersionKey {
  agent: string;
  size_bytes: number;
  root: Buffer;
  since: string;
}

/** The directory's rows: prepared statements, one transaction per fact. */
export class DirectoryTables {
  private readonly store: Store;
  private readonly statements;

  constructor(store: Store) {
    this.store = store;
    this.statements = {
      insertObject: store.prepare('INSERT INTO objects (object_id, tenant, name) VALUES (?, ?, ?)'),
      insertVersion: store.prepare(
        'INSERT INTO versions (object_id, version, size_bytes, chunk_bytes, root, created_at) VALUES (?, ?, ?, ?, ?, ?)',
      ),
      putPayload: store.prepare(
        `INSERT INTO payloads (object_id, version, base, size_bytes, manifest_bytes, manifest_sha256) VALUES (?, ?, ?, ?, ?, ?)
         ON CONFLICT (object_id, version, base) DO UPDATE SET
           size_bytes = excluded.size_bytes, manifest_bytes = excluded.manifest_bytes, manifest_sha256 = excluded.manifest_sha256`,
      ),
      dropPayloadNodes: store.prepare('DELETE FROM payload_nodes WHERE object_id = ? AND version = ? AND base = ?'),
      putPayloadNode: store.prepare('INSERT INTO payload_nodes (object_id, version, base, agent) VALUES (?, ?, ?, ?)'),
      putAgent: store.prepare(
        `INSERT INTO agents (name, kind, incarnation) VALUES (?, ?, ?)
         ON CONFLICT (name) DO UPDATE SET kind = excluded.kind, incarnation = excluded.incarnation`,
      ),
      dropHoldings: store.prepare('DELETE FROM holdings WHERE agent = ?'),
      putHolding: store.prepare(
        `INSERT INTO holdings (agent, object_id, version, size_bytes, root, since) VALUES (?, ?, ?, ?, ?, ?)
         ON CONFLICT (agent, object_id, version) DO UPDATE SET
           size_bytes = excluded.size_bytes, root = excluded.root, since = excluded.since`,
      ),
      deleteHolding: store.prepare('DELETE FROM holdings WHERE agent = ? AND object_id = ? AND version = ?'),
      dropActive: store.prepare('DELETE FROM active_versions WHERE agent = ?'),
      putActive: store.prepare(
        `INSERT INTO active_versions (agent, object_id, version) VALUES (?, ?, ?)
         ON CONFLICT (agent, object_id) DO UPDATE SET version = excluded.version`,
      ),
    };
  }

  transaction<T>(work: () => T): T {
    return this.store.transaction(work).immediate() as T;
  }

  insertObject(record: ObjectRecord): void {
    this.statements.insertObject.run(formatObjectId(record.objectId), record.tenant, record.name);
  }

  insertVersion(v: VersionRecord): void {
    this.statements.insertVersion.run(
      formatObjectId(v.objectId),
      v.version,
      v.sizeBytes,
      v.chunkBytes,
      Buffer.from(v.root),
      v.createdAt,
    );
  }

  putPayload(p: PayloadRecord): void {
    const objectId = formatObjectId(p.objectId);
    this.transaction(() => {
      this.statements.putPayload.run(
        objectId,
        p.version,
        p.base,
        p.sizeBytes,
        p.manifestBytes,
        Buffer.from(p.manifestSha256),
      );
      this.statements.dropPayloadNodes.run(objectId, p.version, p.base);
      for (const node of p.memoryNodes) this.statements.putPayloadNode.run(objectId, p.version, p.base, node);
    });
  }

  /** The agent, and in place of all that it held and had active before, what it proved now. */
  replaceAgent(
    agent: AgentRecord,
    holdings: readonly Holding[],
    active: readonly { readonly objectId: bigint; readonly version: number }[],
  ): void {
    this.transaction(() => {
      this.statements.putAgent.run(agent.name, agent.kind, agent.incarnation.toString());
      this.statements.dropHoldings.run(agent.name);
      for (const holding of holdings) this.putHolding(holding);
      this.statements.dropActive.run(agent.name);
      for (const a of active) this.putActive(agent.name, a.objectId, a.version);
    });
  }

  putHolding(h: Holding): void {
    this.statements.putHolding.run(
      h.agent,
      formatObjectId(h.objectId),
      h.version,
      h.sizeBytes,
      Buffer.from(h.root),
      h.since,
    );
  }

  deleteHolding(agent: string, objectId: bigint, version: number): void {
    this.statements.deleteHolding.run(agent, formatObjectId(objectId), version);
  }

  putActive(agent: string, objectId: bigint, version: number): void {
    this.statements.putActive.run(agent, formatObjectId(objectId), version);
  }

  objects(): ObjectRecord[] {
    return this.store
      .prepare<[], { object_id: string; tenant: number; name: string }>('SELECT * FROM objects')
      .all()
      .map((row) => ({ objectId: objectId(row), tenant: row.tenant, name: row.name }));
  }

  versions(): VersionRecord[] {
    return this.store
      .prepare<[], VersionRow>('SELECT * FROM versions')
      .all()
      .map((row) => ({
        objectId: objectId(row),
        version: row.version,
        sizeBytes: row.size_bytes,
        chunkBytes: row.chunk_bytes,
        root: Uint8Array.from(row.root),
        createdAt: row.created_at,
      }));
  }

  payloads(): PayloadRecord[] {
    const nodes = this.store.prepare<[string, number, number], string>(
      'SELECT agent FROM payload_nodes WHERE object_id = ? AND version = ? AND base = ? ORDER BY agent',
    );
    return this.store
      .prepare<[], PayloadRow>('SELECT * FROM payloads')
      .all()
      .map((row) => ({
        objectId: objectId(row),
        version: row.version,
        base: row.base,
        sizeBytes: row.size_bytes,
        manifestBytes: row.manifest_bytes,
        manifestSha256: Uint8Array.from(row.manifest_sha256),
        memoryNodes: nodes.pluck().all(row.object_id, row.version, row.base),
      }));
  }

  agents(): AgentRecord[] {
    return this.store
      .prepare<[], { name: string; kind: AgentKindName; incarnation: string }>('SELECT * FROM agents')
      .all()
      .map((row) => ({ name: row.name, kind: row.kind, incarnation: BigInt(row.incarnation) }));
  }

  holdings(): Holding[] {
    return this.store
      .prepare<[], HoldingRow>('SELECT * FROM holdings')
      .all()
      .map((row) => ({
        agent: row.agent,
        objectId: objectId(row),
        version: row.version,
        sizeBytes: row.size_bytes,
        root: Uint8Array.from(row.root),
        since: row.since,
      }));
  }

  active(): { agent: string; objectId: bigint; version: number }[] {
    return this.store
      .prepare<[], VersionKey & { agent: string }>('SELECT * FROM active_versions')
      .all()
      .map((row) => ({ agent: row.agent, objectId: objectId(row), version: row.version }));
  }
}

function objectId(row: { object_id: string }): bigint {
  return BigInt(`0x${row.object_id}`);
}
