/** A topology after loading: every name resolved, every port and address assigned. */

export interface Topology {
  readonly name: string;
  /** Largest IP packet that every link carries, bytes. */
  readonly mtuBytes: number;
  readonly switches: readonly SwitchNode[];
  readonly hosts: readonly HostNode[];
  /** Switch to switch; a host's link is part of the host. */
  readonly links: readonly CoreLink[];
}

export interface SwitchNode {
  readonly name: string;
  /** P4Runtime device id, 1.. */
  readonly deviceId: number;
  readonly layer: 'leaf' | 'spine' | 'core';
  /** MAC address of the switch as a next hop, and the address that it answers ARP and ICMP for. */
  readonly mac: string;
  readonly ip: string;
}

export interface HostNode {
  readonly name: string;
  readonly kind: 'memory-node' | 'gpu-server';
  /** The switch it hangs on, and that switch's port (1..509). */
  readonly switch: string;
  readonly port: number;
  readonly mac: string;
  readonly ip: string;
  readonly link: LinkProperties;
}

export interface CoreLink {
  readonly a: { readonly switch: string; readonly port: number };
  readonly b: { readonly switch: string; readonly port: number };
  readonly link: LinkProperties;
}

export interface LinkProperties {
  /** Bits per second in each direction. */
  readonly rateBitsPerSecond: number;
  /** One-way propagation delay, microseconds. */
  readonly delayUs: number;
  /** Frames that wait for the wire at most, per direction; more are dropped at the tail. */
  readonly queueFrames: number;
}
