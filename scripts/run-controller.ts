import { randomBytes } from 'node:crypto';
import { RealScheduler } from '../base/clock.ts';
import { DdfError } from '../base/errors.ts';
import { createLogger } from '../base/logger.ts';
import { createRandom } from '../base/random.ts';
import { createController } from '../controller/main.ts';
import { SwitchConnection } from '../controller/p4runtime/connection.ts';
import type { ForeignPolicy } from '../controller/reconcile/reconciler.ts';
import { readFabricProgram } from '../lab/p4-program.ts';
import type { Topology } from '../topologies/types.ts';
import { Interruption } from './interruption.ts';
import { hostAndPort, requiredOption, wholeNumber } from './options.ts';
import type { Terminal } from './terminal.ts';
import { type RawTlsOptions, readTlsFiles } from './tls-files.ts';
import { readTopology } from './topology-file.ts';

export interface RawControllerOptions extends RawTlsOptions {
  readonly topology?: string;
  readonly switches?: string;
  readonly switchBasePort?: string;
  readonly db?: string;
  readonly agents?: string;
  readonly api?: string;
  readonly foreignEntries?: string;
}

export const DEFAULT_AGENTS_ADDRESS = '127.0.0.1:9560';
export const DEFAULT_API_ADDRESS = '127.0.0.1:8080';
const READY_TIMEOUT_MS = 60_000;

/** `ddf controller`: the AI control network of one fabric, until a signal ends it. Returns the exit code. */
export async function runController(raw: RawControllerOptions, terminal: Terminal): Promise<number> {
  const topology = await readTopology('--topology', requiredOption('--topology', raw.topology));
  const switches = switchAddresses(raw, topology);
  const agentsAddress = raw.agents ?? DEFAULT_AGENTS_ADDRESS;
  const apiAddress = raw.api ?? DEFAULT_API_ADDRESS;
  hostAndPort('--agents', agentsAddress, 0);
  hostAndPort('--api', apiAddress, 0);
  const databasePath = requiredOption('--db', raw.db);
  const tls = await readTlsFiles(raw, 'client');
  const { bmv2Json, index } = readFabricProgram();
  const scheduler = new RealScheduler();
  const interruption = new Interruption();
  try {
    const controller = createController({
      topology,
      switches,
      program: { bmv2Json, p4Info: index.p4Info },
      databasePath,
      agentsAddress,
      apiAddress,
      ...(tls === undefined ? {} : { connect: (options) => new SwitchConnection({ ...options, tls }) }),
      foreign: foreignPolicy(raw.foreignEntries),
      scheduler,
      // Read tokens come from it: nobody may guess them.
      random: createRandom(randomBytes(32).toString('hex')),
      logger: createLogger(),
    });
    try {
      await controller.start();
      terminal.out(`Agents attach at ${controller.agentsAddress}; REST API at ${controller.apiUrl}`);
      sayWhenReady(controller, terminal);
      await interruption.wait();
    } finally {
      await controller.stop();
    }
    return 0;
  } finally {
    scheduler.stop();
    interruption.end();
  }
}

/** Switches may come late: that is worth a line and no more, since /readyz says the same and they are tried again. */
function sayWhenReady(controller: { whenReady(timeoutMs: number): Promise<void> }, terminal: Terminal): void {
  controller.whenReady(READY_TIMEOUT_MS).then(
    () => terminal.out('All switches run the program.'),
    (error: unknown) => {
      if (!(error instanceof DdfError) || error.code === 'CANCELLED') return;
      terminal.error(`Not ready yet: ${error.describe()}`);
    },
  );
}

/** `remove`, `keep` or `adopt:MARK`, the mark as a whole number of up to 64 bits. Default `remove`. */
export function foreignPolicy(text = 'remove'): ForeignPolicy {
  if (text === 'remove' || text === 'keep') return text;
  const mark = /^adopt:([0-9]{1,20}|0x[0-9a-fA-F]{1,16})$/.exec(text)?.[1];
  const adopt = BigInt(mark ?? 0);
  if (adopt === 0n || adopt >= 1n << 64n)
    throw new DdfError('INVALID_OPTION', `--foreign-entries: "${text}" is neither remove, keep nor adopt:MARK`, {
      remedy: 'A mark is a number from 1 to 2^64 - 1, which controllers of the same fabric share: adopt:0xddf1.',
    });
  return { adopt };
}

/** P4Runtime addresses by switch: named one by one, or of consecutive ports in the order of the device ids. */
export function switchAddresses(
  raw: Pick<RawControllerOptions, 'switches' | 'switchBasePort'>,
  topology: Topology,
): { name: string; address: string }[] {
  if ((raw.switches === undefined) === (raw.switchBasePort === undefined))
    throw new DdfError('INVALID_OPTION', 'either --switches or --switch-base-port says where the switches are', {
      remedy:
        'Write --switches leaf1=127.0.0.1:9559,..., or --switch-base-port 9559 for device id 1 at 9559 and so on.',
    });
  if (raw.switchBasePort !== undefined) {
    const base = wholeNumber('--switch-base-port', raw.switchBasePort, 1, 65536 - topology.switches.length);
    return topology.switches.map(({ name, deviceId }) => ({ name, address: `127.0.0.1:${base + deviceId - 1}` }));
  }
  const given = new Map<string, string>();
  for (const part of raw.switches!.split(',')) {
    const [, name, address] = /^([^=]+)=(.+)$/.exec(part) ?? [];
    if (name === undefined || address === undefined)
      throw new DdfError('INVALID_OPTION', `--switches: "${part}" is not NAME=HOST:PORT`);
    hostAndPort(`--switches ${name}`, address, 1);
    if (!topology.switches.some((node) => node.name === name))
      throw new DdfError('INVALID_OPTION', `--switches: the topology ${topology.name} has no switch "${name}"`);
    if (given.has(name)) throw new DdfError('INVALID_OPTION', `--switches: ${name} is given twice`);
    given.set(name, address);
  }
  return topology.switches.map(({ name }) => {
    const address = given.get(name);
    if (address === undefined)
      throw new DdfError('INVALID_OPTION', `--switches: no address is given for ${name}`, {
        remedy: 'Give one for every switch of the topology.',
      });
    return { name, address };
  });
}
