import { DdfError } from '../../../base/errors.ts';
import { AF_INET, SOCK_CLOEXEC, SOCK_DGRAM } from '../../../base/linux/abi.ts';
import type { Libc } from '../../../base/linux/libc.ts';
import {
  ARPHRD_ETHER,
  ETH_FLAG_LRO,
  ETHTOOL_GET_FLAGS,
  ETHTOOL_GET_GRO,
  ETHTOOL_SET_FLAGS,
  ETHTOOL_SET_GRO,
  IFF_UP,
  IFNAMSIZ,
  IFREQ_BYTES,
  SIOCETHTOOL,
  SIOCGIFFLAGS,
  SIOCGIFHWADDR,
  SIOCGIFINDEX,
  SIOCGIFMTU,
} from './abi.ts';
import { systemError } from './system-error.ts';

/** The longest name of an interface. */
export const MAX_INTERFACE_NAME_BYTES = IFNAMSIZ - 1;

export interface InterfaceProperties {
  readonly index: number;
  readonly mtuBytes: number;
  readonly isUp: boolean;
}

/** Asks the kernel about interfaces by name, and changes their offloads. One socket for all questions; to be closed. */
export class InterfaceControl {
  private readonly libc: Libc;
  private readonly fd: number;

  constructor(libc: Libc) {
    this.libc = libc;
    this.fd = libc.socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (this.fd < 0) throw systemError(libc, 'open a socket for questions about interfaces', 'socket');
  }

  /** Throws PORT_UNAVAILABLE for an interface that does not exist or is not Ethernet. */
  properties(name: string): InterfaceProperties {
    const index = this.ask(name, SIOCGIFINDEX);
    const hardware = this.ask(name, SIOCGIFHWADDR);
    const mtu = this.ask(name, SIOCGIFMTU);
    if (index === undefined || hardware === undefined || mtu === undefined)
      throw new DdfError('PORT_UNAVAILABLE', `There is no network interface ${name}`, {
        where: name,
        remedy: '`ip link` lists the interfaces of this network namespace.',
      });
    const kind = hardware.getUint16(IFNAMSIZ, LITTLE_ENDIAN);
    if (kind !== ARPHRD_ETHER)
      throw new DdfError('PORT_UNAVAILABLE', `The network interface ${name} is not Ethernet (its type is ${kind})`, {
        where: name,
      });
    return {
      index: index.getInt32(IFNAMSIZ, LITTLE_ENDIAN),
      mtuBytes: mtu.getInt32(IFNAMSIZ, LITTLE_ENDIAN),
      isUp: this.isUp(name) === true,
    };
  }

  /** `undefined` when the interface is gone. */
  isUp(name: string): boolean | undefined {
    const flags = this.ask(name, SIOCGIFFLAGS);
    return flags && (flags.getUint16(IFNAMSIZ, LITTLE_ENDIAN) & IFF_UP) !== 0;
  }

  /**
   * Stops the interface from merging frames that it receives (GRO, LRO), where the kernel lets us: a switch wants them as they came.
   * Returns what puts the settings back; `undefined` when nothing was changed.
   */
  disableReceiveMerging(name: string): (() => void) | undefined {
    const undo: (() => void)[] = [];
    const gro = this.ethtool(name, ETHTOOL_GET_GRO, 0);
    if (gro !== undefined && gro !== 0 && this.ethtool(name, ETHTOOL_SET_GRO, 0) !== undefined)
      undo.push(() => this.ethtool(name, ETHTOOL_SET_GRO, gro));
    const flags = this.ethtool(name, ETHTOOL_GET_FLAGS, 0);
    if (
      flags !== undefined &&
      (flags & ETH_FLAG_LRO) !== 0 &&
      this.ethtool(name, ETHTOOL_SET_FLAGS, flags & ~ETH_FLAG_LRO) !== undefined
    )
      undo.push(() => this.ethtool(name, ETHTOOL_SET_FLAGS, flags));
    return undo.length === 0
      ? undefined
      : () => {
          for (const each of undo) each();
        };
  }

  close(): void {
    this.libc.close(this.fd);
  }

  private ask(name: string, request: number): DataView | undefined {
    const ifreq = namedRequest(name);
    return this.libc.ioctl(this.fd, request, ifreq) < 0 ? undefined : new DataView(ifreq.buffer);
  }

  /** struct ethtool_value: what the command answers, or `undefined` when it is refused. */
  private ethtool(name: string, command: number, data: number): number | undefined {
    const value = new Uint32Array([command, data]);
    const ifreq = namedRequest(name);
    const pointer = BigInt(this.libc.addressOf(value.buffer));
    new DataView(ifreq.buffer).setBigUint64(IFNAMSIZ, pointer, LITTLE_ENDIAN);
    return this.libc.ioctl(this.fd, SIOCETHTOOL, ifreq) < 0 ? undefined : value[1]!;
  }
}

const LITTLE_ENDIAN = new Uint8Array(new Uint16Array([1]).buffer)[0] === 1;

function namedRequest(name: string): Uint8Array<ArrayBuffer> {
  const ifreq = new Uint8Array(IFREQ_BYTES);
  ifreq.set(new TextEncoder().encode(name).subarray(0, MAX_INTERFACE_NAME_BYTES));
  return ifreq;
}
