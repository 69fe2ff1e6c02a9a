/**
 * Tables of the controller's database. A change of shape is a new step at the end of the list: step n brings a database of
 * version n to n + 1, and the version is SQLite's own `user_version`.
 *
 * 64-bit object ids are stored as 16 hex digits: they sort like the numbers and never pass through a double.
 */
export const MIGRATIONS: readonly string[] = [
  `
  -- Counters that never go back, whatever is deleted: object serials (one per tenant) and transfer labels.
  CREATE TABLE counters (
    name TEXT PRIMARY KEY,
    next INTEGER NOT NULL
  ) WITHOUT ROWID;

  CREATE TABLE objects (
    object_id TEXT PRIMARY KEY,
    tenant INTEGER NOT NULL,
    name TEXT NOT NULL,
    UNIQUE (tenant, name)
  ) WITHOUT ROWID;

  CREATE TABLE versions (
    object_id TEXT NOT NULL REFERENCES objects,
    version INTEGER NOT NULL,
    size_bytes INTEGER NOT NULL,
    chunk_bytes INTEGER NOT NULL,
    root BLOB NOT NULL,
    created_at TEXT NOT NULL,
    PRIMARY KEY (object_id, version)
  ) WITHOUT ROWID;

  -- base 0: the full image.
  CREATE TABLE payloads (
    object_id TEXT NOT NULL,
    version INTEGER NOT NULL,
    base INTEGER NOT NULL,
    size_bytes INTEGER NOT NULL,
    manifest_bytes INTEGER NOT NULL,
    manifest_sha256 BLOB NOT NULL,
    PRIMARY KEY (object_id, version, base),
    FOREIGN KEY (object_id, version) REFERENCES versions
  ) WITHOUT ROWID;

  CREATE TABLE payload_nodes (
    object_id TEXT NOT NULL,
    version INTEGER NOT NULL,
    base INTEGER NOT NULL,
    agent TEXT NOT NULL,
    PRIMARY KEY (object_id, version, base, agent),
    FOREIGN KEY (object_id, version, base) REFERENCES payloads
  ) WITHOUT ROWID;

  CREATE TABLE agents (
    name TEXT PRIMARY KEY,
    kind TEXT NOT NULL,
    incarnation TEXT NOT NULL
  ) WITHOUT ROWID;

  -- What agents proved, whether or not the root is the version's: a claim with another root is kept and does not count.
  CREATE TABLE holdings (
    agent TEXT NOT NULL REFERENCES agents,
    object_id TEXT NOT NULL,
    version INTEGER NOT NULL,
    size_bytes INTEGER NOT NULL,
    root BLOB NOT NULL,
    since TEXT NOT NULL,
    PRIMARY KEY (agent, object_id, version)
  ) WITHOUT ROWID;

  CREATE TABLE active_versions (
    agent TEXT NOT NULL REFERENCES agents,
    object_id TEXT NOT NULL,
    version INTEGER NOT NULL,
    PRIMARY KEY (agent, object_id)
  ) WITHOUT ROWID;

  CREATE TABLE rollouts (
    id TEXT PRIMARY KEY,
    started_at TEXT NOT NULL,
    ended INTEGER NOT NULL,
    record TEXT NOT NULL
  ) WITHOUT ROWID;

  CREATE TABLE rollout_events (
    rollout TEXT NOT NULL REFERENCES rollouts,
    id INTEGER NOT NULL,
    event TEXT NOT NULL,
    PRIMARY KEY (rollout, id)
  ) WITHOUT ROWID;
  `,
];
