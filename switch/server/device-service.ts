import type { Logger } from '../../base/logger.ts';
import type {
  Entity,
  ForwardingPipelineConfig,
  GetForwardingPipelineConfigRequest,
  PacketOut,
  ReadRequest,
  SetForwardingPipelineConfigRequest,
  StreamMessageResponse,
  WriteRequest,
} from '../../wire/p4runtime/messages.ts';
import {
  WriteRequestAtomicity as Atomicity,
  SetForwardingPipelineConfigRequestAction as ConfigAction,
} from '../../wire/p4runtime/messages.ts';
import type { DeviceControl } from '../control.ts';
import { type Contender, type ElectionId, RoleArbiter } from './arbitration.ts';
import { Pipeline } from './pipeline.ts';
import { RpcError, toRpcError } from './rpc-error.ts';

/** A live stream, as its device sees it. */
export interface DeviceStream extends Contender {
  send(message: StreamMessageResponse): void;
}

export interface ReadOutcome {
  readonly entities: Entity[];
  /** One for each request of the batch; `undefined` for success. */
  readonly outcomes: (RpcError | undefined)[];
}

/** Everything that P4Runtime keeps for one device: who is primary per role, the pipeline, the packets to and from the controller. */
export class DeviceService {
  private readonly device: DeviceControl;
  private readonly maxStreams: number;
  private readonly logger: Logger;
  /** The default role is always there; others come with their first stream and stay, as their highest election id has to. */
  private readonly roles = new Map<string, RoleArbiter>();
  private readonly pipeline: Pipeline;

  constructor(device: DeviceControl, maxStreams: number, logger: Logger) {
    this.device = device;
    this.maxStreams = maxStreams;
    this.logger = logger;
    this.pipeline = new Pipeline(device);
    this.roles.set('', new RoleArbiter(device.deviceId, '', maxStreams));
    device.onCpuFrame = (frame) => this.packetIn(frame);
  }

  stop(): void {
    this.device.onCpuFrame = undefined;
  }

  /** The arbiter for a stream's first update. Throws RESOURCE_EXHAUSTED when there are as many roles as streams could have. */
  arbiter(role: string): RoleArbiter {
    const known = this.roles.get(role);
    if (known !== undefined) return known;
    if (this.roles.size > this.maxStreams)
      throw new RpcError('RESOURCE_EXHAUSTED', `There are ${this.roles.size} roles already, no more are served`);
    const arbiter = new RoleArbiter(this.device.deviceId, role, this.maxStreams);
    this.roles.set(role, arbiter);
    return arbiter;
  }

  /** Throws NOT_FOUND for an unknown role, then PERMISSION_DENIED if the request is not the primary's. */
  private requirePrimary(request: { role: string; roleId: bigint; electionId?: ElectionId }): void {
    const arbiter = this.requireRole(request.role, request.roleId);
    if (!arbiter.isPrimary(request.electionId))
      throw new RpcError(
        'PERMISSION_DENIED',
        request.electionId === undefined ? 'Without an election id nobody is primary' : 'Not primary',
      );
  }

  private requireRole(role: string, roleId: bigint): RoleArbiter {
    const arbiter = this.roles.get(role);
    if (arbiter === undefined || roleId !== 0n)
      throw new RpcError(
        'NOT_FOUND',
        roleId === 0n ? `There is no role ${role}` : 'Roles go by name, there is none with an id',
      );
    return arbiter;
  }

  /** Gives the device the pipeline that it starts with, before there is any controller. Throws like {@link setPipeline}. */
  install(config: ForwardingPipelineConfig): void {
    const { deviceId } = this.device;
    const action = ConfigAction.VERIFY_AND_COMMIT;
    this.pipeline.set({ deviceId, roleId: 0n, role: '', electionId: undefined, action, config });
  }

  setPipeline(request: SetForwardingPipelineConfigRequest): void {
    this.requirePrimary(request);
    this.pipeline.set(request);
  }

  getPipeline(request: GetForwardingPipelineConfigRequest): ForwardingPipelineConfig | undefined {
    return this.pipeline.get(request);
  }

  /** One outcome for each update. Throws RpcError for the request as a whole. */
  write(request: WriteRequest): (RpcError | undefined)[] {
    this.requirePrimary(request);
    const program = this.pipeline.requireProgram();
    if (request.atomicity === Atomicity.ROLLBACK_ON_ERROR || request.atomicity === Atomicity.DATAPLANE_ATOMIC)
      throw new RpcError(
        'UNIMPLEMENTED',
        'This switch serves batches with CONTINUE_ON_ERROR only, neither ROLLBACK_ON_ERROR nor DATAPLANE_ATOMIC',
      );
    if (request.atomicity !== Atomicity.CONTINUE_ON_ERROR)
      throw new RpcError('INVALID_ARGUMENT', `${request.atomicity} is no kind of atomicity`);
    return program.write(request.updates);
  }

  /** All at once, so that what is read is one state. Throws RpcError for the request as a whole. */
  read(request: ReadRequest): ReadOutcome {
    this.requireRole(request.role, 0n);
    const program = this.pipeline.requireProgram();
    const entities: Entity[] = [];
    const outcomes = request.entities.map((filter) => {
      try {
        for (const entity of program.read(filter)) entities.push(entity);
        return undefined;
      } catch (error) {
        return toRpcError(error);
      }
    });
    return { entities, outcomes };
  }

  /** Throws RpcError; the packet is dropped then. */
  packetOut(packet: PacketOut): void {
    const { program } = this.pipeline;
    if (program === undefined) throw new RpcError('FAILED_PRECONDITION', 'No forwarding pipeline config is set');
    const codec = program.packetOut;
    if (codec !== undefined) this.device.sendFromCpu(codec.join(packet.metadata, packet.payload));
    else if (packet.metadata.length === 0) this.device.sendFromCpu(packet.payload);
    else throw new RpcError('INVALID_ARGUMENT', 'The program has no packet_out header, so packets have no metadata');
  }

  /** To the primary of the default role, which may see everything. */
  private packetIn(frame: Uint8Array): void {
    const { program } = this.pipeline;
    const primary = this.roles.get('')?.primary as DeviceStream | undefined;
    if (program === undefined || primary === undefined) return;
    try {
      primary.send({ packet: program.packetIn?.split(frame) ?? { metadata: [], payload: frame } });
    } catch (error) {
      this.logger.warn({ err: error, deviceId: String(this.device.deviceId) }, 'packet to the controller dropped');
    }
  }
}
