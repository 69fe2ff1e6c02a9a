import { status } from '@grpc/grpc-js';
import { DdfError } from '../../base/errors.ts';
import { createRandom, type Random } from '../../base/random.ts';
import type { TlsIdentity } from '../../base/tls.ts';
import {
  type CapabilitiesResponse,
  type CounterData,
  type DigestList,
  type Entity,
  type GetForwardingPipelineConfigRequest,
  type GetForwardingPipelineConfigResponse,
  SetForwardingPipelineConfigRequestAction as PipelineAction,
  type ReadRequest,
  type ReadResponse,
  GetForwardingPipelineConfigRequestResponseType as ResponseType,
  type SetForwardingPipelineConfigRequest,
  type TableEntry,
  type Uint128,
  type Update,
  type WriteRequest,
} from '../../wire/p4runtime/messages.ts';
import { P4InfoIndex } from '../../wire/p4runtime/p4info-index.ts';
import { PacketMetadataCodec } from '../../wire/p4runtime/packet-metadata.ts';
import type { MessageInput } from '../../wire/proto.ts';
import { callError, isOutcomeUnknown, isServiceError, P4RuntimeChannel, type UnaryMethod } from './calls.ts';
import { describeEntity } from './entity-text.ts';
import { type ReceivedPacket, StreamInbox } from './inbox.ts';
import { Mastership, type MastershipState } from './mastership.ts';
import type { Pipeline } from './pipeline.ts';
import { decodeUpdateFailures, type UpdateFailure } from './write-outcome.ts';

/** Larger Write failures do not fit into the trailer that grpc-js can read: the call would hang instead of failing. */
export const MAX_BATCH_UPDATES = 256;

export interface SwitchConnectionOptions {
  /** The switch's name in the topology, for messages. */
  readonly name: string;
  /** `host:port` of its P4Runtime server. */
  readonly address: string;
  /** Default: no TLS. The switch's certificate has to be for the host of `address`. */
  readonly tls?: TlsIdentity;
  readonly deviceId: number;
  /** The first bid, see `electionIdAt`; later ones are higher. */
  readonly electionId: Uint128;
  /** Deadline of a call and of an answer to a bid, milliseconds. Default 10,000. */
  readonly callTimeoutMs?: number;
  /** Deadline of a call that carries a pipeline, milliseconds. Default 60,000. */
  readonly pipelineTimeoutMs?: number;
  /** Pause between the calls that show whether an idle stream's connection still stands, milliseconds. Default 10,000. */
  readonly keepaliveMs?: number;
  /** Pause before the first and before the later attempts to reconnect, milliseconds; it doubles in between. Default 100 and 5,000. */
  readonly reconnectFirstMs?: number;
  readonly reconnectMaximumMs?: number;
  /** Packet-ins that wait for the handler, and packet-outs that wait for the switch, at most; then the oldest are dropped. Default 1,024. */
  readonly packetQueueLength?: number;
  /** Jitter of the pauses. Default: seeded by the name. */
  readonly random?: Random;
}

export type ConnectionState = MastershipState;

export type { ReceivedPacket };

export interface CounterValue {
  readonly packets: bigint;
  readonly bytes: bigint;
}

/** What became of a Write. Batches after one that was not applied are not sent. */
export type WriteOutcome =
  | { readonly kind: 'applied' }
  /** Some updates of one batch were refused, the others of that batch and all earlier batches were applied. */
  | { readonly kind: 'rejected'; readonly failures: readonly UpdateFailure[]; readonly error: DdfError }
  /** The switch did not say what it applied: read it back. */
  | { readonly kind: 'unknown'; readonly error: DdfError };

/**
 * The controller's end of one switch's P4Runtime server: mastership, pipeline, reads, writes and packets, whatever the program is.
 *
 * Two connections: StreamChannel has one of its own, so that no call can wedge the mastership. All calls fail fast with NOT_PRIMARY or
 * SWITCH_UNREACHABLE (both recoverable) while this is not primary, and everything under way fails when the stream ends.
 */
export class SwitchConnection {
  readonly name: string;
  readonly deviceId: bigint;
  private readonly options: SwitchConnectionOptions;
  private readonly callTimeoutMs: number;
  private readonly mastership: Mastership;
  private readonly waiting = new Set<(error: DdfError) => void>();
  private readonly listeners = new Set<(state: ConnectionState) => void>();
  private readonly inbox: StreamInbox;
  private calls: P4RuntimeChannel | undefined;
  private program: P4InfoIndex | undefined;
  private packetOut: PacketMetadataCodec | undefined;

  constructor(options: SwitchConnectionOptions) {
    this.options = options;
    this.name = options.name;
    this.deviceId = BigInt(options.deviceId);
    this.callTimeoutMs = options.callTimeoutMs ?? 10_000;
    const packetQueueLength = options.packetQueueLength ?? 1024;
    this.inbox = new StreamInbox({
      packetQueueLength,
      acknowledge: (ack) => this.mastership.acknowledgeDigest(ack),
    });
    this.mastership = new Mastership({
      name: options.name,
      address: options.address,
      tls: options.tls,
      deviceId: this.deviceId,
      electionId: options.electionId,
      answerTimeoutMs: this.callTimeoutMs,
      keepaliveMs: options.keepaliveMs ?? 10_000,
      reconnectFirstMs: options.reconnectFirstMs ?? 100,
      reconnectMaximumMs: options.reconnectMaximumMs ?? 5_000,
      packetQueueLength,
      random: options.random ?? createRandom(`connection/${options.name}`),
      onState: (state) => this.stateChanged(state),
      onMessage: (message) => this.inbox.receive(message),
    });
  }

  /** Called with packet-ins, in order and never from within a call of this class. */
  set onPacket(handler: ((packet: ReceivedPacket) => void) | undefined) {
    this.inbox.onPacket = handler;
  }

  get onPacket(): ((packet: ReceivedPacket) => void) | undefined {
    return this.inbox.onPacket;
  }

  /** Called with digest lists, repetitions excepted. A list is acknowledged when the handler is done, and comes again if it fails. */
  set onDigest(handler: ((list: DigestList) => void | Promise<void>) | undefined) {
    this.inbox.onDigest = handler;
  }

  /** Called with entries that have not been hit for their time-out. A hint: an entry may be gone, or hit, by now. */
  set onIdle(handler: ((entries: readonly TableEntry[]) => void) | undefined) {
    this.inbox.onIdle = handler;
  }

  get state(): ConnectionState {
    return this.mastership.state;
  }

  /** Why the last attempt to become primary ended, while it is not. */
  get lastError(): DdfError | undefined {
    return this.mastership.lastError;
  }

  /** The P4Info that {@link setPipeline} was given last. */
  get p4info(): P4InfoIndex | undefined {
    return this.program;
  }

  /** Packets that were lost because a queue was full, or that had metadata of another program. */
  get packetsDropped(): number {
    return this.inbox.packetsDropped + this.mastership.packetsDropped;
  }

  /** Connects and bids for mastership, again and again until {@link close}. */
  start(): void {
    this.mastership.start();
  }

  /** Gives the mastership back and ends everything that is under way. */
  close(): void {
    this.mastership.close();
    this.inbox.close();
    const closed = new DdfError('CANCELLED', 'the connection was closed', { where: `switch ${this.name}` });
    for (const giveUp of this.waiting) giveUp(closed);
  }

  /** Calls back with every change of the state. @returns a function that stops it */
  onState(listener: (state: ConnectionState) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** Resolves when this is primary; rejects with the reason when it is not within `timeoutMs`, with CANCELLED at {@link close}. */
  whenPrimary(timeoutMs: number): Promise<void> {
    if (this.state === 'primary') return Promise.resolve();
    return new Promise((resolve, reject) => {
      const giveUp = (error: DdfError): void => {
        end();
        reject(error);
      };
      const timer = setTimeout(() => {
        giveUp(
          this.lastError ??
            new DdfError('SWITCH_UNREACHABLE', `no mastership within ${timeoutMs} ms`, {
              where: `switch ${this.name} at ${this.options.address}`,
              remedy: 'Check that the switch runs and listens on this address.',
              recoverable: true,
            }),
        );
      }, timeoutMs);
      const stop = this.onState((state) => {
        if (state !== 'primary') return;
        end();
        resolve();
      });
      const end = (): void => {
        clearTimeout(timer);
        stop();
        this.waiting.delete(giveUp);
      };
      this.waiting.add(giveUp);
    });
  }

  /** The version of P4Runtime that the switch speaks; a server without the call is one of 1.0. */
  async capabilities(): Promise<string> {
    try {
      const response = await this.callChannel().unary<object, CapabilitiesResponse>(
        'Capabilities',
        { deviceId: this.deviceId },
        this.callTimeoutMs,
      );
      return response.p4runtimeApiVersion;
    } catch (error) {
      if (isServiceError(error) && error.code === status.UNIMPLEMENTED) return '1.0.0';
      throw this.failed('Capabilities', error);
    }
  }

  /**
   * Makes the switch run this program. One that reports its cookie already is left alone, with all of its entries.
   * @returns whether the switch was given the program or had it
   * @throws PROGRAM_MISMATCH when the switch refuses it
   */
  async setPipeline(pipeline: Pipeline): Promise<'installed' | 'unchanged'> {
    const index = new P4InfoIndex(pipeline.p4info);
    const result = (await this.readCookie()) === pipeline.cookie ? 'unchanged' : 'installed';
    if (result === 'installed') {
      const request: MessageInput<SetForwardingPipelineConfigRequest> = {
        deviceId: this.deviceId,
        electionId: this.mastership.requirePrimary(),
        action: PipelineAction.VERIFY_AND_COMMIT,
        config: {
          p4info: pipeline.p4info,
          p4DeviceConfig: pipeline.deviceConfig,
          cookie: { cookie: pipeline.cookie },
        },
      };
      try {
        await this.unary('SetForwardingPipelineConfig', request, this.options.pipelineTimeoutMs ?? 60_000);
      } catch (error) {
        if (isServiceError(error) && error.code === status.INVALID_ARGUMENT)
          throw new DdfError('PROGRAM_MISMATCH', `the switch refuses the program: ${error.details}`, {
            where: `switch ${this.name}`,
            remedy: 'Give it the P4Info and the device config of one compilation.',
            cause: error,
          });
        throw this.failed('SetForwardingPipelineConfig', error);
      }
    }
    this.program = index;
    this.inbox.packetIn = codecOf(index, 'packet_in');
    this.packetOut = codecOf(index, 'packet_out');
    return result;
  }

  /**
   * Writes updates in their order, in batches that are sent one after another. A switch may reorder within a batch.
   * @throws NOT_PRIMARY, SWITCH_UNREACHABLE or SWITCH_REJECTED when a whole call was refused and nothing of it was applied
   */
  async write(updates: readonly Update[]): Promise<WriteOutcome> {
    for (let start = 0; start < updates.length; start += MAX_BATCH_UPDATES) {
      const batch = updates.slice(start, start + MAX_BATCH_UPDATES);
      const request: MessageInput<WriteRequest> = {
        deviceId: this.deviceId,
        electionId: this.mastership.requirePrimary(),
        updates: batch,
      };
      try {
        await this.unary('Write', request, this.callTimeoutMs);
      } catch (error) {
        if (!isServiceError(error)) throw error;
        const failures = decodeUpdateFailures(error, batch);
        if (failures !== undefined) return { kind: 'rejected', failures, error: this.rejection(failures) };
        const failure = callError(`${this.name}, ${this.describeBatch(batch)}`, 'Write', error);
        if (isOutcomeUnknown(error.code)) return { kind: 'unknown', error: failure };
        throw failure;
      }
    }
    return { kind: 'applied' };
  }

  /** Reads all entities that match any of the filters; replies of any number of messages are put together. */
  async read(filters: readonly MessageInput<Entity>[]): Promise<Entity[]> {
    const entities: Entity[] = [];
    const request: MessageInput<ReadRequest> = { deviceId: this.deviceId, entities: filters };
    try {
      await this.callChannel().read<ReadRequest, ReadResponse>(request, this.callTimeoutMs, (response) => {
        for (const entity of response.entities) entities.push(entity);
      });
    } catch (error) {
      throw this.failed('Read', error);
    }
    return entities;
  }

  /**
   * Cells of an indexed counter.
   * @param counter name or alias in the P4Info
   * @param indices the cells; default all of them
   */
  async readCounters(counter: string, indices?: readonly number[]): Promise<Map<number, CounterValue>> {
    const { id: counterId } = this.requireProgram().counters.require(counter);
    const filters: MessageInput<Entity>[] =
      indices === undefined
        ? [{ counterEntry: { counterId } }]
        : indices.map((index) => ({ counterEntry: { counterId, index: { index: BigInt(index) } } }));
    const cells = new Map<number, CounterValue>();
    if (filters.length === 0) return cells;
    for (const { counterEntry } of await this.read(filters))
      if (counterEntry?.index !== undefined)
        cells.set(Number(counterEntry.index.index), counterValue(counterEntry.data));
    return cells;
  }

  /**
   * Sends a packet out through the switch.
   * @param metadata all fields of the P4Info's packet_out header by name
   * @returns false when it was dropped: not primary, or too many packets wait
   */
  sendPacket(payload: Uint8Array, metadata: Readonly<Record<string, bigint>>): boolean {
    if (this.packetOut === undefined) return false;
    return this.mastership.sendPacket({ payload, metadata: this.packetOut.fromValues(metadata) });
  }

  /** An entity of this switch in P4's names. */
  describe(entity: Entity): string {
    return describeEntity(this.program, entity);
  }

  private async readCookie(): Promise<bigint | undefined> {
    const request: MessageInput<GetForwardingPipelineConfigRequest> = {
      deviceId: this.deviceId,
      responseType: ResponseType.COOKIE_ONLY,
    };
    try {
      const { config } = await this.unary<GetForwardingPipelineConfigResponse>(
        'GetForwardingPipelineConfig',
        request,
        this.callTimeoutMs,
      );
      return config?.cookie?.cookie;
    } catch (error) {
      // Some servers say so instead of answering without a config.
      if (isServiceError(error) && [status.FAILED_PRECONDITION, status.UNIMPLEMENTED].includes(error.code))
        return undefined;
      throw this.failed('GetForwardingPipelineConfig', error);
    }
  }

  private async unary<Response extends object>(
    method: UnaryMethod,
    request: object,
    timeoutMs: number,
  ): Promise<Response> {
    const channel = this.callChannel();
    try {
      return await channel.unary<object, Response>(method, request, timeoutMs);
    } catch (error) {
      // A trailer that is too large wedges the HTTP/2 session for all later calls, without a sign but this one.
      if (isServiceError(error) && error.code === status.DEADLINE_EXCEEDED && this.calls === channel) {
        this.calls = undefined;
        channel.close();
      }
      throw error;
    }
  }

  private callChannel(): P4RuntimeChannel {
    this.mastership.requirePrimary();
    this.calls ??= new P4RuntimeChannel(this.options.address, this.options.tls);
    return this.calls;
  }

  private stateChanged(state: ConnectionState): void {
    if (state !== 'primary') {
      this.calls?.close();
      this.calls = undefined;
      this.inbox.forget();
    }
    for (const listener of [...this.listeners]) listener(state);
  }

  private describeBatch([first, ...others]: readonly Update[]): string {
    const entity = first?.entity === undefined ? 'no entity' : this.describe(first.entity);
    return others.length === 0 ? entity : `${entity} and ${others.length} more`;
  }

  private rejection(failures: readonly UpdateFailure[]): DdfError {
    const [first] = failures;
    const more = failures.length > 1 ? ` (and ${failures.length - 1} more)` : '';
    return new DdfError(
      'SWITCH_REJECTED',
      `the switch refused an update: ${first!.message || `code ${first!.code}`}${more}`,
      {
        where: `switch ${this.name}, ${first!.update.entity === undefined ? 'no entity' : this.describe(first!.update.entity)}`,
        remedy: 'Look at what else has been written to this switch: `ddf status` shows its state.',
      },
    );
  }

  private requireProgram(): P4InfoIndex {
    if (this.program === undefined)
      throw new DdfError('INTERNAL', 'the pipeline has to be set before names can be used', {
        where: `switch ${this.name}`,
      });
    return this.program;
  }

  private failed(what: string, error: unknown): DdfError {
    return callError(this.name, what, error);
  }
}

function codecOf(index: P4InfoIndex, header: string): PacketMetadataCodec | undefined {
  const info = index.controllerHeaders.get(header);
  return info === undefined ? undefined : new PacketMetadataCodec(info);
}

function counterValue(data: CounterData | undefined): CounterValue {
  return { packets: data?.packetCount ?? 0n, bytes: data?.byteCount ?? 0n };
}
