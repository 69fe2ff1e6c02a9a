import { createRandom } from '../base/random.ts';
import type { ApiClient } from '../controller/cli/client.ts';
import { planText } from '../controller/planner/plan-text.ts';
import type { HolderView, Plan, RolloutView, VersionView } from '../controller/service.ts';
import type { HeldAtStart } from '../lab/lab.ts';
import { formatBytes, formatSeconds, type MainJobFigures, reportJson, reportText } from '../lab/report.ts';
import { parseObjectId } from '../objects/ids.ts';
import type { Topology } from '../topologies/types.ts';
import { progressLine, SparseProgress } from './progress.ts';
import type { Terminal } from './terminal.ts';
import type { JobObject } from './up-object.ts';
import type { Cohorts } from './up-options.ts';

const REDRAW_MS = 200;
const POLL_MS = 50;
const SETTLE_MS = 5000;

/** What the main job needs of a fabric beside its REST API. */
export interface JobFabric {
  /** Starts every GPU server, each with what it holds already, and waits until they are attached. */
  startServers(held: ReadonlyMap<string, HeldAtStart>): Promise<void>;
  /** Takes the counters; the function that comes back takes them again and says what a rollout has cost in between. */
  measure(): Promise<(run: MeasuredRun) => Promise<Measurement>>;
}

export interface MeasuredRun {
  readonly rollout: RolloutView;
  readonly version: VersionView;
  readonly phases: MainJobFigures['phases'];
  /** From the request for the rollout to its end. */
  readonly seconds: number;
}

export interface Measurement {
  readonly figures: MainJobFigures;
  /** What was checked, and where the figures come from. */
  readonly remarks: readonly string[];
}

/** Everything that the steps of the main job share. */
export interface Job {
  readonly cohorts: Cohorts;
  readonly seed: number;
  /** Print the figures as one JSON object on stdout. */
  readonly json: boolean;
  readonly topology: Topology;
  readonly object: JobObject;
  readonly fabric: JobFabric;
  readonly client: ApiClient;
  readonly terminal: Terminal;
  /** A line for people: stdout, or stderr where stdout belongs to JSON. */
  readonly say: (text: string) => void;
  /** What was done before, and from now on what is done. */
  readonly phases: { name: string; seconds: number }[];
}

/**
 * Publishes the object's versions, prepares the servers, brings the version to all of them over REST and prints what it cost. Returns whether every
 * server holds the version, by its hash.
 */
export async function runJob(job: Job): Promise<boolean> {
  const { object, client, fabric, say } = job;
  await timed(job, 'publish', () => publish(job));
  await timed(job, 'prepare servers', () => prepareServers(job));
  const request = { object: object.name, version: object.version, servers: 'all' };
  say('');
  say(planText(await client.post<Plan>('/v1/plans', request)));
  say('');

  const finish = await fabric.measure();
  const { id } = await client.post<RolloutView>('/v1/rollouts', request);
  const rollout = await follow(job, id);
  const seconds = (Date.parse(rollout.endedAt ?? new Date().toISOString()) - Date.parse(rollout.startedAt)) / 1000;
  for (const phase of rollout.phases) job.phases.push({ name: `rollout: ${phase.state}`, seconds: phase.seconds });

  const versions = await client.list<VersionView>(`/v1/objects/${encodeURIComponent(object.name)}/versions`);
  const version = versions.find((view) => view.version === object.version)!;
  const verified = await holdersOf(job, version);
  const { figures, remarks } = await finish({
    rollout: { ...rollout, verified },
    version,
    phases: job.phases,
    seconds,
  });
  say('');
  say(reportText(figures));
  const failed = rollout.servers.filter(({ error }) => error !== null);
  for (const server of failed) say(`${server.name}: ${server.error}`);
  if (rollout.error !== null) say(`Rollout ${rollout.state}: ${rollout.error}`);
  for (const remark of remarks) say(remark);
  if (job.json) job.terminal.out(JSON.stringify(reportJson(figures)));
  return verified === figures.servers && rollout.state === 'active';
}

async function timed(job: Job, name: string, work: () => Promise<void>): Promise<void> {
  const started = performance.now();
  await work();
  job.phases.push({ name, seconds: (performance.now() - started) / 1000 });
}

async function publish({ object, client, say }: Job): Promise<void> {
  const path = `/v1/objects/${encodeURIComponent(object.name)}/versions`;
  if (object.base !== undefined) await client.post<VersionView>(path, { ...object.base });
  const started = performance.now();
  const version = await client.post<VersionView>(path, {
    version: object.version,
    path: object.path,
    ...(object.base === undefined ? {} : { base: object.base.version }),
  });
  const payloads = version.payloads.map(({ base, sizeBytes }) =>
    base === null ? `full image ${formatBytes(sizeBytes)}` : `delta from ${base} ${formatBytes(sizeBytes)}`,
  );
  say(
    `Published ${object.name} version ${object.version} on ${version.payloads[0]?.memoryNodes.join(', ')}: ${payloads.join(', ')} ` +
      `(${formatSeconds((performance.now() - started) / 1000)}), sha256 ${version.rootSha256}`,
  );
}

/** Starts the servers, each with the version that it is supposed to hold before the rollout. */
async function prepareServers({ cohorts, seed, topology, object, client, fabric, say }: Job): Promise<void> {
  const versions = await client.list<VersionView>(`/v1/objects/${encodeURIComponent(object.name)}/versions`);
  const objectId = parseObjectId(versions[0]!.objectId);
  const servers = topology.hosts.filter(({ kind }) => kind === 'gpu-server').map(({ name }) => name);
  const { current, delta } = assign(servers, cohorts, seed);
  const { base } = object;
  const held = new Map(current.map((server) => [server, { objectId, version: object.version }]));
  if (base !== undefined) for (const server of delta) held.set(server, { objectId, version: base.version });
  await fabric.startServers(held);
  say(
    `Prepared: ${current.length} servers hold version ${object.version}` +
      `${base === undefined ? '' : `, ${delta.length} version ${base.version}`}, ${cohorts.full} nothing; each proved it by SHA-256`,
  );
}

/** Which servers hold what: drawn by seed, so that every leaf has some of each. */
function assign(servers: readonly string[], cohorts: Cohorts, seed: number): { current: string[]; delta: string[] } {
  const random = createRandom(`cohorts/${seed}`);
  const shuffled = [...servers];
  for (let i = shuffled.length - 1; i > 0; i--) {
    const other = random.below(i + 1);
    [shuffled[i], shuffled[other]] = [shuffled[other]!, shuffled[i]!];
  }
  return {
    current: shuffled.slice(0, cohorts.current),
    delta: shuffled.slice(cohorts.current, cohorts.current + cohorts.delta),
  };
}

/** Shows the rollout's progress until it ends; returns its last state. */
async function follow({ client, terminal, say }: Job, id: string): Promise<RolloutView> {
  const path = `/v1/rollouts/${encodeURIComponent(id)}`;
  const { redraw } = terminal;
  let drawing = Promise.resolve();
  let timer: NodeJS.Timeout | undefined;
  if (redraw !== undefined) {
    const draw = async (): Promise<void> => redraw(progressLine(await client.get<RolloutView>(path)));
    timer = setInterval(() => {
      drawing = drawing.then(draw).catch(() => undefined); // the events below say what is wrong
    }, REDRAW_MS);
  }
  try {
    const sparse = new SparseProgress();
    for await (const event of client.events(id)) {
      const line = redraw === undefined ? sparse.line(event) : undefined;
      if (line !== undefined) say(line);
    }
  } finally {
    clearInterval(timer);
    await drawing;
  }
  const view = await settled(client, path);
  redraw?.(progressLine(view));
  return view;
}

/** The rollout when it has ended and its senders have said their last, or a few seconds after its end at the latest. */
async function settled(client: ApiClient, path: string): Promise<RolloutView> {
  let deadline = Number.POSITIVE_INFINITY;
  for (;;) {
    const view = await client.get<RolloutView>(path);
    if (view.endedAt !== null && deadline === Number.POSITIVE_INFINITY) deadline = Date.now() + SETTLE_MS;
    const isSettled =
      view.endedAt !== null && view.transfers.every(({ state }) => state === 'closed' || state === 'failed');
    if (isSettled || Date.now() > deadline) return view;
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}

/** How many servers have proved to hold exactly this version. */
async function holdersOf({ object, client }: Job, version: VersionView): Promise<number> {
  const path = `/v1/objects/${encodeURIComponent(object.name)}/holders?version=${version.version}`;
  const holders = await client.list<HolderView>(path);
  return holders.filter(({ kind, rootSha256 }) => kind === 'gpu-server' && rootSha256 === version.rootSha256).length;
}
