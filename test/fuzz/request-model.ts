import { canonicalBits } from '../../wire/p4runtime/byte-strings.ts';
import type { Entity, FieldMatch, Replica, TableAction, TableEntry, Update } from '../../wire/p4runtime/messages.ts';
import { UpdateType } from '../../wire/p4runtime/messages.ts';
import type { P4InfoIndex } from '../../wire/p4runtime/p4info-index.ts';
import { type MessageInput, messageCodec } from '../../wire/proto.ts';
import { ensure } from './target.ts';

const entityCodec = messageCodec<Entity>('p4.v1.Entity');

/** What a server should hold after what it accepted: entries of tables, groups and sessions, written down apart from the server's code. */
export class RequestModel {
  private readonly info: P4InfoIndex;
  private entries = new Map<string, string>();

  constructor(info: P4InfoIndex) {
    this.info = info;
  }

  /** What is read is true from now on; for after a new pipeline. */
  reset(read: readonly Entity[]): void {
    this.entries = this.contents(read);
  }

  /** An update that the server accepted. */
  apply({ type, entity }: Update): void {
    if (entity === undefined) return;
    const key = this.keyOf(entity);
    if (key === undefined) return;
    if (type === UpdateType.DELETE) {
      ensure(this.entries.delete(key), () => `the server deleted what it did not have: ${key}`);
      return;
    }
    const has = this.entries.has(key);
    ensure(
      has === (type === UpdateType.MODIFY),
      () => `the server ${has ? 'inserted twice' : 'modified what it did not have'}: ${key}`,
    );
    // Modifying an entry without an action leaves the action.
    if (type === UpdateType.INSERT || entity.tableEntry === undefined || entity.tableEntry.action !== undefined)
      this.entries.set(key, contentOf(entity));
  }

  /** Throws where a read of everything differs. */
  compare(read: readonly Entity[]): void {
    const found = this.contents(read);
    for (const [key, value] of this.entries)
      ensure(found.get(key) === value, () => `the server has ${found.get(key) ?? 'nothing'} for ${key}, not ${value}`);
    ensure(found.size === this.entries.size, () => `the server has ${found.size} entries, not ${this.entries.size}`);
  }

  private contents(read: readonly Entity[]): Map<string, string> {
    const found = new Map<string, string>();
    for (const entity of read) {
      const key = this.keyOf(entity);
      if (key === undefined) continue;
      ensure(!found.has(key), () => `the server has ${key} twice`);
      found.set(key, contentOf(entity));
    }
    return found;
  }

  /** `undefined`: of a kind that the model does not follow. */
  private keyOf(entity: Entity): string | undefined {
    const { tableEntry, packetReplicationEngineEntry: replication } = entity;
    if (tableEntry !== undefined) return tableEntry.isDefaultAction ? undefined : this.entryKey(tableEntry);
    if (replication?.multicastGroupEntry !== undefined)
      return `group ${replication.multicastGroupEntry.multicastGroupId}`;
    if (replication?.cloneSessionEntry !== undefined) return `session ${replication.cloneSessionEntry.sessionId}`;
    return undefined;
  }

  private entryKey({ tableId, priority, match }: TableEntry): string {
    const fields = [...match].sort((a, b) => a.fieldId - b.fieldId).map((field) => this.fieldText(tableId, field));
    return `table ${tableId} priority ${priority} ${fields.join()}`;
  }

  /** Numbers are the same at any length, texts (of translated types) are not. */
  private fieldText(tableId: number, match: FieldMatch): string {
    const isText = this.info.tables.get(tableId)?.fieldById.get(match.fieldId)?.widthBits === 0;
    return isText ? `${match.fieldId} ${Buffer.from(match.exact?.value ?? []).toString('hex')}` : plain(match);
  }
}

/** Reads of everything that the model follows. */
export const READ_ALL: readonly Entity[] = (
  [
    { tableEntry: {} },
    { packetReplicationEngineEntry: { multicastGroupEntry: {} } },
    { packetReplicationEngineEntry: { cloneSessionEntry: {} } },
  ] satisfies MessageInput<Entity>[]
).map((entity) => entityCodec.decode(entityCodec.encode(entity)));

function contentOf({ tableEntry, packetReplicationEngineEntry: replication }: Entity): string {
  if (tableEntry !== undefined) return actionText(tableEntry.action);
  const replicas = (replication?.multicastGroupEntry ?? replication?.cloneSessionEntry)?.replicas ?? [];
  return replicas.map(replicaText).sort().join();
}

function actionText(action: TableAction | undefined): string {
  const set = action?.actionProfileActionSet;
  if (set !== undefined)
    return `set ${set.actionProfileActions.map(({ action: member, weight }) => `${weight}x${callText(member)}`).join()}`;
  if (action?.action !== undefined) return callText(action.action);
  return plain(action);
}

function callText(call: TableAction['action']): string {
  return plain(call && { ...call, params: [...call.params].sort((a, b) => a.paramId - b.paramId) });
}

/** The port in one form: numbers and byte strings mean the same. */
function replicaText({ egressPort, port, instance }: Replica): string {
  return `${port === undefined ? (egressPort ?? 0) : BigInt(`0x0${Buffer.from(port).toString('hex')}`)}:${instance}`;
}

/** Byte strings in their shortest form. */
function plain(value: unknown): string {
  return JSON.stringify(value, (_, member: unknown) => {
    if (member instanceof Uint8Array) return Buffer.from(canonicalBits(member)).toString('hex');
    return typeof member === 'bigint' ? String(member) : member;
  });
}
