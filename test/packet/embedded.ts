import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { VirtualScheduler } from '../../base/clock.ts';
import { createRandom } from '../../base/random.ts';
import { PORT_CPU } from '../../p4/build/constants.ts';
import { BUILD_DIRECTORY } from '../../scripts/p4-build.ts';
import type { EntryHandle, ProgramControl } from '../../switch/control.ts';
import { Device } from '../../switch/index.ts';
import { P4InfoIndex } from '../../wire/p4runtime/p4info-index.ts';
import type { NamedObject } from '../../wire/p4runtime/p4info-objects.ts';
import { parseP4InfoText } from '../../wire/p4runtime/p4info-text.ts';
import type { PacketSwitch, SentFrame, TestEntry } from './run.ts';

/** Nothing has to be waited for. */
export interface EmbeddedSwitch extends PacketSwitch {
  readonly program: ProgramControl;
  inject(port: number, frame: Uint8Array): void;
  advance(us: number): void;
}

/** What p4c makes of a program. */
export interface CompiledProgram {
  readonly bmv2Json: Uint8Array;
  /** Text form. */
  readonly p4Info: string;
}

/** p4/build. */
export function fabricProgram(): CompiledProgram {
  const read = (name: string): Buffer => readFileSync(join(BUILD_DIRECTORY, name));
  return { bmv2Json: read('fabric.json'), p4Info: read('fabric.p4info.txtpb').toString('utf8') };
}

/** The embedded switch in virtual time that begins at 0. */
export function embeddedSwitch({ bmv2Json, p4Info } = fabricProgram()): EmbeddedSwitch {
  const scheduler = new VirtualScheduler();
  const queued = new Map<number, number>();
  const device = new Device({
    deviceId: 1n,
    cpuPort: PORT_CPU,
    clock: scheduler,
    random: createRandom('packet'),
    queueDepth: (port) => queued.get(port) ?? 0,
  });
  device.load(device.compile(bmv2Json));
  const setQueueDepth = (port: number, frames: number) => queued.set(port, frames);
  return scriptedSwitch(device, scheduler, setQueueDepth, p4Info);
}

/** A device with a program, as scripts see it. */
export function scriptedSwitch(
  device: Device,
  scheduler: VirtualScheduler,
  setQueueDepth: (port: number, frames: number) => void,
  p4Info = fabricProgram().p4Info,
): EmbeddedSwitch {
  const program = device.program!;
  const handles = new Map<TestEntry, EntryHandle>();
  let sent: SentFrame[] = [];
  device.onTransmit = (port, frame) => sent.push({ port, frame });
  device.onCpuFrame = (frame) => sent.push({ port: PORT_CPU, frame });
  const takeSent = (): SentFrame[] => {
    const taken = sent;
    sent = [];
    return taken;
  };
  return {
    p4Info: new P4InfoIndex(parseP4InfoText(p4Info)),
    inRealTime: false,
    program,
    insert: (entry) => {
      handles.set(entry, named(program.tables, entry.table).insert(entry.match, entry.priority, entry.action));
    },
    remove: (entry) => named(program.tables, entry.table).delete(handles.get(entry)!),
    setDefault: (table, action) => named(program.tables, table).setDefault(action),
    setMulticastGroup: (id, replicas) => program.setMulticastGroup(id, replicas),
    configureMeter: (meter, index, config) => named(program.meters, meter).configure(index, config),
    readCounter: (info) => {
      const counter = named(program.counters, info);
      return Array.from({ length: counter.size }, (_, index) => counter.read(index));
    },
    readCounterCell: (info, index) => named(program.counters, info).read(index),
    readEntryCounter: (entry) => named(program.tables, entry.table).counter(handles.get(entry)!)!,
    inject: (port, frame) => {
      device.receive(port, frame);
      if (device.statistics.errors > 0)
        throw new Error(`The switch failed to process ${Buffer.from(frame).toString('hex')} at port ${port}`);
      if (device.statistics.outOfRange > 0) throw new Error('The program reached beyond a counter, meter or register');
    },
    takeSent,
    takeLate: takeSent,
    setQueueDepth,
    advance: (us) => scheduler.runUntil(scheduler.nowUs() + us),
    loseRegisters: () => {
      for (const register of program.registers.values())
        for (let index = 0; index < register.size; index++) register.write(index, 0n);
    },
  };
}

function named<T>(map: ReadonlyMap<string, T>, { name }: NamedObject): T {
  const object = map.get(name);
  if (object === undefined) throw new Error(`The program has no ${name}`);
  return object;
}
