import type { SocketKind } from '../../agents/io/udp-host.ts';
import { DdfError } from '../../base/errors.ts';
import type { Topology } from '../../topologies/types.ts';
import { socketKind } from '../options.ts';
import { parseUpOptions, type UpOptions } from '../up-options.ts';
import { SWITCH_KINDS, type SwitchKind } from './switches.ts';

/** What the command line says, as text; absent options are undefined. */
export interface RawMininetOptions {
  readonly switch?: string;
  readonly job?: string;
  readonly base?: string;
  readonly servers?: string;
  readonly cohorts?: string;
  readonly rate?: string;
  readonly loss?: string;
  readonly sockets?: string;
  readonly seed?: string;
  readonly port?: string;
  readonly cli?: boolean;
  readonly json?: boolean;
}

export interface MininetOptions
  extends Pick<UpOptions, 'object' | 'base' | 'servers' | 'cohorts' | 'loss' | 'seed' | 'port' | 'json'> {
  readonly switchKind: SwitchKind;
  /** Of the fastest host link, bits per second; the other links keep their shares of it. */
  readonly hostRate: number;
  /** Of the agents; undefined: as best they can. */
  readonly sockets: SocketKind | undefined;
  readonly cli: boolean;
}

/** Every server is a process of its own: more have to be asked for. */
export const DEFAULT_SERVERS = 16;
/**
 * Host links in Mb/s. bmv2 handles every copy of a packet one after another, all switches share the machine's processors with all hosts, and what
 * they do not keep up with is lost in queues.
 */
export const DEFAULT_RATES: Record<SwitchKind, number> = { embedded: 100, bmv2: 50 };
const MIN_RATE = 1;
const MAX_RATE = 10_000;

/** @throws DdfError INVALID_OPTION with the option, what it said, and what is allowed */
export function parseMininetOptions(raw: RawMininetOptions, topology: Topology): MininetOptions {
  const switchKind = SWITCH_KINDS.find((kind) => kind === (raw.switch ?? 'embedded'));
  if (switchKind === undefined)
    throw new DdfError('INVALID_OPTION', `--switch ${raw.switch}: not one of ${SWITCH_KINDS.join(', ')}`);
  if (raw.base !== undefined && (raw.job === undefined || raw.job === 'demo'))
    throw new DdfError('INVALID_OPTION', '--base names the version before a --job FILE, and there is none', {
      remedy: 'Add --job FILE, or leave --base away: the demo model brings its own base version.',
    });
  const rate = raw.rate === undefined ? DEFAULT_RATES[switchKind] : Number(raw.rate);
  if ((raw.rate !== undefined && !/^\d+(\.\d+)?$/.test(raw.rate)) || rate < MIN_RATE || rate > MAX_RATE)
    throw new DdfError('INVALID_OPTION', `--rate ${raw.rate}: not a number of Mb/s from ${MIN_RATE} to ${MAX_RATE}`);
  const present = topology.hosts.filter(({ kind }) => kind === 'gpu-server').length;
  const common = parseUpOptions(
    {
      object: raw.job === 'demo' ? undefined : raw.job,
      base: raw.base,
      servers: raw.servers,
      cohorts: raw.cohorts,
      loss: raw.loss,
      seed: raw.seed,
      port: raw.port,
      json: raw.json,
    },
    Math.min(present, DEFAULT_SERVERS),
  );
  const { object, base, servers, cohorts, loss, seed, port, json } = common;
  return {
    object,
    base,
    servers,
    cohorts,
    loss,
    seed,
    port,
    json,
    switchKind,
    hostRate: rate * 1e6,
    sockets: socketKind('--sockets', raw.sockets),
    cli: raw.cli ?? false,
  };
}
