import {
  Metadata,
  Server,
  ServerCredentials,
  type ServerDuplexStream,
  type ServerUnaryCall,
  type ServerWritableStream,
  type sendUnaryData,
  status,
} from '@grpc/grpc-js';
import { VirtualScheduler } from '../../../base/clock.ts';
import { createLogger } from '../../../base/logger.ts';
import { createRandom } from '../../../base/random.ts';
import { PORT_CPU } from '../../../p4/build/constants.ts';
import { Device } from '../../../switch/device.ts';
import { type P4RuntimeServer, startP4RuntimeServer } from '../../../switch/server/p4runtime-server.ts';
import type {
  Entity,
  P4Error,
  ReadRequest,
  ReadResponse,
  SetForwardingPipelineConfigRequest,
  Status,
  StreamMessageRequest,
  StreamMessageResponse,
  Uint128,
  Update,
  WriteRequest,
} from '../../../wire/p4runtime/messages.ts';
import { type MessageInput, messageCodec, packAny, serviceDefinition } from '../../../wire/proto.ts';
import { padded } from '../../conformance/client/fabric.ts';
import { TestClient } from '../../switch/server/client.ts';

type TargetStream = ServerDuplexStream<StreamMessageRequest, MessageInput<StreamMessageResponse>>;

/** How a target fails that follows the specification otherwise. Everything can be changed while it runs. */
export interface Faults {
  /** How a Write that failed tells about its updates. `foreign`: UNKNOWN with the target's own code; `huge`: texts of that many bytes. Default: as it should be. */
  errors: 'exact' | 'none' | 'foreign' | { readonly hugeBytes: number };
  /** The version that Capabilities gives; undefined: there is no such call. */
  version: string | undefined;
  /** Whether GetForwardingPipelineConfig fails before the first Set. */
  refusesGetBeforeSet: boolean;
  /** Whether replies have byte strings of full width. */
  pads: boolean;
  /** What cannot be written or read, with the code of the refusal. */
  refuses: (entity: Entity, call: 'write' | 'read') => number | undefined;
  /** Whether reads of tables have their default entries among the others. */
  listsDefaults: boolean;
  /** Milliseconds that an update takes. */
  updateMs: number;
  /** Called before an update of a batch is carried out, with its position. */
  beforeUpdate: ((position: number) => void) | undefined;
  /** The next pushes of a program that fail although they are carried out. */
  failingPushes: number;
}

const FAULTLESS: Readonly<Faults> = {
  errors: 'exact',
  version: '1.3.0',
  refusesGetBeforeSet: false,
  pads: false,
  refuses: () => undefined,
  listsDefaults: false,
  updateMs: 0,
  beforeUpdate: undefined,
  failingPushes: 0,
};

interface Contender {
  readonly stream: TargetStream;
  id: Uint128;
}

/**
 * A target with the habits of bmv2's P4Runtime server in front of our own: it promotes the next backup by itself, so that election ids may decrease;
 * ignores roles; answers reads in one message; and has whatever {@link Faults} a test gives it. What it holds is real.
 */
export class BadTarget {
  readonly faults: Faults = { ...FAULTLESS };
  /** Requests as they came. */
  readonly writes: WriteRequest[] = [];
  readonly bids: StreamMessageRequest[] = [];
  reads = 0;
  port = 0;
  device!: Device;
  private server: Server | undefined;
  private embedded: P4RuntimeServer | undefined;
  private client!: TestClient;
  private contenders: Contender[] = [];
  private stopped = false;

  static async start(): Promise<BadTarget> {
    const target = new BadTarget();
    await target.powerUp();
    return target;
  }

  get address(): string {
    return `127.0.0.1:${this.port}`;
  }

  /** Off and on at once, with nothing in it. */
  async restart(): Promise<void> {
    await this.powerDown();
    await this.powerUp();
  }

  /** Loses its program and entries without the streams ending. */
  async loseState(): Promise<void> {
    this.client.close();
    await this.embedded!.stop();
    await this.startEmbedded();
  }

  async stop(): Promise<void> {
    this.stopped = true;
    await this.powerDown();
  }

  /** Writes as if another controller did, past all elections. */
  async plant(type: number, entity: Entity): Promise<void> {
    const code = await this.client.writeOne(type, entity);
    if (code !== 0) throw new Error(`The switch refused it with ${code}`);
  }

  /** To the primary. */
  send(message: MessageInput<StreamMessageResponse>): void {
    this.contenders[0]?.stream.write(message);
  }

  private async powerUp(): Promise<void> {
    await this.startEmbedded();
    const server = new Server({ 'grpc.max_receive_message_length': -1 });
    server.addService(serviceDefinition('p4.v1.P4Runtime'), {
      StreamChannel: (stream: TargetStream) => this.open(stream),
      Write: unary((request: WriteRequest) => this.write(request)),
      Read: (call: ServerWritableStream<ReadRequest, MessageInput<ReadResponse>>) => {
        this.read(call).catch(() => call.emit('error', failure(status.UNAVAILABLE, 'going down')));
      },
      SetForwardingPipelineConfig: unary((request: SetForwardingPipelineConfigRequest) => this.push(request)),
      GetForwardingPipelineConfig: unary(async ({ responseType }: { responseType: number }) => {
        const { config } = await this.client.get(responseType);
        if (config === undefined && this.faults.refusesGetBeforeSet)
          throw failure(status.FAILED_PRECONDITION, 'No forwarding pipeline config set for this device');
        return { config };
      }),
      Capabilities: unary(async () => {
        if (this.faults.version === undefined) throw failure(status.UNIMPLEMENTED, '');
        return { p4runtimeApiVersion: this.faults.version };
      }),
    });
    this.port = await new Promise<number>((resolve, reject) =>
      server.bindAsync(`127.0.0.1:${this.port}`, ServerCredentials.createInsecure(), (error, port) =>
        error === null ? resolve(port) : reject(error),
      ),
    );
    this.server = server;
  }

  private async powerDown(): Promise<void> {
    this.contenders = [];
    this.server?.forceShutdown();
    this.client.close();
    await this.embedded?.stop();
  }

  private async startEmbedded(): Promise<void> {
    const scheduler = new VirtualScheduler();
    this.device = new Device({ deviceId: 1n, cpuPort: PORT_CPU, clock: scheduler, random: createRandom(1) });
    const options = {
      devices: [this.device],
      address: '127.0.0.1:0',
      scheduler,
      logger: createLogger('silent'),
    };
    this.embedded = await startP4RuntimeServer(options);
    this.client = new TestClient(this.embedded.port);
    const stream = await this.client.contend(1n);
    void this.forwardPackets(stream);
  }

  private async forwardPackets(stream: Awaited<ReturnType<TestClient['contend']>>): Promise<void> {
    try {
      for (;;) {
        const message = await stream.next();
        this.send(this.faults.pads ? padded(message) : message);
      }
    } catch {
      // The embedded switch is gone.
    }
  }

  private open(stream: TargetStream): void {
    stream.on('data', (message: StreamMessageRequest) => {
      const { arbitration, packet } = message;
      if (arbitration === undefined) {
        if (packet !== undefined && this.contenders[0]?.stream === stream) this.client.streams[0]!.send({ packet });
        return;
      }
      this.bids.push(message);
      this.bid(stream, arbitration.electionId ?? { high: 0n, low: 0n });
    });
    const leave = (): void => this.leave(stream);
    stream.on('end', () => {
      leave();
      stream.end();
    });
    stream.on('cancelled', leave);
    stream.on('error', leave);
  }

  private bid(stream: TargetStream, id: Uint128): void {
    const own = this.contenders.find((contender) => contender.stream === stream);
    // The same id again is not even answered.
    if (own !== undefined && compare(own.id, id) === 0) return;
    if (this.contenders.some((contender) => contender !== own && compare(contender.id, id) === 0)) {
      stream.emit('error', failure(status.INVALID_ARGUMENT, 'Election id already exists'));
      return;
    }
    const before = this.contenders[0];
    if (own === undefined) this.contenders.push({ stream, id });
    else own.id = id;
    this.contenders.sort((a, b) => compare(b.id, a.id));
    if (this.contenders[0] !== before) this.notify(this.contenders);
    else this.notify(this.contenders.filter((contender) => contender.stream === stream));
  }

  private leave(stream: TargetStream): void {
    const before = this.contenders[0];
    this.contenders = this.contenders.filter((contender) => contender.stream !== stream);
    if (!this.stopped && before?.stream === stream) this.notify(this.contenders);
  }

  private notify(contenders: readonly Contender[]): void {
    const [primary] = this.contenders;
    for (const contender of contenders)
      contender.stream.write({
        arbitration: {
          deviceId: 1n,
          electionId: primary!.id,
          status: { code: contender === primary ? status.OK : status.ALREADY_EXISTS },
        },
      });
  }

  private requirePrimary(id: Uint128 | undefined): void {
    const [primary] = this.contenders;
    if (primary === undefined || id === undefined || compare(primary.id, id) !== 0)
      throw failure(status.PERMISSION_DENIED, 'Not primary');
  }

  private async push(request: SetForwardingPipelineConfigRequest): Promise<object> {
    this.requirePrimary(request.electionId);
    const outcome = await this.client.set(request.action, request.config);
    if (outcome.code !== 0) throw failure(outcome.code, outcome.message);
    if (this.faults.failingPushes > 0) {
      this.faults.failingPushes--;
      throw failure(status.INTERNAL, 'Error in first phase of device update');
    }
    return {};
  }

  private async write(request: WriteRequest): Promise<object> {
    this.writes.push(request);
    this.requirePrimary(request.electionId);
    if (request.atomicity !== 0) throw failure(status.UNIMPLEMENTED, 'Only CONTINUE_ON_ERROR is supported');
    const { beforeUpdate, updateMs } = this.faults;
    const codes: number[] = [];
    // One by one only where it matters, which is slow.
    const step = beforeUpdate === undefined && updateMs === 0 ? request.updates.length : 1;
    for (let position = 0; position < request.updates.length; position += step) {
      beforeUpdate?.(position);
      if (updateMs > 0) await new Promise((resolve) => setTimeout(resolve, updateMs));
      codes.push(...(await this.carryOut(request.updates.slice(position, position + step))));
    }
    if (codes.every((code) => code === 0)) return {};
    throw this.batchFailure(codes);
  }

  private async carryOut(updates: readonly Update[]): Promise<number[]> {
    const refusals = updates.map(({ entity }) => this.faults.refuses(entity!, 'write'));
    const outcome = await this.client.write(updates.filter((_, i) => refusals[i] === undefined));
    if (outcome.code !== 0 && outcome.errors === undefined) throw failure(outcome.code, outcome.message);
    const others = outcome.errors?.map(({ canonicalCode }) => canonicalCode);
    return refusals.map((refusal) => refusal ?? others?.shift() ?? 0);
  }

  private batchFailure(codes: readonly number[]): Failure {
    const { errors } = this.faults;
    if (errors === 'none') return failure(status.UNKNOWN, 'Error when adding match entry to target');
    const text = typeof errors === 'object' ? 'x'.repeat(errors.hugeBytes) : 'Error when adding match entry to target';
    const metadata = new Metadata();
    const details = codes.map((code) =>
      packAny(errorCodec, {
        canonicalCode: code !== 0 && errors === 'foreign' ? status.UNKNOWN : code,
        message: code === 0 ? '' : text,
        space: errors === 'foreign' ? 'ALL-sswitch-p4org' : '',
        code,
      }),
    );
    metadata.set('grpc-status-details-bin', Buffer.from(statusCodec.encode({ code: status.UNKNOWN, details })));
    return { ...failure(status.UNKNOWN, 'One or more write operations failed.'), metadata };
  }

  /** The first request that is refused ends the call, without anything. */
  private async read(call: ServerWritableStream<ReadRequest, MessageInput<ReadResponse>>): Promise<void> {
    this.reads++;
    const found: Entity[] = [];
    for (const filter of call.request.entities) {
      const refusal = this.faults.refuses(filter, 'read');
      const { code, message, entities } = await this.client.read([filter]);
      if (refusal !== undefined || code !== 0) {
        call.emit('error', failure(refusal ?? code, refusal === undefined ? message : 'as told'));
        return;
      }
      found.push(...entities);
      const { tableEntry } = filter;
      if (this.faults.listsDefaults && tableEntry?.isDefaultAction === false && tableEntry.tableId !== 0)
        for (const { tableEntry: entry } of (
          await this.client.read([{ tableEntry: { ...tableEntry, isDefaultAction: true } }])
        ).entities)
          found.push({ tableEntry: { ...entry!, isDefaultAction: false } });
    }
    call.write({ entities: this.faults.pads ? found.map(padded) : found });
    call.end();
  }
}

interface Failure {
  readonly code: number;
  readonly details: string;
  readonly metadata?: Metadata;
}

function failure(code: number, details: string): Failure {
  return { code, details };
}

const statusCodec = messageCodec<Status>('google.rpc.Status');
const errorCodec = messageCodec<P4Error>('p4.v1.Error');

function unary<Request>(answer: (request: Request) => Promise<object>) {
  return (call: ServerUnaryCall<Request, object>, callback: sendUnaryData<object>): void => {
    answer(call.request).then(
      (response) => callback(null, response),
      (error: Failure | Error) => callback('code' in error ? error : failure(status.UNAVAILABLE, error.message)),
    );
  };
}

function compare(a: Uint128, b: Uint128): number {
  if (a.high !== b.high) return a.high < b.high ? -1 : 1;
  return a.low === b.low ? 0 : a.low < b.low ? -1 : 1;
}
