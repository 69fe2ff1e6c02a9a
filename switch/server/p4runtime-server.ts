import {
  logVerbosity,
  Metadata,
  Server,
  ServerCredentials,
  type ServerUnaryCall,
  type ServerWritableStream,
  type sendUnaryData,
  setLogVerbosity,
  type UntypedServiceImplementation,
} from '@grpc/grpc-js';
import type { Scheduler } from '../../base/clock.ts';
import { DdfError } from '../../base/errors.ts';
import type { Logger } from '../../base/logger.ts';
import type { TlsIdentity } from '../../base/tls.ts';
import type {
  CapabilitiesRequest,
  Entity,
  ForwardingPipelineConfig,
  GetForwardingPipelineConfigRequest,
  ReadRequest,
  ReadResponse,
  SetForwardingPipelineConfigRequest,
  WriteRequest,
} from '../../wire/p4runtime/messages.ts';
import { serviceDefinition } from '../../wire/proto.ts';
import type { DeviceControl } from '../control.ts';
import { DeviceService } from './device-service.ts';
import { type BatchFailure, batchFailure, RpcError, toRpcError } from './rpc-error.ts';
import { Stream, type StreamCall } from './stream.ts';

export interface P4RuntimeServerOptions {
  /** With different device ids. */
  readonly devices: readonly DeviceControl[];
  /** host:port; port 0 takes a free one. P4Runtime's own port is 9559. */
  readonly address: string;
  /** The clock of the devices; idle time-outs and digests go by it. */
  readonly scheduler: Scheduler;
  readonly logger: Logger;
  /** Default: no TLS. With authorities, clients have to show a certificate that comes from them. */
  readonly tls?: TlsIdentity;
  /** Streams per device and role; default 64. */
  readonly maxStreams?: number;
  /** What devices run before a controller sets another pipeline, by device id; default: nothing. */
  readonly pipelines?: ReadonlyMap<bigint, ForwardingPipelineConfig>;
}

export interface P4RuntimeServer {
  readonly port: number;
  /** Ends all calls and streams at once. Idempotent. */
  stop(): Promise<void>;
}

/** The version of P4Runtime that is served. */
const API_VERSION = '1.5.0';
/** Pipeline configs pass gRPC's default of 4 MB. */
const MAX_MESSAGE_BYTES = 64 * 1024 * 1024;
const ENTITIES_PER_RESPONSE = 512;
const DEFAULT_MAX_STREAMS = 64;

/** Serves P4Runtime 1.5 for some devices. Throws DdfError ADDRESS_IN_USE, INVALID_OPTION, and for a pipeline that cannot run what verifying it would. */
export async function startP4RuntimeServer(options: P4RuntimeServerOptions): Promise<P4RuntimeServer> {
  const { logger } = options;
  // What grpc-js would print reaches us as errors.
  setLogVerbosity(logVerbosity.NONE);
  const services = new Map<bigint, DeviceService>();
  for (const device of options.devices) {
    if (services.has(device.deviceId))
      throw new DdfError('INVALID_OPTION', `Two devices have the id ${device.deviceId}`);
    const service = new DeviceService(device, options.scheduler, options.maxStreams ?? DEFAULT_MAX_STREAMS, logger);
    services.set(device.deviceId, service);
    const pipeline = options.pipelines?.get(device.deviceId);
    if (pipeline !== undefined) service.install(pipeline);
  }
  const server = new Server({
    'grpc.max_receive_message_length': MAX_MESSAGE_BYTES,
    'grpc.max_send_message_length': MAX_MESSAGE_BYTES,
    // Otherwise two servers could share the port, and controllers would reach one or the other.
    'grpc.so_reuseport': 0,
    // Nobody asks for its statistics, which take a few microseconds of every call.
    'grpc.enable_channelz': 0,
  });
  server.addService(serviceDefinition('p4.v1.P4Runtime'), handlers(services, logger));
  try {
    const port = await bind(server, options.address, serverCredentials(options.tls));
    let stopped = false;
    return {
      port,
      stop: async () => {
        if (stopped) return;
        stopped = true;
        for (const service of services.values()) service.stop();
        server.forceShutdown();
      },
    };
  } catch (error) {
    for (const service of services.values()) service.stop();
    server.forceShutdown();
    throw error;
  }
}

function bind(server: Server, address: string, credentials: ServerCredentials): Promise<number> {
  return new Promise((resolve, reject) => {
    server.bindAsync(address, credentials, (error, port) => {
      if (error === null) resolve(port);
      else reject(bindError(error, address));
    });
  });
}

function serverCredentials(tls: TlsIdentity | undefined): ServerCredentials {
  if (tls?.certificate === undefined) return ServerCredentials.createInsecure();
  const { chain, privateKey } = tls.certificate;
  const pair = { cert_chain: Buffer.from(chain), private_key: Buffer.from(privateKey) };
  const authorities = tls.authorities === undefined ? null : Buffer.from(tls.authorities);
  return ServerCredentials.createSsl(authorities, [pair], authorities !== null);
}

function bindError(error: Error, address: string): DdfError {
  if (/EADDRINUSE/.test(error.message))
    return new DdfError('ADDRESS_IN_USE', `Another program listens on ${address}`, {
      remedy: 'Stop it, or choose another port.',
      cause: error,
    });
  return new DdfError('INVALID_OPTION', `The P4Runtime server cannot listen on ${address}: ${error.message}`, {
    cause: error,
  });
}

/** The methods of the service by name; apart from the server so that they can be called without a network. */
export function handlers(services: ReadonlyMap<bigint, DeviceService>, logger: Logger): UntypedServiceImplementation {
  const find = (deviceId: bigint): DeviceService => {
    const service = services.get(deviceId);
    if (service === undefined) throw new RpcError('NOT_FOUND', `There is no device ${deviceId}`);
    return service;
  };
  const unary =
    <Request>(answer: (request: Request) => object) =>
    (call: ServerUnaryCall<Request, object>, callback: sendUnaryData<object>): void => {
      try {
        callback(null, answer(call.request));
      } catch (error) {
        callback(error instanceof BatchError ? statusOf(error.failure) : statusOf(rpcFailure(error, logger)));
      }
    };
  return {
    Write: unary((request: WriteRequest) => {
      const outcomes = find(request.deviceId).write(request);
      if (outcomes.some((outcome) => outcome !== undefined)) throw new BatchError(batchFailure(outcomes));
      return {};
    }),
    SetForwardingPipelineConfig: unary((request: SetForwardingPipelineConfigRequest) => {
      find(request.deviceId).setPipeline(request);
      return {};
    }),
    GetForwardingPipelineConfig: unary((request: GetForwardingPipelineConfigRequest) => ({
      config: find(request.deviceId).getPipeline(request),
    })),
    Capabilities: unary((request: CapabilitiesRequest) => {
      // Clients of versions before 1.4 do not know the field.
      if (request.deviceId !== 0n) find(request.deviceId);
      return { p4runtimeApiVersion: API_VERSION };
    }),
    Read: (call: ServerWritableStream<ReadRequest, ReadResponse>): void => {
      read(call, find).catch((error) => call.emit('error', statusOf(rpcFailure(error, logger))));
    },
    StreamChannel: (call: StreamCall): void => {
      new Stream(call, find, logger);
    },
  };
}

class BatchError extends Error {
  readonly failure: BatchFailure;

  constructor(failure: BatchFailure) {
    super(failure.message);
    this.failure = failure;
  }
}

function rpcFailure(error: unknown, logger: Logger): BatchFailure {
  const rpc = toRpcError(error);
  if (rpc.rpcCode === 'INTERNAL') logger.error({ err: error }, 'a P4Runtime call failed inside the switch');
  return { code: rpc.status, message: rpc.message, details: undefined };
}

function statusOf({ code, message, details }: BatchFailure): { code: number; details: string; metadata: Metadata } {
  const metadata = new Metadata();
  if (details !== undefined) metadata.set('grpc-status-details-bin', Buffer.from(details));
  return { code, details: message, metadata };
}

/** What was good is delivered, then the status says which requests were not (P4Runtime 1.5, section "Read RPC"). */
async function read(
  call: ServerWritableStream<ReadRequest, ReadResponse>,
  find: (deviceId: bigint) => DeviceService,
): Promise<void> {
  const reading = find(call.request.deviceId).read(call.request);
  let entities: Entity[] = [];
  let next = reading.next();
  for (; next.done !== true; next = reading.next()) {
    entities.push(next.value);
    if (entities.length < ENTITIES_PER_RESPONSE) continue;
    if (call.cancelled) return;
    if (!call.write({ entities })) await drained(call);
    entities = [];
  }
  if (entities.length > 0) call.write({ entities });
  const outcomes = next.value;
  if (outcomes.some((outcome) => outcome !== undefined)) call.emit('error', statusOf(batchFailure(outcomes)));
  else call.end();
}

function drained(call: ServerWritableStream<ReadRequest, ReadResponse>): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      for (const event of EVENTS) call.off(event, done);
      resolve();
    };
    for (const event of EVENTS) call.on(event, done);
  });
}

const EVENTS = ['drain', 'cancelled', 'close'] as const;
