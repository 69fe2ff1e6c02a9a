import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createRandom, type Random } from '../../base/random.ts';
import { ETHERTYPE_IPV4, ETHERTYPE_OBJECT_TAG } from '../../p4/build/constants.ts';
import { BUILD_DIRECTORY } from '../../scripts/p4-build.ts';
import type { ProgramControl } from '../../switch/control.ts';
import { internetChecksum } from '../../wire/packet/checksum.ts';
import { readUint16, writeUint16 } from '../../wire/packet/integers.ts';
import { IPV4_HEADER_BYTES } from '../../wire/packet/ipv4.ts';
import { embeddedSwitch, scriptedSwitch } from '../packet/embedded.ts';
import { runScript } from '../packet/run.ts';
import { WatchedDevice } from './device.ts';
import { fillTables } from './entries.ts';
import { mutateBytes, randomBytes } from './mutate.ts';
import { ensure, type FuzzTarget, pick, Tally } from './target.ts';

const SCENARIOS = fileURLToPath(new URL('../packet/scenarios/', import.meta.url));
const STAGE = 'leaf.stf';
const LONGEST_FRAME = 9500;

interface Arrival {
  readonly port: number;
  readonly frame: Uint8Array;
}

/** Frames of any kind into the switch that runs fabric.json, with the entries of the packet scenarios and their packets as seeds. */
export async function fabricPackets(): Promise<FuzzTarget> {
  const scripts = readdirSync(SCENARIOS).filter((name) => name.endsWith('.stf') && name !== STAGE);
  const json = readFileSync(join(BUILD_DIRECTORY, 'fabric.json'));
  const watched = new WatchedDevice(createRandom('device'));
  const loadable = watched.device.compile(json);
  const seeds = (await Promise.all(scripts.map(packetsOf))).flat();
  const tally = new Tally();
  return {
    tally,
    casesPerRound: 5000,
    round: async (random, cases, step) => {
      watched.restart(random.fork('device'));
      const program = watched.device.load(loadable);
      const copies = new Set([1]);
      const setGroup = program.setMulticastGroup.bind(program);
      program.setMulticastGroup = (id, replicas) => {
        copies.add(Math.max(1, replicas.length));
        setGroup(id, replicas);
      };
      await stage(watched, pick(random, scripts));
      const { statistics } = watched.device;
      const outOfRangeBefore = statistics.outOfRange;
      const countedBefore = counted(program);
      const droppedBefore = statistics.dropped;
      for (let i = 0; i < cases; i++) {
        const { port, frame } = arrival(random, seeds);
        step(() => `port ${port}, frame ${Buffer.from(frame).toString('hex')}`);
        const copy = frame.slice();
        const { transmitted, dropped, errors } = watched.receive(port, copy);
        tally.add('sent', transmitted);
        tally.add('dropped', dropped);
        ensure(errors === 0, () => 'the program failed');
        ensure(copies.has(transmitted + dropped), () => `one packet became ${transmitted} frames and ${dropped} drops`);
      }
      ensure(statistics.outOfRange === outOfRangeBefore, () => 'the program reached beyond an array');
      // The program counts what it drops; what goes to a multicast group without members only the switch does.
      const byProgram = Number(counted(program) - countedBefore);
      ensure(byProgram <= statistics.dropped - droppedBefore, () => 'the program counted drops that were none');
      tally.add('counted drops', byProgram);
    },
  };
}

/** Everything that a scenario installs, after its own packets have passed. */
async function stage(watched: WatchedDevice, script: string): Promise<void> {
  const { device, scheduler, queued } = watched;
  const setQueueDepth = (port: number, frames: number) => queued.set(port, frames);
  await runScript(scriptedSwitch(device, scheduler, setQueueDepth), join(SCENARIOS, script));
  watched.countFrames();
}

async function packetsOf(script: string): Promise<Arrival[]> {
  const packets: Arrival[] = [];
  const inner = embeddedSwitch();
  const inject = (port: number, frame: Uint8Array): void => {
    packets.push({ port, frame: frame.slice() });
    inner.inject(port, frame);
  };
  await runScript({ ...inner, inject }, join(SCENARIOS, script));
  return packets;
}

function counted(program: ProgramControl): bigint {
  const counter = [...program.counters.values()].find(({ name }) => name.endsWith('drop_counter'))!;
  let sum = 0n;
  for (let reason = 0; reason < counter.size; reason++) sum += counter.read(reason).packets;
  return sum;
}

function arrival(random: Random, seeds: readonly Arrival[]): Arrival {
  const seed = pick(random, seeds);
  const port = random.chance(0.8) ? seed.port : random.chance(0.5) ? random.below(8) : random.below(512);
  if (random.chance(0.05)) return { port, frame: randomBytes(random, random.below(80)) };
  if (random.chance(0.01)) return { port, frame: randomBytes(random, random.below(LONGEST_FRAME + 1)) };
  let { frame } = seed;
  if (random.chance(0.9)) {
    // Most of the bytes that mean something are in front.
    const head = random.chance(0.9) ? Math.min(frame.length, 110) : frame.length;
    const front = mutateBytes(random, frame.subarray(0, head), 1 + random.below(3));
    frame = Buffer.concat([front, frame.subarray(head)]);
  }
  if (random.chance(0.02)) frame = Buffer.concat([frame, new Uint8Array(random.below(LONGEST_FRAME))]);
  frame = Uint8Array.from(frame);
  if (random.chance(0.7)) repairChecksum(frame);
  return { port, frame };
}

/** Otherwise nearly all mutations would end at the IPv4 checksum. */
function repairChecksum(frame: Uint8Array): void {
  if (frame.length < 14) return;
  let at = 14;
  let type = readUint16(frame, 12);
  if (type === ETHERTYPE_OBJECT_TAG && frame.length >= 32) {
    type = readUint16(frame, 14);
    at = 32;
  }
  if (type !== ETHERTYPE_IPV4 || frame.length < at + IPV4_HEADER_BYTES) return;
  writeUint16(frame, at + 10, 0);
  writeUint16(frame, at + 10, internetChecksum(frame, at, IPV4_HEADER_BYTES));
}

const GROUP_SIZES = [0, 1, 2, 5];

/** Frames of any kind into a program that uses all that a parser can, goes round again, clones and digests; entries at random. */
export function parserPackets(): FuzzTarget {
  const json = readFileSync(new URL('program/parsers.json', import.meta.url));
  const watched = new WatchedDevice(createRandom('device'));
  const loadable = watched.device.compile(json);
  const tally = new Tally();
  return {
    tally,
    casesPerRound: 2000,
    round: (random, cases, step) => {
      watched.restart(random.fork('device'));
      const program = watched.device.load(loadable);
      fillTables(random, program, 24);
      GROUP_SIZES.forEach((size, id) => {
        const replicas = Array.from({ length: size }, (_, i) => ({ port: random.below(512), instance: i }));
        program.setMulticastGroup(id + 1, replicas);
        program.setCloneSession(id + 1, replicas, random.below(200));
      });
      program.onDigest = () => undefined;
      for (let i = 0; i < cases; i++) {
        const frame = layered(random);
        const port = random.below(512);
        step(() => `port ${port}, frame ${Buffer.from(frame).toString('hex')}`);
        const { transmitted, dropped, errors } = watched.receive(port, frame.slice());
        tally.add('sent', transmitted);
        tally.add('dropped', dropped);
        tally.add('failed', errors);
      }
    },
  };
}

const ETHER_TYPES = [0x8847, 0x8847, 0x0800, 0x0900, 0x86dd, 0x86df, 0x9000, 0x1234];

/** Layers as the parser of program/parsers.p4 expects them, more or less. */
function layered(random: Random): Uint8Array {
  if (random.chance(0.05)) return randomBytes(random, random.below(LONGEST_FRAME));
  const parts: Uint8Array[] = [randomBytes(random, 12)];
  const put = (...bytes: number[]): void => {
    parts.push(Uint8Array.from(bytes));
  };
  const type = pick(random, ETHER_TYPES);
  put(type >> 8, type & 0xff);
  if (type === 0x8847) {
    for (let i = random.below(6); i > 0; i--) put(random.below(2), random.below(256), random.below(256) & 0xfe, 64);
    put(0, random.below(256), 1, 64);
  }
  if (type === 0x0800 || random.chance(0.3)) {
    const ihl = random.chance(0.5) ? 5 : random.below(16);
    const header = randomBytes(random, 20);
    header[0] = 0x40 | ihl;
    header[9] = pick(random, [4, 253, 17]);
    parts.push(header, randomBytes(random, Math.max(0, ihl - 5) * 4));
  }
  if (type >= 0x86dd || random.chance(0.3)) parts.push(randomBytes(random, 56));
  if (type === 0x9000) put(random.below(4));
  for (let i = random.below(8); i > 0; i--) {
    const kind = 1 + random.below(4);
    if (kind === 1) put(1, random.below(256));
    else if (kind === 2) parts.push(Uint8Array.from([2]), randomBytes(random, 7));
    else if (kind === 3) {
      const length = random.below(random.chance(0.9) ? 20 : 256);
      put(3, length);
      parts.push(randomBytes(random, length));
    } else put(4, random.below(3));
  }
  parts.push(randomBytes(random, random.below(60)));
  const frame = Uint8Array.from(Buffer.concat(parts));
  return random.chance(0.5) ? mutateBytes(random, frame) : frame;
}
