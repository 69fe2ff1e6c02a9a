import type { Scheduler, Timer } from '../../base/clock.ts';
import type { TableEntry } from '../../wire/p4runtime/messages.ts';
import { messageCodec } from '../../wire/proto.ts';
import type { EntryHandle } from '../control.ts';
import { recordOf, type TableState, type TableStates } from './entities/table-state.ts';

const tableEntry = messageCodec<TableEntry>('p4.v1.TableEntry');

/** Entries that run out within so much time are reported together. */
const SCAN_INTERVAL_US = 20_000;
/** Entries per notice. */
const MAX_ENTRIES = 512;

/**
 * Looks for entries that no packet has hit for as long as their idle time-out (P4Runtime 1.5, section "Table Idle Timeout Notifications"). Nothing
 * happens to them but a notice, and the next one comes after another time-out.
 */
export class IdleTimeouts {
  private readonly tables: readonly TableState[];
  private readonly scheduler: Scheduler;
  private readonly notify: (entries: TableEntry[]) => void;
  private timer: Timer | undefined;
  private dueUs = Number.POSITIVE_INFINITY;

  constructor(tables: TableStates, scheduler: Scheduler, notify: (entries: TableEntry[]) => void) {
    this.tables = [...tables.byId.values()].filter(({ info }) => info.supportsIdleTimeout);
    this.scheduler = scheduler;
    this.notify = notify;
  }

  /** To be called when an entry with a time-out was written. */
  rearm(): void {
    this.arm(this.scheduler.nowUs() + SCAN_INTERVAL_US);
  }

  stop(): void {
    this.timer?.cancel();
  }

  private arm(atUs: number): void {
    if (atUs >= this.dueUs) return;
    this.timer?.cancel();
    this.dueUs = atUs;
    this.timer = this.scheduler.at(atUs, () => this.scan());
  }

  private scan(): void {
    this.dueUs = Number.POSITIVE_INFINITY;
    const nowUs = this.scheduler.nowUs();
    let nextUs = Number.POSITIVE_INFINITY;
    let idle: TableEntry[] = [];
    for (const table of this.tables)
      for (const entry of table.control.entries()) {
        const record = recordOf(entry);
        const timeoutUs = Number(record.notes.idleTimeoutNs) / 1000;
        if (timeoutUs === 0) continue;
        const atUs = Math.max(table.control.lastHitUs(entry), record.idleSinceUs) + timeoutUs;
        if (atUs > nowUs) {
          nextUs = Math.min(nextUs, atUs);
          continue;
        }
        entry.note = { ...record, idleSinceUs: nowUs };
        nextUs = Math.min(nextUs, nowUs + timeoutUs);
        idle.push(noticeOf(table, entry));
        if (idle.length === MAX_ENTRIES) {
          this.notify(idle);
          idle = [];
        }
      }
    if (idle.length > 0) this.notify(idle);
    if (Number.isFinite(nextUs)) this.arm(Math.max(nextUs, nowUs + SCAN_INTERVAL_US));
  }
}

function noticeOf(table: TableState, entry: EntryHandle): TableEntry {
  const { notes } = recordOf(entry);
  return tableEntry.create({ tableId: table.info.id, match: table.matchOf(entry), priority: entry.priority, ...notes });
}
