import { EventEmitter } from 'node:events';
import type { Metadata } from '@grpc/grpc-js';
import type { Scheduler } from '../../base/clock.ts';
import type { Logger } from '../../base/logger.ts';
import type { DeviceControl } from '../../switch/control.ts';
import { DeviceService } from '../../switch/server/device-service.ts';
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

interface Failure {
  readonly code: number;
  readonly details: string;
  readonly metadata?: Metadata;
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
  private readonly handlers: Record<string, (...args: unknown[]) => void>;

  constructor(device: DeviceControl, scheduler: Scheduler, logger: Logger) {
    this.service = new DeviceService(device, scheduler, 16, logger);
    this.handlers = handlers(new Map([[device.deviceId, this.service]]), logger) as never;
  }

  stop(): void {
    this.service.stop();
  }

  unary(method: Unary, request: object): Promise<Answer> {
    return new Promise((resolve) => {
      this.handlers[method]!({ request }, (failure: Failure | null, response?: object) => {
        if (failure === null) METHODS[method]!.responseSerialize(response!);
        resolve(answerOf(failure, response));
      });
    });
  }

  async read(request: object): Promise<Answer & { readonly entities: readonly Entity[] }> {
    const entities: Entity[] = [];
    const failure = await new Promise<Failure | null>((resolve) => {
      const call = Object.assign(new EventEmitter(), {
        request,
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
      });
      call.on('error', resolve);
      this.handlers.Read!(call);
    });
    return { ...answerOf(failure, undefined), entities };
  }

  stream(): InProcessStream {
    return new InProcessStream((call) => this.handlers.StreamChannel!(call));
  }
}

function answerOf(failure: Failure | null, response: object | undefined): Answer {
  if (failure === null) return { code: 0, message: '', errors: undefined, response };
  ensure(
    Number.isInteger(failure.code) && failure.code > 0 && failure.code <= 16,
    () => `${failure.code} is no status`,
  );
  const details = failure.metadata?.get('grpc-status-details-bin')[0];
  const errors =
    details === undefined
      ? undefined
      : statusCodec.decode(details as Buffer).details.map((any) => unpackAny(errorCodec, any)!.canonicalCode);
  return { code: failure.code, message: failure.details, errors, response: undefined };
}

/** The client's end of a stream. What the server sends is kept up to a limit. */
export class InProcessStream {
  readonly received: StreamMessageResponse[] = [];
  /** Undefined as long as it lives; 0 for a clean end. */
  ended: number | undefined;
  private readonly call: EventEmitter;

  constructor(open: (call: EventEmitter) => void) {
    this.call = Object.assign(new EventEmitter(), {
      write: (response: StreamMessageResponse) => {
        METHODS.StreamChannel!.responseSerialize(response);
        if (this.received.length < 100) this.received.push(response);
        return true;
      },
      end: () => {
        this.ended ??= 0;
      },
    });
    open(this.call);
    this.call.on('error', (failure: Failure) => {
      this.ended ??= failure.code;
    });
  }

  send(message: StreamMessageRequest): void {
    if (this.ended === undefined) this.call.emit('data', message);
  }

  close(): void {
    this.call.emit('end');
    this.call.emit('close');
  }
}
