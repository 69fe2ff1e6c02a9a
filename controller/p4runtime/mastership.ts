import { type ClientDuplexStream, status } from '@grpc/grpc-js';
import { DdfError } from '../../base/errors.ts';
import type { Random } from '../../base/random.ts';
import type { TlsIdentity } from '../../base/tls.ts';
import type {
  CapabilitiesResponse,
  DigestListAck,
  MasterArbitrationUpdate,
  PacketOut,
  StreamMessageRequest,
  StreamMessageResponse,
  Uint128,
} from '../../wire/p4runtime/messages.ts';
import type { MessageInput } from '../../wire/proto.ts';
import { BoundedQueue } from './bounded-queue.ts';
import { isServiceError, isUnreachable, P4RuntimeChannel, statusName } from './calls.ts';
import { compareElectionIds, nextElectionId } from './election.ts';

/** `down`: the last attempt failed, another one follows. */
export type MastershipState = 'connecting' | 'primary' | 'backup' | 'down';

export interface MastershipOptions {
  readonly name: string;
  readonly address: string;
  readonly tls: TlsIdentity | undefined;
  readonly deviceId: bigint;
  readonly electionId: Uint128;
  readonly answerTimeoutMs: number;
  /** Pause between the calls that watch the stream's connection. */
  readonly keepaliveMs: number;
  readonly reconnectFirstMs: number;
  readonly reconnectMaximumMs: number;
  readonly packetQueueLength: number;
  readonly random: Random;
  readonly onState: (state: MastershipState) => void;
  /** Messages of the stream other than arbitration, while this is primary. */
  readonly onMessage: (message: StreamMessageResponse) => void;
}

type Stream = ClientDuplexStream<MessageInput<StreamMessageRequest>, StreamMessageResponse>;

/**
 * Bids for mastership of one switch over StreamChannel (P4Runtime 1.5, "Client Arbitration and Controller Replication") and keeps bidding. Only the
 * status of an answer on the current stream decides who this is; ids are compared as 128-bit numbers and never trusted to be monotonous.
 */
export class Mastership {
  state: MastershipState = 'connecting';
  lastError: DdfError | undefined;
  private readonly options: MastershipOptions;
  private readonly packetsOut: BoundedQueue<MessageInput<PacketOut>>;
  private electionId: Uint128;
  private stream: Stream | undefined;
  private channel: P4RuntimeChannel | undefined;
  private started = false;
  private closed = false;
  private congested = false;
  private failures = 0;
  /** The next thing to do: give an answer up, bid again, reconnect. There is never more than one. */
  private timer: NodeJS.Timeout | undefined;
  private keepalive: NodeJS.Timeout | undefined;

  constructor(options: MastershipOptions) {
    this.options = options;
    this.electionId = options.electionId;
    this.packetsOut = new BoundedQueue(options.packetQueueLength);
  }

  get packetsDropped(): number {
    return this.packetsOut.dropped;
  }

  start(): void {
    if (this.started || this.closed) return;
    this.started = true;
    this.connect();
  }

  close(): void {
    if (this.closed) return;
    this.closed = true;
    clearTimeout(this.timer);
    this.lastError = undefined;
    this.release();
    this.enter('down');
  }

  /** The election id to act under. Throws NOT_PRIMARY or SWITCH_UNREACHABLE, both recoverable. */
  requirePrimary(): Uint128 {
    if (this.state === 'primary') return this.electionId;
    const where = `switch ${this.options.name}`;
    if (this.state === 'backup')
      throw new DdfError('NOT_PRIMARY', 'another controller is primary on this switch', {
        where,
        remedy: 'Stop it, or let it work.',
        recoverable: true,
      });
    throw new DdfError('SWITCH_UNREACHABLE', 'the switch is not connected', {
      where: `${where} at ${this.options.address}`,
      remedy: 'It is tried again; check that the switch runs if this persists.',
      recoverable: true,
      cause: this.lastError,
    });
  }

  /** @returns whether it was sent or waits to be */
  sendPacket(packet: MessageInput<PacketOut>): boolean {
    if (this.state !== 'primary') return false;
    if (this.congested) {
      const dropped = this.packetsOut.dropped;
      this.packetsOut.push(packet);
      return this.packetsOut.dropped === dropped;
    }
    this.congested = !this.stream!.write({ packet });
    return true;
  }

  /** Harmless if the mastership has been lost: the switch repeats what is not acknowledged. */
  acknowledgeDigest(digestAck: DigestListAck): void {
    if (this.state === 'primary') this.stream!.write({ digestAck });
  }

  private connect(): void {
    const channel = new P4RuntimeChannel(this.options.address, this.options.tls);
    const stream = channel.openStream();
    this.channel = channel;
    this.stream = stream;
    this.congested = false;
    stream.on('data', (message: StreamMessageResponse) => {
      if (this.stream === stream) this.receive(message);
    });
    stream.on('drain', () => {
      if (this.stream === stream) this.flushPackets(stream);
    });
    // The status says the same, and always comes.
    stream.on('error', () => {});
    stream.on('status', ({ code, details }) => {
      if (this.stream === stream) this.ended(code, details);
    });
    this.bid(this.electionId);
    this.watch(channel);
  }

  /**
   * An idle stream does not tell when the other end is gone. So the connection that carries it carries a small call now and then, whose answer, whatever
   * it says, shows that it is there.
   */
  private watch(channel: P4RuntimeChannel): void {
    this.keepalive = setTimeout(async () => {
      try {
        await channel.unary<object, CapabilitiesResponse>('Capabilities', {}, this.options.answerTimeoutMs);
      } catch (error) {
        if (this.channel !== channel) return;
        if (isServiceError(error) && isUnreachable(error.code)) {
          this.ended(error.code, `the switch does not answer on the stream's connection`);
          return;
        }
      }
      if (this.channel === channel) this.watch(channel);
    }, this.options.keepaliveMs);
  }

  private bid(electionId: Uint128): void {
    this.electionId = electionId;
    this.stream!.write({ arbitration: { deviceId: this.options.deviceId, electionId } });
    this.schedule(this.options.answerTimeoutMs, () =>
      this.ended(status.DEADLINE_EXCEEDED, `no answer to the bid within ${this.options.answerTimeoutMs} ms`),
    );
  }

  private receive(message: StreamMessageResponse): void {
    if (message.arbitration !== undefined) this.decide(message.arbitration);
    else if (this.state === 'primary') this.options.onMessage(message);
  }

  private decide({ status: verdict, electionId: highest }: MasterArbitrationUpdate): void {
    clearTimeout(this.timer);
    this.failures = 0;
    if (verdict?.code === status.OK) {
      this.lastError = undefined;
      this.enter('primary');
      return;
    }
    this.lastError = new DdfError('NOT_PRIMARY', 'another controller is primary on this switch', {
      where: `switch ${this.options.name}`,
      remedy: 'Stop it, or let it work.',
      recoverable: true,
    });
    this.enter('backup');
    // No primary any more: whoever bids at least the highest id ever seen becomes it. While there is one, waiting is all that helps.
    if (verdict?.code !== status.NOT_FOUND) return;
    this.schedule(this.pause(this.options.reconnectFirstMs), () => {
      const outbid = highest !== undefined && compareElectionIds(this.electionId, highest) <= 0;
      this.bid(outbid ? nextElectionId(highest) : this.electionId);
    });
  }

  private ended(code: number, details: string): void {
    this.release();
    if (this.closed) return;
    this.lastError = new DdfError(
      'SWITCH_UNREACHABLE',
      `the stream ended: ${statusName(code)} ${details}`.replace(/\s+/g, ' ').trimEnd(),
      {
        where: `switch ${this.options.name} at ${this.options.address}`,
        remedy: `It is tried again; if this persists, check that the switch runs, has this device id and ${
          this.options.tls === undefined
            ? 'speaks gRPC without TLS'
            : 'speaks TLS with a certificate for this host, and that both ends trust what the other one shows'
        }.`,
        recoverable: true,
      },
    );
    // The server knows the id already, perhaps from the stream that died a moment ago.
    if (code === status.INVALID_ARGUMENT) this.electionId = nextElectionId(this.electionId);
    const delayMs = Math.min(this.options.reconnectFirstMs * 2 ** this.failures, this.options.reconnectMaximumMs);
    this.failures++;
    this.schedule(this.pause(delayMs), () => this.connect());
    this.enter('down');
  }

  private release(): void {
    clearTimeout(this.timer);
    clearTimeout(this.keepalive);
    const { stream, channel } = this;
    this.stream = undefined;
    this.channel = undefined;
    this.packetsOut.clear();
    stream?.cancel();
    channel?.close();
  }

  private flushPackets(stream: Stream): void {
    this.congested = false;
    while (!this.congested) {
      const packet = this.packetsOut.take();
      if (packet === undefined) return;
      this.congested = !stream.write({ packet });
    }
  }

  private enter(state: MastershipState): void {
    if (this.state === state) return;
    this.state = state;
    this.options.onState(state);
  }

  private schedule(delayMs: number, action: () => void): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(action, delayMs);
  }

  /** Half to all of the delay: controllers that lost the same switch do not come back in step. */
  private pause(delayMs: number): number {
    return delayMs * (0.5 + this.options.random.float() / 2);
  }
}
