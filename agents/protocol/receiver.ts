import { DdfError } from '../../base/errors.ts';
import type { Random } from '../../base/random.ts';
import { decodeFabricInto, emptyFabricPacket, encodeFabric, FABRIC_HEADER_BYTES } from '../../wire/fabric/header.ts';
import { checkStripe, type LayoutParameters, StreamLayout, type Stripe, WHOLE_STREAM } from './layout.ts';
import { type LaneCounters, ReceiverLane, type StreamEnd, type StripeSource } from './receiver-lane.ts';
import { countRejection, noRejections, type RejectionCounters } from './rejections.ts';
import { type AssemblyEvent, type PayloadSink, StreamAssembly } from './stream-assembly.ts';
import type { PayloadIdentity } from './transfer.ts';

const EMPTY = new Uint8Array(0);

export interface ReceiverOptions extends LayoutParameters {
  readonly transfer: PayloadIdentity;
  /** Who sends which part; none: everything is read by unicast at once. */
  readonly stripes: readonly StripeSource[];
  readonly sink: PayloadSink;
  readonly random: Random;
  /** The switches' elimination interval: retries stay above it. */
  readonly eliminationUs: number;
  /** What is missing then is read by unicast. Default: no deadline. */
  readonly deadlineUs?: number;
  /** Silence of the sender after which the same happens. Default 3 s. */
  readonly idleTimeoutUs?: number;
  /** The same before the first packet. Default 60 s. */
  readonly startTimeoutUs?: number;
  /** Chunks held and verified from an earlier run. Default none. */
  readonly verifiedChunks?: Iterable<number>;
  /** The driver has the manifest already. Default false. */
  readonly manifestIsHeld?: boolean;
  /** Bound on the buffers of incomplete blocks. Default 32 MiB. */
  readonly bufferBytes?: number;
}

export type ReceiverEvent =
  | AssemblyEvent
  /** The sender of a stripe has ended it, or is silent, or the deadline has passed: what is missing of it comes by unicast. */
  | { readonly type: 'streamEnded'; readonly label: number; readonly reason: StreamEnd };

/** Counters of ../../wire/agent/schema.ts as plain numbers. */
export interface ReceiverCounters extends LaneCounters, RejectionCounters {
  lostSymbols: number;
  blocksDecoded: number;
  chunksVerified: number;
  chunksFailed: number;
  unicastBytes: number;
  unicastRequests: number;
}

/**
 * One payload as one receiver sees it, whatever number of stripes it comes in. No I/O: the driver hands in datagrams, the results of hashing, the
 * bytes of unicast reads and the time, sends what `pollTransmit` returns to `destination`, and calls `handleTimeout` at `pollTimeout`.
 */
export class TransferReceiver {
  readonly layout: StreamLayout;
  private readonly options: ReceiverOptions;
  private readonly assembly: StreamAssembly;
  private readonly lanes = new Map<number, ReceiverLane>();
  private readonly deadlineUs: number;
  /** The one that is being handled. */
  private readonly packet = emptyFabricPacket();
  private readonly datagram = new Uint8Array(FABRIC_HEADER_BYTES);
  private readonly events: ReceiverEvent[] = [];
  private readonly tally = {
    dataPackets: 0,
    repairPackets: 0,
    repairUnneeded: 0,
    duplicates: 0,
    nacksSent: 0,
    syncPackets: 0,
    probePackets: 0,
    packetsLate: 0,
    reportsSent: 0,
    chunksVerified: 0,
    chunksFailed: 0,
    unicastBytes: 0,
    unicastRequests: 0,
    ...noRejections(),
  };
  private lastSender = '';
  private deadlinePassed = false;

  /** @throws INVALID_OPTION for sizes that cannot be laid out, or stripes that are not of one payload */
  constructor(nowUs: number, options: ReceiverOptions) {
    this.options = options;
    this.layout = new StreamLayout(options);
    this.deadlineUs = options.deadlineUs ?? Number.POSITIVE_INFINITY;
    this.assembly = new StreamAssembly(
      this.layout,
      options.sink,
      options.verifiedChunks ?? [],
      options.manifestIsHeld ?? false,
      options.bufferBytes ?? 32 << 20,
      (event) => this.events.push(event),
    );
    this.setStripes(nowUs, options.stripes);
  }

  get counters(): ReceiverCounters {
    return {
      ...this.tally,
      lostSymbols: this.assembly.lostSymbols,
      blocksDecoded: this.assembly.blocksDecoded,
    };
  }

  /** Payload bytes in verified chunks. */
  get bytesDone(): number {
    return this.assembly.chunks.verifiedBytes;
  }

  get isComplete(): boolean {
    return this.assembly.isComplete;
  }

  /** Labels that datagrams for this receiver may have. */
  get labels(): readonly number[] {
    return [...this.lanes.keys()];
  }

  /** The slowest of the paths to the senders and back. */
  get rttUs(): number {
    return Math.max(0, ...[...this.lanes.values()].map((lane) => lane.rttUs));
  }

  /** Whom the datagram goes to that {@link pollTransmit} returned last. */
  get destination(): string {
    return this.lastSender;
  }

  /**
   * These are the stripes from now on. One whose label is known goes on; one with a new label begins, and what is held of its blocks is kept; what is
   * missing of a stripe that nobody sends is read by unicast.
   * @throws INVALID_OPTION for stripes that are not of one payload
   */
  setStripes(nowUs: number, stripes: readonly StripeSource[]): void {
    checkStripes(stripes);
    for (const [label, lane] of this.lanes) {
      if (stripes.some((source) => isSameSource(source, lane.source))) continue;
      this.lanes.delete(label);
      lane.end('replaced');
    }
    for (const source of stripes) if (!this.lanes.has(source.label)) this.addLane(nowUs, source);
    const missing = missingStripes(stripes);
    if (missing.length === 0) this.settle();
    else for (const stripe of missing) this.giveUp(stripe);
  }

  /**
   * Takes one datagram of the transfer; anything malformed or foreign is counted and ignored.
   * @throws what the sink throws
   */
  handlePacket(nowUs: number, datagram: Uint8Array): void {
    const { packet } = this;
    const fault = decodeFabricInto(packet, datagram);
    if (fault !== undefined) {
      countRejection(this.tally, fault);
      return;
    }
    const lane = this.lanes.get(packet.label);
    const mismatch = lane === undefined ? 'label' : lane.mismatch(packet);
    if (mismatch !== undefined) {
      countRejection(this.tally, mismatch);
      return;
    }
    lane!.handle(nowUs, packet);
    this.settle();
  }

  handleTimeout(nowUs: number): void {
    if (this.assembly.failed) return;
    if (nowUs >= this.deadlineUs && !this.deadlinePassed) {
      this.deadlinePassed = true;
      for (const lane of this.lanes.values()) lane.end('deadline');
    }
    for (const lane of this.lanes.values()) lane.handleTimeout(nowUs);
    this.settle();
  }

  /** The driver has hashed the bytes of `manifestComplete`. Not ok: they are read again by unicast. */
  manifestVerified(ok: boolean): void {
    this.assembly.manifestVerified(ok);
    this.settle();
  }

  /** The driver has hashed the chunk of `chunkComplete` as it was stored. Not ok: it is read again by unicast. */
  chunkVerified(chunk: number, ok: boolean): void {
    if (!this.assembly.chunks.isChecking(chunk)) return;
    if (ok) this.tally.chunksVerified++;
    else this.tally.chunksFailed++;
    this.assembly.chunkVerified(chunk, ok);
    this.settle();
  }

  /**
   * Bytes of the stream that a holder sent, whatever their borders; those that nobody asked for are ignored.
   * @throws what the sink throws
   */
  unicastData(streamOffset: number, bytes: Uint8Array): void {
    this.tally.unicastBytes += this.assembly.unicastData(streamOffset, bytes);
    this.settle();
  }

  /**
   * The next datagram to send to {@link destination}, or undefined.
   * @returns a view that is valid until the next call
   */
  pollTransmit(nowUs: number): Uint8Array | undefined {
    this.handleTimeout(nowUs);
    for (const lane of this.lanes.values()) {
      const header = lane.pollTransmit();
      if (header === undefined) continue;
      this.lastSender = lane.source.sender;
      return encodeFabric(this.datagram, header, EMPTY);
    }
    return undefined;
  }

  /** When to call `handleTimeout` and `pollTransmit` next, or undefined if only a packet or a call can change anything. */
  pollTimeout(): number | undefined {
    if (this.assembly.failed) return undefined;
    let next = this.assembly.wantsSymbols && !this.deadlinePassed ? this.deadlineUs : Number.POSITIVE_INFINITY;
    for (const lane of this.lanes.values()) next = Math.min(next, lane.pollTimeout());
    return next === Number.POSITIVE_INFINITY ? undefined : next;
  }

  poll(): ReceiverEvent | undefined {
    return this.events.shift();
  }

  private addLane(nowUs: number, source: StripeSource): void {
    const { options, layout, assembly } = this;
    const { label, stripe } = source;
    const lane = new ReceiverLane(nowUs, source, {
      layout,
      assembly,
      payload: options.transfer,
      counters: this.tally,
      random: options.random.fork(`lane/${label}`),
      eliminationUs: options.eliminationUs,
      idleTimeoutUs: options.idleTimeoutUs ?? 3_000_000,
      startTimeoutUs: options.startTimeoutUs ?? 60_000_000,
      onEnd: (reason) => {
        this.events.push({ type: 'streamEnded', label, reason });
        if (reason !== 'replaced') this.giveUp(stripe);
      },
    });
    this.lanes.set(label, lane);
    if (this.deadlinePassed) lane.end('deadline');
  }

  /** Leaves what is missing of a stripe to unicast. */
  private giveUp({ index, count }: Stripe): void {
    for (let block = index; block < this.layout.blocks && this.assembly.wantsSymbols; block += count)
      if (this.assembly.wants(block)) this.assembly.giveUp(block);
    this.settle();
  }

  /** What follows from any change: unicast requests go out, the first DONE is said. */
  private settle(): void {
    this.tally.unicastRequests += this.assembly.flushUnicast();
    if (this.isComplete) for (const lane of this.lanes.values()) lane.completed();
  }
}

function checkStripes(stripes: readonly StripeSource[]): void {
  for (const { stripe } of stripes) checkStripe(stripe);
  const counts = new Set(stripes.map(({ stripe }) => stripe.count));
  const indexes = new Set(stripes.map(({ stripe }) => stripe.index));
  const labels = new Set(stripes.map(({ label }) => label));
  if (counts.size > 1 || indexes.size < stripes.length || labels.size < stripes.length)
    throw new DdfError('INVALID_OPTION', 'the stripes are not of one payload, each with a label of its own', {
      where: stripes.map(({ label, stripe }) => `${label}: ${stripe.index} of ${stripe.count}`).join(', '),
      remedy: 'Give every index once, with the same count.',
    });
}

function isSameSource(a: StripeSource, b: StripeSource): boolean {
  return (
    a.label === b.label &&
    a.stripe.index === b.stripe.index &&
    a.stripe.count === b.stripe.count &&
    a.sender === b.sender
  );
}

function missingStripes(stripes: readonly StripeSource[]): Stripe[] {
  const count = stripes[0]?.stripe.count;
  if (count === undefined) return [WHOLE_STREAM];
  const sent = new Set(stripes.map(({ stripe }) => stripe.index));
  return Array.from({ length: count }, (_, index) => ({ index, count })).filter(({ index }) => !sent.has(index));
}
