import type { Scheduler, Timer } from '../base/clock.ts';
import type { TransferStatus } from '../wire/agent/messages.ts';
import type { MessageInput } from '../wire/proto.ts';

export type Status = MessageInput<TransferStatus> & { readonly label: number; readonly state: number };

/** Progress of one transfer is reported at most this often; a new state at once. */
const INTERVAL_US = 200_000;
/** Last words of ended transfers that are kept for a controller that was away. */
const KEPT_ENDED = 256;

/** A transfer as the reporter sees it. */
export interface ReportedTransfer {
  /** TransferState; looked at often. */
  readonly state: number;
  /** Asked when a report is due, so that it is never stale. */
  status(): Status;
}

interface Reported {
  state: number;
  sentAtUs: number;
  timer: Timer | undefined;
  readonly transfer: ReportedTransfer;
}

/** Tells the controller how transfers go: every change of state at once, progress about five times a second. */
export class StatusReporter {
  private readonly scheduler: Scheduler;
  private readonly send: (status: Status) => void;
  private readonly reported = new Map<number, Reported>();
  private readonly ended = new Map<number, Status>();

  constructor(scheduler: Scheduler, send: (status: Status) => void) {
    this.scheduler = scheduler;
    this.send = send;
  }

  begin(label: number, transfer: ReportedTransfer): void {
    this.end(label);
    this.ended.delete(label);
    const reported = { state: transfer.state, sentAtUs: 0, timer: undefined, transfer };
    this.reported.set(label, reported);
    this.report(reported);
  }

  /** Something has changed. */
  changed(label: number): void {
    const reported = this.reported.get(label);
    if (reported === undefined) return;
    const dueUs = reported.sentAtUs + INTERVAL_US;
    if (reported.transfer.state !== reported.state || this.scheduler.nowUs() >= dueUs) this.report(reported);
    else
      reported.timer ??= this.scheduler.at(dueUs, () => {
        reported.timer = undefined;
        this.report(reported);
      });
  }

  /** The transfer is over: its last status is reported and kept. */
  end(label: number): void {
    const reported = this.reported.get(label);
    if (reported === undefined) return;
    this.reported.delete(label);
    this.ended.set(label, this.report(reported));
    if (this.ended.size > KEPT_ENDED) this.ended.delete(this.ended.keys().next().value!);
  }

  /** Nobody needs the last word of an ended transfer any more. */
  forget(label: number): void {
    this.ended.delete(label);
  }

  /** Says again how everything is, to a controller that may have missed it. */
  repeatAll(): void {
    for (const status of this.ended.values()) this.send(status);
    for (const reported of this.reported.values()) this.report(reported);
  }

  stop(): void {
    for (const { timer } of this.reported.values()) timer?.cancel();
    this.reported.clear();
  }

  private report(reported: Reported): Status {
    reported.timer?.cancel();
    reported.timer = undefined;
    reported.sentAtUs = this.scheduler.nowUs();
    const status = reported.transfer.status();
    reported.state = status.state;
    this.send(status);
    return status;
  }
}
