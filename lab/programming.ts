import { DdfError } from '../base/errors.ts';
import type { ActionCall, EntryAction, MatchValue, ProgramControl } from '../switch/control.ts';
import { decodeBits } from '../wire/p4runtime/byte-strings.ts';
import type { Action, Entity, FieldMatch, MeterEntry, TableEntry } from '../wire/p4runtime/messages.ts';
import type { P4InfoIndex } from '../wire/p4runtime/p4info-index.ts';
import type { MatchFieldInfo } from '../wire/p4runtime/p4info-objects.ts';

/**
 * Puts the controller's entities straight into a running program: what a P4Runtime server does with an INSERT, without the server. Only
 * for entities that the controller's own tables made, which are valid by construction; a program that lacks a name is an error.
 */
export function insertEntities(program: ProgramControl, index: P4InfoIndex, entities: readonly Entity[]): void {
  for (const entity of entities) {
    if (entity.tableEntry !== undefined) insertTableEntry(program, index, entity.tableEntry);
    else if (entity.meterEntry !== undefined) configureMeter(program, index, entity.meterEntry);
    else if (entity.packetReplicationEngineEntry?.multicastGroupEntry !== undefined) {
      const { multicastGroupId, replicas } = entity.packetReplicationEngineEntry.multicastGroupEntry;
      program.setMulticastGroup(
        multicastGroupId,
        replicas.map(({ port, instance }) => ({ port: Number(decodeBits(port ?? EMPTY, 32)), instance })),
      );
    } else throw unsupported(Object.keys(entity).join(', '));
  }
}

const EMPTY = new Uint8Array(0);

function insertTableEntry(program: ProgramControl, index: P4InfoIndex, entry: TableEntry): void {
  const info = index.tables.require(entry.tableId);
  const table = program.tables.get(info.name);
  if (table === undefined) throw unsupported(`table ${info.name}`);
  const action = actionOf(index, entry);
  if (entry.isDefaultAction) {
    if ('selector' in action) throw unsupported(`a default action of table ${info.name} by selector`);
    table.setDefault(action);
    return;
  }
  const match = info.fields.map((field) =>
    matchOf(
      field,
      entry.match.find(({ fieldId }) => fieldId === field.id),
    ),
  );
  table.insert(match, entry.priority, action);
}

function actionOf(index: P4InfoIndex, entry: TableEntry): EntryAction {
  const { action } = entry;
  if (action?.action !== undefined) return call(index, action.action);
  const set = action?.actionProfileActionSet?.actionProfileActions;
  if (set === undefined) throw unsupported('an entry without an action');
  return { selector: set.map((member) => ({ ...call(index, member.action!), weight: member.weight })) };
}

function call(index: P4InfoIndex, action: Action): ActionCall {
  const info = index.actions.require(action.actionId);
  const params = info.params.map((param) => {
    const given = action.params.find(({ paramId }) => paramId === param.id);
    return decodeBits(given!.value, param.widthBits);
  });
  return { action: info.name, params };
}

/** A key that an entry leaves out matches everything. */
function matchOf(field: MatchFieldInfo, match: FieldMatch | undefined): MatchValue {
  const value = (bytes: Uint8Array): bigint => decodeBits(bytes, field.widthBits);
  switch (field.kind) {
    case 'exact':
      return { kind: 'exact', value: value(match!.exact!.value) };
    case 'lpm':
      return match?.lpm === undefined
        ? { kind: 'lpm', value: 0n, prefixLength: 0 }
        : { kind: 'lpm', value: value(match.lpm.value), prefixLength: match.lpm.prefixLen };
    case 'ternary':
      return match?.ternary === undefined
        ? { kind: 'ternary', value: 0n, mask: 0n }
        : { kind: 'ternary', value: value(match.ternary.value), mask: value(match.ternary.mask) };
    case 'range':
      return match?.range === undefined
        ? { kind: 'range', low: 0n, high: (1n << BigInt(field.widthBits)) - 1n }
        : { kind: 'range', low: value(match.range.low), high: value(match.range.high) };
    case 'optional':
      return match?.optional === undefined
        ? { kind: 'optional' }
        : { kind: 'optional', value: value(match.optional.value) };
  }
}

function configureMeter(program: ProgramControl, index: P4InfoIndex, entry: MeterEntry): void {
  const info = index.meters.require(entry.meterId);
  const meter = program.meters.get(info.name);
  if (meter === undefined || entry.index === undefined) throw unsupported(`meter ${info.name}`);
  const { config } = entry;
  meter.configure(
    Number(entry.index.index),
    config && { cir: config.cir, cburst: config.cburst, pir: config.pir, pburst: config.pburst },
  );
}

function unsupported(what: string): DdfError {
  return new DdfError('PROGRAM_MISMATCH', `the program has no place for ${what}`, {
    where: 'p4/build',
    remedy: 'Build the P4 program again with `npm run p4:build`.',
  });
}
