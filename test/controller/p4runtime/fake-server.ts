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
import type {
  DigestListAck,
  Entity,
  MasterArbitrationUpdate,
  P4Error,
  ReadRequest,
  ReadResponse,
  SetForwardingPipelineConfigRequest,
  Status,
  StreamMessageRequest,
  StreamMessageResponse,
  Uint128,
  WriteRequest,
} from '../../../wire/p4runtime/messages.ts';
import { type MessageInput, messageCodec, packAny, serviceDefinition } from '../../../wire/proto.ts';

export type ServerStream = ServerDuplexStream<StreamMessageRequest, MessageInput<StreamMessageResponse>>;

/** What a Write is answered with: nothing wrong, a code for each update, a failure without details, or no answer at all. */
export type WriteAnswer = 'ok' | 'silence' | { readonly codes: readonly number[] } | { readonly code: number };

/** A P4Runtime server that does as it is told, faults included. Its script is in its public fields. */
export class FakeServer {
  readonly address: string;
  private readonly server: Server;
  readonly streams = new Set<ServerStream>();
  readonly bids: Uint128[] = [];
  readonly packetsOut: NonNullable<StreamMessageRequest['packet']>[] = [];
  readonly writes: WriteRequest[] = [];
  readonly pipelines: SetForwardingPipelineConfigRequest[] = [];
  readonly reads: ReadRequest[] = [];
  readonly acks: DigestListAck[] = [];
  /** Answers a bid; default: primary. `undefined`: no answer. */
  onBid: (bid: MasterArbitrationUpdate, stream: ServerStream) => MessageInput<MasterArbitrationUpdate> | undefined = (
    bid,
  ) => verdict(status.OK, bid.electionId);
  answerWrite: (request: WriteRequest) => WriteAnswer = () => 'ok';
  /** Replies to a Read, one message each. */
  chunks: readonly (readonly MessageInput<Entity>[])[] = [];
  /** Consulted before: the code of a refusal, or other chunks. */
  answerRead: (request: ReadRequest) => number | readonly (readonly MessageInput<Entity>[])[] = () => this.chunks;
  cookie: bigint | undefined;
  refusePipeline: { code: number; details: string } | undefined;
  capabilities: string | undefined = '1.5.0';

  private constructor(server: Server, address: string) {
    this.server = server;
    this.address = address;
  }

  /** @param port 0: any */
  static async listen(port = 0): Promise<FakeServer> {
    const server = new Server({ 'grpc.max_receive_message_length': -1 });
    let fake: FakeServer | undefined;
    server.addService(serviceDefinition('p4.v1.P4Runtime'), {
      StreamChannel: (stream: ServerStream) => fake!.open(stream),
      Write: (call: ServerUnaryCall<WriteRequest, object>, callback: sendUnaryData<object>) =>
        fake!.write(call.request, callback),
      Read: (call: ServerWritableStream<ReadRequest, MessageInput<ReadResponse>>) => {
        fake!.reads.push(call.request);
        const answer = fake!.answerRead(call.request);
        if (typeof answer === 'number') {
          call.emit('error', { code: answer, details: 'as told' });
          return;
        }
        for (const entities of answer) call.write({ entities });
        call.end();
      },
      SetForwardingPipelineConfig: (
        call: ServerUnaryCall<SetForwardingPipelineConfigRequest, object>,
        callback: sendUnaryData<object>,
      ) => {
        if (fake!.refusePipeline !== undefined) return callback(fake!.refusePipeline);
        fake!.pipelines.push(call.request);
        fake!.cookie = call.request.config?.cookie?.cookie;
        callback(null, {});
      },
      GetForwardingPipelineConfig: (_: unknown, callback: sendUnaryData<object>) =>
        callback(null, fake!.cookie === undefined ? {} : { config: { cookie: { cookie: fake!.cookie } } }),
      Capabilities: (_: unknown, callback: sendUnaryData<object>) =>
        fake!.capabilities === undefined
          ? callback({ code: status.UNIMPLEMENTED, details: 'unknown method' })
          : callback(null, { p4runtimeApiVersion: fake!.capabilities }),
    });
    const bound = await new Promise<number>((resolve, reject) =>
      server.bindAsync(`127.0.0.1:${port}`, ServerCredentials.createInsecure(), (error, result) =>
        error === null ? resolve(result) : reject(error),
      ),
    );
    fake = new FakeServer(server, `127.0.0.1:${bound}`);
    return fake;
  }

  send(message: MessageInput<StreamMessageResponse>): void {
    for (const stream of this.streams) stream.write(message);
  }

  /** Ends all streams with an error. */
  hangUp(code: number, details: string): void {
    for (const stream of this.streams) stream.emit('error', { code, details });
    this.streams.clear();
  }

  stop(): void {
    this.server.forceShutdown();
  }

  private open(stream: ServerStream): void {
    this.streams.add(stream);
    stream.on('data', (message: StreamMessageRequest) => {
      if (message.packet !== undefined) this.packetsOut.push(message.packet);
      if (message.digestAck !== undefined) this.acks.push(message.digestAck);
      if (message.arbitration === undefined) return;
      this.bids.push(message.arbitration.electionId!);
      const arbitration = this.onBid(message.arbitration, stream);
      if (arbitration !== undefined) stream.write({ arbitration });
    });
    stream.on('end', () => stream.end());
    stream.on('cancelled', () => this.streams.delete(stream));
    stream.on('error', () => this.streams.delete(stream));
  }

  private write(request: WriteRequest, callback: sendUnaryData<object>): void {
    this.writes.push(request);
    const answer = this.answerWrite(request);
    if (answer === 'silence') return;
    if (answer === 'ok') {
      callback(null, {});
    } else if ('code' in answer) {
      callback({ code: answer.code, details: 'as told' });
    } else {
      const metadata = new Metadata();
      metadata.set('grpc-status-details-bin', Buffer.from(detailsOf(answer.codes)));
      callback({ code: status.UNKNOWN, details: 'some updates failed', metadata });
    }
  }
}

export function verdict(code: number, electionId: Uint128 | undefined): MessageInput<MasterArbitrationUpdate> {
  return { deviceId: 1n, status: { code }, ...(electionId === undefined ? {} : { electionId }) };
}

function detailsOf(codes: readonly number[]): Uint8Array {
  const error = messageCodec<P4Error>('p4.v1.Error');
  return messageCodec<Status>('google.rpc.Status').encode({
    code: status.UNKNOWN,
    details: codes.map((canonicalCode) =>
      packAny(error, { canonicalCode, message: canonicalCode === 0 ? '' : `reason ${canonicalCode}` }),
    ),
  });
}
