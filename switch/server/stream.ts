import type { Logger } from '../../base/logger.ts';
import type {
  DigestListAck,
  MasterArbitrationUpdate,
  PacketOut,
  StreamError,
  StreamMessageRequest,
  StreamMessageResponse,
} from '../../wire/p4runtime/messages.ts';
import type { RoleArbiter } from './arbitration.ts';
import type { DeviceService, DeviceStream } from './device-service.ts';
import type { StreamingCall } from './grpc-server.ts';
import { parseRole } from './roles.ts';
import { ERROR_SPACE, RpcError, toRpcError } from './rpc-error.ts';

/** Packets and stream errors that wait for a slow client, and as many digest lists and idle notices; more are dropped. */
const MAX_QUEUED_PACKETS = 1024;
/** Arbitration updates that wait for a client that does not read; it is cut off after them. */
const MAX_QUEUED_ARBITRATION = 1024;

/**
 * One StreamChannel call: binds to a device and role with the first arbitration update, then carries packets, digests and idle notices. Arbitration
 * overtakes notices, and these packets; their queues are bounded: a slow reader loses packets, never the news of who is primary.
 */
export class Stream implements DeviceStream {
  private readonly call: StreamingCall;
  private readonly findDevice: (deviceId: bigint) => DeviceService;
  private readonly logger: Logger;
  private bound:
    | { readonly deviceId: bigint; readonly device: DeviceService; readonly arbiter: RoleArbiter }
    | undefined;
  private readonly arbitration: StreamMessageResponse[] = [];
  /** Digests and idle entries. */
  private readonly notices: StreamMessageResponse[] = [];
  private readonly packets: StreamMessageResponse[] = [];
  private blocked = false;
  private closed = false;
  private dropped = 0;

  /** @param findDevice throws RpcError NOT_FOUND */
  constructor(call: StreamingCall, findDevice: (deviceId: bigint) => DeviceService, logger: Logger) {
    this.call = call;
    this.findDevice = findDevice;
    this.logger = logger;
    call.on('data', (request: StreamMessageRequest) => this.receive(request));
    call.on('drain', () => {
      this.blocked = false;
      this.flush();
    });
    call.on('end', () => {
      this.leave();
      call.end();
    });
    call.on('cancelled', () => this.leave());
    call.on('close', () => this.leave());
  }

  private receive(request: StreamMessageRequest): void {
    if (this.closed) return;
    try {
      if (request.arbitration !== undefined) this.arbitrate(request.arbitration);
      else if (request.packet !== undefined) this.packetOut(request.packet);
      else if (request.digestAck !== undefined) this.digestAck(request.digestAck);
      else if (request.other !== undefined)
        this.reject(new RpcError('UNIMPLEMENTED', `This switch does not know ${request.other.typeUrl}`), {
          other: { other: request.other },
        });
      else this.reject(new RpcError('INVALID_ARGUMENT', 'The stream message is not set'), { other: {} });
    } catch (error) {
      this.fail(toRpcError(error));
    }
  }

  /** P4Runtime 1.5, section "Rules for Handling MasterArbitrationUpdate Messages": every fault ends the stream. */
  private arbitrate(update: MasterArbitrationUpdate): void {
    const { deviceId, role, electionId } = update;
    if (this.bound === undefined) {
      const device = this.findDevice(deviceId);
      const { name, scope } = parseRole(role);
      const arbiter = device.arbiter(name, scope);
      arbiter.update(this, electionId, scope);
      this.bound = { deviceId, device, arbiter };
      return;
    }
    if (deviceId !== this.bound.deviceId)
      throw new RpcError(
        'FAILED_PRECONDITION',
        `The stream belongs to device ${this.bound.deviceId}, not to ${deviceId}`,
      );
    if ((role?.name ?? '') !== this.bound.arbiter.role)
      throw new RpcError(
        'FAILED_PRECONDITION',
        `The stream belongs to role "${this.bound.arbiter.role}", not to "${role?.name ?? ''}"`,
      );
    const { name, scope } = parseRole(role);
    this.bound.device.arbiter(name, scope).update(this, electionId, scope);
  }

  private packetOut(packet: PacketOut): void {
    try {
      if (this.bound?.arbiter.primary !== this)
        throw new RpcError('PERMISSION_DENIED', 'Only the primary sends packets');
      this.bound.device.packetOut(packet);
    } catch (error) {
      this.reject(toRpcError(error), { packetOut: { packetOut: packet } });
    }
  }

  private digestAck(digestListAck: DigestListAck): void {
    try {
      if (this.bound?.arbiter.primary !== this)
        throw new RpcError('PERMISSION_DENIED', 'Only the primary acknowledges digests');
      this.bound.device.digestAck(digestListAck);
    } catch (error) {
      this.reject(toRpcError(error), { digestListAck: { digestListAck } });
    }
  }

  private reject(error: RpcError, details: Pick<StreamError, 'packetOut' | 'digestListAck' | 'other'>): void {
    this.send({
      error: { canonicalCode: error.status, message: error.message, space: ERROR_SPACE, code: 0, ...details },
    });
  }

  notify(arbitration: MasterArbitrationUpdate): void {
    if (this.arbitration.length >= MAX_QUEUED_ARBITRATION) {
      // Not from here: whoever notifies is in the middle of an election.
      queueMicrotask(() => this.fail(new RpcError('RESOURCE_EXHAUSTED', 'The client does not read its stream')));
      return;
    }
    this.arbitration.push({ arbitration });
    this.flush();
  }

  send(message: StreamMessageResponse): boolean {
    const queue =
      message.digest === undefined && message.idleTimeoutNotification === undefined ? this.packets : this.notices;
    if (queue.length >= MAX_QUEUED_PACKETS) {
      if (this.dropped++ === 0) this.logger.warn('a controller reads its stream too slowly: packets are dropped');
      return false;
    }
    queue.push(message);
    this.flush();
    return true;
  }

  private flush(): void {
    while (!this.blocked && !this.closed) {
      const message = this.arbitration.shift() ?? this.notices.shift() ?? this.packets.shift();
      if (message === undefined) return;
      this.blocked = !this.call.write(message);
    }
  }

  private fail(error: RpcError): void {
    if (this.closed) return;
    this.leave();
    this.call.fail({ code: error.status, message: error.message });
  }

  private leave(): void {
    if (this.closed) return;
    this.closed = true;
    this.arbitration.length = 0;
    this.notices.length = 0;
    this.packets.length = 0;
    this.bound?.arbiter.leave(this);
  }
}
