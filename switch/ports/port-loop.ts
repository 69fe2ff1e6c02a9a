import { EFD_CLOEXEC_NONBLOCK, POLLIN } from '../../base/linux/abi.ts';
import type { Libc } from '../../base/linux/libc.ts';
import { reuseFrames } from '../runtime/frames.ts';
import type { AfPacketPort } from './af-packet.ts';
import type { InterfaceControl } from './linux/interface.ts';
import { LinkMonitor, type LinkState } from './linux/link-monitor.ts';
import { systemError } from './linux/system-error.ts';

/** Frames that one port hands in before the next one gets its turn and everything is sent. */
const FRAMES_PER_TURN = 64;
/** Turns without a frame until it sleeps: whoever answers has a moment to do so. */
const IDLE_TURNS = 4;
/** Sleep is interrupted by frames; this is only for what no descriptor tells. */
const LONGEST_SLEEP_MS = 1000;

/**
 * Moves frames in and out of the ports of a switch, on the event loop: a turn takes some frames of every port and sends what became of them, then
 * timers, sockets and signals get theirs. When no frame comes, another thread waits in poll(2).
 */
export class PortLoop {
  private readonly libc: Libc;
  private readonly interfaces: InterfaceControl;
  private readonly ports: readonly AfPacketPort[];
  private readonly onLink: (port: AfPacketPort, state: LinkState) => void;
  private readonly links: LinkMonitor;
  private readonly wakeFd: number;
  /** struct pollfd: fd 32, events 16, revents 16. Of the wake-up, the link monitor and the ports. */
  private readonly descriptors: Int32Array;
  private readonly descriptorsAddress: bigint;
  private waiting: AfPacketPort[] = [];
  private inTurn = false;
  private idleTurns = 0;
  private stopped = false;
  private ended: (() => void) | undefined;
  private asleep = false;
  private flushScheduled = false;

  /**
   * Throws PORT_UNAVAILABLE.
   * @param onLink called when an interface has changed its state
   */
  constructor(
    libc: Libc,
    interfaces: InterfaceControl,
    ports: readonly AfPacketPort[],
    onLink: (port: AfPacketPort, state: LinkState) => void,
  ) {
    this.libc = libc;
    this.interfaces = interfaces;
    this.ports = ports;
    this.onLink = onLink;
    this.links = new LinkMonitor(libc);
    this.wakeFd = libc.eventfd(0, EFD_CLOEXEC_NONBLOCK);
    if (this.wakeFd < 0) {
      this.links.close();
      throw systemError(libc, 'make an event descriptor', 'eventfd');
    }
    this.descriptors = new Int32Array(2 * (ports.length + 2));
    this.descriptorsAddress = BigInt(libc.addressOf(this.descriptors.buffer));
    for (const [i, fd] of [this.wakeFd, this.links.fd, ...ports.map((port) => port.fd)].entries()) this.listen(i, fd);
    for (const port of ports) {
      for (const other of ports) port.addKnownMemory(other.memory);
      port.onWaiting = () => this.addWaiting(port);
    }
  }

  start(): void {
    setImmediate(this.turn);
  }

  /** Resolves when nothing of it runs any more; the ports remain open. */
  stop(): Promise<void> {
    return new Promise((resolve) => {
      if (this.stopped) {
        resolve();
        return;
      }
      this.stopped = true;
      this.ended = resolve;
      if (this.asleep) this.libc.write(this.wakeFd, new Uint8Array(new BigUint64Array([1n]).buffer), 8);
      else setImmediate(this.turn);
    });
  }

  private readonly turn = (): void => {
    if (this.stopped) {
      this.end();
      return;
    }
    let taken = 0;
    this.inTurn = true;
    try {
      for (const port of this.ports) taken += port.receive(FRAMES_PER_TURN);
    } finally {
      this.inTurn = false;
      // Frames that leave may lie in the rings: they go first.
      this.flush();
      for (const port of this.ports) port.release();
      reuseFrames();
    }
    this.idleTurns = taken > 0 ? 0 : this.idleTurns + 1;
    if (this.idleTurns <= IDLE_TURNS) setImmediate(this.turn);
    else this.sleep();
  };

  private sleep(): void {
    this.asleep = true;
    const count = this.descriptors.length / 2;
    this.libc.pollAsync(this.descriptorsAddress, count, LONGEST_SLEEP_MS, () => {
      this.asleep = false;
      this.idleTurns = 0;
      if (this.hasEvents(1)) this.readLinks();
      this.turn();
    });
  }

  private end(): void {
    const { ended } = this;
    if (ended === undefined) return;
    this.ended = undefined;
    this.flush();
    this.links.close();
    this.libc.close(this.wakeFd);
    ended();
  }

  private addWaiting(port: AfPacketPort): void {
    this.waiting.push(port);
    if (this.inTurn || this.flushScheduled) return;
    this.flushScheduled = true;
    setImmediate(this.flush);
  }

  private readonly flush = (): void => {
    this.flushScheduled = false;
    for (const port of this.waiting) port.flush();
    this.waiting.length = 0;
  };

  private readLinks(): void {
    const complete = this.links.read((index, state) => {
      const at = this.ports.findIndex((port) => port.interfaceIndex === index);
      if (at >= 0) this.setState(at, state);
    });
    if (complete) return;
    this.ports.forEach((port, at) => {
      const isUp = this.interfaces.isUp(port.interfaceName);
      this.setState(at, isUp === undefined ? 'gone' : isUp ? 'up' : 'down');
    });
  }

  private setState(at: number, state: LinkState): void {
    const port = this.ports[at]!;
    const before = port.state;
    port.state = state;
    // An interface that is gone does not come back under its index, and its socket would wake us up for ever.
    if (state === 'gone') this.listen(at + 2, -1);
    if (state !== before && before !== 'gone') this.onLink(port, state);
  }

  private listen(at: number, fd: number): void {
    this.descriptors[2 * at] = fd;
    new Int16Array(this.descriptors.buffer)[4 * at + 2] = POLLIN;
  }

  private hasEvents(at: number): boolean {
    return new Int16Array(this.descriptors.buffer)[4 * at + 3] !== 0;
  }
}
