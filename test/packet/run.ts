import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { DROP_REASON_NAMES, PORT_CPU } from '../../p4/build/constants.ts';
import type { ActionCall, CounterValue, EntryAction, MatchValue, MeterConfig, Replica } from '../../switch/control.ts';
import type { P4InfoIndex } from '../../wire/p4runtime/p4info-index.ts';
import type { CounterInfo, MatchFieldInfo, MeterInfo, TableInfo } from '../../wire/p4runtime/p4info-objects.ts';
import {
  describePacket,
  encodePacket,
  type PacketSpec,
  parsePacket,
  parseValue,
  queueLevelOffset,
} from './packet-text.ts';

type Awaitable<T> = T | Promise<T>;

/** An entry of a table; the same object means the same entry. */
export interface TestEntry {
  readonly table: TableInfo;
  /** In the order of the table's fields. */
  readonly match: readonly MatchValue[];
  readonly priority: number;
  readonly action: EntryAction;
}

export interface SentFrame {
  readonly port: number;
  readonly frame: Uint8Array;
}

/** A switch under test. */
export interface PacketSwitch {
  readonly p4Info: P4InfoIndex;
  /** Time goes on between calls, and frames may wait in a queue even if nobody said so. */
  readonly inRealTime: boolean;
  insert(entry: TestEntry): Awaitable<void>;
  remove(entry: TestEntry): Awaitable<void>;
  setDefault(table: TableInfo, action: ActionCall): Awaitable<void>;
  setMulticastGroup(id: number, replicas: readonly Replica[]): Awaitable<void>;
  configureMeter(meter: MeterInfo, index: number, config: MeterConfig): Awaitable<void>;
  /** All cells. */
  readCounter(counter: CounterInfo): Awaitable<readonly CounterValue[]>;
  readCounterCell(counter: CounterInfo, index: number): Awaitable<CounterValue>;
  /** The direct counter. */
  readEntryCounter(entry: TestEntry): Awaitable<CounterValue>;
  /** A frame arrives at a port, or from the CPU at PORT_CPU, and is dealt with. */
  inject(port: number, frame: Uint8Array): Awaitable<void>;
  /** What left since the last call. */
  takeSent(): SentFrame[];
  /** What leaves only now, when something was expected and has not left. */
  takeLate(): Awaitable<SentFrame[]>;
  /** How many frames are queued at a port from now on. */
  setQueueDepth(port: number, frames: number): void;
  /** Lets so much time pass. */
  advance(us: number): Awaitable<void>;
  /** All registers are 0 from now on; entries are as they were, counters may be 0 too. */
  loseRegisters(): Awaitable<void>;
}

/** Why a kind of switch cannot do a command, if so; `us` is the time that is to pass. */
export type Inability = (command: string, us: number | undefined) => string | undefined;

/**
 * Runs a script of packets: one command a line, `#` begins a comment.
 *
 *     include FILE                         a script of the same folder
 *     let NAME = PACKET                    a packet that later ones start from (packet-text.ts says how packets are written)
 *     add TABLE KEY=VALUE... [priority=N] => ACTION PARAM=VALUE... [| ACTION PARAM=VALUE...]...
 *     remove TABLE KEY=VALUE...
 *     setdefault TABLE ACTION PARAM=VALUE...
 *     group ID PORT:INSTANCE...
 *     meter NAME INDEX cir=N cburst=N pir=N pburst=N
 *     packet PORT PACKET                   the port may be CPU
 *     expect PORT PACKET                   one frame, all of its bytes
 *     drop REASON [TIMES]                  by the drop counter
 *     no_packet
 *     counter NAME INDEX|KEY=VALUE... packets=N [bytes=N]
 *     queue PORT FRAMES                    so many frames wait at that port from now on
 *     advance TIME                         in us, ms or s
 *     lose_registers                       as a switch that restarts
 *
 * Until the next `packet`, or the end, every frame that left has to be expected and every count of the drop counter named.
 * Throws an Error that begins with file and line.
 */
export function runScript(device: PacketSwitch, path: string): Promise<void> {
  return new ScriptRun(device).run(path);
}

/** Why a script cannot run on a kind of switch: its first command that the switch cannot do. */
export function whyNot(unable: Inability, path: string): string | undefined {
  for (const line of readFileSync(path, 'utf8').split('\n')) {
    const [command, ...words] = line.replace(/#.*$/, '').trim().split(/\s+/);
    const reason =
      command === 'include'
        ? whyNot(unable, join(dirname(path), words[0]!))
        : unable(command!, command === 'advance' ? durationUs(words[0]!) : undefined);
    if (reason !== undefined) return reason;
  }
  return undefined;
}

class ScriptRun {
  private readonly device: PacketSwitch;
  private readonly packets = new Map<string, PacketSpec>();
  private readonly entries = new Map<string, TestEntry>();
  private sent: SentFrame[] = [];
  private lastPacket: PacketSpec = new Map();
  private dropsBefore: bigint[] = [];
  private readonly dropsExpected = new Map<number, bigint>();

  constructor(device: PacketSwitch) {
    this.device = device;
  }

  async run(path: string): Promise<void> {
    let place = path;
    try {
      this.dropsBefore = await this.drops();
      for (const [index, line] of readFileSync(path, 'utf8').split('\n').entries()) {
        const text = line.replace(/#.*$/, '').trim();
        if (text === '') continue;
        place = `${path}:${index + 1}: ${text}`;
        const [command, ...words] = text.split(/\s+/);
        if (command === 'include') await this.include(join(dirname(path), words[0]!));
        else await this.execute(command!, words);
      }
      place = `${path}: at the end`;
      await this.settle();
    } catch (error) {
      throw new Error(`${place}\n${error instanceof Error ? error.message : String(error)}`, { cause: error });
    }
  }

  /** Included scripts set the stage; what they leave open is settled by the includer. */
  private async include(path: string): Promise<void> {
    for (const line of readFileSync(path, 'utf8').split('\n')) {
      const [command, ...words] = line.replace(/#.*$/, '').trim().split(/\s+/);
      if (command !== '') await this.execute(command!, words);
    }
  }

  private async execute(command: string, words: string[]): Promise<void> {
    const commands: Readonly<Record<string, () => Awaitable<void>>> = {
      let: () => this.name(words),
      add: () => this.add(words),
      remove: () => this.remove(words),
      setdefault: () => this.setDefault(words),
      group: () => this.group(words),
      meter: () => this.meter(words),
      packet: () => this.packet(words),
      expect: () => this.expect(this.port(words[0]!), parsePacket(words.slice(1), this.packets)),
      no_packet: () => this.expectNothing(),
      drop: () => this.drop(words),
      counter: () => this.counter(words),
      queue: () => this.device.setQueueDepth(Number(words[0]), Number(words[1])),
      advance: () => this.device.advance(durationUs(words[0]!)),
      lose_registers: () => this.loseRegisters(),
    };
    const run = commands[command];
    if (run === undefined) throw new Error(`There is no command ${command}`);
    await run();
  }

  private name(words: readonly string[]): void {
    if (words[1] !== '=') throw new Error('let NAME = PACKET');
    this.packets.set(words[0]!, parsePacket(words.slice(2), this.packets));
  }

  private group(words: readonly string[]): Awaitable<void> {
    const replicas = words.slice(1).map((word) => {
      const [port, instance] = word.split(':');
      return { port: Number(port), instance: Number(instance) };
    });
    return this.device.setMulticastGroup(Number(words[0]), replicas);
  }

  private async packet(words: readonly string[]): Promise<void> {
    await this.settle();
    this.lastPacket = parsePacket(words.slice(1), this.packets);
    await this.device.inject(this.port(words[0]!), encodePacket(this.lastPacket));
    this.sent.push(...this.device.takeSent());
  }

  private drop(words: readonly string[]): void {
    const reason = Number(parseValue(`DROP_${words[0]}`));
    this.dropsExpected.set(reason, (this.dropsExpected.get(reason) ?? 0n) + BigInt(words[1] ?? 1));
  }

  private async loseRegisters(): Promise<void> {
    await this.settle();
    await this.device.loseRegisters();
    this.dropsBefore = await this.drops();
  }

  private port(word: string): number {
    return word === 'CPU' ? PORT_CPU : Number(word);
  }

  private async add(words: string[]): Promise<void> {
    const arrow = words.indexOf('=>');
    if (arrow < 0) throw new Error('add TABLE KEYS => ACTION');
    const table = this.device.p4Info.tables.require(words[0]!);
    const keys = new Map(words.slice(1, arrow).map(assignment));
    const priority = Number(keys.get('priority') ?? 0);
    keys.delete('priority');
    const calls = splitAt(words.slice(arrow + 1), '|').map((part) => this.action(table, part));
    const action =
      table.profile === undefined ? calls[0]! : { selector: calls.map((call) => ({ ...call, weight: 1 })) };
    const entry = { table, match: matchOf(table, keys), priority, action };
    await this.device.insert(entry);
    this.entries.set(entryName(table, keys), entry);
  }

  private async remove(words: string[]): Promise<void> {
    const table = this.device.p4Info.tables.require(words[0]!);
    const name = entryName(table, new Map(words.slice(1).map(assignment)));
    await this.device.remove(this.entry(name));
    this.entries.delete(name);
  }

  private entry(name: string): TestEntry {
    const entry = this.entries.get(name);
    if (entry === undefined) throw new Error(`No entry was added as ${name}`);
    return entry;
  }

  private setDefault(words: string[]): Awaitable<void> {
    const table = this.device.p4Info.tables.require(words[0]!);
    return this.device.setDefault(table, this.action(table, words.slice(1)));
  }

  private action(table: TableInfo, words: readonly string[]): ActionCall {
    const info = table.actions.map(({ action }) => action).find(({ alias }) => alias === words[0]);
    if (info === undefined) throw new Error(`${table.alias} has no action ${words[0]}`);
    const values = new Map(words.slice(1).map(assignment));
    const params = info.params.map(({ name }) => {
      const value = values.get(name);
      if (value === undefined) throw new Error(`${info.alias} needs ${name}`);
      values.delete(name);
      return parseValue(value);
    });
    for (const name of values.keys()) throw new Error(`${info.alias} has no parameter ${name}`);
    return { action: info.name, params };
  }

  private meter(words: readonly string[]): Awaitable<void> {
    const values = new Map(words.slice(2).map(assignment));
    const rate = (name: string): bigint => BigInt(values.get(name)!);
    return this.device.configureMeter(this.device.p4Info.meters.require(words[0]!), Number(words[1]), {
      cir: rate('cir'),
      cburst: rate('cburst'),
      pir: rate('pir'),
      pburst: rate('pburst'),
    });
  }

  /** The order of several copies for one port is nobody's promise. */
  private async expect(port: number, spec: PacketSpec): Promise<void> {
    const here = (): SentFrame[] => this.sent.filter((sent) => sent.port === port);
    if (here().length === 0) this.sent.push(...(await this.device.takeLate()));
    const sent = here().find(({ frame }) => this.isSame(frame, spec)) ?? here()[0];
    if (sent === undefined) throw new Error(`Nothing left by port ${port}. ${await this.happened()}`);
    this.sent.splice(this.sent.indexOf(sent), 1);
    const { frame } = sent;
    if (this.isSame(frame, spec)) return;
    const wanted = encodePacket(spec);
    const found = describePacket(frame, spec);
    const differences = describePacket(wanted, spec).flatMap((line, layer) =>
      line === found[layer] ? [] : [`wanted ${line}`, `found  ${found[layer] ?? 'nothing'}`],
    );
    throw new Error([`Another packet left by port ${port}:`, ...differences].join('\n'));
  }

  /** In real time it depends on the moment how full a queue is. */
  private isSame(frame: Uint8Array, spec: PacketSpec): boolean {
    const wanted = encodePacket(spec);
    const level = this.device.inRealTime ? queueLevelOffset(spec) : undefined;
    if (level !== undefined && level < frame.length) wanted[level] = frame[level]!;
    return Buffer.compare(frame, wanted) === 0;
  }

  private async expectNothing(): Promise<void> {
    if (this.sent.length > 0) throw new Error(await this.happened());
  }

  private async counter(words: readonly string[]): Promise<void> {
    const values = new Map(words.slice(1).flatMap((word) => (word.includes('=') ? [assignment(word)] : [])));
    const want = { packets: BigInt(values.get('packets')!), bytes: values.get('bytes') };
    values.delete('packets');
    values.delete('bytes');
    const found = await this.readCounter(words[0]!, words[1]!, values);
    if (found.packets !== want.packets || (want.bytes !== undefined && found.bytes !== BigInt(want.bytes)))
      throw new Error(`It counted ${found.packets} packets, ${found.bytes} bytes`);
  }

  private readCounter(name: string, index: string, keys: ReadonlyMap<string, string>): Awaitable<CounterValue> {
    const { p4Info } = this.device;
    const info = p4Info.counters.get(name);
    if (info !== undefined) return this.device.readCounterCell(info, portCell(keys) ?? Number(parseValue(index)));
    const table = p4Info.tables.require(p4Info.directCounters.require(name).tableId);
    return this.device.readEntryCounter(this.entry(entryName(table, keys)));
  }

  private async drops(): Promise<bigint[]> {
    const cells = await this.device.readCounter(this.device.p4Info.counters.require('drop_counter'));
    return cells.map(({ packets }) => packets);
  }

  /** Everything that the last packet caused has been asked for. */
  private async settle(): Promise<void> {
    this.sent.push(...this.device.takeSent());
    const drops = await this.drops();
    for (const [reason, total] of drops.entries()) {
      const found = total - this.dropsBefore[reason]!;
      const wanted = this.dropsExpected.get(reason) ?? 0n;
      if (found !== wanted)
        throw new Error(
          `The last packet was dropped as ${reasonName(reason)} ${found} times, not ${wanted}. ${await this.happened()}`,
        );
    }
    await this.expectNothing();
    this.dropsBefore = drops;
    this.dropsExpected.clear();
  }

  private async happened(): Promise<string> {
    const drops = (await this.drops()).flatMap((total, reason) =>
      total === this.dropsBefore[reason] ? [] : [`dropped as ${reasonName(reason)}`],
    );
    const sent = this.sent.map(
      ({ port, frame }) => `left by port ${port}:\n${describePacket(frame, this.lastPacket).join('\n')}`,
    );
    return [...drops, ...sent].join('; ') || 'Nothing left and nothing was dropped.';
  }
}

function reasonName(reason: number): string {
  return DROP_REASON_NAMES[reason] ?? String(reason);
}

function assignment(word: string): [string, string] {
  const [, name, value] = /^(\w+)=(\S+)$/.exec(word) ?? [];
  if (name === undefined) throw new Error(`"${word}" is not NAME=VALUE`);
  return [name, value!];
}

function splitAt(words: readonly string[], separator: string): string[][] {
  const parts: string[][] = [[]];
  for (const word of words) {
    if (word === separator) parts.push([]);
    else parts.at(-1)!.push(word);
  }
  return parts;
}

function entryName(table: TableInfo, keys: ReadonlyMap<string, string>): string {
  return `${table.alias} ${[...keys].map(([name, value]) => `${name}=${value}`).join(' ')}`;
}

/** The cell of a port counter: `port=N tagged=0|1 kind=KIND`. */
function portCell(keys: ReadonlyMap<string, string>): number | undefined {
  const [port, tagged, kind] = ['port', 'tagged', 'kind'].map((name) => keys.get(name));
  if (port === undefined || tagged === undefined || kind === undefined) return undefined;
  return (Number(port) << 5) | (Number(tagged) << 4) | Number(parseValue(kind));
}

function matchOf(table: TableInfo, keys: Map<string, string>): MatchValue[] {
  const match = table.fields.map((field): MatchValue => matchValue(field, keys.get(field.name)));
  for (const name of keys.keys())
    if (!table.fieldByName.has(name)) throw new Error(`${table.alias} has no key ${name}`);
  return match;
}

function matchValue(field: MatchFieldInfo, text: string | undefined): MatchValue {
  switch (field.kind) {
    case 'lpm': {
      const [address, length] = (text ?? '0.0.0.0/0').split('/');
      return { kind: 'lpm', value: parseValue(address!), prefixLength: Number(length ?? field.widthBits) };
    }
    case 'ternary': {
      if (text === undefined) return { kind: 'ternary', value: 0n, mask: 0n };
      const [value, mask] = text.split('&&&');
      const all = (1n << BigInt(field.widthBits)) - 1n;
      return { kind: 'ternary', value: parseValue(value!), mask: mask === undefined ? all : parseValue(mask) };
    }
    default:
      if (text === undefined) throw new Error(`The key ${field.name} is missing`);
      return { kind: 'exact', value: parseValue(text) };
  }
}

function durationUs(text: string): number {
  const [, amount, unit] = /^(\d+)(us|ms|s)$/.exec(text) ?? [];
  if (amount === undefined) throw new Error(`"${text}" is no time in us, ms or s`);
  return Number(amount) * { us: 1, ms: 1000, s: 1_000_000 }[unit as 'us' | 'ms' | 's'];
}
