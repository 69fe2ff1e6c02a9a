import { DdfError } from '../../../base/errors.ts';
import type { ConnectionState, WriteOutcome } from '../../../controller/p4runtime/connection.ts';
import { canonicalEntity } from '../../../controller/reconcile/canonical.ts';
import { entityMap, type KnownEntity } from '../../../controller/reconcile/diff.ts';
import type { ReconciledSwitch } from '../../../controller/reconcile/reconciler.ts';
import { type Entity, type Update, UpdateType } from '../../../wire/p4runtime/messages.ts';

/** A switch in memory that follows P4Runtime's rules for updates and can be made to fail. */
export class FakeSwitch implements ReconciledSwitch {
  readonly name = 'leaf1';
  state: ConnectionState = 'primary';
  entities = new Map<string, KnownEntity>();
  readonly writes: Update[][] = [];
  pipelines = 0;
  reads = 0;
  hasProgram = false;
  /** Consulted before each write. */
  onWrite: ((updates: readonly Update[]) => WriteOutcome | undefined | Promise<WriteOutcome | undefined>) | undefined;
  private readonly listeners = new Set<(state: ConnectionState) => void>();

  onState(listener: (state: ConnectionState) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  enter(state: ConnectionState): void {
    this.state = state;
    for (const listener of [...this.listeners]) listener(state);
  }

  /** Power off and on: no program, no entities. */
  restart(): void {
    this.entities.clear();
    this.hasProgram = false;
  }

  async setPipeline(): Promise<'installed' | 'unchanged'> {
    this.requirePrimary();
    const result = this.hasProgram ? 'unchanged' : 'installed';
    if (!this.hasProgram) this.entities.clear();
    this.hasProgram = true;
    this.pipelines++;
    return result;
  }

  async read(): Promise<Entity[]> {
    this.requirePrimary();
    this.reads++;
    return [...this.entities.values()].map(({ entity }) => entity);
  }

  async write(updates: readonly Update[]): Promise<WriteOutcome> {
    this.requirePrimary();
    const forced = await this.onWrite?.(updates);
    if (forced !== undefined) return forced;
    this.requirePrimary();
    this.writes.push([...updates]);
    const failures = [];
    for (const update of updates) {
      const [known] = entityMap([update.entity!]).values();
      const { key, kind } = known!;
      const present = this.entities.has(key);
      const permanent = kind === 'default action' || kind === 'meter';
      const code = permanent
        ? update.type === UpdateType.MODIFY
          ? 0
          : 3
        : update.type === UpdateType.INSERT
          ? present
            ? 6
            : 0
          : present
            ? 0
            : 5;
      if (code !== 0) failures.push({ update, code, message: `code ${code} for ${key}` });
      else if (update.type === UpdateType.DELETE) this.entities.delete(key);
      else this.entities.set(key, known!);
    }
    if (failures.length === 0) return { kind: 'applied' };
    return { kind: 'rejected', failures, error: new DdfError('SWITCH_REJECTED', failures[0]!.message) };
  }

  /** Values by key. */
  contents(): Map<string, string> {
    return new Map(
      [...this.entities.values()].map(({ entity }) => canonicalEntity(entity)!).map(({ key, value }) => [key, value]),
    );
  }

  private requirePrimary(): void {
    if (this.state !== 'primary') throw new DdfError('SWITCH_UNREACHABLE', 'not connected', { recoverable: true });
  }
}
