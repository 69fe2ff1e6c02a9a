import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { BatchedSocketOptions } from '../../agents/io/linux/batched-socket.ts';
import type { SocketKind } from '../../agents/io/udp-host.ts';
import type { Reading, Task } from './peer.ts';

/** UDP payload of a full packet of the fabric at MTU 1500 and 9000, about. */
export const SIZES = [1400, 8300] as const;

export interface Way {
  readonly name: string;
  readonly sockets: SocketKind;
  readonly batching: BatchedSocketOptions;
}

export const WAYS: readonly Way[] = [
  { name: 'dgram', sockets: 'dgram', batching: {} },
  { name: 'batched', sockets: 'batched', batching: { segmentation: false } },
  { name: 'batched, GSO', sockets: 'batched', batching: {} },
  { name: 'batched, GSO and GRO', sockets: 'batched', batching: { merging: true } },
];

export interface Place {
  readonly address: string;
  /** Command that runs another one there. */
  readonly enter: readonly string[];
}

export interface Peers {
  readonly mtuBytes: number;
  readonly sender: Place;
  readonly receiver: Place;
}

export interface Figures {
  readonly way: string;
  readonly bytes: number;
  /** null: as fast as the sender can. */
  readonly rateBitsPerSecond: number | null;
  readonly sentPerSecond: number;
  readonly receivedPerSecond: number;
  /** Processor time per datagram that was sent, or received, of that process. */
  readonly senderMicroseconds: number;
  readonly receiverMicroseconds: number;
  /** Per system call; 0 where those are not counted. */
  readonly datagramsPerSend: number;
  readonly datagramsPerReceive: number;
  /** Since the sender began: thrown away, and how often the kernel had no room. */
  readonly sendsFailed: number;
  readonly sendsDeferred: number;
}

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const PEER = fileURLToPath(new URL('./peer.ts', import.meta.url));
const RECEIVER_PORT = 56_832;
const SENDER_PORT = 56_816;
const WARM_UP_MS = 700;
const RUN_MS = 1500;
const PATIENCE_MS = 20_000;

/** One run. @throws when a peer ends before it should */
export async function measure(peers: Peers, way: Way, bytes: number, rate: number | undefined): Promise<Figures> {
  const { mtuBytes, sender, receiver } = peers;
  const { sockets, batching } = way;
  const common = { mtuBytes, sockets, batching };
  const to = new Peer(receiver, { ...common, ip: receiver.address, port: RECEIVER_PORT });
  try {
    await to.ready();
    const destination = { ip: receiver.address, port: RECEIVER_PORT, bytes, rateBitsPerSecond: rate ?? null };
    const from = new Peer(sender, { ...common, ip: sender.address, port: SENDER_PORT, destination });
    try {
      await from.ready();
      await delay(WARM_UP_MS);
      const before = await Promise.all([from.read(), to.read()]);
      await delay(RUN_MS);
      const after = await Promise.all([from.read(), to.read()]);
      const [sent, received] = [difference(before[0], after[0]), difference(before[1], after[1])];
      const ratio = (a: number, b: number): number => (b === 0 ? 0 : a / b);
      return {
        way: way.name,
        bytes,
        rateBitsPerSecond: rate ?? null,
        sentPerSecond: sent.sent / sent.seconds,
        receivedPerSecond: received.received / received.seconds,
        senderMicroseconds: ratio(sent.cpuMicroseconds, sent.sent),
        receiverMicroseconds: ratio(received.cpuMicroseconds, received.received),
        datagramsPerSend: ratio(sent.sent, sent.sendCalls),
        datagramsPerReceive: ratio(received.received, received.receiveCalls),
        sendsFailed: after[0].sendsFailed,
        sendsDeferred: after[0].sendsDeferred,
      };
    } finally {
      from.end();
    }
  } finally {
    to.end();
  }
}

function difference(before: Reading, after: Reading): Reading {
  const keys = Object.keys(after) as (keyof Reading)[];
  return Object.fromEntries(keys.map((key) => [key, after[key] - before[key]])) as unknown as Reading;
}

/** A process at one end. */
class Peer {
  private readonly child: ChildProcess;

  constructor({ enter }: Place, task: Task) {
    const [command, ...args] = [...enter, process.execPath, '--import', 'tsx', PEER, JSON.stringify(task)];
    // Where tsx is found, whoever runs this.
    this.child = spawn(command!, args, { cwd: ROOT, stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
  }

  async ready(): Promise<void> {
    await this.answer();
  }

  async read(): Promise<Reading> {
    this.child.send('read');
    return (await this.answer()) as Reading;
  }

  end(): void {
    this.child.kill('SIGKILL');
  }

  private async answer(): Promise<unknown> {
    const signal = AbortSignal.timeout(PATIENCE_MS);
    const ended = once(this.child, 'exit', { signal }).then(() => {
      throw new Error('a peer of the benchmark ended');
    });
    const answer = once(this.child, 'message', { signal }).then(([message]) => message as unknown);
    ended.catch(() => {});
    return Promise.race([answer, ended]);
  }
}
