import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { VirtualScheduler } from '../../base/clock.ts';
import { createRandom } from '../../base/random.ts';
import { PORT_CPU } from '../../p4/build/constants.ts';
import { BUILD_DIRECTORY } from '../../scripts/p4-build.ts';
import { Device } from '../../switch/index.ts';
import { P4InfoIndex } from '../../wire/p4runtime/p4info-index.ts';
import { parseP4InfoText } from '../../wire/p4runtime/p4info-text.ts';
import type { PacketSwitch } from './run.ts';

/** The embedded switch with p4/build/fabric.json, in virtual time that begins at 0. */
export function embeddedSwitch(): PacketSwitch {
  const scheduler = new VirtualScheduler();
  const queued = new Map<number, number>();
  const device = new Device({
    deviceId: 1n,
    cpuPort: PORT_CPU,
    clock: scheduler,
    random: createRandom('packet'),
    queueDepth: (port) => queued.get(port) ?? 0,
  });
  const program = device.load(device.compile(readFileSync(join(BUILD_DIRECTORY, 'fabric.json'))));
  let sent: { port: number; frame: Uint8Array }[] = [];
  device.onTransmit = (port, frame) => sent.push({ port, frame });
  device.onCpuFrame = (frame) => sent.push({ port: PORT_CPU, frame });
  return {
    p4Info: new P4InfoIndex(parseP4InfoText(readFileSync(join(BUILD_DIRECTORY, 'fabric.p4info.txtpb'), 'utf8'))),
    program,
    inject: (port, frame) => {
      device.receive(port, frame);
      if (device.statistics.errors > 0) throw new Error('The switch failed to process the packet');
      if (device.statistics.outOfRange > 0) throw new Error('The program reached beyond a counter, meter or register');
    },
    takeSent: () => {
      const taken = sent;
      sent = [];
      return taken;
    },
    setQueueDepth: (port, frames) => queued.set(port, frames),
    advance: (us) => scheduler.runUntil(scheduler.nowUs() + us),
  };
}
