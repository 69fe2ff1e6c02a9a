import type { RolloutEvent, RolloutState } from '../service.ts';
import {
  type Effect,
  type Lane,
  type Rollout,
  type ServerProgress,
  type Step,
  stripesOf,
  type TransferProgress,
  verifiedCount,
} from './types.ts';

/** A rollout while one event is worked into it: reads see what was written, the value that came in stays as it was. */
export class Draft {
  rollout: Rollout;
  readonly effects: Effect[] = [];
  readonly nowUs: number;

  constructor(rollout: Rollout, nowUs: number) {
    this.rollout = rollout;
    this.nowUs = nowUs;
  }

  finish(): Step {
    return { rollout: this.rollout, effects: this.effects };
  }

  do(effect: Effect): void {
    this.effects.push(effect);
  }

  note(kind: RolloutEvent['type'], message: string): void {
    const { rollout } = this;
    this.do({ type: 'note', kind, message, state: rollout.state, verified: verifiedCount(rollout) });
  }

  persist(): void {
    if (!this.effects.some((effect) => effect.type === 'persist')) this.do({ type: 'persist' });
  }

  server(name: string): ServerProgress | undefined {
    return Object.hasOwn(this.rollout.servers, name) ? this.rollout.servers[name] : undefined;
  }

  servers(): [string, ServerProgress][] {
    return Object.entries(this.rollout.servers);
  }

  setServer(name: string, change: Partial<ServerProgress>): void {
    const servers = { ...this.rollout.servers, [name]: { ...this.rollout.servers[name]!, ...change } };
    this.rollout = { ...this.rollout, servers };
  }

  transfer(label: number): TransferProgress | undefined {
    return this.rollout.transfers.find((transfer) => transfer.label === label);
  }

  stripes(receive: number): TransferProgress[] {
    return stripesOf(this.rollout, receive);
  }

  addTransfer(transfer: TransferProgress): void {
    this.rollout = { ...this.rollout, transfers: [...this.rollout.transfers, transfer] };
  }

  setPhase(label: number, phase: TransferProgress['phase']): void {
    this.setTransfer(label, { phase });
  }

  setTransfer(label: number, change: Partial<TransferProgress>): void {
    const transfers = this.rollout.transfers.map((transfer) =>
      transfer.label === label ? { ...transfer, ...change } : transfer,
    );
    this.rollout = { ...this.rollout, transfers };
  }

  lane(base: number): Lane | undefined {
    return this.rollout.lanes.find((lane) => lane.base === base);
  }

  /** What a server receives under a label: the payload of stripes, or of a lane. */
  payloadOf(label: number): { base: number; payloadBytes: number } | undefined {
    return this.stripes(label)[0] ?? this.rollout.lanes.find((lane) => lane.label === label);
  }

  enter(state: RolloutState, message: string, error: string | null = null): void {
    const { rollout, nowUs } = this;
    const seconds = (nowUs - rollout.stateSinceUs) / 1e6;
    this.rollout = {
      ...rollout,
      state,
      stateSinceUs: nowUs,
      phases: [...rollout.phases, { state: rollout.state, seconds }],
      error,
    };
    this.note('state', message);
    this.persist();
  }
}
