import type { Entity, FieldMatch, UpdateType, ValueSetEntry } from '../../../wire/p4runtime/messages.ts';
import type { P4InfoIndex } from '../../../wire/p4runtime/p4info-index.ts';
import type { ValueSetInfo } from '../../../wire/p4runtime/p4info-objects.ts';
import type { MatchValue, ProgramControl } from '../../control.ts';
import type { FieldValues } from '../field-values.ts';
import { KeyFormat, keyText } from '../match-keys.ts';
import { RpcError } from '../rpc-error.ts';
import { objectById, objectsById, requireModify } from '../validation.ts';
import type { EntityKind, Undo } from './entity-kind.ts';

/** Members of the parser's value sets (P4Runtime 1.5, section "ValueSetEntry"): all of a set are written at once. */
export class ValueSets implements EntityKind<ValueSetEntry> {
  private readonly info: P4InfoIndex;
  private readonly control: ProgramControl['valueSets'];
  private readonly formats: ReadonlyMap<number, KeyFormat>;
  /** As they were written, by the id of their set. */
  private readonly members = new Map<number, readonly FieldMatch[][]>();

  constructor(info: P4InfoIndex, control: ProgramControl, values: FieldValues) {
    this.info = info;
    this.control = control.valueSets;
    this.formats = new Map(
      [...info.valueSets].map(({ id, name, fields }) => [id, new KeyFormat(values, fields, `Value set ${name}`)]),
    );
  }

  write(type: UpdateType, entity: ValueSetEntry): Undo {
    requireModify(type, 'value set');
    const set = objectById(this.info.valueSets, entity.valueSetId);
    const where = `Value set ${set.name}`;
    if (entity.members.length > set.size)
      throw new RpcError(
        'RESOURCE_EXHAUSTED',
        `${where} has room for ${set.size} members, not for ${entity.members.length}`,
      );
    const format = this.formats.get(set.id)!;
    const seen = new Set<string>();
    const members = entity.members.map(({ match }) => {
      const member = format.parse(match);
      const key = keyText(member);
      if (seen.has(key)) throw new RpcError('ALREADY_EXISTS', `${where}: two members are equal`);
      seen.add(key);
      return member;
    });
    return this.replace(set, members);
  }

  private replace(set: ValueSetInfo, members: readonly (readonly MatchValue[])[]): Undo {
    const control = this.control.get(set.name)!;
    const before = control.members();
    const messages = this.members.get(set.id);
    control.setMembers(members);
    this.members.set(
      set.id,
      members.map((member) => this.formats.get(set.id)!.message(member)),
    );
    return () => {
      control.setMembers(before);
      if (messages === undefined) this.members.delete(set.id);
      else this.members.set(set.id, messages);
    };
  }

  read(filter: ValueSetEntry): Entity[] {
    return [...objectsById(this.info.valueSets, filter.valueSetId)].map(({ id }) => ({
      valueSetEntry: { valueSetId: id, members: (this.members.get(id) ?? []).map((match) => ({ match: [...match] })) },
    }));
  }
}
