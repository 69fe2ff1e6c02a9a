import { VirtualScheduler } from '../../base/clock.ts';
import { DdfError } from '../../base/errors.ts';
import { createRandom } from '../../base/random.ts';
import type { CounterValue, EntryHandle, ProgramControl, Replica, TableControl } from '../../switch/control.ts';
import { Device } from '../../switch/index.ts';
import { findByName, type ProgramNames, resolveCall, resolveMatch } from './names.ts';
import type { StfCheck, StfCommand, StfLine, StfPattern, StfRate } from './script.ts';

/** p4c's driver lets this much time pass after a command for the control plane, and at `wait`. */
const PAUSE_US = 1_000_000;
/** p4c's scripts were first written for hardware, whose counters count it with every packet. */
const FRAME_CHECK_BYTES = 4n;
/** Any port below the drop port may be used by a script, so the CPU's is an ordinary one. */
const CPU_PORT = 510;

/**
 * Runs a script on an embedded switch in virtual time.
 *
 * What leaves by a port has to be what is expected there, in that order, and nothing else; a port that is expected without data may
 * send anything. As p4c's driver has it, only ports that the script names are there: what leaves by others is lost.
 *
 * Throws DdfError UNSUPPORTED_PROGRAM for a program that the switch cannot run, INVALID_REQUEST for a difference: `where` is the line.
 */
export function runStf(script: readonly StfLine[], bmv2Json: Uint8Array): void {
  const run = new StfRun(bmv2Json, portsOf(script));
  for (const { line, text, command } of script) {
    try {
      run.execute(command);
    } catch (error) {
      if (!(error instanceof DdfError)) throw error;
      throw new DdfError(error.code, `${text}: ${error.message}`, { where: `line ${line}`, cause: error });
    }
  }
  run.finish();
}

function portsOf(script: readonly StfLine[]): ReadonlySet<number> {
  return new Set(
    script.flatMap(({ command }) => (command.kind === 'packet' || command.kind === 'expect' ? [command.port] : [])),
  );
}

interface Node {
  readonly instance: number;
  ports: readonly number[];
}

interface Added {
  readonly table: TableControl;
  readonly handle: EntryHandle;
}

class StfRun {
  private readonly scheduler = new VirtualScheduler();
  private readonly device: Device;
  private readonly program: ProgramControl;
  private readonly names: ProgramNames;
  private readonly sent = new Map<number, Uint8Array[]>();
  private readonly expected = new Map<number, StfPattern[]>();
  private readonly anything = new Set<number>();
  private readonly entries = new Map<string, Added>();
  private readonly nodes: Node[] = [];
  private readonly groups = new Map<number, Node[]>();
  private readonly mirrors = new Map<number, { port: number | undefined; group: number | undefined }>();
  private sentByLast = 0;

  constructor(bmv2Json: Uint8Array, ports: ReadonlySet<number>) {
    this.device = new Device({
      deviceId: 1n,
      cpuPort: CPU_PORT,
      clock: this.scheduler,
      random: createRandom('stf'),
    });
    this.program = this.device.load(this.device.compile(bmv2Json));
    this.names = { tables: this.program.tables, actions: this.program.actions };
    const collect = (port: number, frame: Uint8Array): void => {
      if (!ports.has(port)) return;
      const frames = this.sent.get(port) ?? [];
      this.sent.set(port, frames);
      frames.push(frame);
      this.sentByLast++;
    };
    this.device.onTransmit = collect;
    this.device.onCpuFrame = (frame) => collect(CPU_PORT, frame);
  }

  execute(command: StfCommand): void {
    switch (command.kind) {
      case 'packet':
        this.sentByLast = 0;
        this.device.receive(command.port, command.bytes);
        return;
      case 'expect':
        this.expect(command.port, command.pattern);
        return;
      case 'no-packet':
        if (this.sentByLast > 0) throw difference(`${this.sentByLast} packets were sent`);
        return;
      case 'check-counter':
        this.checkCounter(command);
        return;
      case 'wait':
        break;
      default:
        this.control(command);
    }
    this.scheduler.runUntil(this.scheduler.nowUs() + PAUSE_US);
  }

  /** Compares what was sent with what was expected, port by port. */
  finish(): void {
    if (this.device.statistics.errors > 0) throw difference('the switch failed to process a packet');
    for (const port of new Set([...this.expected.keys(), ...this.sent.keys()])) {
      if (this.anything.has(port)) continue;
      const wanted = this.expected.get(port) ?? [];
      const found = this.sent.get(port) ?? [];
      wanted.forEach((pattern, i) => {
        const frame = found[i];
        if (frame === undefined)
          throw difference(`port ${port} sent ${found.length} packets where ${wanted.length} are expected`);
        const digits = Buffer.from(frame).toString('hex');
        if (!agrees(pattern, digits))
          throw difference(`packet ${i + 1} of port ${port} is ${digits}, not ${pattern.digits}`);
      });
      if (found.length > wanted.length)
        throw difference(
          `port ${port} sent ${found.length} packets where ${wanted.length} are expected: ${Buffer.from(found[wanted.length]!).toString('hex')}`,
        );
    }
  }

  private control(command: StfCommand): void {
    const { program } = this;
    switch (command.kind) {
      case 'add': {
        const table = findByName(program.tables, command.table, 'table');
        const match = resolveMatch(table, command.keys);
        const handle = table.insert(match, command.priority ?? 0, resolveCall(this.names, table, command.call));
        if (command.id !== undefined) this.entries.set(command.id, { table, handle });
        break;
      }
      case 'set-default': {
        const table = findByName(program.tables, command.table, 'table');
        table.setDefault(resolveCall(this.names, table, command.call));
        break;
      }
      case 'remove-all':
        for (const table of program.tables.values())
          for (const handle of [...table.entries()]) if (!table.isConst(handle)) table.delete(handle);
        break;
      case 'mirror':
        this.mirrors.set(command.session, { port: command.port, group: command.group });
        if (command.port === undefined && command.group === undefined) {
          this.mirrors.delete(command.session);
          program.deleteCloneSession(command.session);
        }
        break;
      case 'create-group':
        this.groups.set(command.group, []);
        break;
      case 'create-node':
        this.nodes.push({ instance: command.instance, ports: command.ports });
        break;
      case 'update-node':
        this.node(command.node).ports = command.ports;
        break;
      case 'associate-node': {
        const group = this.groups.get(command.group);
        if (group === undefined) throw difference(`there is no multicast group ${command.group}`);
        group.push(this.node(command.node));
        break;
      }
      case 'counter-write': {
        const { packets, bytes } = command;
        findByName(program.counters, command.counter, 'counter').write(command.cell, { packets, bytes });
        break;
      }
      case 'register-write': {
        const register = findByName(program.registers, command.register, 'register');
        for (const cell of cellsOf(command.cell, register.size)) register.write(cell, command.value);
        break;
      }
      case 'meter-set': {
        const meter = findByName(program.meters, command.meter, 'meter');
        const { perSecond: cir, burst: cburst } = perSecond(command.committed);
        const { perSecond: pir, burst: pburst } = perSecond(command.peak);
        for (const cell of cellsOf(command.cell, meter.size)) meter.configure(cell, { cir, cburst, pir, pburst });
        break;
      }
      case 'read':
        if (command.what === 'counter') findByName(program.counters, command.name, 'counter');
        if (command.what === 'register') findByName(program.registers, command.name, 'register');
        if (command.what === 'meter') findByName(program.meters, command.name, 'meter');
        break;
    }
    this.replicate();
  }

  private node(index: number): Node {
    const node = this.nodes[index];
    if (node === undefined) throw difference(`there is no multicast node ${index}`);
    return node;
  }

  /** Groups, and the clone sessions that mean one, as they are now. */
  private replicate(): void {
    const replicas = (group: number): Replica[] =>
      (this.groups.get(group) ?? []).flatMap(({ instance, ports }) => ports.map((port) => ({ port, instance })));
    for (const group of this.groups.keys()) this.program.setMulticastGroup(group, replicas(group));
    for (const [session, { port, group }] of this.mirrors)
      this.program.setCloneSession(
        session,
        [...(group === undefined ? [] : replicas(group)), ...(port === undefined ? [] : [{ port, instance: 0 }])],
        0,
      );
  }

  private expect(port: number, pattern: StfPattern | undefined): void {
    if (pattern === undefined) {
      this.anything.add(port);
      return;
    }
    const patterns = this.expected.get(port) ?? [];
    this.expected.set(port, patterns);
    patterns.push(pattern);
  }

  private checkCounter(command: Extract<StfCommand, { kind: 'check-counter' }>): void {
    const value = this.readCounter(command.counter, command.cell);
    const { check } = command;
    if (check === undefined || holds(check, value[check.unit])) return;
    if (check.unit === 'bytes' && holds(check, value.bytes + FRAME_CHECK_BYTES * value.packets)) return;
    throw difference(`it counted ${value.packets} packets, ${value.bytes} bytes`);
  }

  private readCounter(counter: string, cell: number | string): CounterValue {
    if (typeof cell === 'number') return findByName(this.program.counters, counter, 'counter').read(cell);
    const entry = this.entries.get(cell);
    if (entry === undefined) throw difference(`no entry was added as ${cell}`);
    const value = entry.table.counter(entry.handle);
    if (value === undefined) throw difference(`table ${entry.table.name} counts nothing`);
    return value;
  }
}

function difference(what: string): DdfError {
  return new DdfError('INVALID_REQUEST', what);
}

function cellsOf(cell: number | undefined, size: number): number[] {
  return cell === undefined ? Array.from({ length: size }, (_, index) => index) : [cell];
}

function perSecond({ perUs, burst }: StfRate): { perSecond: bigint; burst: bigint } {
  return { perSecond: BigInt(Math.round(perUs * 1e6)), burst };
}

function agrees({ digits, exact }: StfPattern, found: string): boolean {
  if (found.length < digits.length || (exact && found.length > digits.length)) return false;
  for (let i = 0; i < digits.length; i++) if (digits[i] !== '*' && digits[i] !== found[i]) return false;
  return true;
}

function holds({ operator, value }: StfCheck, found: bigint): boolean {
  switch (operator) {
    case '==':
      return found === value;
    case '!=':
      return found !== value;
    case '<':
      return found < value;
    case '<=':
      return found <= value;
    case '>':
      return found > value;
    case '>=':
      return found >= value;
  }
}
