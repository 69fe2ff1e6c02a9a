/**
 * What the controller can do, as its REST API offers it. `api/` speaks only this interface; `main.ts` implements it over directory,
 * planner, rollout and switches. Every method that fails throws a DdfError (NOT_FOUND, INVALID_REQUEST, CONFLICT, ...).
 *
 * Everything here is JSON-safe: hashes are lowercase hex, object ids 16 hex digits, times ISO 8601, sizes whole bytes.
 */
export interface ControllerService {
  objects(): ObjectView[];
  versions(object: string): VersionView[];
  /** Holders of one version, or of all versions of the object. */
  holders(object: string, version?: number): HolderView[];
  servers(): AgentView[];
  memoryNodes(): AgentView[];
  switches(): SwitchView[];
  /** Groups of ordinary IP multicast that hosts have joined by IGMP. */
  multicastGroups(): MulticastGroupView[];
  transfers(): TransferView[];
  topology(): TopologyView;
  /** Resolves once a Memory Node has stored and hashed the version and, with `base`, has made the delta. */
  publish(request: PublishRequest): Promise<VersionView>;
  /** A dry run: the plan that a rollout started now would execute. */
  plan(request: RolloutRequest): Plan;
  /** Joins a running rollout of the same object, version and targets instead of starting a second one. */
  startRollout(request: RolloutRequest): RolloutView;
  rollouts(): RolloutView[];
  rollout(id: string): RolloutView;
  abortRollout(id: string): RolloutView;
  /** Past events of the rollout after `afterId`, then new ones until it ends or `signal` aborts. */
  rolloutEvents(id: string, afterId: number, signal: AbortSignal): AsyncIterable<RolloutEvent>;
  /**
   * What happens to packets inside a switch. Absent where switches are programs of their own: those are asked directly
   * (`ddf trace --admin`).
   */
  trace?: (switchName: string, request: TraceRequest) => Promise<PacketTraceView[]>;
  /** Prometheus text exposition of the controller's own figures. */
  metrics(): string;
  /** Why the controller cannot work now; empty when ready. */
  notReady(): string[];
}

/** Either one `frame` that comes by `port`, or the next `count` packets. */
export interface TraceRequest {
  /** With a frame: the port it comes by. Without: only packets of this port. */
  port?: number;
  /** The frame in hexadecimal, from the destination address on. */
  frame?: string;
  /** Whether the frame is really received; otherwise it is only tried and leaves no marks. Default false. */
  inject?: boolean;
  /** Packets to wait for, 1 to 1000; default 1. */
  count?: number;
  /** How long they are waited for, at most 60; default 10. */
  seconds?: number;
}

export interface PacketTraceView {
  /** The port that the packet came by. */
  port: number;
  /** On the switch's clock, microseconds. */
  atUs: number;
  /** What happened, in order; each has a `kind` and, in the program's names, what belongs to it. */
  events: readonly object[];
  /** The same for people to read. */
  text: string;
}

export interface PublishRequest {
  /** Name such as `models/demo`; 1 to 200 characters of letters, digits and `._-/`. */
  object: string;
  version: number;
  /** A file that the Memory Node can read. */
  path: string;
  /** A version that the Memory Node holds: the delta from it is made at once. */
  base?: number;
  /** Default: the attached Memory Node with the fewest bytes that is allowed. */
  memoryNode?: string;
}

export interface RolloutRequest {
  object: string;
  version: number;
  /** Server names, or `all` for every server of the topology. */
  servers: string[] | 'all';
  /** Seconds from now after which what is missing is read by unicast. Default 120. */
  deadlineSeconds?: number;
  /** Default: all, within 20 s. */
  start?: StartRule;
  /** Default: all. */
  end?: EndRule;
}

/**
 * When a sender starts. `all`: as soon as every receiver that is attached is ready; `quorum`: as soon as `servers` of its receivers are; `deadline`:
 * when `withinSeconds` have passed, or everybody is ready, attached or not. After `withinSeconds` it starts with those who are ready, whatever the rule.
 */
export interface StartRule {
  rule: 'all' | 'quorum' | 'deadline';
  /** Only with `quorum`, and needed there. */
  servers?: number;
  /** Default 20. */
  withinSeconds?: number;
}

/**
 * What a rollout wants before it activates. `all`: every server has proved the version; one that cannot makes the rollout fail. `quorum`: `servers` have;
 * the others are let go. `deadline`: whoever has at the deadline; the others are let go. Who was let go is listed as failed, with the reason.
 */
export interface EndRule {
  rule: 'all' | 'quorum' | 'deadline';
  /** Only with `quorum`, and needed there. */
  servers?: number;
}

export interface ObjectView {
  name: string;
  objectId: string;
  tenant: number;
  versions: number[];
}

export interface VersionView {
  object: string;
  objectId: string;
  version: number;
  sizeBytes: number;
  rootSha256: string;
  createdAt: string;
  /** Payloads that exist: the full image (base null) and deltas. */
  payloads: { base: number | null; sizeBytes: number; memoryNodes: string[] }[];
  holders: number;
}

export interface HolderView {
  agent: string;
  kind: 'memory-node' | 'gpu-server';
  version: number;
  rootSha256: string;
  incarnation: string;
  attached: boolean;
  since: string;
}

export interface AgentView {
  name: string;
  kind: 'memory-node' | 'gpu-server';
  attached: boolean;
  ip: string;
  switch: string;
  incarnation: string | null;
  held: { object: string; version: number; rootSha256: string }[];
  active: { object: string; version: number }[];
}

export interface SwitchView {
  name: string;
  deviceId: number;
  layer: string;
  state: 'connecting' | 'primary' | 'backup' | 'down';
  /** What the target said it can do. */
  p4runtimeVersion: string | null;
  entries: number;
  /** Counted by the P4 program; only reasons that occurred. */
  drops: { reason: string; packets: number }[];
}

export interface MulticastGroupView {
  /** Dotted decimal. */
  group: string;
  /** Names of the hosts that listen, in the order in which they joined. */
  members: string[];
  /** False for a moment after the first join, and where a switch has no room for the group: then its members get nothing. */
  replicated: boolean;
}

export interface TopologyView {
  name: string;
  mtuBytes: number;
  switches: { name: string; layer: string }[];
  hosts: { name: string; kind: string; switch: string; port: number; ip: string }[];
  links: { a: string; b: string; rateBitsPerSecond: number }[];
}

export type Mechanism = 'none' | 'multicast' | 'unicast';

/** Where an estimate comes from. */
export type EstimateSource = 'configured' | 'measured' | 'learned';

export interface Estimate {
  value: number;
  unit: string;
  source: EstimateSource;
  basis: string;
}

export interface PlanCohort {
  kind: 'current' | 'delta' | 'full';
  /** Version that the members hold; null where they have nothing of use. */
  from: number | null;
  servers: string[];
  mechanism: Mechanism;
  /** Null for the cohort that is current. */
  payload: { base: number | null; sizeBytes: number } | null;
  /** Who sends, or, by unicast, whom the servers read from by range; the first one where there are several. */
  source: string | null;
  /** The parts that the payload is sent in, each over a tree of its own; none by unicast. */
  stripes: PlanStripe[];
  predictedSeconds: Estimate | null;
  reasons: string[];
  /** What else was possible, and why it was not taken. */
  rejected: { alternative: string; reason: string; bytes: number }[];
}

export interface PlanStripe {
  source: string;
  /** Switches from the source's on, in breadth-first order. */
  switches: string[];
  /** Directed switch-to-switch links that carry the payload once. */
  coreLinks: { from: string; to: string }[];
  /** Links to receivers; the source's own is not among them. */
  hostLinks: number;
}

export interface Plan {
  object: string;
  objectId: string;
  version: number;
  targets: number;
  cohorts: PlanCohort[];
  /** Payload bytes, without headers and repair. */
  bytes: {
    source: number;
    coreLinks: number;
    hostLinks: number;
    /** What every target that is not current, fetching the whole object by itself, would take out of the source. */
    unicastSource: number;
    /** The same over switch-to-switch links: the object once per server and link of its path. */
    unicastCoreLinks: number;
  };
  warnings: string[];
}

export type RolloutState =
  | 'queued'
  | 'planned'
  | 'distributing'
  | 'verifying'
  | 'staged'
  | 'active'
  | 'aborted'
  | 'failed';

export interface RolloutView {
  id: string;
  object: string;
  version: number;
  state: RolloutState;
  plan: Plan;
  servers: {
    name: string;
    cohort: 'current' | 'delta' | 'full';
    state: ServerState;
    bytesDone: number;
    bytesTotal: number;
    error: string | null;
  }[];
  transfers: TransferView[];
  verified: number;
  /** Seconds spent in each state that was left, in order. */
  phases: { state: RolloutState; seconds: number }[];
  startedAt: string;
  endedAt: string | null;
  error: string | null;
}

export type ServerState = 'waiting' | 'receiving' | 'reconstructing' | 'verified' | 'active' | 'failed';

export interface TransferView {
  label: number;
  rollout: string;
  object: string;
  version: number;
  base: number | null;
  /** The Memory Node that sends; `unicast` for what servers read by range from holders because no tree brings it. */
  source: string;
  state: 'installing' | 'preparing' | 'sending' | 'sent' | 'closed' | 'failed';
  receivers: number;
  complete: number;
  payloadBytes: number;
  /** Bytes of the payload in one packet; null by unicast. */
  segmentBytes: number | null;
  /** The largest segments, up to those, that the sender's probes brought to every receiver; null before that is known. */
  pathSegmentBytes: number | null;
  /** Why its sender has failed. */
  error: TransferError | null;
  sender: Record<string, number>;
  /** Sums over the receivers' counters. */
  receiverTotals: Record<string, number>;
}

/** An agent's error: a code of docs/errors.md and texts, empty where there is nothing to say. */
export interface TransferError {
  code: string;
  message: string;
  where: string;
  remedy: string;
}

export interface RolloutEvent {
  id: number;
  at: string;
  type: 'state' | 'server' | 'transfer' | 'note';
  /** Text that a person reads. */
  message: string;
  state: RolloutState;
  verified: number;
  total: number;
}
