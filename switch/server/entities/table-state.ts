import type { FieldMatch, TableAction } from '../../../wire/p4runtime/messages.ts';
import type { P4InfoIndex } from '../../../wire/p4runtime/p4info-index.ts';
import type { ProfileInfo, TableInfo } from '../../../wire/p4runtime/p4info-objects.ts';
import type { EntryAction, EntryHandle, MatchValue, ProgramControl, TableControl } from '../../control.ts';
import type { FieldValues } from '../field-values.ts';
import { RpcError } from '../rpc-error.ts';
import { actionMessage, matchKey, matchMessage, objectById, objectsById, parseMatch } from '../validation.ts';
import { ProfileState, type ProfileUse } from './profile-state.ts';

/** What a controller attached to an entry, and gets back. */
export interface EntryNotes {
  readonly metadata: Uint8Array;
  readonly controllerMetadata: bigint;
  /** 0: never. */
  readonly idleTimeoutNs: bigint;
}

export const NO_NOTES: EntryNotes = { metadata: new Uint8Array(0), controllerMetadata: 0n, idleTimeoutNs: 0n };

/** What the protocol knows of an entry beside what the device has: little, since there may be very many. */
export interface StoredEntry {
  readonly key: string;
  readonly handle: EntryHandle;
  readonly priority: number;
  /** As it was written, in tables with an action profile; elsewhere the device's own action says it all. */
  readonly action: TableAction | undefined;
  readonly notes: EntryNotes;
  /** Declared `const` by the program: only direct resources change. */
  readonly isConst: boolean;
  readonly profileUse: ProfileUse | undefined;
  /** When it was written or its last idle notice was sent: the next is due one time-out after that, or after its last hit. */
  readonly idleSinceUs: number;
}

/** One table of a running program: the device's entries beside what only the protocol knows of them. */
export class TableState {
  readonly info: TableInfo;
  readonly control: TableControl;
  readonly entries = new Map<string, StoredEntry>();
  defaultNotes: EntryNotes = NO_NOTES;
  /** A controller has changed it. */
  defaultIsWritten = false;
  private readonly values: FieldValues;

  constructor(info: TableInfo, control: TableControl, values: FieldValues) {
    this.info = info;
    this.control = control;
    this.values = values;
    for (const handle of control.entries()) {
      const match = this.fromControl(handle.match);
      this.store({
        key: matchKey(match, handle.priority),
        handle,
        priority: handle.priority,
        action: undefined,
        notes: NO_NOTES,
        // Entries that the program begins with may be changed unless its table is const; bmv2's JSON cannot say so of a single entry.
        isConst: info.isConst,
        profileUse: undefined,
        idleSinceUs: 0,
      });
    }
  }

  store(entry: StoredEntry): void {
    this.entries.set(entry.key, entry);
  }

  /** Throws NOT_FOUND. */
  require(match: readonly MatchValue[], priority: number): StoredEntry {
    const entry = this.entries.get(matchKey(match, priority));
    if (entry === undefined)
      throw new RpcError('NOT_FOUND', `Table ${this.info.name} has no entry with this match and priority`);
    return entry;
  }

  /** An entry's key as a message: canonical, as reads give it back. */
  matchOf({ handle }: StoredEntry): FieldMatch[] {
    return matchMessage(this.values, this.info.fields, this.fromControl(handle.match));
  }

  /** An entry's action as a message. */
  entryActionOf({ action, handle }: StoredEntry): TableAction {
    return action ?? this.actionOf(handle.action);
  }

  /** An action of the device as a message. */
  actionOf(action: EntryAction): TableAction {
    if ('selector' in action)
      return {
        actionProfileActionSet: {
          actionProfileActions: action.selector.map((member) => ({
            action: this.callMessage(member),
            weight: member.weight,
          })),
          actionSelectionMode: 0,
          sizeSemantics: 0,
        },
      };
    return { action: this.callMessage(action) };
  }

  private callMessage(call: { readonly action: string; readonly params: readonly bigint[] }) {
    const ref = this.info.actions.find(({ action }) => action.name === call.action);
    if (ref === undefined)
      throw new RpcError('INTERNAL', `Table ${this.info.name} has an action ${call.action} that its P4Info lacks`);
    return actionMessage(this.values, ref.action, call);
  }

  /** p4c compiles optional keys to ternary ones; the device knows only those. */
  toControl(match: readonly MatchValue[]): MatchValue[] {
    return match.map((value, i) => {
      const key = this.control.keys[i]!;
      if (value.kind !== 'optional' || key.kind !== 'ternary') return value;
      if (value.value === undefined) return { kind: 'ternary', value: 0n, mask: 0n };
      return { kind: 'ternary', value: value.value, mask: (1n << BigInt(key.widthBits)) - 1n };
    });
  }

  private fromControl(match: readonly MatchValue[]): MatchValue[] {
    return match.map((value, i) => {
      if (value.kind !== 'ternary' || this.info.fields[i]!.kind !== 'optional') return value;
      return value.mask === 0n ? { kind: 'optional' } : { kind: 'optional', value: value.value };
    });
  }
}

/** All tables of a running program, and the action profiles that implement some of them. */
export class TableStates {
  readonly byId: ReadonlyMap<number, TableState>;
  readonly values: FieldValues;
  private readonly info: P4InfoIndex;
  private readonly profiles: ReadonlyMap<number, ProfileState>;

  constructor(info: P4InfoIndex, control: ProgramControl, values: FieldValues, cpuPort: number) {
    this.info = info;
    this.values = values;
    this.byId = new Map(
      [...info.tables].map((table) => [table.id, new TableState(table, control.tables.get(table.name)!, values)]),
    );
    this.profiles = new Map([...info.profiles].map((profile) => [profile.id, new ProfileState(profile, cpuPort)]));
  }

  /** Throws INVALID_ARGUMENT. */
  require(id: number): TableState {
    const table = this.byId.get(id);
    if (table === undefined)
      throw new RpcError('INVALID_ARGUMENT', `The P4Info has no table with id 0x${id.toString(16)}`);
    return table;
  }

  parseMatch(table: TableInfo, matches: readonly FieldMatch[]): MatchValue[] {
    return parseMatch(this.values, table, matches);
  }

  /** Throws INVALID_ARGUMENT. */
  profile(id: number): ProfileState {
    return this.stateOf(objectById(this.info.profiles, id));
  }

  /** 0 is all. Throws INVALID_ARGUMENT. */
  profilesById(id: number): ProfileState[] {
    return [...objectsById(this.info.profiles, id)].map((profile) => this.stateOf(profile));
  }

  profileOf(table: TableInfo): ProfileState | undefined {
    return table.profile && this.stateOf(table.profile);
  }

  private stateOf(profile: ProfileInfo): ProfileState {
    return this.profiles.get(profile.id)!;
  }

  /** One of the tables that the profile implements: all of them have the same actions. */
  tableOf(profile: ProfileState): TableInfo {
    const id = profile.info.tableIds[0];
    if (id === undefined) throw new RpcError('INVALID_ARGUMENT', `${profile.where} implements no table`);
    return this.require(id).info;
  }

  /** Brings the entries that use members or groups of the profile up to date. */
  refresh(profile: ProfileState): void {
    for (const id of profile.info.tableIds) {
      const table = this.require(id);
      for (const entry of table.entries.values()) {
        const use = entry.profileUse;
        if (use === undefined || use.kind === 'one shot') continue;
        table.store({ ...entry, handle: table.control.modify(entry.handle, profile.resolve(use)) });
      }
    }
  }
}
