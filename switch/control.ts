/**
 * What the P4Runtime server may do to a running program: the seam between `server/` and everything that executes packets.
 *
 * Names are those of the bmv2 JSON (which p4c also writes into P4Info). Values are non-negative bigints of the field's width;
 * the server has already checked widths, don't-care rules and identifiers, so an implementation only reports what it alone can
 * know: a full table, a duplicate, an entry that is gone.
 */

export type MatchValue =
  | { readonly kind: 'exact'; readonly value: bigint }
  | { readonly kind: 'lpm'; readonly value: bigint; readonly prefixLength: number }
  | { readonly kind: 'ternary'; readonly value: bigint; readonly mask: bigint }
  | { readonly kind: 'range'; readonly low: bigint; readonly high: bigint }
  /** `value` absent: matches anything. */
  | { readonly kind: 'optional'; readonly value?: bigint };

/** An action with its parameters in the order of its declaration. */
export interface ActionCall {
  readonly action: string;
  readonly params: readonly bigint[];
}

export interface WeightedAction extends ActionCall {
  /** How often the selector prefers this member over one of weight 1; at least 1. */
  readonly weight: number;
  /** The member is not chosen while this port is down ({@link DeviceControl.setPortUp}); absent: always eligible. */
  readonly watchPort?: number;
}

/** What an entry does: one action, or, in a table with a selector, one of several chosen by hash. */
export type EntryAction = ActionCall | { readonly selector: readonly WeightedAction[] };

/** An installed entry; opaque to the server. Key and action are made anew whenever they are asked for. */
export interface EntryHandle {
  /** Optional keys are ternary ones where the table has them so. */
  readonly match: readonly MatchValue[];
  /** P4Runtime's: the higher number wins; 0 in tables without ternary, range or optional keys. */
  readonly priority: number;
  readonly action: EntryAction;
  /** The server's, which hangs onto an entry what only the protocol knows of it; the device leaves it alone. */
  note: unknown;
}

export interface CounterValue {
  readonly packets: bigint;
  readonly bytes: bigint;
}

/** Two-rate three-colour meter (RFC 2698): rates per second, bursts; in bytes or packets as the meter was declared. */
export interface MeterConfig {
  readonly cir: bigint;
  readonly cburst: bigint;
  readonly pir: bigint;
  readonly pburst: bigint;
}

/** One key of a table, in the order of its declaration; `match` in entries has the same order. */
export interface TableKey {
  readonly name: string;
  readonly kind: MatchValue['kind'];
  readonly widthBits: number;
}

export interface TableControl {
  readonly name: string;
  readonly size: number;
  /** For checking that a P4Info belongs to this JSON; p4c writes optional keys as ternary ones. */
  readonly keys: readonly TableKey[];
  /** Names of the actions that entries of this table may have. */
  readonly actions: readonly string[];
  /** Throws DdfError ALREADY_EXISTS or TABLE_FULL. */
  insert(match: readonly MatchValue[], priority: number, action: EntryAction): EntryHandle;
  /** Throws DdfError NOT_FOUND when the handle was deleted. Keeps direct counters. */
  modify(entry: EntryHandle, action: EntryAction): EntryHandle;
  delete(entry: EntryHandle): void;
  /** Entries that are there now. */
  readonly count: number;
  /** The entry with exactly this match and priority. */
  find(match: readonly MatchValue[], priority: number): EntryHandle | undefined;
  /** In the order in which they were inserted. */
  entries(): Iterable<EntryHandle>;
  /** Entries that the program itself declares (`const entries` or `entries`). */
  isConst(entry: EntryHandle): boolean;
  /** `undefined` restores the program's own default action. */
  setDefault(action: ActionCall | undefined): void;
  defaultAction(): ActionCall | undefined;
  /** Direct counter of an entry; `undefined` when the table has none. */
  counter(entry: EntryHandle): CounterValue | undefined;
  setCounter(entry: EntryHandle, value: CounterValue): void;
  /** Direct counter of the default entry: packets that missed; `undefined` when the table has none. */
  defaultCounter(): CounterValue | undefined;
  setDefaultCounter(value: CounterValue): void;
  /** Whether entries have a meter each, whose colour the packet gets on a hit before the action runs. */
  readonly hasMeter: boolean;
  /** `undefined`: never configured, so always green. Modifying an entry keeps its meter. */
  meterConfig(entry: EntryHandle): MeterConfig | undefined;
  /** `undefined` makes it always green. Throws INVALID_REQUEST in a table without direct meters. */
  configureMeter(entry: EntryHandle, config: MeterConfig | undefined): void;
  /** The default entry's meter; as long as it is not configured, a miss leaves the result field alone. */
  defaultMeterConfig(): MeterConfig | undefined;
  configureDefaultMeter(config: MeterConfig | undefined): void;
  /** Time of the entry's last hit on the device's clock, or of its insertion. */
  lastHitUs(entry: EntryHandle): number;
}

export interface CounterArrayControl {
  readonly name: string;
  readonly size: number;
  read(index: number): CounterValue;
  write(index: number, value: CounterValue): void;
}

export interface MeterArrayControl {
  readonly name: string;
  readonly size: number;
  /** `undefined` makes the cell always green. */
  configure(index: number, config: MeterConfig | undefined): void;
  config(index: number): MeterConfig | undefined;
}

export interface RegisterArrayControl {
  readonly name: string;
  readonly size: number;
  readonly widthBits: number;
  read(index: number): bigint;
  write(index: number, value: bigint): void;
}

/** A kind of message that the program makes for the control plane: a learn list of the bmv2 JSON. */
export interface DigestControl {
  readonly name: string;
  /** In the order of a message's values. */
  readonly fields: readonly { readonly name: string; readonly widthBits: number }[];
}

/** A set of values that the parser selects by. A member has one value per key: exact, ternary, range or lpm as P4Info says. */
export interface ValueSetControl {
  readonly name: string;
  /** Members at most. */
  readonly size: number;
  readonly keys: readonly { readonly name: string; readonly widthBits: number }[];
  /** Replaces all of them. Throws TABLE_FULL when there are more than `size`. */
  setMembers(members: readonly (readonly MatchValue[])[]): void;
  members(): readonly (readonly MatchValue[])[];
}

/** One copy, by the first of the ports `port`, `backups[0].port`, ... that is up; by none when all are down. */
export interface Replica {
  readonly port: number;
  readonly instance: number;
  readonly backups?: readonly { readonly port: number; readonly instance: number }[];
}

export interface ReplicationControl {
  /** Replaces the group's replicas; an empty list is a group that drops. */
  setMulticastGroup(id: number, replicas: readonly Replica[]): void;
  deleteMulticastGroup(id: number): void;
  /** `truncateBytes` 0: whole packets. */
  setCloneSession(id: number, replicas: readonly Replica[], truncateBytes: number): void;
  deleteCloneSession(id: number): void;
}

/** A program with its state. A compiled one begins empty but for its own entries. */
export interface ProgramControl extends ReplicationControl {
  readonly tables: ReadonlyMap<string, TableControl>;
  readonly counters: ReadonlyMap<string, CounterArrayControl>;
  readonly meters: ReadonlyMap<string, MeterArrayControl>;
  readonly registers: ReadonlyMap<string, RegisterArrayControl>;
  readonly digests: ReadonlyMap<string, DigestControl>;
  readonly valueSets: ReadonlyMap<string, ValueSetControl>;
  /** Called with each digest message of the packet path, one value per field; must not throw. */
  onDigest: ((digest: DigestControl, values: readonly bigint[]) => void) | undefined;
  /** Action names by table, and each action's parameters: for checking that a P4Info belongs to this JSON. */
  readonly actions: ReadonlyMap<string, readonly { readonly name: string; readonly widthBits: number }[]>;
}

/** A device as its P4Runtime server sees it. */
export interface DeviceControl {
  readonly deviceId: bigint;
  readonly cpuPort: number;
  /** Parses, validates and compiles a bmv2 JSON; throws INVALID_PROGRAM or UNSUPPORTED_PROGRAM and keeps what runs. */
  compile(bmv2Json: Uint8Array): LoadableProgram;
  /** Replaces the running program and all of its state by `program.control` as it is now. */
  load(program: LoadableProgram): ProgramControl;
  readonly program: ProgramControl | undefined;
  /** A frame as the CPU port sends it: the packet-out controller header first. */
  sendFromCpu(frame: Uint8Array): void;
  /** Called with every frame that leaves by the CPU port (packet-in controller header first). */
  onCpuFrame: ((frame: Uint8Array) => void) | undefined;
  /**
   * Whether a port's link is up, for watch ports and backup replicas. Ports are up until someone says otherwise; frames for a port
   * that is down are still handed to it.
   */
  setPortUp(port: number, up: boolean): void;
  isPortUp(port: number): boolean;
}

/** A compiled program that can be loaded. */
export interface LoadableProgram {
  /** The program before it runs: for checking it, and for writing to it what is to be there from its first packet on. */
  readonly control: ProgramControl;
}
