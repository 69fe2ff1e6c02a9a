import type { ExecutablePlan } from '../planner/types.ts';
import type { Lane, Rollout, RolloutLimits, ServerProgress, TransferProgress } from './types.ts';

export interface RolloutStart {
  readonly id: string;
  readonly plan: ExecutablePlan;
  /** The first of {@link labelsNeeded} labels that nobody has used. */
  readonly firstLabel: number;
  readonly limits: RolloutLimits;
  readonly nowUs: number;
  attached(server: string): boolean;
}

/** One for every tree and one for every payload's unicast lane; the full image always has one. */
export function labelsNeeded(plan: ExecutablePlan): number {
  return plan.cohorts.filter((cohort) => cohort.tree !== undefined).length + laneBases(plan).length;
}

/** A rollout in state queued. */
export function createRollout({ id, plan, firstLabel, limits, nowUs, attached }: RolloutStart): Rollout {
  let label = firstLabel;
  const lanes = laneBases(plan).map(({ base, payloadBytes }): Lane => ({ label: label++, base, payloadBytes }));
  const transfers: TransferProgress[] = [];
  const servers: Record<string, ServerProgress> = {};
  for (const { kind, payload, source, tree, servers: members } of plan.cohorts) {
    let route: { label: number } | undefined;
    if (payload !== undefined && source !== undefined && tree !== undefined) {
      const transfer: TransferProgress = {
        label: label++,
        base: payload.base,
        payloadBytes: payload.sizeBytes,
        source,
        receivers: tree.receivers,
        phase: 'planned',
      };
      transfers.push(transfer);
      route = transfer;
    } else if (payload !== undefined) route = lanes.find((lane) => lane.base === payload.base);
    for (const name of members)
      servers[name] = {
        cohort: kind,
        state: kind === 'current' ? 'verified' : 'waiting',
        label: route?.label ?? 0,
        prepared: 'no',
        attached: attached(name),
        bytesDone: 0,
        bytesTotal: payload?.sizeBytes ?? 0,
        error: null,
      };
  }
  return {
    id,
    object: plan.view.object,
    version: plan.version.version,
    state: 'queued',
    servers,
    transfers,
    lanes,
    limits,
    startedAtUs: nowUs,
    stateSinceUs: nowUs,
    phases: [],
    deadlinePassed: false,
    error: null,
  };
}

/** Default limits for a deadline. The last limit leaves as much again, and a minute, for what is read by unicast. */
export function limitsFor(deadlineUs: number): RolloutLimits {
  return {
    installUs: 15_000_000,
    prepareUs: 20_000_000,
    closeUs: 5_000_000,
    sourceUs: 5_000_000,
    retryUs: 1_000_000,
    activateUs: 30_000_000,
    deadlineUs,
    limitUs: 2 * deadlineUs + 60_000_000,
  };
}

function laneBases(plan: ExecutablePlan): { base: number; payloadBytes: number }[] {
  const bases = new Map([[0, plan.version.sizeBytes]]);
  for (const { payload } of plan.cohorts) if (payload !== undefined) bases.set(payload.base, payload.sizeBytes);
  return [...bases].map(([base, payloadBytes]) => ({ base, payloadBytes }));
}
