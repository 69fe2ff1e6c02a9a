import { createRandom } from '../../base/random.ts';
import { readFabricProgram } from '../../lab/p4-program.ts';
import { insertEntities } from '../../lab/programming.ts';
import { PORT_CPU } from '../../p4/build/constants.ts';
import { Device } from '../../switch/index.ts';
import { FrameMemory, reuseFrames } from '../../switch/runtime/frames.ts';
import { arrivals, averageGrowth, DOWNSTREAM, entitiesOf, type Place, TURN, UPSTREAM } from './traffic.ts';

export const RUNS = 9;
/** A whole number of turns. */
export const PACKETS_PER_RUN = 200_000;
/** As many frames as the emulated receive ring holds. */
const RING_FRAMES = 512;
/** What a receive ring leaves free in front of a frame (switch/ports/linux/receive-ring.ts). */
const HEADROOM_BYTES = 20;
/** What a switch may change of a frame: its headers stand in so many bytes. */
const HEADER_BYTES = 128;
const US_PER_PACKET = 2;
/** As many as a port hands in before everything is sent. */
const TURN_FRAMES = 64;

export interface Run {
  readonly perSecond: number;
  /** By the processor time of this process: what a run would be on a machine that does nothing else. */
  readonly perCpuSecond: number;
}

/**
 * Packets per second through a Device on this core. Every frame has to come out once, on the port where it belongs, or this throws. Frames come from
 * a ring, as a NIC fills one without the processor: payloads stay in it, and the headers, which the switch changes in place, are written anew
 * each time; that is part of the time.
 */
export function measureInProcess(place: Place, frameBytes: number): Run[] {
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
  device.onTransmitAt = (port, _memory, start, end) => {
    if (port === DOWNSTREAM) down++;
    else if (port === UPSTREAM) up++;
    bytes += end - start;
  };
  const { bmv2Json, index } = readFabricProgram();
  insertEntities(device.load(device.compile(bmv2Json)), index, entitiesOf(place));
  const schedule = arrivals(place, frameBytes);
  const distinct = new Map(
    schedule.map(({ memory, start }) => [start, memory.frame(start, start + HEADER_BYTES).slice()]),
  );
  const starts = [...distinct.keys()];
  const headers = [...distinct.values()];
  const ports = Uint16Array.from(schedule, ({ port }) => port);
  const kinds = Uint16Array.from(schedule, ({ start }) => starts.indexOf(start));
  const slotBytes = Math.ceil((HEADROOM_BYTES + frameBytes) / 16) * 16;
  const ring = new FrameMemory(new Uint8Array(RING_FRAMES * slotBytes), HEADROOM_BYTES);
  const { memory, start, end } = schedule[0]!;
  for (let slot = 1; slot <= RING_FRAMES; slot++)
    ring.bytes.set(memory.frame(start, end), slot * slotBytes - frameBytes);

  const runs: Run[] = [];
  let sent = 0;
  let droppedInWarmUp = 0;
  for (let run = -1; run < RUNS; run++) {
    up = 0;
    down = 0;
    bytes = 0;
    const startedCpu = process.cpuUsage();
    const started = performance.now();
    for (let i = 0; i < PACKETS_PER_RUN; i++) {
      const arrival = sent % schedule.length;
      const frameEnd = ((i % RING_FRAMES) + 1) * slotBytes;
      ring.bytes.set(headers[kinds[arrival]!]!, frameEnd - frameBytes);
      nowUs += US_PER_PACKET;
      device.receiveAt(ports[arrival]!, ring, frameEnd - frameBytes, frameEnd);
      sent++;
      // As ports do when they have sent what a turn has brought: what came out has been counted.
      if (sent % TURN_FRAMES === 0) reuseFrames();
    }
    const seconds = (performance.now() - started) / 1000;
    const cpu = process.cpuUsage(startedCpu);
    if (run < 0) {
      droppedInWarmUp = device.statistics.dropped;
      continue;
    }
    const nacks = PACKETS_PER_RUN / TURN;
    const expectedBytes = PACKETS_PER_RUN * (frameBytes + averageGrowth(place));
    if (up !== nacks || down !== PACKETS_PER_RUN - nacks || Math.abs(bytes - expectedBytes) > 0.5)
      throw new Error(
        `${place.name}: ${down} frames down, ${up} up and ${bytes} bytes came out; expected ${PACKETS_PER_RUN - nacks}, ${nacks} and ${expectedBytes}`,
      );
    runs.push({
      perSecond: PACKETS_PER_RUN / seconds,
      perCpuSecond: (PACKETS_PER_RUN / (cpu.user + cpu.system)) * 1e6,
    });
  }
  const { dropped, errors, outOfRange } = device.statistics;
  if (dropped - droppedInWarmUp + errors + outOfRange > 0)
    throw new Error(`${place.name}: ${dropped} packets dropped, ${errors} failed, ${outOfRange} accesses out of range`);
  return runs;
}
