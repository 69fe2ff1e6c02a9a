import {
  type ChannelCredentials,
  Client,
  type ClientDuplexStream,
  credentials,
  Metadata,
  type ServiceError,
  status,
} from '@grpc/grpc-js';
import { DdfError } from '../../base/errors.ts';
import type { TlsIdentity } from '../../base/tls.ts';
import type { StreamMessageRequest, StreamMessageResponse } from '../../wire/p4runtime/messages.ts';
import { type MessageInput, serviceDefinition } from '../../wire/proto.ts';

const METHODS = serviceDefinition('p4.v1.P4Runtime');

/** Pipeline configs and read replies are larger than gRPC's default of 4 MiB. */
const MAX_MESSAGE_BYTES = 64 * 1024 * 1024;

export type UnaryMethod = 'Write' | 'SetForwardingPipelineConfig' | 'GetForwardingPipelineConfig' | 'Capabilities';

/**
 * One gRPC connection (an HTTP/2 session of its own) to a P4Runtime server. Every call has a deadline and can be cancelled.
 *
 * No HTTP/2 pings: servers on gRPC's C++ core take more than two within five minutes without data for abuse and end the connection
 * (ENHANCE_YOUR_CALM). Deadlines notice what pings would, and Mastership keeps an idle stream under watch with calls.
 */
export class P4RuntimeChannel {
  private readonly client: Client;
  private readonly active = new Set<{ cancel(): void }>();

  /**
   * @param address `host:port`
   * @param tls undefined: no TLS
   */
  constructor(address: string, tls: TlsIdentity | undefined) {
    this.client = new Client(address, channelCredentials(tls), {
      // Switches are neighbours, not web sites: an http_proxy of the environment breaks gRPC.
      'grpc.enable_http_proxy': 0,
      // Otherwise channels to the same address share a connection, and a call that wedges it takes the mastership along.
      'grpc.use_local_subchannel_pool': 1,
      'grpc.max_receive_message_length': MAX_MESSAGE_BYTES,
      'grpc.max_send_message_length': MAX_MESSAGE_BYTES,
      // The connection is supervised one level up, where a new attempt makes a new channel.
      'grpc.enable_retries': 0,
      'grpc.service_config_disable_resolution': 1,
    });
  }

  /** Rejects with grpc-js's ServiceError. */
  unary<Request extends object, Response extends object>(
    method: UnaryMethod,
    request: MessageInput<Request>,
    timeoutMs: number,
  ): Promise<Response> {
    const { path, requestSerialize, responseDeserialize } = METHODS[method]!;
    return new Promise((resolve, reject) => {
      const call = this.client.makeUnaryRequest<object, object>(
        path,
        requestSerialize,
        responseDeserialize,
        request as object,
        new Metadata(),
        { deadline: Date.now() + timeoutMs },
        (error, response) => {
          this.active.delete(call);
          if (error !== null) reject(error);
          else resolve(response as Response);
        },
      );
      this.active.add(call);
    });
  }

  /** Calls `onMessage` with every reply; resolves at the end of a call that succeeded. */
  read<Request extends object, Response extends object>(
    request: MessageInput<Request>,
    timeoutMs: number,
    onMessage: (response: Response) => void,
  ): Promise<void> {
    const { path, requestSerialize, responseDeserialize } = METHODS.Read!;
    return new Promise((resolve, reject) => {
      const call = this.client.makeServerStreamRequest<object, object>(
        path,
        requestSerialize,
        responseDeserialize,
        request as object,
        new Metadata(),
        { deadline: Date.now() + timeoutMs },
      );
      this.active.add(call);
      call.on('data', (response: Response) => onMessage(response));
      call.on('error', (error) => {
        this.active.delete(call);
        reject(error);
      });
      call.on('end', () => {
        this.active.delete(call);
        resolve();
      });
    });
  }

  /** StreamChannel has no deadline: it lasts as long as the mastership. */
  openStream(): ClientDuplexStream<MessageInput<StreamMessageRequest>, StreamMessageResponse> {
    const { path, requestSerialize, responseDeserialize } = METHODS.StreamChannel!;
    return this.client.makeBidiStreamRequest<MessageInput<StreamMessageRequest>, StreamMessageResponse>(
      path,
      requestSerialize,
      responseDeserialize as (bytes: Buffer) => StreamMessageResponse,
      new Metadata(),
    );
  }

  /** Cancels every call that is under way and lets the connection go. */
  close(): void {
    for (const call of this.active) call.cancel();
    this.active.clear();
    this.client.close();
  }
}

function channelCredentials(tls: TlsIdentity | undefined): ChannelCredentials {
  if (tls === undefined) return credentials.createInsecure();
  const buffer = (bytes: Uint8Array | undefined): Buffer | null => (bytes === undefined ? null : Buffer.from(bytes));
  const { authorities, certificate } = tls;
  return credentials.createSsl(buffer(authorities), buffer(certificate?.privateKey), buffer(certificate?.chain));
}

export function isServiceError(error: unknown): error is ServiceError {
  return error instanceof Error && 'code' in error && typeof error.code === 'number' && 'metadata' in error;
}

/** gRPC's name of a status code, as people know it. */
export function statusName(code: number): string {
  return status[code] ?? `code ${code}`;
}

/** Whether the other end could not be asked, or did not answer. */
export function isUnreachable(code: number): boolean {
  return code === status.DEADLINE_EXCEEDED || code === status.UNAVAILABLE || code === status.CANCELLED;
}

/** Whether a failed call may have been carried out all the same. */
export function isOutcomeUnknown(code: number): boolean {
  return isUnreachable(code) || code === status.UNKNOWN || code === status.INTERNAL || code === status.DATA_LOSS;
}

/** A failure of a whole call as one of ours. @param place the switch, and what else tells where */
export function callError(place: string, what: string, error: unknown): DdfError {
  if (error instanceof DdfError) return error;
  if (!isServiceError(error))
    return new DdfError('INTERNAL', `${what} failed: ${String(error)}`, {
      where: `switch ${place}`,
      cause: error,
    });
  const where = `switch ${place}`;
  const message = `${what} failed: ${statusName(error.code)} ${error.details}`.trimEnd();
  if (error.code === status.PERMISSION_DENIED)
    return new DdfError('NOT_PRIMARY', message, {
      where,
      remedy: 'Another controller is primary on this switch: stop it, or let it work.',
      recoverable: true,
      cause: error,
    });
  if (isUnreachable(error.code))
    return new DdfError('SWITCH_UNREACHABLE', message, {
      where,
      remedy: 'It is tried again; check that the switch runs if this persists.',
      recoverable: true,
      cause: error,
    });
  if (error.code === status.UNIMPLEMENTED)
    return new DdfError('SWITCH_REJECTED', message, {
      where,
      remedy: 'This kind of switch does not serve it: docs/targets.md says what does.',
      cause: error,
    });
  return new DdfError('SWITCH_REJECTED', message, { where, cause: error });
}
