import type { RolloutEvent } from '../service.ts';

/** The history of one rollout, for readers who come at any time: what was, then what comes, until it ends. */
export class EventLog {
  private readonly events: RolloutEvent[];
  private ended: boolean;
  private waiting: (() => void)[] = [];

  /** @param past in the order of their ids, from 1 on */
  constructor(past: readonly RolloutEvent[], ended: boolean) {
    this.events = [...past];
    this.ended = ended;
  }

  get nextId(): number {
    return (this.events.at(-1)?.id ?? 0) + 1;
  }

  append(event: RolloutEvent): void {
    this.events.push(event);
    this.wake();
  }

  /** Nothing comes any more. */
  end(): void {
    this.ended = true;
    this.wake();
  }

  async *after(afterId: number, signal: AbortSignal): AsyncGenerator<RolloutEvent> {
    let index = 0;
    while (!signal.aborted) {
      const event = this.events[index];
      if (event !== undefined) {
        index++;
        if (event.id > afterId) yield event;
      } else if (this.ended) return;
      else await this.change(signal);
    }
  }

  private change(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const done = (): void => {
        signal.removeEventListener('abort', done);
        resolve();
      };
      signal.addEventListener('abort', done, { once: true });
      this.waiting.push(done);
    });
  }

  private wake(): void {
    const waiting = this.waiting;
    this.waiting = [];
    for (const resolve of waiting) resolve();
  }
}
