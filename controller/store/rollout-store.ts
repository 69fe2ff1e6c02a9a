import type { RolloutEvent } from '../service.ts';
import type { Store } from './store.ts';

/** Rollouts and their events on disk. A record is opaque here: the JSON that its owner gave. */
export class RolloutStore {
  private readonly put;
  private readonly all;
  private readonly putEvent;
  private readonly events;

  constructor(store: Store) {
    this.put = store.prepare<{ id: string; startedAt: string; ended: number; record: string }>(
      `INSERT INTO rollouts (id, started_at, ended, record) VALUES (@id, @startedAt, @ended, @record)
       ON CONFLICT (id) DO UPDATE SET ended = @ended, record = @record`,
    );
    this.all = store.prepare<[], { id: string; record: string }>(
      'SELECT id, record FROM rollouts ORDER BY started_at, id',
    );
    this.putEvent = store.prepare<{ rollout: string; id: number; event: string }>(
      'INSERT OR REPLACE INTO rollout_events (rollout, id, event) VALUES (@rollout, @id, @event)',
    );
    this.events = store.prepare<[string, number], { event: string }>(
      'SELECT event FROM rollout_events WHERE rollout = ? AND id > ? ORDER BY id',
    );
  }

  save(id: string, startedAt: string, ended: boolean, record: unknown): void {
    this.put.run({ id, startedAt, ended: ended ? 1 : 0, record: JSON.stringify(record) });
  }

  /** Every rollout ever started, oldest first. */
  load(): { id: string; record: unknown }[] {
    return this.all.all().map((row) => ({ id: row.id, record: JSON.parse(row.record) as unknown }));
  }

  /** Every note of a rollout is a line of its history; ids count from 1 within the rollout. */
  addEvent(rollout: string, event: RolloutEvent): void {
    this.putEvent.run({ rollout, id: event.id, event: JSON.stringify(event) });
  }

  eventsAfter(rollout: string, afterId: number): RolloutEvent[] {
    return this.events.all(rollout, afterId).map((row) => JSON.parse(row.event) as RolloutEvent);
  }
}
