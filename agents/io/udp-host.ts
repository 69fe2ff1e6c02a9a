import { createSocket } from 'node:dgram';
import { networkInterfaces } from 'node:os';
import { DdfError } from '../../base/errors.ts';
import type { FabricHost, FabricSocket } from './fabric-socket.ts';

/** Room for bursts between two turns of the event loop. */
const SOCKET_BUFFER_BYTES = 4 * 1024 * 1024;

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

/** The kernel binds at once but tells later: a port that is taken is reported by closing, since `openSocket` has returned by then. */
function openUdpSocket(ip: string, port: number): FabricSocket {
  const socket = createSocket({ type: 'udp4' });
  let isOpen = true;
  let bindError: DdfError | undefined;
  socket.on('error', (error: NodeJS.ErrnoException) => {
    bindError = new DdfError(
      error.code === 'EADDRINUSE' ? 'ADDRESS_IN_USE' : 'AGENT_FAILED',
      `UDP ${ip}:${port}: ${error.message}`,
    );
  });
  socket.bind({ address: ip, port, exclusive: true }, () => {
    socket.setRecvBufferSize(SOCKET_BUFFER_BYTES);
    socket.setSendBufferSize(SOCKET_BUFFER_BYTES);
  });
  const face: FabricSocket = {
    ip,
    port,
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
