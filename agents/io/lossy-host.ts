import type { Random } from '../../base/random.ts';
import type { FabricHost, FabricSocket } from './fabric-socket.ts';

/** Datagrams that a lossy host threw away. */
export interface LossCounters {
  sent: number;
  received: number;
}

/**
 * A host whose link loses datagrams, for tests on networks that lose none by themselves: each one is thrown away with probability `loss`, on its way
 * out before the kernel gets it, on its way in after. The order in which `random` decides is that of the datagrams, so a seed gives the same losses
 * for the same traffic. Other traffic of the host (range reads over TCP) is not touched.
 */
export function createLossyHost(
  host: FabricHost,
  loss: number,
  random: Random,
): FabricHost & { readonly lost: Readonly<LossCounters> } {
  const lost: LossCounters = { sent: 0, received: 0 };
  const [outward, inward] = [random.fork('outward'), random.fork('inward')];
  return {
    ip: host.ip,
    mac: host.mac,
    mtuBytes: host.mtuBytes,
    lost,
    openSocket(port) {
      const socket = host.openSocket(port);
      const face: FabricSocket = {
        ip: socket.ip,
        port: socket.port,
        onDatagram: undefined,
        get hasRoom() {
          return socket.hasRoom !== false;
        },
        send(destinationIp, destinationPort, payload) {
          if (outward.chance(loss)) lost.sent++;
          else socket.send(destinationIp, destinationPort, payload);
        },
        close: () => socket.close(),
        ...(socket.statistics === undefined ? {} : { statistics: () => socket.statistics!() }),
        ...(socket.whenBound === undefined ? {} : { whenBound: socket.whenBound }),
      };
      socket.onDatagram = (payload, sourceIp, sourcePort) => {
        if (inward.chance(loss)) lost.received++;
        else face.onDatagram?.(payload, sourceIp, sourcePort);
      };
      return face;
    },
  };
}
