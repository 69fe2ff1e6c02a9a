import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { makePlan } from '../../../controller/planner/planner.ts';
import { createRollout, labelsNeeded, limitsFor } from '../../../controller/rollout/create.ts';
import { step } from '../../../controller/rollout/machine.ts';
import {
  type Effect,
  hasEnded,
  type Rollout,
  type RolloutInput,
  type RolloutRules,
  verifiedCount,
} from '../../../controller/rollout/types.ts';
import { World } from '../planner/fixture.ts';

const LANE_FULL = 100;
const LANE_DELTA = 101;
const DELTA = 102;
const FULL = 103;
const [CURRENT, OLD_1, OLD_2, EMPTY_1, EMPTY_2] = ['gpu01', 'gpu06', 'gpu07', 'gpu08', 'gpu16'] as const;
const SERVERS = [CURRENT, OLD_1, OLD_2, EMPTY_1, EMPTY_2];

/** Drives the machine and checks what must hold after every step. */
class Run {
  rollout: Rollout;
  readonly effects: Effect[] = [];
  private readonly installed = new Set<number>();
  private nowUs = 0;

  /** @param stripes of the full image; the plan of this fabric has one */
  constructor(
    servers: readonly string[] = SERVERS,
    world = World.example(),
    stripes = 1,
    rules: RolloutRules = { start: { rule: 'all' }, end: { rule: 'all' } },
  ) {
    const made = makePlan({ object: 'models/demo', version: 22, servers: [...servers] }, world.directory, world.fabric);
    const plan = {
      ...made,
      cohorts: made.cohorts.map((cohort) =>
        cohort.kind === 'full' ? { ...cohort, trees: Array(stripes).fill(cohort.trees[0]!) } : cohort,
      ),
    };
    if (stripes === 1)
      expect(labelsNeeded(plan)).toBe(
        plan.cohorts.filter((c) => c.kind !== 'current').length * 2 +
          (plan.cohorts.some((c) => c.kind === 'full') ? 0 : 1),
      );
    this.rollout = createRollout({
      id: 'r1',
      plan,
      firstLabel: LANE_FULL,
      limits: limitsFor(60_000_000),
      rules,
      segmentBytes: 8192,
      nowUs: 0,
      attached: (name) => !world.detached.has(name),
    });
  }

  send(...inputs: RolloutInput[]): Effect[] {
    const added: Effect[] = [];
    for (const input of inputs) {
      const before = structuredClone(this.rollout);
      const ended = hasEnded(this.rollout);
      const result = step(this.rollout, input, this.nowUs);
      this.nowUs += 1000;
      expect(this.rollout).toEqual(before);
      if (ended) expect(result).toEqual({ rollout: before, effects: [] });
      for (const effect of result.effects) {
        if (effect.type === 'install') this.installed.add(effect.label);
        if (effect.type === 'remove') expect(this.installed.delete(effect.label)).toBe(true);
        // Nobody is told to send or to receive what is not in the switches.
        if (effect.type === 'start-send') expect(this.installed.has(effect.label)).toBe(true);
      }
      this.rollout = result.rollout;
      if (hasEnded(this.rollout)) expect([...this.installed]).toEqual([]);
      // Survives a restart: the value is JSON.
      expect(JSON.parse(JSON.stringify(this.rollout))).toEqual(this.rollout);
      added.push(...result.effects);
      this.effects.push(...result.effects);
    }
    return added;
  }

  /** To the point where both transfers send. */
  sending(): this {
    this.send({ type: 'start' });
    for (const { label } of this.rollout.transfers) this.send({ type: 'installed', label });
    for (const [name, server] of Object.entries(this.rollout.servers))
      if (server.label !== 0) this.send({ type: 'prepared', server: name, label: server.label });
    return this;
  }

  closed(...labels: number[]): this {
    for (const label of labels) this.send({ type: 'sender', label, phase: 'closed' });
    return this;
  }

  held(...servers: string[]): this {
    for (const server of servers) this.send({ type: 'held', server });
    return this;
  }

  activate(...servers: string[]): this {
    for (const server of servers) this.send({ type: 'activated', server });
    return this;
  }

  of<T extends Effect['type']>(type: T, effects: readonly Effect[] = this.effects): Extract<Effect, { type: T }>[] {
    return effects.filter((e): e is Extract<Effect, { type: T }> => e.type === type);
  }
}

const failed = (server: string, label: number): RolloutInput => ({
  type: 'receiver-failed',
  server,
  label,
  error: 'disk full',
});
const attached = (agent: string, restarted: boolean, held: number[] = []): RolloutInput => ({
  type: 'attached',
  agent,
  restarted,
  held,
});

describe('the straight way', () => {
  it('installs, prepares, sends, verifies, closes, activates', () => {
    const run = new Run();
    expect(run.of('install', run.send({ type: 'start' })).map((e) => e.label)).toEqual([DELTA, FULL]);
    expect(run.rollout.state).toBe('planned');
    const prepares = run.send({ type: 'installed', label: DELTA }, { type: 'installed', label: FULL });
    expect(run.of('prepare', prepares).map((e) => [e.server, e.label])).toEqual([
      [OLD_1, DELTA],
      [OLD_2, DELTA],
      [EMPTY_1, FULL],
      [EMPTY_2, FULL],
    ]);
    expect(run.rollout.state).toBe('distributing');
    expect(run.of('start-send')).toEqual([]);
    run.send({ type: 'prepared', server: OLD_1, label: DELTA });
    expect(run.of('start-send', run.send({ type: 'prepared', server: OLD_2, label: DELTA }))).toHaveLength(1);
    run.send({ type: 'prepared', server: EMPTY_1, label: FULL }, { type: 'prepared', server: EMPTY_2, label: FULL });
    run.send({ type: 'sender', label: DELTA, phase: 'sent' }, { type: 'sender', label: FULL, phase: 'sent' });
    expect(run.rollout.state).toBe('verifying');
    run.held(OLD_1, OLD_2);
    expect(run.of('end-send')).toEqual([{ type: 'end-send', label: DELTA, complete: true }]);
    run.held(EMPTY_1, EMPTY_2);
    expect(run.rollout.state).toBe('verifying');
    run.closed(DELTA, FULL);
    expect(run.rollout.state).toBe('staged');
    expect(verifiedCount(run.rollout)).toBe(5);
    expect(run.of('activate').map((e) => e.server)).toEqual(SERVERS);
    run.activate(...SERVERS);
    expect(run.rollout.state).toBe('active');
    expect(run.rollout.phases.map((p) => p.state)).toEqual([
      'queued',
      'planned',
      'distributing',
      'verifying',
      'staged',
    ]);
  });

  it('goes straight to activation when nobody needs anything', () => {
    const run = new Run([CURRENT]);
    run.send({ type: 'start' });
    expect(run.rollout.state).toBe('staged');
    run.activate(CURRENT);
    expect(run.rollout.state).toBe('active');
    expect(run.of('install')).toEqual([]);
  });

  it('removes a transfer whose sender does not say goodbye', () => {
    const run = new Run().sending().held(OLD_1, OLD_2, EMPTY_1, EMPTY_2).closed(FULL);
    run.send({ type: 'timer', key: `close:${DELTA}` });
    expect(run.rollout.state).toBe('staged');
  });
});

describe('servers that are slow, away, or die', () => {
  it('does not let an absent server stall the start', () => {
    const world = World.example();
    world.detached.add(EMPTY_2);
    const run = new Run(SERVERS, world);
    run.sending();
    expect(run.of('start-send').map((e) => e.label)).toEqual([DELTA, FULL]);
    expect(run.rollout.servers[EMPTY_2]!.state).toBe('waiting');
    // It comes while the stream runs: same label.
    expect(run.of('prepare', run.send(attached(EMPTY_2, true)))).toEqual([
      { type: 'prepare', server: EMPTY_2, label: FULL },
    ]);
  });

  it('starts without those who do not answer in time', () => {
    const run = new Run();
    run.send({ type: 'start' }, { type: 'installed', label: FULL }, { type: 'prepared', server: EMPTY_1, label: FULL });
    expect(run.of('start-send')).toEqual([]);
    run.send({ type: 'timer', key: `prepare:${FULL}` });
    expect(run.of('start-send')).toEqual([{ type: 'start-send', label: FULL }]);
  });

  it('starts at once when the last one it waits for goes another way', () => {
    const run = new Run();
    run.send({ type: 'start' }, { type: 'installed', label: DELTA }, { type: 'prepared', server: OLD_1, label: DELTA });
    const error = 'base damaged';
    const effects = run.send({ type: 'prepare-failed', server: OLD_2, label: DELTA, error, retry: false });
    expect(run.of('start-send', effects)).toEqual([{ type: 'start-send', label: DELTA }]);
    expect(run.of('prepare', effects)).toEqual([{ type: 'prepare', server: OLD_2, label: LANE_FULL }]);
  });

  it('gives a tree up that nobody was ready for', () => {
    const run = new Run();
    run.send({ type: 'start' }, { type: 'installed', label: FULL });
    const effects = run.send({ type: 'timer', key: `prepare:${FULL}` });
    expect(run.of('remove', effects)).toEqual([{ type: 'remove', label: FULL }]);
    expect(run.of('prepare', effects).map((e) => e.label)).toEqual([LANE_FULL, LANE_FULL]);
  });

  it('prepares a killed server again under the same label while the transfer lives', () => {
    const run = new Run().sending();
    run.send({ type: 'detached', agent: EMPTY_1 });
    const effects = run.send(attached(EMPTY_1, true));
    expect(run.of('prepare', effects)).toEqual([{ type: 'prepare', server: EMPTY_1, label: FULL }]);
  });

  it('lets a killed server read by unicast once the transfer is over', () => {
    const run = new Run().sending();
    run.send({ type: 'detached', agent: EMPTY_1 });
    run.closed(FULL);
    const effects = run.send(attached(EMPTY_1, true));
    expect(run.of('prepare', effects)).toEqual([{ type: 'prepare', server: EMPTY_1, label: LANE_FULL }]);
    run.send({ type: 'prepared', server: EMPTY_1, label: LANE_FULL });
    run.held(OLD_1, OLD_2, EMPTY_1, EMPTY_2).closed(DELTA);
    expect(run.rollout.state).toBe('staged');
  });

  it('does not ask again when only the connection was lost', () => {
    const run = new Run().sending();
    run.send({ type: 'detached', agent: EMPTY_1 });
    expect(run.of('prepare', run.send(attached(EMPTY_1, false)))).toEqual([]);
  });

  it('takes what hello proves', () => {
    const run = new Run().sending();
    run.send({ type: 'detached', agent: EMPTY_1 }, attached(EMPTY_1, false, [22]));
    expect(run.rollout.servers[EMPTY_1]!.state).toBe('verified');
  });

  it('gives the full image to a server that has lost the base', () => {
    const run = new Run().sending();
    run.send({ type: 'detached', agent: OLD_1 });
    expect(run.of('prepare', run.send(attached(OLD_1, true, [])))).toEqual([
      { type: 'prepare', server: OLD_1, label: LANE_FULL },
    ]);
    run.send({ type: 'detached', agent: OLD_2 });
    expect(run.of('prepare', run.send(attached(OLD_2, true, [21])))).toEqual([
      { type: 'prepare', server: OLD_2, label: DELTA },
    ]);
  });

  it('gives the full image where the delta fails, and fails a server alone where that fails too', () => {
    const run = new Run().sending();
    expect(run.of('prepare', run.send(failed(OLD_1, DELTA))).map((e) => e.label)).toEqual([LANE_FULL]);
    run.send(failed(OLD_1, DELTA));
    expect(run.rollout.servers[OLD_1]!.state).toBe('waiting');
    run.send(failed(OLD_1, LANE_FULL));
    run.held(OLD_2, EMPTY_1, EMPTY_2).closed(DELTA, FULL);
    expect(run.rollout).toMatchObject({
      state: 'failed',
      error: '1 of 5 servers failed, 4 verified; nothing was activated',
    });
    expect(run.of('activate')).toEqual([]);
  });

  it('asks again after a refusal that may pass, not after one that will not', () => {
    const run = new Run();
    run.send({ type: 'start' }, { type: 'installed', label: FULL });
    const error = 'x';
    run.send({ type: 'prepare-failed', server: EMPTY_1, label: FULL, error, retry: true });
    expect(run.of('prepare', run.send({ type: 'timer', key: `retry:${EMPTY_1}` }))).toHaveLength(1);
    run.send({ type: 'prepare-failed', server: EMPTY_1, label: FULL, error, retry: false });
    expect(run.rollout.servers[EMPTY_1]).toMatchObject({ state: 'failed', error });
  });

  it('never activates a server that lost the version meanwhile', () => {
    const run = new Run().sending().held(OLD_1, OLD_2, EMPTY_1, EMPTY_2).closed(DELTA, FULL);
    run.send({ type: 'detached', agent: CURRENT }, attached(CURRENT, true, []));
    run.activate(OLD_1, OLD_2, EMPTY_1, EMPTY_2);
    expect(run.rollout.state).toBe('failed');
  });

  it('brings the version back to a current server that lost it in time', () => {
    const run = new Run().sending();
    const effects = run.send({ type: 'detached', agent: CURRENT }, attached(CURRENT, true, []));
    expect(run.of('prepare', effects)).toEqual([{ type: 'prepare', server: CURRENT, label: LANE_FULL }]);
  });
});

describe('sources', () => {
  it('waits a moment for a source whose connection is lost', () => {
    const run = new Run().sending();
    run.send({ type: 'detached', agent: 'mn1' }, attached('mn1', false));
    expect(run.of('cancel-timer')).toContainEqual({ type: 'cancel-timer', key: `source:${FULL}` });
    expect(run.rollout.transfers.map((t) => t.phase)).toEqual(['sending', 'sending']);
  });

  it.each([
    ['stays away', { type: 'timer', key: `source:${FULL}` }],
    ['restarted', attached('mn1', true)],
    ['failed', { type: 'sender-failed', label: FULL, error: 'file changed' }],
    ['refused', { type: 'send-failed', label: FULL, error: 'no such payload' }],
  ] satisfies [string, RolloutInput][])(
    'looks for another source when the source %s, and goes on by unicast',
    (_, input) => {
      const run = new Run().sending().held(EMPTY_1);
      const failure = run.send(input);
      expect(run.of('remove', failure).map((e) => e.label)).toContain(FULL);
      expect(run.of('replace', failure)).toContainEqual({ type: 'replace', label: FULL });
      const effects = run.send({ type: 'replaced', label: FULL });
      expect(run.of('prepare', effects)).toContainEqual({ type: 'prepare', server: EMPTY_2, label: LANE_FULL });
      expect(run.rollout.servers[EMPTY_1]!.state).toBe('verified');
    },
  );

  it('goes on by unicast when the switches refuse the tree', () => {
    const run = new Run();
    run.send({ type: 'start' });
    run.send({ type: 'install-failed', label: DELTA, error: 'table full' });
    const effects = run.send({ type: 'replaced', label: DELTA });
    expect(run.of('prepare', effects).map((e) => e.label)).toEqual([LANE_DELTA, LANE_DELTA]);
  });
});

describe('stripes', () => {
  it('another source takes over: receivers hear of it, and it is started when the switches have its tree', () => {
    const run = new Run().sending();
    run.send({ type: 'sender-failed', label: FULL, error: 'gone' });
    const by = { label: 200, tree: { ...run.rollout.transfers[1]!.tree, source: 'mn2' } };
    expect(run.of('install', run.send({ type: 'replaced', label: FULL, by }))).toEqual([
      { type: 'install', label: 200 },
    ]);
    const effects = run.send({ type: 'installed', label: 200 });
    expect(run.of('update-receive', effects).map((e) => [e.server, e.label])).toEqual([
      [EMPTY_1, FULL],
      [EMPTY_2, FULL],
    ]);
    expect(run.of('start-send', effects)).toEqual([{ type: 'start-send', label: 200 }]);
    run
      .held(OLD_1, OLD_2, EMPTY_1, EMPTY_2)
      .closed(DELTA, 200)
      .activate(...SERVERS);
    expect(run.rollout.state).toBe('active');
  });

  it('looks for no more sources than a few', () => {
    const run = new Run().sending();
    let label = FULL;
    for (let next = 200; run.of('replace', run.send({ type: 'sender-failed', label, error: 'x' })).length > 0; next++) {
      const by = { label: next, tree: run.rollout.transfers[1]!.tree };
      run.send({ type: 'replaced', label, by }, { type: 'installed', label: next });
      label = next;
    }
    expect(label).toBe(202);
    expect(run.rollout.servers[EMPTY_1]!.label).toBe(LANE_FULL);
  });

  it('one of two stripes that nobody can send is read by unicast, the other goes on', () => {
    const run = new Run(SERVERS, World.example(), 2);
    run.sending();
    const [, first, second] = run.rollout.transfers.map(({ label }) => label);
    expect(run.rollout.transfers.map(({ stripe }) => stripe.count)).toEqual([1, 2, 2]);
    run.send({ type: 'sender-failed', label: second!, error: 'gone' });
    const effects = run.send({ type: 'replaced', label: second! });
    expect(run.of('update-receive', effects).map((e) => e.server)).toEqual([EMPTY_1, EMPTY_2]);
    expect(run.of('end-receive', effects)).toEqual([]);
    expect(run.rollout.servers[EMPTY_1]).toMatchObject({ label: first, state: 'receiving' });
    run
      .held(OLD_1, OLD_2, EMPTY_1, EMPTY_2)
      .closed(DELTA, first!)
      .activate(...SERVERS);
    expect(run.rollout.state).toBe('active');
  });

  it('sends everything again in smaller packets where large ones do not pass', () => {
    const run = new Run().sending();
    const effects = run.send({ type: 'too-narrow', label: FULL, segmentBytes: 1376 });
    expect(run.of('relabel', effects)).toEqual([{ type: 'relabel', receive: FULL, segmentBytes: 1376, stripes: 1 }]);
    run.send({ type: 'relabelled', receive: FULL, segmentBytes: 1376, labels: [300] });
    expect(run.rollout.transfers.at(-1)).toMatchObject({ label: 300, receive: 300, segmentBytes: 1376 });
    const after = run.send({ type: 'installed', label: 300 });
    expect(run.of('prepare', after).map((e) => e.label)).toEqual([300, 300]);
  });

  it('takes a server that holds the others back out of the tree', () => {
    const run = new Run().sending();
    const effects = run.send({ type: 'slow', server: EMPTY_1, label: FULL, why: 'it lost 30 %' });
    expect(run.of('shrink', effects)).toEqual([{ type: 'shrink', label: FULL, without: EMPTY_1 }]);
    expect(run.rollout.servers[EMPTY_1]!.label).toBe(LANE_FULL);
    // The last one has nobody to hold back.
    expect(run.send({ type: 'slow', server: EMPTY_2, label: FULL, why: 'it lost 30 %' })).toEqual([]);
  });
});

describe('rules', () => {
  it('a quorum of ready receivers is enough to start', () => {
    const run = new Run(SERVERS, World.example(), 1, { start: { rule: 'quorum', servers: 1 }, end: { rule: 'all' } });
    run.send({ type: 'start' }, { type: 'installed', label: FULL });
    expect(run.of('start-send')).toEqual([]);
    run.send({ type: 'prepared', server: EMPTY_2, label: FULL });
    expect(run.of('start-send')).toEqual([{ type: 'start-send', label: FULL }]);
  });

  it('by deadline, the start waits for who is not attached as well', () => {
    const world = World.example();
    world.detached.add(EMPTY_2);
    const run = new Run(SERVERS, world, 1, { start: { rule: 'deadline' }, end: { rule: 'all' } });
    run.send({ type: 'start' }, { type: 'installed', label: FULL }, { type: 'prepared', server: EMPTY_1, label: FULL });
    expect(run.of('start-send')).toEqual([]);
    run.send({ type: 'timer', key: `prepare:${FULL}` });
    expect(run.of('start-send')).toEqual([{ type: 'start-send', label: FULL }]);
  });

  it('a quorum that has the version ends the rollout, and says who does not have it', () => {
    const run = new Run(SERVERS, World.example(), 1, { start: { rule: 'all' }, end: { rule: 'quorum', servers: 4 } });
    run.sending().held(OLD_1, OLD_2);
    expect(run.rollout.state).toBe('distributing');
    run.held(EMPTY_1);
    expect(run.rollout.servers[EMPTY_2]).toMatchObject({
      state: 'failed',
      error: '4 servers had the version before it did',
    });
    run.closed(DELTA, FULL).activate(CURRENT, OLD_1, OLD_2, EMPTY_1);
    expect(run.rollout).toMatchObject({ state: 'active', error: null });
  });

  it('by deadline, who has the version then is enough', () => {
    const run = new Run(SERVERS, World.example(), 1, { start: { rule: 'all' }, end: { rule: 'deadline' } });
    run.sending().held(OLD_1);
    run.send({ type: 'timer', key: 'deadline' });
    run.closed(DELTA, FULL).activate(CURRENT, OLD_1);
    expect(run.rollout.state).toBe('active');
    expect(run.rollout.servers[EMPTY_1]).toMatchObject({ state: 'failed', error: 'not verified at the deadline' });
  });
});

describe('ends', () => {
  it('ends transfers at the deadline and fails who never came', () => {
    const world = World.example();
    world.detached.add(EMPTY_2);
    const run = new Run(SERVERS, world).sending();
    const effects = run.send({ type: 'timer', key: 'deadline' });
    expect(run.of('end-send', effects)).toEqual([
      { type: 'end-send', label: DELTA, complete: true },
      { type: 'end-send', label: FULL, complete: true },
    ]);
    expect(run.rollout.servers[EMPTY_2]!.error).toBe('not attached at the deadline');
    run.closed(DELTA, FULL).held(OLD_1, OLD_2, EMPTY_1);
    expect(run.rollout.state).toBe('failed');
  });

  it('ends at the last limit whatever is missing', () => {
    const run = new Run().sending();
    run.send({ type: 'timer', key: 'limit' });
    expect(run.rollout).toMatchObject({ state: 'failed' });
    expect(run.rollout.error).toMatch(/^4 of 5 servers failed, 1 verified/);
  });

  it('fails who does not activate in time', () => {
    const run = new Run([CURRENT]);
    run.send({ type: 'start' });
    run.send({ type: 'activate-failed', server: CURRENT, error: 'away', retry: true });
    expect(run.of('activate', run.send({ type: 'timer', key: `retry:${CURRENT}` }))).toHaveLength(1);
    run.send({ type: 'timer', key: 'activate' });
    expect(run.rollout).toMatchObject({ state: 'failed', error: '1 of 1 server did not activate version 22' });
  });

  it.each(['queued', 'planned', 'distributing', 'staged'])('aborts in state %s and leaves no transfer', (state) => {
    const run = new Run();
    if (state !== 'queued') run.send({ type: 'start' });
    if (state === 'distributing') run.sending();
    if (state === 'staged') run.sending().held(OLD_1, OLD_2, EMPTY_1, EMPTY_2).closed(DELTA, FULL);
    expect(run.rollout.state).toBe(state);
    const effects = run.send({ type: 'abort', reason: 'asked to' });
    expect(run.rollout).toMatchObject({ state: 'aborted', error: 'asked to' });
    expect(run.of('activate', effects)).toEqual([]);
    if (state === 'distributing') {
      expect(run.of('end-send', effects).every((e) => !e.complete)).toBe(true);
      expect(run.of('end-receive', effects).map((e) => e.server)).toEqual([OLD_1, OLD_2, EMPTY_1, EMPTY_2]);
    }
  });
});

describe('whatever happens in whatever order', () => {
  const labels = fc.constantFrom(LANE_FULL, LANE_DELTA, DELTA, FULL, 7);
  const servers = fc.constantFrom(...SERVERS, 'stranger');
  const error = fc.constant('because');
  const anyInput: fc.Arbitrary<RolloutInput> = fc.oneof(
    fc.record({ type: fc.constant('start' as const) }),
    fc.record({ type: fc.constant('installed' as const), label: labels }),
    fc.record({ type: fc.constant('install-failed' as const), label: labels, error }),
    fc.record({ type: fc.constant('prepared' as const), server: servers, label: labels }),
    fc.record({
      type: fc.constant('prepare-failed' as const),
      server: servers,
      label: labels,
      error,
      retry: fc.boolean(),
    }),
    fc.record({ type: fc.constant('send-failed' as const), label: labels, error }),
    fc.record({
      type: fc.constant('sender' as const),
      label: labels,
      phase: fc.constantFrom('sent' as const, 'closed' as const),
    }),
    fc.record({ type: fc.constant('sender-failed' as const), label: labels, error }),
    fc.record({
      type: fc.constant('receiver' as const),
      server: servers,
      label: labels,
      state: fc.constantFrom('receiving' as const, 'reconstructing' as const),
      bytesDone: fc.nat(1e9),
    }),
    fc.record({ type: fc.constant('receiver-failed' as const), server: servers, label: labels, error }),
    fc.record({ type: fc.constant('held' as const), server: servers }),
    fc.record({
      type: fc.constant('attached' as const),
      agent: fc.oneof(servers, fc.constant('mn1')),
      restarted: fc.boolean(),
      held: fc.subarray([21, 22]),
    }),
    fc.record({ type: fc.constant('detached' as const), agent: fc.oneof(servers, fc.constant('mn1')) }),
    fc.record({ type: fc.constant('activated' as const), server: servers }),
    fc.record({ type: fc.constant('activate-failed' as const), server: servers, error, retry: fc.boolean() }),
    fc.record({
      type: fc.constant('timer' as const),
      key: fc.oneof(
        fc.constantFrom('deadline' as const),
        fc
          .tuple(fc.constantFrom('install', 'prepare', 'close', 'source'), labels)
          .map(([k, l]) => `${k}:${l}` as `close:${number}`),
        servers.map((s): `retry:${string}` => `retry:${s}`),
      ),
    }),
  );

  it('ends, keeps its invariants, and removes every transfer', () => {
    fc.assert(
      fc.property(fc.array(anyInput, { maxLength: 60 }), fc.boolean(), (inputs, abort) => {
        const run = new Run();
        run.send({ type: 'start' }, ...inputs);
        if (abort) run.send({ type: 'abort', reason: 'asked to' });
        else run.send({ type: 'timer', key: 'limit' }, { type: 'timer', key: 'activate' });
        expect(hasEnded(run.rollout)).toBe(true);
        const states = Object.values(run.rollout.servers).map((s) => s.state);
        if (run.rollout.state === 'active') expect(new Set(states)).toEqual(new Set(['active']));
        if (run.rollout.state === 'failed') expect(states).toContain('failed');
        const removed = run.of('remove').map((e) => e.label);
        expect([...removed].sort()).toEqual(
          run
            .of('install')
            .map((e) => e.label)
            .sort(),
        );
        run.send(...inputs);
      }),
      { seed: 11, numRuns: 200 },
    );
  });

  it('waits for nothing without a timer', () => {
    fc.assert(
      fc.property(fc.array(anyInput, { maxLength: 30 }), (inputs) => {
        const run = new Run();
        run.send({ type: 'start' });
        expect(run.of('timer').map((e) => e.key)).toEqual(
          expect.arrayContaining(['deadline', 'limit', `install:${FULL}`]),
        );
        run.send(...inputs);
        const keys = new Set(run.of('timer').map((e) => e.key));
        if (run.rollout.state === 'staged') expect(keys.has('activate')).toBe(true);
        for (const { label, phase } of run.rollout.transfers) {
          if (phase === 'preparing') expect(keys.has(`prepare:${label}`)).toBe(true);
          if (phase === 'closing') expect(keys.has(`close:${label}`)).toBe(true);
        }
      }),
      { seed: 12, numRuns: 100 },
    );
  });
});
