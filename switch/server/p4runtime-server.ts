import { setImmediate } from 'node:timers/promises';
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
  SetForwardingPipelineConfigRequest,
  WriteRequest,
} from '../../wire/p4runtime/messages.ts';
import { serviceDefinition } from '../../wire/proto.ts';
import type { DeviceControl } from '../control.ts';
import { DeviceService } from './device-service.ts';
import { type GrpcHandlers, GrpcServer, type GrpcStatus, type StreamingCall } from './grpc-server.ts';
import { batchFailure, RpcError, toRpcError } from './rpc-error.ts';
import { Stream } from './stream.ts';

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
/** Others have their turn after so much of a read, milliseconds: it may have any number of members that find nothing. */
const TURN_MS = 10;
const DEFAULT_MAX_STREAMS = 64;

/** Serves P4Runtime 1.5 for some devices. Throws DdfError ADDRESS_IN_USE, INVALID_OPTION, and for a pipeline that cannot run what verifying it would. */
export async function startP4RuntimeServer(options: P4RuntimeServerOptions): Promise<P4RuntimeServer> {
  const { logger } = options;
  const services = new Map<bigint, DeviceService>();
  for (const device of options.devices) {
    if (services.has(device.deviceId))
      throw new DdfError('INVALID_OPTION', `Two devices have the id ${device.deviceId}`);
    const service = new DeviceService(device, options.scheduler, options.maxStreams ?? DEFAULT_MAX_STREAMS, logger);
    services.set(device.deviceId, service);
    const pipeline = options.pipelines?.get(device.deviceId);
    if (pipeline !== undefined) service.install(pipeline);
  }
  const methods = serviceDefinition('p4.v1.P4Runtime');
  const server = new GrpcServer(methods, handlers(services, logger), MAX_MESSAGE_BYTES, options.tls);
  try {
    const port = await bind(server, options.address);
    let stopped = false;
    return {
      port,
      stop: async () => {
        if (stopped) return;
        stopped = true;
        for (const service of services.values()) service.stop();
        server.stop();
      },
    };
  } catch (error) {
    for (const service of services.values()) service.stop();
    server.stop();
    throw error;
  }
}

async function bind(server: GrpcServer, address: string): Promise<number> {
  const [, host, port] = /^(.+):(\d{1,5})$/.exec(address) ?? [];
  if (host === undefined || Number(port) > 65_535)
    throw new DdfError('INVALID_OPTION', `${address} is not of the form host:port`);
  try {
    return await server.listen(host.replace(/^\[(.*)\]$/, '$1'), Number(port));
  } catch (error) {
    throw bindError(error as NodeJS.ErrnoException, address);
  }
}

function bindError(error: NodeJS.ErrnoException, address: string): DdfError {
  if (error.code === 'EADDRINUSE')
    return new DdfError('ADDRESS_IN_USE', `Another program listens on ${address}`, {
      remedy: 'Stop it, or choose another port.',
      cause: error,
    });
  return new DdfError('INVALID_OPTION', `The P4Runtime server cannot listen on ${address}: ${error.message}`, {
    cause: error,
  });
}

/** The methods of the service by name; apart from the server so that they can be called without a network. */
export function handlers(services: ReadonlyMap<bigint, DeviceService>, logger: Logger): GrpcHandlers {
  const find = (deviceId: bigint): DeviceService => {
    const service = services.get(deviceId);
    if (service === undefined) throw new RpcError('NOT_FOUND', `There is no device ${deviceId}`);
    return service;
  };
  const statusOf = (error: unknown): GrpcStatus => {
    if (error instanceof BatchError) return error.status;
    const rpc = toRpcError(error);
    if (rpc.rpcCode === 'INTERNAL') logger.error({ err: error }, 'a P4Runtime call failed inside the switch');
    return { code: rpc.status, message: rpc.message };
  };
  return {
    statusOf,
    unary: {
      Write: (request: WriteRequest) => {
        const outcomes = find(request.deviceId).write(request);
        if (outcomes.some((outcome) => outcome !== undefined)) throw new BatchError(batchFailure(outcomes));
        return {};
      },
      SetForwardingPipelineConfig: (request: SetForwardingPipelineConfigRequest) => {
        find(request.deviceId).setPipeline(request);
        return {};
      },
      GetForwardingPipelineConfig: (request: GetForwardingPipelineConfigRequest) => ({
        config: find(request.deviceId).getPipeline(request),
      }),
      Capabilities: (request: CapabilitiesRequest) => {
        // Clients of versions before 1.4 do not know the field.
        if (request.deviceId !== 0n) find(request.deviceId);
        return { p4runtimeApiVersion: API_VERSION };
      },
    },
    answers: {
      Read: (request: ReadRequest, call: StreamingCall) => {
        read(request, call, find).catch((error) => call.fail(statusOf(error)));
      },
    },
    streams: {
      StreamChannel: (call: StreamingCall) => {
        new Stream(call, find, logger);
      },
    },
  };
}

class BatchError extends Error {
  readonly status: GrpcStatus;

  constructor(status: GrpcStatus) {
    super(status.message);
    this.status = status;
  }
}

/** What was good is delivered, then the status says which requests were not (P4Runtime 1.5, section "Read RPC"). */
async function read(
  request: ReadRequest,
  call: StreamingCall,
  find: (deviceId: bigint) => DeviceService,
): Promise<void> {
  const reading = find(request.deviceId).read(request);
  let entities: Entity[] = [];
  let pauseMs = performance.now() + TURN_MS;
  let next = reading.next();
  for (; next.done !== true; next = reading.next()) {
    if (next.value === undefined) {
      if (performance.now() < pauseMs) continue;
      await setImmediate();
      if (call.cancelled) return;
      pauseMs = performance.now() + TURN_MS;
      continue;
    }
    entities.push(next.value);
    if (entities.length < ENTITIES_PER_RESPONSE) continue;
    if (call.cancelled) return;
    if (!call.write({ entities })) await drained(call);
    entities = [];
  }
  if (entities.length > 0) call.write({ entities });
  const outcomes = next.value;
  if (outcomes.some((outcome) => outcome !== undefined)) call.fail(batchFailure(outcomes));
  else call.end();
}

function drained(call: StreamingCall): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      for (const event of EVENTS) call.off(event, done);
      resolve();
    };
    for (const event of EVENTS) call.on(event, done);
  });
}

const EVENTS = ['drain', 'cancelled', 'close'] as const;
