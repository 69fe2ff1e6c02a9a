import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DdfError } from '../base/errors.ts';
import { ApiClient } from '../controller/cli/client.ts';
import { compareWithWires, difference, figuresOf } from '../lab/figures.ts';
import { type Lab, startLab } from '../lab/lab.ts';
import { formatCount } from '../lab/report.ts';
import { withServers } from '../topologies/servers.ts';
import type { Topology } from '../topologies/types.ts';
import { Interruption } from './interruption.ts';
import { type JobFabric, runJob } from './main-job.ts';
import type { Terminal } from './terminal.ts';
import { countsText, readTopology, requireHosts } from './topology-file.ts';
import { demoObject, type JobObject, userObject } from './up-object.ts';
import { parseUpOptions, type RawUpOptions, type UpOptions } from './up-options.ts';

const EXIT_INTERRUPTED = 130;

/**
 * The main job: starts a fabric, publishes the object's versions, prepares the servers, brings the version to all of them over REST and
 * prints what it cost. Returns the exit code; leaves no process, port or file behind, whatever happens.
 */
export async function runUp(raw: RawUpOptions, terminal: Terminal): Promise<number> {
  const described = await readTopology('--topology', raw.topology);
  const present = described.hosts.filter(({ kind }) => kind === 'gpu-server').length;
  const options = parseUpOptions(raw, present);
  const topology = options.servers === present ? described : withServers(described, options.servers);
  requireHosts(topology, raw.topology);
  const say = options.json ? terminal.error : terminal.out;
  const directory = await mkdtemp(join(tmpdir(), 'ddf-up-'));
  const interruption = new Interruption(directory);
  let lab: Promise<Lab> | undefined;
  try {
    const phases: { name: string; seconds: number }[] = [];
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
    const { cohorts, seed, json } = options;
    const fabric = jobFabric(running, topology);
    const allVerified = await interruption.race(
      runJob({ cohorts, seed, json, topology, object, fabric, client, terminal, say, phases }),
    );
    if (options.serve) await serve(running.url, object, say, interruption);
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

function fabricText(topology: Topology, { loss, seed }: UpOptions): string {
  return (
    `Fabric ${topology.name} in this process: ${countsText(topology)}; MTU ${topology.mtuBytes}, ` +
    `${loss} % loss on every host link in both directions (seed ${seed})`
  );
}

/** Bytes and packets are the P4 counters', which have to agree with what the wires carried. */
function jobFabric(lab: Lab, { hosts }: Topology): JobFabric {
  return {
    startServers: (held) => lab.startServers(held),
    async measure() {
      const before = await lab.snapshot();
      return async (run) => {
        const change = difference(before, await lab.snapshot());
        const figures = figuresOf({ ...run, hosts, change });
        const { compared, packets, mismatches } = compareWithWires(change);
        if (mismatches.length > 0)
          throw new DdfError('INTERNAL', `the switches' counters and the wires disagree: ${mismatches.join('; ')}`);
        const remark =
          `Checked: ${compared} counters at switch ports and their wires agree on every packet and byte ` +
          `(${formatCount(packets)} packets)`;
        return { figures, remarks: [remark] };
      };
    },
  };
}

async function serve(
  url: string,
  object: JobObject,
  say: (text: string) => void,
  interruption: Interruption,
): Promise<void> {
  say('');
  say(`Serving at ${url} until Ctrl-C. For example:`);
  say(`  curl ${url}/v1/objects/${encodeURIComponent(object.name)}/holders?version=${object.version}`);
  say(`  node scripts/ddf.mjs status --url ${url}`);
  say(`  node scripts/ddf.mjs publish FILE models/mine 1 --url ${url}`);
  say(`  node scripts/ddf.mjs rollout models/mine 1 --url ${url}`);
  await interruption.wait();
}
