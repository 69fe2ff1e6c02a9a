import { SOCK_CLOEXEC } from '../../../base/linux/abi.ts';
import type { Libc } from '../../../base/linux/libc.ts';
import { AF_PACKET, SOCK_RAW } from './abi.ts';
import { systemError } from './system-error.ts';

/** A packet socket without a protocol: it receives nothing before it is bound. Throws PORT_UNAVAILABLE, as all of these. */
export function openPacketSocket(libc: Libc, interfaceName: string): number {
  const fd = libc.socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
  if (fd < 0) throw systemError(libc, 'open a packet socket', interfaceName);
  return fd;
}

/** @param what completes "No permission to ..." */
export function setOption(
  libc: Libc,
  fd: number,
  level: number,
  option: number,
  value: number,
  what: string,
  interfaceName: string,
): void {
  const bytes = new Uint8Array(new Int32Array([value]).buffer);
  if (libc.setsockopt(fd, level, option, bytes, bytes.length) < 0) throw systemError(libc, what, interfaceName);
}

/**
 * To one interface: struct sockaddr_ll is family 16, protocol 16 (network order), index 32, hatype 16, pkttype 8, halen 8, address 64.
 * @param protocol what it receives; 0: nothing
 */
export function bindPacketSocket(
  libc: Libc,
  fd: number,
  protocol: number,
  interfaceIndex: number,
  interfaceName: string,
): void {
  const address = new Uint8Array(20);
  new Uint16Array(address.buffer)[0] = AF_PACKET;
  new DataView(address.buffer).setUint16(2, protocol);
  new Int32Array(address.buffer)[1] = interfaceIndex;
  if (libc.bind(fd, address, address.length) < 0) throw systemError(libc, 'bind to the interface', interfaceName);
}
