import type { Clock } from '../../base/clock.ts';
import { DdfError } from '../../base/errors.ts';
import { createRandom, type Random } from '../../base/random.ts';
import type { Program, Table } from '../bmv2/program.ts';
import { parameterWords } from '../compile/action.ts';
import type { CompiledProgram, ENVIRONMENT_NAMES, LIBRARY_NAMES } from '../compile/compile-program.ts';
import type { Layout } from '../compile/layout.ts';
import { keyLayout } from '../compile/table.ts';
import type { ActionCall, DigestControl, ProgramControl, Replica, ValueSetControl } from '../control.ts';
import type { Frame } from '../ports/port.ts';
import type { TraceEvent } from '../trace/events.ts';
import { Tracer } from '../trace/tracer.ts';
import * as arithmetic from './arithmetic.ts';
import * as bits from './bits.ts';
import { CounterArray } from './counters.ts';
import { allocate, FrameMemory, type FrameSink } from './frames.ts';
import * as hashes from './hashes.ts';
import { MatchTable, type TableShape } from './match-table.ts';
import { MeterArray } from './meters.ts';
import type { PortStates } from './port-states.ts';
import { RegisterArray } from './registers.ts';
import { ReplicationEngine } from './replication.ts';
import { ValueSet } from './value-set.ts';
import { xxh64 } from './xxh64.ts';

/** What the packet path counts besides the program's own counters. */
export interface PacketStatistics {
  /** Copies that were not sent: dropped in ingress or egress, or multicast to nobody. */
  dropped: number;
  /** `assert` and `assume` of the program that did not hold; the packet is lost. */
  failedAssertions: number;
  /** Accesses of counters, meters and registers beyond their size; they did nothing. */
  outOfRange: number;
}

/** What a running program needs from its device. */
export interface Surroundings {
  readonly clock: Clock;
  readonly random: Random;
  readonly statistics: PacketStatistics;
  readonly ports: PortStates;
  /** Frames in the port's transmit queue. */
  queueDepth(port: number): number;
  transmit(port: number, memory: FrameMemory, start: number, end: number): void;
  /** A message of the program, its values filled in. */
  log(message: string): void;
}

type Environment = Readonly<Record<(typeof ENVIRONMENT_NAMES)[number], unknown>> & {
  readonly learn: (digest: number, values: readonly bigint[]) => void;
  readonly log: (format: string, values: readonly bigint[]) => void;
  readonly trace?: Tracer;
  readonly tables: readonly MatchTable[];
  readonly valueSetUses: ValueSet['uses'];
  readonly counters: readonly CounterArray[];
  readonly meters: readonly MeterArray[];
  readonly registers: readonly RegisterArray[];
};

type Receive = (port: number, ...frame: Parameters<FrameSink>) => void;

/** A compiled program that can be given state, any number of times. */
export interface ProgramFactory {
  readonly layout: Layout;
  make(environment: Environment, library: typeof LIBRARY): Receive;
}

/** A program compiled twice: as it runs, and, when somebody asks for the first trace, such that it tells what it does. */
export interface Factories {
  readonly plain: ProgramFactory;
  traced(): ProgramFactory;
}

/** What a traced packet met; `fault` is what made its processing fail, if it did. */
export interface TraceOutcome {
  readonly events: readonly TraceEvent[];
  readonly fault: unknown;
}

type TracedReceive = (port: number, frame: Frame) => TraceOutcome;

const LIBRARY: Readonly<Record<(typeof LIBRARY_NAMES)[number], unknown>> = {
  ...arithmetic,
  ...hashes,
  ...bits,
  xxh64,
  imul: Math.imul,
  floor: Math.floor,
  allocate,
  FrameMemory,
};

/** A program with its state: tables, counters, meters, registers and groups, all of it empty but for the program's own entries. */
export class RunningProgram implements ProgramControl {
  readonly tables: ReadonlyMap<string, MatchTable>;
  readonly counters: ReadonlyMap<string, CounterArray>;
  readonly meters: ReadonlyMap<string, MeterArray>;
  readonly registers: ReadonlyMap<string, RegisterArray>;
  readonly digests: ReadonlyMap<string, DigestControl>;
  readonly valueSets: ReadonlyMap<string, ValueSetControl>;
  readonly actions: ProgramControl['actions'];
  onDigest: ProgramControl['onDigest'];
  /** Runs a packet to completion. */
  readonly receive: Receive;
  private readonly replication: ReplicationEngine;
  private readonly program: Program;
  private readonly factories: Factories;
  private readonly surroundings: Surroundings;
  private readonly environment: Environment;
  private traceLive: TracedReceive | undefined;

  constructor(program: Program, factories: Factories, surroundings: Surroundings) {
    this.program = program;
    this.factories = factories;
    this.surroundings = surroundings;
    const nowUs = () => surroundings.clock.nowUs();
    const tables = program.tables.map((table) => new MatchTable(tableShape(table), nowUs, surroundings.ports));
    const counters = program.counters.map(({ name, size }) => new CounterArray(name, size));
    const meters = program.meters.map(({ name, size, unit }) => new MeterArray(name, size, unit, nowUs));
    const registers = program.registers.map(({ name, size, widthBits }) => new RegisterArray(name, size, widthBits));
    this.tables = byName(tables);
    this.counters = byName(counters.filter((_, i) => program.counters[i]!.directTable === undefined));
    this.meters = byName(meters.filter((_, i) => program.meters[i]!.direct === undefined));
    this.registers = byName(registers);
    const digests = program.learnLists.map(
      ({ name, fields }): DigestControl => ({
        name,
        fields: fields.map((field) => ({ name: field.name, widthBits: field.widthBits })),
      }),
    );
    // Lists of one name are the same message from several places of the program.
    this.digests = byName(digests);
    const valueSets = program.valueSets.map((set) => {
      const uses = program.valueSetUses.filter((use) => use.valueSet === set);
      return new ValueSet(
        set,
        uses.map((use) => use.parts.map(({ mask }) => mask)),
        nowUs,
        surroundings.ports,
      );
    });
    this.valueSets = byName(valueSets);
    this.actions = declaredActions(program);
    this.replication = new ReplicationEngine(surroundings.ports);
    this.environment = {
      valueSetUses: program.valueSetUses.map((use) => {
        const uses = program.valueSetUses.filter((other) => other.valueSet === use.valueSet);
        return valueSets[use.valueSet!.index]!.uses[uses.indexOf(use)]!;
      }),
      tables,
      counters,
      meters,
      registers,
      phv: new Uint32Array(factories.plain.layout.words),
      statistics: surroundings.statistics,
      clock: surroundings.clock,
      replication: this.replication,
      queueDepth: (port: number) => surroundings.queueDepth(port),
      transmit: (port: number, memory: FrameMemory, start: number, end: number) =>
        surroundings.transmit(port, memory, start, end),
      uniform: (low: bigint, high: bigint) => uniform(surroundings.random, low, high),
      learn: (digest: number, values: readonly bigint[]) =>
        this.onDigest?.(this.digests.get(program.learnLists[digest]!.name)!, values),
      log: (format: string, values: readonly bigint[]) => surroundings.log(fillIn(format, values)),
    };
    this.receive = factories.plain.make(this.environment, LIBRARY);
  }

  /**
   * Runs a packet and says what happens to it. Unless it is `live`, it is only tried: what it would count, store, learn or send is
   * not.
   */
  trace(port: number, frame: Frame, live: boolean): TraceOutcome {
    if (!live) return this.traced(false)(port, frame);
    this.traceLive ??= this.traced(true);
    return this.traceLive(port, frame);
  }

  private traced(live: boolean): TracedReceive {
    const { program, environment, surroundings } = this;
    const { layout, make } = this.factories.traced();
    const phv = new Uint32Array(layout.words);
    const tracer = new Tracer(program, layout, phv, live);
    const receive = make(
      {
        ...environment,
        ...(live ? {} : trialState(environment)),
        phv,
        trace: tracer,
        transmit: (port: number, memory: FrameMemory, start: number, end: number) => {
          tracer.transmit(port, memory.frame(start, end));
          if (live) surroundings.transmit(port, memory, start, end);
        },
        learn: (digest: number, values: readonly bigint[]) => {
          tracer.digest(digest, values);
          if (live) environment.learn(digest, values);
        },
        log: (format: string, values: readonly bigint[]) => {
          tracer.log(fillIn(format, values));
          if (live) environment.log(format, values);
        },
      },
      LIBRARY,
    );
    return (port, frame) => {
      try {
        receive(port, new FrameMemory(frame), 0, frame.length);
        return { events: tracer.take(), fault: undefined };
      } catch (fault) {
        tracer.fault(fault instanceof Error ? fault.message : String(fault));
        return { events: tracer.take(), fault };
      }
    };
  }

  setMulticastGroup(id: number, replicas: readonly Replica[]): void {
    this.replication.setMulticastGroup(id, replicas);
  }

  deleteMulticastGroup(id: number): void {
    this.replication.deleteMulticastGroup(id);
  }

  setCloneSession(id: number, replicas: readonly Replica[], truncateBytes: number): void {
    this.replication.setCloneSession(id, replicas, truncateBytes);
  }

  deleteCloneSession(id: number): void {
    this.replication.deleteCloneSession(id);
  }
}

/** Lets the engine parse generated code, so that a program which it cannot take is refused before it is loaded. */
export function prepare(compiled: CompiledProgram): ProgramFactory {
  try {
    return {
      layout: compiled.layout,
      make: new Function('environment', 'library', compiled.source) as ProgramFactory['make'],
    };
  } catch (error) {
    throw new DdfError('UNSUPPORTED_PROGRAM', 'This switch cannot run the program: its code is too large or too deep', {
      where: '$',
      cause: error,
    });
  }
}

/** State that a packet may change without a trace. */
function trialState({ counters, meters, registers }: Environment) {
  const statistics: PacketStatistics = { dropped: 0, failedAssertions: 0, outOfRange: 0 };
  const random = createRandom('trace');
  return {
    counters: counters.map((array) => array.copy()),
    meters: meters.map((array) => array.copy()),
    registers: registers.map((array) => array.copy()),
    statistics,
    uniform: (low: bigint, high: bigint) => uniform(random, low, high),
  };
}

function byName<T extends { readonly name: string }>(items: readonly T[]): Map<string, T> {
  return new Map(items.map((item) => [item.name, item]));
}

function tableShape(table: Table): TableShape {
  const { places, words } = keyLayout(table.keys);
  const call = (constant: Table['defaultCall']): ActionCall | undefined =>
    constant === undefined ? undefined : { action: constant.action.name, params: constant.params };
  return {
    name: table.name,
    size: table.size,
    keys: table.keys.map((key, i) => ({
      name: key.name,
      kind: key.match,
      widthBits: key.widthBits,
      ...places[i]!,
    })),
    words,
    actions: table.actions.map((action) => {
      const { starts, words: dataWords } = parameterWords(action);
      return {
        name: action.name,
        parameters: action.parameters.map(({ widthBits }, i) => ({ widthBits, word: starts[i]! })),
        words: dataWords,
      };
    }),
    hasCounter: table.directCounter !== undefined,
    meterUnit: table.directMeter?.unit,
    defaultCall: call(table.defaultCall),
    entries: table.entries.map(({ match, priority, call: own }) => ({ match, priority, action: call(own)! })),
  };
}

/**
 * Actions by name as the source declares them. Where the program calls one itself, p4c makes a copy with the arguments filled in under the same name:
 * of those the one with the most parameters is meant.
 */
function declaredActions(program: Program): ProgramControl['actions'] {
  const declared = new Map<string, Program['actions'][number]['parameters']>();
  for (const { name, parameters } of program.actions)
    if (parameters.length >= (declared.get(name)?.length ?? 0)) declared.set(name, parameters);
  return declared;
}

/** A uniform integer in low..high of any width; `undefined` when there is none. */
function uniform(random: Random, low: bigint, high: bigint): bigint | undefined {
  if (low > high) return undefined;
  const span = high - low + 1n;
  let words = 2;
  let space = 1n << 64n;
  for (; space < span; space <<= 32n) words++;
  // Rejection makes every value equally likely.
  const limit = space - (space % span);
  for (;;) {
    let drawn = 0n;
    for (let word = 0; word < words; word++) drawn = (drawn << 32n) | BigInt(random.uint32());
    if (drawn < limit) return low + (drawn % span);
  }
}

/** Puts values in place of `{}`, in decimal. */
function fillIn(format: string, values: readonly bigint[]): string {
  let next = 0;
  return format.replace(/\{\}/g, (braces) => (next < values.length ? String(values[next++]) : braces));
}
