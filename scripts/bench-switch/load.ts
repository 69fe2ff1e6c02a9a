import type { Libc } from '../../base/linux/libc.ts';
import type { InterfaceControl } from '../../switch/ports/linux/interface.ts';
import { bindPacketSocket, openPacketSocket } from '../../switch/ports/linux/packet-socket.ts';
import { SendBatch } from '../../switch/ports/linux/send-batch.ts';
import { FrameCounter } from './frame-counter.ts';
import { type Arrival, SETTLED_AFTER, TURN, UPSTREAM } from './traffic.ts';

const BURST_FRAMES = 64;
/** A pause while the switch has all that it may have. Longer ones would empty its queues. */
const PAUSE_US = 50;
/** Frames that have not come out by then are lost. */
const PATIENCE_MS = 50;
const WARM_UP_SECONDS = 0.5;
const LONGEST_WARM_UP_SECONDS = 20;

export interface LoadResult {
  /** Frames per second that came out. */
  readonly perSecond: number;
  /** Frames that went in and did not come out, as a share. */
  readonly lostShare: number;
  /** Bytes of a frame that came out, on average. */
  readonly bytesPerFrame: number;
  /** Share of the time in which this process had to wait for the switch. */
  readonly waitingShare: number;
}

/** Since the start of a run; `down` and `bytes` since ever. */
interface Progress {
  atMs: number;
  sent: number;
  received: number;
  down: number;
  bytes: number;
  lost: number;
  waitedMs: number;
}

interface Interface {
  readonly name: string;
  readonly batch: SendBatch;
  readonly counter: FrameCounter;
  close(): void;
}

/**
 * The load on a switch with two ports, and what counts what comes out of it: at the other ends of the ports' cables. At most `window` frames are
 * inside the switch at a time, so that its queues neither run over nor empty.
 */
export class Load {
  private readonly libc: Libc;
  private readonly up: Interface;
  private readonly down: Interface;

  constructor(libc: Libc, interfaces: InterfaceControl, upstream: string, downstream: string) {
    this.libc = libc;
    this.up = openInterface(libc, interfaces, upstream);
    this.down = openInterface(libc, interfaces, downstream);
  }

  /** Blocks this process for the time of a run. Throws when nothing comes out, or where it does not belong. */
  run(schedule: readonly Arrival[], window: number, seconds: number): LoadResult {
    this.drain();
    const atStart = this.received();
    const startMs = performance.now();
    const now: Progress = { atMs: startMs, sent: 0, received: 0, down: 0, bytes: 0, lost: 0, waitedMs: 0 };
    let from: Progress | undefined;
    let progressMs = startMs;
    for (;;) {
      this.drain();
      now.atMs = performance.now();
      const received = this.received() - atStart;
      if (received !== now.received) progressMs = now.atMs;
      now.received = received;
      now.down = this.down.counter.frames;
      now.bytes = this.up.counter.bytes + this.down.counter.bytes;
      if (from === undefined) {
        if (now.atMs - startMs >= WARM_UP_SECONDS * 1000 && now.sent >= 2 * SETTLED_AFTER) from = { ...now };
        else if (now.atMs - startMs > LONGEST_WARM_UP_SECONDS * 1000) throw new Error('next to nothing comes out');
      } else if (now.atMs - from.atMs >= seconds * 1000) {
        break;
      }
      let inside = now.sent - now.received - now.lost;
      if (inside > 0 && now.atMs - progressMs > PATIENCE_MS) {
        now.lost += inside;
        inside = 0;
        progressMs = now.atMs;
      }
      const burst = Math.min(window - inside, BURST_FRAMES);
      if (burst < Math.min(BURST_FRAMES, window) / 2) {
        this.libc.sleepUs(PAUSE_US);
        now.waitedMs += performance.now() - now.atMs;
        continue;
      }
      for (let i = 0; i < burst; i++) {
        const { port, memory, start, end } = schedule[now.sent++ % schedule.length]!;
        (port === UPSTREAM ? this.up : this.down).batch.add(memory, start, end);
      }
      this.down.batch.flush();
      this.up.batch.flush();
    }
    this.settle();
    return resultOf(from, now);
  }

  close(): void {
    this.up.close();
    this.down.close();
  }

  /** Waits until nothing comes out any more. */
  private settle(): void {
    for (let quiet = 0; quiet < 4; quiet++) {
      const before = this.received();
      this.libc.sleepUs(PATIENCE_MS * 1000);
      this.drain();
      if (this.received() !== before) quiet = 0;
    }
  }

  private drain(): void {
    this.up.counter.drain();
    this.down.counter.drain();
  }

  private received(): number {
    return this.up.counter.frames + this.down.counter.frames;
  }
}

function resultOf(from: Progress, to: Progress): LoadResult {
  const seconds = (to.atMs - from.atMs) / 1000;
  const frames = to.received - from.received;
  const lostShare = (to.lost - from.lost) / (to.sent - from.sent);
  const downShare = (to.down - from.down) / frames;
  const expectedShare = (TURN - 1) / TURN;
  if (lostShare < 0.001 && Math.abs(downShare - expectedShare) > 0.005)
    throw new Error(`${100 * downShare} % of the frames came out downstream, expected ${100 * expectedShare} %`);
  return {
    perSecond: frames / seconds,
    lostShare,
    bytesPerFrame: (to.bytes - from.bytes) / frames,
    waitingShare: (to.waitedMs - from.waitedMs) / 1000 / seconds,
  };
}

function openInterface(libc: Libc, interfaces: InterfaceControl, name: string): Interface {
  const { index } = interfaces.properties(name);
  const fd = openPacketSocket(libc, name);
  bindPacketSocket(libc, fd, 0, index, name);
  const counter = new FrameCounter(libc, name, index);
  return {
    name,
    batch: new SendBatch(libc, fd),
    counter,
    close: () => {
      counter.close();
      libc.close(fd);
    },
  };
}
