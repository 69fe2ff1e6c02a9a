import type { Timer } from '../../base/clock.ts';
import { type DdfError, toDdfError } from '../../base/errors.ts';
import { tenantOf } from '../../objects/ids.ts';
import { TransferState, type TransferStatus } from '../../wire/agent/messages.ts';
import type { AttachedAgent } from '../agents/hello.ts';
import { floorOf, linksOfTree } from '../planner/rates.ts';
import type { ExecutablePlan } from '../planner/types.ts';
import { step } from '../rollout/machine.ts';
import {
  type Effect,
  hasEnded,
  isSettled,
  type Rollout,
  type RolloutInput,
  type TimerKey,
  type TransferProgress,
} from '../rollout/types.ts';
import type { RolloutEvent } from '../service.ts';
import { transferState } from '../tables/desired.ts';
import { planTree, type Tree, withoutReceivers } from '../topology/trees.ts';
import type { ExecutionContext } from './context.ts';
import { EventLog } from './event-log.ts';
import { LossWatch } from './loss-watch.ts';
import type { RolloutRecord } from './record.ts';
import { TransferCounters } from './transfer-counters.ts';
import { TransferRequests } from './transfer-requests.ts';

const REQUEST_TIMEOUT_US = 10_000_000;
/** Progress is written at most this often; ends and starts at once. */
const FLUSH_INTERVAL_US = 100_000;
/** A transfer that only repairs leaves the links to those that still send. */
const REPAIRING_WEIGHT = 0.1;

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
  private readonly watches = new Map<number, LossWatch>();
  /** Payload bytes that the sender of a label has sent at least once. */
  private readonly sent = new Map<number, number>();
  private readonly requests: TransferRequests;
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
    this.requests = new TransferRequests(context, plan, rollout.id);
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
    const transfer = this.current.transfers.find((each) => each.label === label);
    if (transfer?.tree.source === agent) {
      counters.fromSender(status);
      this.sent.set(label, Number(status.bytesDone));
      if (state === TransferState.SENT) {
        this.applyRates(this.context.rates.reweigh(label, REPAIRING_WEIGHT));
        this.handle({ type: 'sender', label, phase: 'sent' });
      }
      if (state === TransferState.CLOSED) this.handle({ type: 'sender', label, phase: 'closed' });
      else if (state === TransferState.FAILED) {
        const { pathSegmentBytes: segmentBytes } = status;
        const isNarrow = segmentBytes > 0 && segmentBytes < transfer.segmentBytes;
        this.handle(isNarrow ? { type: 'too-narrow', label, segmentBytes } : { type: 'sender-failed', label, error });
      }
      return;
    }
    if (status.receiver !== undefined) {
      counters.fromReceiver(agent, status.receiver);
      this.watchLosses(agent, status);
    }
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

  /** Learns what the server loses, and takes it out of the tree when it holds the others back. */
  private watchLosses(server: string, { label, state, receiver }: TransferStatus): void {
    const { losses, scheduler } = this.context;
    if (state !== TransferState.RECEIVING) {
      losses.learn(server, receiver!);
      this.watches.get(label)?.forget(server);
      return;
    }
    const watch = this.watches.get(label) ?? new LossWatch();
    this.watches.set(label, watch);
    const why = watch.report(scheduler.nowUs(), server, receiver!);
    if (why === undefined) return;
    watch.forget(server);
    this.handle({ type: 'slow', server, label, why });
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
        this.answer(
          this.install(effect.label, this.transfer(effect.label).tree),
          { type: 'installed', label: effect.label },
          (error) => ({
            type: 'install-failed',
            label: effect.label,
            error: error.describe(),
          }),
        );
        break;
      case 'remove':
        this.remove(effect.label);
        break;
      case 'prepare': {
        const { server, label } = effect;
        const { current, requests } = this;
        const limitMs = this.msUntil(current.limits.limitUs);
        const asked = requests.prepareReceive(current, server, label, this.remainingMs(), limitMs);
        this.answer(asked, { type: 'prepared', server, label }, (error) => ({
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
      case 'update-receive':
        this.requests.updateReceive(this.current, effect.server, effect.label).catch((error: unknown) => {
          // Its stripes fall silent then, and it reads by unicast what it misses.
          this.context.logger.debug({ effect, error: toDdfError(error).describe() }, 'stripes not told');
        });
        break;
      case 'replace':
        this.replace(effect.label);
        break;
      case 'relabel':
        this.relabel(effect);
        break;
      case 'shrink':
        this.shrink(effect.label, effect.without);
        break;
      case 'end-send':
        this.requests.endTransfer(this.transfer(effect.label).tree.source, effect.label, effect.complete);
        break;
      case 'end-receive':
        this.requests.endTransfer(effect.server, effect.label, effect.complete);
        break;
      case 'activate': {
        const { server } = effect;
        this.answer(this.requests.activate(server), { type: 'activated', server }, (error) => ({
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

  private async install(label: number, tree: Tree): Promise<void> {
    const { slots, factory, fleet } = this.context;
    const slot = this.slots.get(label) ?? slots.take();
    this.slots.set(label, slot);
    const numbers = { label, tenant: tenantOf(this.plan.objectId), slot };
    await fleet.install(ownerOf(label), transferState(factory, tree, numbers));
  }

  /** A tree that has lost a branch: what was installed of it stays as it is where the branch was not. */
  private shrink(label: number, without: string): void {
    const { graph, logger } = this.context;
    const tree = withoutReceivers(graph, this.transfer(label).tree, new Set([without]));
    if (tree === undefined) return;
    this.handle({ type: 'shrunk', label, tree });
    this.install(label, tree).catch((error: unknown) =>
      logger.warn({ label, error: toDdfError(error).describe() }, 'the tree keeps a branch that nobody needs'),
    );
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
    const { graph, rates } = this.context;
    const transfer = this.transfer(label);
    const { tree, receive } = transfer;
    this.applyRates(rates.change(label, { links: linksOfTree(graph, tree), weight: 1, source: tree.source }), label);
    const receivers = Object.values(this.current.servers).filter(
      (server) => server.label === receive && server.prepared === 'yes',
    ).length;
    const bytesSent = this.bytesSent(transfer);
    await this.requests.startSend(
      transfer,
      { ceiling: rates.ceiling(label)!, receivers, bytesSent },
      this.remainingMs(),
    );
  }

  /** What the senders before this one have sent of its stripe. */
  private bytesSent({ receive, stripe }: TransferProgress): number {
    return this.current.transfers
      .filter((other) => other.receive === receive && other.stripe.index === stripe.index)
      .reduce((most, { label }) => Math.max(most, this.sent.get(label) ?? 0), 0);
  }

  /** Another Memory Node that has the payload, or the same one if it is back, over a tree to those who still need it. */
  private replace(label: number): void {
    const { rates, graph, labels } = this.context;
    const transfer = this.transfer(label);
    const payload = this.context.directory.findPayload(this.plan.objectId, this.plan.version.version, transfer.base);
    const receivers = Object.entries(this.current.servers)
      .filter(([, server]) => server.label === transfer.receive && !isSettled(server))
      .map(([name]) => name);
    const sources = (payload?.memoryNodes ?? []).filter((node) => this.context.agents.find(node) !== undefined);
    // Who has failed comes last.
    sources.sort((a, b) => Number(a === transfer.tree.source) - Number(b === transfer.tree.source));
    for (const source of sources)
      try {
        const tree = planTree(graph, source, receivers, rates.loads());
        this.handle({ type: 'replaced', label, by: { label: labels.takeLabels(1), tree } });
        return;
      } catch (error) {
        this.context.logger.debug({ label, source, error: toDdfError(error).describe() }, 'no tree from this source');
      }
    this.handle({ type: 'replaced', label });
  }

  private relabel({ receive, segmentBytes, stripes }: Extract<Effect, { type: 'relabel' }>): void {
    const first = this.context.labels.takeLabels(stripes);
    const labels = Array.from({ length: stripes }, (_, i) => first + i);
    this.handle({ type: 'relabelled', receive, segmentBytes, labels });
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
