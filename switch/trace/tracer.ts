import type { Header, HeaderField, Program, Table } from '../bmv2/program.ts';
import { parameterWords } from '../compile/action.ts';
import type { Layout } from '../compile/layout.ts';
import { type KeyLayout, keyLayout } from '../compile/table.ts';
import type { MatchValue } from '../control.ts';
import type { Frame } from '../ports/port.ts';
import { readWide } from '../runtime/arithmetic.ts';
import type { ActionRow, Entry } from '../runtime/entry.ts';
import type { Meter } from '../runtime/meters.ts';
import type { TracedAction, TracedValue, TraceEvent } from './events.ts';

/** Events that the trace of one packet holds. */
const MAX_EVENTS = 10_000;

/** Writes down what code that was generated with tracing tells it. */
export class Tracer {
  /** Whether counters, meters and times of entries take notice of the packet. */
  readonly live: boolean;
  private readonly program: Program;
  private readonly layout: Layout;
  private readonly phv: Uint32Array;
  private readonly keys: ReadonlyMap<Table, KeyLayout>;
  private readonly metadata: readonly HeaderField[];
  private events: TraceEvent[] = [];

  constructor(program: Program, layout: Layout, phv: Uint32Array, live: boolean) {
    this.program = program;
    this.layout = layout;
    this.phv = phv;
    this.live = live;
    this.keys = new Map(program.tables.map((table) => [table, keyLayout(table.keys)]));
    this.metadata = program.headers
      .filter((header) => header.metadata)
      .flatMap((header) => header.fields)
      // Temporaries of the compiler say nothing.
      .filter((field) => layout.isLive(field) && !/^tmp(_\d+)?$/.test(field.name));
  }

  /** What was told since the last call. */
  take(): TraceEvent[] {
    const taken = this.events;
    this.events = [];
    return taken;
  }

  ingress(port: number, frame: Frame): void {
    const instanceType = Number(this.read(this.program.standardMetadata.instanceType));
    this.add({ kind: 'ingress', port, instanceType, bytes: frame.length, frame: hexOf(frame) });
  }

  state(index: number): void {
    this.add({ kind: 'parser-state', state: this.program.parser.states[index]!.name });
  }

  parsed(bytes: number, error: number): void {
    const headers = this.validHeaders();
    if (error === this.program.errors.noError) this.add({ kind: 'parsed', bytes, headers });
    else this.add({ kind: 'parsed', bytes, headers, error: this.errorName(error) });
  }

  table(index: number, words: ArrayLike<number>, entry: Entry | undefined, row: ActionRow): void {
    const table = this.program.tables[index]!;
    const { places } = this.keys.get(table)!;
    const all = Uint32Array.from(words);
    const keys = table.keys.map(({ name, match, widthBits }, i) => {
      const { word, shift } = places[i]!;
      const value = readWide(all, word, Math.ceil((shift + widthBits) / 32)) >> BigInt(shift);
      return { name, match, value: hex(BigInt.asUintN(widthBits, value)) };
    });
    const action = this.actionOf(table, row);
    this.add({
      kind: 'table',
      table: table.name,
      keys,
      ...(keys.length === 0 ? {} : { hit: entry !== undefined }),
      ...(entry === undefined ? {} : { entry: { match: entry.match.map(matchText), priority: entry.priority } }),
      ...(action === undefined ? {} : { action }),
    });
  }

  action(index: number): void {
    this.add({ kind: 'action', action: this.program.actions[index]!.name });
  }

  condition(egress: boolean, index: number, holds: boolean): void {
    const node = (egress ? this.program.egress : this.program.ingress).nodes[index]!;
    const condition = node.kind === 'conditional' ? (node.source ?? node.name) : node.name;
    this.add({ kind: 'condition', condition, holds });
  }

  metadataAfter(egress: boolean): void {
    const values = this.metadata.flatMap((field): TracedValue[] => {
      const value = this.read(field);
      return value === 0n ? [] : [{ name: nameOf(field), value: hex(value) }];
    });
    this.add({ kind: 'metadata', after: egress ? 'egress' : 'ingress', values });
  }

  clone(egress: boolean, session: number, copies: number): void {
    this.add({ kind: 'clone', at: egress ? 'egress' : 'ingress', session, copies });
  }

  digest(index: number, values: readonly bigint[]): void {
    this.add({ kind: 'digest', digest: this.program.learnLists[index]!.name, values: values.map(hex) });
  }

  resubmit(): void {
    this.add({ kind: 'resubmit' });
  }

  recirculate(bytes: number): void {
    this.add({ kind: 'recirculate', bytes });
  }

  multicast(group: number, copies: number): void {
    this.add({ kind: 'multicast', group, copies });
  }

  dropped(place: number): void {
    this.add({ kind: 'drop', at: (['ingress', 'egress', 'queue'] as const)[place]! });
  }

  egress(port: number): void {
    const { egressRid, instanceType } = this.program.standardMetadata;
    this.add({
      kind: 'egress',
      port,
      instance: Number(this.read(egressRid)),
      instanceType: Number(this.read(instanceType)),
    });
  }

  transmit(port: number, frame: Frame): void {
    this.add({ kind: 'transmit', port, bytes: frame.length, headers: this.validHeaders(), frame: hexOf(frame) });
  }

  log(message: string): void {
    this.add({ kind: 'log', message });
  }

  fault(message: string): void {
    this.add({ kind: 'fault', message });
  }

  /** The meter that a direct meter's execution may change. */
  meter(meter: Meter): Meter {
    return this.live ? meter : meter.copy();
  }

  private add(event: TraceEvent): void {
    if (this.events.length < MAX_EVENTS) this.events.push(event);
    else if (this.events.length === MAX_EVENTS) this.events.push({ kind: 'cut' });
  }

  private actionOf(table: Table, row: ActionRow): TracedAction | undefined {
    const action = table.actions[row.action];
    if (action === undefined) return undefined;
    const { starts } = parameterWords(action);
    const parameters = action.parameters.map(({ name, widthBits }, i) => ({
      name,
      value: hex(readWide(row.data, starts[i]!, Math.ceil(widthBits / 32))),
    }));
    return { name: action.name, parameters };
  }

  private read(field: HeaderField | undefined): bigint {
    if (!this.layout.isLive(field)) return 0n;
    return readWide(this.phv, this.layout.place(field), Math.ceil(field.widthBits / 32));
  }

  private validHeaders(): string[] {
    const valid = ({ metadata }: Header): boolean => !metadata;
    return this.program.headers
      .filter(valid)
      .filter((header) => this.phv[this.layout.validityPlace(header)] !== 0)
      .map((header) => header.name);
  }

  private errorName(error: number): string {
    const known = Object.entries(this.program.errors).find(([, number]) => number === error)?.[0];
    return known === undefined ? `error ${error}` : known.charAt(0).toUpperCase() + known.slice(1);
  }
}

function nameOf(field: HeaderField): string {
  return field.header.name === 'scalars' ? field.name : `${field.header.name}.${field.name}`;
}

function matchText(match: MatchValue): string {
  switch (match.kind) {
    case 'exact':
      return hex(match.value);
    case 'lpm':
      return `${hex(match.value)}/${match.prefixLength}`;
    case 'ternary':
      return match.mask === 0n ? '*' : `${hex(match.value)}&&&${hex(match.mask)}`;
    case 'range':
      return `${hex(match.low)}..${hex(match.high)}`;
    case 'optional':
      return match.value === undefined ? '*' : hex(match.value);
  }
}

function hex(value: bigint): string {
  return `0x${value.toString(16)}`;
}

function hexOf(frame: Frame): string {
  let text = '';
  for (const byte of frame) text += byte.toString(16).padStart(2, '0');
  return text;
}
