import type { FieldMatch, TableAction } from '../../../wire/p4runtime/messages.ts';
import type { TableInfo } from '../../../wire/p4runtime/p4info-objects.ts';
import type { EntryAction, EntryHandle, MatchValue, TableControl } from '../../control.ts';
import { RpcError } from '../rpc-error.ts';
import { actionMessage, matchKey, matchMessage } from '../validation.ts';

/** What a controller attached to an entry, and gets back. */
export interface EntryNotes {
  readonly metadata: Uint8Array;
  readonly controllerMetadata: bigint;
}

export const NO_NOTES: EntryNotes = { metadata: new Uint8Array(0), controllerMetadata: 0n };

/** An entry as the protocol sees it: everything canonical, as reads give it back. */
export interface StoredEntry {
  readonly key: string;
  readonly handle: EntryHandle;
  readonly match: FieldMatch[];
  readonly priority: number;
  readonly action: TableAction;
  readonly notes: EntryNotes;
  /** Declared `const` by the program: only direct resources change. */
  readonly isConst: boolean;
  /** What the entry takes of its action profile's size. */
  readonly profileUse: number;
}

/** One table of a running program: the device's entries beside what only the protocol knows of them. */
export class TableState {
  readonly info: TableInfo;
  readonly control: TableControl;
  readonly entries = new Map<string, StoredEntry>();
  defaultNotes: EntryNotes = NO_NOTES;

  constructor(info: TableInfo, control: TableControl) {
    this.info = info;
    this.control = control;
    for (const handle of control.entries()) {
      const match = this.fromControl(handle.match);
      this.store({
        key: matchKey(match, handle.priority),
        handle,
        match: matchMessage(info, match),
        priority: handle.priority,
        action: this.actionOf(handle.action),
        notes: NO_NOTES,
        isConst: info.isConst || control.isConst(handle),
        profileUse: 0,
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

  /** An action of the program's own entries and defaults as a message. */
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
    return actionMessage(ref.action, call);
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

/** All tables of a running program, and what their entries take of the action profiles. */
export class TableStates {
  readonly byId: ReadonlyMap<number, TableState>;
  private readonly profileUse = new Map<number, number>();

  constructor(tables: Iterable<TableInfo>, controls: ReadonlyMap<string, TableControl>) {
    this.byId = new Map([...tables].map((info) => [info.id, new TableState(info, controls.get(info.name)!)]));
  }

  /** Throws INVALID_ARGUMENT. */
  require(id: number): TableState {
    const table = this.byId.get(id);
    if (table === undefined)
      throw new RpcError('INVALID_ARGUMENT', `The P4Info has no table with id 0x${id.toString(16)}`);
    return table;
  }

  /** Throws RESOURCE_EXHAUSTED when the profile's size would be passed by what replaces `before`. */
  checkProfile(table: TableInfo, before: number, after: number): void {
    const { profile } = table;
    if (profile === undefined || profile.size === 0 || after <= before) return;
    const total = (this.profileUse.get(profile.id) ?? 0) - before + after;
    if (total > profile.size)
      throw new RpcError(
        'RESOURCE_EXHAUSTED',
        `Action profile ${profile.name} has room for ${profile.size}, not for ${total}`,
      );
  }

  chargeProfile(table: TableInfo, before: number, after: number): void {
    const { profile } = table;
    if (profile !== undefined) this.profileUse.set(profile.id, (this.profileUse.get(profile.id) ?? 0) - before + after);
  }
}
