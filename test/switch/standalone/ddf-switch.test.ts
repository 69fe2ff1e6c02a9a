import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { SwitchConnection } from '../../../controller/p4runtime/connection.ts';
import { electionIdAt } from '../../../controller/p4runtime/election.ts';
import { portRole } from '../../../controller/tables/admission.ts';
import { EntityFactory } from '../../../controller/tables/entities.ts';
import { route } from '../../../controller/tables/forwarding.ts';
import { egressRole } from '../../../controller/tables/replicas.ts';
import { readFabricProgram } from '../../../lab/p4-program.ts';
import type { StandaloneReport } from '../../../switch/standalone.ts';
import { UpdateType } from '../../../wire/p4runtime/messages.ts';
import { ip, run, tag, whyNoInterfaces } from '../ports/veth.ts';

const reason = whyNoInterfaces();
const DDF = fileURLToPath(new URL('../../../scripts/ddf.mjs', import.meta.url));
const file = (path: string): string => fileURLToPath(new URL(path, import.meta.url));
const PATCH = ['--program', file('patch.json'), '--p4info', file('patch.p4info.txtpb')];
const FABRIC = [
  '--program',
  file('../../../p4/build/fabric.json'),
  '--p4info',
  file('../../../p4/build/fabric.p4info.txtpb'),
];

/** `ddf switch` as a process. */
class SwitchProcess {
  readonly child: ChildProcess;
  private readonly lines: AsyncIterator<string>;
  errors = '';

  /** @param uid of the user who runs it; by default whoever runs this */
  constructor(options: readonly string[], uid?: number) {
    this.child = spawn(process.execPath, [DDF, 'switch', '--json', ...options], {
      stdio: ['ignore', 'pipe', 'pipe'],
      ...(uid === undefined ? {} : { uid }),
    });
    this.child.stderr!.setEncoding('utf8').on('data', (text: string) => {
      this.errors += text;
    });
    this.lines = createInterface({ input: this.child.stdout! })[Symbol.asyncIterator]();
  }

  async ready(): Promise<{ ready: true; grpcPort: number; ports: string[] }> {
    const line = await this.lines.next();
    if (line.done === true) throw new Error(this.errors);
    return JSON.parse(line.value);
  }

  /** What it reports after a signal. */
  async end(signal: NodeJS.Signals): Promise<StandaloneReport> {
    const exited = this.exitCode();
    this.child.kill(signal);
    const line = await this.lines.next();
    expect(await exited).toBe(0);
    return JSON.parse(line.value!);
  }

  exitCode(): Promise<number | null> {
    const { child } = this;
    if (child.exitCode !== null) return Promise.resolve(child.exitCode);
    return new Promise((resolve) => child.once('close', resolve));
  }
}

const NOBODY = 65_534;

/** A checkout in somebody's home may be closed to others. */
function canReadThis(uid: number): boolean {
  if (process.getuid?.() !== 0) return false;
  const look = `require('node:fs').accessSync(${JSON.stringify(DDF)})`;
  return spawnSync(process.execPath, ['-e', look], { uid, stdio: 'ignore' }).status === 0;
}

/** A host in a network namespace of its own, with a cable to an interface of ours. */
interface Host {
  readonly namespace: string;
  /** Our end. */
  readonly near: string;
  readonly far: string;
  readonly ip: string;
  readonly mac: string;
}

const HOST_MTU = 9000;

function makeHost(number: number, address: string): Host {
  const host: Host = {
    namespace: `dth${tag}${number}`,
    near: `dtn${tag}${number}`,
    far: `dtf${tag}${number}`,
    ip: address.split('/')[0]!,
    mac: `02:00:00:00:00:0${number}`,
  };
  const { namespace, near, far } = host;
  ip('netns', 'add', namespace);
  ip('link', 'add', near, 'mtu', '9500', 'type', 'veth', 'peer', 'name', far, 'netns', namespace);
  ip('link', 'set', near, 'addrgenmode', 'none', 'up');
  ip('-n', namespace, 'link', 'set', far, 'mtu', String(HOST_MTU), 'address', host.mac, 'up');
  ip('-n', namespace, 'addr', 'add', address, 'dev', far);
  return host;
}

function removeHost({ namespace, near }: Host): void {
  for (const remove of [() => ip('link', 'delete', near), () => ip('netns', 'delete', namespace)]) {
    try {
      remove();
    } catch {
      // A test has done it already.
    }
  }
}

const inside = (host: Host, ...command: readonly string[]): string =>
  run('ip', 'netns', 'exec', host.namespace, ...command);
const ping = (from: Host, to: Host, ...options: readonly string[]): string =>
  inside(from, 'ping', '-q', '-W', '5', ...options, to.ip);

const TRANSFER_BYTES = 8 * 1024 * 1024;
/** Prints a line when it listens, then the SHA-256 of what it gets. */
const TCP_SINK = `
const hash = require('node:crypto').createHash('sha256');
require('node:net').createServer((socket) => {
  socket.on('data', (data) => hash.update(data));
  socket.on('end', () => { console.log(hash.digest('hex')); process.exit(); });
}).listen(5001, () => console.log('listening'));
`;
const TCP_SOURCE = `
const data = Buffer.alloc(${TRANSFER_BYTES});
for (let i = 0; i < data.length; i += 4) data.writeUInt32LE(Math.imul(i, 0x9e3779b1) >>> 0, i);
console.log(require('node:crypto').createHash('sha256').update(data).digest('hex'));
require('node:net').connect(5001, process.argv[1]).end(data);
`;

async function transfer(from: Host, to: Host): Promise<void> {
  const sink = spawn('ip', ['netns', 'exec', to.namespace, process.execPath, '-e', TCP_SINK]);
  try {
    const lines = createInterface({ input: sink.stdout })[Symbol.asyncIterator]();
    expect((await lines.next()).value).toBe('listening');
    const sent = inside(from, process.execPath, '-e', TCP_SOURCE, to.ip).trim();
    expect((await lines.next()).value).toBe(sent);
  } finally {
    sink.kill('SIGKILL');
  }
}

const title = `ddf switch on interfaces${reason === undefined ? '' : ` (${reason})`}`;
describe.skipIf(reason !== undefined)(title, { timeout: 60_000 }, () => {
  let hosts: Host[];
  let running: SwitchProcess | undefined;
  const start = async (options: readonly string[]): Promise<{ grpcPort: number }> => {
    running = new SwitchProcess(['--grpc', '127.0.0.1:0', ...options]);
    return running.ready();
  };
  const ports = (): string[] => hosts.flatMap(({ near }, i) => ['-i', `${i + 1}@${near}`]);

  beforeEach(() => {
    hosts = [];
  });
  afterEach(() => {
    running?.child.kill('SIGKILL');
    running = undefined;
    for (const host of hosts) removeHost(host);
  });

  it('connects two hosts with the program that it starts with: ping, large and small, and TCP both ways', async () => {
    hosts = [makeHost(1, '10.77.0.1/24'), makeHost(2, '10.77.0.2/24')];
    const [one, two] = hosts as [Host, Host];
    await start([...PATCH, ...ports()]);
    ping(one, two, '-c', '3', '-i', '0.01');
    ping(two, one, '-c', '3', '-i', '0.01', '-s', String(HOST_MTU - 28), '-M', 'do');
    ping(one, two, '-c', '2', '-i', '0.01', '-s', '0');
    await transfer(one, two);
    await transfer(two, one);
    const report = await running!.end('SIGTERM');
    // Hosts leave checksums and cutting to their veth: it is done here, and their kernels find nothing wrong.
    for (const port of report.ports) {
      expect(port).toMatchObject({ state: 'up', unusable: 0, tooLong: 0, sendFailed: 0 });
      expect(port.segmented).toBeGreaterThan(0);
      expect(port.checksumsCompleted).toBeGreaterThan(0);
    }
    expect(report.device).toMatchObject({ errors: 0 });
  });

  it('routes between two hosts by what P4Runtime writes into the pipeline that it starts with', async () => {
    hosts = [makeHost(1, '10.77.1.2/24'), makeHost(2, '10.77.2.2/24')];
    const [one, two] = hosts as [Host, Host];
    const gatewayMac = '02:00:00:00:00:fe';
    for (const { namespace, far, ip: own } of hosts) {
      const gateway = own.replace(/\d+$/, '1');
      ip('-n', namespace, 'route', 'add', 'default', 'via', gateway);
      ip('-n', namespace, 'neigh', 'add', gateway, 'lladdr', gatewayMac, 'dev', far);
    }
    const { grpcPort } = await start([...FABRIC, ...ports()]);
    const factory = new EntityFactory(readFabricProgram().index);
    const entities = hosts.flatMap((host, i) => [
      portRole(factory, i + 1, 'host'),
      egressRole(factory, i + 1, 'host', 1 << (i + 1)),
      route(factory, {
        prefix: { ip: host.ip, length: 32 },
        nextHops: [{ port: i + 1, sourceMac: gatewayMac, destinationMac: host.mac }],
      }),
    ]);
    const connection = new SwitchConnection({
      name: 'switch',
      address: `127.0.0.1:${grpcPort}`,
      deviceId: 1,
      electionId: electionIdAt(1, 1n),
    });
    connection.start();
    try {
      await connection.whenPrimary(20_000);
      const outcome = await connection.write(entities.map((entity) => ({ type: UpdateType.INSERT, entity })));
      expect(outcome).toEqual({ kind: 'applied' });
    } finally {
      connection.close();
    }
    expect(inside(one, 'ping', '-c', '1', '-W', '5', two.ip)).toContain('ttl=63');
    ping(one, two, '-c', '2', '-i', '0.01', '-s', String(HOST_MTU - 28), '-M', 'do');
    await transfer(one, two);
    const report = await running!.end('SIGINT');
    expect(report.ports[0]!.segmented).toBeGreaterThan(0);
    expect(report.device.errors).toBe(0);
  });

  it('loses what it is told to lose, and captures what goes through', async () => {
    hosts = [makeHost(1, '10.77.0.1/24'), makeHost(2, '10.77.0.2/24')];
    const [one, two] = hosts as [Host, Host];
    const directory = mkdtempSync(join(tmpdir(), 'ddf-switch-'));
    try {
      await start([...PATCH, ...ports(), '--loss', '2=30', '--pcap', directory]);
      for (const [from, to] of [
        [one, two],
        [two, one],
      ] as const)
        ip('-n', from.namespace, 'neigh', 'add', to.ip, 'lladdr', to.mac, 'dev', from.far);
      const { length } = inside(one, 'ping', '-c', '200', '-i', '0.002', '-W', '1', two.ip).match(/bytes from/g) ?? [];
      // Both directions of port 2 lose: 0.7 squared, of 200, give or take five standard deviations.
      expect(Math.abs(length - 98)).toBeLessThan(36);
      const report = await running!.end('SIGTERM');
      const [first, second] = report.ports as [(typeof report.ports)[0], (typeof report.ports)[0]];
      expect(first.impairedIn).toBeUndefined();
      expect(second.impairedOut!.lost + second.impairedIn!.lost).toBeGreaterThan(50);
      const frames = (name: string): number => {
        const bytes = readFileSync(join(directory, name));
        let count = 0;
        for (let at = 24; at < bytes.length; at += 16 + bytes.readUInt32BE(at + 8)) count++;
        return count;
      };
      expect(frames(`${one.near}_in.pcap`)).toBe(first.framesReceived);
      expect(frames(`${two.near}_out.pcap`)).toBe(second.framesSent + second.impairedOut!.lost);
    } finally {
      rmSync(directory, { recursive: true });
    }
  });

  it('goes on when an interface vanishes', async () => {
    hosts = [makeHost(1, '10.77.0.1/24'), makeHost(2, '10.77.0.2/24'), makeHost(3, '10.77.0.3/24')];
    const [one, two, three] = hosts as [Host, Host, Host];
    await start([...PATCH, ...ports()]);
    ip('link', 'delete', three.near);
    ping(one, two, '-c', '3', '-i', '0.01');
    const report = await running!.end('SIGTERM');
    expect(report.ports.map(({ state }) => state)).toEqual(['up', 'up', 'gone']);
    expect(running!.errors).toMatch(/the interface is gone/);
  });

  it('takes an interface again that was deleted and made anew, and goes on counting', async () => {
    hosts = [makeHost(1, '10.77.0.1/24'), makeHost(2, '10.77.0.2/24')];
    const [one, two] = hosts as [Host, Host];
    await start([...PATCH, ...ports()]);
    ping(one, two, '-c', '3', '-i', '0.01');
    removeHost(two);
    hosts[1] = makeHost(2, '10.77.0.2/24');
    // ARP is asked again until the switch has taken the interface.
    ping(one, hosts[1]!, '-c', '5', '-i', '0.2');
    const report = await running!.end('SIGTERM');
    expect(report.ports.map(({ state }) => state)).toEqual(['up', 'up']);
    expect(report.ports[1]!.framesReceived).toBeGreaterThanOrEqual(3 + 1);
    expect(running!.errors).toMatch(/the interface is gone.*the interface is there again/s);
  });

  it('says what is wrong before it starts, and exits with 2', async () => {
    hosts = [makeHost(1, '10.77.0.1/24')];
    const refused = async (options: readonly string[]): Promise<string> => {
      running = new SwitchProcess(options);
      expect(await running.exitCode()).toBe(2);
      return running.errors;
    };
    expect(await refused([...PATCH, '--grpc', '127.0.0.1:0', '-i', '1@nosuch'])).toMatch(
      /PORT_UNAVAILABLE: There is no network interface nosuch/,
    );
    expect(await refused(['--program', '/no/such.json'])).toMatch(
      /INVALID_FILE: --program \/no\/such.json cannot be read/,
    );
    const directory = mkdtempSync(join(tmpdir(), 'ddf-switch-'));
    try {
      const broken = join(directory, 'broken.json');
      writeFileSync(broken, '{');
      expect(await refused(['--grpc', '127.0.0.1:0', '--program', broken])).toMatch(
        /INVALID_PROGRAM: .*broken\.json: \$/,
      );
    } finally {
      rmSync(directory, { recursive: true });
    }
  });

  it.skipIf(!canReadThis(NOBODY))('says that it lacks permission, and for what', async () => {
    hosts = [makeHost(1, '10.77.0.1/24')];
    running = new SwitchProcess(['--no-p4', '--grpc', '127.0.0.1:0', ...ports()], NOBODY);
    expect(await running.exitCode()).toBe(2);
    expect(running.errors).toMatch(/PORT_UNAVAILABLE: No permission to .*CAP_NET_RAW/s);
  });

  it('says that its address is in use', async () => {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as { port: number };
    running = new SwitchProcess(['--no-p4', '--grpc', `127.0.0.1:${port}`]);
    expect(await running.exitCode()).toBe(1);
    expect(running.errors).toMatch(/ADDRESS_IN_USE/);
    server.close();
  });
});
