import type { Clock } from '../base/clock.ts';
import { toDdfError } from '../base/errors.ts';
import type { Logger } from '../base/logger.ts';
import type { Random } from '../base/random.ts';
import { loadProgram } from './bmv2/load-program.ts';
import type { Program } from './bmv2/program.ts';
import { type CompileOptions, compileProgram } from './compile/compile-program.ts';
import type { DeviceControl, LoadableProgram, ProgramControl } from './control.ts';
import type { Frame } from './ports/port.ts';
import { PortStates } from './runtime/port-states.ts';
import { type ProgramFactory, prepare, RunningProgram, type Surroundings } from './runtime/running-program.ts';

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
  onCpuFrame: ((frame: Frame) => void) | undefined;
  private running: RunningProgram | undefined;
  private readonly clock: Clock;
  private readonly logger: Logger | undefined;
  private readonly surroundings: Surroundings;
  private readonly compileOptions: CompileOptions;
  private busy = false;
  private readonly backlog: { readonly port: number; readonly frame: Frame }[] = [];
  private nextReportUs = 0;
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
      transmit: (port, frame) => this.transmit(port, frame),
      log: (message) => this.logger?.info({ device: String(this.deviceId) }, message),
    };
  }

  get program(): ProgramControl | undefined {
    return this.running;
  }

  compile(bmv2Json: Uint8Array): LoadableProgram {
    const program = loadProgram(bmv2Json);
    return new Compiled(program, prepare(compileProgram(program, this.compileOptions)), this.surroundings);
  }

  load(program: LoadableProgram): ProgramControl {
    if (!(program instanceof Compiled)) throw new TypeError('the program was not compiled by a Device');
    this.running = program.instantiate(this.surroundings);
    return this.running;
  }

  /**
   * Takes the frame and processes it. A frame that an output brings back while another is processed waits for its turn.
   *
   * What is transmitted may be a view of the same memory; besides that, nothing refers to it afterwards.
   */
  receive(port: number, frame: Frame): void {
    if (this.busy) {
      if (this.backlog.length < BACKLOG_LIMIT) this.backlog.push({ port, frame });
      else {
        this.statistics.received++;
        this.statistics.dropped++;
      }
      return;
    }
    this.busy = true;
    try {
      this.process(port, frame);
      if (this.backlog.length > 0) this.processBacklog();
    } finally {
      this.busy = false;
    }
  }

  sendFromCpu(frame: Frame): void {
    this.receive(this.cpuPort, frame);
  }

  setPortUp(port: number, up: boolean): void {
    this.ports.set(port, up);
  }

  isPortUp(port: number): boolean {
    return this.ports.isUp(port);
  }

  private processBacklog(): void {
    for (let next = this.backlog.shift(); next !== undefined; next = this.backlog.shift())
      this.process(next.port, next.frame);
  }

  private process(port: number, frame: Frame): void {
    this.statistics.received++;
    if (this.running === undefined) {
      this.statistics.dropped++;
      return;
    }
    try {
      this.running.receive(port, frame);
    } catch (error) {
      this.reportFault(port, error);
    }
  }

  private transmit(port: number, frame: Frame): void {
    this.statistics.transmitted++;
    // Controllers take their time: the frame may be a view of memory that belongs to a port.
    if (port === this.cpuPort) this.onCpuFrame?.(frame.slice());
    else this.onTransmit?.(port, frame);
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
  private readonly factory: ProgramFactory;
  private readonly surroundings: Surroundings;
  private described: RunningProgram | undefined;

  constructor(program: Program, factory: ProgramFactory, surroundings: Surroundings) {
    this.program = program;
    this.factory = factory;
    this.surroundings = surroundings;
  }

  get control(): ProgramControl {
    this.described ??= this.instantiate(this.surroundings);
    return this.described;
  }

  instantiate(surroundings: Surroundings): RunningProgram {
    return new RunningProgram(this.program, this.factory, surroundings);
  }
}
