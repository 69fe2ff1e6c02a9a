import type { Scheduler, Timer } from '../../base/clock.ts';
import { DdfError, toDdfError } from '../../base/errors.ts';
import type { Logger } from '../../base/logger.ts';
import type { Random } from '../../base/random.ts';
import { DROP_NONE, DROP_REASON_NAMES, PUNT_REASON_IGMP } from '../../p4/build/constants.ts';
import type { Entity } from '../../wire/p4runtime/messages.ts';
import { P4InfoIndex } from '../../wire/p4runtime/p4info-index.ts';
import type { SwitchConnection, SwitchConnectionOptions } from '../p4runtime/connection.ts';
import { electionIdAt } from '../p4runtime/election.ts';
import type { Pipeline } from '../p4runtime/pipeline.ts';
import { type ForeignPolicy, Reconciler } from '../reconcile/reconciler.ts';
import type { SwitchView } from '../service.ts';
import { EntityFactory } from '../tables/entities.ts';
import { DROP_COUNTER } from '../tables/telemetry.ts';
import type { FabricGraph } from '../topology/graph.ts';
import { createNeighbourResponder } from '../topology/neighbours.ts';
import { arpGreeting } from './greeting.ts';
import { type MulticastOptions, MulticastRouting } from './multicast.ts';
import { cellsOf, PORT_COUNTERS, type PortCount, portCounts } from './port-counters.ts';

/** What the fleet needs of a connection to a switch. */
export type FleetConnection = Pick<
  SwitchConnection,
  | 'name'
  | 'state'
  | 'lastError'
  | 'onState'
  | 'onPacket'
  | 'start'
  | 'close'
  | 'whenPrimary'
  | 'capabilities'
  | 'setPipeline'
  | 'read'
  | 'write'
  | 'readCounters'
  | 'sendPacket'
>;

export interface SwitchFleetOptions {
  readonly graph: FabricGraph;
  /** P4Runtime addresses, `host:port`, by the switch's name. */
  readonly addresses: ReadonlyMap<string, string>;
  readonly pipeline: Pipeline;
  readonly connect: (options: SwitchConnectionOptions) => FleetConnection;
  readonly scheduler: Scheduler;
  readonly random: Random;
  /** Milliseconds since 1970. */
  readonly nowMs: () => number;
  readonly logger: Logger;
  /** Of ordinary multicast. */
  readonly multicast?: MulticastOptions;
  /** What becomes of entries that nobody here asked for. Default `remove`. */
  readonly foreign?: ForeignPolicy;
}

interface Member {
  readonly connection: FleetConnection;
  readonly reconciler: Reconciler;
  p4runtimeVersion: string | null;
  drops: SwitchView['drops'];
  converged: boolean;
  /** Why the last attempt to converge failed; undefined after one that did not. */
  failure: DdfError | undefined;
}

/** Cells of the drop counter with their names; cell 0 is no reason. */
const DROP_REASONS: readonly (readonly [number, string])[] = Object.entries(DROP_REASON_NAMES)
  .map(([cell, reason]) => [Number(cell), reason] as const)
  .filter(([cell]) => cell !== DROP_NONE);

const BASE_OWNER = 'base';
const DROPS_INTERVAL_US = 2_000_000;

/** All switches: what they have to hold, whether they do, what they counted, and answers to what they punt. */
export class SwitchFleet {
  /** Groups of ordinary multicast that hosts have joined. */
  readonly multicast: MulticastRouting;
  private readonly options: SwitchFleetOptions;
  private readonly members = new Map<string, Member>();
  private timer: Timer | undefined;
  private stopped = false;

  constructor(options: SwitchFleetOptions) {
    this.options = options;
    const { graph, scheduler, logger } = options;
    this.multicast = new MulticastRouting({
      ...options.multicast,
      graph,
      factory: new EntityFactory(new P4InfoIndex(options.pipeline.p4info)),
      scheduler,
      logger,
      switches: {
        want: (owner, entities) => this.want(owner, entities),
        withdraw: (owner) => this.withdraw(owner),
        send: (name, port, frame) => this.require(name).connection.sendPacket(frame, { egress_port: BigInt(port) }),
      },
    });
    for (const node of options.graph.topology.switches)
      this.members.set(node.name, this.join(node.name, node.deviceId));
  }

  /** What every switch needs apart from transfers; to be set before {@link start}. @throws DdfError TABLE_FULL */
  setBase(stateOf: (switchName: string) => readonly Entity[]): void {
    for (const [name, { reconciler }] of this.members) reconciler.setDesired(BASE_OWNER, stateOf(name));
  }

  /** Writes a changed base to one switch, now or when it is there. */
  changeBase(switchName: string, entities: readonly Entity[]): void {
    const { reconciler } = this.require(switchName);
    reconciler.setDesired(BASE_OWNER, entities);
    reconciler.converge().catch(() => {});
  }

  /** Connects to all switches and keeps them as they should be. */
  start(): void {
    for (const { connection } of this.members.values()) connection.start();
    this.pollDrops();
  }

  /** Resolves when every switch is as it should be; rejects with the first reason after `timeoutMs`. */
  async whenReady(timeoutMs: number): Promise<void> {
    await Promise.all(
      [...this.members.values()].map(async ({ connection, reconciler }) => {
        await connection.whenPrimary(timeoutMs);
        await reconciler.converge();
      }),
    );
  }

  /** Why some switch cannot work now; one text each. */
  notReady(): string[] {
    const reasons: string[] = [];
    for (const [name, { connection, converged, failure }] of this.members) {
      if (connection.state !== 'primary')
        reasons.push(`switch ${name}: ${connection.lastError?.describe() ?? connection.state}`);
      else if (failure !== undefined) reasons.push(`switch ${name}: ${failure.describe()}`);
      else if (!converged) reasons.push(`switch ${name}: its tables are being written`);
    }
    return reasons;
  }

  /**
   * Makes switches hold what an owner wants, all of them or none.
   * @throws DdfError TABLE_FULL, SWITCH_UNREACHABLE, SWITCH_REJECTED, ...; then nothing of the owner is desired any more
   */
  async install(owner: string, entities: ReadonlyMap<string, readonly Entity[]>): Promise<void> {
    try {
      for (const [name, wanted] of entities) this.require(name).reconciler.setDesired(owner, wanted);
      await Promise.all([...entities.keys()].map((name) => this.require(name).reconciler.converge()));
    } catch (error) {
      this.withdraw(owner);
      throw error;
    }
  }

  /** Makes switches hold what an owner wants, each of them now or when it is there. @throws DdfError TABLE_FULL; then the owner wants nothing any more */
  want(owner: string, entities: ReadonlyMap<string, readonly Entity[]>): void {
    try {
      for (const [name, wanted] of entities) this.require(name).reconciler.setDesired(owner, wanted);
    } catch (error) {
      this.withdraw(owner);
      throw error;
    }
    for (const name of entities.keys())
      this.require(name)
        .reconciler.converge()
        .catch(() => {});
  }

  /** Takes what an owner wanted out again. Resolves when no switch holds it; switches that are away have to come back for that. */
  async remove(owner: string): Promise<void> {
    await Promise.all(
      [...this.members.values()].map(async (member) => {
        if (!member.reconciler.owners.includes(owner)) return;
        member.reconciler.removeDesired(owner);
        await this.untilConverged(member);
      }),
    );
  }

  /** Makes a host know its gateway, if that is there; otherwise the host finds out by itself. */
  greet(hostName: string): void {
    const { graph } = this.options;
    const host = graph.host(hostName);
    const { connection } = this.require(host.switch);
    connection.sendPacket(arpGreeting(graph.switch(host.switch), host), { egress_port: BigInt(host.port) });
  }

  views(): SwitchView[] {
    return this.options.graph.topology.switches.map(({ name, deviceId, layer }) => {
      const { connection, reconciler, p4runtimeVersion, drops } = this.require(name);
      return {
        name,
        deviceId,
        layer,
        state: connection.state,
        p4runtimeVersion,
        entries: reconciler.entityCount,
        drops,
      };
    });
  }

  /** Reads the port counters of all switches. @throws DdfError when a switch does not answer */
  async portCounts(): Promise<PortCount[]> {
    const { graph } = this.options;
    const counts = await Promise.all(
      [...this.members].flatMap(([name, { connection }]) =>
        (['ingress', 'egress'] as const).map(async (direction) => {
          const cells = await connection.readCounters(PORT_COUNTERS[direction], cellsOf(graph, name));
          return portCounts(graph, name, direction, cells);
        }),
      ),
    );
    return counts.flat();
  }

  /** Lets go of the switches, which keep what they hold. */
  stop(): void {
    this.stopped = true;
    this.timer?.cancel();
    this.multicast.stop();
    for (const { connection, reconciler } of this.members.values()) {
      reconciler.close();
      connection.close();
    }
  }

  private join(name: string, deviceId: number): Member {
    const { addresses, connect, pipeline, random, nowMs, graph, logger, foreign = 'remove' } = this.options;
    const address = addresses.get(name);
    if (address === undefined)
      throw new DdfError('INVALID_OPTION', `no P4Runtime address is given for switch ${name}`, {
        where: 'switches',
        remedy: 'Give one for every switch of the topology.',
      });
    const own = random.fork(`switch/${name}`);
    const low = (BigInt(own.uint32()) << 32n) | BigInt(own.uint32());
    const connection = connect({
      name,
      address,
      deviceId,
      electionId: electionIdAt(nowMs(), low),
      random: own.fork('connection'),
    });
    const reconciler = new Reconciler({ connection, pipeline, foreign });
    const member: Member = {
      connection,
      reconciler,
      p4runtimeVersion: null,
      drops: [],
      converged: false,
      failure: undefined,
    };
    let wasPrimary = false;
    connection.onState((state) => {
      const { lastError } = connection;
      if (state === 'backup' || (wasPrimary && lastError !== undefined))
        logger.warn(
          { switch: name, state, error: lastError?.describe() },
          state === 'backup' ? 'another controller has the switch' : 'the switch is lost',
        );
      else logger.info({ switch: name, state }, 'switch');
      wasPrimary = state === 'primary';
      member.converged = false;
      if (state === 'primary')
        connection.capabilities().then(
          (version) => {
            member.p4runtimeVersion = version;
          },
          (error) => logger.warn({ switch: name, error: toDdfError(error).describe() }, 'capabilities'),
        );
    });
    reconciler.onEvent((event) => {
      if (event.type === 'converged') {
        if (!member.converged) this.multicast.switchReady(name);
        member.converged = true;
        member.failure = undefined;
      } else if (event.type === 'failed') {
        member.failure = event.error;
        logger.warn({ switch: name, error: event.error.describe() }, 'switch is not as it should be');
      } else if (event.type === 'drift')
        logger.warn(
          { switch: name, entities: event.entities, example: event.example },
          'somebody else wrote to the switch',
        );
      else logger.info({ switch: name, result: event.result }, 'pipeline');
    });
    const responder = createNeighbourResponder(graph, name);
    connection.onPacket = ({ payload, metadata }) => {
      const { ingress_port: port, reason } = metadata;
      if (port === undefined || reason === undefined) return;
      if (Number(reason) === PUNT_REASON_IGMP) {
        this.multicast.receive(name, Number(port), payload);
        return;
      }
      const reply = responder.answer(payload, Number(port), Number(reason));
      if (reply !== undefined) connection.sendPacket(reply, { egress_port: port });
    };
    return member;
  }

  private withdraw(owner: string): void {
    for (const { reconciler } of this.members.values())
      if (reconciler.owners.includes(owner)) {
        reconciler.removeDesired(owner);
        reconciler.converge().catch(() => {});
      }
  }

  /** The reconciler tries again by itself until it succeeds. */
  private async untilConverged({ reconciler }: Member): Promise<void> {
    const converged = new Promise<void>((resolve) => {
      const stop = reconciler.onEvent((event) => {
        if (event.type !== 'converged') return;
        stop();
        resolve();
      });
    });
    await reconciler.converge().catch(() => converged);
  }

  private pollDrops(): void {
    if (this.stopped) return;
    const { scheduler } = this.options;
    void Promise.all([...this.members.values()].map((member) => this.readDrops(member))).then(() => {
      if (!this.stopped) this.timer = scheduler.at(scheduler.nowUs() + DROPS_INTERVAL_US, () => this.pollDrops());
    });
  }

  private async readDrops(member: Member): Promise<void> {
    if (member.connection.state !== 'primary' || !member.converged) return;
    try {
      const cells = await member.connection.readCounters(
        DROP_COUNTER,
        DROP_REASONS.map(([cell]) => cell),
      );
      member.drops = DROP_REASONS.map(([cell, reason]) => ({
        reason,
        packets: Number(cells.get(cell)?.packets ?? 0n),
      })).filter(({ packets }) => packets > 0);
    } catch (error) {
      this.options.logger.debug({ switch: member.connection.name, error: toDdfError(error).describe() }, 'drops');
    }
  }

  private require(name: string): Member {
    const member = this.members.get(name);
    if (member === undefined) throw new DdfError('INTERNAL', `there is no switch ${name}`);
    return member;
  }
}
