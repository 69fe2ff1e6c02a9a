import {
  type ClientDuplexStream,
  type ClientReadableStream,
  credentials,
  makeGenericClientConstructor,
  type ServiceError,
} from '@grpc/grpc-js';
import pino from 'pino';
import type { DeviceControl } from '../../../switch/control.ts';
import { type P4RuntimeServer, startP4RuntimeServer } from '../../../switch/server/p4runtime-server.ts';
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
  Update,
} from '../../../wire/p4runtime/messages.ts';
import {
  SetForwardingPipelineConfigRequestAction as ConfigAction,
  UpdateType,
} from '../../../wire/p4runtime/messages.ts';
import { type MessageInput, messageCodec, serviceDefinition, unpackAny } from '../../../wire/proto.ts';
import { FakeDevice } from './fake-device.ts';
import { SAMPLE, SAMPLE_P4INFO } from './sample-program.ts';

const Client = makeGenericClientConstructor(serviceDefinition('p4.v1.P4Runtime'), 'P4Runtime');
const statusCodec = messageCodec<Status>('google.rpc.Status');
const errorCodec = messageCodec<P4Error>('p4.v1.Error');

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

/** A bare client: what a test says goes over the wire as it is. */
export class TestClient {
  private readonly client: InstanceType<typeof Client>;
  readonly streams: TestStream[] = [];

  constructor(port: number) {
    this.client = new Client(`127.0.0.1:${port}`, credentials.createInsecure(), {
      'grpc.use_local_subchannel_pool': 1,
      'grpc.max_receive_message_length': -1,
    });
  }

  close(): void {
    for (const stream of this.streams) stream.call.cancel();
    this.client.close();
  }

  private unary<R>(method: string, request: object): Promise<Outcome & { response: R | undefined }> {
    return new Promise((resolve) => {
      this.client[method]!(
        request,
        { deadline: Date.now() + 20_000 },
        (error: ServiceError | null, response: R | undefined) => resolve({ ...outcomeOf(error), response }),
      );
    });
  }

  set(action: number, config?: MessageInput<ForwardingPipelineConfig>, more: object = {}): Promise<Outcome> {
    return this.unary('SetForwardingPipelineConfig', {
      deviceId: 1n,
      electionId: { low: 1n },
      action,
      config,
      ...more,
    });
  }

  async get(responseType = 0): Promise<{ code: number; config: ForwardingPipelineConfig | undefined }> {
    const { code, response } = await this.unary<{ config?: ForwardingPipelineConfig }>('GetForwardingPipelineConfig', {
      deviceId: 1n,
      responseType,
    });
    return { code, config: response?.config };
  }

  capabilities(deviceId: bigint): Promise<Outcome & { response: { p4runtimeApiVersion: string } | undefined }> {
    return this.unary('Capabilities', { deviceId });
  }

  write(updates: readonly MessageInput<Update>[], more: object = {}): Promise<Outcome> {
    return this.unary('Write', { deviceId: 1n, electionId: { low: 1n }, updates, ...more });
  }

  /** The code of a single update; RPC-wide failures are thrown. */
  async writeOne(type: number, entity: MessageInput<Entity>): Promise<number> {
    const outcome = await this.write([{ type, entity }]);
    if (outcome.code === 0) return 0;
    if (outcome.errors?.length !== 1) throw new Error(`${outcome.code} ${outcome.message}`);
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
      const call: ClientReadableStream<ReadResponse> = this.client.Read!({ deviceId: 1n, entities, ...more });
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

  /** The code of a read of one entity. */
  async readCode(entity: MessageInput<Entity>): Promise<number> {
    const { code, errors } = await this.read([entity]);
    return code === 0 ? 0 : errors![0]!.canonicalCode;
  }

  stream(): TestStream {
    const stream = new TestStream(this.client.StreamChannel!());
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
  private readonly received: StreamMessageResponse[] = [];
  private waiting: (() => void)[] = [];
  private ended: Outcome | undefined;

  constructor(call: ClientDuplexStream<StreamMessageRequest, StreamMessageResponse>) {
    this.call = call;
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
    for (const resolve of this.waiting.splice(0)) resolve();
  }

  send(message: MessageInput<StreamMessageRequest>): void {
    this.call.write(message as StreamMessageRequest);
  }

  arbitrate(electionId: bigint | undefined, more: MessageInput<MasterArbitrationUpdate> = {}): void {
    this.send({
      arbitration: {
        deviceId: 1n,
        electionId:
          electionId === undefined ? undefined : { high: electionId >> 64n, low: electionId & ((1n << 64n) - 1n) },
        ...more,
      },
    });
  }

  async next(): Promise<StreamMessageResponse> {
    while (this.received.length === 0) {
      if (this.ended !== undefined) throw new Error(`The stream ended with ${this.ended.code} ${this.ended.message}`);
      await new Promise<void>((resolve) => this.waiting.push(resolve));
    }
    return this.received.shift()!;
  }

  async nextArbitration(): Promise<{ status: number; electionId: bigint | undefined }> {
    const { arbitration } = await this.next();
    const id = arbitration!.electionId;
    return { status: arbitration!.status!.code, electionId: id === undefined ? undefined : (id.high << 64n) | id.low };
  }

  async nextError(): Promise<StreamError> {
    return (await this.next()).error!;
  }

  /** The code that the server ended the stream with; messages before it are dropped. */
  async end(): Promise<number> {
    while (this.ended === undefined) await new Promise<void>((resolve) => this.waiting.push(resolve));
    return this.ended.code;
  }

  async close(): Promise<void> {
    this.call.end();
    await this.end();
  }

  get pending(): number {
    return this.received.length;
  }
}

/** A server for one device (or some), a client, and what has to be closed. */
export class Bench {
  readonly server: P4RuntimeServer;
  readonly device: FakeDevice;
  readonly client: TestClient;
  private readonly clients: TestClient[] = [];

  private constructor(server: P4RuntimeServer, device: FakeDevice) {
    this.server = server;
    this.device = device;
    this.client = this.newClient();
  }

  static async start(options: { maxStreams?: number; devices?: DeviceControl[] } = {}): Promise<Bench> {
    const device = new FakeDevice(1n);
    const server = await startP4RuntimeServer({
      devices: [device, new FakeDevice(2n)],
      address: '127.0.0.1:0',
      logger: pino({ level: 'silent' }),
      ...options,
    });
    return new Bench(server, device);
  }

  /** With a primary (election id 1) and the sample program. */
  static async startWithProgram(): Promise<Bench & { primary: TestStream }> {
    const bench = await Bench.start();
    const primary = await bench.client.contend(1n);
    const outcome = await bench.client.set(ConfigAction.VERIFY_AND_COMMIT, SAMPLE_CONFIG);
    if (outcome.code !== 0) throw new Error(outcome.message);
    return Object.assign(bench, { primary });
  }

  newClient(): TestClient {
    const client = new TestClient(this.server.port);
    this.clients.push(client);
    return client;
  }

  async stop(): Promise<void> {
    for (const client of this.clients) client.close();
    await this.server.stop();
  }
}

export const SAMPLE_CONFIG: MessageInput<ForwardingPipelineConfig> = {
  p4info: SAMPLE.p4Info,
  p4DeviceConfig: new TextEncoder().encode(SAMPLE_P4INFO),
  cookie: { cookie: 77n },
};
