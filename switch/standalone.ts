import { join } from 'node:path';
import { RealScheduler } from '../base/clock.ts';
import { loadLibc } from '../base/linux/libc.ts';
import type { Logger } from '../base/logger.ts';
import { createRandom, type Random } from '../base/random.ts';
import type { TlsIdentity } from '../base/tls.ts';
import type { ForwardingPipelineConfig } from '../wire/p4runtime/messages.ts';
import { startAdminServer } from './admin/admin-server.ts';
import { Device, type DeviceStatistics } from './device.ts';
import { AfPacketPort, type AfPacketStatistics } from './ports/af-packet.ts';
import { Impairment, type ImpairmentProperties, type ImpairmentStatistics } from './ports/impairments.ts';
import { InterfaceControl } from './ports/linux/interface.ts';
import type { LinkState } from './ports/linux/link-monitor.ts';
import { PcapFile } from './ports/pcap-file.ts';
import { PortLoop } from './ports/port-loop.ts';
import { type FrameSink, handOver } from './runtime/frames.ts';
import { startP4RuntimeServer } from './server/p4runtime-server.ts';

export interface StandalonePort {
  readonly port: number;
  readonly interfaceName: string;
  /** What happens to frames in either direction, independently; default: nothing. */
  readonly impairments?: ImpairmentProperties;
}

export interface StandaloneSwitchOptions {
  readonly deviceId: bigint;
  readonly cpuPort: number;
  /** The port that means drop, and queues per port: as in DeviceOptions. */
  readonly dropPort: number;
  readonly priorityQueues: number;
  readonly ports: readonly StandalonePort[];
  /** Where P4Runtime is served: host:port, port 0 takes a free one. */
  readonly grpcAddress: string;
  /** Default: P4Runtime is served without TLS. */
  readonly tls?: TlsIdentity;
  /** Where the switch can be looked into over HTTP: host:port; default: nowhere. */
  readonly adminAddress?: string;
  /** bmv2 JSON that runs from the start, and what P4Runtime knows it by; without P4Info it forwards but a controller has to set its own pipeline. */
  readonly program: { readonly bmv2Json: Uint8Array; readonly p4info: ForwardingPipelineConfig['p4info'] } | undefined;
  /** Directory for captures, INTERFACE_in.pcap and INTERFACE_out.pcap; frames are captured between the impairments and the program. */
  readonly pcapDirectory: string | undefined;
  /** Reproduces impairments and P4's `random`. */
  readonly seed: number;
  readonly logger: Logger;
}

export interface PortReport extends AfPacketStatistics {
  readonly port: number;
  readonly interface: string;
  readonly state: LinkState;
  readonly impairedIn: ImpairmentStatistics | undefined;
  readonly impairedOut: ImpairmentStatistics | undefined;
  /** Frames that are not in the capture files, because the disk was too slow. */
  readonly captureOmitted: number;
}

export interface StandaloneReport {
  readonly deviceId: string;
  readonly device: DeviceStatistics;
  readonly ports: readonly PortReport[];
  /** Frames that the program sent to ports that there are not. */
  readonly toUnknownPorts: number;
}

export interface StandaloneSwitch {
  /** Of the HTTP server for looking into it, if there is one. */
  readonly adminPort: number | undefined;
  /** Of the P4Runtime server. */
  readonly grpcPort: number;
  report(): StandaloneReport;
  /** Sends what waits, closes everything and returns the last report. */
  stop(): Promise<StandaloneReport>;
}

/** What is known of a port while the switch runs. */
interface Attachment {
  readonly port: number;
  /** Another one when the interface was deleted and made again. */
  end: AfPacketPort;
  /** What was counted on interfaces of this port that are gone. */
  earlier: AfPacketStatistics | undefined;
  readonly inward: Impairment | undefined;
  readonly outward: Impairment | undefined;
  captureIn: PcapFile | undefined;
  captureOut: PcapFile | undefined;
}

const CAPTURE_FLUSH_INTERVAL_MS = 500;

/**
 * A switch of its own on network interfaces, with a P4Runtime server.
 *
 * Throws PORT_UNAVAILABLE, ADDRESS_IN_USE, INVALID_OPTION, or what loading the program throws; nothing is left open then.
 */
export async function startStandaloneSwitch(options: StandaloneSwitchOptions): Promise<StandaloneSwitch> {
  const { logger, deviceId, cpuPort, dropPort, priorityQueues, program } = options;
  const undo: (() => unknown)[] = [];
  const undoAll = async (): Promise<void> => {
    for (let next = undo.pop(); next !== undefined; next = undo.pop()) await next();
  };
  try {
    const libc = await loadLibc();
    const interfaces = new InterfaceControl(libc);
    undo.push(() => interfaces.close());
    const scheduler = new RealScheduler();
    undo.push(() => scheduler.stop());
    const random = createRandom(options.seed);
    const outputs = new Map<number, FrameSink>();
    const attachments: Attachment[] = [];
    const attachmentOf = (end: AfPacketPort): Attachment => attachments.find((each) => each.end === end)!;
    const depths = new Map<number, Attachment>();
    let toUnknownPorts = 0;
    const device = new Device({
      deviceId,
      cpuPort,
      dropPort,
      priorityQueues,
      clock: scheduler,
      random: random.fork('program'),
      queueDepth: (port) => depths.get(port)?.end.queueDepth() ?? 0,
      logger,
    });
    device.onTransmitAt = (port, memory, start, end) => {
      const output = outputs.get(port);
      if (output === undefined) toUnknownPorts++;
      else output(memory, start, end);
    };

    for (const { port, interfaceName, impairments } of options.ports) {
      const attachment: Attachment = {
        port,
        end: new AfPacketPort(libc, interfaces, interfaceName),
        earlier: undefined,
        ...impairmentsOf(scheduler, random.fork(`port/${port}`), impairments),
        captureIn: undefined,
        captureOut: undefined,
      };
      attachments.push(attachment);
      undo.push(() => attachment.end.close());
      const capture = async (direction: string): Promise<PcapFile | undefined> => {
        if (options.pcapDirectory === undefined) return undefined;
        const file = await PcapFile.create(join(options.pcapDirectory, `${interfaceName}_${direction}.pcap`));
        undo.push(() => file.close());
        return file;
      };
      attachment.captureIn = await capture('in');
      attachment.captureOut = await capture('out');
      attach(attachment, device, outputs);
      depths.set(port, attachment);
      const { state } = attachment.end;
      device.setPortUp(port, state === 'up');
      if (state === 'down') logger.warn({ port, interface: interfaceName }, 'the interface is down');
    }

    const server = await startP4RuntimeServer({
      devices: [device],
      address: options.grpcAddress,
      scheduler,
      logger,
      ...(options.tls === undefined ? {} : { tls: options.tls }),
      ...(program?.p4info === undefined
        ? {}
        : { pipelines: new Map([[deviceId, { p4info: program.p4info, p4DeviceConfig: program.bmv2Json }]]) }),
    });
    undo.push(() => server.stop());
    if (program !== undefined && program.p4info === undefined) device.load(device.compile(program.bmv2Json));

    const admin =
      options.adminAddress === undefined
        ? undefined
        : await startAdminServer({ device, address: options.adminAddress });
    if (admin !== undefined) undo.push(() => admin.stop());

    const loop = new PortLoop(
      libc,
      interfaces,
      attachments.map(({ end }) => end),
      {
        onLink(end, state) {
          logger.warn({ interface: end.interfaceName }, `the interface is ${state}`);
          device.setPortUp(attachmentOf(end).port, state === 'up');
        },
        onReturn(old, fresh) {
          logger.warn({ interface: fresh.interfaceName }, 'the interface is there again');
          const attachment = attachmentOf(old);
          fresh.onFrame = old.onFrame;
          attachment.earlier = statisticsOf(attachment);
          attachment.end = fresh;
        },
        onReturnFailed(old, error) {
          logger.warn({ interface: old.interfaceName, err: error }, 'the interface is there again, but cannot be used');
        },
      },
    );
    undo.push(() => loop.stop());
    loop.start();
    if (options.pcapDirectory !== undefined) {
      const timer = setInterval(() => {
        for (const { captureIn, captureOut } of attachments) {
          void captureIn?.flush();
          void captureOut?.flush();
        }
      }, CAPTURE_FLUSH_INTERVAL_MS);
      undo.push(() => clearInterval(timer));
    }
    const report = (): StandaloneReport => ({
      deviceId: String(deviceId),
      device: { ...device.statistics },
      ports: attachments.map(portReport),
      toUnknownPorts,
    });
    return {
      grpcPort: server.port,
      adminPort: admin?.port,
      report,
      stop: async () => {
        await undoAll();
        return report();
      },
    };
  } catch (error) {
    await undoAll();
    throw error;
  }
}

function impairmentsOf(
  scheduler: RealScheduler,
  random: Random,
  properties: ImpairmentProperties | undefined,
): { inward: Impairment | undefined; outward: Impairment | undefined } {
  if (properties === undefined) return { inward: undefined, outward: undefined };
  return {
    inward: new Impairment(scheduler, random.fork('in'), properties),
    outward: new Impairment(scheduler, random.fork('out'), properties),
  };
}

/** Interface -> impairment -> capture -> program -> capture -> impairment -> interface; what is not asked for is not there. */
function attach(attachment: Attachment, device: Device, outputs: Map<number, FrameSink>): void {
  const { port, inward, outward, captureIn, captureOut } = attachment;
  let input: FrameSink = (memory, start, end) => device.receiveAt(port, memory, start, end);
  let output: FrameSink = (memory, start, end) => attachment.end.send(memory, start, end);
  if (captureIn !== undefined) input = captured(captureIn, input);
  // Impairments hold frames back: those need memory that is not the ring's.
  if (inward !== undefined) input = impaired(inward, input);
  if (outward !== undefined) output = impaired(outward, output);
  if (captureOut !== undefined) output = captured(captureOut, output);
  attachment.end.onFrame = input;
  outputs.set(port, output);
}

function captured(file: PcapFile, next: FrameSink): FrameSink {
  return (memory, start, end) => {
    file.add(memory.frame(start, end), Math.round((performance.timeOrigin + performance.now()) * 1000));
    next(memory, start, end);
  };
}

function impaired(impairment: Impairment, next: FrameSink): FrameSink {
  return (memory, start, end) => {
    impairment.pass(memory.bytes.slice(start, end), (frame) => handOver(frame, next));
  };
}

/** Of this interface and those before it. */
function statisticsOf({ end, earlier }: Attachment): AfPacketStatistics {
  const now = end.statistics();
  if (earlier === undefined) return now;
  return {
    framesReceived: earlier.framesReceived + now.framesReceived,
    bytesReceived: earlier.bytesReceived + now.bytesReceived,
    ringDropped: earlier.ringDropped + now.ringDropped,
    unusable: earlier.unusable + now.unusable,
    segmented: earlier.segmented + now.segmented,
    checksumsCompleted: earlier.checksumsCompleted + now.checksumsCompleted,
    framesSent: earlier.framesSent + now.framesSent,
    bytesSent: earlier.bytesSent + now.bytesSent,
    queueDropped: earlier.queueDropped + now.queueDropped,
    tooLong: earlier.tooLong + now.tooLong,
    sendFailed: earlier.sendFailed + now.sendFailed,
  };
}

function portReport(attachment: Attachment): PortReport {
  const { port, end, inward, outward, captureIn, captureOut } = attachment;
  return {
    port,
    interface: end.interfaceName,
    state: end.state,
    ...statisticsOf(attachment),
    impairedIn: inward?.statistics(),
    impairedOut: outward?.statistics(),
    captureOmitted: (captureIn?.omitted ?? 0) + (captureOut?.omitted ?? 0),
  };
}
