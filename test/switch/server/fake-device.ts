import { DdfError } from '../../../base/errors.ts';
import type {
  ActionCall,
  CounterValue,
  DeviceControl,
  EntryAction,
  EntryHandle,
  LoadableProgram,
  MatchValue,
  MeterConfig,
  ProgramControl,
  Replica,
  TableControl,
} from '../../../switch/control.ts';
import { P4InfoIndex } from '../../../wire/p4runtime/p4info-index.ts';
import type { TableInfo } from '../../../wire/p4runtime/p4info-objects.ts';
import { parseP4InfoText } from '../../../wire/p4runtime/p4info-text.ts';

/** A device that keeps what is written and executes nothing. Its "bmv2 JSON" is a P4Info text, whose objects it has. */
export class FakeDevice implements DeviceControl {
  readonly deviceId: bigint;
  readonly cpuPort = 510;
  program: FakeProgram | undefined;
  onCpuFrame: ((frame: Uint8Array) => void) | undefined;
  readonly sent: Uint8Array[] = [];
  private readonly down = new Set<number>();

  constructor(deviceId: bigint) {
    this.deviceId = deviceId;
  }

  compile(config: Uint8Array): LoadableProgram {
    const text = new TextDecoder().decode(config);
    if (text.startsWith('broken')) throw new DdfError('INVALID_PROGRAM', 'The program is broken');
    return { control: new FakeProgram(new P4InfoIndex(parseP4InfoText(text))) };
  }

  load(program: LoadableProgram): ProgramControl {
    this.program = new FakeProgram((program.control as FakeProgram).info);
    return this.program;
  }

  sendFromCpu(frame: Uint8Array): void {
    this.sent.push(frame);
  }

  setPortUp(port: number, up: boolean): void {
    if (up) this.down.delete(port);
    else this.down.add(port);
  }

  isPortUp(port: number): boolean {
    return !this.down.has(port);
  }
}

export class FakeProgram implements ProgramControl {
  readonly info: P4InfoIndex;
  readonly tables: ReadonlyMap<string, FakeTable>;
  readonly counters;
  readonly meters;
  readonly registers;
  readonly actions;
  readonly digests = new Map<string, never>();
  readonly valueSets = new Map<string, never>();
  onDigest: ProgramControl['onDigest'];
  readonly groups = new Map<number, readonly Replica[]>();
  readonly sessions = new Map<number, { replicas: readonly Replica[]; truncateBytes: number }>();

  constructor(info: P4InfoIndex) {
    this.info = info;
    this.tables = new Map([...info.tables].map((table) => [table.name, new FakeTable(table)]));
    this.actions = new Map([...info.actions].map((action) => [action.name, action.params]));
    this.counters = new Map(
      [...info.counters].map(({ name, size }) => [name, new FakeArray<CounterValue>(name, size, NOTHING)]),
    );
    this.meters = new Map(
      [...info.meters].map(({ name, size }) => {
        const cells = new FakeArray<MeterConfig | undefined>(name, size, undefined);
        return [
          name,
          {
            name,
            size,
            configure: (i: number, c: MeterConfig | undefined) => cells.write(i, c),
            config: (i: number) => cells.read(i),
          },
        ];
      }),
    );
    this.registers = new Map(
      [...info.registers].map(({ name, size, type }) => {
        const widthBits = type?.bitstring?.bit?.bitwidth ?? type?.bitstring?.int?.bitwidth ?? 0;
        return [name, Object.assign(new FakeArray<bigint>(name, size, 0n), { widthBits })];
      }),
    );
  }

  setMulticastGroup(id: number, replicas: readonly Replica[]): void {
    this.groups.set(id, replicas);
  }

  deleteMulticastGroup(id: number): void {
    this.groups.delete(id);
  }

  setCloneSession(id: number, replicas: readonly Replica[], truncateBytes: number): void {
    this.sessions.set(id, { replicas, truncateBytes });
  }

  deleteCloneSession(id: number): void {
    this.sessions.delete(id);
  }
}

const NOTHING: CounterValue = { packets: 0n, bytes: 0n };

class FakeArray<T> {
  readonly name: string;
  readonly size: number;
  private readonly cells: T[];

  constructor(name: string, size: number, initial: T) {
    this.name = name;
    this.size = size;
    this.cells = new Array<T>(size).fill(initial);
  }

  read(index: number): T {
    if (index < 0 || index >= this.size) throw new RangeError('the server must not ask for this');
    return this.cells[index]!;
  }

  write(index: number, value: T): void {
    this.read(index);
    this.cells[index] = value;
  }
}

interface FakeEntry extends EntryHandle {
  readonly constant: boolean;
  counter: CounterValue;
}

const DROP: ActionCall = { action: 'Ingress.drop', params: [] };

export class FakeTable implements TableControl {
  readonly name: string;
  readonly size: number;
  readonly keys;
  readonly actions;
  private readonly info: TableInfo;
  private readonly installed = new Set<FakeEntry>();
  private default: ActionCall = DROP;
  private missed: CounterValue = NOTHING;
  private missedMeter: MeterConfig | undefined;
  private readonly meters = new Map<FakeEntry, MeterConfig | undefined>();
  readonly hasMeter: boolean;

  constructor(info: TableInfo) {
    this.info = info;
    this.name = info.name;
    this.size = info.size;
    this.hasMeter = info.directMeter !== undefined;
    // As p4c compiles optional keys.
    this.keys = info.fields.map(({ name, kind, widthBits }) => ({
      name,
      kind: kind === 'optional' ? ('ternary' as const) : kind,
      widthBits,
    }));
    this.actions = info.actions.map(({ action }) => action.name);
    const entry = (match: MatchValue, priority: number, action: ActionCall, constant: boolean): void => {
      this.installed.add({ match: [match], priority, action, constant, counter: NOTHING });
    };
    if (info.alias === 'const_table') {
      entry({ kind: 'exact', value: 1n }, 0, { action: 'Ingress.forward', params: [7n, 1n] }, true);
      entry({ kind: 'exact', value: 2n }, 0, DROP, true);
    }
    if (info.alias === 'initial_table') {
      entry({ kind: 'ternary', value: 1n, mask: 0xffn }, 2, DROP, true);
      entry({ kind: 'ternary', value: 0n, mask: 0n }, 1, DROP, false);
    }
  }

  insert(match: readonly MatchValue[], priority: number, action: EntryAction): EntryHandle {
    if (this.installed.size >= this.size) throw new DdfError('TABLE_FULL', `Table ${this.name} is full`);
    match.forEach((value, i) => {
      if (value.kind !== this.keys[i]!.kind) throw new Error(`${value.kind} in a ${this.keys[i]!.kind} key`);
    });
    const entry: FakeEntry = { match, priority, action, constant: false, counter: NOTHING };
    this.installed.add(entry);
    return entry;
  }

  modify(handle: EntryHandle, action: EntryAction): EntryHandle {
    const entry = this.own(handle);
    const changed = { ...entry, action };
    this.installed.delete(entry);
    this.installed.add(changed);
    return changed;
  }

  delete(handle: EntryHandle): void {
    this.installed.delete(this.own(handle));
  }

  private own(handle: EntryHandle): FakeEntry {
    if (!this.installed.has(handle as FakeEntry)) throw new DdfError('NOT_FOUND', 'The entry is gone');
    return handle as FakeEntry;
  }

  entries(): Iterable<EntryHandle> {
    return this.installed;
  }

  isConst(handle: EntryHandle): boolean {
    return this.own(handle).constant;
  }

  setDefault(action: ActionCall | undefined): void {
    this.default = action ?? DROP;
  }

  defaultAction(): ActionCall {
    return this.default;
  }

  counter(handle: EntryHandle): CounterValue | undefined {
    return this.info.directCounter === undefined ? undefined : this.own(handle).counter;
  }

  setCounter(handle: EntryHandle, value: CounterValue): void {
    this.own(handle).counter = value;
  }

  defaultCounter(): CounterValue | undefined {
    return this.info.directCounter === undefined ? undefined : this.missed;
  }

  setDefaultCounter(value: CounterValue): void {
    this.missed = value;
  }

  meterConfig(handle: EntryHandle): MeterConfig | undefined {
    return this.meters.get(this.own(handle));
  }

  configureMeter(handle: EntryHandle, config: MeterConfig | undefined): void {
    this.meters.set(this.own(handle), config);
  }

  defaultMeterConfig(): MeterConfig | undefined {
    return this.missedMeter;
  }

  configureDefaultMeter(config: MeterConfig | undefined): void {
    this.missedMeter = config;
  }

  lastHitUs(): number {
    return 0;
  }
}
