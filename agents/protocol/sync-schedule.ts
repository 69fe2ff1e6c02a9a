/** While data flows: a SYNC after so many packets, but not more often than this. */
const PACKETS_BETWEEN = 64;
const SHORTEST_INTERVAL_US = 20_000;
/** After the last symbol: at intervals that double, so often at most. */
const TAIL_SYNCS = 10;
const LONGEST_TAIL_INTERVAL_US = 1_000_000;
/** A transfer ends with so many. */
const CLOSED_SYNCS = 3;

/**
 * When SYNCs leave. They are few, because small payloads have to bear them too: a tail of 10 and 3 closed ones are 1.1 kB on the wire.
 */
export class SyncSchedule {
  private readonly firstTailIntervalUs: number;
  private packets = 0;
  private notBeforeUs: number;
  private tailDueUs: number | undefined;
  private tailIntervalUs: number;
  private tailLeft = 0;
  private closedDueUs: number | undefined;
  private closedLeft = CLOSED_SYNCS;

  constructor(nowUs: number, rttUs: number) {
    this.firstTailIntervalUs = Math.max(rttUs, 1000);
    this.tailIntervalUs = this.firstTailIntervalUs;
    this.notBeforeUs = nowUs + SHORTEST_INTERVAL_US;
  }

  packetSent(): void {
    this.packets++;
  }

  /** Everything has been sent once: the first SYNC of the tail is due at once. */
  startTail(nowUs: number): void {
    this.tailDueUs = nowUs;
    this.tailLeft = TAIL_SYNCS;
    this.tailIntervalUs = this.firstTailIntervalUs;
  }

  startClosing(nowUs: number): void {
    this.closedDueUs = nowUs;
  }

  /** Whether a SYNC should leave now. */
  due(nowUs: number): boolean {
    if (this.closedDueUs !== undefined) return nowUs >= this.closedDueUs;
    if (this.tailDueUs !== undefined) return nowUs >= this.tailDueUs;
    return this.tailLeft === 0 && this.packets >= PACKETS_BETWEEN && nowUs >= this.notBeforeUs;
  }

  /** When a SYNC is due that depends on time alone. */
  dueAtUs(): number | undefined {
    return this.closedDueUs ?? this.tailDueUs;
  }

  /** @returns whether it was the last closed one */
  syncSent(nowUs: number): boolean {
    this.packets = 0;
    this.notBeforeUs = nowUs + SHORTEST_INTERVAL_US;
    if (this.closedDueUs !== undefined) {
      this.closedDueUs = nowUs + this.firstTailIntervalUs;
      this.closedLeft--;
      return this.closedLeft === 0;
    }
    if (this.tailDueUs !== undefined) {
      this.tailLeft--;
      this.tailDueUs = this.tailLeft > 0 ? nowUs + this.tailIntervalUs : undefined;
      this.tailIntervalUs = Math.min(2 * this.tailIntervalUs, LONGEST_TAIL_INTERVAL_US);
    }
    return false;
  }
}
