import type { FieldMatch, TableAction } from '../../../wire/p4runtime/messages.ts';
import type { P4InfoIndex } from '../../../wire/p4runtime/p4info-index.ts';
import type { ProfileInfo, TableInfo } from '../../../wire/p4runtime/p4info-objects.ts';
import type { EntryAction, EntryHandle, MatchValue, ProgramControl, TableControl } from '../../control.ts';
import { CallFormats } from '../action-calls.ts';
import type { FieldValues } from '../field-values.ts';
import { KeyFormat } from '../match-keys.ts';
import { RpcError } from '../rpc-error.ts';
import { objectById, objectsById } from '../validation.ts';
import { ProfileState, type ProfileUse } from './profile-state.ts';

/** What a controller attached to an entry, and gets back. */
export interface EntryNotes {
  readonly metadata: Uint8Array;
  readonly controllerMetadata: bigint;
  /** 0: never. */
  readonly idleTimeoutNs: bigint;
}

export const NO_NOTES: EntryNotes = { metadata: new Uint8Array(0), controllerMetadata: 0n, idleTimeoutNs: 0n };

/** What only the protocol knows of an entry. It hangs onto the device's entry, and most entries share one. */
export interface EntryRecord {
  /** As it was written, in tables with an action profile; elsewhere the device's own action says it all. */
  readonly action: TableAction | undefined;
  readonly notes: EntryNotes;
  /** Declared `const` by the program: only direct resources change. */
  readonly isConst: boolean;
  readonly profileUse: ProfileUse | undefined;
  /** Of entries with an idle time-out: when it was written or its last idle notice was sent. The next is due one time-out after that, or after its last hit. */
  readonly idleSinceUs: number;
}

export const PLAIN_RECORD: EntryRecord = {
  action: undefined,
  notes: NO_NOTES,
  isConst: false,
  profileUse: undefined,
  idleSinceUs: 0,
};

const CONST_RECORD: EntryRecord = { ...PLAIN_RECORD, isConst: true };

export function recordOf(entry: EntryHandle): EntryRecord {
  // Every entry got one when it was inserted or its table was taken over.
  return entry.note as EntryRecord;
}

/** One table of a running program: the device's entries in the protocol's terms. */
export class TableState {
  readonly info: TableInfo;
  readonly control: TableControl;
  readonly keys: KeyFormat;
  readonly calls: CallFormats;
  /** That implements the table. */
  readonly profile: ProfileState | undefined;
  defaultNotes: EntryNotes = NO_NOTES;
  /** A controller has changed it. */
  defaultIsWritten = false;
  private readonly hasOptional: boolean;

  constructor(info: TableInfo, control: TableControl, values: FieldValues, profile: ProfileState | undefined) {
    this.info = info;
    this.control = control;
    this.profile = profile;
    this.keys = new KeyFormat(values, info.fields, `Table ${info.name}`);
    this.calls = new CallFormats(values, info);
    this.hasOptional = info.fields.some(({ kind }) => kind === 'optional');
    // Entries that the program begins with may be changed unless its table is const; bmv2's JSON cannot say so of a single entry.
    for (const entry of control.entries()) entry.note = info.isConst ? CONST_RECORD : PLAIN_RECORD;
  }

  /** Throws DdfError ALREADY_EXISTS or TABLE_FULL. */
  insert(match: readonly MatchValue[], priority: number, action: EntryAction): EntryHandle {
    return this.control.insert(this.toControl(match), priority, action);
  }

  find(match: readonly MatchValue[], priority: number): EntryHandle | undefined {
    return this.control.find(this.toControl(match), priority);
  }

  /** Throws NOT_FOUND. */
  require(match: readonly MatchValue[], priority: number): EntryHandle {
    const entry = this.find(match, priority);
    if (entry === undefined)
      throw new RpcError('NOT_FOUND', `Table ${this.info.name} has no entry with this match and priority`);
    return entry;
  }

  /** An entry's key. */
  keyOf({ match }: EntryHandle): readonly MatchValue[] {
    if (!this.hasOptional) return match;
    return match.map((value, i) => {
      if (value.kind !== 'ternary' || this.info.fields[i]!.kind !== 'optional') return value;
      return value.mask === 0n ? { kind: 'optional' } : { kind: 'optional', value: value.value };
    });
  }

  /** An entry's key as a message: canonical, as reads give it back. */
  matchOf(entry: EntryHandle): FieldMatch[] {
    return this.keys.message(this.keyOf(entry));
  }

  /** An entry's action as a message. */
  entryActionOf(entry: EntryHandle): TableAction {
    return recordOf(entry).action ?? this.actionOf(entry.action);
  }

  /** An action of the device as a message. */
  actionOf(action: EntryAction): TableAction {
    if ('selector' in action)
      return {
        actionProfileActionSet: {
          actionProfileActions: action.selector.map((member) => ({
            action: this.calls.message(member),
            weight: member.weight,
          })),
          actionSelectionMode: 0,
          sizeSemantics: 0,
        },
      };
    return { action: this.calls.message(action) };
  }

  /** p4c compiles optional keys to ternary ones; the device knows only those. */
  private toControl(match: readonly MatchValue[]): readonly MatchValue[] {
    if (!this.hasOptional) return match;
    return match.map((value, i) => {
      const key = this.control.keys[i]!;
      if (value.kind !== 'optional' || key.kind !== 'ternary') return value;
      if (value.value === undefined) return { kind: 'ternary', value: 0n, mask: 0n };
      return { kind: 'ternary', value: value.value, mask: (1n << BigInt(key.widthBits)) - 1n };
    });
  }
}

/** All tables of a running program, and the action profiles that implement some of them. */
export class TableStates {
  readonly byId: ReadonlyMap<number, TableState>;
  private readonly info: P4InfoIndex;
  private readonly profiles: ReadonlyMap<number, ProfileState>;

  constructor(info: P4InfoIndex, control: ProgramControl, values: FieldValues, cpuPort: number) {
    this.info = info;
    this.profiles = new Map([...info.profiles].map((profile) => [profile.id, new ProfileState(profile, cpuPort)]));
    this.byId = new Map(
      [...info.tables].map((table) => {
        const profile = table.profile && this.stateOf(table.profile);
        return [table.id, new TableState(table, control.tables.get(table.name)!, values, profile)];
      }),
    );
  }

  /** Throws INVALID_ARGUMENT. */
  require(id: number): TableState {
    const table = this.byId.get(id);
    if (table === undefined)
      throw new RpcError('INVALID_ARGUMENT', `The P4Info has no table with id 0x${id.toString(16)}`);
    return table;
  }

  /** Throws INVALID_ARGUMENT. */
  profile(id: number): ProfileState {
    return this.stateOf(objectById(this.info.profiles, id));
  }

  /** 0 is all. Throws INVALID_ARGUMENT. */
  profilesById(id: number): ProfileState[] {
    return [...objectsById(this.info.profiles, id)].map((profile) => this.stateOf(profile));
  }

  private stateOf(profile: ProfileInfo): ProfileState {
    return this.profiles.get(profile.id)!;
  }

  /** One of the tables that the profile implements: all of them have the same actions. */
  tableOf(profile: ProfileState): TableState {
    const id = profile.info.tableIds[0];
    if (id === undefined) throw new RpcError('INVALID_ARGUMENT', `${profile.where} implements no table`);
    return this.require(id);
  }

  /** How many entries {@link refresh} looks at. */
  entriesOf(profileId: number): number {
    const profile = this.info.profiles.get(profileId);
    return (profile?.tableIds ?? []).reduce((sum, id) => sum + (this.byId.get(id)?.control.count ?? 0), 1);
  }

  /** Brings the entries that use members or groups of the profile up to date. */
  refresh(profile: ProfileState): void {
    for (const id of profile.info.tableIds) {
      const table = this.require(id);
      for (const entry of table.control.entries()) {
        const use = recordOf(entry).profileUse;
        if (use !== undefined && use.kind !== 'one shot') table.control.modify(entry, profile.resolve(use));
      }
    }
  }
}
