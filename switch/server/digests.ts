import type { Scheduler, Timer } from '../../base/clock.ts';
import type { DigestEntryConfig, P4Data } from '../../wire/p4runtime/messages.ts';

/** Messages of a list when the controller sets no limit. */
const MAX_LIST_SIZE = 1024;
/** Messages that wait for acknowledgements, per digest; the oldest lists are forgotten beyond that. */
const MAX_UNACKNOWLEDGED = 65_536;

export interface DigestListToSend {
  readonly digestId: number;
  readonly listId: bigint;
  readonly data: P4Data[];
}

interface SentList {
  readonly keys: readonly string[];
  readonly timer: Timer;
}

/**
 * Collects the messages of one digest into lists of distinct ones (P4Runtime 1.5, section "DigestEntry"). A message that was sent is not sent again
 * until its list is acknowledged or the acknowledgement is overdue.
 */
export class DigestLists {
  private readonly digestId: number;
  readonly config: DigestEntryConfig;
  private readonly scheduler: Scheduler;
  /** Returns whether anybody got it: what nobody got is not waited for. */
  private readonly send: (list: DigestListToSend) => boolean;
  private readonly nextListId: () => bigint;
  private buffer = new Map<string, P4Data>();
  private bufferTimer: Timer | undefined;
  /** In the order in which they were sent. */
  private readonly sent = new Map<bigint, SentList>();
  private readonly unacknowledged = new Set<string>();

  constructor(
    digestId: number,
    config: DigestEntryConfig,
    scheduler: Scheduler,
    nextListId: () => bigint,
    send: (list: DigestListToSend) => boolean,
  ) {
    this.digestId = digestId;
    this.config = config;
    this.scheduler = scheduler;
    this.nextListId = nextListId;
    this.send = send;
  }

  /** @param key equal for equal messages */
  add(key: string, message: () => P4Data): void {
    if (this.unacknowledged.has(key) || this.buffer.has(key)) return;
    this.buffer.set(key, message());
    const { maxListSize, maxTimeoutNs } = this.config;
    const limit = maxListSize === 0 ? MAX_LIST_SIZE : Math.min(maxListSize, MAX_LIST_SIZE);
    if (maxTimeoutNs === 0n || this.buffer.size >= limit) this.flush();
    else
      this.bufferTimer ??= this.scheduler.at(this.scheduler.nowUs() + nanosecondsToUs(maxTimeoutNs), () =>
        this.flush(),
      );
  }

  /** Sends what is there. */
  private flush(): void {
    this.bufferTimer?.cancel();
    this.bufferTimer = undefined;
    const { buffer } = this;
    if (buffer.size === 0) return;
    this.buffer = new Map();
    const listId = this.nextListId();
    if (!this.send({ digestId: this.digestId, listId, data: [...buffer.values()] })) return;
    const ackTimeoutUs = nanosecondsToUs(this.config.ackTimeoutNs);
    if (ackTimeoutUs === 0) return;
    const keys = [...buffer.keys()];
    for (const key of keys) this.unacknowledged.add(key);
    this.sent.set(listId, {
      keys,
      timer: this.scheduler.at(this.scheduler.nowUs() + ackTimeoutUs, () => this.acknowledge(listId)),
    });
    for (const oldest of this.sent.keys()) {
      if (this.unacknowledged.size <= MAX_UNACKNOWLEDGED) break;
      this.acknowledge(oldest);
    }
  }

  /** Also for lists whose time is over, or that never were: nothing happens then. */
  acknowledge(listId: bigint): void {
    const list = this.sent.get(listId);
    if (list === undefined) return;
    list.timer.cancel();
    this.sent.delete(listId);
    for (const key of list.keys) this.unacknowledged.delete(key);
  }

  stop(): void {
    this.bufferTimer?.cancel();
    for (const { timer } of this.sent.values()) timer.cancel();
    this.sent.clear();
    this.unacknowledged.clear();
    this.buffer.clear();
  }
}

function nanosecondsToUs(timeNs: bigint): number {
  return Number((timeNs + 999n) / 1000n);
}
