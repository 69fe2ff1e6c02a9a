import type { RolloutEvent, RolloutView } from '../controller/service.ts';
import { formatBytes } from '../lab/report.ts';

const BAR_WIDTH = 24;

/** One line that says how far a rollout is: `[######....] 12/24 servers  distributing  3.1 MB of 14.2 MB  GPU servers failed: 1`. */
export function progressLine(view: RolloutView): string {
  const waiting = view.servers.filter(({ cohort }) => cohort !== 'current');
  const done = waiting.reduce((sum, server) => sum + server.bytesDone, 0);
  const total = waiting.reduce((sum, server) => sum + server.bytesTotal, 0);
  const fraction = total === 0 ? view.verified / Math.max(1, view.servers.length) : done / total;
  const filled = Math.round(BAR_WIDTH * Math.min(1, fraction));
  const failed = view.servers.filter(({ state }) => state === 'failed').length;
  return [
    `[${'#'.repeat(filled)}${'.'.repeat(BAR_WIDTH - filled)}]`,
    `${view.verified}/${view.servers.length} verified`,
    view.state,
    `${formatBytes(done)} of ${formatBytes(total)} received`,
    ...(failed > 0 ? [`${failed} failed`] : []),
  ].join('  ');
}

/**
 * Which events of a rollout become lines where nothing can be redrawn: changes of state, of transfers, notes, and of the many events
 * of single servers one for every quarter of the servers.
 */
export class SparseProgress {
  private quarters = -1;

  /** The line for an event, or undefined if it is left out. */
  line(event: RolloutEvent): string | undefined {
    const counted = `${event.verified}/${event.total} verified  ${event.message}`;
    if (event.type !== 'server') return counted;
    const quarters = event.total === 0 ? 4 : Math.floor((4 * event.verified) / event.total);
    if (quarters <= this.quarters) return undefined;
    this.quarters = quarters;
    return counted;
  }
}
