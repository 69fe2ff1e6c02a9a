import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { DROP_REASON_NAMES, PORT_CPU } from '../../p4/build/constants.ts';
import type { ActionCall, CounterValue, EntryHandle, MatchValue, ProgramControl } from '../../switch/control.ts';
import type { P4InfoIndex } from '../../wire/p4runtime/p4info-index.ts';
import type { MatchFieldInfo, NamedObject, TableInfo } from '../../wire/p4runtime/p4info-objects.ts';
import { describePacket, encodePacket, type PacketSpec, parsePacket, parseValue } from './packet-text.ts';

/** A switch under test. Time stands still between calls. */
export interface PacketSwitch {
  readonly p4Info: P4InfoIndex;
  readonly program: ProgramControl;
  /** A frame arrives at a port, or from the CPU at PORT_CPU, and is dealt with. */
  inject(port: number, frame: Uint8Array): void;
  /** What left since the last call. */
  takeSent(): { readonly port: number; readonly frame: Uint8Array }[];
  /** How many frames are queued at a port from now on. */
  setQueueDepth(port: number, frames: number): void;
  advance(us: number): void;
}

interface Sent {
  readonly port: number;
  readonly frame: Uint8Array;
}

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
export function runScript(device: PacketSwitch, path: string): void {
  new ScriptRun(device).run(path);
}

class ScriptRun {
  private readonly device: PacketSwitch;
  private readonly packets = new Map<string, PacketSpec>();
  private readonly entries = new Map<string, EntryHandle>();
  private sent: Sent[] = [];
  private lastPacket: PacketSpec = new Map();
  private dropsBefore: bigint[];
  private readonly dropsExpected = new Map<number, bigint>();

  constructor(device: PacketSwitch) {
    this.device = device;
    this.dropsBefore = this.drops();
  }

  run(path: string): void {
    let place = path;
    try {
      for (const [index, line] of readFileSync(path, 'utf8').split('\n').entries()) {
        const text = line.replace(/#.*$/, '').trim();
        if (text === '') continue;
        place = `${path}:${index + 1}: ${text}`;
        const [command, ...words] = text.split(/\s+/);
        if (command === 'include') this.include(join(dirname(path), words[0]!));
        else this.execute(command!, words);
      }
      place = `${path}: at the end`;
      this.settle();
    } catch (error) {
      throw new Error(`${place}\n${error instanceof Error ? error.message : String(error)}`, { cause: error });
    }
  }

  /** Included scripts set the stage; what they leave open is settled by the includer. */
  private include(path: string): void {
    for (const line of readFileSync(path, 'utf8').split('\n')) {
      const [command, ...words] = line.replace(/#.*$/, '').trim().split(/\s+/);
      if (command !== '') this.execute(command!, words);
    }
  }

  private execute(command: string, words: string[]): void {
    const commands: Readonly<Record<string, () => void>> = {
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
    run();
  }

  private name(words: readonly string[]): void {
    if (words[1] !== '=') throw new Error('let NAME = PACKET');
    this.packets.set(words[0]!, parsePacket(words.slice(2), this.packets));
  }

  private group(words: readonly string[]): void {
    const replicas = words.slice(1).map((word) => {
      const [port, instance] = word.split(':');
      return { port: Number(port), instance: Number(instance) };
    });
    this.device.program.setMulticastGroup(Number(words[0]), replicas);
  }

  private packet(words: readonly string[]): void {
    this.settle();
    this.lastPacket = parsePacket(words.slice(1), this.packets);
    this.device.inject(this.port(words[0]!), encodePacket(this.lastPacket));
    this.sent.push(...this.device.takeSent());
  }

  private drop(words: readonly string[]): void {
    const reason = Number(parseValue(`DROP_${words[0]}`));
    this.dropsExpected.set(reason, (this.dropsExpected.get(reason) ?? 0n) + BigInt(words[1] ?? 1));
  }

  private loseRegisters(): void {
    for (const register of this.device.program.registers.values())
      for (let index = 0; index < register.size; index++) register.write(index, 0n);
  }

  private port(word: string): number {
    return word === 'CPU' ? PORT_CPU : Number(word);
  }

  private add(words: string[]): void {
    const arrow = words.indexOf('=>');
    if (arrow < 0) throw new Error('add TABLE KEYS => ACTION');
    const table = this.device.p4Info.tables.require(words[0]!);
    const keys = new Map(words.slice(1, arrow).map(assignment));
    const priority = Number(keys.get('priority') ?? 0);
    keys.delete('priority');
    const calls = splitAt(words.slice(arrow + 1), '|').map((part) => this.action(table, part));
    const action =
      table.profile === undefined ? calls[0]! : { selector: calls.map((call) => ({ ...call, weight: 1 })) };
    const handle = this.table(table).insert(matchOf(table, keys), priority, action);
    this.entries.set(entryName(table, keys), handle);
  }

  private remove(words: string[]): void {
    const table = this.device.p4Info.tables.require(words[0]!);
    const name = entryName(table, new Map(words.slice(1).map(assignment)));
    const entry = this.entries.get(name);
    if (entry === undefined) throw new Error(`No entry was added as ${name}`);
    this.table(table).delete(entry);
    this.entries.delete(name);
  }

  private setDefault(words: string[]): void {
    const table = this.device.p4Info.tables.require(words[0]!);
    this.table(table).setDefault(this.action(table, words.slice(1)));
  }

  private table(info: TableInfo) {
    return named(this.device.program.tables, info);
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

  private meter(words: readonly string[]): void {
    const values = new Map(words.slice(2).map(assignment));
    const rate = (name: string): bigint => BigInt(values.get(name)!);
    named(this.device.program.meters, this.device.p4Info.meters.require(words[0]!)).configure(Number(words[1]), {
      cir: rate('cir'),
      cburst: rate('cburst'),
      pir: rate('pir'),
      pburst: rate('pburst'),
    });
  }

  private expect(port: number, spec: PacketSpec): void {
    const wanted = encodePacket(spec);
    const index = this.sent.findIndex((sent) => sent.port === port);
    if (index < 0) throw new Error(`Nothing left by port ${port}. ${this.happened()}`);
    const [{ frame }] = this.sent.splice(index, 1) as [Sent];
    if (Buffer.compare(frame, wanted) === 0) return;
    const found = describePacket(frame, spec);
    const differences = describePacket(wanted, spec).flatMap((line, layer) =>
      line === found[layer] ? [] : [`wanted ${line}`, `found  ${found[layer] ?? 'nothing'}`],
    );
    throw new Error([`Another packet left by port ${port}:`, ...differences].join('\n'));
  }

  private expectNothing(): void {
    if (this.sent.length > 0) throw new Error(this.happened());
  }

  private counter(words: readonly string[]): void {
    const values = new Map(words.slice(1).flatMap((word) => (word.includes('=') ? [assignment(word)] : [])));
    const want = { packets: BigInt(values.get('packets')!), bytes: values.get('bytes') };
    values.delete('packets');
    values.delete('bytes');
    const found = this.readCounter(words[0]!, words[1]!, values);
    if (found.packets !== want.packets || (want.bytes !== undefined && found.bytes !== BigInt(want.bytes)))
      throw new Error(`It counted ${found.packets} packets, ${found.bytes} bytes`);
  }

  private readCounter(name: string, index: string, keys: ReadonlyMap<string, string>): CounterValue {
    const { p4Info, program } = this.device;
    const info = p4Info.counters.get(name);
    if (info !== undefined) return named(program.counters, info).read(portCell(keys) ?? Number(parseValue(index)));
    const direct = p4Info.directCounters.require(name);
    const table = p4Info.tables.require(direct.tableId);
    const entry = this.entries.get(entryName(table, keys));
    if (entry === undefined) throw new Error(`No entry was added as ${entryName(table, keys)}`);
    return this.table(table).counter(entry)!;
  }

  private drops(): bigint[] {
    const counter = named(this.device.program.counters, this.device.p4Info.counters.require('drop_counter'));
    return Array.from({ length: counter.size }, (_, reason) => counter.read(reason).packets);
  }

  /** Everything that the last packet caused has been asked for. */
  private settle(): void {
    const drops = this.drops();
    for (const [reason, total] of drops.entries()) {
      const found = total - this.dropsBefore[reason]!;
      const wanted = this.dropsExpected.get(reason) ?? 0n;
      if (found !== wanted)
        throw new Error(
          `The last packet was dropped as ${reasonName(reason)} ${found} times, not ${wanted}. ${this.happened()}`,
        );
    }
    this.expectNothing();
    this.dropsBefore = drops;
    this.dropsExpected.clear();
  }

  private happened(): string {
    const drops = this.drops().flatMap((total, reason) =>
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

function named<T>(map: ReadonlyMap<string, T>, { name }: NamedObject): T {
  const object = map.get(name);
  if (object === undefined) throw new Error(`The program has no ${name}`);
  return object;
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
