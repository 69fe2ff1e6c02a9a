import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';

/** A server gets so long to listen. */
const START_MS = 15_000;

/**
 * Starts a server by a command line of the shell and waits until it listens.
 * @param address host:port
 */
export async function startForeign(command: string, address: string): Promise<{ stop(): Promise<void> }> {
  // In a process group of its own, so that the shell and what it started end together.
  const child = spawn('/bin/sh', ['-c', command], { stdio: 'ignore', detached: true });
  const exited = once(child, 'exit');
  const stop = async (): Promise<void> => {
    try {
      process.kill(-child.pid!, 'SIGKILL');
    } catch {
      // It has ended by itself.
    }
    await exited;
  };
  const port = address.slice(address.lastIndexOf(':') + 1);
  const host = address.slice(0, -port.length - 1);
  const deadline = Date.now() + START_MS;
  while (!(await listens(host, Number(port)))) {
    if (child.exitCode !== null || Date.now() > deadline) {
      await stop();
      throw new Error(`Nobody listens on ${address}: ${command}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return { stop };
}

function listens(host: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, host);
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}
