import { rm } from 'node:fs/promises';
import { ApiClient } from '../../controller/cli/client.ts';
import { planMininet } from '../../topologies/mininet/plan.ts';
import { withHostRate, withLinkDelay } from '../../topologies/rates.ts';
import { withServers } from '../../topologies/servers.ts';
import type { Topology } from '../../topologies/types.ts';
import { Interruption } from '../interruption.ts';
import { runJob } from '../main-job.ts';
import type { Terminal } from '../terminal.ts';
import { countsText, readTopology, requireHosts } from '../topology-file.ts';
import { demoObject, userObject } from '../up-object.ts';
import { MininetFabric } from './fabric.ts';
import { type MininetOptions, parseMininetOptions, type RawMininetOptions } from './options.ts';
import { beginRun, findLeftovers, removeLeftovers } from './runs.ts';
import { mininetTools, requireTools } from './tools.ts';

const EXIT_INTERRUPTED = 130;
/**
 * Nothing delays packets on these links, but a software switch on a processor that it shares with dozens of programs takes about this long for each: the
 * controller derives round trips and the intervals of NACK elimination from it.
 */
const HOP_DELAY_US = 1000;

/**
 * `ddf mininet`: the main job with hosts in network namespaces, agents as processes and switches of either kind. Returns the exit code; leaves no
 * process, device or file behind, whatever happens short of a kill -9 (then the next run cleans up, or `ddf doctor --clean`).
 */
export async function runMininet(file: string, raw: RawMininetOptions, terminal: Terminal): Promise<number> {
  const described = await readTopology('topology', file);
  const options = parseMininetOptions(raw, described);
  const topology = withLinkDelay(withHostRate(withServers(described, options.servers), options.hostRate), HOP_DELAY_US);
  requireHosts(topology, file);
  requireTools(mininetTools(options.switchKind));
  await removeLeftovers(findLeftovers());

  const say = options.json ? terminal.error : terminal.out;
  const run = beginRun();
  const interruption = new Interruption(run.directory);
  let fabric: Promise<MininetFabric> | undefined;
  try {
    const plan = planMininet(topology, { runId: run.id, networkIndex: run.networkIndex });
    const { object: objectFile, base, seed, cohorts, json } = options;
    const object = await interruption.race(
      objectFile === undefined ? demoObject(run.directory, seed) : userObject(objectFile, base),
    );
    say(fabricText(topology, options));
    for (const line of object.description) say(line);
    const started = performance.now();
    fabric = MininetFabric.start({ run, topology, plan, options, object });
    const running = await interruption.race(fabric);
    const phases = [{ name: 'start the fabric', seconds: (performance.now() - started) / 1000 }];
    say(`REST API at ${running.url}; agents over ${plan.management.bridge}, ${plan.management.address}`);
    const client = new ApiClient(running.url);
    const isDone = await interruption.race(
      runJob({ cohorts, seed, json, topology, object, fabric: running, client, terminal, say, phases }),
    );
    if (options.cli) await commandLine(running, interruption, say);
    return isDone ? 0 : 1;
  } catch (error) {
    if (!interruption.isInterrupted) throw error;
    terminal.error('Interrupted: stopping.');
    return EXIT_INTERRUPTED;
  } finally {
    terminal.finishLine();
    // A fabric that failed to start has stopped itself.
    const running = await fabric?.catch(() => undefined);
    await running?.stop();
    for (const line of running?.lossTexts() ?? []) say(line);
    await rm(run.directory, { recursive: true, force: true });
    interruption.end();
  }
}

/** Ctrl-C belongs to what runs in Mininet's command line meanwhile. */
async function commandLine(
  { network, url }: MininetFabric,
  interruption: Interruption,
  say: (text: string) => void,
): Promise<void> {
  say('');
  say(`Mininet's command line: exit or Ctrl-D ends it and everything. The fabric's REST API is at ${url}.`);
  interruption.release('SIGINT');
  const passOn = (): void => network.interrupt();
  process.on('SIGINT', passOn);
  try {
    await interruption.race(network.commandLine());
  } finally {
    process.off('SIGINT', passOn);
  }
}

function fabricText(topology: Topology, { switchKind, hostRate, loss, seed }: MininetOptions): string {
  const where =
    switchKind === 'embedded'
      ? "at the switches' host ports, in both directions"
      : "of the datagrams at every agent's socket, in both directions";
  return (
    `Fabric ${topology.name} in Mininet on ${switchKind} switches: ${countsText(topology)}; MTU ${topology.mtuBytes}, ` +
    `host links shaped to ${hostRate / 1e6} Mb/s, the others in proportion; ${loss} % loss ${where} (seed ${seed})`
  );
}
