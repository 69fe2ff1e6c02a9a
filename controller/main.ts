import type { Scheduler } from '../base/clock.ts';
import { DdfError } from '../base/errors.ts';
import type { Logger } from '../base/logger.ts';
import type { Random } from '../base/random.ts';
import { RECEIVER_UDP_PORT_FIRST } from '../p4/build/constants.ts';
import type { Topology } from '../topologies/types.ts';
import type { Entity } from '../wire/p4runtime/messages.ts';
import { P4InfoIndex } from '../wire/p4runtime/p4info-index.ts';
import type { P4Info } from '../wire/p4runtime/p4info-messages.ts';
import { AgentServer } from './agents/agent-server.ts';
import { type ApiServer, startApi } from './api/server.ts';
import { DEFAULT_TENANT, Directory } from './directory/directory.ts';
import { LossBook } from './execution/loss-watch.ts';
import { Publisher } from './execution/publisher.ts';
import { RangeTokens } from './execution/range-tokens.ts';
import { RateBook } from './execution/rate-book.ts';
import { Rollouts } from './execution/rollouts.ts';
import { createService } from './execution/service.ts';
import type { MulticastOptions } from './fabric/multicast.ts';
import type { PortCount } from './fabric/port-counters.ts';
import { type FleetConnection, SwitchFleet } from './fabric/switch-fleet.ts';
import { SwitchConnection, type SwitchConnectionOptions } from './p4runtime/connection.ts';
import { createPipeline } from './p4runtime/pipeline.ts';
import { carriesSegments, roundTripUs, segmentBytesFor } from './planner/rates.ts';
import type { ForeignPolicy } from './reconcile/reconciler.ts';
import type { ControllerService } from './service.ts';
import { Counters } from './store/counters.ts';
import { RolloutStore } from './store/rollout-store.ts';
import { openStore, type Store } from './store/store.ts';
import { baseState } from './tables/desired.ts';
import { EntityFactory } from './tables/entities.ts';
import { DEFAULT_REPAIR_INTERVALS, type RepairIntervals } from './tables/repair.ts';
import { TransferSlots } from './tables/slots.ts';
import { FabricGraph } from './topology/graph.ts';
import { planTree } from './topology/trees.ts';

/** A round trip, half of one that the sender holds an answer back, and as much again for queues. */
const ROUND_TRIPS = 3;
const ELIMINATIONS_TO_STALE = 20;

export interface ControllerOptions {
  readonly topology: Topology;
  /** P4Runtime address (`host:port`) of every switch of the topology. */
  readonly switches: readonly { readonly name: string; readonly address: string }[];
  /** What p4c made of p4/fabric.p4, or of a program with the same tables. */
  readonly program: { readonly bmv2Json: Uint8Array; readonly p4Info: P4Info };
  /** A file, made if it does not exist, or `:memory:`. */
  readonly databasePath: string;
  /** `host:port` at which agents attach; port 0 takes a free one. */
  readonly agentsAddress: string;
  /** `host:port` of the REST API; port 0 takes a free one. Default: none is served. */
  readonly apiAddress?: string;
  readonly scheduler: Scheduler;
  readonly random: Random;
  readonly logger: Logger;
  /** Looks into switches, for whoever has them in the same process. */
  readonly trace?: NonNullable<ControllerService['trace']>;
  /** Milliseconds since 1970. Default `Date.now`. */
  readonly nowMs?: () => number;
  /** Of ordinary multicast. */
  readonly multicast?: MulticastOptions;
  /** What becomes of entries on the switches that this controller did not ask for. Default `remove`. */
  readonly foreign?: ForeignPolicy;
  /** How switches are connected to. Default: over gRPC. */
  readonly connect?: (options: SwitchConnectionOptions) => FleetConnection;
}

export interface Controller {
  readonly service: ControllerService;
  /**
   * Listens, and connects to the switches in the background; {@link whenReady} waits for them.
   * @throws DdfError ADDRESS_IN_USE, INVALID_OPTION; then everything is stopped again
   */
  start(): Promise<void>;
  /** Resolves when every switch runs the program and holds what it has to. @throws DdfError why not, after `timeoutMs` */
  whenReady(timeoutMs: number): Promise<void>;
  /** Where agents attach, after {@link start}. */
  readonly agentsAddress: string;
  /** Base URL of the REST API, after {@link start}, if one is served. */
  readonly apiUrl: string | undefined;
  /** What the switches counted at every port by kind of packets, read now. @throws DdfError when a switch does not answer */
  portCounts(): Promise<PortCount[]>;
  /** Ends streams, rollouts (the next start finds them interrupted) and connections; switches keep what they hold. Idempotent. */
  stop(): Promise<void>;
}

/**
 * The AI control network of one fabric, wired together.
 * @throws DdfError INVALID_OPTION, INVALID_TOPOLOGY, INVALID_FILE (database), CONFLICT (database in use), PROGRAM_MISMATCH, TABLE_FULL
 */
export function createController(options: ControllerOptions): Controller {
  const { topology } = options;
  if (!carriesSegments(topology.mtuBytes))
    throw new DdfError('INVALID_TOPOLOGY', `an MTU of ${topology.mtuBytes} bytes does not carry the fabric's packets`, {
      where: topology.name,
      remedy: 'Give the links 1,444 bytes or more.',
    });
  const store = openStore(options.databasePath);
  try {
    return wire(options, store);
  } catch (error) {
    store.close();
    throw error;
  }
}

function wire(options: ControllerOptions, store: Store): Controller {
  const { topology, scheduler, random, logger, nowMs = Date.now } = options;
  const graph = new FabricGraph(topology);
  const index = new P4InfoIndex(options.program.p4Info);
  const factory = new EntityFactory(index);
  const segmentBytes = segmentBytesFor(topology.mtuBytes);
  const intervals = intervalsFor(graph, segmentBytes);
  const directory = new Directory(store, () => new Date(nowMs()).toISOString());
  const fleet = new SwitchFleet({
    graph,
    addresses: new Map(options.switches.map(({ name, address }) => [name, address])),
    pipeline: createPipeline(options.program.p4Info, options.program.bmv2Json),
    connect: options.connect ?? ((connection) => new SwitchConnection(connection)),
    scheduler,
    random: random.fork('switches'),
    nowMs,
    logger,
    ...(options.multicast === undefined ? {} : { multicast: options.multicast }),
    ...(options.foreign === undefined ? {} : { foreign: options.foreign }),
  });
  const receiverPorts = new Map<string, number>();
  const receiverPortOf = (host: string): number => receiverPorts.get(host) ?? RECEIVER_UDP_PORT_FIRST;
  const baseOf = (switchName: string): Entity[] =>
    baseState(factory, graph, switchName, {
      tenantsOf: () => [DEFAULT_TENANT],
      receiverPortOf: (host) => receiverPortOf(host.name),
      intervals,
    });
  fleet.setBase(baseOf);

  const agents = new AgentServer({
    topology,
    controllerId: random.fork('controller').uint32().toString(16).padStart(8, '0'),
    scheduler,
    logger,
    listener: {
      attaching(agent) {
        const restarted = directory.findAgent(agent.name)?.incarnation !== agent.incarnation;
        for (const [{ version }, outcome] of directory.attach(agent, agent.held, agent.active))
          if (outcome === 'mismatch') warnOfMismatch(agent.name, version);
        if (agent.kind === 'gpu-server' && receiverPortOf(agent.name) !== agent.receiverPort) {
          receiverPorts.set(agent.name, agent.receiverPort);
          const leaf = graph.host(agent.name).switch;
          fleet.changeBase(leaf, baseOf(leaf));
        }
        return { restarted };
      },
      attached(agent, restarted) {
        fleet.greet(agent.name);
        rollouts.attached(agent, restarted);
      },
      detached: (agent) => rollouts.detached(agent.name),
      transferStatus: (agent, status) => rollouts.status(agent.name, status),
      versionHeld(agent, claim) {
        const outcome = directory.recordHeld(agent.name, claim);
        if (outcome === 'mismatch') warnOfMismatch(agent.name, claim.version);
        rollouts.held(agent.name, claim, outcome);
      },
      versionDropped: (agent, { objectId, version }) => directory.recordDropped(agent.name, objectId, version),
    },
  });
  const warnOfMismatch = (agent: string, version: number): void => {
    logger.warn({ agent, version }, 'an agent holds other bytes under a version than were published');
  };
  const rollouts = new Rollouts(
    {
      scheduler,
      nowMs,
      logger,
      graph,
      directory,
      agents,
      fleet,
      factory,
      slots: new TransferSlots(index),
      labels: new Counters(store),
      rollouts: new RolloutStore(store),
      tokens: new RangeTokens(agents, random.fork(`tokens/${nowMs()}`)),
      rates: new RateBook(segmentBytes),
      losses: new LossBook(),
      segmentBytes,
      eliminationUs: intervals.eliminationUs,
    },
    // Ids of rollouts are kept: another start with the same seed has to give others.
    random.fork(`rollouts/${nowMs()}`),
  );
  const publisher = new Publisher({ topology, directory, agents });

  let state: 'new' | 'running' | 'stopped' = 'new';
  let agentsAddress = options.agentsAddress;
  let api: ApiServer | undefined;
  const service: ControllerService = {
    ...createService({
      topology,
      directory,
      agents,
      fleet,
      rollouts,
      publisher,
      isRunning: () => state === 'running',
    }),
    ...(options.trace === undefined ? {} : { trace: options.trace }),
  };

  async function stop(): Promise<void> {
    if (state === 'stopped') return;
    state = 'stopped';
    rollouts.stop();
    await api?.stop();
    await agents.stop();
    fleet.stop();
    store.close();
  }

  return {
    service,
    get agentsAddress() {
      return agentsAddress;
    },
    get apiUrl() {
      return api?.url;
    },
    async start() {
      if (state !== 'new')
        throw new DdfError('INVALID_OPTION', 'a controller is started once', { remedy: 'Create another one.' });
      state = 'running';
      try {
        agentsAddress = await agents.listen(options.agentsAddress);
        if (options.apiAddress !== undefined) api = await startApi({ service, address: options.apiAddress, logger });
        fleet.start();
      } catch (error) {
        await stop();
        throw error;
      }
    },
    whenReady: (timeoutMs) => fleet.whenReady(timeoutMs),
    portCounts: () => fleet.portCounts(),
    stop,
  };
}

/** The elimination interval has to be above a round trip and the sender's hold; in software 10 ms are, if the paths are not long. */
function intervalsFor(graph: FabricGraph, segmentBytes: number): RepairIntervals {
  const hosts = graph.topology.hosts.map((host) => host.name);
  const roundTrips = graph.topology.hosts
    .filter((host) => host.kind === 'memory-node')
    .map((node) => {
      const reachable = graph.distancesTo(node.switch);
      const receivers = hosts.filter((name) => name !== node.name && reachable.has(graph.host(name).switch));
      return receivers.length === 0 ? 0 : roundTripUs(graph, planTree(graph, node.name, receivers), segmentBytes);
    });
  const eliminationUs = Math.max(DEFAULT_REPAIR_INTERVALS.eliminationUs, ROUND_TRIPS * Math.max(0, ...roundTrips));
  return {
    eliminationUs,
    staleUs: Math.max(DEFAULT_REPAIR_INTERVALS.staleUs, ELIMINATIONS_TO_STALE * eliminationUs),
    graceUs: Math.max(DEFAULT_REPAIR_INTERVALS.graceUs, eliminationUs),
  };
}
