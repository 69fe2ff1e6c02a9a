/**
 * Time as a value. Every protocol and switch asks a {@link Clock}; only the schedulers, two below and one in wall-clock.ts, know where it comes from.
 *
 * All times are whole microseconds since the scheduler's start (safe as a number for 285 years).
 */
export interface Clock {
  nowUs(): number;
}

/** A callback that is due later. `cancel` is idempotent and harmless after it ran. */
export interface Timer {
  cancel(): void;
}

/** A clock that can also call back. Callbacks with equal times run in the order they were scheduled. */
export interface Scheduler extends Clock {
  /** Runs `callback` once at `atUs`, or as soon as possible if that is past. */
  at(atUs: number, callback: () => void): Timer;
}

interface Scheduled extends Timer {
  readonly atUs: number;
  readonly order: number;
  callback: (() => void) | undefined;
}

/** A binary heap of callbacks by (time, order): what the schedulers share. */
export class Agenda {
  private readonly heap: Scheduled[] = [];
  private order = 0;

  add(atUs: number, callback: () => void): Timer {
    const item: Scheduled = {
      atUs,
      order: this.order++,
      callback,
      cancel() {
        this.callback = undefined;
      },
    };
    this.siftUp(item);
    return item;
  }

  /** The time of the next live callback. */
  nextUs(): number | undefined {
    this.dropCancelled();
    return this.heap[0]?.atUs;
  }

  /** Removes and returns the next live callback. */
  take(): { atUs: number; callback: () => void } | undefined {
    this.dropCancelled();
    const top = this.pop();
    return top?.callback === undefined ? undefined : { atUs: top.atUs, callback: top.callback };
  }

  private dropCancelled(): void {
    while (this.heap.length > 0 && this.heap[0]!.callback === undefined) this.pop();
  }

  private pop(): Scheduled | undefined {
    const heap = this.heap;
    const top = heap[0];
    const last = heap.pop();
    if (top === undefined || last === undefined || top === last) return top;
    let index = 0;
    for (;;) {
      let child = 2 * index + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && before(heap[child + 1]!, heap[child]!)) child++;
      if (!before(heap[child]!, last)) break;
      heap[index] = heap[child]!;
      index = child;
    }
    heap[index] = last;
    return top;
  }

  private siftUp(item: Scheduled): void {
    const heap = this.heap;
    let index = heap.length;
    heap.push(item);
    while (index > 0) {
      const parent = (index - 1) >> 1;
      if (!before(item, heap[parent]!)) break;
      heap[index] = heap[parent]!;
      index = parent;
    }
    heap[index] = item;
  }
}

function before(a: Scheduled, b: Scheduled): boolean {
  return a.atUs < b.atUs || (a.atUs === b.atUs && a.order < b.order);
}

/** Time that passes only when told to: a whole fabric runs in it deterministically, as fast as the processor allows. */
export class VirtualScheduler implements Scheduler {
  private readonly agenda = new Agenda();
  private timeUs = 0;

  nowUs(): number {
    return this.timeUs;
  }

  at(atUs: number, callback: () => void): Timer {
    return this.agenda.add(Math.max(Math.ceil(atUs), this.timeUs), callback);
  }

  /** Runs everything due up to and including `untilUs`, then stands at `untilUs`. */
  runUntil(untilUs: number): void {
    for (let next = this.agenda.nextUs(); next !== undefined && next <= untilUs; next = this.agenda.nextUs())
      this.step();
    this.timeUs = Math.max(this.timeUs, untilUs);
  }

  /**
   * Runs until `done` says so, nothing is left to run, or `limitUs` is reached.
   * @returns whether `done` was true at the end
   */
  runWhile(done: () => boolean, limitUs: number): boolean {
    while (!done()) {
      const next = this.agenda.nextUs();
      if (next === undefined || next > limitUs) return false;
      this.step();
    }
    return true;
  }

  private step(): void {
    const next = this.agenda.take();
    if (next === undefined) return;
    this.timeUs = next.atUs;
    next.callback();
  }
}

/**
 * Wall time, with one twist: while callbacks run, `nowUs` is the time they were due, not the time it has become. When the
 * processor cannot keep up with an emulated fabric, the fabric slows down as a whole instead of timing out: an overloaded
 * machine never looks like a lossy network. Between callbacks `nowUs` follows the wall clock, but never passes what is due.
 */
export class RealScheduler implements Scheduler {
  private readonly agenda = new Agenda();
  private readonly originMs = performance.now();
  private timeUs = 0;
  private wakeUp: NodeJS.Timeout | NodeJS.Immediate | undefined;
  private wakeUpUs = Number.POSITIVE_INFINITY;
  private running = false;
  private stopped = false;

  nowUs(): number {
    if (!this.running)
      this.timeUs = Math.max(this.timeUs, Math.min(this.wallUs(), this.agenda.nextUs() ?? Number.POSITIVE_INFINITY));
    return this.timeUs;
  }

  at(atUs: number, callback: () => void): Timer {
    const timer = this.agenda.add(Math.max(Math.ceil(atUs), this.nowUs()), callback);
    if (!this.running) this.arm();
    return timer;
  }

  /** How far the emulated time is behind the wall clock now, in microseconds. */
  lagUs(): number {
    return Math.max(0, this.wallUs() - this.nowUs());
  }

  /** Forgets everything that is scheduled; nothing runs afterwards and the process may exit. */
  stop(): void {
    this.stopped = true;
    this.disarm();
  }

  private wallUs(): number {
    return Math.floor((performance.now() - this.originMs) * 1000);
  }

  /** Timers of Node.js are a millisecond coarse: what is due sooner is awaited by yielding to the event loop. */
  private arm(): void {
    const next = this.agenda.nextUs();
    if (next === undefined || this.stopped || next >= this.wakeUpUs) return;
    this.disarm();
    this.wakeUpUs = next;
    const waitMs = (next - this.wallUs()) / 1000;
    this.wakeUp = waitMs > 1.5 ? setTimeout(() => this.run(), Math.floor(waitMs - 1)) : setImmediate(() => this.run());
  }

  private disarm(): void {
    if (this.wakeUp !== undefined) {
      clearTimeout(this.wakeUp as NodeJS.Timeout);
      clearImmediate(this.wakeUp as NodeJS.Immediate);
    }
    this.wakeUp = undefined;
    this.wakeUpUs = Number.POSITIVE_INFINITY;
  }

  /** One slice: at most ~4 ms, so that sockets, gRPC keepalives and signals get their turn. */
  private run(): void {
    this.wakeUp = undefined;
    this.wakeUpUs = Number.POSITIVE_INFINITY;
    if (this.stopped) return;
    const startUs = this.wallUs();
    let wallUs = startUs;
    this.running = true;
    try {
      for (let next = this.agenda.nextUs(); next !== undefined && next <= wallUs; next = this.agenda.nextUs()) {
        const item = this.agenda.take()!;
        this.timeUs = Math.max(this.timeUs, item.atUs);
        item.callback();
        wallUs = this.wallUs();
        if (wallUs - startUs > 4000) break;
      }
    } finally {
      this.running = false;
      this.arm();
    }
  }
}
