import { rmSync } from 'node:fs';
import { DdfError } from '../base/errors.ts';

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/**
 * Turns signals into an orderly end: what is raced against it is rejected with CANCELLED, and its owner cleans up. A second signal
 * ends the process at once, after `directory` has been removed if there is one.
 */
export class Interruption {
  private interrupted = false;
  private readonly directory: string | undefined;
  private readonly signalled: Promise<never>;
  private reject: (error: Error) => void = () => undefined;

  constructor(directory?: string) {
    this.directory = directory;
    this.signalled = new Promise<never>((_, reject) => {
      this.reject = reject;
    });
    // Nobody may be waiting when it comes.
    this.signalled.catch(() => undefined);
    for (const signal of SIGNALS) process.on(signal, this.onSignal);
  }

  get isInterrupted(): boolean {
    return this.interrupted;
  }

  /** The work's result, or CANCELLED as soon as a signal comes; what the work comes to then is nobody's concern. */
  race<T>(work: Promise<T>): Promise<T> {
    work.catch(() => undefined);
    return Promise.race([work, this.signalled]);
  }

  /** Resolves with the first signal. */
  async wait(): Promise<void> {
    const stayAlive = setInterval(() => undefined, 1 << 30);
    await this.signalled.catch(() => undefined);
    clearInterval(stayAlive);
  }

  /** One signal is somebody else's from now on. */
  release(signal: (typeof SIGNALS)[number]): void {
    process.off(signal, this.onSignal);
  }

  /** Signals have their usual effect again. */
  end(): void {
    for (const signal of SIGNALS) this.release(signal);
  }

  private readonly onSignal = (): void => {
    if (this.interrupted) {
      if (this.directory !== undefined) rmSync(this.directory, { recursive: true, force: true });
      process.exit(130);
    }
    this.interrupted = true;
    this.reject(new DdfError('CANCELLED', 'interrupted by a signal'));
  };
}
