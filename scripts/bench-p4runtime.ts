/**
 * How many table entries per second the controller writes: `npm run bench:p4runtime [-- --json]`.
 *
 * The same connection writes the same entries of table transfer to the embedded switch and, where simple_switch_grpc is on PATH, to that, each in a
 * process of its own and all of them in turn: in batches of 256, one at a time, and as a reconciler that finds the switch restarted without its state.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { fileURLToPath } from 'node:url';
import { RealScheduler } from '../base/clock.ts';
import { createLogger } from '../base/logger.ts';
import { createRandom } from '../base/random.ts';
import { SwitchConnection } from '../controller/p4runtime/connection.ts';
import { electionIdAt } from '../controller/p4runtime/election.ts';
import { createPipeline } from '../controller/p4runtime/pipeline.ts';
import { Reconciler } from '../controller/reconcile/reconciler.ts';
import { EntityFactory } from '../controller/tables/entities.ts';
import { PORT_CPU } from '../p4/build/constants.ts';
import { Device } from '../switch/device.ts';
import { startP4RuntimeServer } from '../switch/server/p4runtime-server.ts';
import { type Update, UpdateType } from '../wire/p4runtime/messages.ts';
import { P4InfoIndex } from '../wire/p4runtime/p4info-index.ts';
import { parseP4InfoText } from '../wire/p4runtime/p4info-text.ts';
import { findSimpleSwitch, freePort, SimpleSwitch } from './simple-switch.ts';

const ENTRIES = 10_000;
const SINGLES = 2_000;
/** Medians are taken of so many, after some that nobody counts. */
const ROUNDS = 11;
const WARM_ROUNDS = 3;
const RESTARTS = 7;
const DEVICE_ID = 1;
const SERVE = '--serve';

const build = (name: string): Buffer => readFileSync(new URL(`../p4/build/${name}`, import.meta.url));

interface Target {
  readonly name: string;
  /** Starts it with nothing in it. */
  start(port: number): Promise<{ stop(): Promise<void> }>;
}

interface Figures {
  /** Entries per second in batches of 256, and one by one. */
  readonly batched: number;
  readonly single: number;
  /** Milliseconds for all entries: bare writes, and a reconcile after a restart (without the load of the program, which both need). */
  readonly bareMs: number;
  readonly reconcileMs: number;
  readonly ratio: number;
}

/** What runs in the process of the embedded switch. */
async function serve(port: number): Promise<void> {
  const scheduler = new RealScheduler();
  const device = new Device({
    deviceId: BigInt(DEVICE_ID),
    cpuPort: PORT_CPU,
    clock: scheduler,
    random: createRandom(1),
  });
  const options = { devices: [device], address: `127.0.0.1:${port}`, scheduler, logger: createLogger() };
  await startP4RuntimeServer(options);
  process.send!('listening');
}

const EMBEDDED: Target = {
  name: 'embedded switch',
  start: async (port) => {
    const child: ChildProcess = spawn(
      process.execPath,
      [...process.execArgv, fileURLToPath(import.meta.url), SERVE, String(port)],
      { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] },
    );
    await Promise.race([
      once(child, 'message'),
      once(child, 'exit').then(() => Promise.reject(new Error('the embedded switch did not start'))),
    ]);
    return {
      stop: async () => {
        const gone = once(child, 'exit');
        child.kill('SIGTERM');
        await gone;
      },
    };
  },
};

function targets(): Target[] {
  const path = findSimpleSwitch();
  if (path === undefined) return [EMBEDDED];
  return [
    EMBEDDED,
    {
      name: 'simple_switch_grpc',
      start: (port) => SimpleSwitch.start({ path, deviceId: DEVICE_ID, cpuPort: PORT_CPU, port }),
    },
  ];
}

const p4info = parseP4InfoText(build('fabric.p4info.txtpb').toString());
const pipeline = createPipeline(p4info, build('fabric.json'));
const factory = new EntityFactory(new P4InfoIndex(p4info));
const entities = Array.from({ length: ENTRIES }, (_, i) =>
  factory.tableEntry('transfer', {
    match: { label: 0x10000 + i },
    action: {
      name: 'follow_tree',
      params: { tenant: 1, multicast_group: 1 + i, upstream_port: 1, tree_mask: 0xffff, transfer_index: 1 + i },
    },
  }),
);
const updates = (type: Update['type'], count = ENTRIES): Update[] =>
  entities.slice(0, count).map((entity) => ({ type, entity }));

async function write(connection: SwitchConnection, batch: readonly Update[]): Promise<void> {
  const outcome = await connection.write(batch);
  if (outcome.kind !== 'applied') throw outcome.error;
}

async function timed(action: () => Promise<void>): Promise<number> {
  const start = performance.now();
  await action();
  return performance.now() - start;
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[values.length >> 1]!;
}

/** A target that runs, what is connected to it, and what was measured of it: times in milliseconds. */
class Subject {
  readonly target: Target;
  private readonly port: number;
  private readonly connection: SwitchConnection;
  private process: { stop(): Promise<void> };
  private readonly batched: number[] = [];
  private readonly single: number[] = [];
  private readonly bare: number[] = [];
  private readonly reconciled: number[] = [];

  private constructor(target: Target, port: number, process: { stop(): Promise<void> }) {
    this.target = target;
    this.port = port;
    this.process = process;
    this.connection = new SwitchConnection({
      name: target.name,
      address: `127.0.0.1:${port}`,
      deviceId: DEVICE_ID,
      electionId: electionIdAt(Date.now(), 1n),
      reconnectMaximumMs: 200,
    });
  }

  static async start(target: Target): Promise<Subject> {
    const port = await freePort();
    const subject = new Subject(target, port, await target.start(port));
    subject.connection.start();
    await subject.connection.whenPrimary(30_000);
    await subject.connection.setPipeline(pipeline);
    return subject;
  }

  async stop(): Promise<void> {
    this.connection.close();
    await this.process.stop();
  }

  /** @param counts whether it is measured, or only made warm */
  async writes(counts: boolean): Promise<void> {
    const { connection } = this;
    const batched = await timed(() => write(connection, updates(UpdateType.INSERT)));
    await write(connection, updates(UpdateType.DELETE));
    const single = await timed(async () => {
      for (const update of updates(UpdateType.INSERT, SINGLES)) await write(connection, [update]);
    });
    await write(connection, updates(UpdateType.DELETE, SINGLES));
    if (!counts) return;
    this.batched.push(batched);
    this.single.push(single);
  }

  async reconcile(): Promise<void> {
    const { connection } = this;
    await this.restart();
    await connection.setPipeline(pipeline);
    this.bare.push(await timed(() => write(connection, updates(UpdateType.INSERT))));

    const reconciler = new Reconciler({ connection, pipeline, auditMs: Number.POSITIVE_INFINITY });
    reconciler.setDesired('bench', entities);
    await reconciler.converge();
    let start = 0;
    const converged = new Promise<void>((resolve) => {
      reconciler.onEvent((event) => {
        if (event.type === 'pipeline' && event.result === 'installed') start = performance.now();
        else if (event.type === 'converged' && event.inserted === ENTRIES) {
          this.reconciled.push(performance.now() - start);
          resolve();
        }
      });
    });
    await this.restart();
    await converged;
    reconciler.close();
  }

  /** Resolves when the connection is primary on a new process. */
  private async restart(): Promise<void> {
    const lost = new Promise<void>((resolve) => {
      const stop = this.connection.onState((state) => {
        if (state !== 'down') return;
        stop();
        resolve();
      });
    });
    await this.process.stop();
    await lost;
    this.process = await this.target.start(this.port);
    await this.connection.whenPrimary(30_000);
  }

  get figures(): Figures {
    const bareMs = median(this.bare);
    const reconcileMs = median(this.reconciled);
    return {
      batched: Math.round((ENTRIES / median(this.batched)) * 1000),
      single: Math.round((SINGLES / median(this.single)) * 1000),
      bareMs: Math.round(bareMs),
      reconcileMs: Math.round(reconcileMs),
      ratio: Number((reconcileMs / bareMs).toFixed(2)),
    };
  }
}

async function main(): Promise<void> {
  const json = process.argv.includes('--json');
  console.log(`${ENTRIES.toLocaleString('en')} entries of table transfer, ${cpus().length} x ${cpus()[0]?.model}`);
  const subjects: Subject[] = [];
  try {
    for (const target of targets()) subjects.push(await Subject.start(target));
    // In turns, so that what else the machine does meets both.
    for (let round = -WARM_ROUNDS; round < ROUNDS; round++)
      for (const subject of inTurn(subjects, round)) await subject.writes(round >= 0);
    for (let round = 0; round < RESTARTS; round++)
      for (const subject of inTurn(subjects, round)) await subject.reconcile();
  } finally {
    for (const subject of subjects) await subject.stop();
  }
  const [embedded, simpleSwitch] = subjects.map(({ figures }) => figures);
  for (const { target, figures } of subjects)
    console.log(
      `${target.name}: ${figures.batched.toLocaleString('en')} entries/s in batches of 256, ` +
        `${figures.single.toLocaleString('en')}/s one by one; after a restart ${figures.bareMs} ms bare, ` +
        `${figures.reconcileMs} ms reconciled (${figures.ratio}x)`,
    );
  if (simpleSwitch === undefined) console.log('simple_switch_grpc is not on PATH: nothing to compare with');
  else {
    const times = (key: 'batched' | 'single') => (embedded![key] / simpleSwitch[key]).toFixed(2);
    console.log(`That is ${times('batched')} times as many in batches and ${times('single')} times as many one by one`);
  }
  if (json) console.log(JSON.stringify({ embedded, simpleSwitch: simpleSwitch ?? null }));
}

/** The first is another one in every round. */
function inTurn<T>(all: readonly T[], round: number): readonly T[] {
  return round % 2 === 0 ? all : [...all].reverse();
}

const serveAt = process.argv.indexOf(SERVE);
if (serveAt >= 0) await serve(Number(process.argv[serveAt + 1]));
else await main();
