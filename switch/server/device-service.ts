import type { Scheduler } from '../../base/clock.ts';
import type { Logger } from '../../base/logger.ts';
import type {
  DigestListAck,
  Entity,
  ForwardingPipelineConfig,
  GetForwardingPipelineConfigRequest,
  PacketOut,
  ReadRequest,
  SetForwardingPipelineConfigRequest,
  StreamMessageResponse,
  TableEntry,
  WriteRequest,
} from '../../wire/p4runtime/messages.ts';
import {
  WriteRequestAtomicity as Atomicity,
  SetForwardingPipelineConfigRequestAction as ConfigAction,
} from '../../wire/p4runtime/messages.ts';
import type { DeviceControl } from '../control.ts';
import { type Contender, type ElectionId, RoleArbiter } from './arbitration.ts';
import type { DigestListToSend } from './digests.ts';
import { Pipeline } from './pipeline.ts';
import { objectIdOf, type RoleScope } from './roles.ts';
import { RpcError, toRpcError } from './rpc-error.ts';

/** A live stream, as its device sees it. */
export interface DeviceStream extends Contender {
  /** Returns whether there was room for it. */
  send(message: StreamMessageResponse): boolean;
}

/** Everything that P4Runtime keeps for one device: who is primary per role, the pipeline, the packets to and from the controller. */
export class DeviceService {
  private readonly device: DeviceControl;
  private readonly maxStreams: number;
  private readonly scheduler: Scheduler;
  private readonly logger: Logger;
  /** Of the scheduler's time 0, in microseconds since 1970. */
  private readonly epochUs: number;
  /** The default role is always there; others come with their first stream and stay, as their highest election id has to. */
  private readonly roles = new Map<string, RoleArbiter>();
  private readonly pipeline: Pipeline;

  constructor(device: DeviceControl, scheduler: Scheduler, maxStreams: number, logger: Logger) {
    this.device = device;
    this.scheduler = scheduler;
    this.maxStreams = maxStreams;
    this.logger = logger;
    this.epochUs = Date.now() * 1000 - scheduler.nowUs();
    this.pipeline = new Pipeline(device, scheduler, {
      digestList: (list) => this.digestList(list),
      idle: (entries) => this.idle(entries),
    });
    this.roles.set('', new RoleArbiter(device.deviceId, '', maxStreams));
    device.onCpuFrame = (frame) => this.packetIn(frame);
  }

  stop(): void {
    this.device.onCpuFrame = undefined;
    this.pipeline.stop();
  }

  /**
   * The arbiter for a stream's update.
   * @throws RpcError INVALID_ARGUMENT when another role with a primary has what this one wants for itself, or the other way round;
   * RESOURCE_EXHAUSTED when there are as many roles as streams could have
   */
  arbiter(role: string, scope: RoleScope): RoleArbiter {
    for (const other of this.roles.values()) {
      const id = other.role === role || other.primary === undefined ? undefined : other.scope.conflictWith(scope);
      if (id !== undefined)
        throw new RpcError(
          'INVALID_ARGUMENT',
          `Role ${role} cannot have 0x${id.toString(16)} as it wants: role ${other.role} has it`,
        );
    }
    const known = this.roles.get(role);
    if (known !== undefined) return known;
    if (this.roles.size > this.maxStreams)
      throw new RpcError('RESOURCE_EXHAUSTED', `There are ${this.roles.size} roles already, no more are served`);
    const arbiter = new RoleArbiter(this.device.deviceId, role, this.maxStreams);
    this.roles.set(role, arbiter);
    return arbiter;
  }

  /** Throws NOT_FOUND for an unknown role, then PERMISSION_DENIED if the request is not the primary's. */
  private requirePrimary(request: { role: string; roleId: bigint; electionId?: ElectionId }): RoleArbiter {
    const arbiter = this.requireRole(request.role, request.roleId);
    if (!arbiter.isPrimary(request.electionId))
      throw new RpcError(
        'PERMISSION_DENIED',
        request.electionId === undefined ? 'Without an election id nobody is primary' : 'Not primary',
      );
    return arbiter;
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
    const { role, scope } = this.requirePrimary(request);
    if (!scope.canPushPipeline) throw new RpcError('PERMISSION_DENIED', `Role ${role} may not set pipeline configs`);
    this.pipeline.set(request);
  }

  getPipeline(request: GetForwardingPipelineConfigRequest): ForwardingPipelineConfig | undefined {
    return this.pipeline.get(request);
  }

  /** One outcome for each update. Throws RpcError for the request as a whole. */
  write(request: WriteRequest): (RpcError | undefined)[] {
    const { role, scope } = this.requirePrimary(request);
    const program = this.pipeline.requireProgram();
    const { atomicity } = request;
    if (
      atomicity !== Atomicity.CONTINUE_ON_ERROR &&
      atomicity !== Atomicity.ROLLBACK_ON_ERROR &&
      atomicity !== Atomicity.DATAPLANE_ATOMIC
    )
      throw new RpcError('INVALID_ARGUMENT', `${atomicity} is no kind of atomicity`);
    return program.write(request.updates, atomicity, (entity) => this.checkScope(role, scope, entity));
  }

  /** Throws PERMISSION_DENIED. The default role may do everything, whatever others have for themselves. */
  private checkScope(role: string, scope: RoleScope, entity: Entity | undefined): void {
    if (role === '') return;
    const id = objectIdOf(entity);
    const what = id === undefined ? 'what belongs to no P4 object' : `0x${id.toString(16)}`;
    if (!scope.covers(id)) throw new RpcError('PERMISSION_DENIED', `Role ${role} may not write ${what}`);
    for (const other of this.roles.values())
      if (other.role !== role && other.primary !== undefined && id !== undefined && other.scope.exclusive.has(id))
        throw new RpcError('PERMISSION_DENIED', `Role ${role} may not write ${what}: role ${other.role} has it`);
  }

  /**
   * Entities as they are taken, since a request of a few bytes may ask for more than memory holds; what one member of the batch asks for of a table
   * is one state all the same. After each member `undefined`, so that who takes them may pause: a member may take long and find nothing. Throws
   * RpcError for the request as a whole.
   * @returns one outcome for each member of the batch; `undefined` for success
   */
  *read(request: ReadRequest): Generator<Entity | undefined, (RpcError | undefined)[]> {
    const { scope } = this.requireRole(request.role, 0n);
    const program = this.pipeline.requireProgram();
    const outcomes: (RpcError | undefined)[] = [];
    for (const filter of request.entities) {
      try {
        for (const entity of program.read(filter)) if (scope.covers(objectIdOf(entity))) yield entity;
        outcomes.push(undefined);
      } catch (error) {
        outcomes.push(toRpcError(error));
      }
      yield undefined;
    }
    return outcomes;
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

  /** Throws RpcError. */
  digestAck(ack: DigestListAck): void {
    const { program } = this.pipeline;
    if (program === undefined) throw new RpcError('FAILED_PRECONDITION', 'No forwarding pipeline config is set');
    program.acknowledge(ack);
  }

  private packetIn(frame: Uint8Array): void {
    const { program } = this.pipeline;
    if (program === undefined) return;
    try {
      const packet = program.packetIn?.split(frame) ?? { metadata: [], payload: frame };
      for (const { primary, scope } of this.primaries())
        if (scope.wantsPacket(packet.metadata)) primary.send({ packet });
    } catch (error) {
      this.logger.warn({ err: error, deviceId: String(this.device.deviceId) }, 'packet to the controller dropped');
    }
  }

  private digestList(list: DigestListToSend): boolean {
    let sent = false;
    const timestamp = this.timestamp();
    for (const { primary, scope } of this.primaries())
      if (scope.covers(list.digestId) && primary.send({ digest: { ...list, timestamp } })) sent = true;
    return sent;
  }

  private idle(entries: TableEntry[]): void {
    const timestamp = this.timestamp();
    for (const { primary, scope } of this.primaries()) {
      const tableEntry = entries.filter(({ tableId }) => scope.covers(tableId));
      if (tableEntry.length > 0) primary.send({ idleTimeoutNotification: { tableEntry, timestamp } });
    }
  }

  /** Nanoseconds since 1970. */
  private timestamp(): bigint {
    return BigInt(this.epochUs + this.scheduler.nowUs()) * 1000n;
  }

  private *primaries(): Generator<{ primary: DeviceStream; scope: RoleScope }> {
    for (const { primary, scope } of this.roles.values())
      if (primary !== undefined) yield { primary: primary as DeviceStream, scope };
  }
}
