import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { DdfError } from '../../base/errors.ts';
import { planBounds, rolloutFigures, sourcesOf } from '../../lab/figures.ts';
import type { MininetPlan, PlannedEnd } from '../../topologies/mininet/plan.ts';
import type { Topology } from '../../topologies/types.ts';
import type { MeasuredRun, Measurement } from '../main-job.ts';

/** What the kernel counted at one device: whole frames without FCS, what it sent after its queue. */
export interface DeviceCount {
  readonly receivedBytes: number;
  readonly receivedFrames: number;
  readonly sentBytes: number;
  readonly sentFrames: number;
}

/** Counts by device; names are unique within a plan. */
export type DeviceCounts = ReadonlyMap<string, DeviceCount>;

export interface NetworkSnapshot {
  readonly devices: DeviceCounts;
  /** Frames that did not fit into a queue of the shapers. */
  readonly queueDrops: number;
  /** Datagrams that did not fit into a socket's buffer, of all hosts. */
  readonly socketDrops: number;
}

const POLL_MS = 100;
const QUIET_TIMEOUT_MS = 10_000;

/** The counters when nothing is on its way: two readings that agree. @throws DdfError TIMEOUT when the network does not come to rest */
export async function takeSnapshot(plan: MininetPlan, pids: ReadonlyMap<string, number>): Promise<NetworkSnapshot> {
  const deadline = Date.now() + QUIET_TIMEOUT_MS;
  let devices = readDevices(plan, pids);
  for (;;) {
    await delay(POLL_MS);
    const again = readDevices(plan, pids);
    const isQuiet = [...again].every(([name, count]) => count.sentFrames === devices.get(name)?.sentFrames);
    devices = again;
    if (isQuiet) break;
    if (Date.now() > deadline)
      throw new DdfError('TIMEOUT', `the network did not come to rest within ${QUIET_TIMEOUT_MS / 1000} s`, {
        where: 'snapshot of counters',
        recoverable: true,
      });
  }
  const values = [...pids.values()];
  return {
    devices,
    queueDrops: values.reduce((sum, pid) => sum + queueDropsOf(pid), 0),
    socketDrops: values.reduce((sum, pid) => sum + parseSocketDrops(readProc(pid, 'snmp')), 0),
  };
}

/** Figures of a rollout by the kernel's counters of all devices, and by what agents told the controller. */
export function figuresBetween(
  before: NetworkSnapshot,
  after: NetworkSnapshot,
  topology: Topology,
  plan: MininetPlan,
  { rollout, version, phases, seconds }: MeasuredRun,
): Measurement {
  const sent = ({ device }: PlannedEnd): { bytes: number; frames: number } => {
    const [old, now] = [before.devices.get(device), after.devices.get(device)!];
    return { bytes: now.sentBytes - (old?.sentBytes ?? 0), frames: now.sentFrames - (old?.sentFrames ?? 0) };
  };
  const sources = sourcesOf(rollout.plan);
  const isHost = ({ node }: PlannedEnd): boolean => topology.hosts.some(({ name }) => name === node);
  const total = { source: 0, coreLinks: 0, hostLinks: 0, frames: 0 };
  for (const { a, b } of plan.links)
    for (const end of [a, b]) {
      const { bytes, frames } = sent(end);
      total.frames += frames;
      if (isHost(a) || isHost(b)) total.hostLinks += bytes;
      else total.coreLinks += bytes;
      if (sources.has(end.node)) total.source += bytes;
    }
  const sum = (counts: readonly Record<string, number>[], name: string): number =>
    counts.reduce((all, count) => all + (count[name] ?? 0), 0);
  const senders = rollout.transfers.map(({ sender }) => sender);
  const bounds = planBounds(rollout.plan);
  const queueDrops = after.queueDrops - before.queueDrops;
  const socketDrops = after.socketDrops - before.socketDrops;
  return {
    figures: {
      ...rolloutFigures(rollout, version),
      source: { bytes: total.source, ...bounds.source },
      coreLinks: { bytes: total.coreLinks, ...bounds.coreLinks },
      hostLinks: { bytes: total.hostLinks, ...bounds.hostLinks },
      nacksAtSource: sum(senders, 'nacksReceived'),
      repairSymbols: sum(senders, 'repairPackets'),
      lostPackets: sum(
        rollout.transfers.map(({ receiverTotals }) => receiverTotals),
        'lostSymbols',
      ),
      packets: total.frames,
      phases,
      seconds,
    },
    remarks: [
      'Bytes and packets: what the kernel counted at every virtual interface of the fabric, range reads and ARP included. ' +
        'Lost: data packets that receivers missed.',
      `Of these the shapers' queues dropped ${queueDrops} and the hosts' socket buffers ${socketDrops}.`,
    ],
  };
}

function readDevices(plan: MininetPlan, pids: ReadonlyMap<string, number>): Map<string, DeviceCount> {
  const wanted = new Set(plan.links.flatMap(({ a, b }) => [a.device, b.device]));
  const counts = new Map<string, DeviceCount>();
  for (const pid of pids.values())
    for (const [name, count] of parseDevices(readProc(pid, 'dev'))) if (wanted.has(name)) counts.set(name, count);
  return counts;
}

function readProc(pid: number, file: 'dev' | 'snmp'): string {
  return readFileSync(`/proc/${pid}/net/${file}`, 'latin1');
}

/** /proc/net/dev: two lines of headings, then `name: received bytes, packets, ..., sent bytes (9th), packets (10th), ...`. */
export function parseDevices(text: string): Map<string, DeviceCount> {
  const counts = new Map<string, DeviceCount>();
  for (const line of text.split('\n').slice(2)) {
    const [, name, rest] = /^\s*(\S+):\s*(.*)$/.exec(line) ?? [];
    if (name === undefined) continue;
    const fields = rest!.trim().split(/\s+/).map(Number);
    counts.set(name, {
      receivedBytes: fields[0]!,
      receivedFrames: fields[1]!,
      sentBytes: fields[8]!,
      sentFrames: fields[9]!,
    });
  }
  return counts;
}

/** /proc/net/snmp: a line of names and one of values for each protocol. */
export function parseSocketDrops(text: string): number {
  const [names, values] = text
    .split('\n')
    .filter((line) => line.startsWith('Udp:'))
    .map((line) => line.split(' '));
  const index = names?.indexOf('RcvbufErrors') ?? -1;
  return index < 0 ? 0 : Number(values![index]);
}

function queueDropsOf(pid: number): number {
  const { status, stdout } = spawnSync(
    'nsenter',
    [`--net=/proc/${pid}/ns/net`, 'tc', '-statistics', '-json', 'qdisc', 'show'],
    { encoding: 'utf8' },
  );
  if (status !== 0) return 0;
  return (JSON.parse(stdout) as { root?: boolean; drops?: number }[]).reduce(
    (sum, { root, drops }) => sum + (root === true ? (drops ?? 0) : 0),
    0,
  );
}
