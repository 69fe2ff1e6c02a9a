import { canonicalBits } from '../../wire/p4runtime/byte-strings.ts';
import type {
  Action,
  Entity,
  FieldMatch,
  MeterConfig,
  Replica,
  TableAction,
  TableEntry,
} from '../../wire/p4runtime/messages.ts';

/**
 * Two texts for an entity: its key says which one it is, its value what it does. Equal texts mean equal entities, however a server pads byte strings or
 * orders fields, replicas and members. Counters, which change by themselves, are in neither.
 */
export interface CanonicalEntity {
  readonly key: string;
  readonly value: string;
  readonly kind: EntityKind;
}

/** What the reconciler manages. The order is that of dependencies: later kinds refer to earlier ones. */
export const ENTITY_KINDS = ['multicast group', 'clone session', 'table entry', 'default action', 'meter'] as const;
export type EntityKind = (typeof ENTITY_KINDS)[number];

/** Kinds that always exist: they are changed and set back, not inserted and deleted. */
export function isPermanent(kind: EntityKind): boolean {
  return kind === 'default action' || kind === 'meter';
}

/** @returns undefined for kinds that the reconciler does not manage */
export function canonicalEntity(entity: Entity): CanonicalEntity | undefined {
  const { tableEntry, meterEntry, packetReplicationEngineEntry: replication } = entity;
  if (tableEntry !== undefined) {
    const kind = tableEntry.isDefaultAction ? 'default action' : 'table entry';
    const key = `${kind} ${tableEntry.tableId} ${matchText(tableEntry.match)} ${tableEntry.priority}`;
    return { kind, key, value: tableEntryValue(tableEntry) };
  }
  const group = replication?.multicastGroupEntry;
  if (group !== undefined) {
    const value = `${replicasText(group.replicas)} ${hex(group.metadata)}`;
    return { kind: 'multicast group', key: `multicast group ${group.multicastGroupId}`, value };
  }
  const session = replication?.cloneSessionEntry;
  if (session !== undefined) {
    const value = `${replicasText(session.replicas)} ${session.classOfService} ${session.packetLengthBytes}`;
    return { kind: 'clone session', key: `clone session ${session.sessionId}`, value };
  }
  if (meterEntry?.index !== undefined) {
    const key = `meter ${meterEntry.meterId} ${meterEntry.index.index}`;
    return { kind: 'meter', key, value: meterText(meterEntry.config) };
  }
  return undefined;
}

function tableEntryValue(entry: TableEntry): string {
  return [
    entry.action === undefined ? 'none' : tableActionText(entry.action),
    entry.idleTimeoutNs,
    entry.controllerMetadata,
    hex(entry.metadata),
  ].join(' ');
}

function matchText(match: readonly FieldMatch[]): string {
  return match.map(fieldText).sort().join(',');
}

function fieldText({ fieldId, exact, lpm, ternary, range, optional }: FieldMatch): string {
  if (exact !== undefined) return `${fieldId}=${hex(exact.value)}`;
  if (lpm !== undefined) return `${fieldId}=${hex(lpm.value)}/${lpm.prefixLen}`;
  if (ternary !== undefined) return `${fieldId}=${hex(ternary.value)}&${hex(ternary.mask)}`;
  if (range !== undefined) return `${fieldId}=${hex(range.low)}..${hex(range.high)}`;
  return `${fieldId}=?${optional === undefined ? '' : hex(optional.value)}`;
}

function tableActionText(action: TableAction): string {
  if (action.action !== undefined) return actionText(action.action);
  if (action.actionProfileMemberId !== undefined) return `member ${action.actionProfileMemberId}`;
  if (action.actionProfileGroupId !== undefined) return `group ${action.actionProfileGroupId}`;
  const members = action.actionProfileActionSet?.actionProfileActions ?? [];
  return members
    .map((member) => `${member.action === undefined ? '' : actionText(member.action)}*${member.weight}`)
    .sort()
    .join('|');
}

function actionText({ actionId, params }: Action): string {
  const values = params.map(({ paramId, value }) => `${paramId}=${hex(value)}`).sort();
  return `${actionId}(${values.join(',')})`;
}

function replicasText(replicas: readonly Replica[]): string {
  return replicas
    .map(({ port, egressPort, instance, backupReplicas }) => {
      const backups = backupReplicas.map((backup) => `/${hex(backup.port)}.${backup.instance}`).join('');
      return `${port === undefined ? (egressPort ?? 0).toString(16).padStart(2, '0') : hex(port)}.${instance}${backups}`;
    })
    .sort()
    .join(',');
}

function meterText(config: MeterConfig | undefined): string {
  if (config === undefined) return 'green';
  return `${config.cir}/${config.cburst} ${config.pir}/${config.pburst}`;
}

const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'));
/** Longer strings, which metadata may have, are converted as a whole. */
const SHORT_BYTES = 32;

function hex(bytes: Uint8Array): string {
  const canonical = canonicalBits(bytes);
  if (canonical.length > SHORT_BYTES)
    return Buffer.from(canonical.buffer, canonical.byteOffset, canonical.length).toString('hex');
  let text = '';
  for (const byte of canonical) text += HEX[byte];
  return text;
}
