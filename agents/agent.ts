import type { Scheduler } from '../base/clock.ts';
import { DdfError } from '../base/errors.ts';
import type { Logger } from '../base/logger.ts';
import type { Random } from '../base/random.ts';
import { formatObjectId, type PayloadId } from '../objects/ids.ts';
import type { AllowRange, HeldVersion, Payload, Reply, Request } from '../wire/agent/messages.ts';
import { peekFabricLabel } from '../wire/fabric/header.ts';
import type { MessageInput } from '../wire/proto.ts';
import { Attachment } from './io/attachment.ts';
import type { FabricHost, FabricSocket, SocketStatistics } from './io/fabric-socket.ts';
import { type RangeAddress, RangeServer } from './io/range-server.ts';
import type { Workers } from './io/workers.ts';
import { StatusReporter } from './status-reporter.ts';
import { Store, type StoredPayload } from './store/store.ts';

/** How an agent's senders keep their rate on a scheduler that may be late, in microseconds. */
export interface SenderPacing {
  /** How much of a pause is made up for at once. */
  readonly burstUs: number;
  /** Shortest wait: what becomes due meanwhile leaves in one batch. */
  readonly leastWaitUs: number;
}

/** What every agent is made of. */
export interface AgentOptions {
  /** The host's name in the topology. */
  readonly name: string;
  readonly host: FabricHost;
  readonly scheduler: Scheduler;
  readonly random: Random;
  readonly workers: Workers;
  /** Default: as the protocol has it, for a scheduler that is exact. */
  readonly pacing?: SenderPacing;
  readonly storeDirectory: string;
  /** Default: what the file system has. */
  readonly storeCapacityBytes?: number;
  /** Whether stored versions survive a power failure. Default true; false for emulated servers. */
  readonly storeDurable?: boolean;
  /** `host:port` */
  readonly controllerAddress: string;
  /** Grows with every start: milliseconds since 1970. */
  readonly incarnation: bigint;
  /** Where range reads are served. Default 127.0.0.1 and any free port. */
  readonly rangeAddress?: RangeAddress;
  readonly logger: Logger;
}

export interface Agent {
  readonly name: string;
  /** For preparing it before start, and for looking on. */
  readonly store: Store;
  /** Range bytes served so far. */
  readonly rangeBytesServed: number;
  /** Of its fabric socket; undefined before `start` and where sockets do not count. */
  readonly socketStatistics: SocketStatistics | undefined;
  /**
   * Opens sockets and attaches in the background, again whenever the controller was away.
   * @throws DdfError ADDRESS_IN_USE
   */
  start(): Promise<void>;
  /** @throws DdfError AGENT_UNREACHABLE after `timeoutMs` */
  whenAttached(timeoutMs: number): Promise<void>;
  /** Ends transfers and the attachment in an orderly way. Idempotent. */
  stop(): Promise<void>;
  /** Goes away as a crash would: sockets cut, nothing said, nothing flushed. Idempotent. */
  kill(): Promise<void>;
}

export type ReplyBody = Omit<MessageInput<Reply>, 'requestId' | 'error'>;

/** What differs between the kinds of agents. */
export interface AgentRole {
  /** AgentKind of wire/agent. */
  readonly kind: number;
  readonly fabricPort: number;
  /** Takes datagrams of transfers that it has; undefined for labels that it does not know. */
  readonly transfer: (label: number) => { handlePacket(datagram: Uint8Array): void } | undefined;
  readonly execute: (request: Request) => Promise<ReplyBody>;
  /** Lets go of all transfers. */
  readonly close: () => void;
}

/** The part that Memory Nodes and GPU servers share: store, range server, socket, attachment, statuses. */
export class AgentCore {
  readonly options: AgentOptions;
  readonly store: Store;
  readonly statuses: StatusReporter;
  private readonly role: AgentRole;
  private readonly attachment: Attachment;
  private readonly ranges: RangeServer;
  private socket: FabricSocket | undefined;
  private state: 'new' | 'running' | 'ended' = 'new';

  constructor(options: AgentOptions, makeRole: (core: AgentCore) => AgentRole) {
    const { logger } = options;
    this.options = options;
    this.store = new Store({
      directory: options.storeDirectory,
      ...(options.storeCapacityBytes === undefined ? {} : { capacityBytes: options.storeCapacityBytes }),
      ...(options.storeDurable === undefined ? {} : { durable: options.storeDurable }),
    });
    for (const path of this.store.damaged) logger.warn({ path }, 'damaged part of the store was removed');
    this.statuses = new StatusReporter(options.scheduler, (transferStatus) => this.attachment.send({ transferStatus }));
    this.ranges = new RangeServer({
      address: options.rangeAddress ?? { host: '127.0.0.1', port: 0 },
      find: (id) => this.store.find(id),
      logger,
    });
    this.attachment = new Attachment({
      controllerAddress: options.controllerAddress,
      hello: () => ({
        agentId: options.name,
        kind: this.role.kind,
        incarnation: options.incarnation,
        fabricIp: options.host.ip,
        receiverPort: this.role.fabricPort,
        rangeUrl: this.ranges.url,
        held: this.store.versions().map(heldVersion),
        active: this.store.active(),
      }),
      execute: (request) => this.execute(request),
      onAttached: () => this.statuses.repeatAll(),
      random: options.random.fork('attachment'),
      logger,
    });
    this.role = makeRole(this);
  }

  /** What the agent shows of itself. */
  face(): Agent {
    const { ranges } = this;
    const socket = (): FabricSocket | undefined => this.socket;
    return {
      name: this.options.name,
      store: this.store,
      get rangeBytesServed() {
        return ranges.bytesServed;
      },
      get socketStatistics() {
        return socket()?.statistics?.();
      },
      start: () => this.start(),
      whenAttached: (timeoutMs) => this.attachment.whenAttached(timeoutMs),
      stop: () => this.end('end'),
      kill: () => this.end('cut'),
    };
  }

  get isRunning(): boolean {
    return this.state === 'running';
  }

  private async start(): Promise<void> {
    if (this.state !== 'new')
      throw new DdfError('INVALID_REQUEST', `agent ${this.options.name} was started before`, {
        remedy: 'Make a new one on the same directory.',
      });
    this.state = 'running';
    try {
      this.socket = this.options.host.openSocket(this.role.fabricPort);
      this.socket.onDatagram = (payload) => {
        const label = peekFabricLabel(payload);
        if (label !== undefined) this.role.transfer(label)?.handlePacket(payload);
      };
      await this.socket.whenBound;
      await this.ranges.listen();
    } catch (error) {
      await this.end('cut');
      throw error;
    }
    this.attachment.start();
  }

  send(destinationIp: string, destinationPort: number, datagram: Uint8Array): void {
    this.socket?.send(destinationIp, destinationPort, datagram);
  }

  /** Whether another datagram can be sent now. */
  get hasRoom(): boolean {
    return this.socket?.hasRoom !== false;
  }

  announceHeld(stored: StoredPayload): void {
    this.attachment.send({ versionHeld: heldVersion(stored) });
  }

  announceDropped(objectId: bigint, version: number): void {
    this.attachment.send({ versionDropped: { objectId, version } });
  }

  /** @throws DdfError NOT_FOUND */
  requireVersion(objectId: bigint, version: number): StoredPayload {
    const stored = this.store.findVersion(objectId, version);
    if (stored === undefined)
      throw new DdfError('NOT_FOUND', `version ${version} of object ${formatObjectId(objectId)} is not held here`, {
        where: this.options.name,
      });
    return stored;
  }

  private async end(how: 'end' | 'cut'): Promise<void> {
    const wasRunning = this.state === 'running';
    this.state = 'ended';
    this.role.close();
    this.statuses.stop();
    this.attachment.stop(how);
    this.socket?.close();
    this.store.close();
    if (wasRunning) await this.ranges.close();
  }

  private async execute(request: Request): Promise<ReplyBody> {
    const { allowRange, dropVersion } = request;
    if (allowRange !== undefined) {
      this.ranges.allow(payloadIdOf(allowRange), allowRange.token, allowRange.ttlMs);
      return {};
    }
    if (dropVersion !== undefined) {
      const { objectId, version } = dropVersion;
      if (this.store.drop(objectId, version)) this.announceDropped(objectId, version);
      return {};
    }
    return this.role.execute(request);
  }
}

export function heldVersion({ manifest }: StoredPayload): MessageInput<HeldVersion> {
  const { objectId, version, sizeBytes, rootSha256 } = manifest;
  return { objectId, version, sizeBytes: BigInt(sizeBytes), rootSha256 };
}

export function payloadMessage({ manifest, manifestBytes, manifestSha256 }: StoredPayload): MessageInput<Payload> {
  const { objectId, version, baseVersion, sizeBytes } = manifest;
  return { objectId, version, baseVersion, sizeBytes: BigInt(sizeBytes), manifestBytes, manifestSha256 };
}

export function payloadIdOf({ objectId, version, baseVersion }: AllowRange | Payload): PayloadId {
  return { objectId, version, baseVersion };
}

/** What a request has to have and an encoder may have left out. */
export function required<T>(value: T | undefined, field: string): T {
  if (value === undefined) throw new DdfError('INVALID_REQUEST', `the request has no ${field}`, { where: field });
  return value;
}

export function unknownRequest(kind: string): DdfError {
  return new DdfError('INVALID_REQUEST', `a ${kind} does not do what was asked`, { where: 'request' });
}
