import type { FabricHost, FabricSocket } from '../../agents/io/fabric-socket.ts';
import type { Scheduler } from '../../base/clock.ts';
import { DdfError } from '../../base/errors.ts';
import type { Random } from '../../base/random.ts';
import { FABRIC_TYPE_DATA } from '../../p4/build/constants.ts';

/** What the tree of a transfer is here: an address that stands for the receivers' sockets. */
export const TREE_IP = '10.255.0.1';

export interface FakeFabricOptions {
  readonly scheduler: Scheduler;
  readonly random: Random;
  /** Of datagrams, each receiver for itself. */
  readonly loss: number;
  /** May change a copy of a DATA datagram on its way. */
  readonly tamper?: (datagram: Buffer) => void;
}

const DELAY_US = 200;

/** Datagrams from any socket to any other after 200 microseconds, to {@link TREE_IP} to every host but the sender's; no switch in between. */
export class FakeFabric {
  delivered = 0;
  private readonly options: FakeFabricOptions;
  private readonly sockets = new Map<string, FabricSocket>();

  constructor(options: FakeFabricOptions) {
    this.options = options;
  }

  host(ip: string): FabricHost {
    return { ip, mac: '02:00:00:00:00:01', mtuBytes: 9000, openSocket: (port) => this.open(ip, port) };
  }

  private open(ip: string, port: number): FabricSocket {
    const key = `${ip}:${port}`;
    if (this.sockets.has(key)) throw new DdfError('ADDRESS_IN_USE', `${key} is in use`);
    const socket: FabricSocket = {
      ip,
      port,
      onDatagram: undefined,
      send: (destinationIp, destinationPort, payload) => {
        for (const [name, target] of this.sockets) {
          const isTarget =
            destinationIp === TREE_IP ? target.ip !== ip : name === `${destinationIp}:${destinationPort}`;
          if (isTarget) this.deliver(target, Buffer.from(payload), socket);
        }
      },
      close: () => this.sockets.delete(key),
    };
    this.sockets.set(key, socket);
    return socket;
  }

  private deliver(target: FabricSocket, datagram: Buffer, source: FabricSocket): void {
    const { scheduler, random, loss, tamper } = this.options;
    if (random.chance(loss)) return;
    if ((datagram[0]! & 15) === FABRIC_TYPE_DATA) tamper?.(datagram);
    scheduler.at(scheduler.nowUs() + DELAY_US, () => {
      if (!this.sockets.has(`${target.ip}:${target.port}`)) return;
      this.delivered++;
      target.onDatagram?.(datagram, source.ip, source.port);
    });
  }
}
