import type { ExecutablePlan } from '../planner/types.ts';
import type { Lane, Rollout, RolloutLimits, RolloutRules, ServerProgress, TransferProgress } from './types.ts';

export interface RolloutStart {
  readonly id: string;
  readonly plan: ExecutablePlan;
  /** The first of {@link labelsNeeded} labels that nobody has used. */
  readonly firstLabel: number;
  readonly limits: RolloutLimits;
  readonly rules: RolloutRules;
  /** Bytes of a payload in one packet. */
  readonly segmentBytes: number;
  readonly nowUs: number;
  attached(server: string): boolean;
}

/** One for every stripe and one for every payload's unicast lane; the full image always has one. */
export function labelsNeeded(plan: ExecutablePlan): number {
  return plan.cohorts.reduce((sum, { trees }) => sum + trees.length, laneBases(plan).length);
}

/** A rollout in state queued. */
export function createRollout(start: RolloutStart): Rollout {
  const { id, plan, firstLabel, limits, rules, segmentBytes, nowUs, attached } = start;
  let label = firstLabel;
  const lanes = laneBases(plan).map(({ base, payloadBytes }): Lane => ({ label: label++, base, payloadBytes }));
  const transfers: TransferProgress[] = [];
  const servers: Record<string, ServerProgress> = {};
  for (const { kind, payload, trees, servers: members } of plan.cohorts) {
    const receive = label;
    if (payload !== undefined)
      for (const [index, tree] of trees.entries())
        transfers.push({
          label: label++,
          receive,
          stripe: { index, count: trees.length },
          base: payload.base,
          payloadBytes: payload.sizeBytes,
          segmentBytes,
          tree,
          phase: 'planned',
        });
    const lane = lanes.find(({ base }) => base === payload?.base);
    for (const name of members)
      servers[name] = {
        cohort: kind,
        state: kind === 'current' ? 'verified' : 'waiting',
        label: trees.length > 0 ? receive : (lane?.label ?? 0),
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
    rules,
    startedAtUs: nowUs,
    stateSinceUs: nowUs,
    phases: [],
    deadlinePassed: false,
    error: null,
  };
}

/**
 * Default limits for a deadline. The last limit leaves as much again, and a minute, for what is read by unicast.
 * @param prepareUs receivers are waited for at most this long
 */
export function limitsFor(deadlineUs: number, prepareUs = 20_000_000): RolloutLimits {
  return {
    installUs: 15_000_000,
    prepareUs,
    closeUs: 5_000_000,
    // Receivers take three seconds of silence for the end of the stream: another source has to begin before that.
    sourceUs: 2_000_000,
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
