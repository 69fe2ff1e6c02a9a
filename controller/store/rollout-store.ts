import type { RolloutEvent } from '../service.ts';
import type { Store } from './store.ts';

/** Rollouts and their events on disk. A record is opaque here: the JSON that its owner gave. */
export class RolloutStore {
  private readonly store: Store;
  private readonly put;
  private readonly all;
  private readonly putEvent;
  private readonly events;

  constructor(store: Store) {
    this.store = store;
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

  /** Writes the record and the events that came since the last time, all or nothing. Event ids count from 1 within the rollout. */
  save(id: string, startedAt: string, ended: boolean, record: unknown, events: readonly RolloutEvent[]): void {
    this.store
      .transaction(() => {
        this.put.run({ id, startedAt, ended: ended ? 1 : 0, record: JSON.stringify(record) });
        for (const event of events) this.putEvent.run({ rollout: id, id: event.id, event: JSON.stringify(event) });
      })
      .immediate();
  }

  /** Every rollout ever started, oldest first. */
  load(): { id: string; record: unknown }[] {
    return this.all.all().map((row) => ({ id: row.id, record: JSON.parse(row.record) as unknown }));
  }

  /** In the order of their ids. */
  eventsAfter(rollout: string, afterId: number): RolloutEvent[] {
    return this.events.all(rollout, afterId).map((row) => JSON.parse(row.event) as RolloutEvent);
  }
}
