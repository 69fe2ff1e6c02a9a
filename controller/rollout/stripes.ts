import { serversText } from '../planner/amounts.ts';
import type { Tree } from '../topology/trees.ts';
import type { Draft } from './draft.ts';
import { endReceive, membersOf, prepare, receiveUnder, useLane } from './servers.ts';
import { isInstalled, isOpen, type TransferProgress } from './types.ts';

/** What becomes of the stripes of a rollout's payloads: each a label, a tree and a sender. */

/** Sources that a stripe may have, one after the other. */
const MAX_SOURCES = 4;

export function install(draft: Draft, label: number): void {
  draft.setPhase(label, 'installing');
  draft.do({ type: 'install', label });
  draft.do({ type: 'timer', key: `install:${label}`, afterUs: draft.rollout.limits.installUs });
}

export function installed(draft: Draft, label: number): void {
  const transfer = draft.transfer(label);
  if (transfer?.phase !== 'installing') return;
  draft.setPhase(label, 'preparing');
  draft.do({ type: 'cancel-timer', key: `install:${label}` });
  draft.do({ type: 'timer', key: `prepare:${label}`, afterUs: draft.rollout.limits.prepareUs });
  const members = membersOf(draft, transfer.receive);
  draft.note('transfer', `transfer ${label}: the tree is installed, preparing ${serversText(members.length)}`);
  draft.persist();
  for (const name of members) {
    if (draft.server(name)!.prepared === 'yes')
      draft.do({ type: 'update-receive', server: name, label: transfer.receive });
    else prepare(draft, name);
  }
}

/**
 * Starts by the rollout's start rule.
 * @param isLate the limit has passed: then whoever is ready is enough
 */
export function startWhenReady(draft: Draft, label: number, isLate: boolean): void {
  const transfer = draft.transfer(label);
  if (transfer?.phase !== 'preparing') return;
  const members = membersOf(draft, transfer.receive).map((name) => draft.server(name)!);
  const ready = members.filter((server) => server.prepared === 'yes').length;
  const { rule, servers } = draft.rollout.rules.start;
  const awaited = rule === 'deadline' ? members : members.filter((server) => server.attached);
  const allReady = awaited.every((server) => server.prepared === 'yes');
  const enough = rule === 'quorum' && ready >= (servers ?? members.length);
  if (!allReady && !enough && !isLate) return;
  if (ready === 0) {
    if (isLate) failTransfer(draft, label, 'no receiver was ready', 'for-good');
    return;
  }
  draft.setPhase(label, 'sending');
  draft.do({ type: 'cancel-timer', key: `prepare:${label}` });
  draft.do({ type: 'start-send', label });
  draft.note('transfer', `transfer ${label}: sending to ${serversText(ready)}`);
  draft.persist();
}

export function sent(draft: Draft, label: number): void {
  if (draft.transfer(label)?.phase !== 'sending') return;
  draft.setPhase(label, 'sent');
  draft.note('transfer', `transfer ${label}: everything was sent once, repairs follow`);
  draft.persist();
}

/** The sender has said closed to the tree, asked or by its own deadline: receivers that miss something read it by unicast. */
export function senderClosed(draft: Draft, label: number): void {
  const phase = draft.transfer(label)?.phase;
  if (phase === 'sending' || phase === 'sent' || phase === 'closing') removeTransfer(draft, label, 'closed');
}

export function close(draft: Draft, label: number): void {
  draft.setPhase(label, 'closing');
  draft.do({ type: 'end-send', label, complete: true });
  draft.do({ type: 'timer', key: `close:${label}`, afterUs: draft.rollout.limits.closeUs });
  draft.persist();
}

export function removeTransfer(draft: Draft, label: number, phase: 'closed' | 'failed'): void {
  draft.setPhase(label, phase);
  for (const key of [`install:${label}`, `prepare:${label}`, `close:${label}`, `source:${label}`] as const)
    draft.do({ type: 'cancel-timer', key });
  draft.do({ type: 'remove', label });
  draft.persist();
}

/**
 * Ends a stripe that cannot go on.
 * @param what `replaceable`: another source may send it; `for-good`: what is missing of it is read by unicast
 */
export function failTransfer(draft: Draft, label: number, error: string, what: 'replaceable' | 'for-good'): void {
  const transfer = draft.transfer(label);
  if (transfer === undefined || !isInstalled(transfer)) return;
  stopSender(draft, transfer);
  if (transfer.phase === 'closing') {
    // It has done its work: receivers that still miss something are reading it by unicast.
    removeTransfer(draft, label, 'closed');
    return;
  }
  removeTransfer(draft, label, 'failed');
  draft.note('transfer', `transfer ${label}: ${error}`);
  const { receive, stripe } = transfer;
  const before = draft.rollout.transfers.filter(
    (other) => other.receive === receive && other.stripe.index === stripe.index,
  );
  if (what === 'replaceable' && before.length < MAX_SOURCES && membersOf(draft, receive).length > 0)
    draft.do({ type: 'replace', label });
  else dropStripe(draft, transfer);
}

/** Another source sends the stripe, or nobody can. */
export function replaced(draft: Draft, label: number, by: { label: number; tree: Tree } | undefined): void {
  const transfer = draft.transfer(label);
  if (transfer?.phase !== 'failed' || !isLatest(draft, transfer)) return;
  if (by === undefined || draft.rollout.deadlinePassed) {
    dropStripe(draft, transfer);
    return;
  }
  draft.addTransfer({ ...transfer, label: by.label, tree: by.tree, phase: 'planned' });
  draft.note('transfer', `transfer ${by.label}: ${by.tree.source} takes over from ${transfer.tree.source}`);
  install(draft, by.label);
  draft.persist();
}

/** Its packets do not pass: all stripes are sent again in smaller ones. */
export function tooNarrow(draft: Draft, label: number, segmentBytes: number): void {
  const transfer = draft.transfer(label);
  if (transfer === undefined || !isInstalled(transfer) || segmentBytes >= transfer.segmentBytes) return;
  const { receive } = transfer;
  draft.note('transfer', `transfer ${label}: the path carries packets of ${segmentBytes} B of payload only`);
  for (const stripe of draft.stripes(receive))
    if (isInstalled(stripe)) {
      stopSender(draft, stripe);
      removeTransfer(draft, stripe.label, 'failed');
    }
  for (const name of membersOf(draft, receive)) endReceive(draft, name);
  draft.do({ type: 'relabel', receive, segmentBytes, stripes: transfer.stripe.count });
}

export function relabelled(draft: Draft, receive: number, segmentBytes: number, labels: readonly number[]): void {
  const stripes = draft.stripes(receive);
  const first = labels[0];
  if (first === undefined || stripes.length !== labels.length || stripes.some((stripe) => stripe.phase !== 'failed'))
    return;
  const members = membersOf(draft, receive);
  if (members.length === 0) return;
  stripes.forEach((stripe, i) => {
    draft.addTransfer({ ...stripe, label: labels[i]!, receive: first, segmentBytes, phase: 'planned' });
    install(draft, labels[i]!);
  });
  for (const name of members) receiveUnder(draft, name, first, stripes[0]!.payloadBytes);
  draft.persist();
}

export function shrunk(draft: Draft, label: number, tree: Tree): void {
  const transfer = draft.transfer(label);
  if (transfer === undefined || !isInstalled(transfer)) return;
  draft.setTransfer(label, { tree });
  draft.persist();
}

/** Ends the stripes of a payload as soon as nobody waits for it. */
export function closeWhenDone(draft: Draft, receive: number): void {
  const stripes = draft.stripes(receive);
  const open = stripes.filter((stripe) => stripe.phase === 'installing' || isOpen(stripe));
  if (open.length === 0 || membersOf(draft, receive).length > 0) return;
  for (const [name, server] of draft.servers())
    if (server.label === receive && server.state === 'verified')
      draft.do({ type: 'end-receive', server: name, label: receive, complete: true });
  for (const { label, phase } of open) {
    if (phase === 'sending' || phase === 'sent') close(draft, label);
    else removeTransfer(draft, label, 'closed');
  }
}

export function stopSender(draft: Draft, { label, phase }: TransferProgress): void {
  if (phase === 'sending' || phase === 'sent' || phase === 'closing')
    draft.do({ type: 'end-send', label, complete: false });
}

/** Nobody sends the stripe any more: receivers read what they miss of it, and of the whole payload if no stripe is left. */
function dropStripe(draft: Draft, { receive, base }: TransferProgress): void {
  const lives = draft.stripes(receive).some((stripe) => stripe.phase !== 'failed');
  for (const name of membersOf(draft, receive)) {
    if (!lives) {
      endReceive(draft, name);
      useLane(draft, name, base);
    } else if (draft.server(name)!.prepared === 'yes')
      draft.do({ type: 'update-receive', server: name, label: receive });
    else prepare(draft, name);
  }
}

function isLatest(draft: Draft, transfer: TransferProgress): boolean {
  return draft.stripes(transfer.receive).some(({ label }) => label === transfer.label);
}
