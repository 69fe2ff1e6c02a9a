/**
 * How many packets per second the embedded switch handles in-process on one core: `npm run bench:switch [-- --json]`.
 *
 * The packets are the fabric's own: 90 % DATA, 5 % NACK and 5 % REPAIR, replicated to one port by p4/build/fabric.json with the entries of
 * a real transfer. Every frame has to come out once, on the port where it belongs, or the run fails. Each is copied from a template
 * first, as a NIC would write it into a buffer; that is part of the time.
 */
import { readFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { createRandom } from '../base/random.ts';
import {
  FABRIC_TYPE_DATA,
  FABRIC_TYPE_NACK,
  FABRIC_TYPE_REPAIR,
  FABRIC_UDP_PORT,
  PORT_CPU,
  RECEIVER_UDP_PORT_FIRST,
} from '../p4/build/constants.ts';
import type { MatchValue, ProgramControl } from '../switch/control.ts';
import { Device } from '../switch/index.ts';
import { encodeFabric, FABRIC_HEADER_BYTES } from '../wire/fabric/header.ts';
import { splitObjectId } from '../wire/fabric/object-id.ts';
import { buildUdpFrame, UDP_FRAME_OVERHEAD_BYTES } from '../wire/packet/udp.ts';

const FRAME_BYTES = 1400;
const TAG_BYTES = 18;
const RUNS = 9;
const PACKETS_PER_RUN = 200_000;
/** As many frames as the emulated receive ring holds. */
const RING_FRAMES = 512;
/** NACK, REPAIR and 18 DATA make a turn; every turn asks for another block. */
const TURN = 20;
const BLOCKS = 256;

const UPSTREAM = 1;
const DOWNSTREAM = 2;
const TENANT = 7;
const OBJECT_ID = (BigInt(TENANT) << 48n) | 1234n;
const LABEL = 0x2a01;
const GROUP = 1;

/** Where in the tree the switch stands: what is on the ports decides whether tags are pushed, popped or kept. */
interface Place {
  readonly name: string;
  readonly upstreamIsHost: boolean;
  readonly downstreamIsHost: boolean;
}

const PLACES: readonly Place[] = [
  { name: 'first switch (pushes the tag)', upstreamIsHost: true, downstreamIsHost: false },
  { name: 'middle switch (keeps the tag)', upstreamIsHost: false, downstreamIsHost: false },
  { name: 'last switch (pops the tag, rewrites)', upstreamIsHost: false, downstreamIsHost: true },
];

interface Arrival {
  readonly port: number;
  readonly frame: Uint8Array;
}

function install(program: ProgramControl, place: Place): void {
  const exact = (value: number): MatchValue => ({ kind: 'exact', value: BigInt(value) });
  const insert = (table: string, keys: readonly number[], action: string, params: readonly bigint[]): void => {
    const control = program.tables.get(table);
    if (control === undefined) throw new Error(`fabric.json has no table ${table}`);
    const scope = table.slice(0, table.lastIndexOf('.') + 1);
    control.insert(keys.map(exact), 0, { action: scope + action, params });
  };
  const ports = [
    { port: UPSTREAM, host: place.upstreamIsHost },
    { port: DOWNSTREAM, host: place.downstreamIsHost },
  ];
  for (const { port, host } of ports) {
    const bit = 1n << BigInt(port);
    insert('FabricIngress.admission.port_role', [port], host ? 'host_port' : 'fabric_port', []);
    insert('FabricIngress.transfers.port_bit', [port], 'set_bit', [bit]);
    insert('FabricEgress.replicas.egress_role', [port], host ? 'to_host' : 'to_fabric', [bit]);
    if (!host) continue;
    for (const type of [FABRIC_TYPE_DATA, FABRIC_TYPE_NACK, FABRIC_TYPE_REPAIR])
      insert('FabricIngress.admission.admission', [port, TENANT, type], 'permit', []);
    for (const instance of [0, 1]) {
      const udpPort = instance === 0 ? FABRIC_UDP_PORT : RECEIVER_UDP_PORT_FIRST;
      const params = [0x0200_0000_0100n + BigInt(port), 0x0a00_0100n + BigInt(port), BigInt(udpPort)];
      insert('FabricEgress.replicas.replica_rewrite', [port, instance], 'rewrite', params);
    }
  }
  const treeMask = 1n << BigInt(DOWNSTREAM);
  insert('FabricIngress.transfers.transfer', [LABEL], 'follow_tree', [
    BigInt(TENANT),
    BigInt(GROUP),
    BigInt(UPSTREAM),
    treeMask,
    1n,
  ]);
  // A table as full as in use: the label is found among others.
  for (let other = 1; other <= 1000; other++)
    insert('FabricIngress.transfers.transfer', [LABEL + other], 'follow_tree', [1n, 1n, 1n, treeMask, 2n]);
  program.setMulticastGroup(GROUP, [{ port: DOWNSTREAM, instance: 1 }]);
}

function fabricFrame(type: number, block: number, symbol: number, tagged: boolean): Uint8Array {
  const payloadBytes = FRAME_BYTES - UDP_FRAME_OVERHEAD_BYTES - FABRIC_HEADER_BYTES - (tagged ? TAG_BYTES : 0);
  const datagram = encodeFabric(
    new Uint8Array(FABRIC_HEADER_BYTES + payloadBytes),
    {
      type,
      flags: 0,
      label: LABEL,
      ...splitObjectId(OBJECT_ID),
      objectVersion: 22,
      baseVersion: 0,
      block,
      symbol,
      sourceSymbols: 64,
      need: type === FABRIC_TYPE_NACK ? 1 : 0,
      epoch: 0,
    },
    new Uint8Array(payloadBytes).fill(symbol),
  );
  const frame = buildUdpFrame(
    {
      sourceMac: 0x0200_0000_0001,
      destinationMac: 0x0200_0000_0002,
      sourceIp: 0x0a00_0001,
      destinationIp: 0x0a00_0002,
      sourcePort: FABRIC_UDP_PORT,
      destinationPort: FABRIC_UDP_PORT,
    },
    datagram,
  );
  return tagged ? withTag(frame) : frame;
}

function withTag(frame: Uint8Array): Uint8Array {
  const tagged = new Uint8Array(frame.length + TAG_BYTES);
  tagged.set(frame.subarray(0, 12));
  const view = new DataView(tagged.buffer);
  view.setUint16(12, 0x88b5);
  view.setUint16(14, 0x0800);
  view.setBigUint64(16, OBJECT_ID);
  view.setUint32(24, 22);
  view.setUint8(31, 1);
  tagged.set(frame.subarray(14), 14 + TAG_BYTES);
  return tagged;
}

/** One turn per block: a receiver asks, the sender answers, then new data. */
function arrivals(place: Place): Arrival[] {
  const fromUpstream = (type: number, block: number, symbol: number): Arrival => ({
    port: UPSTREAM,
    frame: fabricFrame(type, block, symbol, !place.upstreamIsHost),
  });
  return Array.from({ length: BLOCKS }, (_, block) => [
    { port: DOWNSTREAM, frame: fabricFrame(FABRIC_TYPE_NACK, block, 0, !place.downstreamIsHost) },
    fromUpstream(FABRIC_TYPE_REPAIR, block, 64),
    ...Array.from({ length: TURN - 2 }, (_, i) => fromUpstream(FABRIC_TYPE_DATA, block + 1, i)),
  ]).flat();
}

interface Run {
  readonly perSecond: number;
  /** By the processor time of this process: what a run would be on a machine that does nothing else. */
  readonly perCpuSecond: number;
}

function measure(place: Place, program: Uint8Array): Run[] {
  let nowUs = 0;
  let up = 0;
  let down = 0;
  let bytes = 0;
  const device = new Device({
    deviceId: 1n,
    cpuPort: PORT_CPU,
    clock: { nowUs: () => nowUs },
    random: createRandom('bench'),
  });
  device.onTransmit = (port, frame) => {
    if (port === DOWNSTREAM) down++;
    else if (port === UPSTREAM) up++;
    bytes += frame.length;
  };
  install(device.load(device.compile(program)), place);
  const schedule = arrivals(place);
  const ring = Array.from({ length: RING_FRAMES }, () => new Uint8Array(FRAME_BYTES));
  const change = (TAG_BYTES * (Number(place.upstreamIsHost) - Number(place.downstreamIsHost)) * (TURN - 2)) / TURN;

  const runs: Run[] = [];
  for (let run = -1; run < RUNS; run++) {
    up = 0;
    down = 0;
    bytes = 0;
    const startedCpu = process.cpuUsage();
    const started = performance.now();
    for (let i = 0; i < PACKETS_PER_RUN; i++) {
      const { port, frame: template } = schedule[i % schedule.length]!;
      const frame = ring[i % RING_FRAMES]!;
      frame.set(template);
      nowUs += 2;
      device.receive(port, frame);
    }
    const seconds = (performance.now() - started) / 1000;
    const cpu = process.cpuUsage(startedCpu);
    const nacks = PACKETS_PER_RUN / TURN;
    // NACKs go the other way: what tags add to the rest they take from them.
    const expectedBytes = PACKETS_PER_RUN * (FRAME_BYTES + change);
    if (up !== nacks || down !== PACKETS_PER_RUN - nacks || bytes !== expectedBytes)
      throw new Error(
        `${place.name}: ${down} frames down, ${up} up and ${bytes} bytes came out; expected ${PACKETS_PER_RUN - nacks}, ${nacks} and ${expectedBytes}`,
      );
    // The first run warms up.
    if (run >= 0)
      runs.push({
        perSecond: PACKETS_PER_RUN / seconds,
        perCpuSecond: (PACKETS_PER_RUN / (cpu.user + cpu.system)) * 1e6,
      });
  }
  const { dropped, errors, outOfRange } = device.statistics;
  if (dropped + errors + outOfRange > 0)
    throw new Error(`${place.name}: ${dropped} packets dropped, ${errors} failed, ${outOfRange} accesses out of range`);
  return runs;
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[sorted.length >> 1]!;
}

function main(): void {
  const json = process.argv.slice(2).includes('--json');
  const program = readFileSync(new URL('../p4/build/fabric.json', import.meta.url));
  console.log(
    `Embedded switch, in-process, one core: fabric.json, ${FRAME_BYTES} B frames, 90 % DATA, 5 % NACK, 5 % REPAIR, one copy each.`,
  );
  console.log(
    `${RUNS} runs of ${PACKETS_PER_RUN} packets after one to warm up; Node.js ${process.version}, ${cpus()[0]?.model ?? 'unknown processor'}.`,
  );
  const medians = PLACES.map((place) => {
    const runs = measure(place, program);
    const rates = runs.map((run) => run.perSecond);
    const middle = median(rates);
    const range = `${format(Math.min(...rates))}..${format(Math.max(...rates))}`;
    const perCpu = format(median(runs.map((run) => run.perCpuSecond)));
    console.log(
      `  ${place.name.padEnd(38)} ${format(middle).padStart(9)} packets/s (median; ${range}; ${perCpu} per second of processor time)`,
    );
    return middle;
  });
  const slowest = Math.floor(Math.min(...medians));
  console.log(`  the slowest of the three               ${format(slowest).padStart(9)} packets/s`);
  if (json) console.log(JSON.stringify({ inProcess: { [FRAME_BYTES]: slowest } }));
}

function format(rate: number): string {
  return Math.round(rate).toLocaleString('en-US');
}

main();
