import { EventEmitter } from 'node:events';
import type { Scheduler } from '../../base/clock.ts';
import type { Logger } from '../../base/logger.ts';
import type { DeviceControl } from '../../switch/control.ts';
import { DeviceService } from '../../switch/server/device-service.ts';
import type { GrpcHandlers, GrpcStatus, StreamingCall } from '../../switch/server/grpc-server.ts';
import { handlers } from '../../switch/server/p4runtime-server.ts';
import type {
  Entity,
  P4Error,
  ReadResponse,
  Status,
  StreamMessageRequest,
  StreamMessageResponse,
} from '../../wire/p4runtime/messages.ts';
import { messageCodec, serviceDefinition, unpackAny } from '../../wire/proto.ts';
import { ensure } from './target.ts';

/** How a call ended; `errors` has one code for each member of a batch that failed. */
export interface Answer {
  readonly code: number;
  readonly message: string;
  readonly errors: readonly number[] | undefined;
  readonly response: object | undefined;
}

export type Unary = 'Write' | 'SetForwardingPipelineConfig' | 'GetForwardingPipelineConfig' | 'Capabilities';

/** More than the tables of a round ever hold. */
const MAX_ENTITIES = 5000;

const METHODS = serviceDefinition('p4.v1.P4Runtime');
const statusCodec = messageCodec<Status>('google.rpc.Status');
const errorCodec = messageCodec<P4Error>('p4.v1.Error');

/** The P4Runtime service of one device, called as gRPC would call it, bytes included, but without a network. */
export class InProcessServer {
  private readonly service: DeviceService;
  private readonly handlers: GrpcHandlers;

  constructor(device: DeviceControl, scheduler: Scheduler, logger: Logger) {
    this.service = new DeviceService(device, scheduler, 16, logger);
    this.handlers = handlers(new Map([[device.deviceId, this.service]]), logger);
  }

  stop(): void {
    this.service.stop();
  }

  async unary(method: Unary, request: object): Promise<Answer> {
    try {
      const response = this.handlers.unary[method]!(request as never);
      METHODS[method]!.responseSerialize(response);
      return answerOf(null, response);
    } catch (error) {
      return answerOf(this.handlers.statusOf(error), undefined);
    }
  }

  async read(request: object): Promise<Answer & { readonly entities: readonly Entity[] }> {
    const entities: Entity[] = [];
    const failure = await new Promise<GrpcStatus | null>((resolve) => {
      const call = Object.assign(new EventEmitter(), {
        cancelled: false,
        write: (response: ReadResponse) => {
          const sent = METHODS.Read!.responseDeserialize(METHODS.Read!.responseSerialize(response)) as ReadResponse;
          for (const entity of sent.entities) entities.push(entity);
          // A wildcard read of all registers is a million of cells: this client has seen enough.
          if (entities.length > MAX_ENTITIES) {
            call.cancelled = true;
            resolve(null);
          }
          return true;
        },
        end: () => resolve(null),
        fail: resolve,
      });
      this.handlers.answers.Read!(request as never, call);
    });
    return { ...answerOf(failure, undefined), entities };
  }

  stream(): InProcessStream {
    return new InProcessStream((call) => this.handlers.streams.StreamChannel!(call));
  }
}

function answerOf(failure: GrpcStatus | null, response: object | undefined): Answer {
  if (failure === null) return { code: 0, message: '', errors: undefined, response };
  ensure(
    Number.isInteger(failure.code) && failure.code > 0 && failure.code <= 16,
    () => `${failure.code} is no status`,
  );
  const { details } = failure;
  const errors =
    details === undefined
      ? undefined
      : statusCodec.decode(details).details.map((any) => unpackAny(errorCodec, any)!.canonicalCode);
  return { code: failure.code, message: failure.message, errors, response: undefined };
}

/** The client's end of a stream. What the server sends is kept up to a limit. */
export class InProcessStream {
  readonly received: StreamMessageResponse[] = [];
  /** Undefined as long as it lives; 0 for a clean end. */
  ended: number | undefined;
  private readonly call: EventEmitter;

  constructor(open: (call: StreamingCall) => void) {
    const call = Object.assign(new EventEmitter(), {
      cancelled: false,
      write: (response: StreamMessageResponse) => {
        METHODS.StreamChannel!.responseSerialize(response);
        if (this.received.length < 100) this.received.push(response);
        return true;
      },
      end: () => {
        this.ended ??= 0;
      },
      fail: ({ code }: GrpcStatus) => {
        this.ended ??= code;
      },
    });
    this.call = call;
    open(call);
  }

  send(message: StreamMessageRequest): void {
    if (this.ended === undefined) this.call.emit('data', message);
  }

  close(): void {
    this.call.emit('end');
    this.call.emit('close');
  }
}
