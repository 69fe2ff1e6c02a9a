import {
  type ReceiverCounters,
  type SenderCounters,
  TransferState,
  type TransferStatus,
} from '../../wire/agent/messages.ts';
import type { TransferError } from '../service.ts';

/** What is shown of the agents of one transfer. */
export interface Totals {
  readonly pathSegmentBytes: number | null;
  readonly error: TransferError | null;
  readonly sender: Record<string, number>;
  readonly receiverTotals: Record<string, number>;
}

export const NO_TOTALS: Totals = { pathSegmentBytes: null, error: null, sender: {}, receiverTotals: {} };

/** What the agents of one transfer counted: the sender's last figures, and each receiver's. */
export class TransferCounters {
  private sender: Record<string, number> = {};
  private pathSegmentBytes: number | null = null;
  private error: TransferError | null = null;
  private readonly receivers = new Map<string, Record<string, number>>();

  fromSender({ sender, state, pathSegmentBytes, error }: TransferStatus): void {
    if (sender !== undefined) this.sender = numbers(sender);
    if (pathSegmentBytes > 0) this.pathSegmentBytes = pathSegmentBytes;
    if (state === TransferState.FAILED && error !== undefined) this.error = { ...error };
  }

  fromReceiver(server: string, counters: ReceiverCounters): void {
    this.receivers.set(server, numbers(counters));
  }

  totals(): Totals {
    const receiverTotals: Record<string, number> = {};
    for (const counters of this.receivers.values())
      for (const [name, value] of Object.entries(counters)) receiverTotals[name] = (receiverTotals[name] ?? 0) + value;
    const { pathSegmentBytes, error, sender } = this;
    return { pathSegmentBytes, error, sender, receiverTotals };
  }
}

/** Counters as JSON has them; a flag counts 1. */
function numbers(counters: SenderCounters | ReceiverCounters): Record<string, number> {
  return Object.fromEntries(Object.entries(counters).map(([name, value]) => [name, Number(value)]));
}
