import type { Draft } from './draft.ts';
import { isOpen, isSettled } from './types.ts';

/** What becomes of one server of a rollout. */

/** Servers that receive under this label and have not finished. */
export function membersOf(draft: Draft, receive: number): string[] {
  return draft
    .servers()
    .filter(([, server]) => server.label === receive && !isSettled(server))
    .map(([name]) => name);
}

/** Asks the server to receive under its label, if it is there, is not asked already, and there is something to receive. */
export function prepare(draft: Draft, name: string): void {
  const server = draft.server(name)!;
  if (!server.attached || server.prepared !== 'no' || isSettled(server)) return;
  const stripes = draft.stripes(server.label);
  if (stripes.some(({ phase }) => phase === 'planned' || phase === 'installing')) return;
  if (stripes.length > 0 && !stripes.some(isOpen)) {
    // The stream it was to receive is over.
    useLane(draft, name, stripes[0]!.base);
    return;
  }
  draft.setServer(name, { prepared: 'asked' });
  draft.do({ type: 'prepare', server: name, label: server.label });
}

/** It reads the payload from holders, each range once; what it has verified already it keeps. */
export function useLane(draft: Draft, name: string, base: number): void {
  const lane = draft.lane(base) ?? draft.lane(0)!;
  draft.note('server', `${name}: goes on by unicast`);
  receiveUnder(draft, name, lane.label, lane.payloadBytes);
}

/** It begins anew under another label. */
export function receiveUnder(draft: Draft, name: string, label: number, bytesTotal: number): void {
  draft.setServer(name, { label, prepared: 'no', state: 'waiting', bytesDone: 0, bytesTotal });
  draft.do({ type: 'cancel-timer', key: `retry:${name}` });
  prepare(draft, name);
}

export function prepared(draft: Draft, name: string, label: number): void {
  const server = draft.server(name);
  if (server === undefined || server.label !== label || server.prepared !== 'asked' || isSettled(server)) return;
  draft.setServer(name, { prepared: 'yes', state: 'receiving' });
  // Between question and answer a stripe may have got another source.
  if (draft.rollout.transfers.some((transfer) => transfer.receive === label && transfer.phase === 'failed'))
    draft.do({ type: 'update-receive', server: name, label });
}

export function prepareFailed(draft: Draft, name: string, label: number, error: string, retry: boolean): void {
  const server = draft.server(name);
  if (server === undefined || server.label !== label || server.prepared !== 'asked' || isSettled(server)) return;
  draft.setServer(name, { prepared: 'no' });
  if (!retry) {
    fallBack(draft, name, error);
    return;
  }
  draft.do({ type: 'timer', key: `retry:${name}`, afterUs: draft.rollout.limits.retryUs });
}

export function receiver(
  draft: Draft,
  name: string,
  label: number,
  state: 'receiving' | 'reconstructing',
  bytesDone: number,
): void {
  const server = draft.server(name);
  if (server === undefined || server.label !== label || isSettled(server)) return;
  draft.setServer(name, { state, bytesDone: Math.min(server.bytesTotal, Math.max(server.bytesDone, bytesDone)) });
}

export function receiverFailed(draft: Draft, name: string, label: number, error: string): void {
  const server = draft.server(name);
  if (server === undefined || server.label !== label || isSettled(server)) return;
  fallBack(draft, name, error);
}

/** Takes a server that loses far more than the others out of its trees: it goes on by unicast, and they are repaired for less. */
export function slow(draft: Draft, name: string, label: number, why: string): void {
  const server = draft.server(name);
  if (server === undefined || server.label !== label || server.state !== 'receiving') return;
  const open = draft.stripes(label).filter(isOpen);
  if (open.length === 0 || membersOf(draft, label).length < 2) return;
  draft.note('server', `${name}: taken out of the tree: ${why}`);
  for (const stripe of open) draft.do({ type: 'shrink', label: stripe.label, without: name });
  endReceive(draft, name);
  useLane(draft, name, open[0]!.base);
}

/** A delta that cannot be applied is no reason to go without: the full image needs no base. What fails with that has failed. */
function fallBack(draft: Draft, name: string, error: string): void {
  const { label } = draft.server(name)!;
  if ((draft.payloadOf(label)?.base ?? 0) === 0) {
    failServer(draft, name, error);
    return;
  }
  draft.note('server', `${name}: ${error}; the full image takes the delta's place`);
  useLane(draft, name, 0);
}

export function failServer(draft: Draft, name: string, error: string): void {
  draft.setServer(name, { state: 'failed', error });
  draft.do({ type: 'cancel-timer', key: `retry:${name}` });
  draft.note('server', `${name}: failed: ${error}`);
  draft.persist();
}

/** The rollout goes on without it. */
export function letGo(draft: Draft, name: string, why: string): void {
  endReceive(draft, name);
  failServer(draft, name, why);
}

export function held(draft: Draft, name: string): void {
  const server = draft.server(name);
  if (server === undefined || isSettled(server)) return;
  draft.setServer(name, { state: 'verified', bytesDone: server.bytesTotal, error: null });
  draft.do({ type: 'cancel-timer', key: `retry:${name}` });
  draft.note('server', `${name}: verified`);
  draft.persist();
}

export function endReceive(draft: Draft, name: string): void {
  const { label, prepared: agreed } = draft.server(name)!;
  if (agreed !== 'no') draft.do({ type: 'end-receive', server: name, label, complete: false });
}
