import { type ChildProcess, spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { DdfError } from '../../base/errors.ts';
import type { MininetPlan } from '../../topologies/mininet/plan.ts';
import { SYSTEM_PYTHON } from './tools.ts';

const SCRIPT = fileURLToPath(new URL('../../topologies/mininet/network.py', import.meta.url));
/** A few commands per device, and a machine that does other things too. */
const BUILD_TIMEOUT_MS = 300_000;
const STOP_TIMEOUT_MS = 60_000;

type Answer =
  | { readonly event: 'ready'; readonly pids: Record<string, number> }
  | { readonly event: 'cli ended' }
  | { readonly event: 'stopped' }
  | { readonly event: 'failed'; readonly message: string };

export interface MininetNetworkOptions {
  readonly plan: MininetPlan;
  /** The plan is written there. */
  readonly directory: string;
  readonly environment: NodeJS.ProcessEnv;
  /** Where Mininet's command line writes: stdout, or stderr where that belongs to JSON. */
  readonly outputTo: 'stdout' | 'stderr';
}

/** Mininet at work: network.py in a process of its own, told what to do by lines of JSON. */
export class MininetNetwork {
  /** A process in the namespace of every node. */
  pids: ReadonlyMap<string, number> = new Map();
  private readonly child: ChildProcess;
  private readonly commands: Writable;
  private readonly exited: Promise<void>;
  private readonly answers: Answer[] = [];
  private wake: () => void = () => {};
  private hasEnded = false;

  /** Resolves when the network is up. @throws DdfError PROCESS_FAILED; then it is down again */
  static async build(options: MininetNetworkOptions): Promise<MininetNetwork> {
    const network = new MininetNetwork(options);
    try {
      const { pids } = await network.expect('ready', BUILD_TIMEOUT_MS);
      network.pids = new Map(Object.entries(pids));
      return network;
    } catch (error) {
      await network.stop();
      throw error;
    }
  }

  private constructor({ plan, directory, environment, outputTo }: MininetNetworkOptions) {
    const planFile = join(directory, 'plan.json');
    writeFileSync(planFile, JSON.stringify(plan, undefined, 2));
    // A session of its own keeps Ctrl-C on the terminal away from it.
    this.child = spawn('setpriv', ['--pdeathsig', 'TERM', SYSTEM_PYTHON, SCRIPT, planFile], {
      stdio: ['inherit', outputTo === 'stdout' ? 'inherit' : process.stderr, 'inherit', 'pipe', 'pipe'],
      env: environment,
      detached: true,
    });
    this.commands = this.child.stdio[3] as Writable;
    // The other end may be gone when we say stop.
    this.commands.on('error', () => {});
    createInterface({ input: this.child.stdio[4] as Readable }).on('line', (line) => {
      this.answers.push(JSON.parse(line) as Answer);
      this.wake();
    });
    this.exited = new Promise((resolve) => {
      const end = (): void => {
        this.hasEnded = true;
        this.wake();
        resolve();
      };
      this.child.once('error', end);
      this.child.once('close', end);
    });
  }

  /** Mininet's command line on the terminal, until the user leaves it. */
  async commandLine(): Promise<void> {
    this.tell('cli');
    await this.expect('cli ended', undefined);
  }

  /** Passes a signal on: Ctrl-C ends a command of the command line. */
  interrupt(): void {
    this.child.kill('SIGINT');
  }

  /** Takes the network down. Idempotent. */
  async stop(): Promise<void> {
    if (this.hasEnded) return;
    this.tell('stop');
    this.commands.end();
    const timers = [
      setTimeout(() => this.child.kill('SIGTERM'), STOP_TIMEOUT_MS / 2),
      setTimeout(() => this.child.kill('SIGKILL'), STOP_TIMEOUT_MS),
    ];
    await this.exited;
    for (const timer of timers) clearTimeout(timer);
  }

  private tell(command: 'cli' | 'stop'): void {
    this.commands.write(`${JSON.stringify({ command })}\n`);
  }

  /** @param timeoutMs undefined: as long as it takes, which is as long as the program lives */
  private async expect<E extends Answer['event']>(
    event: E,
    timeoutMs: number | undefined,
  ): Promise<Extract<Answer, { event: E }>> {
    const deadline = timeoutMs === undefined ? Number.POSITIVE_INFINITY : Date.now() + timeoutMs;
    for (;;) {
      const answer = this.answers.shift();
      if (answer?.event === event) return answer as Extract<Answer, { event: E }>;
      const why =
        answer?.event === 'failed'
          ? answer.message
          : this.hasEnded || answer !== undefined
            ? 'it has ended'
            : Date.now() >= deadline
              ? `it took longer than ${timeoutMs! / 1000} s`
              : undefined;
      if (why !== undefined)
        throw new DdfError('PROCESS_FAILED', `Mininet failed: ${why}`, {
          where: 'topologies/mininet/network.py',
          remedy: '`ddf doctor --clean` removes what an earlier run has left.',
        });
      await this.change(deadline - Date.now());
    }
  }

  private change(timeoutMs: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = Number.isFinite(timeoutMs) ? setTimeout(resolve, timeoutMs) : undefined;
      this.wake = () => {
        clearTimeout(timer);
        resolve();
      };
      if (this.answers.length > 0 || this.hasEnded) this.wake();
    });
  }
}
