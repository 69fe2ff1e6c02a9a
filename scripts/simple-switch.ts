import { type ChildProcess, spawn } from 'node:child_process';
import { connect, createServer } from 'node:net';
import { DdfError } from '../base/errors.ts';
import { findExecutable } from './find-executable.ts';

/** bmv2's switch with a P4Runtime server, where it is installed. */
const PROGRAM = 'simple_switch_grpc';
const PROBE_INTERVAL_MS = 20;
const START_TIMEOUT_MS = 30_000;
const STOP_TIMEOUT_MS = 5_000;
/** Lines of its output that are kept to tell why it ended. */
const KEPT_LINES = 20;

/** The path of simple_switch_grpc, if it is on PATH. */
export function findSimpleSwitch(): string | undefined {
  return findExecutable(PROGRAM);
}

export interface SimpleSwitchOptions {
  readonly path: string;
  readonly deviceId: number;
  readonly cpuPort: number;
  /** Where its P4Runtime server listens. Default: a free port. */
  readonly port?: number;
  /** As PORT@INTERFACE. Default: none. */
  readonly interfaces?: readonly string[];
  /** Where its stream of frames listens, which is there instead of interfaces. Default: nowhere. */
  readonly packetPort?: number;
}

/** One process of simple_switch_grpc that starts without a program. */
export class SimpleSwitch {
  readonly port: number;
  private readonly child: ChildProcess;

  private readonly killAtExit: () => void;

  private constructor(child: ChildProcess, port: number) {
    this.child = child;
    this.port = port;
    this.killAtExit = () => child.kill('SIGKILL');
    process.once('exit', this.killAtExit);
  }

  /** Resolves when it listens. @throws SWITCH_UNREACHABLE with its last words when it ends or is silent instead */
  static async start(options: SimpleSwitchOptions): Promise<SimpleSwitch> {
    const port = options.port ?? (await freePort());
    const target = ['--grpc-server-addr', `127.0.0.1:${port}`, '--cpu-port', String(options.cpuPort)];
    if (options.packetPort !== undefined) target.push('--dp-grpc-server-addr', `127.0.0.1:${options.packetPort}`);
    const ports = (options.interfaces ?? []).flatMap((each) => ['-i', each]);
    const child = spawn(
      options.path,
      ['--no-p4', '--device-id', String(options.deviceId), ...ports, '--log-console', '-L', 'warn', '--', ...target],
      { stdio: ['ignore', 'pipe', 'pipe'] },
    );
    const lines: string[] = [];
    const read = (chunk: Buffer): void => {
      lines.push(...chunk.toString().trimEnd().split('\n'));
      lines.splice(0, lines.length - KEPT_LINES);
    };
    child.stdout!.on('data', read);
    child.stderr!.on('data', read);
    let ended: string | undefined;
    child.once('error', (error) => {
      ended = `cannot be started: ${error.message}`;
    });
    child.once('exit', (code, signal) => {
      ended ??= `ended with ${signal ?? code}`;
    });
    const deadlineMs = Date.now() + START_TIMEOUT_MS;
    while (!(await accepts(port))) {
      if (ended === undefined && Date.now() < deadlineMs) continue;
      child.kill('SIGKILL');
      throw new DdfError(
        'SWITCH_UNREACHABLE',
        `${PROGRAM} ${ended ?? `does not listen within ${START_TIMEOUT_MS} ms`}`,
        {
          where: lines.join('\n'),
          remedy: 'Look at its last lines; its libraries have to be found too (LD_LIBRARY_PATH).',
        },
      );
    }
    return new SimpleSwitch(child, port);
  }

  /** Resolves when the process is gone. Idempotent. */
  async stop(): Promise<void> {
    const { child } = this;
    process.off('exit', this.killAtExit);
    if (child.exitCode !== null || child.signalCode !== null) return;
    const gone = new Promise<void>((resolve) => child.once('exit', () => resolve()));
    child.kill('SIGTERM');
    const timer = setTimeout(() => child.kill('SIGKILL'), STOP_TIMEOUT_MS);
    await gone;
    clearTimeout(timer);
  }
}

/** Whether somebody listens; otherwise after a pause. */
function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => setTimeout(() => resolve(false), PROBE_INTERVAL_MS));
  });
}

/** A TCP port of 127.0.0.1 that nobody listens on now. */
export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as { port: number };
      server.close(() => resolve(port));
    });
  });
}
