import type { Scheduler, Timer } from '../../base/clock.ts';
import { type DdfError, toDdfError } from '../../base/errors.ts';

/** A state machine of agents/protocol as its driver sees it. */
export interface TransferMachine<Event> {
  handlePacket(nowUs: number, datagram: Uint8Array): void;
  handleTimeout(nowUs: number): void;
  pollTransmit(nowUs: number): Uint8Array | undefined;
  pollTimeout(): number | undefined;
  poll(): Event | undefined;
}

export interface TransferDriverOptions<Event> {
  readonly machine: TransferMachine<Event>;
  readonly scheduler: Scheduler;
  /** Sends one datagram to the other side; the bytes are valid only during the call. */
  readonly send: (datagram: Uint8Array) => void;
  /** Whether `send` has room for another datagram. Default: always. */
  readonly hasRoom?: () => boolean;
  /**
   * Shortest wait for the machine's next timeout, in microseconds: what becomes due meanwhile leaves in one batch. At most what its pacing may
   * make up for. Default 1.
   */
  readonly leastWaitUs?: number;
  /** May call the machine; what that changes is seen to afterwards. */
  readonly onEvent: (event: Event) => void;
  /** The machine, or `onEvent`, threw: the transfer is over. */
  readonly onFailure: (error: DdfError) => void;
}

/** Packets sent before others get their turn. */
const PACKETS_PER_TURN = 64;
/** When room is looked for again. */
const NO_ROOM_WAIT_US = 500;
/** What a turn leaves behind: packets for the next one, packets that there is no room for, or nothing before the machine's next timeout. */
type Rest = 'packets' | 'no room' | 'none';

/** Gives a state machine the time and the network: hands packets in, sends what it has, wakes it when it asks, passes its events on. */
export class TransferDriver<Event> {
  private readonly options: TransferDriverOptions<Event>;
  private timer: Timer | undefined;
  private armedUs = 0;
  private isPumping = false;
  private isStopped = false;

  constructor(options: TransferDriverOptions<Event>) {
    this.options = options;
  }

  handlePacket(datagram: Uint8Array): void {
    this.turn((nowUs) => this.options.machine.handlePacket(nowUs, datagram));
  }

  /** To be called after every call of the machine that the driver did not make itself. */
  pump(): void {
    this.turn(() => {});
  }

  /** The machine is not called any more. */
  stop(): void {
    this.isStopped = true;
    this.timer?.cancel();
  }

  private turn(input: (nowUs: number) => void): void {
    if (this.isStopped) return;
    if (this.isPumping) {
      input(this.options.scheduler.nowUs());
      return;
    }
    this.isPumping = true;
    try {
      const nowUs = this.options.scheduler.nowUs();
      input(nowUs);
      const rest = this.exchange(nowUs);
      if (!this.isStopped) this.arm(nowUs, rest);
    } catch (error) {
      this.stop();
      this.options.onFailure(toDdfError(error));
    } finally {
      this.isPumping = false;
    }
  }

  private exchange(nowUs: number): Rest {
    const { machine, send, hasRoom, onEvent } = this.options;
    for (let sent = 0; sent < PACKETS_PER_TURN; sent++) {
      for (let event = machine.poll(); event !== undefined && !this.isStopped; event = machine.poll()) onEvent(event);
      if (this.isStopped) return 'none';
      if (hasRoom?.() === false) return 'no room';
      const datagram = machine.pollTransmit(nowUs);
      if (datagram !== undefined) {
        send(datagram);
        continue;
      }
      const event = machine.poll();
      if (event === undefined) return 'none';
      onEvent(event);
    }
    return 'packets';
  }

  /** An earlier wake-up than needed is harmless, and cheaper than a new timer for every packet. */
  private arm(nowUs: number, rest: Rest): void {
    const atUs = this.nextTurnUs(nowUs, rest);
    if (atUs === undefined) return;
    if (this.timer !== undefined && this.armedUs <= atUs) return;
    this.timer?.cancel();
    this.armedUs = atUs;
    this.timer = this.options.scheduler.at(atUs, () => {
      this.timer = undefined;
      this.turn((now) => this.options.machine.handleTimeout(now));
    });
  }

  private nextTurnUs(nowUs: number, rest: Rest): number | undefined {
    if (rest === 'packets') return nowUs;
    const dueUs = this.options.machine.pollTimeout();
    if (dueUs === undefined) return undefined;
    // What was due now has been asked for above: a machine that still names the present would keep us in it for ever.
    return Math.max(dueUs, nowUs + (rest === 'no room' ? NO_ROOM_WAIT_US : (this.options.leastWaitUs ?? 1)));
  }
}
