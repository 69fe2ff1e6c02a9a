/**
 * Measures switches over veth. Runs in a network namespace of its own (see namespace.ts), as the process that generates the load and counts what comes out;
 * each switch is another process. Prints one JSON object as its last line.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { loadLibc } from '../../base/linux/libc.ts';
import { SwitchConnection } from '../../controller/p4runtime/connection.ts';
import { electionIdAt } from '../../controller/p4runtime/election.ts';
import { createPipeline } from '../../controller/p4runtime/pipeline.ts';
import { readFabricProgram } from '../../lab/p4-program.ts';
import { PORT_CPU } from '../../p4/build/constants.ts';
import { InterfaceControl } from '../../switch/ports/linux/interface.ts';
import { UpdateType } from '../../wire/p4runtime/messages.ts';
import { findSimpleSwitch, SimpleSwitch } from '../simple-switch.ts';
import { Load, type LoadResult } from './load.ts';
import {
  arrivals,
  averageGrowth,
  DOWNSTREAM,
  entitiesOf,
  FRAME_SIZES,
  PLACES,
  type Place,
  UPSTREAM,
} from './traffic.ts';

/** What came out per second, by the length of the frames that went in. */
export type Rates = Record<string, number>;

/** The last line of this process. */
export interface VethResult {
  readonly embedded: Rates;
  readonly simpleSwitch: Rates | null;
  /** Slowest ratio of the two over the places, at each size. */
  readonly ratios: Rates | null;
}

const DEVICE_ID = 1;
const MTU_BYTES = 9500;
const RUN_SECONDS = 1;
/** What else a machine does comes and goes: what is reported is the best round, of either switch. */
const ROUNDS = 3;
/** Frames inside a switch at a time; the best counts here too. simple_switch drops when 64 wait for one port. */
const WINDOWS: readonly number[] = [48, 128, 256];
const MAX_LOST_SHARE = 0.001;
const CABLES = [
  { port: UPSTREAM, near: 'up-switch', far: 'up-load' },
  { port: DOWNSTREAM, near: 'down-switch', far: 'down-load' },
] as const;

interface RunningSwitch {
  readonly port: number;
  stop(): Promise<void>;
}

interface Target {
  readonly name: string;
  start(): Promise<RunningSwitch>;
}

const interfaces = CABLES.map(({ port, near }) => `${port}@${near}`);

const EMBEDDED: Target = {
  name: 'embedded switch',
  start: async () => {
    const ddf = fileURLToPath(new URL('../ddf.mjs', import.meta.url));
    const options = ['--no-p4', '--grpc', '127.0.0.1:0', '--json', ...interfaces.flatMap((each) => ['-i', each])];
    const child: ChildProcess = spawn(process.execPath, [ddf, 'switch', ...options], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const lines = createInterface({ input: child.stdout! })[Symbol.asyncIterator]();
    const first = await lines.next();
    if (first.done === true) throw new Error('the embedded switch did not start');
    const { grpcPort } = JSON.parse(first.value) as { grpcPort: number };
    return {
      port: grpcPort,
      stop: async () => {
        child.kill('SIGTERM');
        for (let line = await lines.next(); line.done !== true; line = await lines.next()) report(line.value);
      },
    };
  },
};

/** Losses inside the embedded switch are worth knowing. */
function report(line: string): void {
  const { ports } = JSON.parse(line) as { ports: { port: number; ringDropped: number; queueDropped: number }[] };
  for (const { port, ringDropped, queueDropped } of ports)
    if (ringDropped + queueDropped > 0)
      console.error(`  port ${port}: ${ringDropped} frames missed, ${queueDropped} dropped in the queue`);
}

function targets(): Target[] {
  const path = findSimpleSwitch();
  if (path === undefined) return [EMBEDDED];
  return [
    EMBEDDED,
    {
      name: 'simple_switch_grpc',
      start: () => SimpleSwitch.start({ path, deviceId: DEVICE_ID, cpuPort: PORT_CPU, interfaces }),
    },
  ];
}

async function program(name: string, port: number, place: Place): Promise<void> {
  const { bmv2Json, index } = readFabricProgram();
  const connection = new SwitchConnection({
    name,
    address: `127.0.0.1:${port}`,
    deviceId: DEVICE_ID,
    electionId: electionIdAt(Date.now(), 1n),
  });
  try {
    connection.start();
    await connection.whenPrimary(30_000);
    await connection.setPipeline(createPipeline(index.p4Info, bmv2Json));
    const outcome = await connection.write(entitiesOf(place).map((entity) => ({ type: UpdateType.INSERT, entity })));
    if (outcome.kind !== 'applied') throw outcome.error;
  } finally {
    connection.close();
  }
}

async function measure(target: Target, place: Place, load: Load): Promise<Rates> {
  const running = await target.start();
  try {
    await program(target.name, running.port, place);
    const rates: Rates = {};
    for (const frameBytes of FRAME_SIZES) {
      const schedule = arrivals(place, frameBytes);
      const rounds = Array.from({ length: ROUNDS }, () =>
        WINDOWS.map((window) => ({ window, ...load.run(schedule, window, RUN_SECONDS) })),
      );
      const runs = WINDOWS.map((_, i) => bestOf(rounds.map((round) => round[i]!)));
      const best = bestOf(runs);
      const expectedBytes = frameBytes + averageGrowth(place);
      if (Math.abs(best.bytesPerFrame - expectedBytes) > 1)
        throw new Error(`${target.name}: ${best.bytesPerFrame} bytes per frame came out, expected ${expectedBytes}`);
      rates[frameBytes] = Math.floor(best.perSecond);
      const share = (value: number): string => `${(100 * value).toFixed(value < 0.01 ? 2 : 0)} %`;
      console.error(
        `  ${target.name.padEnd(19)} ${place.name.padEnd(37)} ${frameBytes} B ${Math.round(best.perSecond).toLocaleString('en-US').padStart(8)} packets/s ` +
          `(${best.window} in the switch at a time, ${share(best.lostShare)} lost, load waits ${share(best.waitingShare)}; ` +
          `${runs.map(({ window, perSecond, lostShare }) => `${window}: ${Math.round(perSecond)}${lostShare > MAX_LOST_SHARE ? ` with ${share(lostShare)} lost` : ''}`).join(', ')})`,
      );
    }
    return rates;
  } finally {
    await running.stop();
  }
}

/** The fastest of those that lost next to nothing, if there are any. */
function bestOf<R extends LoadResult>(runs: readonly R[]): R {
  const usable = runs.filter(({ lostShare }) => lostShare <= MAX_LOST_SHARE);
  return (usable.length > 0 ? usable : runs).reduce((a, b) => (b.perSecond > a.perSecond ? b : a));
}

function slowest(rates: readonly Rates[]): Rates {
  return Object.fromEntries(FRAME_SIZES.map((size) => [size, Math.min(...rates.map((each) => each[size]!))]));
}

async function main(): Promise<void> {
  const run = (command: string, ...args: string[]): void => void execFileSync(command, args, { stdio: 'inherit' });
  run('ip', 'link', 'set', 'lo', 'up');
  for (const { near, far } of CABLES) {
    run(
      'ip',
      'link',
      'add',
      near,
      'mtu',
      String(MTU_BYTES),
      'type',
      'veth',
      'peer',
      'name',
      far,
      'mtu',
      String(MTU_BYTES),
    );
    for (const end of [near, far]) run('ip', 'link', 'set', end, 'addrgenmode', 'none', 'up');
  }
  const libc = await loadLibc();
  const control = new InterfaceControl(libc);
  const load = new Load(libc, control, CABLES[0].far, CABLES[1].far);
  const results: Rates[][] = [];
  for (const place of PLACES)
    for (const [i, target] of targets().entries()) {
      results[i] ??= [];
      results[i].push(await measure(target, place, load));
    }
  load.close();
  control.close();
  const [embedded, simple] = results;
  const result: VethResult = {
    embedded: slowest(embedded!),
    simpleSwitch: simple === undefined ? null : slowest(simple),
    ratios:
      simple === undefined
        ? null
        : Object.fromEntries(
            FRAME_SIZES.map((size) => [
              size,
              Math.min(...embedded!.map((rates, i) => rates[size]! / simple[i]![size]!)),
            ]),
          ),
  };
  console.log(JSON.stringify(result));
}

await main();
