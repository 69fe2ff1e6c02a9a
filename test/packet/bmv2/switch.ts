import { SwitchConnection, type WriteOutcome } from '../../../controller/p4runtime/connection.ts';
import { electionIdAt } from '../../../controller/p4runtime/election.ts';
import { createPipeline, type Pipeline } from '../../../controller/p4runtime/pipeline.ts';
import { freePort, SimpleSwitch as SimpleSwitchProcess } from '../../../scripts/simple-switch.ts';
import type { ActionCall, CounterValue, MeterConfig, Replica } from '../../../switch/control.ts';
import { type CounterData, type Entity, UpdateType } from '../../../wire/p4runtime/messages.ts';
import { P4InfoIndex } from '../../../wire/p4runtime/p4info-index.ts';
import type { CounterInfo, MeterInfo, TableInfo } from '../../../wire/p4runtime/p4info-objects.ts';
import { parseP4InfoText } from '../../../wire/p4runtime/p4info-text.ts';
import { PacketMetadataCodec } from '../../../wire/p4runtime/packet-metadata.ts';
import type { MessageInput } from '../../../wire/proto.ts';
import type { CompiledProgram } from '../embedded.ts';
import type { Inability, PacketSwitch, SentFrame, TestEntry } from '../run.ts';
import { cloneEntity, complete, defaultEntity, entryEntity, groupEntity } from './entities.ts';
import { PacketStream, pause } from './packet-stream.ts';

const DEVICE_ID = 1;
const READY_MS = 20_000;
/** What a packet-out causes has happened by then, or nothing happens. */
const PACKET_OUT_MS = 300;
/** What comes over another connection than the ports' frames has come by then. */
const LATE_MS = 5_000;
/** Longer waits have no place in a test, shorter ones than an answer takes mean nothing. */
const LONGEST_WAIT_US = 10_000_000;
const SHORTEST_WAIT_US = 200_000;

interface Attached {
  readonly process: SimpleSwitchProcess;
  readonly connection: SwitchConnection;
  readonly stream: PacketStream;
}

/**
 * simple_switch_grpc as a switch under test, in real time: programmed by our P4Runtime client, its ports are streams of the process. Ends with
 * {@link close}.
 */
export class SimpleSwitch implements PacketSwitch {
  readonly p4Info: P4InfoIndex;
  readonly inRealTime = true;
  private readonly path: string;
  private readonly pipeline: Pipeline;
  private readonly cpuPort: number;
  private readonly packetIn: PacketMetadataCodec | undefined;
  private readonly packetOut: PacketMetadataCodec | undefined;
  /** What the switch was told, for when it restarts: later ones may need earlier ones. */
  private readonly entities = new Map<unknown, Entity>();
  private attached: Attached;
  private sent: SentFrame[] = [];
  private readonly digests = new Set<string>();

  private constructor(path: string, pipeline: Pipeline, cpuPort: number, attached: Attached) {
    this.path = path;
    this.pipeline = pipeline;
    this.cpuPort = cpuPort;
    this.attached = attached;
    this.p4Info = new P4InfoIndex(pipeline.p4info);
    this.packetIn = codecOf(this.p4Info, 'packet_in');
    this.packetOut = codecOf(this.p4Info, 'packet_out');
    this.listen();
  }

  static async start(path: string, { bmv2Json, p4Info }: CompiledProgram, cpuPort: number): Promise<SimpleSwitch> {
    const pipeline = createPipeline(parseP4InfoText(p4Info), bmv2Json);
    return new SimpleSwitch(path, pipeline, cpuPort, await attach(path, pipeline, cpuPort));
  }

  async close(): Promise<void> {
    await detach(this.attached);
  }

  insert(entry: TestEntry): Promise<void> {
    const entity = entryEntity(this.p4Info, entry);
    this.entities.set(entry, entity);
    return this.write(UpdateType.INSERT, entity);
  }

  remove(entry: TestEntry): Promise<void> {
    const entity = this.entities.get(entry);
    if (entity === undefined) throw new Error('The entry is not there');
    this.entities.delete(entry);
    return this.write(UpdateType.DELETE, entity);
  }

  setDefault(table: TableInfo, action: ActionCall): Promise<void> {
    const entity = defaultEntity(this.p4Info, table, action);
    this.entities.set(table, entity);
    return this.write(UpdateType.MODIFY, entity);
  }

  setMulticastGroup(id: number, replicas: readonly Replica[]): Promise<void> {
    const entity = groupEntity(id, replicas);
    const type = this.entities.has(id) ? UpdateType.MODIFY : UpdateType.INSERT;
    this.entities.set(id, entity);
    return this.write(type, entity);
  }

  setCloneSession(id: number, replicas: readonly Replica[]): Promise<void> {
    const entity = cloneEntity(id, replicas);
    this.entities.set(`session ${id}`, entity);
    return this.write(UpdateType.INSERT, entity);
  }

  /** Messages come one by one from now on, see {@link takeDigests}. */
  async sendDigests(): Promise<void> {
    const config = { maxTimeoutNs: 0n, maxListSize: 1, ackTimeoutNs: 1_000_000_000n };
    for (const { id: digestId } of this.p4Info.digests) {
      const entity = complete({ digestEntry: { digestId, config } });
      this.entities.set(`digest ${digestId}`, entity);
      await this.write(UpdateType.INSERT, entity);
    }
    this.attached.connection.onDigest = ({ digestId, data }) => {
      for (const { struct } of data) {
        const values = struct!.members.map(({ bitstring }) => BigInt(`0x${Buffer.from(bitstring!).toString('hex')}`));
        this.digests.add(`${this.p4Info.digests.require(digestId).name} ${values}`);
      }
    };
  }

  /** The different messages since the last call; waits a while for so many. */
  async takeDigests(count: number): Promise<ReadonlySet<string>> {
    for (let waitedMs = 0; this.digests.size < count && waitedMs < LATE_MS; waitedMs += 20) await pause(20);
    const taken = new Set(this.digests);
    this.digests.clear();
    return taken;
  }

  configureMeter({ id: meterId }: MeterInfo, index: number, config: MeterConfig): Promise<void> {
    const entity = complete({ meterEntry: { meterId, index: { index: BigInt(index) }, config } });
    this.entities.set(`meter ${meterId} ${index}`, entity);
    return this.write(UpdateType.MODIFY, entity);
  }

  async readCounter(counter: CounterInfo): Promise<CounterValue[]> {
    const cells = await this.attached.connection.readCounters(counter.name);
    return Array.from({ length: counter.size }, (_, index) => cells.get(index)!);
  }

  async readCounterCell(counter: CounterInfo, index: number): Promise<CounterValue> {
    return (await this.attached.connection.readCounters(counter.name, [index])).get(index)!;
  }

  async readEntryCounter(entry: TestEntry): Promise<CounterValue> {
    const { tableEntry } = this.entities.get(entry)!;
    const { tableId, match, priority } = tableEntry!;
    const filter: MessageInput<Entity> = { directCounterEntry: { tableEntry: { tableId, match, priority } } };
    const [entity] = await this.attached.connection.read([filter]);
    return counterValue(entity?.directCounterEntry?.data);
  }

  async inject(port: number, frame: Uint8Array): Promise<void> {
    const { stream } = this.attached;
    const { packetOut } = this;
    // A frame that is too short for the header is none that P4Runtime could carry.
    const left =
      port === this.cpuPort && packetOut !== undefined && frame.length >= packetOut.headerBytes
        ? await stream.exchange([], () => this.sendPacketOut(packetOut, frame))
        : await stream.exchange([{ id: 1, port, frame }]);
    this.sent.push(...left);
  }

  /**
   * Frames one after another, without waiting for one to be dealt with before the next.
   * @returns what left because of each of them; what left by the CPU port is with {@link takeSent}
   */
  async injectAll(frames: readonly SentFrame[]): Promise<SentFrame[][]> {
    const causes = frames.map(({ port, frame }, index) => ({ id: index + 1, port, frame }));
    const left = await this.attached.stream.exchange(causes);
    return causes.map(({ id }) => left.filter((sent) => sent.id === id).map(({ port, frame }) => ({ port, frame })));
  }

  takeSent(): SentFrame[] {
    const taken = this.sent;
    this.sent = [];
    return taken;
  }

  /** Packet-ins come over another connection, so perhaps after everything else. */
  async takeLate(): Promise<SentFrame[]> {
    for (let waitedMs = 0; this.sent.length === 0 && waitedMs < LATE_MS; waitedMs += 20) await pause(20);
    return this.takeSent();
  }

  async advance(us: number): Promise<void> {
    await pause(us / 1000);
  }

  /** Restarts the process and tells it everything again. */
  async loseRegisters(): Promise<void> {
    await detach(this.attached);
    this.attached = await attach(this.path, this.pipeline, this.cpuPort);
    this.listen();
    for (const entity of this.entities.values()) {
      const isNew = entity.meterEntry === undefined && entity.tableEntry?.isDefaultAction !== true;
      await this.write(isNew ? UpdateType.INSERT : UpdateType.MODIFY, entity);
    }
  }

  setQueueDepth(): void {
    throw new Error(simpleSwitchCannot('queue', undefined));
  }

  private listen(): void {
    this.attached.connection.onPacket = ({ payload, metadata }) => {
      const { packetIn } = this;
      if (packetIn === undefined) return;
      this.sent.push({ port: this.cpuPort, frame: packetIn.join(packetIn.fromValues(metadata), payload) });
    };
  }

  private async sendPacketOut(packetOut: PacketMetadataCodec, frame: Uint8Array): Promise<void> {
    const { metadata, payload } = packetOut.split(frame);
    if (!this.attached.connection.sendPacket(payload, packetOut.toValues(metadata)))
      throw new Error('The packet-out was not sent');
    await pause(PACKET_OUT_MS);
  }

  private async write(type: number, entity: Entity): Promise<void> {
    requireApplied(await this.attached.connection.write([{ type, entity }]));
  }
}

export const simpleSwitchCannot: Inability = (command, us) => {
  if (command === 'queue') return 'its queues cannot be filled from outside';
  if (us !== undefined && us > LONGEST_WAIT_US) return `it would take ${us / 1e6} s of real time`;
  if (us !== undefined && us < SHORTEST_WAIT_US) return `nobody can wait for ${us} us in real time`;
  return undefined;
};

async function attach(path: string, pipeline: Pipeline, cpuPort: number): Promise<Attached> {
  const packetPort = await freePort();
  const process = await SimpleSwitchProcess.start({ path, deviceId: DEVICE_ID, cpuPort, packetPort });
  const connection = new SwitchConnection({
    name: 'bmv2',
    address: `127.0.0.1:${process.port}`,
    deviceId: DEVICE_ID,
    electionId: electionIdAt(Date.now(), 0n),
  });
  const stream = new PacketStream(`127.0.0.1:${packetPort}`, DEVICE_ID);
  try {
    connection.start();
    await connection.whenPrimary(READY_MS);
    await connection.setPipeline(pipeline);
    await stream.whenReady();
  } catch (error) {
    await detach({ process, connection, stream });
    throw error;
  }
  return { process, connection, stream };
}

async function detach({ process, connection, stream }: Attached): Promise<void> {
  stream.close();
  connection.close();
  await process.stop();
}

function requireApplied(outcome: WriteOutcome): void {
  if (outcome.kind !== 'applied') throw outcome.error;
}

function codecOf(index: P4InfoIndex, header: string): PacketMetadataCodec | undefined {
  const info = index.controllerHeaders.get(header);
  return info === undefined ? undefined : new PacketMetadataCodec(info);
}

function counterValue(data: CounterData | undefined): CounterValue {
  return { packets: data?.packetCount ?? 0n, bytes: data?.byteCount ?? 0n };
}
