import { createSocket } from 'node:dgram';
import { networkInterfaces } from 'node:os';
import { DdfError } from '../../base/errors.ts';
import type { FabricHost, FabricSocket } from './fabric-socket.ts';

/** Room for bursts between two turns of the event loop. The kernel gives no more than net.core.rmem_max and wmem_max say. */
const SOCKET_BUFFER_BYTES = 16 * 1024 * 1024;

/**
 * This machine, or network namespace, as a fabric host: plain UDP sockets of the kernel.
 * @param ip address of the interface towards the fabric
 * @param mtuBytes of IP packets on it
 * @throws DdfError INVALID_OPTION when no interface has the address
 */
export function createUdpHost(ip: string, mtuBytes: number): FabricHost {
  const own = Object.values(networkInterfaces())
    .flatMap((addresses) => addresses ?? [])
    .find(({ address }) => address === ip);
  if (own === undefined)
    throw new DdfError('INVALID_OPTION', `no network interface has the address ${ip}`, {
      remedy: 'Give the address of the interface towards the fabric.',
    });
  return { ip, mac: own.mac, mtuBytes, openSocket: (port) => openUdpSocket(ip, port) };
}

/** Binding ends after `openSocket` has returned: `whenBound` tells of a port that is taken, and so does every later `send`. */
function openUdpSocket(ip: string, port: number): FabricSocket {
  const socket = createSocket({ type: 'udp4' });
  let isOpen = true;
  let bindError: DdfError | undefined;
  const whenBound = new Promise<void>((resolve, reject) => {
    socket.on('error', (error: NodeJS.ErrnoException) => {
      bindError = new DdfError(
        error.code === 'EADDRINUSE' ? 'ADDRESS_IN_USE' : 'AGENT_FAILED',
        `UDP ${ip}:${port}: ${error.message}`,
      );
      reject(bindError);
    });
    socket.bind({ address: ip, port, exclusive: true }, () => {
      socket.setRecvBufferSize(SOCKET_BUFFER_BYTES);
      socket.setSendBufferSize(SOCKET_BUFFER_BYTES);
      resolve();
    });
  });
  // Nobody has to wait for it.
  whenBound.catch(() => {});
  const face: FabricSocket = {
    ip,
    port,
    whenBound,
    onDatagram: undefined,
    send(destinationIp, destinationPort, payload) {
      if (bindError !== undefined) throw bindError;
      // The kernel takes the bytes later than this call returns: it gets a copy. A full buffer loses the packet, as a network would.
      if (isOpen) socket.send(Uint8Array.from(payload), destinationPort, destinationIp, () => {});
    },
    close() {
      if (isOpen) socket.close();
      isOpen = false;
    },
  };
  socket.on('message', (bytes, sender) => face.onDatagram?.(bytes, sender.address, sender.port));
  return face;
}
