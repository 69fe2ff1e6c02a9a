import { expect } from 'vitest';
import type { ActionProfileActionSet, ActionProfileGroup } from '../../../wire/p4runtime/messages.ts';
import type { MessageInput } from '../../../wire/proto.ts';
import type { TestStream } from '../../switch/server/client.ts';
import type { Checks } from '../rows.ts';
import {
  bytes,
  call,
  type EntityInput,
  type EntryInput,
  entity,
  exact,
  FORWARD,
  GROUP_SELECTOR,
  GROUPS,
  MEMBER_PROFILE,
  MEMBERS,
  ONE_SHOT,
  ONE_SHOT_SELECTOR,
  oneShot,
  probe,
  route,
} from './program.ts';
import {
  ALREADY_EXISTS,
  FAILED_PRECONDITION,
  INVALID_ARGUMENT,
  NOT_FOUND,
  OK,
  RESOURCE_EXHAUSTED,
  type ServerContext,
  UNIMPLEMENTED,
} from './target.ts';

const member = (memberId: number, tag: number, actionProfileId = GROUP_SELECTOR): EntityInput => ({
  actionProfileMember: { actionProfileId, memberId, action: call(FORWARD, tag, tag) },
});
const weighted = (memberId: number, weight = 1) => ({ memberId, weight });
const group = (
  groupId: number,
  members: MessageInput<ActionProfileGroup>['members'],
  more: MessageInput<ActionProfileGroup> = {},
): EntityInput => ({
  actionProfileGroup: { actionProfileId: GROUP_SELECTOR, groupId, members, maxSize: 6, ...more },
});
const groupEntry = (groupId: number, label = 1): EntryInput => ({
  tableId: GROUPS,
  match: [exact(1, label)],
  action: { actionProfileGroupId: groupId },
});
const memberEntry = (memberId: number, label = 1): EntryInput => ({
  tableId: MEMBERS,
  match: [exact(1, label)],
  action: { actionProfileMemberId: memberId },
});

/** How often each tag occurs among packets of that many flows. */
async function tagsOf(context: ServerContext, primary: TestStream, fields: object, flows: number) {
  const counts = new Map<number, number>();
  for (let number = 0; number < flows; number++) {
    const [packet] = await context.exchange(primary, probe({ ...fields, number: number * 7, small: number & 0x7f }));
    counts.set(packet!.tag, (counts.get(packet!.tag) ?? 0) + 1);
  }
  return counts;
}

/** P4Runtime 1.5, section "ActionProfileMember & ActionProfileGroup". */
export const PROFILES: Checks<ServerContext> = {
  55: async (context) => {
    const primary = await context.start();
    const { client } = context;
    expect(await client.insert(member(1, 11))).toBe(OK);
    expect(await client.insert(member(1, 11))).toBe(ALREADY_EXISTS);
    expect(await client.insert(member(2, 12))).toBe(OK);
    expect(await client.modify(member(3, 13))).toBe(NOT_FOUND);
    expect(await client.delete(member(3, 13))).toBe(NOT_FOUND);
    expect(await client.insert(group(1, [weighted(1), weighted(2, 3)]))).toBe(OK);
    expect(await client.insert(group(1, [weighted(1)]))).toBe(ALREADY_EXISTS);
    expect(await client.modify(group(2, [weighted(1)]))).toBe(NOT_FOUND);
    expect(await client.delete(group(2, []))).toBe(NOT_FOUND);
    expect(await client.insert(entity(groupEntry(1)))).toBe(OK);
    expect(await client.delete(member(1, 11))).toBe(FAILED_PRECONDITION);
    expect(await client.delete(group(1, []))).toBe(FAILED_PRECONDITION);

    const both = await tagsOf(context, primary, { label: 1 }, 60);
    expect([...both.keys()].sort()).toEqual([11, 12]);
    expect(both.get(12)!).toBeGreaterThan(both.get(11)!);
    // What a member does changes wherever it is used; what a group holds, for the entries that use it.
    expect(await client.modify(member(2, 22))).toBe(OK);
    expect([...(await tagsOf(context, primary, { label: 1 }, 30)).keys()].sort()).toEqual([11, 22]);
    expect(await client.modify(group(1, [weighted(2)]))).toBe(OK);
    expect([...(await tagsOf(context, primary, { label: 1 }, 10)).keys()]).toEqual([22]);
    expect(await client.delete(member(1, 11))).toBe(OK);

    expect(await client.list({ actionProfileMember: { actionProfileId: GROUP_SELECTOR } })).toMatchObject([
      member(2, 22),
    ]);
    expect(await client.list({ actionProfileGroup: {} })).toMatchObject([group(1, [weighted(2)])]);
    expect(await client.list(entity({ tableId: GROUPS }))).toMatchObject([entity(groupEntry(1))]);
    expect(await client.delete(entity(groupEntry(1)))).toBe(OK);
    expect(await client.delete(group(1, []))).toBe(OK);
    expect(await client.delete(member(2, 22))).toBe(OK);

    // A profile without a selector has members alone.
    expect(await client.insert(member(1, 31, MEMBER_PROFILE))).toBe(OK);
    expect(await client.insert(group(1, [weighted(1)], { actionProfileId: MEMBER_PROFILE }))).toBe(INVALID_ARGUMENT);
    expect(await client.insert(entity(memberEntry(1, 2)))).toBe(OK);
    expect(await client.delete(member(1, 31, MEMBER_PROFILE))).toBe(FAILED_PRECONDITION);
    expect((await context.exchange(primary, probe({ label: 2 })))[0]!.tag).toBe(31);
    expect(await client.modify(member(1, 32, MEMBER_PROFILE))).toBe(OK);
    expect((await context.exchange(primary, probe({ label: 2 })))[0]!.tag).toBe(32);
    for (const memberId of [2, 3, 4]) expect(await client.insert(member(memberId, 1, MEMBER_PROFILE))).toBe(OK);
    expect(await client.insert(member(5, 1, MEMBER_PROFILE))).toBe(RESOURCE_EXHAUSTED);
  },

  56: async (context) => {
    await context.start();
    const { client } = context;
    for (const memberId of [1, 2, 3]) expect(await client.insert(member(memberId, memberId))).toBe(OK);
    expect(await client.insert(group(1, [weighted(9)]))).toBe(NOT_FOUND);
    expect(await client.insert(group(1, [weighted(1)], { maxSize: 7 }))).toBe(INVALID_ARGUMENT);
    expect(await client.insert(group(1, [weighted(1)], { maxSize: 0 }))).toBe(INVALID_ARGUMENT);
    expect(await client.insert(group(1, [weighted(1, 0)]))).toBe(INVALID_ARGUMENT);
    expect(await client.insert(group(1, [weighted(1, -1)]))).toBe(INVALID_ARGUMENT);
    expect(await client.insert(group(1, [weighted(1), weighted(1)]))).toBe(INVALID_ARGUMENT);
    expect(await client.insert(group(1, [weighted(1, 4), weighted(2, 3)]))).toBe(INVALID_ARGUMENT);
    expect(await client.insert(group(1, [{ ...weighted(1), watchPort: bytes(2, 0) }]))).toBeOneOf([
      INVALID_ARGUMENT,
      UNIMPLEMENTED,
    ]);
    const watched = await client.insert(group(4, [{ ...weighted(1), watchPort: bytes(0, 3) }]));
    expect(watched).toBeOneOf([OK, UNIMPLEMENTED]);
    if (watched === OK) {
      expect(await client.list({ actionProfileGroup: { actionProfileId: GROUP_SELECTOR, groupId: 4 } })).toMatchObject([
        group(4, [{ ...weighted(1), watchPort: bytes(3) }]),
      ]);
      expect(await client.delete(group(4, []))).toBe(OK);
    }
    expect(await client.insert(group(1, [weighted(1, 4), weighted(2, 2)]))).toBe(OK);
    expect(await client.modify(group(1, [weighted(1)], { maxSize: 5 }))).toBe(INVALID_ARGUMENT);
    expect(await client.insert(group(2, [weighted(1, 5)]))).toBe(RESOURCE_EXHAUSTED);
    expect(await client.insert(group(2, [weighted(1, 4)]))).toBe(OK);

    // The same for one-shot sets.
    const set = (...weights: number[]) =>
      entity(route(10, { actionProfileActions: weights.map((weight) => oneShot(1, weight)) }));
    expect(await client.insert(set(0))).toBe(INVALID_ARGUMENT);
    expect(await client.insert(set(-1))).toBe(INVALID_ARGUMENT);
    expect(await client.insert(set(4, 3))).toBe(INVALID_ARGUMENT);
    expect(await client.insert(entity(route(10, { actionProfileActions: [{ weight: 1 }] })))).toBe(INVALID_ARGUMENT);
    expect(await client.insert(set(6))).toBe(OK);
    const other = (weight: number) => entity(route(11, { actionProfileActions: [oneShot(1, weight)] }));
    expect(await client.insert(other(5))).toBe(RESOURCE_EXHAUSTED);
    expect(await client.insert(other(4))).toBe(OK);
    expect(await client.modify(other(5))).toBe(RESOURCE_EXHAUSTED);
    expect(await client.modify(set(1))).toBe(OK);
    expect(await client.modify(other(5))).toBe(OK);
  },

  57: async (context) => {
    const primary = await context.start();
    const { client } = context;
    const set: MessageInput<ActionProfileActionSet> = {
      actionProfileActions: [oneShot(1, 2), oneShot(1, 2), oneShot(2, 1)],
    };
    expect(await client.insert(entity(route(10, set)))).toBe(OK);
    const [read] = await client.list(entity({ tableId: ONE_SHOT }));
    expect(read!.tableEntry!.action!.actionProfileActionSet).toMatchObject(set);
    const address = 0x0a000001;
    const tags = await tagsOf(context, primary, { address }, 60);
    expect([...tags.keys()].sort()).toEqual([1, 2]);
    expect(tags.get(1)!).toBeGreaterThan(tags.get(2)!);

    // One profile is programmed in one way.
    const manual = await client.insert(member(1, 1, ONE_SHOT_SELECTOR));
    expect(manual).toBeOneOf([INVALID_ARGUMENT, UNIMPLEMENTED, OK]);
    const mixed = { ...route(11, {}), action: { actionProfileMemberId: 1 } };
    expect(await client.insert(entity(mixed))).toBeOneOf(
      manual === OK ? [INVALID_ARGUMENT] : [INVALID_ARGUMENT, NOT_FOUND, UNIMPLEMENTED],
    );
    expect(await client.modify(entity(route(10, { actionProfileActions: [oneShot(3, 1)] })))).toBe(OK);
    expect([...(await tagsOf(context, primary, { address }, 5)).keys()]).toEqual([3]);
    expect(await client.delete(entity(route(10, {})))).toBe(OK);
    expect(await client.list(entity({ tableId: ONE_SHOT }))).toEqual([]);
  },

  58: async (context) => {
    await context.start();
    const { client } = context;
    const set = (more: MessageInput<ActionProfileActionSet>) =>
      entity(route(10, { actionProfileActions: [oneShot(1, 1)], ...more }));
    expect(await client.insert(set({ actionSelectionMode: 2 }))).toBe(UNIMPLEMENTED);
    expect(await client.insert(set({ sizeSemantics: 2 }))).toBe(UNIMPLEMENTED);
    const asIs = { actionSelectionMode: 1, sizeSemantics: 1 };
    expect(await client.insert(set(asIs))).toBeOneOf([OK, UNIMPLEMENTED]);
    for (const { tableEntry } of await client.list(entity({ tableId: ONE_SHOT })))
      expect(tableEntry!.action!.actionProfileActionSet).toMatchObject(asIs);
  },
};
