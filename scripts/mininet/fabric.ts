import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { createWorkers, type Workers } from '../../agents/io/workers.ts';
import { Store } from '../../agents/store/store.ts';
import { DdfError } from '../../base/errors.ts';
import { ApiClient } from '../../controller/cli/client.ts';
import type { AgentView } from '../../controller/service.ts';
import type { HeldAtStart } from '../../lab/lab.ts';
import { fullManifest } from '../../objects/manifest.ts';
import { formatTopology } from '../../topologies/format.ts';
import type { MininetPlan } from '../../topologies/mininet/plan.ts';
import type { HostNode, Topology } from '../../topologies/types.ts';
import type { JobFabric } from '../main-job.ts';
import type { JobObject } from '../up-object.ts';
import { figuresBetween, takeSnapshot } from './counters.ts';
import { MininetNetwork } from './network.ts';
import type { MininetOptions } from './options.ts';
import { Program } from './program.ts';
import { RUN_VARIABLE, type Run } from './runs.ts';
import { DDF, lossesIn, P4RUNTIME_PORT, type SwitchLosses, switchCommand } from './switches.ts';

const AGENTS_PORT = 9560;
const READY_TIMEOUT_MS = 60_000;
/** Every agent is a process that has to start on the same few processors. */
const ATTACH_BASE_MS = 60_000;
const ATTACH_PER_AGENT_MS = 3_000;
const POLL_MS = 200;
/** What an agent says at its end, see run-agent.ts. */
const THROWN_AWAY = /threw away (\d+) datagrams on their way out, (\d+) on their way in/;
const LOST_AT_SOCKET = /refused (\d+) and lost (\d+)$/m;

export interface MininetFabricOptions {
  readonly run: Run;
  readonly topology: Topology;
  readonly plan: MininetPlan;
  readonly options: MininetOptions;
  readonly object: JobObject;
}

/** A fabric in Mininet: switches, controller and agents as programs, each in its node's network namespace, the controller in the root's. */
export class MininetFabric implements JobFabric {
  readonly network: MininetNetwork;
  private readonly setup: MininetFabricOptions;
  private readonly programs: Program[] = [];
  private readonly workers: Workers = createWorkers();
  private readonly environment: NodeJS.ProcessEnv;
  private apiUrl = '';
  private stopping: Promise<void> | undefined;

  /** Resolves when switches are programmed and the Memory Nodes attached. @throws DdfError; then all of it is stopped again */
  static async start(setup: MininetFabricOptions): Promise<MininetFabric> {
    const environment = environmentOf(setup.run);
    const network = await MininetNetwork.build({
      plan: setup.plan,
      directory: setup.run.directory,
      environment,
      outputTo: setup.options.json ? 'stderr' : 'stdout',
    });
    const fabric = new MininetFabric(setup, network, environment);
    try {
      await fabric.startPrograms();
      return fabric;
    } catch (error) {
      await fabric.stop();
      throw error;
    }
  }

  private constructor(setup: MininetFabricOptions, network: MininetNetwork, environment: NodeJS.ProcessEnv) {
    this.setup = setup;
    this.network = network;
    this.environment = environment;
  }

  get url(): string {
    return this.apiUrl;
  }

  async startServers(held: ReadonlyMap<string, HeldAtStart>): Promise<void> {
    const hosts = this.setup.topology.hosts.filter(({ kind }) => kind === 'gpu-server');
    for (const { name } of hosts) {
      const version = held.get(name);
      if (version !== undefined) await this.fillStore(name, version);
    }
    await this.startAgents(hosts);
  }

  async measure(): ReturnType<JobFabric['measure']> {
    const { plan, topology } = this.setup;
    const before = await takeSnapshot(plan, this.network.pids);
    return async (measured) => {
      this.requireRunning();
      return figuresBetween(before, await takeSnapshot(plan, this.network.pids), topology, plan, measured);
    };
  }

  /** Ends agents, controller, switches and the network, in this order. Idempotent. */
  stop(): Promise<void> {
    this.stopping ??= this.stopAll();
    return this.stopping;
  }

  /** What the switches and the agents said of losses when they ended. */
  lossTexts(): string[] {
    const [switches, others] = [this.programs.slice(0, this.switchCount), this.programs.slice(this.switchCount)];
    const reports = switches.flatMap(({ log }) => lossesIn(log) ?? []);
    const sum = (name: keyof SwitchLosses): number => reports.reduce((all, report) => all + report[name], 0);
    const texts: string[] = [];
    if (reports.length > 0)
      texts.push(
        `${reports.length} switches lost ${sum('onPurpose')} frames on purpose, ${sum('overflow')} because rings or queues were full`,
      );
    const thrown = others.flatMap(({ log }) => THROWN_AWAY.exec(log)?.slice(1).map(Number) ?? []);
    if (thrown.length > 0)
      texts.push(`Agents threw away ${thrown.reduce((all, count) => all + count, 0)} datagrams on purpose`);
    const atSockets = others.flatMap(({ log }) => LOST_AT_SOCKET.exec(log)?.slice(1).map(Number) ?? []);
    const lost = atSockets.reduce((all, count) => all + count, 0);
    if (lost > 0) texts.push(`Agents' sockets lost ${lost} datagrams`);
    return texts;
  }

  private async stopAll(): Promise<void> {
    // Started first, stopped last; those of one kind together.
    const [switches, rest] = [this.programs.slice(0, this.switchCount), this.programs.slice(this.switchCount)];
    const [controller, ...agents] = rest;
    for (const group of [agents, controller === undefined ? [] : [controller], switches])
      await Promise.all(group.map((program) => program.stop()));
    await this.network.stop();
    await this.workers.close();
  }

  private get switchCount(): number {
    return this.setup.topology.switches.length;
  }

  private async startPrograms(): Promise<void> {
    const { topology, plan, options, run } = this.setup;
    const loss = { percent: options.loss, seed: options.seed };
    const addresses: string[] = [];
    for (const node of plan.nodes) {
      if (node.kind !== 'switch') continue;
      this.startProgram(node.name, switchCommand(options.switchKind, plan, node, loss), node.name);
      addresses.push(`${node.name}=${node.management.address}:${P4RUNTIME_PORT}`);
    }
    const topologyFile = join(run.directory, 'topology.yaml');
    writeFileSync(topologyFile, formatTopology(topology));
    const controller = this.startProgram('controller', [
      process.execPath,
      DDF,
      'controller',
      '--topology',
      topologyFile,
      '--switches',
      addresses.join(','),
      '--db',
      join(run.directory, 'controller.sqlite'),
      '--agents',
      `${plan.management.address}:${AGENTS_PORT}`,
      '--api',
      `127.0.0.1:${options.port}`,
    ]);
    await this.until('the REST API is there', READY_TIMEOUT_MS, async () => {
      this.apiUrl = /REST API at (\S+)/.exec(controller.log)?.[1] ?? '';
      return this.apiUrl !== '';
    });
    await this.until('all switches run the program', READY_TIMEOUT_MS, async () => {
      const response = await fetch(`${this.apiUrl}/readyz`);
      await response.body?.cancel();
      return response.ok;
    });
    await this.startAgents(topology.hosts.filter(({ kind }) => kind === 'memory-node'));
  }

  private async startAgents(hosts: readonly HostNode[]): Promise<void> {
    const { plan, options, topology } = this.setup;
    for (const { name, kind, ip } of hosts)
      this.startProgram(
        name,
        [
          process.execPath,
          DDF,
          kind,
          '--name',
          name,
          '--controller',
          `${plan.management.address}:${AGENTS_PORT}`,
          '--store',
          this.storeOf(name),
          '--ip',
          ip,
          '--mtu',
          String(topology.mtuBytes),
          '--volatile',
          '--seed',
          String(options.seed),
          ...(options.sockets === undefined ? [] : ['--sockets', options.sockets]),
          // bmv2 loses nothing by itself.
          ...(options.switchKind === 'bmv2' && options.loss > 0 ? ['--loss', String(options.loss)] : []),
        ],
        name,
      );
    const client = new ApiClient(this.apiUrl);
    const timeoutMs = ATTACH_BASE_MS + ATTACH_PER_AGENT_MS * hosts.length;
    await this.until(`${hosts.length} agents are attached`, timeoutMs, async () => {
      const views = [
        ...(await client.list<AgentView>('/v1/memory-nodes')),
        ...(await client.list<AgentView>('/v1/servers')),
      ];
      const attached = new Set(views.filter((view) => view.attached).map((view) => view.name));
      return hosts.every(({ name }) => attached.has(name));
    });
  }

  private startProgram(name: string, command: readonly string[], node?: string): Program {
    const program = new Program({
      name,
      command,
      ...(node === undefined ? {} : { namespaceOf: this.network.pids.get(node)! }),
      environment: this.environment,
      logFile: join(this.setup.run.directory, `${name}.log`),
    });
    this.programs.push(program);
    return program;
  }

  private storeOf(name: string): string {
    return join(this.setup.run.directory, 'stores', name);
  }

  /** What a server holds when it starts: imported as a Memory Node imports it, every chunk hashed. */
  private async fillStore(name: string, { objectId, version }: HeldAtStart): Promise<void> {
    const { object } = this.setup;
    const source = version === object.version ? object.path : object.base!.path;
    const store = new Store({ directory: this.storeOf(name), durable: false });
    try {
      const work = store.begin(object.sizeBytes);
      const hashes = await this.workers.run({ kind: 'import-file', source, target: work.dataPath }, name);
      await store.commit(work, fullManifest(objectId, version, hashes));
      store.activate(objectId, version);
    } finally {
      store.close();
    }
  }

  private requireRunning(): void {
    for (const program of this.programs) program.requireRunning();
  }

  private async until(what: string, timeoutMs: number, isTrue: () => Promise<boolean>): Promise<void> {
    const deadline = Date.now() + timeoutMs;
    for (;;) {
      if (this.stopping !== undefined) throw new DdfError('CANCELLED', 'the fabric is being stopped');
      this.requireRunning();
      if (await isTrue()) return;
      if (Date.now() > deadline)
        throw new DdfError('TIMEOUT', `waited ${timeoutMs / 1000} s until ${what}`, {
          where: this.setup.run.directory,
          remedy: 'The machine may be too busy: ask for fewer servers.',
        });
      await delay(POLL_MS);
    }
  }
}

/** Programs of one run share a cache of translated files, which goes with the run: a second agent starts in half of the time. */
function environmentOf(run: Run): NodeJS.ProcessEnv {
  const temporary = join(run.directory, 'tmp');
  mkdirSync(temporary, { recursive: true });
  return { ...process.env, [RUN_VARIABLE]: run.mark, TMPDIR: temporary, TSX_DISABLE_CACHE: '' };
}
