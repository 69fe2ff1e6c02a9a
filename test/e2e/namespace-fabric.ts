import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { loadTopology } from '../../topologies/load.ts';
import type { HostNode, Topology } from '../../topologies/types.ts';
import { ip, run, tag } from '../switch/ports/veth.ts';

const DDF = fileURLToPath(new URL('../../scripts/ddf.mjs', import.meta.url));
/** Links between switches carry the object tag as well. */
const ROOM_FOR_TAGS = 100;

/** A program whose lines are awaited one by one. */
export class LineProcess {
  readonly child: ChildProcess;
  errors = '';
  private readonly lines: AsyncIterator<string>;

  constructor(command: string, args: readonly string[]) {
    this.child = spawn(command, args, { stdio: ['pipe', 'pipe', 'pipe'] });
    this.child.stderr!.setEncoding('utf8').on('data', (text: string) => {
      this.errors += text;
    });
    this.child.stdin!.on('error', () => {});
    this.lines = createInterface({ input: this.child.stdout! })[Symbol.asyncIterator]();
  }

  /** Throws what the program said when it has ended. */
  async line(): Promise<string> {
    const next = await this.lines.next();
    if (next.done === true) throw new Error(`${this.child.spawnargs.join(' ')}: ${this.errors}`);
    return next.value;
  }

  say(line: string): void {
    this.child.stdin!.write(`${line}\n`);
  }

  async end(): Promise<void> {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return;
    const exited = new Promise((resolve) => this.child.once('close', resolve));
    this.child.kill('SIGTERM');
    const timer = setTimeout(() => this.child.kill('SIGKILL'), 10_000);
    await exited;
    clearTimeout(timer);
  }
}

/**
 * A fabric of programs on veth pairs: `ddf switch` for every switch, `ddf controller`, and a namespace for every host, addressed as the topology says:
 * a /32 with the leaf as its only neighbour. Needs root.
 */
export class NamespaceFabric {
  readonly topology: Topology;
  private readonly directory = mkdtempSync(join(tmpdir(), 'ddf-namespaces-'));
  private readonly programs: LineProcess[] = [];
  private readonly devices: string[] = [];
  private readonly namespaces: string[] = [];

  private constructor(topology: Topology) {
    this.topology = topology;
  }

  /** @param text of a topology file */
  static async start(text: string): Promise<NamespaceFabric> {
    const fabric = new NamespaceFabric(loadTopology(text, 'topology.yaml'));
    try {
      await fabric.build(text);
      return fabric;
    } catch (error) {
      await fabric.stop();
      throw error;
    }
  }

  host(name: string): HostNode {
    return this.topology.hosts.find((host) => host.name === name)!;
  }

  /** The host's interface, within its namespace. */
  deviceOf(name: string): string {
    return `df${tag}h${this.topology.hosts.indexOf(this.host(name))}`;
  }

  /** Runs a program on a host to its end. */
  run(name: string, ...command: readonly string[]): string {
    return run('ip', 'netns', 'exec', this.namespaceOf(name), ...command);
  }

  /** Starts a program on a host; it is ended with the fabric. */
  spawn(name: string, ...command: readonly string[]): LineProcess {
    return this.keep(new LineProcess('ip', ['netns', 'exec', this.namespaceOf(name), ...command]));
  }

  async stop(): Promise<void> {
    await Promise.all(this.programs.map((program) => program.end()));
    for (const device of this.devices) attempt(() => ip('link', 'delete', device));
    for (const namespace of this.namespaces) attempt(() => ip('netns', 'delete', namespace));
    rmSync(this.directory, { recursive: true, force: true });
  }

  private namespaceOf(name: string): string {
    return `df${tag}n${this.topology.hosts.indexOf(this.host(name))}`;
  }

  private keep(program: LineProcess): LineProcess {
    this.programs.push(program);
    return program;
  }

  private async build(text: string): Promise<void> {
    const { topology } = this;
    const mtu = String(topology.mtuBytes + ROOM_FOR_TAGS);
    const interfaces = new Map<string, string[]>(topology.switches.map(({ name }) => [name, []]));
    for (const [i, { a, b }] of topology.links.entries()) {
      const [near, far] = [`df${tag}a${i}`, `df${tag}b${i}`];
      this.devices.push(near);
      ip('link', 'add', near, 'mtu', mtu, 'type', 'veth', 'peer', 'name', far, 'mtu', mtu);
      for (const device of [near, far]) ip('link', 'set', device, 'addrgenmode', 'none', 'up');
      interfaces.get(a.switch)!.push(`${a.port}@${near}`);
      interfaces.get(b.switch)!.push(`${b.port}@${far}`);
    }
    for (const [i, host] of topology.hosts.entries()) {
      const near = `df${tag}s${i}`;
      this.connect(host, near, mtu);
      interfaces.get(host.switch)!.push(`${host.port}@${near}`);
    }
    const addresses = await Promise.all(
      topology.switches.map(async ({ name, deviceId }) => {
        const ports = interfaces.get(name)!.flatMap((port) => ['-i', port]);
        const options = ['--no-p4', '--json', '--device-id', String(deviceId), '--grpc', '127.0.0.1:0', ...ports];
        const program = this.keep(new LineProcess(process.execPath, [DDF, 'switch', ...options]));
        const { grpcPort } = JSON.parse(await program.line()) as { grpcPort: number };
        return `${name}=127.0.0.1:${grpcPort}`;
      }),
    );
    const file = join(this.directory, 'topology.yaml');
    writeFileSync(file, text);
    const options = ['--topology', file, '--switches', addresses.join(), '--db', ':memory:'];
    const free = ['--agents', '127.0.0.1:0', '--api', '127.0.0.1:0'];
    const controller = this.keep(new LineProcess(process.execPath, [DDF, 'controller', ...options, ...free]));
    while ((await controller.line()) !== 'All switches run the program.');
  }

  private connect(host: HostNode, near: string, mtu: string): void {
    const { topology } = this;
    const [namespace, far] = [this.namespaceOf(host.name), this.deviceOf(host.name)];
    const gateway = topology.switches.find(({ name }) => name === host.switch)!;
    ip('netns', 'add', namespace);
    this.namespaces.push(namespace);
    ip('link', 'add', near, 'mtu', mtu, 'type', 'veth', 'peer', 'name', far, 'netns', namespace);
    this.devices.push(near);
    ip('link', 'set', near, 'addrgenmode', 'none', 'up');
    const inside = (...args: readonly string[]): string => ip('-n', namespace, ...args);
    inside('link', 'set', 'lo', 'up');
    inside('link', 'set', far, 'addrgenmode', 'none', 'mtu', String(topology.mtuBytes), 'address', host.mac, 'up');
    inside('address', 'add', `${host.ip}/32`, 'dev', far);
    inside('route', 'add', gateway.ip, 'dev', far, 'scope', 'link');
    inside('neigh', 'add', gateway.ip, 'lladdr', gateway.mac, 'dev', far, 'nud', 'permanent');
    inside('route', 'add', 'default', 'via', gateway.ip, 'dev', far, 'onlink');
  }
}

function attempt(action: () => unknown): void {
  try {
    action();
  } catch {
    // It has gone with something else.
  }
}
