import { serversText } from '../planner/amounts.ts';
import { Draft } from './draft.ts';
import {
  endReceive,
  failServer,
  held,
  letGo,
  prepare,
  prepared,
  prepareFailed,
  receiver,
  receiverFailed,
  slow,
  useLane,
} from './servers.ts';
import {
  close,
  closeWhenDone,
  failTransfer,
  install,
  installed,
  relabelled,
  removeTransfer,
  replaced,
  senderClosed,
  sent,
  shrunk,
  startWhenReady,
  stopSender,
  tooNarrow,
} from './stripes.ts';
import {
  hasEnded,
  isInstalled,
  isSettled,
  type Rollout,
  type RolloutInput,
  type ServerProgress,
  type Step,
  type TimerKey,
  verifiedCount,
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
      failTransfer(draft, input.label, `the switches did not take it: ${input.error}`, 'replaceable');
      break;
    case 'prepared':
      prepared(draft, input.server, input.label);
      break;
    case 'prepare-failed':
      prepareFailed(draft, input.server, input.label, input.error, input.retry);
      break;
    case 'send-failed':
    case 'sender-failed':
      failTransfer(draft, input.label, input.error, 'replaceable');
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
    case 'slow':
      slow(draft, input.server, input.label, input.why);
      break;
    case 'shrunk':
      shrunk(draft, input.label, input.tree);
      break;
    case 'replaced':
      replaced(draft, input.label, input.by);
      break;
    case 'too-narrow':
      tooNarrow(draft, input.label, input.segmentBytes);
      break;
    case 'relabelled':
      relabelled(draft, input.receive, input.segmentBytes, input.labels);
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

// ---- start

function start(draft: Draft): void {
  const { rollout } = draft;
  if (rollout.state !== 'queued') return;
  draft.do({ type: 'timer', key: 'deadline', afterUs: rollout.limits.deadlineUs });
  draft.do({ type: 'timer', key: 'limit', afterUs: rollout.limits.limitUs });
  const { length } = rollout.transfers;
  const transfers = length === 1 ? '1 transfer' : `${length} transfers`;
  draft.enter('planned', `${serversText(Object.keys(rollout.servers).length)}, ${transfers}`);
  for (const { label } of rollout.transfers) install(draft, label);
  for (const [name, server] of draft.servers()) if (!isSettled(server)) prepare(draft, name);
}

// ---- agents that come and go

function attached(draft: Draft, agent: string, restarted: boolean, heldVersions: readonly number[]): void {
  for (const transfer of draft.rollout.transfers) {
    if (transfer.tree.source !== agent || !isInstalled(transfer)) continue;
    draft.do({ type: 'cancel-timer', key: `source:${transfer.label}` });
    const streaming = transfer.phase !== 'installing' && transfer.phase !== 'preparing';
    if (restarted && streaming) failTransfer(draft, transfer.label, `${agent} restarted`, 'replaceable');
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
    if (transfer.tree.source === agent && isInstalled(transfer))
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
    failTransfer(draft, label, 'the switches did not take the tree in time', 'replaceable');
  if (kind === 'prepare') startWhenReady(draft, label, true);
  if (kind === 'close' && transfer.phase === 'closing') removeTransfer(draft, label, 'closed');
  if (kind === 'source' && isInstalled(transfer))
    failTransfer(draft, label, `${transfer.tree.source} is gone`, 'replaceable');
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
  const { rule } = draft.rollout.rules.end;
  if (rule === 'deadline') for (const [name] of open) letGo(draft, name, 'not verified at the deadline');
  else {
    if (open.length > 0) draft.note('note', `the deadline has passed: ${serversText(open.length)} go on by unicast`);
    for (const [name, server] of open) if (!server.attached) failServer(draft, name, 'not attached at the deadline');
  }
  for (const { label, phase } of draft.rollout.transfers) {
    if (phase === 'installing' || phase === 'preparing')
      failTransfer(draft, label, 'not started at the deadline', 'for-good');
    if (phase === 'sending' || phase === 'sent') close(draft, label);
  }
}

function limit(draft: Draft): void {
  const seconds = Math.round((draft.nowUs - draft.rollout.startedAtUs) / 1e6);
  for (const [name, server] of draft.servers()) {
    if (isSettled(server)) continue;
    letGo(draft, name, `not verified after ${seconds} s`);
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

// ---- what follows from what has happened

function advance(draft: Draft): void {
  letGoAtQuorum(draft);
  for (const receive of new Set(draft.rollout.transfers.map((transfer) => transfer.receive)))
    closeWhenDone(draft, receive);
  for (const { label } of draft.rollout.transfers) startWhenReady(draft, label, false);
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

/** With enough servers that have the version, the rollout does not wait for the others. */
function letGoAtQuorum(draft: Draft): void {
  const { state, rules } = draft.rollout;
  const { rule, servers: quorum } = rules.end;
  if (rule !== 'quorum' || quorum === undefined || (state !== 'distributing' && state !== 'verifying')) return;
  if (verifiedCount(draft.rollout) < quorum) return;
  for (const [name, server] of draft.servers())
    if (!isSettled(server)) letGo(draft, name, `${serversText(quorum)} had the version before it did`);
}

/** Whether all that this server needs has been sent to it once, or it has it. */
function hasEverything(draft: Draft, server: ServerProgress): boolean {
  if (isSettled(server) || server.state === 'reconstructing') return true;
  const stripes = draft.stripes(server.label);
  return (
    stripes.length > 0 && stripes.every(({ phase }) => phase === 'sent' || phase === 'closing' || phase === 'closed')
  );
}

function stage(draft: Draft, servers: readonly ServerProgress[]): void {
  const { rules, version } = draft.rollout;
  const failed = servers.filter((server) => server.state === 'failed').length;
  const verified = servers.length - failed;
  if (failed > 0 && verified < wanted(draft.rollout)) {
    const message = `${failed} of ${serversText(servers.length)} failed, ${verified} verified; nothing was activated`;
    draft.enter('failed', message, message);
    return;
  }
  const who =
    failed === 0
      ? `all ${serversText(servers.length)}`
      : `${verified} of ${serversText(servers.length)} (${rules.end.rule})`;
  draft.enter('staged', `${who} hold version ${version}`);
  draft.do({ type: 'timer', key: 'activate', afterUs: draft.rollout.limits.activateUs });
  for (const [name, server] of draft.servers())
    if (server.state === 'verified' && server.attached) draft.do({ type: 'activate', server: name });
}

function finishWhenActive(draft: Draft): void {
  const servers = Object.values(draft.rollout.servers);
  if (servers.some((server) => server.state === 'verified')) return;
  const active = servers.filter((server) => server.state === 'active').length;
  const others = servers.length - active;
  const { version } = draft.rollout;
  if (active < wanted(draft.rollout)) {
    const message = `${others} of ${serversText(servers.length)} did not activate version ${version}`;
    draft.enter('failed', message, message);
    return;
  }
  const without = others === 0 ? '' : `; ${others} do not have it`;
  draft.enter('active', `version ${version} is active on ${serversText(active)}${without}`);
}

/** How many servers have to have the version for the rollout to have what it wants. */
function wanted({ servers, rules: { end } }: Rollout): number {
  if (end.rule === 'all') return Object.keys(servers).length;
  return end.rule === 'quorum' ? (end.servers ?? 1) : 1;
}
