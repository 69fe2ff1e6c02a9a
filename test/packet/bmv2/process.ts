import { type ChildProcess, spawn } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { createServer } from 'node:net';
import { delimiter, join } from 'node:path';

const PROGRAM = 'simple_switch_grpc';
const START_ATTEMPTS = 3;
const EXIT_TIMEOUT_MS = 2_000;
const SETTLED_MS = 50;

/** Where simple_switch_grpc is, if it is on the PATH. */
export function findSimpleSwitch(): string | undefined {
  for (const folder of (process.env.PATH ?? '').split(delimiter)) {
    const path = join(folder, PROGRAM);
    try {
      accessSync(path, constants.X_OK);
      return path;
    } catch {
      // Not in this folder
    }
  }
  return undefined;
}

/** A simple_switch_grpc of our own, without a program and without interfaces: both of its servers are on loopback ports. */
export class SimpleSwitchProcess {
  readonly p4RuntimeAddress: string;
  readonly packetAddress: string;
  private readonly child: ChildProcess;
  private readonly killAtExit: () => void;

  private constructor(child: ChildProcess, p4RuntimeAddress: string, packetAddress: string) {
    this.child = child;
    this.p4RuntimeAddress = p4RuntimeAddress;
    this.packetAddress = packetAddress;
    this.killAtExit = () => child.kill('SIGKILL');
    process.once('exit', this.killAtExit);
  }

  static async start(path: string, deviceId: number, cpuPort: number): Promise<SimpleSwitchProcess> {
    for (let attempt = 1; ; attempt++) {
      const [first, second] = await Promise.all([freePort(), freePort()]);
      const [p4Runtime, packets] = [`127.0.0.1:${first}`, `127.0.0.1:${second}`];
      const child = spawn(
        path,
        [
          ...['--no-p4', '--device-id', String(deviceId), '--log-level', 'off', '--'],
          ...['--grpc-server-addr', p4Runtime, '--dp-grpc-server-addr', packets, '--cpu-port', String(cpuPort)],
        ],
        { stdio: 'ignore' },
      );
      // Somebody may have taken a port in the meantime; a client waits for the servers otherwise.
      const ended = await Promise.race([exited(child), pause(SETTLED_MS).then(() => undefined)]);
      if (ended === undefined) return new SimpleSwitchProcess(child, p4Runtime, packets);
      if (attempt === START_ATTEMPTS) throw new Error(`${path} ended at once with ${ended}`);
    }
  }

  get running(): boolean {
    return this.child.exitCode === null && this.child.signalCode === null;
  }

  async stop(): Promise<void> {
    process.off('exit', this.killAtExit);
    if (!this.running) return;
    const end = exited(this.child);
    this.child.kill('SIGTERM');
    const kill = setTimeout(() => this.child.kill('SIGKILL'), EXIT_TIMEOUT_MS);
    await end;
    clearTimeout(kill);
  }
}

function exited(child: ChildProcess): Promise<string> {
  return new Promise((resolve) => {
    child.once('error', (error) => resolve(error.message));
    child.once('exit', (code, signal) => resolve(signal ?? `status ${code}`));
  });
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => resolve((address as { port: number }).port));
    });
  });
}
