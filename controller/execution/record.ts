import { hasEnded, type Rollout, type TransferPhase, verifiedCount } from '../rollout/types.ts';
import type { Plan, RolloutView, TransferView } from '../service.ts';
import { NO_TOTALS, type Totals } from './transfer-counters.ts';

/** What the database keeps of a rollout, beside its events. */
export interface RolloutRecord {
  readonly rollout: Rollout;
  readonly plan: Plan;
  readonly startedAt: string;
  readonly endedAt: string | null;
  /** By label, as JSON keys are text. */
  readonly counters: Readonly<Record<string, Totals>>;
}

export function rolloutView({ rollout, plan, startedAt, endedAt, counters }: RolloutRecord): RolloutView {
  return {
    id: rollout.id,
    object: rollout.object,
    version: rollout.version,
    state: rollout.state,
    plan,
    servers: Object.entries(rollout.servers).map(([name, server]) => ({
      name,
      cohort: server.cohort,
      state: server.state,
      bytesDone: server.bytesDone,
      bytesTotal: server.bytesTotal,
      error: server.error,
    })),
    transfers: transferViews(rollout, counters),
    verified: verifiedCount(rollout),
    phases: rollout.phases.map(({ state, seconds }) => ({ state, seconds })),
    startedAt,
    endedAt,
    error: rollout.error,
  };
}

/** Trees, then the unicast lanes that somebody has used. */
export function transferViews(rollout: Rollout, counters: RolloutRecord['counters']): TransferView[] {
  const servers = Object.values(rollout.servers);
  const members = (label: number): { receivers: number; complete: number } => {
    const own = servers.filter((server) => server.label === label);
    return {
      receivers: own.length,
      complete: own.filter((server) => server.state === 'verified' || server.state === 'active').length,
    };
  };
  const common = (
    label: number,
    base: number,
  ): Pick<TransferView, 'label' | 'rollout' | 'object' | 'version' | 'base'> => ({
    label,
    rollout: rollout.id,
    object: rollout.object,
    version: rollout.version,
    base: base === 0 ? null : base,
  });
  const trees = rollout.transfers.map(
    (transfer): TransferView => ({
      ...common(transfer.label, transfer.base),
      source: transfer.tree.source,
      state: phaseView(transfer.phase),
      ...members(transfer.receive),
      payloadBytes: transfer.payloadBytes,
      segmentBytes: transfer.segmentBytes,
      ...NO_TOTALS,
      ...counters[transfer.label],
    }),
  );
  const lanes = rollout.lanes
    .map(
      (lane): TransferView => ({
        ...common(lane.label, lane.base),
        source: 'unicast',
        state: hasEnded(rollout) ? 'closed' : 'sending',
        ...members(lane.label),
        payloadBytes: lane.payloadBytes,
        segmentBytes: null,
        ...NO_TOTALS,
        ...counters[lane.label],
      }),
    )
    .filter((view) => view.receivers > 0);
  return [...trees, ...lanes];
}

function phaseView(phase: TransferPhase): TransferView['state'] {
  if (phase === 'planned') return 'installing';
  return phase === 'closing' ? 'sent' : phase;
}
