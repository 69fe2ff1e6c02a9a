import { Agenda, type Scheduler, type Timer } from './clock.ts';

/** Waits that a timer of Node.js is good for: it is a millisecond coarse, and late rather than early. */
const TIMER_FROM_US = 2000;
/** Longest time for which the thread is blocked at once: others wait as long. */
const LONGEST_BLOCK_US = 500;
const LONGEST_SLICE_US = 4000;

/**
 * Wall time as it is, for a process that deals with others: a callback that is late finds that it is late. (RealScheduler hides that, for a fabric
 * that is emulated in one process.) Waits below two milliseconds are exact to some 0.1 ms and leave the processor alone if there is something
 * to block in; otherwise the event loop turns until they are over.
 */
export class WallScheduler implements Scheduler {
  private readonly agenda = new Agenda();
  private readonly originMs = performance.now();
  private readonly blockUs: ((microseconds: number) => void) | undefined;
  private wakeUp: NodeJS.Timeout | NodeJS.Immediate | undefined;
  private wakeUpUs = Number.POSITIVE_INFINITY;
  private isRunning = false;
  private isStopped = false;

  /** @param blockUs blocks this thread for at most so many microseconds; may do what has come in meanwhile */
  constructor(blockUs?: (microseconds: number) => void) {
    this.blockUs = blockUs;
  }

  nowUs(): number {
    return Math.floor((performance.now() - this.originMs) * 1000);
  }

  at(atUs: number, callback: () => void): Timer {
    const timer = this.agenda.add(Math.ceil(atUs), callback);
    if (!this.isRunning) this.arm();
    return timer;
  }

  /** Forgets everything that is scheduled; nothing runs afterwards and the process may exit. */
  stop(): void {
    this.isStopped = true;
    this.disarm();
  }

  private arm(): void {
    const next = this.agenda.nextUs();
    if (next === undefined || this.isStopped || next >= this.wakeUpUs) return;
    this.disarm();
    this.wakeUpUs = next;
    const waitUs = next - this.nowUs();
    this.wakeUp =
      waitUs >= TIMER_FROM_US
        ? setTimeout(this.run, Math.floor(waitUs / 1000) - 1)
        : setImmediate(waitUs > 0 ? this.waitAndRun : this.run);
  }

  private disarm(): void {
    if (this.wakeUp !== undefined) {
      clearTimeout(this.wakeUp as NodeJS.Timeout);
      clearImmediate(this.wakeUp as NodeJS.Immediate);
    }
    this.wakeUp = undefined;
    this.wakeUpUs = Number.POSITIVE_INFINITY;
  }

  private readonly waitAndRun = (): void => {
    // What comes in meanwhile may have something done earlier.
    const waitUs = Math.min(this.wakeUpUs - this.nowUs(), LONGEST_BLOCK_US);
    if (waitUs > 0) this.blockUs?.(waitUs);
    this.run();
  };

  private readonly run = (): void => {
    this.disarm();
    if (this.isStopped) return;
    const startUs = this.nowUs();
    this.isRunning = true;
    try {
      for (let nowUs = startUs; nowUs - startUs <= LONGEST_SLICE_US; nowUs = this.nowUs()) {
        const next = this.agenda.nextUs();
        if (next === undefined || next > nowUs) break;
        this.agenda.take()!.callback();
      }
    } finally {
      this.isRunning = false;
      this.arm();
    }
  };
}
