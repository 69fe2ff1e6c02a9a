import type { DigestList, DigestListAck, StreamMessageResponse, TableEntry } from '../../wire/p4runtime/messages.ts';
import type { PacketMetadataCodec } from '../../wire/p4runtime/packet-metadata.ts';
import { BoundedQueue } from './bounded-queue.ts';
import { RecentKeys } from './recent-keys.ts';

/** A packet-in with its metadata by name, as P4Info calls it. */
export interface ReceivedPacket {
  readonly payload: Uint8Array;
  readonly metadata: Readonly<Record<string, bigint>>;
}

/** Packets handed over before other messages of the stream get their turn. */
const PACKETS_PER_TURN = 64;
/** Digest lists and idle notices that wait, at most; then the oldest are dropped. */
const NOTICE_QUEUE_LENGTH = 256;
/** Digest lists and idle entries that are remembered in order to know a repetition. */
const REMEMBERED = 1024;
/** For entries that a switch sends without their time-out. */
const DEFAULT_IDLE_TIMEOUT_MS = 1_000;

export interface InboxOptions {
  readonly packetQueueLength: number;
  readonly acknowledge: (ack: DigestListAck) => void;
}

/**
 * What comes over the stream beside arbitration, on its way to whoever wants it: three bounded queues, so that a flood of packets pushes out packets only.
 * Handlers are called in order and never from within a call of the connection.
 */
export class StreamInbox {
  onPacket: ((packet: ReceivedPacket) => void) | undefined;
  onDigest: ((list: DigestList) => void | Promise<void>) | undefined;
  onIdle: ((entries: readonly TableEntry[]) => void) | undefined;
  /** Metadata of packets; packets that come before it is known mean nothing. */
  packetIn: PacketMetadataCodec | undefined;
  private readonly acknowledge: (ack: DigestListAck) => void;
  private readonly packets: BoundedQueue<ReceivedPacket>;
  private readonly digests = new BoundedQueue<DigestList>(NOTICE_QUEUE_LENGTH);
  private readonly idle = new BoundedQueue<TableEntry[]>(NOTICE_QUEUE_LENGTH);
  private readonly handledDigests = new RecentKeys(REMEMBERED);
  private readonly actingOn = new Set<string>();
  private readonly reportedIdle = new RecentKeys(REMEMBERED);
  private malformedPackets = 0;
  private draining: NodeJS.Immediate | undefined;

  constructor({ packetQueueLength, acknowledge }: InboxOptions) {
    this.packets = new BoundedQueue(packetQueueLength);
    this.acknowledge = acknowledge;
  }

  /** Packets that were lost because the queue was full, or that had metadata of another program. */
  get packetsDropped(): number {
    return this.packets.dropped + this.malformedPackets;
  }

  receive({ packet, digest, idleTimeoutNotification: notice }: StreamMessageResponse): void {
    if (packet !== undefined) {
      if (this.packetIn === undefined) return;
      try {
        this.packets.push({ payload: packet.payload, metadata: this.packetIn.toValues(packet.metadata) });
      } catch {
        this.malformedPackets++;
        return;
      }
    } else if (digest !== undefined) this.digests.push(digest);
    else if (notice !== undefined) this.idle.push(notice.tableEntry);
    else return;
    this.draining ??= setImmediate(() => this.drain());
  }

  /** Another switch, or the same one after a restart: its lists begin anew. */
  forget(): void {
    this.handledDigests.clear();
    this.reportedIdle.clear();
  }

  close(): void {
    if (this.draining !== undefined) clearImmediate(this.draining);
    this.draining = undefined;
    this.packets.clear();
    this.digests.clear();
    this.idle.clear();
  }

  private drain(): void {
    this.draining = undefined;
    for (let list = this.digests.take(); list !== undefined; list = this.digests.take()) this.handleDigest(list);
    for (let entries = this.idle.take(); entries !== undefined; entries = this.idle.take()) this.handleIdle(entries);
    for (let i = 0; i < PACKETS_PER_TURN; i++) {
      const packet = this.packets.take();
      if (packet === undefined) return;
      this.onPacket?.(packet);
    }
    if (this.packets.length > 0) this.draining ??= setImmediate(() => this.drain());
  }

  /** Acknowledged after it was acted upon; one whose handler fails is not, so that the switch repeats it. A repetition is acknowledged only. */
  private handleDigest(list: DigestList): void {
    const { digestId, listId } = list;
    const key = `${digestId}/${listId}`;
    if (this.handledDigests.has(key)) {
      this.acknowledge({ digestId, listId });
      return;
    }
    const { onDigest } = this;
    if (onDigest === undefined || this.actingOn.has(key)) return;
    this.actingOn.add(key);
    void (async () => {
      try {
        await onDigest(list);
      } catch {
        return;
      } finally {
        this.actingOn.delete(key);
      }
      this.handledDigests.add(key);
      this.acknowledge({ digestId, listId });
    })();
  }

  /** Some switches repeat a notice every few seconds: before an entry's time-out has passed once more, it says nothing new. */
  private handleIdle(entries: readonly TableEntry[]): void {
    const nowMs = Date.now();
    const news = entries.filter((entry) => {
      const timeoutMs = entry.idleTimeoutNs > 0n ? Number(entry.idleTimeoutNs) / 1e6 : DEFAULT_IDLE_TIMEOUT_MS;
      const key = idleKey(entry);
      const reportedMs = this.reportedIdle.valueOf(key);
      if (reportedMs !== undefined && nowMs - reportedMs < timeoutMs) return false;
      this.reportedIdle.add(key, nowMs);
      return true;
    });
    if (news.length > 0) this.onIdle?.(news);
  }
}

function idleKey({ tableId, priority, match }: TableEntry): string {
  return JSON.stringify([tableId, priority, match], (_, value: unknown) =>
    value instanceof Uint8Array ? Buffer.from(value).toString('hex') : value,
  );
}
