import type { ActionCall, EntryAction, MatchValue, Replica } from '../../../switch/control.ts';
import { encodeBits } from '../../../wire/p4runtime/byte-strings.ts';
import type { Action, Entity, FieldMatch } from '../../../wire/p4runtime/messages.ts';
import type { P4InfoIndex } from '../../../wire/p4runtime/p4info-index.ts';
import type { MatchFieldInfo, TableInfo } from '../../../wire/p4runtime/p4info-objects.ts';
import { type MessageInput, messageCodec } from '../../../wire/proto.ts';
import type { TestEntry } from '../run.ts';

const entityCodec = messageCodec<Entity>('p4.v1.Entity');

/** With all defaults filled in, as the client wants it. */
export function complete(entity: MessageInput<Entity>): Entity {
  return entityCodec.decode(entityCodec.encode(entity));
}

export function entryEntity(index: P4InfoIndex, entry: TestEntry): Entity {
  const { table, match, priority, action } = entry;
  return complete({
    tableEntry: {
      tableId: table.id,
      match: table.fields.flatMap((field, place) => fieldMatch(field, match[place]!)),
      priority,
      action: tableAction(index, action),
    },
  });
}

export function defaultEntity(index: P4InfoIndex, table: TableInfo, action: ActionCall): Entity {
  return complete({ tableEntry: { tableId: table.id, isDefaultAction: true, action: tableAction(index, action) } });
}

export function groupEntity(id: number, replicas: readonly Replica[]): Entity {
  return complete({
    packetReplicationEngineEntry: {
      multicastGroupEntry: {
        multicastGroupId: id,
        replicas: replicas.map(replica),
      },
    },
  });
}

export function cloneEntity(sessionId: number, replicas: readonly Replica[]): Entity {
  return complete({
    packetReplicationEngineEntry: { cloneSessionEntry: { sessionId, replicas: replicas.map(replica) } },
  });
}

function replica({ port, instance }: Replica) {
  return { port: encodeBits(BigInt(port)), instance };
}

function tableAction(index: P4InfoIndex, action: EntryAction) {
  if (!('selector' in action)) return { action: call(index, action) };
  const actionProfileActions = action.selector.map((member) => ({
    action: call(index, member),
    weight: member.weight,
  }));
  return { actionProfileActionSet: { actionProfileActions } };
}

function call(index: P4InfoIndex, { action, params }: ActionCall): MessageInput<Action> {
  const info = index.actions.require(action);
  return {
    actionId: info.id,
    params: info.params.map(({ id }, place) => ({ paramId: id, value: encodeBits(params[place]!) })),
  };
}

/** A key that matches everything is left out. */
function fieldMatch({ id: fieldId, widthBits }: MatchFieldInfo, match: MatchValue): MessageInput<FieldMatch>[] {
  switch (match.kind) {
    case 'exact':
      return [{ fieldId, exact: { value: encodeBits(match.value) } }];
    case 'lpm':
      if (match.prefixLength === 0) return [];
      return [{ fieldId, lpm: { value: encodeBits(match.value), prefixLen: match.prefixLength } }];
    case 'ternary':
      if (match.mask === 0n) return [];
      return [{ fieldId, ternary: { value: encodeBits(match.value & match.mask), mask: encodeBits(match.mask) } }];
    case 'range':
      if (match.low === 0n && match.high === (1n << BigInt(widthBits)) - 1n) return [];
      return [{ fieldId, range: { low: encodeBits(match.low), high: encodeBits(match.high) } }];
    case 'optional':
      return match.value === undefined ? [] : [{ fieldId, optional: { value: encodeBits(match.value) } }];
  }
}
