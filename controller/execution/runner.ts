import type { Timer } from '../../base/clock.ts';
import { type DdfError, toDdfError } from '../../base/errors.ts';
import type { PayloadId } from '../../objects/ids.ts';
import { tenantOf } from '../../objects/ids.ts';
import { type Holder, type Payload, TransferState, type TransferStatus } from '../../wire/agent/messages.ts';
import type { AttachedAgent } from '../agents/hello.ts';
import type { PayloadRecord } from '../directory/types.ts';
import { floorOf, linksOfTree, roundTripUs } from '../planner/rates.ts';
import type { ExecutablePlan } from '../planner/types.ts';
import { step } from '../rollout/machine.ts';
import {
  type Effect,
  hasEnded,
  type Rollout,
  type RolloutInput,
  type TimerKey,
  type TransferProgress,
} from '../rollout/types.ts';
import type { RolloutEvent } from '../service.ts';
import { transferState } from '../tables/desired.ts';
import type { Tree } from '../topology/trees.ts';
import type { ExecutionContext } from './context.ts';
import { EventLog } from './event-log.ts';
import type { RolloutRecord } from './record.ts';
import { TransferCounters } from './transfer-counters.ts';

const REQUEST_TIMEOUT_US = 10_000_000;
/** To agree to receive, a server may have to hash its base, or what an earlier run has left. */
const HASHING_BYTES_PER_SECOND = 100e6;
/** Progress is written at most this often; ends and starts at once. */
const FLUSH_INTERVAL_US = 100_000;
/** A transfer that only repairs leaves the links to those that still send. */
const REPAIRING_WEIGHT = 0.1;
const MAX_HOLDERS = 4;

/** Executes one rollout: gives its state machine the events and does what it says. */
export class RolloutRunner {
  readonly log: EventLog;
  readonly plan: ExecutablePlan;
  readonly startedAt: string;
  private readonly context: ExecutionContext;
  /** By the scheduler, which times the limits; the rollout itself counts wall time. */
  private readonly startedUs: number;
  private readonly onEnd: () => void;
  private current: Rollout;
  private endedAt: string | null = null;
  private readonly timers = new Map<TimerKey, Timer>();
  private readonly slots = new Map<number, number>();
  private readonly counters = new Map<number, TransferCounters>();
  private readonly unsaved: RolloutEvent[] = [];
  private flushTimer: Timer | undefined;
  private suspended = false;

  /**
   * Writes the rollout down; {@link start} starts it.
   * @param rollout in state queued
   * @param onEnd called once, when nothing more is going to happen
   */
  constructor(context: ExecutionContext, plan: ExecutablePlan, rollout: Rollout, onEnd: () => void) {
    this.context = context;
    this.plan = plan;
    this.current = rollout;
    this.onEnd = onEnd;
    this.startedUs = context.scheduler.nowUs();
    this.startedAt = new Date(context.nowMs()).toISOString();
    this.log = new EventLog([], false);
    this.flush();
  }

  get rollout(): Rollout {
    return this.current;
  }

  get record(): RolloutRecord {
    return {
      rollout: this.current,
      plan: this.plan.view,
      startedAt: this.startedAt,
      endedAt: this.endedAt,
      counters: Object.fromEntries([...this.counters].map(([label, counters]) => [label, counters.totals()])),
    };
  }

  /** Whether a label of an agent's status is this rollout's. */
  owns(label: number): boolean {
    const { transfers, lanes } = this.current;
    return transfers.some((transfer) => transfer.label === label) || lanes.some((lane) => lane.label === label);
  }

  start(): void {
    this.handle({ type: 'start' });
    this.flush();
  }

  abort(reason: string): void {
    this.handle({ type: 'abort', reason });
  }

  attached(agent: AttachedAgent, restarted: boolean): void {
    const { directory } = this.context;
    const held = directory
      .heldBy(agent.name)
      .filter((holding) => holding.objectId === this.plan.objectId)
      .map((holding) => holding.version);
    this.handle({ type: 'attached', agent: agent.name, restarted, held });
  }

  detached(agent: string): void {
    this.handle({ type: 'detached', agent });
  }

  /** The directory has recorded that the agent holds the rollout's version. */
  held(agent: string): void {
    this.handle({ type: 'held', server: agent });
  }

  /** The agent claims the rollout's version with another root. */
  mismatch(agent: string): void {
    const label = this.current.servers[agent]?.label;
    if (label !== undefined)
      this.handle({ type: 'receiver-failed', server: agent, label, error: 'it proved another root hash' });
  }

  /** What an agent says of one of this rollout's labels. */
  status(agent: string, status: TransferStatus): void {
    const { label, state } = status;
    const counters = this.counters.get(label) ?? new TransferCounters();
    this.counters.set(label, counters);
    const error = status.error?.message ?? 'it did not say why';
    if (this.current.transfers.find((transfer) => transfer.label === label)?.source === agent) {
      if (status.sender !== undefined) counters.fromSender(status.sender);
      if (state === TransferState.SENT) {
        this.applyRates(this.context.rates.reweigh(label, REPAIRING_WEIGHT));
        this.handle({ type: 'sender', label, phase: 'sent' });
      }
      if (state === TransferState.CLOSED) this.handle({ type: 'sender', label, phase: 'closed' });
      else if (state === TransferState.FAILED) this.handle({ type: 'sender-failed', label, error });
      return;
    }
    if (status.receiver !== undefined) counters.fromReceiver(agent, status.receiver);
    if (state === TransferState.FAILED) this.handle({ type: 'receiver-failed', server: agent, label, error });
    else if (
      state === TransferState.RECEIVING ||
      state === TransferState.RECONSTRUCTING ||
      state === TransferState.VERIFIED
    )
      this.handle({
        type: 'receiver',
        server: agent,
        label,
        // Verified is what the version's hash says, which comes as a message of its own.
        state: state === TransferState.RECEIVING ? 'receiving' : 'reconstructing',
        bytesDone: Number(status.bytesDone),
      });
  }

  /** Writes down what is not yet, for a controller that stops. */
  suspend(): void {
    this.suspended = true;
    for (const timer of this.timers.values()) timer.cancel();
    this.timers.clear();
    this.flush();
    this.log.end();
  }

  private handle(input: RolloutInput): void {
    if (this.suspended || hasEnded(this.current)) return;
    const { rollout, effects } = step(this.current, input, Math.round(1000 * this.context.nowMs()));
    this.current = rollout;
    for (const effect of effects) this.execute(effect);
    if (hasEnded(rollout)) this.end();
  }

  private end(): void {
    this.endedAt = new Date(this.context.nowMs()).toISOString();
    for (const timer of this.timers.values()) timer.cancel();
    this.timers.clear();
    this.context.tokens.withdraw(this.current.id);
    this.flushInBackground();
    this.log.end();
    this.onEnd();
  }

  private execute(effect: Effect): void {
    switch (effect.type) {
      case 'install':
        this.answer(this.install(effect.label), { type: 'installed', label: effect.label }, (error) => ({
          type: 'install-failed',
          label: effect.label,
          error: error.describe(),
        }));
        break;
      case 'remove':
        this.remove(effect.label);
        break;
      case 'prepare': {
        const { server, label } = effect;
        this.answer(this.prepare(server, label), { type: 'prepared', server, label }, (error) => ({
          type: 'prepare-failed',
          server,
          label,
          error: error.describe(),
          retry: error.recoverable,
        }));
        break;
      }
      case 'start-send':
        this.answer(this.startSend(effect.label), undefined, (error) => ({
          type: 'send-failed',
          label: effect.label,
          error: error.describe(),
        }));
        break;
      case 'end-send':
        this.endTransfer(this.transfer(effect.label).source, effect.label, effect.complete);
        break;
      case 'end-receive':
        this.endTransfer(effect.server, effect.label, effect.complete);
        break;
      case 'activate': {
        const { server } = effect;
        this.answer(this.activate(server), { type: 'activated', server }, (error) => ({
          type: 'activate-failed',
          server,
          error: error.describe(),
          retry: error.recoverable,
        }));
        break;
      }
      case 'timer':
        this.setTimer(effect.key, effect.afterUs);
        break;
      case 'cancel-timer':
        this.timers.get(effect.key)?.cancel();
        this.timers.delete(effect.key);
        break;
      case 'note':
        this.note(effect);
        break;
      case 'persist':
        this.flushSoon();
        break;
    }
  }

  private answer(work: Promise<void>, done: RolloutInput | undefined, failed: (error: DdfError) => RolloutInput): void {
    work.then(
      () => {
        if (done !== undefined) this.handle(done);
      },
      (error: unknown) => {
        const failure = toDdfError(error);
        if (failure.code === 'INTERNAL') this.context.logger.error({ err: error }, 'rollout');
        this.handle(failed(failure));
      },
    );
  }

  // ---- switches and rates

  private async install(label: number): Promise<void> {
    const { slots, factory, fleet } = this.context;
    const slot = slots.take();
    this.slots.set(label, slot);
    const numbers = { label, tenant: tenantOf(this.plan.objectId), slot };
    await fleet.install(ownerOf(label), transferState(factory, this.treeOf(label), numbers));
  }

  private remove(label: number): void {
    const { slots, fleet, rates, logger } = this.context;
    this.applyRates(rates.change(label, undefined));
    const slot = this.slots.get(label);
    this.slots.delete(label);
    // Group and index are given to another transfer only when no switch holds them any more.
    fleet.remove(ownerOf(label)).then(
      () => {
        if (slot !== undefined) slots.release(slot);
      },
      (error: unknown) => logger.warn({ label, error: toDdfError(error).describe() }, 'transfer not removed'),
    );
  }

  /** Tells senders, but the one that is starting, what they may send now. */
  private applyRates(changed: ReadonlyMap<number, number>, starting?: number): void {
    for (const [label, ceiling] of changed) {
      if (label === starting) continue;
      const source = this.context.rates.sourceOf(label);
      if (source === undefined) continue;
      const updateSend = {
        label,
        rateFloorBitsPerSecond: BigInt(floorOf(ceiling)),
        rateCeilingBitsPerSecond: BigInt(ceiling),
      };
      this.context.agents.request(source, { updateSend }, REQUEST_TIMEOUT_US).catch((error: unknown) => {
        this.context.logger.debug({ label, error: toDdfError(error).describe() }, 'rate not changed');
      });
    }
  }

  // ---- agents

  private async startSend(label: number): Promise<void> {
    const { graph, agents, rates, segmentBytes } = this.context;
    const tree = this.treeOf(label);
    const { source } = this.transfer(label);
    const links = linksOfTree(graph, tree);
    this.applyRates(rates.change(label, { links, weight: 1, source }), label);
    const ceiling = rates.ceiling(label)!;
    await agents.request(
      source,
      {
        startSend: {
          label,
          payload: this.payloadOf(label),
          segmentBytes,
          // Switches go by the label and rewrite every copy; the first one is the source's gateway, whose MAC address it has.
          destinationIp: graph.switch(graph.host(source).switch).ip,
          rateFloorBitsPerSecond: BigInt(floorOf(ceiling)),
          rateCeilingBitsPerSecond: BigInt(ceiling),
          rttUs: roundTripUs(graph, tree, segmentBytes),
          deadlineMs: this.remainingMs(),
          expectDone: tree.doneUsable,
        },
      },
      REQUEST_TIMEOUT_US,
    );
  }

  private async prepare(server: string, label: number): Promise<void> {
    const { graph, agents, segmentBytes, eliminationUs } = this.context;
    const payload = this.payloadOf(label);
    const transfer = this.current.transfers.find((candidate) => candidate.label === label);
    const tree = transfer === undefined ? undefined : this.treeOf(label);
    const holders = await this.holdersFor(server, payload);
    const bytes = Number(payload.sizeBytes) + (payload.baseVersion === 0 ? 0 : this.plan.version.sizeBytes);
    await agents.request(
      server,
      {
        prepareReceive: {
          label,
          payload,
          segmentBytes,
          stripes:
            tree === undefined
              ? []
              : [
                  {
                    label,
                    index: 0,
                    count: 1,
                    senderIp: graph.host(tree.source).ip,
                    rttUs: roundTripUs(graph, tree, segmentBytes),
                    sendDone: tree.doneUsable,
                  },
                ],
          targetRootSha256: this.plan.version.root,
          holders,
          deadlineMs: transfer === undefined ? 0 : this.remainingMs(),
          eliminationUs,
        },
      },
      REQUEST_TIMEOUT_US + Math.ceil((1e6 * bytes) / HASHING_BYTES_PER_SECOND),
    );
  }

  private async activate(server: string): Promise<void> {
    const { directory, agents } = this.context;
    const { objectId } = this.plan;
    const { version } = this.plan.version;
    await agents.request(server, { activateVersion: { objectId, version } }, REQUEST_TIMEOUT_US);
    directory.recordActive(server, objectId, version);
  }

  private endTransfer(agent: string, label: number, complete: boolean): void {
    // Who does not hear it ends by its own deadline, or hears it when it next reports on the label.
    this.context.agents.request(agent, { endTransfer: { label, complete } }, REQUEST_TIMEOUT_US).catch(() => {});
  }

  /** Attached agents that serve ranges of the payload: servers first, the nearest ones, so that the origin is asked last. */
  private async holdersFor(server: string, payload: Payload): Promise<Holder[]> {
    const { directory, agents, graph, tokens } = this.context;
    const { objectId, version, baseVersion } = payload;
    const id: PayloadId = { objectId, version, baseVersion };
    const nodes = this.payloadRecord(baseVersion).memoryNodes;
    const distances = graph.distancesTo(graph.host(server).switch);
    const distance = (agent: string): number => distances.get(graph.host(agent).switch) ?? Number.POSITIVE_INFINITY;
    const candidates = directory
      .holders(objectId, version)
      .map((holding) => agents.find(holding.agent))
      .filter((agent) => agent !== undefined && agent.name !== server)
      .filter((agent): agent is AttachedAgent =>
        agent!.kind === 'memory-node' ? nodes.includes(agent!.name) : baseVersion === 0,
      );
    const near = (kind: AttachedAgent['kind']): string[] =>
      candidates
        .filter((agent) => agent.kind === kind)
        .map((agent) => agent.name)
        .sort((a, b) => distance(a) - distance(b));
    // Every server starts at another one of the holders, or all of them would read from the same.
    const servers = rotate(near('gpu-server'), graph.host(server).port).slice(0, MAX_HOLDERS / 2);
    const chosen = [...servers, ...near('memory-node')].slice(0, MAX_HOLDERS);
    const ttlMs = this.msUntil(this.current.limits.limitUs);
    const granted = await Promise.all(chosen.map((agent) => tokens.grant(this.current.id, agent, id, ttlMs)));
    return granted.filter((holder) => holder !== undefined);
  }

  // ---- history

  private note({ kind, message, state, verified }: Extract<Effect, { type: 'note' }>): void {
    const event: RolloutEvent = {
      id: this.log.nextId,
      at: new Date(this.context.nowMs()).toISOString(),
      type: kind,
      message,
      state,
      verified,
      total: this.plan.view.targets,
    };
    this.unsaved.push(event);
    this.log.append(event);
    this.flushSoon();
  }

  private flushSoon(): void {
    const { scheduler } = this.context;
    this.flushTimer ??= scheduler.at(scheduler.nowUs() + FLUSH_INTERVAL_US, () => this.flushInBackground());
  }

  /** A database that cannot be written to (a full disk) is tried again with the next change; the rollout goes on. */
  private flushInBackground(): void {
    try {
      this.flush();
    } catch (error) {
      this.context.logger.error({ err: error, rollout: this.current.id }, 'rollout not written');
    }
  }

  private flush(): void {
    this.flushTimer?.cancel();
    this.flushTimer = undefined;
    this.context.rollouts.save(this.current.id, this.startedAt, hasEnded(this.current), this.record, this.unsaved);
    this.unsaved.length = 0;
  }

  // ---- look-ups

  private setTimer(key: TimerKey, afterUs: number): void {
    const { scheduler } = this.context;
    this.timers.get(key)?.cancel();
    const timer = scheduler.at(scheduler.nowUs() + afterUs, () => {
      this.timers.delete(key);
      this.handle({ type: 'timer', key });
    });
    this.timers.set(key, timer);
  }

  private transfer(label: number): TransferProgress {
    return this.current.transfers.find((transfer) => transfer.label === label)!;
  }

  private treeOf(label: number): Tree {
    const { base } = this.transfer(label);
    return this.plan.cohorts.find((cohort) => cohort.tree !== undefined && cohort.payload?.base === base)!.tree!;
  }

  private payloadRecord(base: number): PayloadRecord {
    const { directory } = this.context;
    return directory.findPayload(this.plan.objectId, this.plan.version.version, base)!;
  }

  /** What a transfer or a lane carries, as agents are told. */
  private payloadOf(label: number): Payload {
    const { transfers, lanes } = this.current;
    const { base } = (transfers.find((t) => t.label === label) ?? lanes.find((lane) => lane.label === label))!;
    const { objectId, version, sizeBytes, manifestBytes, manifestSha256 } = this.payloadRecord(base);
    return { objectId, version, baseVersion: base, sizeBytes: BigInt(sizeBytes), manifestBytes, manifestSha256 };
  }

  /** Milliseconds until a time from the rollout's start, at least 1: to agents, 0 is no limit. */
  private msUntil(afterStartUs: number): number {
    return Math.max(1, Math.ceil((this.startedUs + afterStartUs - this.context.scheduler.nowUs()) / 1000));
  }

  private remainingMs(): number {
    return this.msUntil(this.current.limits.deadlineUs);
  }
}

function ownerOf(label: number): string {
  return `transfer:${label}`;
}

function rotate<T>(items: readonly T[], by: number): T[] {
  const start = items.length === 0 ? 0 : by % items.length;
  return [...items.slice(start), ...items.slice(0, start)];
}
