import { EAGAIN, EINTR, MSG_DONTWAIT, SOCK_CLOEXEC } from '../../../base/linux/abi.ts';
import type { Libc } from '../../../base/linux/libc.ts';
import { AF_NETLINK, IFF_UP, NETLINK_ROUTE, RTM_DELLINK, RTM_NEWLINK, RTMGRP_LINK, SOCK_RAW } from './abi.ts';
import { systemError } from './system-error.ts';

export type LinkState = 'up' | 'down' | 'gone';

/** struct nlmsghdr: length 32, type 16, flags 16, sequence 32, port 32; then struct ifinfomsg: family 8, pad 8, type 16, index 32, flags 32. */
const MESSAGE_HEADER_BYTES = 16;
const INDEX_OFFSET = MESSAGE_HEADER_BYTES + 4;
const FLAGS_OFFSET = MESSAGE_HEADER_BYTES + 8;
const SHORTEST_LINK_MESSAGE_BYTES = MESSAGE_HEADER_BYTES + 16;

/** Hears from the kernel (rtnetlink) when interfaces of this network namespace go up, go down, or go away. */
export class LinkMonitor {
  readonly fd: number;
  private readonly libc: Libc;
  private readonly buffer = new Uint8Array(64 * 1024);
  private readonly view = new DataView(this.buffer.buffer);

  /** Throws PORT_UNAVAILABLE. */
  constructor(libc: Libc) {
    this.libc = libc;
    this.fd = libc.socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    if (this.fd < 0) throw systemError(libc, 'open a netlink socket', 'netlink');
    // struct sockaddr_nl: family 16, pad 16, port 32, groups 32.
    const address = new Uint8Array(12);
    new DataView(address.buffer).setUint16(0, AF_NETLINK, LITTLE_ENDIAN);
    new DataView(address.buffer).setUint32(8, RTMGRP_LINK, LITTLE_ENDIAN);
    if (libc.bind(this.fd, address, address.length) < 0) {
      const error = systemError(libc, 'listen for changes of interfaces', 'netlink');
      this.close();
      throw error;
    }
  }

  /**
   * Hands out what has changed since the last call, in order. Returns false when the kernel had more to say than the socket could hold: then
   * nobody knows, and every interface has to be asked.
   */
  read(changed: (index: number, state: LinkState) => void): boolean {
    for (;;) {
      const received = this.libc.recv(this.fd, this.buffer, this.buffer.length, MSG_DONTWAIT);
      if (received < 0) {
        const errno = this.libc.errno();
        if (errno === EINTR) continue;
        return errno === EAGAIN;
      }
      for (let at = 0; at + SHORTEST_LINK_MESSAGE_BYTES <= received; ) {
        const length = this.view.getUint32(at, LITTLE_ENDIAN);
        const type = this.view.getUint16(at + 4, LITTLE_ENDIAN);
        const isUp = (this.view.getUint32(at + FLAGS_OFFSET, LITTLE_ENDIAN) & IFF_UP) !== 0;
        if (type === RTM_NEWLINK || type === RTM_DELLINK)
          changed(
            this.view.getInt32(at + INDEX_OFFSET, LITTLE_ENDIAN),
            type === RTM_DELLINK ? 'gone' : isUp ? 'up' : 'down',
          );
        if (length < MESSAGE_HEADER_BYTES) break;
        at += (length + 3) & ~3;
      }
    }
  }

  close(): void {
    this.libc.close(this.fd);
  }
}

const LITTLE_ENDIAN = new Uint8Array(new Uint16Array([1]).buffer)[0] === 1;
