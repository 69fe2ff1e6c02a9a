import { EFD_CLOEXEC_NONBLOCK, POLLIN } from '../../base/linux/abi.ts';
import type { Libc } from '../../base/linux/libc.ts';
import { reuseFrames } from '../runtime/frames.ts';
import { AfPacketPort } from './af-packet.ts';
import type { InterfaceControl } from './linux/interface.ts';
import { LinkMonitor, type LinkState } from './linux/link-monitor.ts';
import { systemError } from './linux/system-error.ts';

/** Frames that one port hands in before the next one gets its turn and everything is sent. */
const FRAMES_PER_TURN = 64;
/** Turns without a frame until it sleeps: whoever answers has a moment to do so. */
const IDLE_TURNS = 4;
/** Turns without sleep until changes of interfaces are looked for all the same: a second or less of a busy switch. */
const TURNS_PER_LINK_CHECK = 256;
/** Sleep is interrupted by frames; this is only for what no descriptor tells. */
const LONGEST_SLEEP_MS = 1000;

export interface PortLoopEvents {
  /** An interface has changed its state. */
  onLink(port: AfPacketPort, state: LinkState): void;
  /** An interface that was deleted is there again: `fresh` is the port on it, `old` is closed. */
  onReturn(old: AfPacketPort, fresh: AfPacketPort): void;
  /** There is an interface of that name again, but it cannot be used; it is tried again when something changes. */
  onReturnFailed(old: AfPacketPort, error: Error): void;
}

/**
 * Moves frames in and out of the ports of a switch, on the event loop: a turn takes some frames of every port and sends what became of them, then
 * timers, sockets and signals get theirs. When no frame comes, another thread waits in poll(2).
 */
export class PortLoop {
  private readonly libc: Libc;
  private readonly interfaces: InterfaceControl;
  private readonly ports: AfPacketPort[];
  private readonly events: PortLoopEvents;
  private readonly links: LinkMonitor;
  private readonly wakeFd: number;
  /** struct pollfd: fd 32, events 16, revents 16. Of the wake-up, the link monitor and the ports. */
  private readonly descriptors: Int32Array;
  private readonly descriptorsAddress: bigint;
  private waiting: AfPacketPort[] = [];
  private inTurn = false;
  private idleTurns = 0;
  private turnsAwake = 0;
  private stopped = false;
  private ended: (() => void) | undefined;
  private asleep = false;
  private flushScheduled = false;

  /** Throws PORT_UNAVAILABLE. */
  constructor(libc: Libc, interfaces: InterfaceControl, ports: readonly AfPacketPort[], events: PortLoopEvents) {
    this.libc = libc;
    this.interfaces = interfaces;
    this.ports = [...ports];
    this.events = events;
    this.links = new LinkMonitor(libc);
    this.wakeFd = libc.eventfd(0, EFD_CLOEXEC_NONBLOCK);
    if (this.wakeFd < 0) {
      this.links.close();
      throw systemError(libc, 'make an event descriptor', 'eventfd');
    }
    this.descriptors = new Int32Array(2 * (ports.length + 2));
    this.descriptorsAddress = BigInt(libc.addressOf(this.descriptors.buffer));
    for (const [i, fd] of [this.wakeFd, this.links.fd, ...ports.map((port) => port.fd)].entries()) this.listen(i, fd);
    for (const port of ports) this.connect(port);
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
    if (++this.turnsAwake === TURNS_PER_LINK_CHECK) this.readLinks();
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

  private connect(port: AfPacketPort): void {
    for (const other of this.ports) port.addKnownMemory(other.memory);
    port.onWaiting = () => this.addWaiting(port);
  }

  private readLinks(): void {
    this.turnsAwake = 0;
    let changes = false;
    const complete = this.links.read((index, state) => {
      changes = true;
      const at = this.ports.findIndex((port) => port.interfaceIndex === index);
      if (at >= 0) this.setState(at, state);
    });
    if (complete && !changes) return;
    for (const [at, port] of this.ports.entries()) {
      if (!complete) this.setState(at, this.stateOf(port));
      if (port.state === 'gone') this.reopen(at, port);
    }
  }

  /** What the kernel says when asked. */
  private stateOf({ interfaceName, interfaceIndex }: AfPacketPort): LinkState {
    try {
      const { index, isUp } = this.interfaces.properties(interfaceName);
      return index !== interfaceIndex ? 'gone' : isUp ? 'up' : 'down';
    } catch {
      return 'gone';
    }
  }

  private setState(at: number, state: LinkState): void {
    const port = this.ports[at]!;
    const before = port.state;
    // Its sockets are dead, even if another interface gets its index.
    if (before === 'gone') return;
    port.state = state;
    // Its socket would wake us up for ever.
    if (state === 'gone') this.listen(at + 2, -1);
    if (state !== before) this.events.onLink(port, state);
  }

  /** Puts a new port in place of one whose interface was deleted, when there is one of that name again. */
  private reopen(at: number, old: AfPacketPort): void {
    if (this.interfaces.isUp(old.interfaceName) === undefined) return;
    let fresh: AfPacketPort;
    try {
      fresh = new AfPacketPort(this.libc, this.interfaces, old.interfaceName);
    } catch (error) {
      this.events.onReturnFailed(old, error as Error);
      return;
    }
    old.close();
    this.ports[at] = fresh;
    for (const port of this.ports) {
      port.removeKnownMemory(old.memory);
      port.addKnownMemory(fresh.memory);
    }
    this.connect(fresh);
    this.listen(at + 2, fresh.fd);
    this.events.onReturn(old, fresh);
    this.events.onLink(fresh, fresh.state);
  }

  private listen(at: number, fd: number): void {
    this.descriptors[2 * at] = fd;
    new Int16Array(this.descriptors.buffer)[4 * at + 2] = POLLIN;
  }

  private hasEvents(at: number): boolean {
    return new Int16Array(this.descriptors.buffer)[4 * at + 3] !== 0;
  }
}
