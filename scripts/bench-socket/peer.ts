/** One end of `npm run bench:socket`: a process that sends or receives, and says what that took when it is asked. */
import type { BatchedSocketOptions } from '../../agents/io/linux/batched-socket.ts';
import { TransferDriver, type TransferMachine } from '../../agents/io/transfer-driver.ts';
import { createUdpHost, type SocketKind } from '../../agents/io/udp-host.ts';
import { Pacer } from '../../agents/protocol/pacing.ts';
import { WallScheduler } from '../../base/wall-clock.ts';
import { UDP_FRAME_OVERHEAD_BYTES } from '../../wire/packet/udp.ts';
import { PACING } from '../run-agent.ts';

export interface Task {
  readonly ip: string;
  readonly port: number;
  readonly mtuBytes: number;
  readonly sockets: SocketKind;
  readonly batching: BatchedSocketOptions;
  /** Of a sender. */
  readonly destination?: {
    readonly ip: string;
    readonly port: number;
    readonly bytes: number;
    readonly rateBitsPerSecond: number | null;
  };
}

/** Since the process began. */
export interface Reading {
  readonly seconds: number;
  readonly cpuMicroseconds: number;
  readonly sent: number;
  readonly received: number;
  readonly sendCalls: number;
  readonly receiveCalls: number;
  readonly sendsFailed: number;
  readonly sendsDeferred: number;
}

/** A stream of equal datagrams, at a rate or without an end. */
class Stream implements TransferMachine<never> {
  private readonly datagram: Uint8Array;
  private readonly rateBitsPerSecond: number | null;
  private readonly pacer = new Pacer(PACING.burstUs);

  constructor(bytes: number, rateBitsPerSecond: number | null) {
    this.datagram = new Uint8Array(bytes).fill(1);
    this.rateBitsPerSecond = rateBitsPerSecond;
  }

  handlePacket(): void {}

  handleTimeout(): void {}

  pollTransmit(nowUs: number): Uint8Array | undefined {
    if (this.rateBitsPerSecond === null) return this.datagram;
    if (nowUs < this.pacer.readyAtUs()) return undefined;
    this.pacer.sent(nowUs, UDP_FRAME_OVERHEAD_BYTES + this.datagram.length, this.rateBitsPerSecond);
    return this.datagram;
  }

  pollTimeout(): number {
    return this.rateBitsPerSecond === null ? 0 : Math.ceil(this.pacer.readyAtUs());
  }

  poll(): undefined {
    return undefined;
  }
}

const task = JSON.parse(process.argv[2]!) as Task;
const { ip, port, mtuBytes, sockets, batching, destination } = task;
const host = await createUdpHost({ ip, mtuBytes, sockets, batching });
const socket = host.openSocket(port);
let checksum = 0;
socket.onDatagram = (payload) => {
  checksum += payload[payload.length - 1]!;
};
await socket.whenBound;

process.on('message', () => {
  const { user, system } = process.cpuUsage();
  const statistics = socket.statistics!();
  const { datagramsSent, datagramsReceived, sendCalls, receiveCalls, sendsFailed, sendsDeferred } = statistics;
  if (checksum !== datagramsReceived) throw new Error('a datagram had other bytes than were sent');
  process.send!({
    seconds: performance.now() / 1000,
    cpuMicroseconds: user + system,
    sent: datagramsSent,
    received: datagramsReceived,
    sendCalls,
    receiveCalls,
    sendsFailed,
    sendsDeferred,
  } satisfies Reading);
});
process.on('disconnect', () => process.exit());
process.send!('ready');

if (destination !== undefined) {
  const driver = new TransferDriver<never>({
    machine: new Stream(destination.bytes, destination.rateBitsPerSecond),
    scheduler: new WallScheduler(host.waitUs),
    send: (datagram) => socket.send(destination.ip, destination.port, datagram),
    leastWaitUs: PACING.leastWaitUs,
    hasRoom: () => socket.hasRoom !== false,
    onEvent: () => {},
    onFailure: (error) => {
      throw error;
    },
  });
  driver.pump();
}
