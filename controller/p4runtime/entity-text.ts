import type { Action, Entity, FieldMatch, TableAction, TableEntry } from '../../wire/p4runtime/messages.ts';
import type { P4InfoIndex } from '../../wire/p4runtime/p4info-index.ts';
import type { NamedObject, TableInfo } from '../../wire/p4runtime/p4info-objects.ts';

/**
 * An entity in the program's own names, on one line, as errors and logs say it:
 * `table transfer, label=0x2a -> follow_tree(tenant=0x1, ...)`. What the P4Info does not know is shown by its id.
 */
export function describeEntity(index: P4InfoIndex | undefined, entity: Entity): string {
  const { tableEntry, packetReplicationEngineEntry: replication } = entity;
  if (tableEntry !== undefined) return describeTableEntry(index, tableEntry);
  if (replication?.multicastGroupEntry !== undefined)
    return `multicast group ${replication.multicastGroupEntry.multicastGroupId}`;
  if (replication?.cloneSessionEntry !== undefined) return `clone session ${replication.cloneSessionEntry.sessionId}`;
  const { actionProfileMember: member, actionProfileGroup: group } = entity;
  if (member !== undefined)
    return `action profile ${nameOf(index?.profiles.get(member.actionProfileId), member.actionProfileId)}, member ${member.memberId}`;
  if (group !== undefined)
    return `action profile ${nameOf(index?.profiles.get(group.actionProfileId), group.actionProfileId)}, group ${group.groupId}`;
  const { counterEntry: counter, meterEntry: meter, registerEntry: register } = entity;
  if (counter !== undefined)
    return `counter ${nameOf(index?.counters.get(counter.counterId), counter.counterId)}[${counter.index?.index ?? '*'}]`;
  if (meter !== undefined)
    return `meter ${nameOf(index?.meters.get(meter.meterId), meter.meterId)}[${meter.index?.index ?? '*'}]`;
  if (register !== undefined)
    return `register ${nameOf(index?.registers.get(register.registerId), register.registerId)}[${register.index?.index ?? '*'}]`;
  const kind = Object.entries(entity).find(([, value]) => value !== undefined)?.[0];
  return kind === undefined ? 'empty entity' : kind.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
}

function describeTableEntry(index: P4InfoIndex | undefined, entry: TableEntry): string {
  const table = index?.tables.get(entry.tableId);
  const parts = [`table ${nameOf(table, entry.tableId)}`];
  if (entry.isDefaultAction) parts.push('default action');
  parts.push(...entry.match.map((match) => describeMatch(table, match)));
  if (entry.priority !== 0) parts.push(`priority ${entry.priority}`);
  const action = entry.action === undefined ? '' : ` -> ${describeAction(index, entry.action)}`;
  return parts.join(', ') + action;
}

function describeMatch(table: TableInfo | undefined, match: FieldMatch): string {
  const name = table?.fieldById.get(match.fieldId)?.name ?? `field ${match.fieldId}`;
  const { exact, lpm, ternary, range, optional } = match;
  if (exact !== undefined) return `${name}=${hex(exact.value)}`;
  if (lpm !== undefined) return `${name}=${hex(lpm.value)}/${lpm.prefixLen}`;
  if (ternary !== undefined) return `${name}=${hex(ternary.value)}&&&${hex(ternary.mask)}`;
  if (range !== undefined) return `${name}=${hex(range.low)}..${hex(range.high)}`;
  return optional === undefined ? `${name}=?` : `${name}=${hex(optional.value)}`;
}

function describeAction(index: P4InfoIndex | undefined, action: TableAction): string {
  if (action.action !== undefined) return describeCall(index, action.action);
  if (action.actionProfileMemberId !== undefined) return `member ${action.actionProfileMemberId}`;
  if (action.actionProfileGroupId !== undefined) return `group ${action.actionProfileGroupId}`;
  const set = action.actionProfileActionSet?.actionProfileActions ?? [];
  return `one of ${set.map(({ action: call }) => (call === undefined ? '?' : describeCall(index, call))).join(' | ')}`;
}

function describeCall(index: P4InfoIndex | undefined, call: Action): string {
  const action = index?.actions.get(call.actionId);
  const params = call.params.map(
    ({ paramId, value }) => `${action?.paramById.get(paramId)?.name ?? paramId}=${hex(value)}`,
  );
  return `${nameOf(action, call.actionId)}(${params.join(', ')})`;
}

function nameOf(object: NamedObject | undefined, id: number): string {
  return object === undefined ? `0x${id.toString(16)}` : object.alias || object.name;
}

function hex(bytes: Uint8Array): string {
  const digits = [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('');
  return `0x${digits.replace(/^0+(?=.)/, '') || '0'}`;
}
