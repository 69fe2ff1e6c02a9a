import { TransferDriver } from '../agents/io/transfer-driver.ts';
import { type ReceiverCounters, type ReceiverEvent, TransferReceiver } from '../agents/protocol/receiver.ts';
import { type SenderCounters, TransferSender } from '../agents/protocol/sender.ts';
import type { PayloadIdentity } from '../agents/protocol/transfer.ts';
import { VirtualScheduler } from '../base/clock.ts';
import type { DdfError } from '../base/errors.ts';
import { createRandom, type Random } from '../base/random.ts';
import { cellsOf, PORT_COUNTERS, portCounts } from '../controller/fabric/port-counters.ts';
import { floorOf, linksOfTree, roundTripUs, segmentBytesFor, shareRates } from '../controller/planner/rates.ts';
import { chooseStripes } from '../controller/planner/stripes.ts';
import { baseState, transferState } from '../controller/tables/desired.ts';
import { EntityFactory } from '../controller/tables/entities.ts';
import { DEFAULT_REPAIR_INTERVALS, type RepairIntervals } from '../controller/tables/repair.ts';
import { FabricGraph } from '../controller/topology/graph.ts';
import { linkKey, planTree, type Tree } from '../controller/topology/trees.ts';
import { ChunkHasher, chunkLength, sha256 } from '../objects/chunks.ts';
import { makeObjectId } from '../objects/ids.ts';
import { chunkSha256At, encodeManifest, fullManifest, type Manifest, manifestSha256 } from '../objects/manifest.ts';
import { FABRIC_UDP_PORT, RECEIVER_UDP_PORT_FIRST } from '../p4/build/constants.ts';
import type { ImpairmentProperties } from '../switch/ports/impairments.ts';
import type { Topology } from '../topologies/types.ts';
import { peekFabricLabel } from '../wire/fabric/header.ts';
import { Fabric, type FrameObserver } from './fabric.ts';
import { type Snapshot, wireCounts } from './figures.ts';
import type { VirtualHost } from './host.ts';
import type { P4Program } from './p4-program.ts';
import { insertEntities } from './programming.ts';

export interface SimulationOptions {
  readonly topology: Topology;
  readonly program: P4Program;
  readonly seed: number | string;
  /** What every host link does to frames, both ways. Default: nothing. */
  readonly hostLinks?: ImpairmentProperties;
  /** Sees every frame on the hosts' links. */
  readonly observe?: FrameObserver;
  /** Default: the controller's. */
  readonly intervals?: RepairIntervals;
}

export interface SimulatedTransferOptions {
  /** Names of hosts. */
  readonly source: string;
  readonly receivers: readonly string[];
  /** Of the first stripe; the others have those that follow. Never used twice in a simulation. */
  readonly label: number;
  /** The payload is divided where that carries more, into at most so many. Default 1. */
  readonly maxStripes?: number;
  readonly payload: Uint8Array;
  /** Default: what the controller takes for the topology's MTU. */
  readonly segmentBytes?: number;
}

const TENANT = 1;
/** A range read answers after this many round trips. */
const RANGE_READ_ROUND_TRIPS = 3;

/**
 * A fabric in virtual time: the P4 program in every switch, programmed with what the controller would write; senders and receivers of the
 * agents' protocol on the hosts. No sockets, files or controller; the same options give the same run to the last packet.
 */
export class Simulation {
  readonly scheduler = new VirtualScheduler();
  readonly fabric: Fabric;
  private readonly options: SimulationOptions;
  private readonly graph: FabricGraph;
  private readonly factory: EntityFactory;
  private readonly random: Random;
  private slots = 0;

  constructor(options: SimulationOptions) {
    const { topology, program, seed, hostLinks, observe } = options;
    this.options = options;
    this.graph = new FabricGraph(topology);
    this.factory = new EntityFactory(program.index);
    this.random = createRandom(`simulation/${seed}`);
    this.fabric = new Fabric(topology, this.scheduler, {
      seed,
      ...(hostLinks === undefined ? {} : { hostLinks }),
      ...(observe === undefined ? {} : { observe }),
    });
    for (const [name, device] of this.fabric.devices) {
      const control = device.load(device.compile(program.bmv2Json));
      const entities = baseState(this.factory, this.graph, name, {
        tenantsOf: () => [TENANT],
        ...(options.intervals === undefined ? {} : { intervals: options.intervals }),
      });
      insertEntities(control, program.index, entities);
    }
    // No controller answers ARP here: the leaves' addresses are given.
    for (const host of topology.hosts) this.fabric.hosts.get(host.name)!.setGateway(this.graph.switch(host.switch).mac);
  }

  /** Programs the tree, starts the receivers and then the sender. */
  startTransfer(options: SimulatedTransferOptions): SimulatedTransfer {
    const trees = this.planStripes(options);
    for (const [index, tree] of trees.entries()) {
      const numbers = { label: options.label + index, tenant: TENANT, slot: ++this.slots };
      for (const [name, entities] of transferState(this.factory, tree, numbers))
        insertEntities(this.fabric.devices.get(name)!.program!, this.options.program.index, entities);
    }
    const eliminationUs = (this.options.intervals ?? DEFAULT_REPAIR_INTERVALS).eliminationUs;
    const random = this.random.fork(`transfer/${options.label}`);
    return new SimulatedTransfer(this.scheduler, this.fabric, this.graph, trees, options, eliminationUs, random);
  }

  private planStripes({ source, receivers, segmentBytes, maxStripes = 1 }: SimulatedTransferOptions): readonly Tree[] {
    const bytes = segmentBytes ?? segmentBytesFor(this.options.topology.mtuBytes);
    const choice = chooseStripes(this.graph, [source], bytes, (from, chosen) => {
      const loads = new Map(chosen.flatMap(({ coreLinks }) => coreLinks.map((hop) => [linkKey(hop), 1])));
      return planTree(this.graph, from, receivers, loads);
    });
    if (!('trees' in choice)) throw choice.unreachable[0]!.error;
    return choice.trees.slice(0, maxStripes);
  }

  /** The switches' counters and the wires. */
  snapshot(): Snapshot {
    const ports = [...this.fabric.devices].flatMap(([name, device]) =>
      (['ingress', 'egress'] as const).flatMap((direction) => {
        const counter = device.program!.counters.get(
          this.factory.index.counters.require(PORT_COUNTERS[direction]).name,
        )!;
        const cells = new Map(cellsOf(this.graph, name).map((cell) => [cell, counter.read(cell)]));
        return portCounts(this.graph, name, direction, cells);
      }),
    );
    return { ports, wires: wireCounts(this.fabric) };
  }

  /** Runs until `done`, or until nothing is left to happen or the time is `limitUs`. Returns whether `done` came true. */
  run(done: () => boolean, limitUs: number): boolean {
    return this.scheduler.runWhile(done, limitUs);
  }
}

/** One payload on its way from one source to its receivers. */
export class SimulatedTransfer {
  /** One for each stripe. */
  readonly trees: readonly Tree[];
  readonly receivers: ReadonlyMap<string, SimulatedReceiver>;
  private readonly senders: readonly TransferSender[];
  private open: number;
  private incomplete: number;
  private failure: DdfError | undefined;

  constructor(
    scheduler: VirtualScheduler,
    fabric: Fabric,
    graph: FabricGraph,
    trees: readonly Tree[],
    options: SimulatedTransferOptions,
    eliminationUs: number,
    random: Random,
  ) {
    this.trees = trees;
    this.open = trees.length;
    const tree = trees[0]!;
    const { payload, label } = options;
    const segmentBytes = options.segmentBytes ?? segmentBytesFor(fabric.topology.mtuBytes);
    const hasher = new ChunkHasher();
    hasher.push(payload);
    const objectId = makeObjectId(TENANT, 1n);
    const manifest = fullManifest(objectId, 1, hasher.finish());
    const encoded = encodeManifest(manifest);
    const identity: PayloadIdentity = { objectId, objectVersion: 1, baseVersion: 0 };
    const layout = { manifestBytes: encoded.length, payloadBytes: payload.length, segmentBytes };
    const stripes = trees.map((each, index) => ({
      label: label + index,
      stripe: { index, count: trees.length },
      sender: fabric.hosts.get(each.source)!.ip,
      rttUs: roundTripUs(graph, each, segmentBytes),
      sendDone: each.doneUsable,
    }));
    const stream = new Uint8Array(encoded.length + payload.length);
    stream.set(encoded);
    stream.set(payload, encoded.length);

    const source = fabric.hosts.get(tree.source)!;
    const fail = (error: DdfError): void => {
      this.failure ??= error;
    };
    const completed = (): void => {
      this.incomplete--;
    };
    this.incomplete = tree.receivers.length;
    const { rttUs } = stripes[0]!;
    const common = { scheduler, stream, manifest, encoded, rttUs, completed, fail };
    this.receivers = new Map(
      tree.receivers.map((name) => {
        const host = fabric.hosts.get(name)!;
        const machine = (image: Uint8Array): TransferReceiver =>
          new TransferReceiver(scheduler.nowUs(), {
            ...layout,
            transfer: identity,
            stripes,
            sink: {
              write: (offset, bytes) => image.set(bytes, offset),
              read: (offset, length) => image.subarray(offset, offset + length),
            },
            random: random.fork(name),
            eliminationUs,
          });
        return [name, new SimulatedReceiver(host, machine, common)];
      }),
    );

    const shares = new Map(trees.map((each, i) => [i, { links: linksOfTree(graph, each), weight: 1 }]));
    const ceilings = shareRates(shares, segmentBytes);
    this.senders = stripes.map(({ stripe, ...source }, index) => {
      const ceiling = ceilings.get(index)!;
      return new TransferSender(scheduler.nowUs(), {
        ...layout,
        stripe,
        transfer: { ...identity, label: source.label },
        reader: { read: (offset, length) => stream.subarray(offset, offset + length) },
        rateFloorBitsPerSecond: floorOf(ceiling),
        rateCeilingBitsPerSecond: ceiling,
        rttUs: source.rttUs,
        expectDone: source.sendDone,
      });
    });
    // The switches replicate by label: any address does.
    const destination = fabric.hosts.get(tree.receivers[0]!)!.ip;
    const socket = source.openSocket(FABRIC_UDP_PORT);
    const drivers = this.senders.map(
      (machine) =>
        new TransferDriver({
          machine,
          scheduler,
          send: (datagram) => socket.send(destination, FABRIC_UDP_PORT, datagram),
          onEvent: (event) => {
            if (event.type === 'closed' && --this.open === 0) socket.close();
          },
          onFailure: fail,
        }),
    );
    socket.onDatagram = (datagram) => drivers[(peekFabricLabel(datagram) ?? 0) - label]?.handlePacket(datagram);
    for (const driver of drivers) driver.pump();
  }

  /** Of the first stripe's sender. */
  get senderCounters(): Readonly<SenderCounters> {
    return this.senders[0]!.counters;
  }

  /** Every receiver holds the payload, every chunk of it proved. Throws what ended the sender or a receiver. */
  get isComplete(): boolean {
    if (this.failure !== undefined) throw this.failure;
    return this.incomplete === 0;
  }

  /** Complete, and the sender has said its last. */
  get isOver(): boolean {
    return this.isComplete && this.open === 0;
  }
}

interface ReceiverContext {
  readonly scheduler: VirtualScheduler;
  /** What a holder would serve by range. */
  readonly stream: Uint8Array;
  readonly manifest: Manifest;
  readonly encoded: Uint8Array;
  readonly rttUs: number;
  readonly completed: () => void;
  readonly fail: (error: DdfError) => void;
}

export class SimulatedReceiver {
  /** What arrived; equal to the payload once complete. */
  readonly image: Uint8Array;
  /** When every chunk was proved. */
  completeAtUs: number | undefined;
  private readonly machine: TransferReceiver;
  private readonly driver: TransferDriver<ReceiverEvent>;
  private readonly context: ReceiverContext;

  constructor(host: VirtualHost, machine: (image: Uint8Array) => TransferReceiver, context: ReceiverContext) {
    this.context = context;
    this.image = new Uint8Array(context.manifest.sizeBytes);
    this.machine = machine(this.image);
    const socket = host.openSocket(RECEIVER_UDP_PORT_FIRST);
    this.driver = new TransferDriver({
      machine: this.machine,
      scheduler: context.scheduler,
      send: (datagram) => socket.send(this.machine.destination, FABRIC_UDP_PORT, datagram),
      onEvent: (event) => this.handle(event),
      onFailure: context.fail,
    });
    socket.onDatagram = (datagram) => this.driver.handlePacket(datagram);
    this.driver.pump();
  }

  get counters(): ReceiverCounters {
    return this.machine.counters;
  }

  private handle(event: ReceiverEvent): void {
    const { scheduler, manifest, encoded, stream, rttUs, completed, fail } = this.context;
    switch (event.type) {
      case 'manifestComplete':
        this.machine.manifestVerified(isSame(manifestSha256(event.bytes), manifestSha256(encoded)));
        break;
      case 'chunkComplete': {
        const { chunk } = event;
        const begin = chunk * manifest.chunkBytes;
        const bytes = this.image.subarray(begin, begin + chunkLength(manifest.sizeBytes, chunk, manifest.chunkBytes));
        this.machine.chunkVerified(chunk, isSame(sha256(bytes), chunkSha256At(manifest, chunk)));
        break;
      }
      case 'unicastNeeded':
        scheduler.at(scheduler.nowUs() + RANGE_READ_ROUND_TRIPS * rttUs, () => {
          for (const { start, end } of event.ranges) this.machine.unicastData(start, stream.subarray(start, end));
          this.driver.pump();
        });
        break;
      case 'complete':
        this.completeAtUs = scheduler.nowUs();
        completed();
        break;
      case 'failed':
        fail(event.error);
        break;
      case 'chunkRejected':
      case 'streamEnded':
        break;
    }
  }
}

function isSame(a: Uint8Array, b: Uint8Array): boolean {
  return Buffer.compare(a, b) === 0;
}
