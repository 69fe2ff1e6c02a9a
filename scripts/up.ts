import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { DdfError } from '../base/errors.ts';
import { createRandom } from '../base/random.ts';
import { ApiClient } from '../controller/cli/client.ts';
import { planText } from '../controller/planner/plan-text.ts';
import type { HolderView, Plan, RolloutView, VersionView } from '../controller/service.ts';
import { compareWithWires, difference, figuresOf } from '../lab/figures.ts';
import { type Lab, startLab } from '../lab/lab.ts';
import { formatBytes, formatCount, formatSeconds, reportJson, reportText } from '../lab/report.ts';
import { parseObjectId } from '../objects/ids.ts';
import { loadTopology } from '../topologies/load.ts';
import { withServers } from '../topologies/servers.ts';
import type { Topology } from '../topologies/types.ts';
import { Interruption } from './interruption.ts';
import { progressLine, SparseProgress } from './progress.ts';
import type { Terminal } from './terminal.ts';
import { demoObject, type JobObject, userObject } from './up-object.ts';
import { type Cohorts, parseUpOptions, type RawUpOptions, type UpOptions } from './up-options.ts';

const DEFAULT_TOPOLOGY = join(dirname(dirname(fileURLToPath(import.meta.url))), 'topologies', 'leaf-spine.yaml');
const REDRAW_MS = 200;
const POLL_MS = 50;
const SETTLE_MS = 5000;
const EXIT_INTERRUPTED = 130;

/** Everything that the steps of the main job share. */
interface Job {
  readonly options: UpOptions;
  readonly topology: Topology;
  readonly object: JobObject;
  readonly lab: Lab;
  readonly client: ApiClient;
  readonly terminal: Terminal;
  /** A line for people: stdout, or stderr where stdout belongs to JSON. */
  readonly say: (text: string) => void;
  readonly phases: { name: string; seconds: number }[];
}

/**
 * The main job: starts a fabric, publishes the object's versions, prepares the servers, brings the version to all of them over REST and
 * prints what it cost. Returns the exit code; leaves no process, port or file behind, whatever happens.
 */
export async function runUp(raw: RawUpOptions, terminal: Terminal): Promise<number> {
  const described = await readTopology(raw.topology);
  const present = described.hosts.filter(({ kind }) => kind === 'gpu-server').length;
  const options = parseUpOptions(raw, present);
  const topology = options.servers === present ? described : withServers(described, options.servers);
  requireHosts(topology, raw.topology);
  const say = options.json ? terminal.error : terminal.out;
  const directory = await mkdtemp(join(tmpdir(), 'ddf-up-'));
  const interruption = new Interruption(directory);
  let lab: Promise<Lab> | undefined;
  try {
    const phases: Job['phases'] = [];
    const object = await interruption.race(
      options.object === undefined ? demoObject(directory, options.seed) : userObject(options.object, options.base),
    );
    say(fabricText(topology, options));
    for (const line of object.description) say(line);
    const started = performance.now();
    const starting = startLab({
      topology,
      seed: options.seed,
      lossPercent: options.loss,
      restAddress: `127.0.0.1:${options.port}`,
      directory: join(directory, 'lab'),
    });
    lab = starting;
    const running = await interruption.race(starting);
    phases.push({ name: 'start the fabric', seconds: (performance.now() - started) / 1000 });
    say(`REST API at ${running.url}`);
    const client = new ApiClient(running.url);
    const job: Job = { options, topology, object, lab: running, client, terminal, say, phases };
    const allVerified = await interruption.race(runJob(job));
    if (options.serve) await serve(job, interruption);
    return allVerified ? 0 : 1;
  } catch (error) {
    if (!interruption.isInterrupted) throw error;
    terminal.error('Interrupted: stopping.');
    return EXIT_INTERRUPTED;
  } finally {
    terminal.finishLine();
    await cleanUp(lab, directory);
    interruption.end();
  }
}

async function cleanUp(lab: Promise<Lab> | undefined, directory: string): Promise<void> {
  try {
    // A lab that failed to start has stopped itself.
    const running = await lab?.catch(() => undefined);
    await running?.stop();
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

async function readTopology(file: string | undefined): Promise<Topology> {
  const path = file === undefined ? DEFAULT_TOPOLOGY : resolve(file);
  const text = await readFile(path, 'utf8').catch((cause: unknown) => {
    throw new DdfError(
      'INVALID_FILE',
      `--topology: the file cannot be read (${(cause as NodeJS.ErrnoException).code})`,
      {
        where: path,
        remedy: 'Check the path and its permissions.',
        cause,
      },
    );
  });
  return loadTopology(text, file ?? 'topologies/leaf-spine.yaml');
}

/** Topologies without them are sound, but there is nothing to do on them. */
function requireHosts({ name, hosts }: Topology, file: string | undefined): void {
  for (const needed of ['memory-node', 'gpu-server'] as const)
    if (!hosts.some(({ kind }) => kind === needed))
      throw new DdfError('INVALID_TOPOLOGY', `the topology ${name} has no ${needed}`, {
        where: file ?? name,
        remedy: `The main job needs at least one host of the kind ${needed}.`,
      });
}

function fabricText(topology: Topology, { loss, seed }: UpOptions): string {
  const counts = new Map<string, number>();
  for (const { layer } of topology.switches) counts.set(layer, (counts.get(layer) ?? 0) + 1);
  for (const { kind } of topology.hosts) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  const parts = [...counts].map(([kind, count]) => `${count} x ${kind}`);
  return (
    `Fabric ${topology.name} in this process: ${parts.join(', ')}; MTU ${topology.mtuBytes}, ` +
    `${loss} % loss on every host link in both directions (seed ${seed})`
  );
}

/** Returns whether every server holds the version, by its hash. */
async function runJob(job: Job): Promise<boolean> {
  const { object, client, lab, say } = job;
  await timed(job, 'publish', () => publish(job));
  await timed(job, 'prepare servers', () => prepareServers(job));
  const request = { object: object.name, version: object.version, servers: 'all' };
  say('');
  say(planText(await client.post<Plan>('/v1/plans', request)));
  say('');

  const before = await lab.snapshot();
  const { id } = await client.post<RolloutView>('/v1/rollouts', request);
  const rollout = await follow(job, id);
  const seconds = (Date.parse(rollout.endedAt ?? new Date().toISOString()) - Date.parse(rollout.startedAt)) / 1000;
  for (const phase of rollout.phases) job.phases.push({ name: `rollout: ${phase.state}`, seconds: phase.seconds });
  const change = difference(before, await lab.snapshot());

  const versions = await client.list<VersionView>(`/v1/objects/${encodeURIComponent(object.name)}/versions`);
  const version = versions.find((view) => view.version === object.version)!;
  const verified = await holdersOf(job, version);
  const { hosts } = job.topology;
  const figures = figuresOf({
    rollout: { ...rollout, verified },
    version,
    hosts,
    change,
    phases: job.phases,
    seconds,
  });
  say('');
  say(reportText(figures));
  const failed = rollout.servers.filter(({ error }) => error !== null);
  for (const server of failed) say(`${server.name}: ${server.error}`);
  if (rollout.error !== null) say(`Rollout ${rollout.state}: ${rollout.error}`);
  const check = compareWithWires(change);
  if (check.mismatches.length > 0)
    throw new DdfError('INTERNAL', `the switches' counters and the wires disagree: ${check.mismatches.join('; ')}`);
  say(
    `Checked: ${check.compared} counters at switch ports and their wires agree on every packet and byte (${formatCount(check.packets)} packets)`,
  );
  if (job.options.json) job.terminal.out(JSON.stringify(reportJson(figures)));
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
async function prepareServers({ options, topology, object, client, lab, say }: Job): Promise<void> {
  const versions = await client.list<VersionView>(`/v1/objects/${encodeURIComponent(object.name)}/versions`);
  const objectId = parseObjectId(versions[0]!.objectId);
  const servers = topology.hosts.filter(({ kind }) => kind === 'gpu-server').map(({ name }) => name);
  const { current, delta } = assign(servers, options.cohorts, options.seed);
  const { base } = object;
  const held = new Map(current.map((server) => [server, { objectId, version: object.version }]));
  if (base !== undefined) for (const server of delta) held.set(server, { objectId, version: base.version });
  await lab.startServers(held);
  say(
    `Prepared: ${current.length} servers hold version ${object.version}` +
      `${base === undefined ? '' : `, ${delta.length} version ${base.version}`}, ${options.cohorts.full} nothing; each proved it by SHA-256`,
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

async function serve({ lab, object, say }: Job, interruption: Interruption): Promise<void> {
  say('');
  say(`Serving at ${lab.url} until Ctrl-C. For example:`);
  say(`  curl ${lab.url}/v1/objects/${encodeURIComponent(object.name)}/holders?version=${object.version}`);
  say(`  node scripts/ddf.mjs status --url ${lab.url}`);
  say(`  node scripts/ddf.mjs publish FILE models/mine 1 --url ${lab.url}`);
  say(`  node scripts/ddf.mjs rollout models/mine 1 --url ${lab.url}`);
  await interruption.wait();
}
