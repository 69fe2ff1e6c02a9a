import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Agent, AgentOptions } from '../agents/agent.ts';
import { createGpuServer } from '../agents/gpu-server.ts';
import { createWorkers, type Workers } from '../agents/io/workers.ts';
import { createMemoryNode } from '../agents/memory-node.ts';
import { RealScheduler } from '../base/clock.ts';
import { DdfError } from '../base/errors.ts';
import { createLogger, type Logger } from '../base/logger.ts';
import { createRandom, type Random } from '../base/random.ts';
import { type Controller, createController } from '../controller/main.ts';
import { traceOnDevice } from '../switch/admin/trace-request.ts';
import type { Device } from '../switch/device.ts';
import { type P4RuntimeServer, startP4RuntimeServer } from '../switch/server/p4runtime-server.ts';
import type { HostNode, Topology } from '../topologies/types.ts';
import { Fabric, type NarrowLink } from './fabric.ts';
import { type Snapshot, wireCounts } from './figures.ts';
import { readFabricProgram } from './p4-program.ts';

export interface LabOptions {
  readonly topology: Topology;
  readonly seed: number | string;
  /** Of the frames on every host link, in each direction. Default 0. */
  readonly lossPercent?: number;
  /** Links that carry less than the topology says. */
  readonly narrowLinks?: readonly NarrowLink[];
  /** `host:port` of the REST API. Default 127.0.0.1 and any free port. */
  readonly restAddress?: string;
  /** Everything that is stored goes below it; made if missing, left for its owner to remove. */
  readonly directory: string;
  /** Default: warnings, on stderr. */
  readonly logger?: Logger;
}

/** A version that a server holds when it starts. */
export interface HeldAtStart {
  readonly objectId: bigint;
  readonly version: number;
}

const LOOPBACK = '127.0.0.1:0';
const READY_TIMEOUT_MS = 30_000;
const ATTACH_TIMEOUT_MS = 30_000;
const QUIET_TIMEOUT_MS = 10_000;
const POLL_MS = 20;

/** Starts everything but the GPU servers; resolves when switches are programmed and the Memory Nodes attached. */
export async function startLab(options: LabOptions): Promise<Lab> {
  const lab = new Lab(options);
  try {
    await lab.start();
    return lab;
  } catch (error) {
    await lab.stop();
    throw error;
  }
}

/**
 * A whole fabric in this process and in real time: embedded switches behind P4Runtime servers, wires, hosts, the controller with its
 * REST API, and agents that attach to it, all over gRPC on loopback at free ports.
 */
export class Lab {
  readonly fabric: Fabric;
  private readonly options: LabOptions;
  private readonly scheduler = new RealScheduler();
  private readonly random: Random;
  private readonly logger: Logger;
  private readonly workers: Workers = createWorkers();
  private readonly agents = new Map<string, Agent>();
  private readonly servers: P4RuntimeServer[] = [];
  private controller: Controller | undefined;
  private lastIncarnation = 0n;
  private stopping: Promise<void> | undefined;

  constructor(options: LabOptions) {
    const { topology, seed, lossPercent = 0, narrowLinks = [] } = options;
    this.options = options;
    this.random = createRandom(`lab/${seed}`);
    this.logger = options.logger ?? createLogger();
    this.fabric = new Fabric(topology, this.scheduler, { seed, narrowLinks, hostLinks: { loss: lossPercent / 100 } });
  }

  /** Base URL of the REST API. */
  get url(): string {
    return this.requireController().apiUrl!;
  }

  /** Called by {@link startLab}. */
  async start(): Promise<void> {
    const { topology, directory, restAddress = LOOPBACK } = this.options;
    mkdirSync(directory, { recursive: true });
    const switches = [];
    for (const [name, device] of this.fabric.devices) {
      const server = await startP4RuntimeServer({
        devices: [device],
        address: LOOPBACK,
        scheduler: this.scheduler,
        logger: this.logger,
      });
      this.servers.push(server);
      switches.push({ name, address: `127.0.0.1:${server.port}` });
    }
    const { bmv2Json, index } = readFabricProgram();
    this.controller = createController({
      topology,
      switches,
      program: { bmv2Json, p4Info: index.p4Info },
      databasePath: join(directory, 'controller.sqlite'),
      agentsAddress: LOOPBACK,
      apiAddress: restAddress,
      scheduler: this.scheduler,
      random: this.random.fork('controller'),
      logger: this.logger,
      trace: (name, request) => traceOnDevice(this.requireDevice(name), request),
    });
    await this.controller.start();
    await this.controller.whenReady(READY_TIMEOUT_MS);
    await this.startAgents(topology.hosts.filter(({ kind }) => kind === 'memory-node'));
  }

  private requireDevice(name: string): Device {
    const device = this.fabric.devices.get(name);
    if (device !== undefined) return device;
    throw new DdfError('NOT_FOUND', `there is no switch "${name}"`, {
      where: 'name',
      remedy: 'GET /v1/switches lists what there is.',
    });
  }

  /** Starts every GPU server, each with what it holds already: taken from a Memory Node's store and hashed. */
  async startServers(held: ReadonlyMap<string, HeldAtStart>): Promise<void> {
    const hosts = this.options.topology.hosts.filter(({ kind }) => kind === 'gpu-server');
    const prepare = async (agent: Agent): Promise<void> => {
      const version = held.get(agent.name);
      if (version !== undefined) await this.giveVersion(agent, version);
    };
    await this.startAgents(hosts, prepare);
  }

  /** Makes an agent's process die: its sockets are cut, its store stays as it is. */
  async killAgent(name: string): Promise<void> {
    const agent = this.requireAgent(name);
    this.agents.delete(name);
    await agent.kill();
  }

  /** Starts an agent that was killed again, on the store that it left. */
  async restartAgent(name: string): Promise<void> {
    if (this.agents.has(name)) throw new DdfError('ALREADY_EXISTS', `agent ${name} runs`, { where: name });
    await this.startAgents(this.options.topology.hosts.filter((host) => host.name === name));
  }

  /** The counters of the P4 program and of the wires, taken while no frame was on its way. */
  async snapshot(): Promise<Snapshot> {
    const deadline = Date.now() + QUIET_TIMEOUT_MS;
    for (;;) {
      const before = wireCounts(this.fabric);
      const ports = await this.requireController().portCounts();
      const wires = wireCounts(this.fabric);
      if (!this.isBusy() && JSON.stringify(before) === JSON.stringify(wires)) return { ports, wires };
      if (Date.now() > deadline)
        throw new DdfError('TIMEOUT', `the fabric did not come to rest within ${QUIET_TIMEOUT_MS / 1000} s`, {
          where: 'snapshot of counters',
          recoverable: true,
        });
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    }
  }

  /** Ends agents, controller, switches and time, in this order; what is stored stays. Idempotent. */
  stop(): Promise<void> {
    this.stopping ??= this.stopAll();
    return this.stopping;
  }

  private async stopAll(): Promise<void> {
    const steps: (() => unknown)[] = [
      () => Promise.all([...this.agents.values()].map((agent) => agent.stop())),
      () => this.controller?.stop(),
      () => Promise.all(this.servers.map((server) => server.stop())),
      () => this.fabric.close(),
      () => this.scheduler.stop(),
      () => this.workers.close(),
    ];
    let failure: unknown;
    for (const step of steps) {
      try {
        await step();
      } catch (error) {
        failure ??= error;
      }
    }
    if (failure !== undefined) throw failure;
  }

  private async startAgents(hosts: readonly HostNode[], prepare?: (agent: Agent) => Promise<void>): Promise<void> {
    await Promise.all(
      hosts.map(async (host) => {
        const options = this.agentOptions(host);
        const agent = host.kind === 'memory-node' ? createMemoryNode(options) : createGpuServer(options);
        this.agents.set(host.name, agent);
        await prepare?.(agent);
        await this.untilGatewayIsKnown(host.name);
        if (this.stopping !== undefined) throw new DdfError('CANCELLED', 'the lab is being stopped');
        await agent.start();
        await agent.whenAttached(ATTACH_TIMEOUT_MS);
      }),
    );
  }

  /** A sender that began before the controller had answered its host's ARP request would lose what does not fit into a queue. */
  private async untilGatewayIsKnown(name: string): Promise<void> {
    const host = this.fabric.hosts.get(name)!;
    const deadline = Date.now() + READY_TIMEOUT_MS;
    while (!host.resolveGateway()) {
      if (Date.now() > deadline || this.stopping !== undefined)
        throw new DdfError('TIMEOUT', `nobody answered the ARP requests of ${name}`, { where: name });
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    }
  }

  private agentOptions(host: HostNode): AgentOptions {
    return {
      name: host.name,
      host: this.fabric.hosts.get(host.name)!,
      scheduler: this.scheduler,
      random: this.random.fork(`agent/${host.name}`),
      workers: this.workers,
      storeDirectory: join(this.options.directory, 'stores', host.name),
      // Emulated servers need not survive a power failure.
      storeDurable: false,
      controllerAddress: this.requireController().agentsAddress,
      incarnation: this.nextIncarnation(),
      logger: this.logger,
    };
  }

  /** Milliseconds since 1970, but never the same twice: an agent may be restarted within one. */
  private nextIncarnation(): bigint {
    const now = BigInt(Date.now());
    this.lastIncarnation = now > this.lastIncarnation ? now : this.lastIncarnation + 1n;
    return this.lastIncarnation;
  }

  private async giveVersion(agent: Agent, { objectId, version }: HeldAtStart): Promise<void> {
    const stored = [...this.agents.values()]
      .map((other) => other.store.findVersion(objectId, version))
      .find((payload) => payload !== undefined);
    if (stored === undefined)
      throw new DdfError('NOT_FOUND', `no Memory Node holds version ${version} to prepare ${agent.name} with`, {
        where: agent.name,
        remedy: 'Publish the version first.',
      });
    const taken = await agent.store.adopt(stored);
    const hashes = await this.workers.run({ kind: 'hash-file', path: taken.dataPath }, agent.name);
    if (Buffer.compare(hashes.rootSha256, taken.manifest.rootSha256) !== 0)
      throw new DdfError(
        'HASH_MISMATCH',
        `version ${version} in the store of ${agent.name} is not what was published`,
        {
          where: taken.dataPath,
          remedy: 'Check the disk that holds the temporary directory.',
        },
      );
    agent.store.activate(objectId, version);
  }

  private isBusy(): boolean {
    return this.fabric.links.some((link) => link.statistics().framesInFlight > 0);
  }

  private requireAgent(name: string): Agent {
    const agent = this.agents.get(name);
    if (agent === undefined) throw new DdfError('NOT_FOUND', `no agent ${name} runs`, { where: name });
    return agent;
  }

  private requireController(): Controller {
    if (this.controller === undefined) throw new DdfError('INTERNAL', 'the lab has not started its controller');
    return this.controller;
  }
}
