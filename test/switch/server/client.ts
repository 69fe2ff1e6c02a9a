import {
  type ClientDuplexStream,
  type ClientReadableStream,
  credentials,
  makeGenericClientConstructor,
  type ServiceError,
} from '@grpc/grpc-js';
import type {
  Entity,
  ForwardingPipelineConfig,
  MasterArbitrationUpdate,
  P4Error,
  ReadResponse,
  Status,
  StreamError,
  StreamMessageRequest,
  StreamMessageResponse,
  Uint128,
  Update,
} from '../../../wire/p4runtime/messages.ts';
import { UpdateType } from '../../../wire/p4runtime/messages.ts';
import { type MessageInput, messageCodec, serviceDefinition, unpackAny } from '../../../wire/proto.ts';

const Client = makeGenericClientConstructor(serviceDefinition('p4.v1.P4Runtime'), 'P4Runtime');
const statusCodec = messageCodec<Status>('google.rpc.Status');
const errorCodec = messageCodec<P4Error>('p4.v1.Error');

/** No answer takes longer: a test that waits in vain says so. */
const PATIENCE_MS = 10_000;

/** How a call ended, with the details of a batch. */
export interface Outcome {
  readonly code: number;
  readonly message: string;
  readonly errors: P4Error[] | undefined;
}

function outcomeOf(error: ServiceError | null): Outcome {
  if (error === null) return { code: 0, message: '', errors: undefined };
  const details = error.metadata?.get('grpc-status-details-bin')[0];
  const errors =
    details === undefined
      ? undefined
      : statusCodec.decode(details as Buffer).details.map((any) => unpackAny(errorCodec, any)!);
  return { code: error.code, message: error.details, errors };
}

export function uint128(value: bigint): Uint128 {
  return { high: value >> 64n, low: value & ((1n << 64n) - 1n) };
}

/** A bare P4Runtime client: what a test says goes over the wire as it is. */
export class TestClient {
  private readonly client: InstanceType<typeof Client>;
  private readonly deviceId: bigint;
  readonly streams: TestStream[] = [];
  /** That writes are signed with. */
  electionId: bigint;

  /** @param target host:port, or a port of this machine */
  constructor(target: string | number, deviceId = 1n, electionId = 1n) {
    this.deviceId = deviceId;
    this.electionId = electionId;
    this.client = new Client(
      typeof target === 'number' ? `127.0.0.1:${target}` : target,
      credentials.createInsecure(),
      {
        'grpc.use_local_subchannel_pool': 1,
        'grpc.max_receive_message_length': -1,
      },
    );
  }

  close(): void {
    for (const stream of this.streams) stream.call.cancel();
    this.client.close();
  }

  private unary<R>(method: string, request: object): Promise<Outcome & { response: R | undefined }> {
    return new Promise((resolve) => {
      this.client[method]!(
        request,
        { deadline: Date.now() + 2 * PATIENCE_MS },
        (error: ServiceError | null, response: R | undefined) => resolve({ ...outcomeOf(error), response }),
      );
    });
  }

  private get signature() {
    return { deviceId: this.deviceId, electionId: uint128(this.electionId) };
  }

  set(action: number, config?: MessageInput<ForwardingPipelineConfig>, more: object = {}): Promise<Outcome> {
    return this.unary('SetForwardingPipelineConfig', { ...this.signature, action, config, ...more });
  }

  async get(
    responseType = 0,
    more: object = {},
  ): Promise<{ code: number; config: ForwardingPipelineConfig | undefined }> {
    const { code, response } = await this.unary<{ config?: ForwardingPipelineConfig }>('GetForwardingPipelineConfig', {
      deviceId: this.deviceId,
      responseType,
      ...more,
    });
    return { code, config: response?.config };
  }

  capabilities(deviceId = this.deviceId): Promise<Outcome & { response: { p4runtimeApiVersion: string } | undefined }> {
    return this.unary('Capabilities', { deviceId });
  }

  write(updates: readonly MessageInput<Update>[], more: object = {}): Promise<Outcome> {
    return this.unary('Write', { ...this.signature, updates, ...more });
  }

  /** The code of a single update. A failure of the request as a whole is thrown. */
  async writeOne(type: number, entity: MessageInput<Entity>, more: object = {}): Promise<number> {
    const outcome = await this.write([{ type, entity }], more);
    if (outcome.code === 0) return 0;
    if (outcome.errors?.length !== 1) throw new Error(`Write failed with ${outcome.code} ${outcome.message}`);
    return outcome.errors[0]!.canonicalCode;
  }

  insert = (entity: MessageInput<Entity>): Promise<number> => this.writeOne(UpdateType.INSERT, entity);
  modify = (entity: MessageInput<Entity>): Promise<number> => this.writeOne(UpdateType.MODIFY, entity);
  delete = (entity: MessageInput<Entity>): Promise<number> => this.writeOne(UpdateType.DELETE, entity);

  read(
    entities: readonly MessageInput<Entity>[],
    more: object = {},
  ): Promise<Outcome & { entities: Entity[]; responses: number }> {
    return new Promise((resolve) => {
      const call: ClientReadableStream<ReadResponse> = this.client.Read!(
        { deviceId: this.deviceId, entities, ...more },
        { deadline: Date.now() + 2 * PATIENCE_MS },
      );
      const received: Entity[] = [];
      let responses = 0;
      call.on('data', (response: ReadResponse) => {
        responses++;
        received.push(...response.entities);
      });
      call.on('error', (error: ServiceError) => resolve({ ...outcomeOf(error), entities: received, responses }));
      call.on('end', () => resolve({ ...outcomeOf(null), entities: received, responses }));
    });
  }

  /** What a read of one entity gives, which must succeed. */
  async list(entity: MessageInput<Entity>, more: object = {}): Promise<Entity[]> {
    const { code, message, entities } = await this.read([entity], more);
    if (code !== 0) throw new Error(`Read failed with ${code} ${message}`);
    return entities;
  }

  /** The code of a read of one entity: that of its request, or of the call as a whole. */
  async readCode(entity: MessageInput<Entity>): Promise<number> {
    const { code, errors } = await this.read([entity]);
    return code === 0 ? 0 : (errors?.[0]?.canonicalCode ?? code);
  }

  stream(): TestStream {
    const stream = new TestStream(this.client.StreamChannel!(), this.deviceId);
    this.streams.push(stream);
    return stream;
  }

  /** A stream after its first update, which must have been accepted. */
  async contend(electionId: bigint | undefined, more: MessageInput<MasterArbitrationUpdate> = {}): Promise<TestStream> {
    const stream = this.stream();
    stream.arbitrate(electionId, more);
    await stream.nextArbitration();
    return stream;
  }
}

export class TestStream {
  readonly call: ClientDuplexStream<StreamMessageRequest, StreamMessageResponse>;
  private readonly deviceId: bigint;
  private readonly received: StreamMessageResponse[] = [];
  private readonly waiting = new Set<() => void>();
  private ended: Outcome | undefined;

  constructor(call: ClientDuplexStream<StreamMessageRequest, StreamMessageResponse>, deviceId: bigint) {
    this.call = call;
    this.deviceId = deviceId;
    call.on('data', (message: StreamMessageResponse) => {
      this.received.push(message);
      this.wake();
    });
    call.on('error', (error: ServiceError) => {
      this.ended = outcomeOf(error);
      this.wake();
    });
    call.on('end', () => {
      this.ended ??= outcomeOf(null);
      this.wake();
    });
  }

  private wake(): void {
    for (const resolve of this.waiting) resolve();
    this.waiting.clear();
  }

  private async something(what: string): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    await new Promise<void>((resolve, reject) => {
      this.waiting.add(resolve);
      timer = setTimeout(() => reject(new Error(`Waited in vain for ${what}`)), PATIENCE_MS);
    });
    clearTimeout(timer);
  }

  send(message: MessageInput<StreamMessageRequest>): void {
    this.call.write(message as StreamMessageRequest);
  }

  arbitrate(electionId: bigint | undefined, more: MessageInput<MasterArbitrationUpdate> = {}): void {
    this.send({
      arbitration: {
        deviceId: this.deviceId,
        electionId: electionId === undefined ? undefined : uint128(electionId),
        ...more,
      },
    });
  }

  async next(what = 'a message'): Promise<StreamMessageResponse> {
    while (this.received.length === 0) {
      if (this.ended !== undefined) throw new Error(`The stream ended with ${this.ended.code} ${this.ended.message}`);
      await this.something(what);
    }
    return this.received.shift()!;
  }

  /** The next message of a kind; others before it are dropped. */
  async nextOf<K extends keyof StreamMessageResponse>(kind: K): Promise<NonNullable<StreamMessageResponse[K]>> {
    for (;;) {
      const message = (await this.next(kind))[kind];
      if (message !== undefined) return message as NonNullable<StreamMessageResponse[K]>;
    }
  }

  async nextArbitration(): Promise<{ status: number; electionId: bigint | undefined }> {
    const { status, electionId } = await this.nextOf('arbitration');
    return {
      status: status!.code,
      electionId: electionId === undefined ? undefined : (electionId.high << 64n) | electionId.low,
    };
  }

  nextError(): Promise<StreamError> {
    return this.nextOf('error');
  }

  /** The code that the server ended the stream with; messages before it are dropped. */
  async end(): Promise<number> {
    while (this.ended === undefined) await this.something('the end of the stream');
    return this.ended.code;
  }

  async close(): Promise<void> {
    this.call.end();
    await this.end();
  }

  /** Messages that have come and were not taken. */
  get pending(): readonly StreamMessageResponse[] {
    return this.received;
  }

  /** Takes them all. */
  take(): StreamMessageResponse[] {
    return this.received.splice(0);
  }

  /** Waits until what the server has sent by now has come: until it answers one more arbitration update. */
  async settle(electionId: bigint | undefined, more: MessageInput<MasterArbitrationUpdate> = {}): Promise<void> {
    const before = this.received.length;
    this.arbitrate(electionId, more);
    for (;;) {
      const answer = this.received.findIndex((message, i) => i >= before && message.arbitration !== undefined);
      if (answer >= 0) {
        this.received.splice(answer, 1);
        return;
      }
      if (this.ended !== undefined) throw new Error(`The stream ended with ${this.ended.code} ${this.ended.message}`);
      await this.something('an answer to an arbitration update');
    }
  }
}
