import { networkInterfaces } from 'node:os';
import { DdfError, toDdfError } from '../../base/errors.ts';
import { loadLibc } from '../../base/linux/libc.ts';
import { openDgramSocket } from './dgram-socket.ts';
import type { FabricHost } from './fabric-socket.ts';
import { BatchedSocket, type BatchedSocketOptions } from './linux/batched-socket.ts';
import { UdpLoop } from './linux/udp-loop.ts';

/** How datagrams pass between this process and the kernel. */
export type SocketKind = 'batched' | 'dgram';

export interface UdpHost extends FabricHost {
  readonly sockets: SocketKind;
  /** Blocks this thread for so long, then hands out the datagrams that have come; there only with batched sockets. */
  readonly waitUs?: (microseconds: number) => void;
}

export interface UdpHostOptions {
  /** Address of the interface towards the fabric. */
  readonly ip: string;
  /** Of IP packets on it. */
  readonly mtuBytes: number;
  /** Default: batched where direct system calls are possible, dgram elsewhere. */
  readonly sockets?: SocketKind;
  readonly batching?: BatchedSocketOptions;
}

/**
 * This machine, or network namespace, as a fabric host: UDP sockets of the kernel.
 * @throws DdfError INVALID_OPTION when no interface has the address; PORT_UNAVAILABLE when batched sockets are asked for and cannot be had
 */
export async function createUdpHost({ ip, mtuBytes, sockets, batching }: UdpHostOptions): Promise<UdpHost> {
  const own = Object.values(networkInterfaces())
    .flatMap((addresses) => addresses ?? [])
    .find(({ address }) => address === ip);
  if (own === undefined)
    throw new DdfError('INVALID_OPTION', `no network interface has the address ${ip}`, {
      remedy: 'Give the address of the interface towards the fabric.',
    });
  const face = { ip, mac: own.mac, mtuBytes };
  const libc =
    sockets === 'dgram'
      ? undefined
      : await loadLibc().catch((thrown: unknown) => {
          if (sockets === undefined && toDdfError(thrown).code === 'PORT_UNAVAILABLE') return undefined;
          throw thrown;
        });
  if (libc === undefined) return { ...face, sockets: 'dgram', openSocket: (port) => openDgramSocket(ip, port) };
  const loop = new UdpLoop(libc);
  return {
    ...face,
    sockets: 'batched',
    waitUs: (microseconds) => loop.waitUs(microseconds),
    openSocket(port) {
      const socket = new BatchedSocket(libc, ip, port, mtuBytes, batching);
      loop.add(socket);
      return socket;
    },
  };
}
