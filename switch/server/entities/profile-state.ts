import { canonicalBits } from '../../../wire/p4runtime/byte-strings.ts';
import type { Action, ActionProfileAction, ActionProfileGroupMember } from '../../../wire/p4runtime/messages.ts';
import type { ProfileInfo } from '../../../wire/p4runtime/p4info-objects.ts';
import type { ActionCall, EntryAction } from '../../control.ts';
import { parsePort } from '../ports.ts';
import { RpcError } from '../rpc-error.ts';
import type { Undo } from './entity-kind.ts';

/** What an entry takes of its table's action profile; absent for tables without one. */
export type ProfileUse =
  | { readonly kind: 'one shot'; readonly size: number }
  | { readonly kind: 'member'; readonly id: number }
  | { readonly kind: 'group'; readonly id: number };

export interface Member {
  readonly action: Action;
  readonly call: ActionCall;
}

export interface Group {
  readonly members: readonly ActionProfileGroupMember[];
  readonly watchPorts: readonly (number | undefined)[];
  readonly maxSize: number;
  /** In the profile's size semantics. */
  readonly size: number;
}

/** One action profile or selector of a running program: its members, its groups, and who uses them. */
export class ProfileState {
  readonly info: ProfileInfo;
  readonly where: string;
  private readonly cpuPort: number;
  readonly members = new Map<number, Member>();
  readonly groups = new Map<number, Group>();
  private readonly entriesOf = { member: new Map<number, number>(), group: new Map<number, number>() };
  private oneShots = 0;
  private oneShotSize = 0;

  constructor(info: ProfileInfo, cpuPort: number) {
    this.info = info;
    this.where = `Action profile ${info.name}`;
    this.cpuPort = cpuPort;
  }

  /** Throws INVALID_ARGUMENT: one style of programming per profile (section "One Shot Action Selector Programming"). */
  refuseMix(style: 'one shot' | 'members and groups'): void {
    const other = style === 'one shot' ? this.members.size + this.groups.size : this.oneShots;
    if (other > 0)
      throw new RpcError(
        'INVALID_ARGUMENT',
        `${this.where}: one-shot action sets do not mix with members and groups, and there are ${other} ${style === 'one shot' ? 'of those' : 'one-shot entries'}`,
      );
  }

  /** Throws what forbids that an entry uses it so, `before` being what it uses now. */
  checkUse(use: ProfileUse, before: ProfileUse | undefined): void {
    if (use.kind === 'member' && !this.members.has(use.id))
      throw new RpcError('NOT_FOUND', `${this.where} has no member ${use.id}`);
    if (use.kind === 'group' && !this.groups.has(use.id))
      throw new RpcError('NOT_FOUND', `${this.where} has no group ${use.id}`);
    if (use.kind !== 'one shot') return;
    this.refuseMix('one shot');
    this.checkRoom(use.size, before?.kind === 'one shot' ? before.size : 0);
  }

  /** Throws RESOURCE_EXHAUSTED when the profile's size would be passed by what replaces `before`. */
  checkRoom(after: number, before: number): void {
    if (this.info.size === 0 || after <= before) return;
    let total = this.oneShotSize - before + after;
    for (const { size } of this.groups.values()) total += size;
    if (total > this.info.size)
      throw new RpcError('RESOURCE_EXHAUSTED', `${this.where} has room for ${this.info.size}, not for ${total}`);
  }

  use(use: ProfileUse | undefined): void {
    this.count(use, 1);
  }

  release(use: ProfileUse | undefined): void {
    this.count(use, -1);
  }

  private count(use: ProfileUse | undefined, by: 1 | -1): void {
    if (use === undefined) return;
    if (use.kind === 'one shot') {
      this.oneShots += by;
      this.oneShotSize += by * use.size;
    } else {
      const users = this.entriesOf[use.kind];
      users.set(use.id, (users.get(use.id) ?? 0) + by);
    }
  }

  /** How many entries name it. */
  usersOf(kind: 'member' | 'group', id: number): number {
    return this.entriesOf[kind].get(id) ?? 0;
  }

  /** What entries do that use a member or a group. */
  resolve(use: { readonly kind: 'member' | 'group'; readonly id: number }): EntryAction {
    if (use.kind === 'member') return this.members.get(use.id)!.call;
    const { members, watchPorts } = this.groups.get(use.id)!;
    return {
      selector: members.map(({ memberId, weight }, i) => ({
        ...this.members.get(memberId)!.call,
        weight: Math.max(weight, 1),
        ...(watchPorts[i] === undefined ? {} : { watchPort: watchPorts[i] }),
      })),
    };
  }

  /** Of weights of a group or a one-shot set. */
  sizeOf(members: readonly { readonly weight: number }[]): number {
    return this.info.sizeSemantics === 'sum of members'
      ? members.length
      : members.reduce((sum, { weight }) => sum + Math.max(weight, 1), 0);
  }

  checkWeight(weight: number): void {
    const { weightsDisallowed, maxMemberWeight } = this.info;
    if (weightsDisallowed) {
      if (weight !== 0) throw new RpcError('INVALID_ARGUMENT', `${this.where}: weights are not allowed`);
      return;
    }
    if (weight < 1) throw new RpcError('INVALID_ARGUMENT', `${this.where}: a weight of ${weight} is below 1`);
    if (maxMemberWeight > 0 && weight > maxMemberWeight)
      throw new RpcError('INVALID_ARGUMENT', `${this.where}: a weight of ${weight} is above ${maxMemberWeight}`);
  }

  /** The device's port that a member watches, and the fields of the oneof as reads give them back. */
  watchOf(member: Pick<ActionProfileAction, 'watch' | 'watchPort'>): {
    port: number | undefined;
    message: Pick<ActionProfileAction, 'watch' | 'watchPort'>;
  } {
    const given = member.watchPort ?? member.watch;
    if (given === undefined || given === 0 || (typeof given !== 'number' && given.length === 0))
      return { port: undefined, message: {} };
    try {
      const port = parsePort(given, this.cpuPort);
      return {
        port,
        message: typeof given === 'number' ? { watch: given } : { watchPort: canonicalBits(given) },
      };
    } catch (error) {
      throw new RpcError(
        'INVALID_ARGUMENT',
        `${this.where}: watch port: ${error instanceof Error ? error.message : error}`,
      );
    }
  }

  /** Sets or deletes a member or group; the result puts back what was there. */
  replace<T>(map: Map<number, T>, id: number, value: T | undefined): Undo {
    const before = map.get(id);
    const set = (to: T | undefined): void => {
      if (to === undefined) map.delete(id);
      else map.set(id, to);
    };
    set(value);
    return () => set(before);
  }
}
