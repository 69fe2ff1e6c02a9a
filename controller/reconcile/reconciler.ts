import { DdfError, toDdfError } from '../../base/errors.ts';
import { type Entity, type Update, UpdateType } from '../../wire/p4runtime/messages.ts';
import { P4InfoIndex } from '../../wire/p4runtime/p4info-index.ts';
import { MAX_BATCH_UPDATES, type SwitchConnection, type WriteOutcome } from '../p4runtime/connection.ts';
import { describeEntity } from '../p4runtime/entity-text.ts';
import type { Pipeline } from '../p4runtime/pipeline.ts';
import { checkSizes } from '../tables/sizes.ts';
import { DesiredState } from './desired-state.ts';
import { applyUpdates, type EntityMap, type KnownEntity, planWrites } from './diff.ts';
import { ReadBack } from './read-back.ts';

/** What a reconciler needs of a connection. */
export type ReconciledSwitch = Pick<SwitchConnection, 'name' | 'state' | 'onState' | 'setPipeline' | 'read' | 'write'>;

/**
 * What nobody here asked for is removed, or kept. Or it is adopted: table entries are marked with `adopt`, which is not 0, in their
 * controller_metadata; those with the mark are ours, whichever run of the controller wrote them, and everything else is kept. Groups, sessions, meters
 * and default actions have no such mark: of these only what this run has written is ours.
 */
export type ForeignPolicy = 'remove' | 'keep' | { readonly adopt: bigint };

export interface ReconcilerOptions {
  readonly connection: ReconciledSwitch;
  /** The program that the switch has to run. */
  readonly pipeline: Pipeline;
  /** What becomes of entries that nobody here asked for. Default `remove`. */
  readonly foreign?: ForeignPolicy;
  /** Pause before the first and before later attempts after a failure, milliseconds; it doubles in between. Default 500 and 30,000. */
  readonly retryFirstMs?: number;
  readonly retryMaximumMs?: number;
  /** Pause between audits, milliseconds: reads of the whole switch that find what others wrote to it. Default 60,000; Infinity for none. */
  readonly auditMs?: number;
}

export type ReconcilerEvent =
  | { readonly type: 'pipeline'; readonly result: 'installed' | 'unchanged' }
  | { readonly type: 'converged'; readonly inserted: number; readonly modified: number; readonly deleted: number }
  /** Somebody else wrote to the switch: `entities` are no longer as they were left, for instance `example`. They are put right if they are ours to change. */
  | { readonly type: 'drift'; readonly entities: number; readonly example: string }
  | { readonly type: 'failed'; readonly error: DdfError };

/** What one attempt may find out of step before it gives up: once because of what it did not know, once because of a race. */
const MAX_PASSES = 3;
/** Batches are this many times smaller after one whose outcome the switch did not tell. */
const BATCH_DIVISOR = 4;
/** While a switch works on one batch, the next one is on its way. */
const BATCHES_UNDER_WAY = 2;
// Of google.rpc.Code.
const NOT_FOUND = 5;
const ALREADY_EXISTS = 6;

/**
 * Keeps one switch as it should be, and is the only one that writes to it. Owners (`base`, `transfer:7`) say what they want; {@link converge} writes the
 * difference to what the switch has. When the switch comes back, it is given its program if it lost it, read completely, and brought up to date
 * without anybody asking.
 */
export class Reconciler {
  private readonly options: ReconcilerOptions;
  private readonly connection: ReconciledSwitch;
  private readonly index: P4InfoIndex;
  private readonly desired = new DesiredState();
  private readonly listeners = new Set<(event: ReconcilerEvent) => void>();
  /** What was desired once and may still be on the switch: it may be removed under the policy `keep`, and is looked for when reading. */
  private readonly own = new Map<string, KnownEntity>();
  /** What the switch holds; undefined when it has to be read. */
  private actual: Map<string, KnownEntity> | undefined;
  private readonly readBack: ReadBack;
  /** Updates in a batch: fewer where a switch is too slow for more, or says too much about them (its details then do not fit into a trailer). */
  private batchSize = MAX_BATCH_UPDATES;
  private auditDue = false;
  private audit: NodeJS.Timeout | undefined;
  /** Whether the switch is known to run the program in this mastership. */
  private programmed = false;
  private running: Promise<void> | undefined;
  private queued: Promise<void> | undefined;
  private retry: NodeJS.Timeout | undefined;
  private failures = 0;
  private closed = false;
  private readonly mark: bigint | undefined;
  private readonly stopWatching: () => void;

  constructor(options: ReconcilerOptions) {
    this.options = options;
    this.connection = options.connection;
    const { foreign = 'remove' } = options;
    this.mark = typeof foreign === 'string' ? undefined : foreign.adopt;
    if (this.mark === 0n)
      throw new DdfError('INTERNAL', 'the mark of adopted entries is 0, which entries without a mark have');
    this.index = new P4InfoIndex(options.pipeline.p4info);
    this.readBack = new ReadBack(options.connection, this.index);
    this.stopWatching = this.connection.onState((state) => {
      this.programmed = false;
      this.actual = undefined;
      this.batchSize = MAX_BATCH_UPDATES;
      this.readBack.forget();
      clearTimeout(this.audit);
      if (state === 'primary') this.convergeInBackground();
      else clearTimeout(this.retry);
    });
    if (this.connection.state === 'primary') this.convergeInBackground();
  }

  /** Entities on the switch, as far as known. */
  get entityCount(): number {
    return this.actual?.size ?? 0;
  }

  /** Who wants something of this switch. */
  get owners(): readonly string[] {
    return this.desired.owners;
  }

  /** Calls back with everything that happens. @returns a function that stops it */
  onEvent(listener: (event: ReconcilerEvent) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /**
   * Replaces what an owner wants; {@link converge} makes it so.
   * @throws TABLE_FULL when the switch has no room for it beside what others want, CONFLICT; then nothing changes
   */
  setDesired(owner: string, entities: readonly Entity[]): void {
    const wanted = this.mark === undefined ? entities : entities.map((entity) => marked(entity, this.mark!));
    this.desired.set(owner, wanted, (union) =>
      checkSizes(
        this.index,
        [...union.values()].map(({ entity }) => entity),
        this.connection.name,
      ),
    );
    for (const [key, known] of this.desired.entities) this.own.set(key, known);
  }

  /** The owner wants nothing any more; {@link converge} makes it so. Harmless if it never did. */
  removeDesired(owner: string): void {
    this.desired.remove(owner);
  }

  /**
   * Resolves when the switch is as it was desired at the time of the call, or later. Calls that come while one is under way share the next.
   * A failure is tried again by itself, after a pause or when the switch is back.
   * @throws SWITCH_UNREACHABLE, NOT_PRIMARY, SWITCH_REJECTED, PROGRAM_MISMATCH
   */
  converge(): Promise<void> {
    if (this.queued !== undefined) return this.queued;
    const previous = this.running?.catch(() => {}) ?? Promise.resolve();
    const queued = previous.then(() => {
      this.queued = undefined;
      const running = this.run().finally(() => {
        if (this.running === running) this.running = undefined;
      });
      this.running = running;
      return running;
    });
    this.queued = queued;
    return queued;
  }

  /** Forgets the switch without touching it. */
  close(): void {
    this.closed = true;
    clearTimeout(this.retry);
    clearTimeout(this.audit);
    this.stopWatching();
    this.listeners.clear();
  }

  private convergeInBackground(): void {
    clearTimeout(this.retry);
    // The event tells of failures.
    this.converge().catch(() => {});
  }

  /** A switch that went away says so when it is back; one that refused is asked again. */
  private scheduleRetry(): void {
    clearTimeout(this.retry);
    if (this.closed || this.connection.state !== 'primary') return;
    const { retryFirstMs = 500, retryMaximumMs = 30_000 } = this.options;
    const delayMs = Math.min(retryFirstMs * 2 ** this.failures, retryMaximumMs);
    this.failures++;
    this.retry = setTimeout(() => this.convergeInBackground(), delayMs);
  }

  private scheduleAudit(): void {
    clearTimeout(this.audit);
    const { auditMs = 60_000 } = this.options;
    if (this.closed || this.connection.state !== 'primary' || auditMs === Number.POSITIVE_INFINITY) return;
    this.audit = setTimeout(() => {
      this.auditDue = true;
      this.convergeInBackground();
    }, auditMs);
  }

  private async run(): Promise<void> {
    try {
      await this.runPasses();
      this.failures = 0;
      clearTimeout(this.retry);
      this.scheduleAudit();
    } catch (error) {
      const failure = toDdfError(error);
      // Whatever went wrong, the program may be part of it: its cookie is cheap to ask for.
      this.programmed = false;
      this.scheduleRetry();
      this.emit({ type: 'failed', error: failure });
      throw failure;
    }
  }

  private async runPasses(): Promise<void> {
    if (this.closed)
      throw new DdfError('CANCELLED', 'the reconciler is closed', { where: `switch ${this.connection.name}` });
    const counts = { inserted: 0, modified: 0, deleted: 0 };
    for (let pass = 1; ; ) {
      const actual = await this.currentState();
      const outcome = await this.writeDifference(actual, counts);
      if (outcome.kind === 'applied') break;
      const sameMastership = this.actual === actual;
      // Not what we thought it was: look again.
      this.actual = undefined;
      if (outcome.kind === 'unknown' && sameMastership && this.batchSize > 1)
        this.batchSize = Math.max(1, Math.floor(this.batchSize / BATCH_DIVISOR));
      else if (pass++ === MAX_PASSES) throw outcome.error;
    }
    this.emit({ type: 'converged', ...counts });
  }

  /** What the switch holds, after it was given its program; read if that is not known, or is to be audited. */
  private async currentState(): Promise<Map<string, KnownEntity>> {
    const isAudit = this.auditDue;
    this.auditDue = false;
    if (!this.programmed || isAudit) {
      const result = await this.connection.setPipeline(this.options.pipeline);
      // A program that was loaded behind our back begins with nothing.
      if (result === 'installed') this.actual = undefined;
      if (!this.programmed || result === 'installed') this.emit({ type: 'pipeline', result });
      this.programmed = true;
    }
    const believed = this.actual;
    if (believed !== undefined && !isAudit) return believed;
    const actual = await this.readBack.read(this.own);
    // The mastership may have ended and begun anew meanwhile: then what was read says nothing about now.
    if (believed !== undefined && this.actual !== believed) throw this.lost();
    if (believed !== undefined) this.reportDrift(believed, actual);
    this.actual = actual;
    return actual;
  }

  private reportDrift(believed: EntityMap, actual: EntityMap): void {
    const different = [
      ...[...believed.values()].filter(({ key, value }) => actual.get(key)?.value !== value),
      ...[...actual.values()].filter(({ key }) => !believed.has(key)),
    ];
    const [first] = different;
    if (first === undefined) return;
    this.emit({ type: 'drift', entities: different.length, example: describeEntity(this.index, first.entity) });
  }

  private async writeDifference(
    actual: Map<string, KnownEntity>,
    counts: { inserted: number; modified: number; deleted: number },
  ): Promise<WriteOutcome> {
    const phases = planWrites(this.desired.entities, actual, {
      mayRemove: (present) => this.own.has(present.key) || this.isAdopted(present),
      tableSize: (tableId) => this.index.tables.get(tableId)?.size ?? Number.POSITIVE_INFINITY,
    });
    const known = new Map([...this.desired.entities.values()].map((wanted) => [wanted.entity, wanted]));
    for (const phase of phases) {
      const outcome = await this.writePhase(phase, (batch) => {
        applyUpdates(actual, batch, known);
        count(counts, batch);
      });
      if (outcome.kind !== 'applied') return outcome;
    }
    if (this.actual !== actual) return { kind: 'unknown', error: this.lost() };
    for (const key of this.own.keys()) if (!this.desired.entities.has(key) && !actual.has(key)) this.own.delete(key);
    return { kind: 'applied' };
  }

  /** Updates that do not depend on each other, in batches some of which are under way at the same time. */
  private async writePhase(
    updates: readonly Update[],
    applied: (batch: readonly Update[]) => void,
  ): Promise<WriteOutcome> {
    const underWay: { readonly batch: readonly Update[]; readonly outcome: Promise<WriteOutcome> }[] = [];
    let result: WriteOutcome = { kind: 'applied' };
    let start = 0;
    try {
      for (;;) {
        while (underWay.length < BATCHES_UNDER_WAY && start < updates.length) {
          const batch = updates.slice(start, start + this.batchSize);
          start += batch.length;
          const outcome = this.connection.write(batch);
          // It is awaited in its turn; until then its failure is not one that nobody handles.
          outcome.catch(() => {});
          underWay.push({ batch, outcome });
        }
        const next = underWay[0];
        if (next === undefined) return result;
        const outcome = await next.outcome;
        underWay.shift();
        if (outcome.kind === 'applied' || failedOnlyWith(outcome, UpdateType.DELETE, NOT_FOUND)) applied(next.batch);
        // A slow switch may still be at a batch that we gave up: what it has done of it is no reason to stop.
        else if (failedOnlyWith(outcome, UpdateType.INSERT, ALREADY_EXISTS)) result = outcome;
        else return outcome;
      }
    } finally {
      // Nothing of this may be under way when the switch is read again.
      await Promise.allSettled(underWay.map(({ outcome }) => outcome));
    }
  }

  /** Whether something that nobody here asked for is ours to remove. */
  private isAdopted({ entity }: KnownEntity): boolean {
    if (this.mark === undefined) return this.options.foreign !== 'keep';
    return entity.tableEntry?.controllerMetadata === this.mark;
  }

  private lost(): DdfError {
    return new DdfError('SWITCH_UNREACHABLE', 'the connection was lost while entries were written', {
      where: `switch ${this.connection.name}`,
      remedy: 'It converges by itself when the switch is back.',
      recoverable: true,
    });
  }

  private emit(event: ReconcilerEvent): void {
    for (const listener of [...this.listeners]) listener(event);
  }
}

function marked(entity: Entity, mark: bigint): Entity {
  const { tableEntry } = entity;
  if (tableEntry === undefined || tableEntry.isDefaultAction) return entity;
  return { tableEntry: { ...tableEntry, controllerMetadata: mark } };
}

function failedOnlyWith(outcome: WriteOutcome, type: UpdateType, code: number): boolean {
  return (
    outcome.kind === 'rejected' &&
    outcome.failures.every((failure) => failure.update.type === type && failure.code === code)
  );
}

function count(counts: { inserted: number; modified: number; deleted: number }, applied: readonly Update[]): void {
  for (const { type } of applied) {
    if (type === UpdateType.INSERT) counts.inserted++;
    else if (type === UpdateType.MODIFY) counts.modified++;
    else counts.deleted++;
  }
}
