import {
  type ActionProfileActionSet,
  ActionProfileActionSetActionSelectionMode as SelectionMode,
  ActionProfileActionSetSizeSemantics as SizeSemantics,
  type TableAction,
} from '../../../wire/p4runtime/messages.ts';
import type { EntryAction, WeightedAction } from '../../control.ts';
import type { CallFormats } from '../action-calls.ts';
import { RpcError } from '../rpc-error.ts';
import type { ProfileState, ProfileUse } from './profile-state.ts';

/** The action of an entry, for the device and, where that does not say it all, as reads give it back. */
export interface ParsedTableAction {
  readonly action: EntryAction;
  readonly message: TableAction | undefined;
  readonly use: ProfileUse | undefined;
}

/**
 * P4Runtime 1.5, section "Action Specification": which member of the oneof a table takes depends on its implementation.
 * @param table its name
 * @param before what the entry that this is for uses now
 */
export function parseTableAction(
  table: string,
  calls: CallFormats,
  profile: ProfileState | undefined,
  given: TableAction,
  before: ProfileUse | undefined,
): ParsedTableAction {
  if (profile === undefined) {
    if (given.action === undefined)
      throw new RpcError('INVALID_ARGUMENT', `Table ${table} is a direct table: its entries take an action`);
    return { action: calls.parse(given.action, 'entry'), message: undefined, use: undefined };
  }
  const parsed = parseIndirect(table, calls, profile, given);
  profile.checkUse(parsed.use, before);
  if (parsed.use.kind === 'one shot') return { ...parsed, action: parsed.action! };
  return { ...parsed, action: profile.resolve(parsed.use) };
}

function parseIndirect(
  table: string,
  calls: CallFormats,
  profile: ProfileState,
  given: TableAction,
): { message: TableAction; use: ProfileUse; action?: EntryAction } {
  const { actionProfileMemberId, actionProfileGroupId, actionProfileActionSet } = given;
  const { withSelector } = profile.info;
  if (actionProfileMemberId !== undefined)
    return { message: { actionProfileMemberId }, use: { kind: 'member', id: actionProfileMemberId } };
  if (actionProfileGroupId !== undefined && withSelector)
    return { message: { actionProfileGroupId }, use: { kind: 'group', id: actionProfileGroupId } };
  if (actionProfileActionSet !== undefined && withSelector)
    return parseActionSet(calls, profile, actionProfileActionSet);
  throw new RpcError(
    'INVALID_ARGUMENT',
    `Table ${table} is implemented by ${profile.info.name}: its entries take ${withSelector ? 'a member, a group or an action set' : 'a member'}`,
  );
}

/** P4Runtime 1.5, section "One Shot Action Selector Programming". */
function parseActionSet(
  calls: CallFormats,
  profile: ProfileState,
  set: ActionProfileActionSet,
): { message: TableAction; use: ProfileUse; action: EntryAction } {
  const { where } = profile;
  // v1model's selectors choose by hash; nothing is set per group.
  if (
    set.actionSelectionMode !== SelectionMode.DEFAULT_MODE_DETERMINED_BY_ACTION_SELECTOR &&
    set.actionSelectionMode !== SelectionMode.HASH
  )
    throw new RpcError('UNIMPLEMENTED', `${where}: this switch selects by hash only`);
  const { sizeSemantics, maxGroupSize } = profile.info;
  const ownSemantics = sizeSemantics === 'sum of weights' ? SizeSemantics.SUM_OF_WEIGHTS : SizeSemantics.SUM_OF_MEMBERS;
  if (
    set.sizeSemantics !== SizeSemantics.DEFAULT_SIZE_DETERMINED_BY_ACTION_SELECTOR &&
    set.sizeSemantics !== ownSemantics
  )
    throw new RpcError('UNIMPLEMENTED', `${where}: the size of a group is its ${sizeSemantics}`);

  const selector: WeightedAction[] = [];
  const actionProfileActions = set.actionProfileActions.map((member) => {
    if (member.action === undefined) throw new RpcError('INVALID_ARGUMENT', `${where}: a member has no action`);
    profile.checkWeight(member.weight);
    const { port, message } = profile.watchOf(member);
    const call = calls.parse(member.action, 'entry');
    selector.push({
      ...call,
      weight: Math.max(member.weight, 1),
      ...(port === undefined ? {} : { watchPort: port }),
    });
    return { action: calls.message(call), weight: member.weight, ...message };
  });
  const size = profile.sizeOf(actionProfileActions);
  if (maxGroupSize > 0 && size > maxGroupSize)
    throw new RpcError(
      'INVALID_ARGUMENT',
      `${where}: a set of size ${size} is above the largest group size ${maxGroupSize}`,
    );
  return {
    action: { selector },
    message: { actionProfileActionSet: { ...set, actionProfileActions } },
    use: { kind: 'one shot', size },
  };
}
