import { DdfError } from '../../../base/errors.ts';
import type { FleetConnection } from '../../../controller/fabric/switch-fleet.ts';
import type {
  ConnectionState,
  CounterValue,
  ReceivedPacket,
  WriteOutcome,
} from '../../../controller/p4runtime/connection.ts';
import { applyUpdates, entityMap, type KnownEntity } from '../../../controller/reconcile/diff.ts';
import type { Entity, Update } from '../../../wire/p4runtime/messages.ts';

/** A switch as its connection shows it: holds what is written, counts what a test says, can go away or refuse. */
export class FakeSwitch implements FleetConnection {
  readonly name: string;
  state: ConnectionState = 'connecting';
  lastError: DdfError | undefined;
  onPacket: ((packet: ReceivedPacket) => void) | undefined;
  entities = new Map<string, KnownEntity>();
  /** Counters by name, then cell. */
  readonly counters = new Map<string, Map<number, CounterValue>>();
  readonly sent: { payload: Uint8Array; metadata: Readonly<Record<string, bigint>> }[] = [];
  /** What a write is refused with. */
  refusal: DdfError | undefined;
  private listeners: ((state: ConnectionState) => void)[] = [];
  private hasProgram = false;

  constructor(name: string) {
    this.name = name;
  }

  /** Entries of a kind whose key contains the text. */
  keys(text: string): string[] {
    return [...this.entities.keys()].filter((key) => key.includes(text));
  }

  enter(state: ConnectionState): void {
    this.state = state;
    for (const listener of [...this.listeners]) listener(state);
  }

  start(): void {
    this.enter('primary');
  }

  close(): void {
    this.enter('down');
  }

  onState(listener: (state: ConnectionState) => void): () => void {
    this.listeners.push(listener);
    return () => {
      this.listeners = this.listeners.filter((other) => other !== listener);
    };
  }

  async whenPrimary(): Promise<void> {
    this.requirePrimary();
  }

  async capabilities(): Promise<string> {
    return '1.5.0';
  }

  async setPipeline(): Promise<'installed' | 'unchanged'> {
    this.requirePrimary();
    const result = this.hasProgram ? 'unchanged' : 'installed';
    this.hasProgram = true;
    return result;
  }

  async read(): Promise<Entity[]> {
    this.requirePrimary();
    return [...this.entities.values()].map(({ entity }) => entity);
  }

  async write(updates: readonly Update[]): Promise<WriteOutcome> {
    this.requirePrimary();
    if (this.refusal !== undefined) throw this.refusal;
    applyUpdates(this.entities, updates);
    return { kind: 'applied' };
  }

  async readCounters(counter: string, indices: readonly number[] = []): Promise<Map<number, CounterValue>> {
    this.requirePrimary();
    const cells = this.counters.get(counter);
    return new Map(indices.map((index) => [index, cells?.get(index) ?? { packets: 0n, bytes: 0n }]));
  }

  sendPacket(payload: Uint8Array, metadata: Readonly<Record<string, bigint>>): boolean {
    this.sent.push({ payload, metadata });
    return true;
  }

  /** Another program was here before, or somebody else writes. */
  plant(entity: Entity): void {
    for (const [key, known] of entityMap([entity])) this.entities.set(key, known);
  }

  private requirePrimary(): void {
    if (this.state !== 'primary')
      throw new DdfError('SWITCH_UNREACHABLE', 'the switch is not connected', { where: this.name, recoverable: true });
  }
}
