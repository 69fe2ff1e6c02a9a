import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { DdfError } from '../../base/errors.ts';

export interface ProgramOptions {
  /** For messages, and of the log file. */
  readonly name: string;
  readonly command: readonly string[];
  /** The process whose network namespace it is to run in. Default: our own. */
  readonly namespaceOf?: number;
  readonly environment: NodeJS.ProcessEnv;
  /** Everything that it writes goes there. */
  readonly logFile: string;
}

const TERM_TIMEOUT_MS = 5_000;
const LAST_LINES = 12;

/**
 * A program that belongs to us: in a session of its own, so that Ctrl-C on the terminal does not reach it and it is stopped in order, and signalled by
 * the kernel when we die.
 */
export class Program {
  readonly name: string;
  private readonly child: ChildProcess;
  private readonly logFile: string;
  private readonly exited: Promise<void>;
  private isStopping = false;
  private ending: string | undefined;

  constructor({ name, command, namespaceOf, environment, logFile }: ProgramOptions) {
    this.name = name;
    this.logFile = logFile;
    const log = openSync(logFile, 'a');
    const enter = namespaceOf === undefined ? [] : ['nsenter', `--net=/proc/${namespaceOf}/ns/net`];
    const [file, ...rest] = [...enter, 'setpriv', '--pdeathsig', 'TERM', ...command];
    this.child = spawn(file!, rest, { stdio: ['ignore', log, log], env: environment, detached: true });
    closeSync(log);
    this.exited = new Promise((resolve) => {
      this.child.once('error', (error) => {
        this.ending = `cannot be started: ${error.message}`;
        resolve();
      });
      this.child.once('exit', (code, signal) => {
        this.ending ??= `ended with ${signal ?? `exit code ${code}`}`;
        resolve();
      });
    });
  }

  /** What it has written so far. */
  get log(): string {
    try {
      return readFileSync(this.logFile, 'utf8');
    } catch {
      return '';
    }
  }

  /** @throws DdfError PROCESS_FAILED with its last lines if it has ended, though nobody stopped it */
  requireRunning(): void {
    if (this.ending === undefined || this.isStopping) return;
    const last = this.log.trimEnd().split('\n').slice(-LAST_LINES).join('\n');
    throw new DdfError('PROCESS_FAILED', `${this.name} ${this.ending}${last === '' ? '' : `:\n${last}`}`, {
      where: this.name,
    });
  }

  /** SIGTERM, and SIGKILL when that does nothing for 5 s. Idempotent. */
  async stop(): Promise<void> {
    this.isStopping = true;
    if (this.ending !== undefined) return;
    this.child.kill('SIGTERM');
    const timer = setTimeout(() => this.child.kill('SIGKILL'), TERM_TIMEOUT_MS);
    await this.exited;
    clearTimeout(timer);
  }
}
