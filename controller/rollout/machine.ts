import { serversText } from '../planner/amounts.ts';
import { Draft } from './draft.ts';
import {
  hasEnded,
  isInstalled,
  isSettled,
  type Rollout,
  type RolloutInput,
  type ServerProgress,
  type Step,
  type TimerKey,
  type TransferProgress,
} from './types.ts';

/**
 * The state machine of a rollout:
 *
 *     queued -> planned -> distributing -> verifying -> staged -> active
 *                  |            |              |           |
 *                  +------------+------ failed, aborted ---+
 *
 * planned: entries go into the switches; distributing: payloads are sent; verifying: all is sent at least once, receivers repair, reconstruct and
 * prove; staged: every server holds the version and is asked to activate it. A server that fails, fails alone: the others go on until they
 * have proved the version, and then the rollout has failed with the count and nothing is activated.
 *
 * Every wait has a timer among the effects, and a last one bounds them all. Events that come early, late or twice change nothing. After the end there are no effects.
 */
export function step(rollout: Rollout, input: RolloutInput, nowUs: number): Step {
  const early = rollout.state === 'queued' && input.type !== 'start' && input.type !== 'abort';
  if (hasEnded(rollout) || early) return { rollout, effects: [] };
  const draft = new Draft(rollout, nowUs);
  apply(draft, input);
  if (!hasEnded(draft.rollout)) advance(draft);
  return draft.finish();
}

function apply(draft: Draft, input: RolloutInput): void {
  switch (input.type) {
    case 'start':
      start(draft);
      break;
    case 'installed':
      installed(draft, input.label);
      break;
    case 'install-failed':
      failTransfer(draft, input.label, `the switches did not take it: ${input.error}`);
      break;
    case 'prepared':
      prepared(draft, input.server, input.label);
      break;
    case 'prepare-failed':
      prepareFailed(draft, input.server, input.label, input.error, input.retry);
      break;
    case 'send-failed':
    case 'sender-failed':
      failTransfer(draft, input.label, input.error);
      break;
    case 'sender':
      if (input.phase === 'sent') sent(draft, input.label);
      else senderClosed(draft, input.label);
      break;
    case 'receiver':
      receiver(draft, input.server, input.label, input.state, input.bytesDone);
      break;
    case 'receiver-failed':
      receiverFailed(draft, input.server, input.label, input.error);
      break;
    case 'held':
      held(draft, input.server);
      break;
    case 'attached':
      attached(draft, input.agent, input.restarted, input.held);
      break;
    case 'detached':
      detached(draft, input.agent);
      break;
    case 'activated':
      activated(draft, input.server);
      break;
    case 'activate-failed':
      activateFailed(draft, input.server, input.error, input.retry);
      break;
    case 'timer':
      timer(draft, input.key);
      break;
    case 'abort':
      abort(draft, input.reason);
      break;
  }
}

// ---- start, switches, sender

function start(draft: Draft): void {
  const { rollout } = draft;
  if (rollout.state !== 'queued') return;
  draft.do({ type: 'timer', key: 'deadline', afterUs: rollout.limits.deadlineUs });
  draft.do({ type: 'timer', key: 'limit', afterUs: rollout.limits.limitUs });
  const { length } = rollout.transfers;
  const transfers = length === 1 ? '1 transfer' : `${length} transfers`;
  draft.enter('planned', `${serversText(Object.keys(rollout.servers).length)}, ${transfers}`);
  for (const { label } of rollout.transfers) {
    draft.setPhase(label, 'installing');
    draft.do({ type: 'install', label });
    draft.do({ type: 'timer', key: `install:${label}`, afterUs: rollout.limits.installUs });
  }
  for (const [name, server] of draft.servers()) if (!isSettled(server)) prepare(draft, name);
}

function installed(draft: Draft, label: number): void {
  const transfer = draft.transfer(label);
  if (transfer?.phase !== 'installing') return;
  draft.setPhase(label, 'preparing');
  draft.do({ type: 'cancel-timer', key: `install:${label}` });
  draft.do({ type: 'timer', key: `prepare:${label}`, afterUs: draft.rollout.limits.prepareUs });
  draft.note(
    'transfer',
    `transfer ${label}: the tree is installed, preparing ${serversText(transfer.receivers.length)}`,
  );
  draft.persist();
  for (const name of membersOf(draft, label)) prepare(draft, name);
}

/** Starts when all who are there are ready: who is away does not stall the others. */
function startWhenReady(draft: Draft, label: number, patient: boolean): void {
  if (draft.transfer(label)?.phase !== 'preparing') return;
  const members = membersOf(draft, label).map((name) => draft.server(name)!);
  if (members.some((server) => server.attached && server.prepared !== 'yes') && patient) return;
  const ready = members.filter((server) => server.prepared === 'yes').length;
  if (ready === 0) {
    if (!patient) failTransfer(draft, label, 'no receiver was ready');
    return;
  }
  draft.setPhase(label, 'sending');
  draft.do({ type: 'cancel-timer', key: `prepare:${label}` });
  draft.do({ type: 'start-send', label });
  draft.note('transfer', `transfer ${label}: sending to ${serversText(ready)}`);
  draft.persist();
}

function sent(draft: Draft, label: number): void {
  if (draft.transfer(label)?.phase !== 'sending') return;
  draft.setPhase(label, 'sent');
  draft.note('transfer', `transfer ${label}: everything was sent once, repairs follow`);
  draft.persist();
}

/** The sender has said closed to the tree, asked or by its own deadline: receivers that miss something read it by unicast. */
function senderClosed(draft: Draft, label: number): void {
  const phase = draft.transfer(label)?.phase;
  if (phase === 'sending' || phase === 'sent' || phase === 'closing') removeTransfer(draft, label, 'closed');
}

function close(draft: Draft, label: number): void {
  draft.setPhase(label, 'closing');
  draft.do({ type: 'end-send', label, complete: true });
  draft.do({ type: 'timer', key: `close:${label}`, afterUs: draft.rollout.limits.closeUs });
  draft.persist();
}

function removeTransfer(draft: Draft, label: number, phase: 'closed' | 'failed'): void {
  draft.setPhase(label, phase);
  for (const key of [`install:${label}`, `prepare:${label}`, `close:${label}`, `source:${label}`] as const)
    draft.do({ type: 'cancel-timer', key });
  draft.do({ type: 'remove', label });
  draft.persist();
}

/** Ends a transfer that cannot go on; its receivers go on by unicast. */
function failTransfer(draft: Draft, label: number, error: string): void {
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
  for (const name of membersOf(draft, label)) {
    endReceive(draft, name);
    useLane(draft, name, transfer.base);
  }
}

function stopSender(draft: Draft, { label, phase }: TransferProgress): void {
  if (phase === 'sending' || phase === 'sent' || phase === 'closing')
    draft.do({ type: 'end-send', label, complete: false });
}

// ---- servers

/** Servers that are to receive under this label and have not finished. */
function membersOf(draft: Draft, label: number): string[] {
  return draft
    .servers()
    .filter(([, server]) => server.label === label && !isSettled(server))
    .map(([name]) => name);
}

/** Asks the server to receive under its label, if it is there, is not asked already, and there is something to receive. */
function prepare(draft: Draft, name: string): void {
  const server = draft.server(name)!;
  if (!server.attached || server.prepared !== 'no' || isSettled(server)) return;
  const transfer = draft.transfer(server.label);
  if (transfer?.phase === 'installing') return;
  if (
    transfer !== undefined &&
    !(transfer.phase === 'preparing' || transfer.phase === 'sending' || transfer.phase === 'sent')
  ) {
    // The stream it was to receive is over.
    useLane(draft, name, transfer.base);
    return;
  }
  draft.setServer(name, { prepared: 'asked' });
  draft.do({ type: 'prepare', server: name, label: server.label });
}

function useLane(draft: Draft, name: string, base: number): void {
  const lane = draft.lane(base) ?? draft.lane(0)!;
  draft.setServer(name, {
    label: lane.label,
    prepared: 'no',
    state: 'waiting',
    bytesDone: 0,
    bytesTotal: lane.payloadBytes,
  });
  draft.do({ type: 'cancel-timer', key: `retry:${name}` });
  draft.note('server', `${name}: goes on by unicast`);
  prepare(draft, name);
}

function prepared(draft: Draft, name: string, label: number): void {
  const server = draft.server(name);
  if (server === undefined || server.label !== label || server.prepared !== 'asked' || isSettled(server)) return;
  draft.setServer(name, { prepared: 'yes', state: 'receiving' });
}

function prepareFailed(draft: Draft, name: string, label: number, error: string, retry: boolean): void {
  const server = draft.server(name);
  if (server === undefined || server.label !== label || server.prepared !== 'asked' || isSettled(server)) return;
  draft.setServer(name, { prepared: 'no' });
  if (!retry) {
    fallBack(draft, name, error);
    return;
  }
  draft.do({ type: 'timer', key: `retry:${name}`, afterUs: draft.rollout.limits.retryUs });
}

function receiver(
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

function receiverFailed(draft: Draft, name: string, label: number, error: string): void {
  const server = draft.server(name);
  if (server === undefined || server.label !== label || isSettled(server)) return;
  fallBack(draft, name, error);
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

function failServer(draft: Draft, name: string, error: string): void {
  draft.setServer(name, { state: 'failed', error });
  draft.do({ type: 'cancel-timer', key: `retry:${name}` });
  draft.note('server', `${name}: failed: ${error}`);
  draft.persist();
}

function held(draft: Draft, name: string): void {
  const server = draft.server(name);
  if (server === undefined || isSettled(server)) return;
  draft.setServer(name, { state: 'verified', bytesDone: server.bytesTotal, error: null });
  draft.do({ type: 'cancel-timer', key: `retry:${name}` });
  draft.note('server', `${name}: verified`);
  draft.persist();
}

// ---- agents that come and go

function attached(draft: Draft, agent: string, restarted: boolean, heldVersions: readonly number[]): void {
  for (const transfer of draft.rollout.transfers) {
    if (transfer.source !== agent || !isInstalled(transfer)) continue;
    draft.do({ type: 'cancel-timer', key: `source:${transfer.label}` });
    const streaming = transfer.phase !== 'installing' && transfer.phase !== 'preparing';
    if (restarted && streaming) failTransfer(draft, transfer.label, `${agent} restarted`);
  }
  const server = draft.server(agent);
  if (server === undefined || server.state === 'failed') return;
  draft.setServer(agent, {
    attached: true,
    prepared: restarted || server.prepared === 'asked' ? 'no' : server.prepared,
  });
  if (heldVersions.includes(draft.rollout.version)) {
    held(draft, agent);
    if (draft.rollout.state === 'staged' && draft.server(agent)!.state === 'verified')
      draft.do({ type: 'activate', server: agent });
    return;
  }
  if (isSettled(server)) {
    lostVersion(draft, agent);
    return;
  }
  const base = draft.payloadOf(server.label)?.base ?? 0;
  if (base !== 0 && !heldVersions.includes(base)) {
    useLane(draft, agent, 0);
    return;
  }
  prepare(draft, agent);
}

/** It had proved the version and comes back without it. */
function lostVersion(draft: Draft, name: string): void {
  if (draft.rollout.state === 'staged') {
    failServer(draft, name, 'it came back without the version');
    return;
  }
  draft.note('server', `${name}: came back without the version`);
  useLane(draft, name, 0);
}

function detached(draft: Draft, agent: string): void {
  for (const transfer of draft.rollout.transfers)
    if (transfer.source === agent && isInstalled(transfer))
      draft.do({ type: 'timer', key: `source:${transfer.label}`, afterUs: draft.rollout.limits.sourceUs });
  const server = draft.server(agent);
  if (server === undefined) return;
  draft.setServer(agent, { attached: false, prepared: server.prepared === 'asked' ? 'no' : server.prepared });
  if (isSettled(server)) return;
  draft.note('server', `${agent}: not attached`);
}

// ---- activation

function activated(draft: Draft, name: string): void {
  if (draft.rollout.state !== 'staged' || draft.server(name)?.state !== 'verified') return;
  draft.setServer(name, { state: 'active' });
}

function activateFailed(draft: Draft, name: string, error: string, retry: boolean): void {
  if (draft.rollout.state !== 'staged' || draft.server(name)?.state !== 'verified') return;
  if (!retry) {
    failServer(draft, name, error);
    return;
  }
  draft.do({ type: 'timer', key: `retry:${name}`, afterUs: draft.rollout.limits.retryUs });
}

// ---- time and abort

function timer(draft: Draft, key: TimerKey): void {
  if (key === 'deadline') {
    deadline(draft);
    return;
  }
  if (key === 'limit') {
    limit(draft);
    return;
  }
  if (key === 'activate') {
    activationOver(draft);
    return;
  }
  const [kind, subject] = [key.slice(0, key.indexOf(':')), key.slice(key.indexOf(':') + 1)];
  if (kind === 'retry') {
    retry(draft, subject);
    return;
  }
  const label = Number(subject);
  const transfer = draft.transfer(label);
  if (transfer === undefined) return;
  if (kind === 'install' && transfer.phase === 'installing')
    failTransfer(draft, label, 'the switches did not take the tree in time');
  if (kind === 'prepare') startWhenReady(draft, label, false);
  if (kind === 'close' && transfer.phase === 'closing') removeTransfer(draft, label, 'closed');
  if (kind === 'source' && isInstalled(transfer)) failTransfer(draft, label, `${transfer.source} is gone`);
}

function retry(draft: Draft, name: string): void {
  const server = draft.server(name);
  if (server === undefined || !server.attached) return;
  if (draft.rollout.state === 'staged' && server.state === 'verified') draft.do({ type: 'activate', server: name });
  else prepare(draft, name);
}

/** Receivers know the deadline and read by unicast what they miss: senders stop, and nobody waits any longer for who is away. */
function deadline(draft: Draft): void {
  if (draft.rollout.deadlinePassed) return;
  draft.rollout = { ...draft.rollout, deadlinePassed: true };
  const open = draft.servers().filter(([, server]) => !isSettled(server));
  if (open.length > 0) draft.note('note', `the deadline has passed: ${serversText(open.length)} go on by unicast`);
  for (const [name, server] of open) if (!server.attached) failServer(draft, name, 'not attached at the deadline');
  for (const { label, phase } of draft.rollout.transfers) {
    if (phase === 'installing' || phase === 'preparing') failTransfer(draft, label, 'not started at the deadline');
    if (phase === 'sending' || phase === 'sent') close(draft, label);
  }
}

function limit(draft: Draft): void {
  const seconds = Math.round((draft.nowUs - draft.rollout.startedAtUs) / 1e6);
  for (const [name, server] of draft.servers()) {
    if (isSettled(server)) continue;
    endReceive(draft, name);
    failServer(draft, name, `not verified after ${seconds} s`);
  }
  for (const transfer of draft.rollout.transfers)
    if (isInstalled(transfer)) {
      stopSender(draft, transfer);
      removeTransfer(draft, transfer.label, transfer.phase === 'closing' ? 'closed' : 'failed');
    }
}

function activationOver(draft: Draft): void {
  if (draft.rollout.state !== 'staged') return;
  for (const [name, server] of draft.servers())
    if (server.state === 'verified') failServer(draft, name, 'it did not activate the version in time');
}

function abort(draft: Draft, reason: string): void {
  for (const [name, server] of draft.servers()) if (!isSettled(server)) endReceive(draft, name);
  for (const transfer of draft.rollout.transfers)
    if (isInstalled(transfer)) {
      stopSender(draft, transfer);
      removeTransfer(draft, transfer.label, 'failed');
    }
  const active = draft.servers().filter(([, server]) => server.state === 'active').length;
  const already = active === 0 ? '' : `; ${serversText(active)} had activated the version`;
  draft.enter('aborted', `aborted: ${reason}${already}`, reason);
}

function endReceive(draft: Draft, name: string): void {
  const { label, prepared: agreed } = draft.server(name)!;
  if (agreed !== 'no') draft.do({ type: 'end-receive', server: name, label, complete: false });
}

// ---- what follows from what has happened

function advance(draft: Draft): void {
  for (const transfer of draft.rollout.transfers) closeWhenDone(draft, transfer);
  for (const { label } of draft.rollout.transfers) startWhenReady(draft, label, true);
  const servers = Object.values(draft.rollout.servers);
  const { transfers } = draft.rollout;
  const settled = servers.every(isSettled);
  if (draft.rollout.state === 'planned' && !transfers.some(({ phase }) => phase === 'installing'))
    draft.enter('distributing', 'the switches are ready');
  if (draft.rollout.state === 'distributing' && (settled || servers.every((server) => hasEverything(draft, server))))
    draft.enter('verifying', 'everything was sent at least once');
  if (draft.rollout.state === 'verifying' && settled && !transfers.some(isInstalled)) stage(draft, servers);
  if (draft.rollout.state === 'staged') finishWhenActive(draft);
}

/** Ends a transfer as soon as nobody waits for it. */
function closeWhenDone(draft: Draft, { label, phase, receivers }: TransferProgress): void {
  const open = phase === 'installing' || phase === 'preparing' || phase === 'sending' || phase === 'sent';
  if (!open || membersOf(draft, label).length > 0) return;
  if (phase === 'installing' || phase === 'preparing') {
    removeTransfer(draft, label, 'closed');
    return;
  }
  for (const name of receivers) {
    const server = draft.server(name)!;
    if (server.label === label && server.state === 'verified')
      draft.do({ type: 'end-receive', server: name, label, complete: true });
  }
  close(draft, label);
}

/** Whether all that this server needs has been sent to it once, or it has it. */
function hasEverything(draft: Draft, server: ServerProgress): boolean {
  if (isSettled(server) || server.state === 'reconstructing') return true;
  const phase = draft.transfer(server.label)?.phase;
  return phase === 'sent' || phase === 'closing' || phase === 'closed';
}

function stage(draft: Draft, servers: readonly ServerProgress[]): void {
  const failed = servers.filter((server) => server.state === 'failed').length;
  if (failed > 0) {
    const message = `${failed} of ${serversText(servers.length)} failed, ${servers.length - failed} verified; nothing was activated`;
    draft.enter('failed', message, message);
    return;
  }
  draft.enter('staged', `all ${serversText(servers.length)} hold version ${draft.rollout.version}`);
  draft.do({ type: 'timer', key: 'activate', afterUs: draft.rollout.limits.activateUs });
  for (const [name, server] of draft.servers())
    if (server.state === 'verified' && server.attached) draft.do({ type: 'activate', server: name });
}

function finishWhenActive(draft: Draft): void {
  const servers = Object.values(draft.rollout.servers);
  if (servers.some((server) => server.state === 'verified')) return;
  const failed = servers.filter((server) => server.state !== 'active').length;
  if (failed === 0) {
    draft.enter('active', `version ${draft.rollout.version} is active on ${serversText(servers.length)}`);
    return;
  }
  const message = `${failed} of ${serversText(servers.length)} did not activate version ${draft.rollout.version}`;
  draft.enter('failed', message, message);
}
