import {
  type ActionProfileGroup,
  type ActionProfileMember,
  type Entity,
  UpdateType,
} from '../../../wire/p4runtime/messages.ts';
import { RpcError } from '../rpc-error.ts';
import type { EntityKind, Undo } from './entity-kind.ts';
import type { Group, Member, ProfileState } from './profile-state.ts';
import type { TableStates } from './table-state.ts';

/** Throws what the update type makes of an id that is there or not. */
function checkExistence(type: UpdateType, exists: boolean, what: string): void {
  if (type === UpdateType.INSERT && exists) throw new RpcError('ALREADY_EXISTS', `${what} exists already`);
  if (type !== UpdateType.INSERT && !exists) throw new RpcError('NOT_FOUND', `${what} does not exist`);
}

/** Members of action profiles (P4Runtime 1.5, section "Action Profile Member Programming"). */
export class ProfileMembers implements EntityKind<ActionProfileMember> {
  private readonly tables: TableStates;

  constructor(tables: TableStates) {
    this.tables = tables;
  }

  write(type: UpdateType, entity: ActionProfileMember): Undo {
    const profile = this.tables.profile(entity.actionProfileId);
    const { memberId } = entity;
    const what = `${profile.where}: member ${memberId}`;
    if (memberId === 0) throw new RpcError('INVALID_ARGUMENT', `${profile.where}: member ids begin at 1`);
    profile.refuseMix('members and groups');
    checkExistence(type, profile.members.has(memberId), what);
    if (type === UpdateType.DELETE) {
      refuseUsed(profile, 'member', memberId, what);
      for (const [id, { members }] of profile.groups)
        if (members.some((member) => member.memberId === memberId))
          throw new RpcError('FAILED_PRECONDITION', `${what} is in group ${id}`);
      return profile.replace(profile.members, memberId, undefined);
    }
    const member = this.parse(profile, entity);
    const { size } = profile.info;
    if (type === UpdateType.INSERT && size > 0 && profile.members.size >= size)
      throw new RpcError('RESOURCE_EXHAUSTED', `${profile.where} has room for ${size} members`);
    const undo = profile.replace(profile.members, memberId, member);
    this.tables.refresh(profile);
    return () => {
      undo();
      this.tables.refresh(profile);
    };
  }

  private parse(profile: ProfileState, entity: ActionProfileMember): Member {
    if (entity.action === undefined)
      throw new RpcError('INVALID_ARGUMENT', `${profile.where}: a member needs an action`);
    const { calls } = this.tables.tableOf(profile);
    const call = calls.parse(entity.action, 'entry');
    return { call, action: calls.message(call) };
  }

  workOf({ actionProfileId }: ActionProfileMember): number {
    return this.tables.entriesOf(actionProfileId);
  }

  read(filter: ActionProfileMember): Entity[] {
    return this.tables.profilesById(filter.actionProfileId).flatMap((profile) =>
      chosen(profile.members, filter.memberId).map(([memberId, { action }]) => ({
        actionProfileMember: { actionProfileId: profile.info.id, memberId, action },
      })),
    );
  }
}

/** Groups of action selectors (P4Runtime 1.5, section "Action Profile Group Programming"). */
export class ProfileGroups implements EntityKind<ActionProfileGroup> {
  private readonly tables: TableStates;

  constructor(tables: TableStates) {
    this.tables = tables;
  }

  write(type: UpdateType, entity: ActionProfileGroup): Undo {
    const profile = this.tables.profile(entity.actionProfileId);
    const { groupId } = entity;
    const what = `${profile.where}: group ${groupId}`;
    if (!profile.info.withSelector)
      throw new RpcError('INVALID_ARGUMENT', `${profile.where} is no selector, it has no groups`);
    if (groupId === 0) throw new RpcError('INVALID_ARGUMENT', `${profile.where}: group ids begin at 1`);
    profile.refuseMix('members and groups');
    const before = profile.groups.get(groupId);
    checkExistence(type, before !== undefined, what);
    if (type === UpdateType.DELETE) {
      refuseUsed(profile, 'group', groupId, what);
      return profile.replace(profile.groups, groupId, undefined);
    }
    const group = parseGroup(profile, entity, before, what);
    const undo = profile.replace(profile.groups, groupId, group);
    this.tables.refresh(profile);
    return () => {
      undo();
      this.tables.refresh(profile);
    };
  }

  workOf({ actionProfileId }: ActionProfileGroup): number {
    return this.tables.entriesOf(actionProfileId);
  }

  read(filter: ActionProfileGroup): Entity[] {
    return this.tables.profilesById(filter.actionProfileId).flatMap((profile) =>
      chosen(profile.groups, filter.groupId).map(([groupId, { members, maxSize }]) => ({
        actionProfileGroup: { actionProfileId: profile.info.id, groupId, members: [...members], maxSize },
      })),
    );
  }
}

function refuseUsed(profile: ProfileState, kind: 'member' | 'group', id: number, what: string): void {
  const users = profile.usersOf(kind, id);
  if (users > 0) throw new RpcError('FAILED_PRECONDITION', `${what} is used by ${users} entries`);
}

function parseGroup(profile: ProfileState, entity: ActionProfileGroup, before: Group | undefined, what: string): Group {
  const { maxGroupSize } = profile.info;
  const { maxSize } = entity;
  const invalid = (problem: string): RpcError => new RpcError('INVALID_ARGUMENT', `${what}: ${problem}`);
  if (before !== undefined && before.maxSize !== maxSize)
    throw invalid(`max_size was ${before.maxSize} when it was inserted and cannot become ${maxSize}`);
  if (maxSize < 0 || (maxGroupSize > 0 && (maxSize === 0 || maxSize > maxGroupSize)))
    throw invalid(`a max_size of ${maxSize} is not in ${maxGroupSize > 0 ? `1..${maxGroupSize}` : '0 and up'}`);
  const seen = new Set<number>();
  const watchPorts: (number | undefined)[] = [];
  const members = entity.members.map((member) => {
    const { memberId, weight } = member;
    if (!profile.members.has(memberId)) throw new RpcError('NOT_FOUND', `${what}: there is no member ${memberId}`);
    if (seen.has(memberId)) throw invalid(`member ${memberId} occurs twice; give it a higher weight instead`);
    seen.add(memberId);
    profile.checkWeight(weight);
    const { port, message } = profile.watchOf(member);
    watchPorts.push(port);
    return { memberId, weight, ...message };
  });
  const size = profile.sizeOf(members);
  if (maxSize > 0 && size > maxSize) throw invalid(`a size of ${size} is above its max_size ${maxSize}`);
  profile.checkRoom(size, before?.size ?? 0);
  return { members, watchPorts, maxSize, size };
}

/** 0 is all. */
function chosen<T>(map: ReadonlyMap<number, T>, id: number): [number, T][] {
  if (id === 0) return [...map];
  const one = map.get(id);
  return one === undefined ? [] : [[id, one]];
}
