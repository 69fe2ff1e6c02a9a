import { createSocket } from 'node:dgram';
import { DdfError } from '../../base/errors.ts';
import type { FabricSocket, SocketStatistics } from './fabric-socket.ts';

/** Room for bursts between two turns of the event loop. The kernel gives no more than net.core.rmem_max and wmem_max say. */
const SOCKET_BUFFER_BYTES = 16 * 1024 * 1024;
/** Datagrams that may wait in Node.js for the kernel. */
const MAX_WAITING = 1024;

/**
 * A socket of Node.js, one system call and some objects per datagram, on every platform. Binding ends after this function has returned: `whenBound`
 * tells of a port that is taken, and so does every later `send`.
 */
export function openDgramSocket(ip: string, port: number): FabricSocket {
  const socket = createSocket({ type: 'udp4' });
  let isOpen = true;
  let bindError: DdfError | undefined;
  let waiting = 0;
  const counted = { sent: 0, received: 0, deferred: 0, failed: 0 };
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
  const sent = (error: Error | null): void => {
    waiting--;
    if (error === null) counted.sent++;
    else counted.failed++;
  };
  const face: FabricSocket = {
    ip,
    port,
    whenBound,
    onDatagram: undefined,
    get hasRoom() {
      return waiting < MAX_WAITING;
    },
    send(destinationIp, destinationPort, payload) {
      if (bindError !== undefined) throw bindError;
      if (!isOpen) return;
      if (waiting >= MAX_WAITING) {
        counted.failed++;
        return;
      }
      if (++waiting === MAX_WAITING) counted.deferred++;
      // The kernel takes the bytes later than this call returns: it gets a copy.
      socket.send(Uint8Array.from(payload), destinationPort, destinationIp, sent);
    },
    statistics: (): SocketStatistics => ({
      datagramsSent: counted.sent,
      datagramsReceived: counted.received,
      sendCalls: 0,
      receiveCalls: 0,
      sendsDeferred: counted.deferred,
      sendsFailed: counted.failed,
      receivesLost: 0,
    }),
    close() {
      if (isOpen) socket.close();
      isOpen = false;
    },
  };
  socket.on('message', (bytes, sender) => {
    counted.received++;
    face.onDatagram?.(bytes, sender.address, sender.port);
  });
  return face;
}
