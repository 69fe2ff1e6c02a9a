import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import type { VethResult } from './over-veth.ts';

/** Why measuring over veth is not possible here; `undefined`: it is. */
export function whyNoVeth(): string | undefined {
  if (process.platform !== 'linux') return 'this is not Linux';
  if (process.getuid?.() !== 0) return 'this is not root';
  try {
    createRequire(import.meta.url).resolve('koffi');
  } catch {
    return 'the optional package koffi is not installed';
  }
  try {
    execFileSync('ip', ['netns', 'list'], { stdio: 'ignore' });
  } catch {
    return 'there is no `ip netns` (package iproute2)';
  }
  return undefined;
}

/** Measures over veth in a network namespace of its own, which goes with everything in it however that ends. */
export async function measureOverVeth(): Promise<VethResult> {
  const name = `ddf-bench-${process.pid}`;
  const remove = (): void => {
    execFileSync('ip', ['netns', 'delete', name]);
  };
  execFileSync('ip', ['netns', 'add', name]);
  try {
    const script = fileURLToPath(new URL('./over-veth.ts', import.meta.url));
    const child = spawn('ip', ['netns', 'exec', name, process.execPath, ...process.execArgv, script], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let output = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
    const [code] = (await once(child, 'close')) as [number | null];
    if (code !== 0) throw new Error(`measuring over veth ended with ${code}`);
    return JSON.parse(output.trimEnd().split('\n').at(-1)!) as VethResult;
  } finally {
    remove();
  }
}
