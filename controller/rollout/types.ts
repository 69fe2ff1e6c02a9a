import type { EndRule, RolloutEvent, RolloutState, ServerState, StartRule } from '../service.ts';
import type { Tree } from '../topology/trees.ts';

/**
 * A rollout as a value. `step(state, event, nowUs)` in machine.ts returns the next value and what has to be done about it; nothing here
 * does I/O, and the value is JSON-safe, so that a restart finds it where it was.
 */
export interface Rollout {
  readonly id: string;
  readonly object: string;
  readonly version: number;
  readonly state: RolloutState;
  readonly servers: Readonly<Record<string, ServerProgress>>;
  readonly transfers: readonly TransferProgress[];
  /** Unicast lanes by which servers read a payload that no tree brings them; `base` 0 is the full image and always there. */
  readonly lanes: readonly Lane[];
  readonly limits: RolloutLimits;
  readonly rules: RolloutRules;
  /** By the clock that `step` is given. */
  readonly startedAtUs: number;
  readonly stateSinceUs: number;
  readonly phases: readonly { readonly state: RolloutState; readonly seconds: number }[];
  readonly deadlinePassed: boolean;
  readonly error: string | null;
}

export interface ServerProgress {
  readonly cohort: 'current' | 'delta' | 'full';
  readonly state: ServerState;
  /** The label under which it receives: `receive` of its stripes, or a lane's; 0 while it needs nothing. */
  readonly label: number;
  /** Whether the agent has agreed to receive under that label: not asked, asked, agreed. */
  readonly prepared: 'no' | 'asked' | 'yes';
  readonly attached: boolean;
  readonly bytesDone: number;
  readonly bytesTotal: number;
  readonly error: string | null;
}

export type TransferPhase =
  | 'planned'
  | 'installing'
  | 'preparing'
  | 'sending'
  | 'sent'
  | 'closing'
  | 'closed'
  | 'failed';

/** One stripe of a payload over one tree. Its entries are in the switches from `installing` until it is `closed` or `failed`. */
export interface TransferProgress {
  readonly label: number;
  /** What its receivers receive all stripes under: the label that the payload's first stripe had in the plan. */
  readonly receive: number;
  readonly stripe: { readonly index: number; readonly count: number };
  /** Base version of the payload; 0: the full image. */
  readonly base: number;
  /** Of the whole payload. */
  readonly payloadBytes: number;
  /** Bytes of the payload in one packet. */
  readonly segmentBytes: number;
  readonly tree: Tree;
  readonly phase: TransferPhase;
}

/** When transfers start, and when the rollout has what it wants. */
export interface RolloutRules {
  readonly start: StartRule;
  readonly end: EndRule;
}

export interface Lane {
  readonly label: number;
  readonly base: number;
  readonly payloadBytes: number;
}

/** Every wait of a rollout, microseconds. */
export interface RolloutLimits {
  /** Entries and groups into the switches. */
  readonly installUs: number;
  /** Receivers that are attached agree to receive; then the sender starts without the others. */
  readonly prepareUs: number;
  /** The sender says goodbye with closed SYNCs. */
  readonly closeUs: number;
  /** A source that is not attached may come back. */
  readonly sourceUs: number;
  /** Between two attempts to prepare one server. */
  readonly retryUs: number;
  readonly activateUs: number;
  /** From the start; then transfers end, and what is missing is read by unicast. */
  readonly deadlineUs: number;
  /** From the start; what is not verified then has failed. Above `deadlineUs`. */
  readonly limitUs: number;
}

export type RolloutInput =
  | { readonly type: 'start' }
  | { readonly type: 'installed'; readonly label: number }
  | { readonly type: 'install-failed'; readonly label: number; readonly error: string }
  | { readonly type: 'prepared'; readonly server: string; readonly label: number }
  | {
      readonly type: 'prepare-failed';
      readonly server: string;
      readonly label: number;
      readonly error: string;
      /** The same may work later: the agent was away or slow. */
      readonly retry: boolean;
    }
  | { readonly type: 'send-failed'; readonly label: number; readonly error: string }
  | { readonly type: 'sender'; readonly label: number; readonly phase: 'sent' | 'closed' }
  | { readonly type: 'sender-failed'; readonly label: number; readonly error: string }
  | {
      readonly type: 'receiver';
      readonly server: string;
      readonly label: number;
      readonly state: 'receiving' | 'reconstructing';
      readonly bytesDone: number;
    }
  | { readonly type: 'receiver-failed'; readonly server: string; readonly label: number; readonly error: string }
  /** It holds back nobody, but loses far more than the others: the tree goes on without it. */
  | { readonly type: 'slow'; readonly server: string; readonly label: number; readonly why: string }
  /** Answers `shrink`. */
  | { readonly type: 'shrunk'; readonly label: number; readonly tree: Tree }
  /** Answers `replace`; without a label: nobody else can send the stripe. */
  | { readonly type: 'replaced'; readonly label: number; readonly by?: { readonly label: number; readonly tree: Tree } }
  /** The sender's packets do not pass; those with this much of the payload do. */
  | { readonly type: 'too-narrow'; readonly label: number; readonly segmentBytes: number }
  /** Answers `relabel`: one label for every stripe. */
  | {
      readonly type: 'relabelled';
      readonly receive: number;
      readonly segmentBytes: number;
      readonly labels: readonly number[];
    }
  /** The directory has recorded the server as a holder. */
  | { readonly type: 'held'; readonly server: string }
  | {
      readonly type: 'attached';
      readonly agent: string;
      /** Another process than before: it has forgotten its transfers. */
      readonly restarted: boolean;
      /** Versions of the object that it has proved. */
      readonly held: readonly number[];
    }
  | { readonly type: 'detached'; readonly agent: string }
  | { readonly type: 'activated'; readonly server: string }
  | { readonly type: 'activate-failed'; readonly server: string; readonly error: string; readonly retry: boolean }
  | { readonly type: 'timer'; readonly key: TimerKey }
  | { readonly type: 'abort'; readonly reason: string };

export type TimerKey =
  | 'deadline'
  | 'limit'
  | 'activate'
  | `install:${number}`
  | `prepare:${number}`
  | `close:${number}`
  | `source:${number}`
  | `retry:${string}`;

export type Effect =
  /** Entries and groups of the transfer into the switches; answered by installed or install-failed. */
  | { readonly type: 'install'; readonly label: number }
  /** And out again: the transfer is over, whatever its agents do. */
  | { readonly type: 'remove'; readonly label: number }
  /** Answered by prepared or prepare-failed. `label` is a transfer's or a lane's. */
  | { readonly type: 'prepare'; readonly server: string; readonly label: number }
  /** Answered by send-failed, or by the sender's statuses. */
  | { readonly type: 'start-send'; readonly label: number }
  /** The server is told which stripes there are now. */
  | { readonly type: 'update-receive'; readonly server: string; readonly label: number }
  /** Another source for the stripe that this label had; answered by replaced. */
  | { readonly type: 'replace'; readonly label: number }
  /** Labels for sending everything again in smaller packets; answered by relabelled. */
  | { readonly type: 'relabel'; readonly receive: number; readonly segmentBytes: number; readonly stripes: number }
  /** The tree without this server into the switches; answered by shrunk. */
  | { readonly type: 'shrink'; readonly label: number; readonly without: string }
  | { readonly type: 'end-send'; readonly label: number; readonly complete: boolean }
  | { readonly type: 'end-receive'; readonly server: string; readonly label: number; readonly complete: boolean }
  /** Answered by activated or activate-failed. */
  | { readonly type: 'activate'; readonly server: string }
  /** A second timer of the same key replaces the first. Timers end with the rollout. */
  | { readonly type: 'timer'; readonly key: TimerKey; readonly afterUs: number }
  | { readonly type: 'cancel-timer'; readonly key: TimerKey }
  /** For the rollout's history, with what the rollout was when it happened. */
  | {
      readonly type: 'note';
      readonly kind: RolloutEvent['type'];
      readonly message: string;
      readonly state: RolloutState;
      readonly verified: number;
    }
  /** The value has changed in a way that a restart has to know. */
  | { readonly type: 'persist' };

export interface Step {
  readonly rollout: Rollout;
  readonly effects: readonly Effect[];
}

export function hasEnded(rollout: Rollout): boolean {
  return rollout.state === 'active' || rollout.state === 'aborted' || rollout.state === 'failed';
}

/** Neither waiting for anything nor on its way. */
export function isSettled(server: ServerProgress): boolean {
  return server.state === 'verified' || server.state === 'active' || server.state === 'failed';
}

/** How many of the servers have proved the version. */
export function verifiedCount(rollout: Rollout): number {
  return Object.values(rollout.servers).filter((server) => isSettled(server) && server.state !== 'failed').length;
}

/** The stripes that a payload travels in now: of each index the one that came last. */
export function stripesOf({ transfers }: Pick<Rollout, 'transfers'>, receive: number): TransferProgress[] {
  const byIndex = new Map<number, TransferProgress>();
  for (const transfer of transfers) if (transfer.receive === receive) byIndex.set(transfer.stripe.index, transfer);
  return [...byIndex.values()];
}

/** Whether receivers can get something of it: its sender sends, or is going to. */
export function isOpen({ phase }: TransferProgress): boolean {
  return phase === 'preparing' || phase === 'sending' || phase === 'sent';
}

/** Whether the transfer's entries are in switches. */
export function isInstalled(transfer: TransferProgress): boolean {
  return transfer.phase !== 'planned' && transfer.phase !== 'closed' && transfer.phase !== 'failed';
}
