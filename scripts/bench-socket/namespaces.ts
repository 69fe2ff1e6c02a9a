import { execFileSync } from 'node:child_process';
import { setTimeout as delay } from 'node:timers/promises';
import type { Peers } from './measure.ts';

const TRIES = 100;
const WAIT_MS = 20;

/** Why there can be no veth cable here; `undefined`: there can. */
export function whyNoVeth(): string | undefined {
  if (process.platform !== 'linux') return 'this is not Linux';
  if (process.getuid?.() !== 0) return 'this is not root';
  try {
    execFileSync('ip', ['netns', 'list'], { stdio: 'ignore' });
  } catch {
    return 'there is no `ip netns` (package iproute2)';
  }
  return undefined;
}

/**
 * Two network namespaces with a cable between them; `remove` takes away all of it.
 * @param rateBitsPerSecond what the sender's end is shaped to; its queue holds a megabyte. Default: not shaped
 */
export async function makePeers(mtuBytes: number, rateBitsPerSecond?: number): Promise<Peers & { remove(): void }> {
  const ip = (...args: string[]): void => void execFileSync('ip', args);
  const end = (letter: string, number: number) => ({
    namespace: `ddf-socket-${process.pid}-${letter}`,
    name: `dds${process.pid}${letter}`,
    address: `10.99.0.${number}`,
  });
  const [a, b] = [end('a', 1), end('b', 2)];
  const remove = (): void => {
    for (const { namespace } of [a, b])
      try {
        execFileSync('ip', ['netns', 'delete', namespace], { stdio: 'ignore' });
      } catch {
        // It was not made.
      }
  };
  try {
    for (const { namespace } of [a, b]) ip('netns', 'add', namespace);
    ip('link', 'add', a.name, 'netns', a.namespace, 'type', 'veth', 'peer', 'name', b.name, 'netns', b.namespace);
    for (const { namespace, name, address } of [a, b]) {
      ip('-n', namespace, 'address', 'add', `${address}/24`, 'dev', name);
      ip('-n', namespace, 'link', 'set', name, 'mtu', String(mtuBytes), 'up');
    }
    if (rateBitsPerSecond !== undefined) {
      const shaper = ['tbf', 'rate', `${rateBitsPerSecond}bit`, 'burst', '100kb', 'limit', '1mb'];
      execFileSync('tc', ['-n', a.namespace, 'qdisc', 'add', 'dev', a.name, 'root', ...shaper]);
    }
    const isUp = ({ namespace, name }: typeof a): boolean =>
      /\sUP\s/.test(execFileSync('ip', ['-n', namespace, '-brief', 'link', 'show', name], { encoding: 'utf8' }));
    // The kernel finds out a little later that a cable has two ends.
    for (let tries = 0; tries < TRIES && !(isUp(a) && isUp(b)); tries++) await delay(WAIT_MS);
  } catch (error) {
    remove();
    throw error;
  }
  const enter = (namespace: string): string[] => ['ip', 'netns', 'exec', namespace];
  return {
    mtuBytes,
    sender: { address: a.address, enter: enter(a.namespace) },
    receiver: { address: b.address, enter: enter(b.namespace) },
    remove,
  };
}
