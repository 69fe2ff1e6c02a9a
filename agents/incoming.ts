import { DdfError, toDdfError } from '../base/errors.ts';
import { chunkSha256At, type Manifest } from '../objects/manifest.ts';
import { FABRIC_UDP_PORT } from '../p4/build/constants.ts';
import { type PrepareReceive, type Stripe, TransferState } from '../wire/agent/messages.ts';
import type { AgentCore } from './agent.ts';
import { toAgentError } from './io/attachment.ts';
import { RangeReader } from './io/range-client.ts';
import { TransferDriver } from './io/transfer-driver.ts';
import { type ReceiverEvent, TransferReceiver } from './protocol/receiver.ts';
import type { StripeSource } from './protocol/receiver-lane.ts';
import { rejectionFields } from './protocol/rejections.ts';
import type { ReportedTransfer, Status } from './status-reporter.ts';
import type { ReceivingPayload } from './store/receiving.ts';
import type { StoredPayload } from './store/store.ts';
import { UnicastLane } from './unicast-lane.ts';

export interface IncomingOptions {
  readonly core: AgentCore;
  readonly request: PrepareReceive;
  readonly receiving: ReceivingPayload;
  /** The image that a delta starts from, proved and pinned; undefined for a full image. */
  readonly base: StoredPayload | undefined;
  /** Called once when nothing more is written: let go of the base. */
  readonly onSettled: () => void;
}

/** Chunks of one transfer that are being hashed at a time. */
const MAX_HASHING = 4;
const BUSY_WAIT_US = 20_000;
/** Progress is looked at after so many packets, a power of two: a look costs as much as a packet's header. */
const PACKETS_PER_REPORT = 16;

/**
 * One transfer that this GPU server receives: the state machine, hashing of what it writes, the unicast lane, and then the version itself,
 * stored as it came or made of the base. Its end is VERIFIED or FAILED; after VERIFIED it goes on saying DONE until it is closed.
 */
export class Incoming implements ReportedTransfer {
  readonly request: PrepareReceive;
  private readonly core: AgentCore;
  private readonly receiving: ReceivingPayload;
  private readonly base: StoredPayload | undefined;
  private readonly owner: string;
  private readonly onSettled: () => void;
  private readonly machine: TransferReceiver;
  private readonly driver: TransferDriver<ReceiverEvent>;
  private readonly reader: RangeReader;
  private readonly lane: UnicastLane;
  private readonly toHash: number[] = [];
  private hashing = 0;
  private packets = 0;
  private current: TransferState = TransferState.RECEIVING;
  private failure: DdfError | undefined;
  private finishing: Promise<void> | undefined;
  private isClosed = false;

  /** @throws DdfError INVALID_OPTION for sizes that cannot be laid out; nothing is held then */
  constructor(options: IncomingOptions) {
    const { core, request, receiving, base } = options;
    const { scheduler, random, name } = core.options;
    const { label } = request;
    const payload = request.payload!;
    const nowUs = scheduler.nowUs();
    this.core = core;
    this.request = request;
    this.receiving = receiving;
    this.base = base;
    this.onSettled = options.onSettled;
    this.owner = transferOwner(name, label);
    const deadlineUs =
      request.stripes.length === 0 || request.deadlineMs === 0 ? undefined : nowUs + request.deadlineMs * 1000;
    this.machine = new TransferReceiver(nowUs, {
      transfer: {
        objectId: payload.objectId,
        objectVersion: payload.version,
        baseVersion: payload.baseVersion,
      },
      manifestBytes: payload.manifestBytes,
      payloadBytes: Number(payload.sizeBytes),
      segmentBytes: request.segmentBytes,
      sink: receiving,
      random: random.fork(`receiver/${label}`),
      stripes: request.stripes.map(stripeSource),
      eliminationUs: request.eliminationUs,
      verifiedChunks: Array.from({ length: receiving.chunks }, (_, chunk) => chunk).filter((chunk) =>
        receiving.isVerified(chunk),
      ),
      manifestIsHeld: receiving.manifest !== undefined,
      ...(deadlineUs === undefined ? {} : { deadlineUs }),
    });
    this.reader = new RangeReader({ payload, holders: request.holders });
    this.lane = new UnicastLane({
      reader: this.reader,
      manifestBytes: payload.manifestBytes,
      scheduler,
      onData: (streamOffset, bytes) => this.drive(() => this.machine.unicastData(streamOffset, bytes)),
      onFailure: (error) => this.fail(error),
    });
    this.driver = new TransferDriver({
      machine: this.machine,
      scheduler,
      send: (datagram) => core.send(this.machine.destination, FABRIC_UDP_PORT, datagram),
      hasRoom: () => core.hasRoom,
      onEvent: (event) => this.handle(event),
      onFailure: (error) => this.fail(error),
    });
    core.statuses.begin(label, this);
    this.driver.pump();
  }

  get state(): TransferState {
    return this.current;
  }

  get isOver(): boolean {
    return this.current === TransferState.VERIFIED || this.current === TransferState.FAILED;
  }

  /** Set when every chunk is there: resolves when the version is stored or has failed. */
  get outcome(): Promise<void> | undefined {
    return this.finishing;
  }

  handlePacket(datagram: Uint8Array): void {
    this.driver.handlePacket(datagram);
    // Events are told by themselves; this is for what only counts.
    if ((++this.packets & (PACKETS_PER_REPORT - 1)) === 0) this.core.statuses.changed(this.request.label);
  }

  /** Labels of the stripes that it comes in now. */
  get labels(): readonly number[] {
    return this.machine.labels;
  }

  /** Other stripes from now on; what nobody sends is read by unicast. @throws DdfError INVALID_OPTION */
  setStripes(stripes: readonly Stripe[]): void {
    if (this.current === TransferState.FAILED) return;
    this.machine.setStripes(this.core.options.scheduler.nowUs(), stripes.map(stripeSource));
    this.driver.pump();
    this.core.statuses.changed(this.request.label);
  }

  /** Gives up; verified chunks are kept. Nothing happens when it is over. */
  abort(why: string): void {
    this.fail(new DdfError('CANCELLED', why));
  }

  /** Goes away without a word; files are left as they are. */
  close(): void {
    this.isClosed = true;
    this.driver.stop();
    this.lane.close();
    this.core.options.workers.cancel(this.owner);
  }

  status(): Status {
    const { counters } = this.machine;
    return {
      label: this.request.label,
      state: this.current,
      bytesDone: BigInt(this.machine.bytesDone),
      error: this.failure === undefined ? undefined : toAgentError(this.failure),
      receiver: {
        dataPackets: BigInt(counters.dataPackets),
        repairPackets: BigInt(counters.repairPackets),
        repairUnneeded: BigInt(counters.repairUnneeded),
        duplicates: BigInt(counters.duplicates),
        lostSymbols: BigInt(counters.lostSymbols),
        nacksSent: BigInt(counters.nacksSent),
        blocksDecoded: BigInt(counters.blocksDecoded),
        syncPackets: BigInt(counters.syncPackets),
        probePackets: BigInt(counters.probePackets),
        packetsLate: BigInt(counters.packetsLate),
        ...rejectionFields(counters),
        chunksVerified: BigInt(counters.chunksVerified),
        chunksFailed: BigInt(counters.chunksFailed),
        unicastBytes: BigInt(counters.unicastBytes),
        unicastRequests: BigInt(this.reader.requests),
        reportsSent: BigInt(counters.reportsSent),
        rttUs: this.machine.rttUs,
      },
    };
  }

  private handle(event: ReceiverEvent): void {
    switch (event.type) {
      case 'manifestComplete':
        this.takeManifest(event.bytes);
        break;
      case 'chunkComplete':
        this.toHash.push(event.chunk);
        this.hashNext();
        break;
      case 'chunkRejected':
        this.core.options.logger.warn({ label: this.request.label, chunk: event.chunk }, 'a chunk has a wrong hash');
        this.reader.distrust();
        break;
      case 'unicastNeeded':
        this.lane.read(event.ranges);
        break;
      case 'complete':
        this.finishing ??= this.finish();
        break;
      case 'failed':
        this.fail(event.error);
        break;
      case 'streamEnded':
        this.core.options.logger.debug({ label: event.label, reason: event.reason }, 'the stream ended');
        break;
    }
    this.core.statuses.changed(this.request.label);
  }

  private takeManifest(bytes: Uint8Array): void {
    let manifest: Manifest;
    try {
      manifest = this.receiving.setManifest(bytes);
    } catch (error) {
      if (toDdfError(error).code !== 'INVALID_MANIFEST') throw error;
      this.machine.manifestVerified(false);
      return;
    }
    const fault = manifestFault(manifest, this.request, this.base);
    if (fault !== undefined) this.fail(fault);
    else this.machine.manifestVerified(true);
  }

  private hashNext(): void {
    while (this.hashing < MAX_HASHING && !this.isClosed) {
      const chunk = this.toHash.shift();
      if (chunk === undefined) return;
      this.hashing++;
      void this.hash(chunk).finally(() => {
        this.hashing--;
        this.hashNext();
      });
    }
  }

  private async hash(chunk: number): Promise<void> {
    try {
      const { dataPath, expected } = this.receiving;
      this.receiving.flush();
      const job = { kind: 'hash-chunk', path: dataPath, chunk, sizeBytes: expected.sizeBytes } as const;
      const found = await this.core.options.workers.run(job, this.owner);
      if (this.isClosed) return;
      const isRight = Buffer.compare(found, chunkSha256At(this.receiving.manifest!, chunk)) === 0;
      if (isRight) this.receiving.markVerified(chunk);
      this.drive(() => this.machine.chunkVerified(chunk, isRight));
    } catch (thrown) {
      const error = toDdfError(thrown);
      if (error.code === 'AGENT_FAILED' && error.recoverable) this.hashLater(chunk);
      else this.fail(error);
    }
  }

  /** The threads have too much to do. */
  private hashLater(chunk: number): void {
    const { scheduler } = this.core.options;
    scheduler.at(scheduler.nowUs() + BUSY_WAIT_US, () => {
      this.toHash.push(chunk);
      this.hashNext();
    });
  }

  private async finish(): Promise<void> {
    try {
      const fault = manifestFault(this.receiving.manifest!, this.request, this.base);
      if (fault !== undefined) throw fault;
      const stored = this.base === undefined ? await this.storeImage() : await this.storeReconstructed(this.base);
      if (!this.core.isRunning) return;
      this.core.announceHeld(stored);
      if (this.isOver) return;
      this.current = TransferState.VERIFIED;
      this.lane.close();
      this.onSettled();
      this.core.statuses.end(this.request.label);
    } catch (error) {
      this.fail(toDdfError(error));
    }
  }

  private storeImage(): Promise<StoredPayload> {
    return this.core.store.commitReceived(this.receiving);
  }

  private async storeReconstructed(base: StoredPayload): Promise<StoredPayload> {
    this.current = TransferState.RECONSTRUCTING;
    this.core.statuses.changed(this.request.label);
    const { store } = this.core;
    const { target, objectId, version } = this.receiving.manifest!;
    const work = store.begin(target.sizeBytes);
    try {
      const hashes = await this.core.options.workers.run(
        { kind: 'apply-delta', base: base.dataPath, delta: this.receiving.dataPath, target: work.dataPath },
        this.owner,
      );
      if (Buffer.compare(hashes.rootSha256, target.rootSha256) !== 0)
        throw new DdfError('CORRUPT_PAYLOAD', 'the delta does not lead to the version that it is said to lead to', {
          where: this.core.options.name,
          remedy: 'Publish the version again.',
        });
      const stored = await store.commit(work, {
        ...hashes,
        objectId,
        version,
        baseVersion: 0,
        codec: 'full',
        base: undefined,
        target,
      });
      store.discardReceived(this.receiving);
      return stored;
    } finally {
      store.discard(work);
    }
  }

  /** Calls the machine from outside of its driver. */
  private drive(call: () => void): void {
    if (this.current === TransferState.FAILED) return;
    try {
      call();
    } catch (error) {
      this.fail(toDdfError(error));
      return;
    }
    this.driver.pump();
    this.core.statuses.changed(this.request.label);
  }

  private fail(error: DdfError): void {
    if (this.isOver) return;
    this.current = TransferState.FAILED;
    this.failure = error;
    this.close();
    if (!this.core.isRunning) return;
    if (error.code !== 'CANCELLED')
      this.core.options.logger.error({ error, label: this.request.label }, 'receiving failed');
    if (error.code === 'CORRUPT_PAYLOAD') this.core.store.discardReceived(this.receiving);
    else this.core.store.suspendReceived(this.receiving);
    this.onSettled();
    this.core.statuses.end(this.request.label);
  }
}

/** A stripe as the receiver's state machine has it. */
function stripeSource({ label, index, count, senderIp, rttUs, sendDone }: Stripe): StripeSource {
  return { label, stripe: { index, count }, sender: senderIp, rttUs, sendDone };
}

/** Whom jobs of a transfer are for, so that they can be given up with it. */
export function transferOwner(agent: string, label: number): string {
  return `${agent}/${label}`;
}

/** Whether a manifest, which is the announced one, leads from what we hold to what was asked for. */
export function manifestFault(
  manifest: Manifest,
  request: PrepareReceive,
  base: StoredPayload | undefined,
): DdfError | undefined {
  if (Buffer.compare(manifest.target.rootSha256, request.targetRootSha256) !== 0)
    return new DdfError('INVALID_MANIFEST', 'the payload leads to another image than was asked for', {
      remedy: 'Start the rollout again.',
    });
  if (manifest.base === undefined || base === undefined) return undefined;
  if (Buffer.compare(manifest.base.rootSha256, base.manifest.rootSha256) === 0) return undefined;
  return new DdfError('BASE_MISMATCH', 'the delta was made from another image than the base version held here', {
    remedy: 'Roll out again: the planner then sends the full image.',
  });
}
