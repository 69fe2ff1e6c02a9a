import type { ReceiverCounters, SenderCounters } from '../../wire/agent/messages.ts';

/** What the agents of one transfer counted: the sender's last figures, and each receiver's. */
export class TransferCounters {
  private sender: Record<string, number>;
  /** Sums that a restart has kept, when the single receivers' are gone. */
  private readonly kept: Record<string, number>;
  private readonly receivers = new Map<string, Record<string, number>>();

  constructor(
    kept: { sender: Record<string, number>; receiverTotals: Record<string, number> } | undefined = undefined,
  ) {
    this.sender = kept?.sender ?? {};
    this.kept = kept?.receiverTotals ?? {};
  }

  fromSender(counters: SenderCounters): void {
    this.sender = numbers(counters);
  }

  fromReceiver(server: string, counters: ReceiverCounters): void {
    this.receivers.set(server, numbers(counters));
  }

  totals(): { sender: Record<string, number>; receiverTotals: Record<string, number> } {
    const receiverTotals = { ...this.kept };
    for (const counters of this.receivers.values())
      for (const [name, value] of Object.entries(counters)) receiverTotals[name] = (receiverTotals[name] ?? 0) + value;
    return { sender: this.sender, receiverTotals };
  }
}

/** Counters as JSON has them; a flag counts 1. */
function numbers(counters: SenderCounters | ReceiverCounters): Record<string, number> {
  return Object.fromEntries(Object.entries(counters).map(([name, value]) => [name, Number(value)]));
}
