import { VirtualScheduler } from '../../base/clock.ts';
import type { DdfError } from '../../base/errors.ts';
import type { Logger } from '../../base/logger.ts';
import type { Random } from '../../base/random.ts';
import { Device } from '../../switch/device.ts';
import type { Frame } from '../../switch/ports/port.ts';
import { ensure } from './target.ts';

export const CPU_PORT = 510;

/** A device that complains when a frame is unaccounted for, or when its own code, not the program's, failed. */
export class WatchedDevice {
  readonly device: Device;
  scheduler = new VirtualScheduler();
  /** Frames that wait at a port; none where nothing is said. */
  readonly queued = new Map<number, number>();
  /** Frames that came out, by any port. */
  sent = 0;
  private fault: DdfError | undefined;

  private random: Random;

  constructor(random: Random) {
    this.random = random;
    this.device = new Device({
      deviceId: 1n,
      cpuPort: CPU_PORT,
      clock: { nowUs: () => this.scheduler.nowUs() },
      random: {
        uint32: () => this.random.uint32(),
        float: () => this.random.float(),
        below: (bound) => this.random.below(bound),
        chance: (p) => this.random.chance(p),
        fork: (name) => this.random.fork(name),
      },
      queueDepth: (port) => this.queued.get(port) ?? 0,
      logger: this.listener(),
    });
    this.countFrames();
  }

  /** Time and randomness begin anew; a program has to be loaded to forget the rest. What was compiled before may be loaded again. */
  restart(random: Random): void {
    this.random = random;
    this.scheduler = new VirtualScheduler();
    this.queued.clear();
    this.fault = undefined;
    this.countFrames();
  }

  /** Again, after someone else has listened to what comes out. */
  countFrames(): void {
    const count = (): void => {
      this.sent++;
    };
    this.device.onTransmit = count;
    this.device.onCpuFrame = count;
  }

  /**
   * Gives a frame and returns what became of it and its copies.
   * @throws Error for a packet that vanished, or an error other than those which a program may cause
   */
  receive(
    port: number,
    frame: Frame,
  ): { readonly transmitted: number; readonly dropped: number; readonly errors: number } {
    const { statistics } = this.device;
    const before = { ...statistics };
    const sentBefore = this.sent;
    // Faults are reported once a second: each of them counts here.
    this.scheduler.runUntil(this.scheduler.nowUs() + 1_000_001);
    this.device.receive(port, frame);
    const transmitted = statistics.transmitted - before.transmitted;
    const dropped = statistics.dropped - before.dropped;
    const errors = statistics.errors - before.errors;
    ensure(this.fault === undefined, () => `the switch failed: ${describeFault(this.fault!)}`);
    ensure(transmitted + dropped + errors > 0, () => 'a packet vanished: neither sent nor dropped nor failed');
    ensure(
      transmitted === this.sent - sentBefore,
      () => `${this.sent - sentBefore} frames came out, ${transmitted} were counted`,
    );
    ensure(statistics.received > before.received, () => 'a packet was not counted');
    return { transmitted, dropped, errors };
  }

  /** Keeps what is no fault of the program: the device wraps such errors, so they have a cause. */
  private listener(): Logger {
    const error = (fields: { error?: DdfError }): void => {
      if (fields.error?.cause !== undefined) this.fault ??= fields.error;
    };
    return { error, warn: error, info: () => undefined } as unknown as Logger;
  }
}

function describeFault(fault: DdfError): string {
  const { cause } = fault;
  return cause instanceof Error ? (cause.stack ?? cause.message) : fault.describe();
}
