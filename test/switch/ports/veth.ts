import { execFileSync } from 'node:child_process';
import { createRequire } from 'node:module';

/** Runs a program to its end. Throws with what it said when it fails. */
export function run(command: string, ...args: readonly string[]): string {
  return execFileSync(command, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
}

export const ip = (...args: readonly string[]): string => run('ip', ...args);

/** Why tests on real interfaces are skipped here; `undefined`: they are not. */
export function whyNoInterfaces(): string | undefined {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return 'needs root on Linux';
  try {
    createRequire(import.meta.url).resolve('koffi');
    ip('netns', 'list');
  } catch {
    return 'needs koffi and iproute2';
  }
  return undefined;
}

/** Short, because names of interfaces are; with the process, because other tests run beside this one. */
export const tag = `${process.pid.toString(36).slice(-4)}`;
