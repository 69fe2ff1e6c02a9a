import type { Clock } from '../base/clock.ts';
import { DdfError, toDdfError } from '../base/errors.ts';
import type { Logger } from '../base/logger.ts';
import type { Random } from '../base/random.ts';
import { loadProgram } from './bmv2/load-program.ts';
import type { Program } from './bmv2/program.ts';
import { type CompileOptions, compileProgram } from './compile/compile-program.ts';
import type { DeviceControl, LoadableProgram, ProgramControl } from './control.ts';
import type { Frame } from './ports/port.ts';
import { FrameMemory } from './runtime/frames.ts';
import { PortStates } from './runtime/port-states.ts';
import {
  type Factories,
  type ProgramFactory,
  prepare,
  RunningProgram,
  type Surroundings,
} from './runtime/running-program.ts';
import type { PacketTrace } from './trace/events.ts';

export interface DeviceOptions {
  readonly deviceId: bigint;
  /** Frames for this port go to {@link Device.onCpuFrame}. */
  readonly cpuPort: number;
  readonly clock: Clock;
  /** The egress_spec of a packet that is dropped, 0..511; default 511. */
  readonly dropPort?: number;
  /** Queues per port, at least 1: packets of a higher priority than there are queues are dropped; default 1. */
  readonly priorityQueues?: number;
  /** For P4's `random`. */
  readonly random: Random;
  /** Frames in a port's transmit queue now; default: none in any. */
  readonly queueDepth?: (port: number) => number;
  /** Faults of packets at `error`, messages of the program (`log_msg`) at `info`; default: nowhere. */
  readonly logger?: Logger;
}

export interface DeviceStatistics {
  received: number;
  /** Frames sent, those to the CPU included. */
  transmitted: number;
  /**
   * Packets and copies that went nowhere: by the program's decision, multicast to nobody, no program loaded, or too many packets
   * sent back into the device while it was busy.
   */
  dropped: number;
  /** Packets whose processing failed (an assertion of the program, a division by zero); what was left of them is lost. */
  errors: number;
  /** Of those errors, the assertions (`assert`, `assume`) that did not hold. */
  failedAssertions: number;
  /** Accesses of counters, meters and registers beyond their size; they did nothing. */
  outOfRange: number;
}

export interface TraceFilter {
  /** Only packets that come by this port. */
  readonly port?: number;
}

/** A frame that came while another was processed. */
interface Waiting {
  readonly port: number;
  readonly memory: FrameMemory;
  readonly start: number;
  readonly end: number;
}

interface Watcher {
  readonly port: number | undefined;
  left: number;
  readonly onTrace: (trace: PacketTrace) => void;
}

const MAX_TRACES = 1000;
const MAX_WATCHERS = 16;
/** As many packets as simple_switch's input buffer holds. */
const BACKLOG_LIMIT = 1024;
/** Faults are counted always but written down only so often. */
const FAULT_REPORT_INTERVAL_US = 1_000_000;

/**
 * A software switch: frames come in by {@link receive}, leave by {@link onTransmit}, and what happens in between is a P4 program
 * compiled for v1model. A packet is processed to completion before `receive` returns.
 */
export class Device implements DeviceControl {
  readonly deviceId: bigint;
  readonly cpuPort: number;
  readonly statistics: DeviceStatistics = {
    received: 0,
    transmitted: 0,
    dropped: 0,
    errors: 0,
    failedAssertions: 0,
    outOfRange: 0,
  };
  /** Called with every frame that leaves by another port than the CPU's; the frame is the callee's. */
  onTransmit: ((port: number, frame: Frame) => void) | undefined;
  /** In place of {@link onTransmit}, where many frames leave: no object is made for each. */
  onTransmitAt: ((port: number, memory: FrameMemory, start: number, end: number) => void) | undefined;
  onCpuFrame: ((frame: Frame) => void) | undefined;
  private running: RunningProgram | undefined;
  private readonly clock: Clock;
  private readonly logger: Logger | undefined;
  private readonly surroundings: Surroundings;
  private readonly compileOptions: CompileOptions;
  private busy = false;
  private readonly backlog: Waiting[] = [];
  private nextReportUs = 0;
  private readonly watchers: Watcher[] = [];
  private readonly ports = new PortStates();

  constructor(options: DeviceOptions) {
    this.deviceId = options.deviceId;
    this.cpuPort = options.cpuPort;
    this.clock = options.clock;
    this.logger = options.logger;
    this.compileOptions = { dropPort: options.dropPort ?? 511, priorityQueues: options.priorityQueues ?? 1 };
    this.surroundings = {
      clock: options.clock,
      random: options.random,
      statistics: this.statistics,
      ports: this.ports,
      queueDepth: options.queueDepth ?? (() => 0),
      transmit: (port, memory, start, end) => this.transmit(port, memory, start, end),
      log: (message) => this.logger?.info({ device: String(this.deviceId) }, message),
    };
  }

  get program(): ProgramControl | undefined {
    return this.running;
  }

  compile(bmv2Json: Uint8Array): LoadableProgram {
    const program = loadProgram(bmv2Json);
    let traced: ProgramFactory | undefined;
    const factories: Factories = {
      plain: prepare(compileProgram(program, this.compileOptions)),
      traced: () => {
        traced ??= prepare(compileProgram(program, this.compileOptions, true));
        return traced;
      },
    };
    return new Compiled(program, factories, this.surroundings);
  }

  load(program: LoadableProgram): ProgramControl {
    if (!(program instanceof Compiled && program.isFor(this.surroundings)))
      throw new TypeError('the program was not compiled by this device');
    this.running = program.take();
    return this.running;
  }

  /**
   * Takes the frame and processes it. A frame that an output brings back while another is processed waits for its turn.
   *
   * What is transmitted may be a view of the same memory; besides that, nothing refers to it afterwards.
   */
  receive(port: number, frame: Frame): void {
    this.receiveAt(port, new FrameMemory(frame), 0, frame.length);
  }

  /** The same for frames of which many lie in one memory. */
  receiveAt(port: number, memory: FrameMemory, start: number, end: number): void {
    if (this.busy) {
      if (this.backlog.length < BACKLOG_LIMIT) this.backlog.push({ port, memory, start, end });
      else {
        this.statistics.received++;
        this.statistics.dropped++;
      }
      return;
    }
    this.busy = true;
    try {
      this.process(port, memory, start, end);
      if (this.backlog.length > 0) this.processBacklog();
    } finally {
      this.busy = false;
    }
  }

  sendFromCpu(frame: Frame): void {
    this.receive(this.cpuPort, frame);
  }

  /**
   * What happens to a frame that comes by a port: with `inject` it is received, without it is only tried and leaves no marks. Throws
   * NOT_FOUND when no program runs, CONFLICT when a packet is to be injected while another is processed.
   */
  trace(port: number, frame: Frame, { inject }: { readonly inject: boolean }): PacketTrace {
    const { running } = this;
    if (running === undefined)
      throw new DdfError('NOT_FOUND', 'The switch runs no program that a packet could be traced through', {
        remedy: 'Set a pipeline first.',
      });
    // A packet may be changed where it stands: what is only tried gets a copy.
    if (!inject) return this.traced(running, port, frame.slice(), false);
    if (this.busy) throw new DdfError('CONFLICT', 'The switch is processing another packet', { remedy: 'Try again.' });
    this.busy = true;
    try {
      this.statistics.received++;
      const trace = this.traced(running, port, frame, true);
      this.processBacklog();
      return trace;
    } finally {
      this.busy = false;
    }
  }

  /**
   * Traces the next `count` (1 to 1000) packets that come by the port, or by any. Ends by itself or by the function that is
   * returned. While it waits, other packets are as fast as ever. `onTrace` must not throw.
   */
  traceNext(filter: TraceFilter, count: number, onTrace: (trace: PacketTrace) => void): () => void {
    if (!Number.isInteger(count) || count < 1 || count > MAX_TRACES)
      throw new DdfError('INVALID_REQUEST', `Traces come 1 to ${MAX_TRACES} at a time, not ${count}`);
    if (this.watchers.length >= MAX_WATCHERS)
      throw new DdfError('CONFLICT', `The switch already traces for ${MAX_WATCHERS} others`, { recoverable: true });
    const watcher: Watcher = { port: filter.port, left: count, onTrace };
    this.watchers.push(watcher);
    return () => this.forget(watcher);
  }

  private tracedFor(running: RunningProgram, port: number, frame: Frame): boolean {
    const watchers = this.watchers.filter((watcher) => watcher.port === undefined || watcher.port === port);
    if (watchers.length === 0) return false;
    const trace = this.traced(running, port, frame, true);
    for (const watcher of watchers) {
      if (--watcher.left === 0) this.forget(watcher);
      watcher.onTrace(trace);
    }
    return true;
  }

  private traced(running: RunningProgram, port: number, frame: Frame, live: boolean): PacketTrace {
    const atUs = this.clock.nowUs();
    const { events, fault } = running.trace(port, frame, live);
    if (fault !== undefined && live) this.reportFault(port, fault);
    return { port, atUs, events };
  }

  private forget(watcher: Watcher): void {
    const place = this.watchers.indexOf(watcher);
    if (place >= 0) this.watchers.splice(place, 1);
  }

  setPortUp(port: number, up: boolean): void {
    this.ports.set(port, up);
  }

  isPortUp(port: number): boolean {
    return this.ports.isUp(port);
  }

  private processBacklog(): void {
    for (let next = this.backlog.shift(); next !== undefined; next = this.backlog.shift())
      this.process(next.port, next.memory, next.start, next.end);
  }

  private process(port: number, memory: FrameMemory, start: number, end: number): void {
    this.statistics.received++;
    if (this.running === undefined) {
      this.statistics.dropped++;
      return;
    }
    if (this.watchers.length > 0 && this.tracedFor(this.running, port, memory.frame(start, end))) return;
    try {
      this.running.receive(port, memory, start, end);
    } catch (error) {
      this.reportFault(port, error);
    }
  }

  private transmit(port: number, memory: FrameMemory, start: number, end: number): void {
    this.statistics.transmitted++;
    // Controllers take their time: the frame may lie in memory that belongs to a port.
    if (port === this.cpuPort) this.onCpuFrame?.(memory.bytes.slice(start, end));
    else if (this.onTransmitAt !== undefined) this.onTransmitAt(port, memory, start, end);
    else this.onTransmit?.(port, memory.frame(start, end));
  }

  private reportFault(port: number, error: unknown): void {
    this.statistics.errors++;
    const nowUs = this.clock.nowUs();
    if (nowUs < this.nextReportUs) return;
    this.nextReportUs = nowUs + FAULT_REPORT_INTERVAL_US;
    const fault = toDdfError(error);
    this.logger?.error(
      { device: String(this.deviceId), port, errors: this.statistics.errors, error: fault },
      `processing a packet failed: ${fault.describe()}`,
    );
  }
}

class Compiled implements LoadableProgram {
  private readonly program: Program;
  private readonly factories: Factories;
  private readonly surroundings: Surroundings;
  private next: RunningProgram | undefined;

  constructor(program: Program, factories: Factories, surroundings: Surroundings) {
    this.program = program;
    this.factories = factories;
    this.surroundings = surroundings;
  }

  get control(): ProgramControl {
    this.next ??= this.instantiate();
    return this.next;
  }

  /** Packets would leave by the device that compiled it. */
  isFor(surroundings: Surroundings): boolean {
    return this.surroundings === surroundings;
  }

  /** What was written to `control` so far; the next load begins empty again. */
  take(): RunningProgram {
    const taken = this.next ?? this.instantiate();
    this.next = undefined;
    return taken;
  }

  private instantiate(): RunningProgram {
    return new RunningProgram(this.program, this.factories, this.surroundings);
  }
}
