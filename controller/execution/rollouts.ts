import { DdfError } from '../../base/errors.ts';
import type { Random } from '../../base/random.ts';
import { type ObjectVersion, TransferState, type TransferStatus } from '../../wire/agent/messages.ts';
import type { AttachedAgent } from '../agents/hello.ts';
import type { ClaimOutcome } from '../directory/directory.ts';
import { makePlan } from '../planner/planner.ts';
import { deadlineOf, rulesOf } from '../planner/request.ts';
import type { ExecutablePlan, FabricState } from '../planner/types.ts';
import { createRollout, labelsNeeded, limitsFor } from '../rollout/create.ts';
import { hasEnded, isSettled, verifiedCount } from '../rollout/types.ts';
import type { RolloutEvent, RolloutRequest, RolloutView, TransferView } from '../service.ts';
import { linkKey, planTree } from '../topology/trees.ts';
import type { ExecutionContext } from './context.ts';
import { EventLog } from './event-log.ts';
import { type RolloutRecord, rolloutView, transferViews } from './record.ts';
import { RolloutRunner } from './runner.ts';

const END_TIMEOUT_US = 10_000_000;
const RESTART_ERROR =
  'the controller was restarted while the rollout was running; start it again: who has verified the version is sent nothing';

/** All rollouts, running and past. */
export class Rollouts {
  private readonly context: ExecutionContext;
  private readonly random: Random;
  private readonly running = new Map<string, RolloutRunner>();
  private readonly past = new Map<string, RolloutRecord>();
  /** `agent label` pairs whose transfer is being ended because nobody knows it any more. */
  private readonly strays = new Set<string>();

  /** Takes up what the database has: a rollout that was running has failed, with the reason. */
  constructor(context: ExecutionContext, random: Random) {
    this.context = context;
    this.random = random;
    for (const { id, record } of context.rollouts.load()) {
      const known = record as RolloutRecord;
      this.past.set(id, hasEnded(known.rollout) ? known : this.failAfterRestart(known));
    }
  }

  /** @throws DdfError as {@link makePlan} */
  plan(request: RolloutRequest): ExecutablePlan {
    return makePlan(request, this.context.directory, this.fabricState());
  }

  /**
   * @returns the new rollout, or one that is running for the same object and version and all of these servers
   * @throws DdfError as {@link makePlan}; CONFLICT when a server takes part in another rollout of the object
   */
  start(request: RolloutRequest): RolloutView {
    const { context } = this;
    const plan = this.plan(request);
    const rules = rulesOf(request, plan.view.targets);
    const targets = plan.view.cohorts.flatMap((cohort) => cohort.servers);
    for (const runner of this.running.values()) {
      if (runner.plan.objectId !== plan.objectId) continue;
      const { servers } = runner.rollout;
      const shared = targets.filter((server) => Object.hasOwn(servers, server));
      if (shared.length === 0) continue;
      const sameVersion = runner.plan.version.version === plan.version.version;
      if (sameVersion && shared.length === targets.length) return rolloutView(runner.record);
      throw new DdfError(
        'CONFLICT',
        `${shared[0]} takes part in rollout ${runner.rollout.id} of version ${runner.plan.version.version}`,
        { where: 'servers', remedy: 'Wait for its end, or abort it.', recoverable: true },
      );
    }
    const rollout = createRollout({
      id: `r${this.random.uint32().toString(16).padStart(8, '0')}`,
      plan,
      firstLabel: context.labels.takeLabels(labelsNeeded(plan)),
      limits: limitsFor(Math.ceil(deadlineOf(request) * 1e6), Math.ceil(rules.start.withinSeconds! * 1e6)),
      rules,
      segmentBytes: context.segmentBytes,
      nowUs: Math.round(1000 * context.nowMs()),
      attached: (server) => context.agents.find(server) !== undefined,
    });
    const runner: RolloutRunner = new RolloutRunner(context, plan, rollout, () => this.ended(runner));
    this.running.set(rollout.id, runner);
    runner.start();
    return rolloutView(runner.record);
  }

  /** Newest first. */
  list(): RolloutView[] {
    const records = [...this.past.values(), ...[...this.running.values()].map((runner) => runner.record)];
    return records
      .sort((a, b) => (a.startedAt < b.startedAt ? 1 : a.startedAt > b.startedAt ? -1 : 0))
      .map(rolloutView);
  }

  /** @throws DdfError NOT_FOUND */
  view(id: string): RolloutView {
    return rolloutView(this.record(id));
  }

  /** Aborting one that has ended otherwise is a conflict; aborting twice is not. @throws DdfError NOT_FOUND, CONFLICT */
  abort(id: string): RolloutView {
    this.running.get(id)?.abort('aborted by request');
    const view = this.view(id);
    if (view.state !== 'aborted')
      throw new DdfError('CONFLICT', `rollout ${id} has ended: it is ${view.state}`, {
        where: id,
        remedy: 'Only a rollout that is running can be aborted.',
      });
    return view;
  }

  /** @throws DdfError NOT_FOUND */
  events(id: string, afterId: number, signal: AbortSignal): AsyncIterable<RolloutEvent> {
    this.record(id);
    const log = this.running.get(id)?.log ?? new EventLog(this.context.rollouts.eventsAfter(id, afterId), true);
    return log.after(afterId, signal);
  }

  /** Transfers that are under way. */
  transfers(): TransferView[] {
    return [...this.running.values()].flatMap((runner) =>
      transferViews(runner.rollout, runner.record.counters).filter(
        (view) => view.state !== 'closed' && view.state !== 'failed',
      ),
    );
  }

  /** How many transfers an agent sends now. */
  load(agent: string): number {
    return this.transfers().filter((transfer) => transfer.source === agent).length;
  }

  /** Rollouts by state, for metrics. */
  countByState(): Map<string, number> {
    const counts = new Map<string, number>();
    for (const { state } of this.list()) counts.set(state, (counts.get(state) ?? 0) + 1);
    return counts;
  }

  attached(agent: AttachedAgent, restarted: boolean): void {
    for (const runner of [...this.running.values()]) runner.attached(agent, restarted);
  }

  detached(agent: string): void {
    for (const runner of [...this.running.values()]) runner.detached(agent);
  }

  held(agent: string, { objectId, version }: ObjectVersion, outcome: ClaimOutcome): void {
    for (const runner of [...this.running.values()]) {
      if (runner.plan.objectId !== objectId || runner.plan.version.version !== version) continue;
      if (outcome === 'recorded') runner.held(agent);
      else if (outcome === 'mismatch') runner.mismatch(agent);
    }
  }

  status(agent: string, status: TransferStatus): void {
    const runner = [...this.running.values()].find((candidate) => candidate.owns(status.label));
    if (runner === undefined) this.endStray(agent, status);
    else runner.status(agent, status);
  }

  /** Writes everything down; what was running is found as interrupted by the next start. */
  stop(): void {
    for (const runner of this.running.values()) runner.suspend();
    this.running.clear();
  }

  private fabricState(): FabricState {
    const { graph, agents, rates } = this.context;
    return {
      graph,
      attached: (agent) => agents.find(agent) !== undefined,
      load: (agent) => this.load(agent),
      planTree: (source, receivers, planned) => {
        const loads = rates.loads();
        for (const hop of planned.flatMap((tree) => tree.coreLinks))
          loads.set(linkKey(hop), (loads.get(linkKey(hop)) ?? 0) + 1);
        return planTree(graph, source, receivers, loads);
      },
    };
  }

  private record(id: string): RolloutRecord {
    const record = this.running.get(id)?.record ?? this.past.get(id);
    if (record === undefined)
      throw new DdfError('NOT_FOUND', `there is no rollout "${id}"`, {
        where: 'rollout',
        remedy: 'GET /v1/rollouts lists them.',
      });
    return record;
  }

  private ended(runner: RolloutRunner): void {
    this.running.delete(runner.rollout.id);
    this.past.set(runner.rollout.id, runner.record);
  }

  /** An agent works on a transfer whose rollout is over, here or in an earlier life of the controller. */
  private endStray(agent: string, { label, state }: TransferStatus): void {
    const isOver = state === TransferState.CLOSED || state === TransferState.FAILED || state === TransferState.VERIFIED;
    const key = `${agent} ${label}`;
    if (isOver || this.strays.has(key)) return;
    this.strays.add(key);
    this.context.agents
      .request(agent, { endTransfer: { label, complete: false } }, END_TIMEOUT_US)
      .catch(() => {})
      .finally(() => this.strays.delete(key));
  }

  private failAfterRestart(record: RolloutRecord): RolloutRecord {
    const { nowMs, rollouts } = this.context;
    const at = new Date(nowMs()).toISOString();
    const seconds = (nowMs() - Date.parse(record.startedAt)) / 1000;
    const spent = record.rollout.phases.reduce((sum, phase) => sum + phase.seconds, 0);
    const failed: RolloutRecord = {
      ...record,
      endedAt: at,
      rollout: {
        ...record.rollout,
        state: 'failed',
        error: RESTART_ERROR,
        phases: [...record.rollout.phases, { state: record.rollout.state, seconds: Math.max(0, seconds - spent) }],
        servers: Object.fromEntries(
          Object.entries(record.rollout.servers).map(([name, server]) => [
            name,
            isSettled(server) ? server : { ...server, state: 'failed', error: 'the controller was restarted' },
          ]),
        ),
        // Their entries are gone from the switches: nobody wants them there any more.
        transfers: record.rollout.transfers.map((transfer) =>
          transfer.phase === 'closed' ? transfer : { ...transfer, phase: 'failed' },
        ),
      },
    };
    const { id } = record.rollout;
    const event: RolloutEvent = {
      id: (rollouts.eventsAfter(id, 0).at(-1)?.id ?? 0) + 1,
      at,
      type: 'state',
      message: RESTART_ERROR,
      state: 'failed',
      verified: verifiedCount(failed.rollout),
      total: record.plan.targets,
    };
    rollouts.save(id, record.startedAt, true, failed, [event]);
    return failed;
  }
}
