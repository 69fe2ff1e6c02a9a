import type { PayloadRecord } from '../directory/types.ts';
import type { PlanCohort } from '../service.ts';
import { bytesText, percentText, serversText } from './amounts.ts';
import type { Catalogue, FabricState } from './types.ts';

/** Servers that need the same payload, and why they get this one. */
export interface Cohort {
  readonly kind: 'current' | 'delta' | 'full';
  readonly servers: string[];
  /** Undefined for those who need nothing. */
  readonly payload: PayloadRecord | undefined;
  readonly reasons: string[];
  readonly rejected: PlanCohort['rejected'];
}

/** Payloads that lead to a version, and what each server could start from. */
export interface Choices {
  readonly full: PayloadRecord;
  /** By base; payloads that nobody can send now are in `unsendable`. */
  readonly deltas: readonly PayloadRecord[];
  readonly unsendable: readonly PayloadRecord[];
}

/**
 * Divides the targets by what they need: nothing, a delta from the base that makes the fewest bytes, or the full image. Order: current, deltas
 * from the newest base to the oldest, full. A cohort without members is left out.
 */
export function divide(
  targets: readonly string[],
  objectId: bigint,
  version: number,
  catalogue: Catalogue,
  choices: Choices,
): Cohort[] {
  const current: string[] = [];
  const byBase = new Map<number, string[]>();
  const full: string[] = [];
  const useful = choices.deltas.filter((delta) => delta.sizeBytes < choices.full.sizeBytes);
  for (const server of targets) {
    if (catalogue.holds(server, objectId, version)) {
      current.push(server);
      continue;
    }
    const best = useful
      .filter((delta) => catalogue.holds(server, objectId, delta.base))
      .reduce<PayloadRecord | undefined>((a, b) => (a === undefined || b.sizeBytes < a.sizeBytes ? b : a), undefined);
    if (best === undefined) full.push(server);
    else byBase.set(best.base, [...(byBase.get(best.base) ?? []), server]);
  }

  const cohorts: Cohort[] = [];
  if (current.length > 0) cohorts.push(currentCohort(current, version, choices.full));
  for (const base of [...byBase.keys()].sort((a, b) => b - a)) {
    const payload = useful.find((delta) => delta.base === base)!;
    cohorts.push(deltaCohort(byBase.get(base)!, payload, objectId, catalogue, choices, useful));
  }
  if (full.length > 0) cohorts.push(fullCohort(full, objectId, version, catalogue, choices));
  return cohorts;
}

function currentCohort(servers: string[], version: number, full: PayloadRecord): Cohort {
  return {
    kind: 'current',
    servers,
    payload: undefined,
    reasons: [`${serversText(servers.length)} proved to hold exactly version ${version}, by its root hash`],
    rejected: [
      {
        alternative: 'send the full image again',
        reason: 'nobody of them needs a byte of it',
        bytes: full.sizeBytes,
      },
    ],
  };
}

function deltaCohort(
  servers: string[],
  payload: PayloadRecord,
  objectId: bigint,
  catalogue: Catalogue,
  choices: Choices,
  useful: readonly PayloadRecord[],
): Cohort {
  const { base, version, sizeBytes } = payload;
  const full = choices.full.sizeBytes;
  const others = useful.filter(
    (delta) => delta !== payload && servers.some((server) => catalogue.holds(server, objectId, delta.base)),
  );
  return {
    kind: 'delta',
    servers,
    payload,
    reasons: [
      `${serversText(servers.length)} proved version ${base}: the delta from ${base} to ${version} is ${bytesText(sizeBytes)}, ` +
        `${percentText(sizeBytes, full)} of the full image`,
    ],
    rejected: [
      {
        alternative: 'full image',
        reason: `${bytesText(full)} instead of ${bytesText(sizeBytes)} over every link of the tree`,
        bytes: full,
      },
      ...others.map((delta) => ({
        alternative: `delta from ${delta.base}`,
        reason: `${bytesText(delta.sizeBytes)} instead of ${bytesText(sizeBytes)}`,
        bytes: delta.sizeBytes,
      })),
    ],
  };
}

function fullCohort(
  servers: string[],
  objectId: bigint,
  version: number,
  catalogue: Catalogue,
  choices: Choices,
): Cohort {
  const holdersOf = (base: number): number =>
    servers.filter((server) => catalogue.holds(server, objectId, base)).length;
  const rejected: PlanCohort['rejected'] = [];
  for (const delta of choices.deltas) {
    const count = holdersOf(delta.base);
    // Only a delta as large as the image is here: a smaller one would have been taken.
    if (count > 0)
      rejected.push({
        alternative: `delta from ${delta.base}`,
        reason: `for ${serversText(count)}: ${bytesText(delta.sizeBytes)}, not less than the full image`,
        bytes: delta.sizeBytes,
      });
  }
  for (const delta of choices.unsendable) {
    const count = holdersOf(delta.base);
    if (count > 0)
      rejected.push({
        alternative: `delta from ${delta.base}`,
        reason: `for ${serversText(count)}: no Memory Node that has it is attached`,
        bytes: delta.sizeBytes,
      });
  }
  const reasons: string[] = [];
  const known = new Set([...choices.deltas, ...choices.unsendable].map((delta) => delta.base));
  const withoutDelta = catalogue
    .listVersions(objectId)
    .filter((v) => v.version !== version && !known.has(v.version))
    .map((v) => ({ version: v.version, count: holdersOf(v.version) }))
    .filter(({ count }) => count > 0);
  const empty = servers.filter(
    (server) => !catalogue.listVersions(objectId).some((v) => catalogue.holds(server, objectId, v.version)),
  ).length;
  if (empty > 0) reasons.push(`${serversText(empty)} ${empty === 1 ? 'holds' : 'hold'} no version of the object`);
  for (const { version: base, count } of withoutDelta)
    reasons.push(
      `${serversText(count)} ${count === 1 ? 'holds' : 'hold'} version ${base}, but there is no delta from ${base} to ${version}`,
    );
  reasons.push(`the full image is ${bytesText(choices.full.sizeBytes)}`);
  return { kind: 'full', servers, payload: choices.full, reasons, rejected };
}

/** Memory Nodes that have a payload, hold the version, and are there to send it. */
export function sendersOf(payload: PayloadRecord, catalogue: Catalogue, fabric: FabricState): string[] {
  return payload.memoryNodes.filter(
    (node) => fabric.attached(node) && catalogue.holds(node, payload.objectId, payload.version),
  );
}
