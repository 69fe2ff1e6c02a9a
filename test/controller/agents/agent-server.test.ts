import { afterEach, beforeEach, expect, it } from 'vitest';
import { VirtualScheduler } from '../../../base/clock.ts';
import { DdfError } from '../../../base/errors.ts';
import { createLogger } from '../../../base/logger.ts';
import { type AgentListener, AgentServer } from '../../../controller/agents/agent-server.ts';
import type { AttachedAgent } from '../../../controller/agents/hello.ts';
import { AgentKind, TransferState } from '../../../wire/agent/messages.ts';
import { leafSpine } from '../planner/fixture.ts';
import { FakeAgent, helloOf } from './fake-agent.ts';

const topology = leafSpine();
let scheduler: VirtualScheduler;
let server: AgentServer;
let address: string;
let log: string[];
let waiting: (() => void)[];
let agents: FakeAgent[];
let onAttaching: (agent: AttachedAgent) => void;

function note(text: string): void {
  log.push(text);
  for (const resolve of waiting.splice(0)) resolve();
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise<void>((resolve) => waiting.push(resolve));
}

async function attach(name: string, change = {}): Promise<FakeAgent> {
  const agent = await FakeAgent.attach(address, helloOf(topology, name, change));
  agents.push(agent);
  return agent;
}

beforeEach(async () => {
  scheduler = new VirtualScheduler();
  log = [];
  waiting = [];
  agents = [];
  onAttaching = () => {};
  const listener: AgentListener = {
    attaching: (agent) => {
      onAttaching(agent);
      return { restarted: false };
    },
    attached: (agent) => note(`attached ${agent.name} ${agent.incarnation}`),
    detached: (agent) => note(`detached ${agent.name} ${agent.incarnation}`),
    transferStatus: (agent, status) => note(`status ${agent.name} ${status.label} ${status.state}`),
    versionHeld: (agent, claim) => note(`held ${agent.name} ${claim.version}`),
    versionDropped: (agent, { version }) => note(`dropped ${agent.name} ${version}`),
  };
  server = new AgentServer({ topology, controllerId: 'c1', scheduler, logger: createLogger('silent'), listener });
  address = await server.listen('127.0.0.1:0');
});
afterEach(async () => {
  for (const agent of agents) agent.close();
  await server.stop();
});

it('welcomes an agent and hears what it reports, in order', async () => {
  const agent = await attach('gpu01', {
    held: [{ objectId: 5n, version: 3, sizeBytes: 10n, rootSha256: new Uint8Array(32) }],
  });
  expect(agent.heard[0]).toMatchObject({ welcome: { controllerId: 'c1' } });
  expect(server.find('gpu01')).toMatchObject({ kind: 'gpu-server', incarnation: 1n, held: [{ version: 3 }] });
  agent.send({ transferStatus: { label: 9, state: TransferState.RECEIVING } });
  agent.send({ versionHeld: { objectId: 5n, version: 4, sizeBytes: 10n, rootSha256: new Uint8Array(32) } });
  agent.send({ versionDropped: { objectId: 5n, version: 3 } });
  await until(() => log.length === 4);
  expect(log).toEqual(['attached gpu01 1', 'status gpu01 9 3', 'held gpu01 4', 'dropped gpu01 3']);
});

it.each([
  ['a host that the topology has not', { agentId: 'gpu99' }, 'NOT_FOUND'],
  ['the wrong kind', { kind: AgentKind.MEMORY_NODE }, 'INVALID_REQUEST'],
  ['another address', { fabricIp: '10.9.9.9' }, 'INVALID_REQUEST'],
  ['a receiver outside the range', { receiverPort: 4000 }, 'INVALID_REQUEST'],
  ['no URL', { rangeUrl: 'not a url' }, 'INVALID_REQUEST'],
  [
    'a root that is none',
    { held: [{ objectId: 1n, version: 1, sizeBytes: 1n, rootSha256: new Uint8Array(3) }] },
    'INVALID_REQUEST',
  ],
])('refuses %s', async (_, change, code) => {
  const agent = await attach('gpu01', change);
  expect(agent.refusal).toBe(code);
  await agent.until(() => agent.ended);
  expect(log).toEqual([]);
});

it('refuses a first message that is no hello', async () => {
  const agent = new FakeAgent(address);
  agents.push(agent);
  agent.send({ reply: { requestId: 1n } });
  agent.send({ reply: { requestId: 2n } });
  await agent.until(() => agent.ended);
  expect(agent.refusal).toBe('INVALID_REQUEST');
});

it('refuses whom the listener refuses', async () => {
  onAttaching = () => {
    throw new DdfError('CONFLICT', 'stale');
  };
  expect((await attach('gpu01')).refusal).toBe('CONFLICT');
  expect(server.find('gpu01')).toBeUndefined();
});

it('replaces an older incarnation, tells it so, and reports no detachment', async () => {
  const old = await attach('gpu01', { incarnation: 5n });
  const fresh = await attach('gpu01', { incarnation: 6n });
  await old.until(() => old.ended);
  expect(old.refusal).toBe('CONFLICT');
  expect(fresh.welcomed).toBe(true);
  expect(log).toEqual(['attached gpu01 5', 'attached gpu01 6']);
  expect(server.find('gpu01')?.incarnation).toBe(6n);
});

it('refuses an older incarnation and keeps the newer one', async () => {
  await attach('gpu01', { incarnation: 6n });
  expect((await attach('gpu01', { incarnation: 5n })).refusal).toBe('CONFLICT');
  expect(server.find('gpu01')?.incarnation).toBe(6n);
});

it('lets the same incarnation come back on a new stream', async () => {
  const first = await attach('gpu01');
  const second = await attach('gpu01');
  await first.until(() => first.ended);
  expect(first.refusal).toBeUndefined();
  expect(second.welcomed).toBe(true);
  second.close();
  await until(() => log.includes('detached gpu01 1'));
  expect(server.find('gpu01')).toBeUndefined();
});

it('matches replies to requests, whatever their order', async () => {
  const agent = await attach('gpu01');
  agent.answer = () => undefined;
  const first = server.request('gpu01', { activateVersion: { objectId: 1n, version: 1 } }, 1000);
  const second = server.request('gpu01', { activateVersion: { objectId: 1n, version: 2 } }, 1000);
  await agent.until(() => agent.requests.length === 2);
  const [a, b] = agent.requests;
  agent.send({ reply: { requestId: 77n } });
  agent.send({
    reply: {
      requestId: b!.requestId,
      error: { code: 'NO_SPACE', message: 'full', where: 'disk', remedy: 'Delete something.' },
    },
  });
  agent.send({ reply: { requestId: a!.requestId } });
  await expect(second).rejects.toMatchObject({ code: 'NO_SPACE', where: 'gpu01: disk' });
  await expect(first).resolves.toMatchObject({ requestId: a!.requestId });
});

it('gives a code that it does not know as AGENT_FAILED', async () => {
  const agent = await attach('gpu01');
  agent.answer = () => ({ error: { code: 'STRANGE', message: 'odd' } });
  await expect(server.request('gpu01', { endTransfer: { label: 1 } }, 1000)).rejects.toMatchObject({
    code: 'AGENT_FAILED',
  });
});

it('ends a request that gets no reply, by time, by disconnect, or because nobody is there', async () => {
  await expect(server.request('gpu02', {}, 1000)).rejects.toMatchObject({
    code: 'AGENT_UNREACHABLE',
    recoverable: true,
  });
  const agent = await attach('gpu01');
  agent.answer = () => undefined;
  const slow = server.request('gpu01', { endTransfer: { label: 1 } }, 2_000_000);
  await agent.until(() => agent.requests.length === 1);
  scheduler.runUntil(2_000_000);
  await expect(slow).rejects.toMatchObject({ code: 'TIMEOUT', recoverable: true, where: 'endTransfer' });
  const lost = server.request('gpu01', { endTransfer: { label: 1 } }, 2_000_000);
  agent.close();
  await expect(lost).rejects.toMatchObject({ code: 'AGENT_UNREACHABLE' });
});

it('cuts an agent off that reports nonsense: it starts over with its next hello', async () => {
  const agent = await attach('gpu01');
  agent.send({ versionHeld: { objectId: 5n, version: 4, sizeBytes: 10n, rootSha256: new Uint8Array(1) } });
  await agent.until(() => agent.ended);
  expect(log).toEqual(['attached gpu01 1', 'detached gpu01 1']);
});

it('ends a stream that never says hello', async () => {
  const agent = new FakeAgent(address);
  agents.push(agent);
  // The server learns of the stream some time after it was opened here.
  while (!agent.ended) {
    await new Promise((resolve) => setTimeout(resolve, 5));
    scheduler.runUntil(scheduler.nowUs() + 11_000_000);
  }
});

it('says that an address is in use', async () => {
  const other = new AgentServer({
    topology,
    controllerId: 'c2',
    scheduler,
    logger: createLogger('silent'),
    listener: {
      attaching: () => ({ restarted: true }),
      attached() {},
      detached() {},
      transferStatus() {},
      versionHeld() {},
      versionDropped() {},
    },
  });
  await expect(other.listen(address)).rejects.toMatchObject({ code: 'ADDRESS_IN_USE', where: address });
  await other.stop();
});
