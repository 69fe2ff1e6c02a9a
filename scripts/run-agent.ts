import { randomBytes } from 'node:crypto';
import { resolve } from 'node:path';
import type { Agent, AgentOptions, SenderPacing } from '../agents/agent.ts';
import { createGpuServer } from '../agents/gpu-server.ts';
import type { SocketStatistics } from '../agents/io/fabric-socket.ts';
import { createLossyHost } from '../agents/io/lossy-host.ts';
import { createUdpHost } from '../agents/io/udp-host.ts';
import { createWorkers } from '../agents/io/workers.ts';
import { createMemoryNode } from '../agents/memory-node.ts';
import { DdfError } from '../base/errors.ts';
import { createLogger } from '../base/logger.ts';
import { createRandom } from '../base/random.ts';
import { WallScheduler } from '../base/wall-clock.ts';
import { RECEIVER_UDP_PORT_FIRST, RECEIVER_UDP_PORT_LAST } from '../p4/build/constants.ts';
import { Interruption } from './interruption.ts';
import { hostAndPort, ipv4Address, lossPercent, MAX_SEED, requiredOption, socketKind, wholeNumber } from './options.ts';
import type { Terminal } from './terminal.ts';

export interface RawAgentOptions {
  readonly name?: string;
  readonly controller?: string;
  readonly store?: string;
  readonly ip?: string;
  readonly mtu?: string;
  readonly sockets?: string;
  readonly range?: string;
  readonly receiverPort?: string;
  readonly volatile?: boolean;
  readonly loss?: string;
  readonly seed?: string;
}

export const DEFAULT_MTU_BYTES = 1500;
const MIN_MTU_BYTES = 576;
const MAX_MTU_BYTES = 65_535;
const ATTACH_TIMEOUT_MS = 10_000;
/** Waking up costs more than sending some packets, and a busy machine is late by a few milliseconds (docs/measurements.md). */
export const PACING: SenderPacing = { burstUs: 5000, leastWaitUs: 500 };

/**
 * `ddf memory-node` and `ddf gpu-server`: an agent on this machine, or in this network namespace, until a signal ends it. Returns the exit code.
 * @throws DdfError INVALID_OPTION, ADDRESS_IN_USE, what is wrong with the store, or what the controller refused the agent with
 */
export async function runAgent(
  kind: 'memory-node' | 'gpu-server',
  raw: RawAgentOptions,
  terminal: Terminal,
): Promise<number> {
  const name = requiredOption('--name', raw.name);
  const controllerAddress = requiredOption('--controller', raw.controller);
  hostAndPort('--controller', controllerAddress, 1);
  const ip = ipv4Address('--ip', requiredOption('--ip', raw.ip));
  const mtu = raw.mtu === undefined ? DEFAULT_MTU_BYTES : wholeNumber('--mtu', raw.mtu, MIN_MTU_BYTES, MAX_MTU_BYTES);
  const rangeAddress = raw.range === undefined ? { host: ip, port: 0 } : hostAndPort('--range', raw.range, 0);
  const loss = raw.loss === undefined ? 0 : lossPercent('--loss', raw.loss) / 100;
  const seed = raw.seed === undefined ? undefined : wholeNumber('--seed', raw.seed, 0, MAX_SEED);
  const receiverPort =
    raw.receiverPort === undefined
      ? RECEIVER_UDP_PORT_FIRST
      : wholeNumber('--receiver-port', raw.receiverPort, RECEIVER_UDP_PORT_FIRST, RECEIVER_UDP_PORT_LAST);
  const random = createRandom(seed === undefined ? randomBytes(16).toString('hex') : `agent/${name}/${seed}`);
  const sockets = socketKind('--sockets', raw.sockets);
  const plainHost = await createUdpHost({ ip, mtuBytes: mtu, ...(sockets === undefined ? {} : { sockets }) });
  const lossyHost = loss === 0 ? undefined : createLossyHost(plainHost, loss, random.fork('loss'));
  const scheduler = new WallScheduler(plainHost.waitUs);
  const workers = createWorkers();
  const interruption = new Interruption();
  try {
    const options: AgentOptions = {
      name,
      host: lossyHost ?? plainHost,
      scheduler,
      pacing: PACING,
      random,
      workers,
      storeDirectory: resolve(requiredOption('--store', raw.store)),
      storeDurable: raw.volatile !== true,
      controllerAddress,
      incarnation: BigInt(Date.now()),
      rangeAddress,
      logger: createLogger(),
    };
    const agent = kind === 'memory-node' ? createMemoryNode(options) : createGpuServer({ ...options, receiverPort });
    try {
      await agent.start();
      terminal.out(`${name}: fabric address ${ip}, store ${options.storeDirectory}`);
      await interruption.race(attach(agent, controllerAddress, terminal)).catch((error: unknown) => {
        if (!interruption.isInterrupted) throw error;
      });
      await interruption.wait();
    } finally {
      await agent.stop();
      const used = agent.socketStatistics;
      if (used !== undefined) terminal.out(`${name}: ${plainHost.sockets} socket: ${socketText(used)}`);
      if (lossyHost !== undefined)
        terminal.out(
          `${name}: threw away ${lossyHost.lost.sent} datagrams on their way out, ${lossyHost.lost.received} on their way in`,
        );
    }
    return 0;
  } finally {
    await workers.close();
    scheduler.stop();
    interruption.end();
  }
}

function socketText(used: SocketStatistics): string {
  const calls = (count: number): string => (count === 0 ? '' : ` in ${count} system calls`);
  return (
    `${used.datagramsSent} datagrams sent${calls(used.sendCalls)}, ${used.datagramsReceived} received${calls(used.receiveCalls)}; ` +
    `the kernel had no room ${used.sendsDeferred} times, refused ${used.sendsFailed} and lost ${used.receivesLost}`
  );
}

/** Waits for the controller as long as it takes; a controller that refuses this agent ends it. */
async function attach(agent: Agent, address: string, terminal: Terminal): Promise<void> {
  for (let told = false; ; told = true) {
    try {
      await agent.whenAttached(ATTACH_TIMEOUT_MS);
      terminal.out(`${agent.name}: attached to the controller at ${address}`);
      return;
    } catch (error) {
      if (!(error instanceof DdfError) || error.code !== 'AGENT_UNREACHABLE') throw error;
      if (!told) terminal.error(`${agent.name}: ${error.describe()} Trying on.`);
    }
  }
}
