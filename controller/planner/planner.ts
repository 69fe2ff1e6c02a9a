import { DdfError } from '../../base/errors.ts';
import { formatObjectId } from '../../objects/ids.ts';
import type { PayloadRecord } from '../directory/types.ts';
import type { Estimate, Plan, PlanCohort, PlanStripe, RolloutRequest } from '../service.ts';
import type { Tree } from '../topology/trees.ts';
import { bytesText, rateText } from './amounts.ts';
import { type Cohort, divide, sendersOf } from './cohorts.ts';
import { payloadRate, roundTripUs, segmentBytesFor } from './rates.ts';
import { deadlineOf, resolveTargets } from './request.ts';
import { chooseStripes, type Stripes } from './stripes.ts';
import type { Catalogue, ExecutablePlan, FabricState, PlannedCohort } from './types.ts';

/**
 * Makes the plan that brings a version to servers with the fewest bytes: nothing to those who hold it, one delta per base that pays, one full image
 * for the rest; each payload once over one tree. Changes nothing.
 * @throws DdfError INVALID_REQUEST: no servers, a Memory Node among them, a deadline out of range; NOT_FOUND: unknown object, version or server;
 *   AGENT_UNREACHABLE: servers need the version and nobody who is attached could send it
 */
export function makePlan(request: RolloutRequest, catalogue: Catalogue, fabric: FabricState): ExecutablePlan {
  const { topology } = fabric.graph;
  const object = catalogue.findObject(request.object);
  if (object === undefined)
    throw new DdfError('NOT_FOUND', `there is no object "${request.object}"`, {
      where: 'object',
      remedy: 'Publish it first; GET /v1/objects lists what there is.',
    });
  const { objectId } = object;
  const version = catalogue.findVersion(objectId, request.version);
  if (version === undefined)
    throw new DdfError('NOT_FOUND', `object "${request.object}" has no version ${request.version}`, {
      where: 'version',
      remedy: `Publish it first; it has ${versionsText(catalogue.listVersions(objectId).map((v) => v.version))}.`,
    });
  const targets = resolveTargets(topology, request.servers);
  deadlineOf(request);

  const payloads = catalogue.listPayloads(objectId, version.version);
  const full = payloads.find((payload) => payload.base === 0);
  if (full === undefined)
    throw new DdfError('CONFLICT', `the full image of ${request.object}@${version.version} was never made`, {
      where: `${request.object}@${version.version}`,
      remedy: 'Publish the version again: the same bytes are no change.',
    });
  const deltas = payloads.filter((payload) => payload.base !== 0);
  const sendable = (payload: PayloadRecord): boolean => sendersOf(payload, catalogue, fabric).length > 0;
  const cohorts = divide(targets, objectId, version.version, catalogue, {
    full,
    deltas: deltas.filter(sendable),
    unsendable: deltas.filter((delta) => !sendable(delta)),
  });

  const planned: Routed[] = [];
  for (const cohort of cohorts) planned.push(route(cohort, full, catalogue, fabric, planned));
  const timed = predict(planned, fabric);
  const warnings = targets
    .filter((server) => !fabric.attached(server))
    .map((server) => `${server} is not attached: it takes part when it attaches before the deadline`);
  const view: Plan = {
    object: request.object,
    objectId: formatObjectId(objectId),
    version: version.version,
    targets: targets.length,
    cohorts: timed.map(
      ({ cohort, planned, predictedSeconds }): PlanCohort => ({
        kind: cohort.kind,
        from: cohort.kind === 'current' ? version.version : cohort.kind === 'delta' ? cohort.payload!.base : null,
        servers: cohort.servers,
        mechanism: planned.mechanism,
        payload:
          cohort.payload === undefined
            ? null
            : { base: cohort.payload.base === 0 ? null : cohort.payload.base, sizeBytes: cohort.payload.sizeBytes },
        source: planned.source ?? null,
        stripes: treesOf(planned).map(stripeView),
        predictedSeconds: predictedSeconds ?? null,
        reasons: [...cohort.reasons, ...planned.reasons],
        rejected: [...cohort.rejected, ...planned.rejected],
      }),
    ),
    bytes: countBytes(planned, full, fabric),
    warnings,
  };
  return {
    view,
    objectId,
    version,
    cohorts: timed.map(
      ({ cohort, planned, predictedSeconds }): PlannedCohort => ({
        kind: cohort.kind,
        servers: cohort.servers,
        mechanism: planned.mechanism,
        payload: cohort.payload,
        trees: treesOf(planned),
        predictedSeconds,
      }),
    ),
  };
}

interface Routed {
  readonly cohort: Cohort;
  readonly mechanism: PlannedCohort['mechanism'];
  readonly source: string | undefined;
  /** Undefined by unicast. */
  readonly stripes: Stripes | undefined;
  readonly reasons: string[];
  readonly rejected: PlanCohort['rejected'];
}

/** Chooses source, mechanism and tree of one cohort, with regard to what earlier cohorts of the plan use already. */
function route(
  cohort: Cohort,
  full: PayloadRecord,
  catalogue: Catalogue,
  fabric: FabricState,
  earlier: readonly Routed[],
): Routed {
  const { payload, servers } = cohort;
  if (payload === undefined)
    return { cohort, mechanism: 'none', source: undefined, stripes: undefined, reasons: [], rejected: [] };
  const rank = (node: string): [number, number] => [
    fabric.load(node) + earlier.filter((other) => other.source === node).length,
    distance(fabric, node, servers),
  ];
  const candidates = sendersOf(payload, catalogue, fabric)
    .map((node) => ({ node, rank: rank(node) }))
    .sort((a, b) => a.rank[0] - b.rank[0] || a.rank[1] - b.rank[1]);
  const rejected: PlanCohort['rejected'] = [];
  const others = earlier.flatMap(treesOf);
  const choice = chooseStripes(
    fabric.graph,
    candidates.map(({ node }) => node),
    segmentBytesFor(fabric.graph.topology.mtuBytes),
    (source, chosen) => fabric.planTree(source, servers, [...others, ...chosen]),
  );
  if ('trees' in choice) {
    const senders = new Set(choice.trees.map((tree) => tree.source));
    const { source } = choice.trees[0]!;
    const chosen = candidates.find(({ node }) => node === source)!.rank;
    const reasons = [sourceReason(source, chosen, candidates, payload)];
    for (const other of candidates)
      if (!senders.has(other.node))
        rejected.push({
          alternative: `source ${other.node}`,
          reason:
            choice.unreachable.find((unreachable) => unreachable.source === other.node)?.error.message ??
            `${other.rank[0]} transfers and ${other.rank[1]} links to its receivers, against ${chosen[0]} and ${chosen[1]}`,
          bytes: payload.sizeBytes,
        });
    if (choice.trees.length > 1) reasons.push(stripesReason(choice, senders));
    if (servers.length > 1) {
      const coreLinks = choice.trees.reduce((sum, tree) => sum + tree.coreLinks.length, 0);
      const part = choice.trees.length === 1 ? 'the payload' : 'its stripe';
      reasons.push(
        `one multicast: each of ${coreLinks} core links carries ${part} once, each of ${servers.length} host links the payload once`,
      );
      rejected.push({
        alternative: 'unicast to each',
        reason: `${servers.length} copies out of ${source} instead of one`,
        bytes: servers.length * payload.sizeBytes,
      });
    } else reasons.push('a tree to one receiver is the path to it; losses are repaired the same way');
    return { cohort, mechanism: 'multicast', source, stripes: choice, reasons, rejected };
  }
  const unreachable = choice.unreachable[0]?.error;
  const reader = unicastHolder(payload, full, catalogue, fabric, servers);
  if (reader === undefined)
    throw (
      unreachable ??
      new DdfError('AGENT_UNREACHABLE', `nobody who is attached holds version ${payload.version}`, {
        where: payload.memoryNodes.join(', '),
        remedy: 'Start the Memory Node that it was published to, or publish it to another.',
        recoverable: true,
      })
    );
  const why =
    unreachable === undefined
      ? 'no attached Memory Node has the payload'
      : `${unreachable.message}: no tree reaches all of them`;
  return {
    cohort,
    mechanism: 'unicast',
    source: reader,
    stripes: undefined,
    reasons: [`each reads from ${reader} by range`],
    rejected: [{ alternative: 'multicast', reason: why, bytes: payload.sizeBytes }],
  };
}

/** Any attached holder of a full image serves ranges of it; deltas are only with the Memory Nodes that made them. */
function unicastHolder(
  payload: PayloadRecord,
  full: PayloadRecord,
  catalogue: Catalogue,
  fabric: FabricState,
  servers: readonly string[],
): string | undefined {
  const holders =
    payload === full
      ? catalogue.holders(payload.objectId, payload.version).map((holder) => holder.agent)
      : sendersOf(payload, catalogue, fabric);
  return holders
    .filter((agent) => fabric.attached(agent))
    .map((agent) => ({ agent, load: fabric.load(agent), links: distance(fabric, agent, servers) }))
    .sort((a, b) => a.load - b.load || a.links - b.links)[0]?.agent;
}

function sourceReason(
  node: string,
  [load, links]: readonly [number, number],
  candidates: readonly unknown[],
  payload: PayloadRecord,
): string {
  const what = payload.base === 0 ? 'the full image' : `the delta from ${payload.base}`;
  return candidates.length === 1
    ? `${node} is the only attached Memory Node that has ${what}`
    : `${node} of ${candidates.length} Memory Nodes that have ${what}: it sends ${load} transfers and is ${links} links from the receivers' switches`;
}

/** Sum of the core links from an agent's switch to each receiver's; unreachable ones count as more than any path. */
function distance(fabric: FabricState, agent: string, servers: readonly string[]): number {
  const { graph } = fabric;
  const distances = graph.distancesTo(graph.host(agent).switch);
  const beyond = graph.topology.switches.length;
  return servers.reduce((sum, name) => sum + (distances.get(graph.host(name).switch) ?? beyond), 0);
}

function treesOf({ stripes }: Routed): readonly Tree[] {
  return stripes?.trees ?? [];
}

function stripeView({ source, switches, coreLinks, hostLinks }: Tree): PlanStripe {
  return {
    source,
    switches: switches.map((node) => node.name),
    coreLinks: coreLinks.map(({ from, to }) => ({ from, to })),
    hostLinks,
  };
}

function stripesReason({ trees, bitsPerSecond }: Stripes, senders: ReadonlySet<string>): string {
  const from = senders.size === 1 ? '' : ` from ${[...senders].join(', ')}`;
  return `${trees.length} stripes${from} over trees that share no link between switches carry ${rateText(bitsPerSecond)} together`;
}

function countBytes(routed: readonly Routed[], full: PayloadRecord, fabric: FabricState): Plan['bytes'] {
  const bytes = { source: 0, coreLinks: 0, hostLinks: 0, unicastSource: 0, unicastCoreLinks: 0 };
  const fullSource = routed.find((r) => r.cohort.kind === 'full')?.source ?? routed.find((r) => r.source)?.source;
  for (const planned of routed) {
    const { cohort, source } = planned;
    if (cohort.payload === undefined || source === undefined) continue;
    const { sizeBytes } = cohort.payload;
    const trees = treesOf(planned);
    bytes.source += outOfSources(planned);
    bytes.coreLinks +=
      trees.length === 0
        ? sizeBytes * distance(fabric, source, cohort.servers)
        : Math.round(trees.reduce((sum, tree) => sum + (sizeBytes / trees.length) * tree.coreLinks.length, 0));
    bytes.hostLinks += sizeBytes * cohort.servers.length;
    bytes.unicastSource += cohort.servers.length * full.sizeBytes;
    bytes.unicastCoreLinks += full.sizeBytes * distance(fabric, fullSource!, cohort.servers);
  }
  return bytes;
}

interface Timed {
  readonly cohort: Cohort;
  readonly planned: Routed;
  readonly predictedSeconds: Estimate | undefined;
}

/**
 * Seconds until a cohort has its payload, from the configured rates. Cohorts that share a source share its link evenly, and what one leaves free
 * the others take: they end in the order of their sizes.
 */
function predict(routed: readonly Routed[], fabric: FabricState): Timed[] {
  const segmentBytes = segmentBytesFor(fabric.graph.topology.mtuBytes);
  return routed.map((planned): Timed => {
    const { cohort, source, stripes } = planned;
    if (cohort.payload === undefined || source === undefined) return { cohort, planned, predictedSeconds: undefined };
    const rate = stripes?.bitsPerSecond ?? payloadRate(fabric.graph.host(source).link.rateBitsPerSecond, segmentBytes);
    const size = outOfSources(planned);
    const together = routed.filter((other) => other.source === source);
    // While the smaller ones run each of the n gets 1/n: this one has waited for the smaller ones' bytes and for as many of each larger one's.
    const bits = 8 * together.reduce((sum, other) => sum + Math.min(size, outOfSources(other)), 0);
    const roundTrips = treesOf(planned).map((tree) => roundTripUs(fabric.graph, tree, segmentBytes) / 1e6);
    const shared =
      together.length > 1 ? `, shared with ${together.length - 1} other cohort${together.length > 2 ? 's' : ''}` : '';
    return {
      cohort,
      planned,
      predictedSeconds: {
        value: bits / rate + Math.max(0, ...roundTrips),
        unit: 's',
        source: 'configured',
        basis: `${bytesText(size)} out of ${source} at ${rateText(rate)} of payload${shared}; without repair`,
      },
    };
  });
}

function outOfSources({ cohort, stripes }: Routed): number {
  return (cohort.payload?.sizeBytes ?? 0) * (stripes === undefined ? cohort.servers.length : 1);
}

function versionsText(versions: readonly number[]): string {
  return versions.length === 0 ? 'none yet' : `${versions.slice(-20).join(', ')}`;
}
