import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { networkInterfaces, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { DdfError } from '../../base/errors.ts';
import { MANAGEMENT_NETWORKS, MININET_PREFIX, managementAddress } from '../../topologies/mininet/plan.ts';

/** Marks every process of a run: `RUN:OWNER:START`, four hexadecimal digits, and the process that answers for it with its start time. */
export const RUN_VARIABLE = 'DDF_MININET_RUN';

const DIRECTORY = /^ddf-mininet-([0-9a-f]{4})-(\d+)-(\d+)$/;
const DEVICE = new RegExp(`^${MININET_PREFIX}([0-9a-f]{4})(?:m|[0-9a-f]{8})$`);
const MARK = new RegExp(`(?:^|\\0)${RUN_VARIABLE}=([0-9a-f]{4}):(\\d+):(\\d+)(?:\\0|$)`);
/** network.py takes its time when the machine is busy, and gives up by itself. */
const TERM_WAIT_MS = 30_000;
const POLL_MS = 50;

export interface Run {
  readonly id: string;
  readonly networkIndex: number;
  /** Everything that the run stores. */
  readonly directory: string;
  /** Value of {@link RUN_VARIABLE}. */
  readonly mark: string;
}

/** Takes a number that nothing on this machine has, and a management network that no interface is in. */
export function beginRun(): Run {
  const taken = new Set(leftoversByRun().keys());
  const addresses = new Set(
    Object.values(networkInterfaces()).flatMap((all) => (all ?? []).map(({ address }) => address)),
  );
  const networkIndex = Array.from({ length: MANAGEMENT_NETWORKS }, (_, index) => index).find(
    (index) => !addresses.has(managementAddress(index, 1)),
  );
  if (networkIndex === undefined)
    throw new DdfError('ADDRESS_IN_USE', 'all management networks are in use', {
      where: '198.18.0.0/15',
      remedy: '`ddf doctor --clean` removes those that nobody uses.',
    });
  const start = startTime(process.pid)!;
  for (;;) {
    const id = randomBytes(2).toString('hex');
    if (taken.has(id)) continue;
    const directory = join(tmpdir(), `ddf-mininet-${id}-${process.pid}-${start}`);
    mkdirSync(directory);
    return { id, networkIndex, directory, mark: `${id}:${process.pid}:${start}` };
  }
}

/** What a run that does not live any more has left. */
export interface Leftover {
  readonly run: string;
  readonly processes: number[];
  readonly devices: string[];
  readonly directories: string[];
}

/** Leftovers of runs whose owner has gone; what carries another name, or belongs to a run that lives, is not among them. */
export function findLeftovers(): Leftover[] {
  return [...leftoversByRun()].filter(([, { isAlive }]) => !isAlive).map(([, { leftover }]) => leftover);
}

/** Ends what is left of runs, removes their devices and directories. */
export async function removeLeftovers(leftovers: readonly Leftover[]): Promise<void> {
  for (const { processes, directories, run } of leftovers) {
    const own = (): number[] => processes.filter((pid) => markOf(pid)?.run === run);
    signalAll(own(), 'SIGTERM');
    for (const deadline = Date.now() + TERM_WAIT_MS; own().length > 0 && Date.now() < deadline; ) await delay(POLL_MS);
    signalAll(own(), 'SIGKILL');
    // Those in a namespace have gone with its last process; network.py may have removed, or made, others meanwhile.
    for (const device of deviceNames().filter((name) => DEVICE.exec(name)?.[1] === run))
      spawnSync('ip', ['link', 'delete', 'dev', device], { stdio: 'ignore' });
    for (const directory of directories) rmSync(directory, { recursive: true, force: true });
  }
}

function signalAll(pids: readonly number[], signal: NodeJS.Signals): void {
  for (const pid of pids)
    try {
      process.kill(pid, signal);
    } catch {
      // Gone meanwhile.
    }
}

function leftoversByRun(): Map<string, { leftover: Leftover; isAlive: boolean }> {
  const runs = new Map<string, { leftover: Leftover; isAlive: boolean }>();
  const entry = (run: string, owner?: { pid: number; start: string }): Leftover => {
    const known = runs.get(run) ?? {
      leftover: { run, processes: [], devices: [], directories: [] },
      isAlive: false,
    };
    if (owner !== undefined && startTime(owner.pid) === owner.start) known.isAlive = true;
    runs.set(run, known);
    return known.leftover;
  };
  // First the devices: who made them was there before, and is seen below if it lives.
  const devices = deviceNames();
  for (const name of readdirSync(tmpdir())) {
    const [, run, pid, start] = DIRECTORY.exec(name) ?? [];
    if (run !== undefined) entry(run, { pid: Number(pid), start: start! }).directories.push(join(tmpdir(), name));
  }
  for (const name of readdirSync('/proc')) {
    const pid = Number(name);
    const mark = Number.isInteger(pid) ? markOf(pid) : undefined;
    if (mark !== undefined) entry(mark.run, mark.owner).processes.push(pid);
  }
  for (const name of devices) {
    const run = DEVICE.exec(name)?.[1];
    if (run !== undefined && existsSync(`/sys/class/net/${name}`)) entry(run).devices.push(name);
  }
  return runs;
}

function deviceNames(): string[] {
  try {
    return readdirSync('/sys/class/net');
  } catch {
    return [];
  }
}

function markOf(pid: number): { run: string; owner: { pid: number; start: string } } | undefined {
  try {
    const [, run, owner, start] = MARK.exec(readFileSync(`/proc/${pid}/environ`, 'latin1')) ?? [];
    return run === undefined ? undefined : { run, owner: { pid: Number(owner), start: start! } };
  } catch {
    // Gone, or somebody else's.
    return undefined;
  }
}

/** When a process started, in clock ticks since the machine did: with the pid it names a process for good. Undefined: there is none. */
function startTime(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return fields[0] === 'Z' ? undefined : fields[19];
  } catch {
    return undefined;
  }
}
