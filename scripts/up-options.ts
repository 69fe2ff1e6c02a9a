import { DdfError } from '../base/errors.ts';
import { lossPercent, MAX_SEED, wholeNumber } from './options.ts';

/** What the command line says, as text; absent options are undefined. */
export interface RawUpOptions {
  readonly object?: string | undefined;
  readonly base?: string | undefined;
  readonly servers?: string | undefined;
  readonly cohorts?: string | undefined;
  readonly loss?: string | undefined;
  readonly seed?: string | undefined;
  readonly topology?: string | undefined;
  readonly port?: string | undefined;
  readonly serve?: boolean | undefined;
  readonly json?: boolean | undefined;
}

export interface UpOptions {
  /** The user's file; undefined: the demo model. */
  readonly object: string | undefined;
  readonly base: string | undefined;
  readonly servers: number;
  readonly cohorts: Cohorts;
  /** Per cent of the frames that every host link loses, in each direction. */
  readonly loss: number;
  readonly seed: number;
  /** Undefined: the topology that comes with the project. */
  readonly topology: string | undefined;
  /** TCP port of the REST API on 127.0.0.1; 0: any free one. */
  readonly port: number;
  readonly serve: boolean;
  readonly json: boolean;
}

/** How many servers hold the new version already, hold the version before it, hold nothing. */
export interface Cohorts {
  readonly current: number;
  readonly delta: number;
  readonly full: number;
}

export const MAX_SERVERS = 256;

/**
 * @param topologyServers GPU servers of the topology: as many as there are if the options say nothing
 * @throws DdfError INVALID_OPTION with the option, what it said, and what is allowed
 */
export function parseUpOptions(raw: RawUpOptions, topologyServers: number): UpOptions {
  if (raw.base !== undefined && raw.object === undefined)
    throw new DdfError('INVALID_OPTION', '--base names the version before an --object, and there is none', {
      remedy: 'Add --object FILE, or leave --base away: the demo model brings its own base version.',
    });
  const hasBase = raw.object === undefined || raw.base !== undefined;
  const asked = raw.servers === undefined ? undefined : wholeNumber('--servers', raw.servers, 1, MAX_SERVERS);
  const cohorts = parseCohorts(raw.cohorts, asked, topologyServers, hasBase);
  return {
    object: raw.object,
    base: raw.base,
    servers: cohorts.current + cohorts.delta + cohorts.full,
    cohorts,
    loss: raw.loss === undefined ? 1 : lossPercent('--loss', raw.loss),
    seed: raw.seed === undefined ? 1 : wholeNumber('--seed', raw.seed, 0, MAX_SEED),
    topology: raw.topology,
    port: raw.port === undefined ? 0 : wholeNumber('--port', raw.port, 0, 65535),
    serve: raw.serve ?? false,
    json: raw.json ?? false,
  };
}

function parseCohorts(
  text: string | undefined,
  asked: number | undefined,
  topologyServers: number,
  hasBase: boolean,
): Cohorts {
  const servers = asked ?? topologyServers;
  if (text === undefined) return share(servers, hasBase ? [5, 2, 1] : [5, 0, 3]);
  const invalid = (problem: string, remedy: string): DdfError =>
    new DdfError('INVALID_OPTION', `--cohorts ${text}: ${problem}`, { remedy });
  const separator = text.includes(':') ? ':' : ',';
  const parts = text.split(separator);
  if (parts.length !== 3 || !parts.every((part) => /^\d{1,9}$/.test(part)))
    throw invalid(
      'this is not three whole numbers',
      'Write servers as CURRENT,DELTA,FULL such as 40,16,8, or a ratio such as 5:2:1.',
    );
  const numbers = parts.map(Number) as [number, number, number];
  const sum = numbers[0] + numbers[1] + numbers[2];
  if (sum === 0) throw invalid('all three are 0', 'At least one of the numbers has to be above 0.');
  if (numbers[1] > 0 && !hasBase)
    throw invalid(
      'a delta needs a version that servers hold',
      'Give that version with --base FILE, or write 0 in the middle.',
    );
  if (separator === ':') return share(servers, numbers);
  if (asked !== undefined && sum !== asked)
    throw invalid(
      `these are ${sum} servers, --servers says ${asked}`,
      `Write numbers that sum up to ${asked}, or a ratio with colons, such as ${numbers.join(':')}.`,
    );
  if (sum > MAX_SERVERS)
    throw invalid(`these are ${sum} servers`, `A fabric in one process takes at most ${MAX_SERVERS}.`);
  return { current: numbers[0], delta: numbers[1], full: numbers[2] };
}

/** Divides `total` by weights; what rounding leaves over goes to the largest remainders, the later one first among equals. */
function share(total: number, weights: readonly [number, number, number]): Cohorts {
  const sum = weights[0] + weights[1] + weights[2];
  const exact = weights.map((weight) => (total * weight) / sum);
  const counts = exact.map(Math.floor);
  const order = [2, 1, 0].sort((a, b) => exact[b]! - counts[b]! - (exact[a]! - counts[a]!));
  const left = total - counts.reduce((a, b) => a + b, 0);
  for (const index of order.slice(0, left)) counts[index]!++;
  return { current: counts[0]!, delta: counts[1]!, full: counts[2]! };
}
