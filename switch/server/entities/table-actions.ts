import {
  type ActionProfileActionSet,
  ActionProfileActionSetActionSelectionMode as SelectionMode,
  ActionProfileActionSetSizeSemantics as SizeSemantics,
  type TableAction,
} from '../../../wire/p4runtime/messages.ts';
import type { ProfileInfo, TableInfo } from '../../../wire/p4runtime/p4info-objects.ts';
import type { EntryAction, WeightedAction } from '../../control.ts';
import { RpcError } from '../rpc-error.ts';
import { actionMessage, parseAction } from '../validation.ts';

/** The action of an entry, for the device and as reads give it back. */
export interface ParsedTableAction {
  readonly action: EntryAction;
  readonly message: TableAction;
  readonly profileUse: number;
}

/** P4Runtime 1.5, section "Action Specification": which member of the oneof a table takes depends on its implementation. */
export function parseTableAction(table: TableInfo, given: TableAction): ParsedTableAction {
  const { profile } = table;
  const memberOrGroup = given.actionProfileMemberId !== undefined || given.actionProfileGroupId !== undefined;
  if (profile === undefined) {
    if (given.action === undefined)
      throw new RpcError('INVALID_ARGUMENT', `Table ${table.name} is a direct table: its entries take an action`);
    const call = parseAction(table, given.action, 'entry');
    return {
      action: call,
      message: { action: actionMessage(table.actionById.get(given.action.actionId)!.action, call) },
      profileUse: 0,
    };
  }
  if (memberOrGroup || !profile.withSelector)
    throw new RpcError(
      'UNIMPLEMENTED',
      `Table ${table.name}: this switch serves action profiles by one-shot action sets only, not by members and groups`,
    );
  if (given.actionProfileActionSet === undefined)
    throw new RpcError(
      'INVALID_ARGUMENT',
      `Table ${table.name} is implemented by a selector: its entries take an action profile action set`,
    );
  return parseActionSet(table, profile, given.actionProfileActionSet);
}

/** P4Runtime 1.5, section "One Shot Action Selector Programming". */
function parseActionSet(table: TableInfo, profile: ProfileInfo, set: ActionProfileActionSet): ParsedTableAction {
  const where = `Table ${table.name}, action profile ${profile.name}`;
  // v1model's selectors choose by hash; nothing is set per group.
  if (
    set.actionSelectionMode !== SelectionMode.DEFAULT_MODE_DETERMINED_BY_ACTION_SELECTOR &&
    set.actionSelectionMode !== SelectionMode.HASH
  )
    throw new RpcError('UNIMPLEMENTED', `${where}: this switch selects by hash only`);
  const ownSemantics =
    profile.sizeSemantics === 'sum of weights' ? SizeSemantics.SUM_OF_WEIGHTS : SizeSemantics.SUM_OF_MEMBERS;
  if (
    set.sizeSemantics !== SizeSemantics.DEFAULT_SIZE_DETERMINED_BY_ACTION_SELECTOR &&
    set.sizeSemantics !== ownSemantics
  )
    throw new RpcError('UNIMPLEMENTED', `${where}: the size of a group is its ${profile.sizeSemantics}`);
  if (set.actionProfileActions.length === 0)
    throw new RpcError('UNIMPLEMENTED', `${where}: this switch has no empty action sets`);

  const selector: WeightedAction[] = [];
  const actionProfileActions = set.actionProfileActions.map((member) => {
    if (member.action === undefined) throw new RpcError('INVALID_ARGUMENT', `${where}: a member has no action`);
    if ((member.watchPort?.length ?? 0) > 0 || (member.watch ?? 0) !== 0)
      throw new RpcError('UNIMPLEMENTED', `${where}: this switch does not watch ports`);
    checkWeight(profile, member.weight, where);
    const call = parseAction(table, member.action, 'entry');
    selector.push({ ...call, weight: Math.max(member.weight, 1) });
    return { ...member, action: actionMessage(table.actionById.get(member.action.actionId)!.action, call) };
  });
  const weights = selector.reduce((sum, { weight }) => sum + weight, 0);
  const size = profile.sizeSemantics === 'sum of weights' ? weights : selector.length;
  if (profile.maxGroupSize > 0 && size > profile.maxGroupSize)
    throw new RpcError(
      'INVALID_ARGUMENT',
      `${where}: a set of size ${size} is above the largest group size ${profile.maxGroupSize}`,
    );
  return {
    action: { selector },
    message: { actionProfileActionSet: { ...set, actionProfileActions } },
    profileUse: size,
  };
}

function checkWeight(profile: ProfileInfo, weight: number, where: string): void {
  if (profile.weightsDisallowed) {
    if (weight !== 0) throw new RpcError('INVALID_ARGUMENT', `${where}: weights are not allowed`);
    return;
  }
  if (weight < 1) throw new RpcError('INVALID_ARGUMENT', `${where}: a weight of ${weight} is below 1`);
  if (profile.maxMemberWeight > 0 && weight > profile.maxMemberWeight)
    throw new RpcError('INVALID_ARGUMENT', `${where}: a weight of ${weight} is above ${profile.maxMemberWeight}`);
}
