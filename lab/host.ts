import type { FabricHost, FabricSocket } from '../agents/io/fabric-socket.ts';
import type { Scheduler, Timer } from '../base/clock.ts';
import { DdfError } from '../base/errors.ts';
import {
  ETHERTYPE_ARP,
  ETHERTYPE_IPV4,
  IP_PROTOCOL_ICMP,
  IP_PROTOCOL_IGMP,
  IP_PROTOCOL_UDP,
} from '../p4/build/constants.ts';
import type { Frame, Port } from '../switch/ports/port.ts';
import {
  formatIpv4,
  isGroupMac,
  isMulticastIpv4,
  MAC_BROADCAST,
  multicastMac,
  parseIpv4,
  parseMac,
  writeMac,
} from '../wire/packet/addresses.ts';
import { ARP_BYTES, ARP_REPLY, ARP_REQUEST, type ArpPacket, emitArp, parseArp } from '../wire/packet/arp.ts';
import { ETHERNET_HEADER_BYTES, emitEthernet, parseEthernet } from '../wire/packet/ethernet.ts';
import { emitIcmp, ICMP_ECHO_REPLY, ICMP_ECHO_REQUEST, ICMP_HEADER_BYTES, parseIcmp } from '../wire/packet/icmp.ts';
import {
  ALL_ROUTERS_GROUP,
  ALL_SYSTEMS_GROUP,
  buildIgmpFrame,
  CHANGE_TO_EXCLUDE_MODE,
  CHANGE_TO_INCLUDE_MODE,
  IGMPV3_ROUTERS_GROUP,
  type IgmpMessage,
  MODE_IS_EXCLUDE,
  parseIgmp,
} from '../wire/packet/igmp.ts';
import { emitIpv4, IPV4_HEADER_BYTES, type Ipv4Packet, parseIpv4Packet } from '../wire/packet/ipv4.ts';
import { buildUdpFrame, parseUdp, UDP_HEADER_BYTES } from '../wire/packet/udp.ts';

/** Frames that wait for the gateway's MAC address at most; the oldest goes first. */
const PENDING_FRAMES = 256;
const ARP_RETRY_US = 100_000;
const ARP_TRIES = 30;
/** Then the answer is asked for again; the old one is used meanwhile. */
const ARP_LIFETIME_US = 60_000_000;
const REPLY_TIME_TO_LIVE = 64;
/** What a host says of itself about a group is said once more after this time: one of both may be lost (RFC 3376, 8.1 and 8.11). */
const IGMP_REPEAT_US = 1_000_000;

export interface VirtualHostProperties {
  readonly name: string;
  readonly mac: string;
  readonly ip: string;
  /** Everything is sent to this neighbour: the switch that the host hangs on. */
  readonly gatewayIp: string;
  /** Largest IP packet, bytes. */
  readonly mtuBytes: number;
}

/** Frames that came to nothing, by why. */
export interface HostDrops {
  /** Addressed to another MAC or IP address, or of a protocol that the host does not speak. */
  notForUs: number;
  /** Of the wrong length or checksum, or a fragment. */
  malformed: number;
  /** UDP to a port that nobody listens on. */
  noSocket: number;
  /** Sent, but the gateway's address was not to be had, or too many waited for it. */
  noGateway: number;
}

export type IgmpVersion = 1 | 2 | 3;

/**
 * A host's network stack on one port: Ethernet, ARP (RFC 826) towards its gateway and for its own address, IPv4 without fragments, ICMP
 * echo replies, UDP sockets without checksums (switches change what they would cover; received ones are checked), and multicast groups
 * (RFC 1112) that all of its sockets are members of.
 */
export class VirtualHost implements FabricHost {
  readonly name: string;
  readonly ip: string;
  readonly mac: string;
  readonly mtuBytes: number;
  readonly drops: HostDrops = { notForUs: 0, malformed: 0, noSocket: 0, noGateway: 0 };
  private readonly port: Port;
  private readonly scheduler: Scheduler;
  private readonly macNumber: number;
  private readonly ipNumber: number;
  private readonly gatewayIp: number;
  private gatewayMac: number | undefined;
  private gatewayAskAgainUs = 0;
  private readonly pending: Frame[] = [];
  private arpTimer: Timer | undefined;
  private readonly sockets = new Map<number, VirtualSocket>();
  /** With the version of IGMP in which the host speaks of it. */
  private readonly groups = new Map<number, IgmpVersion>();
  private readonly igmpTimers = new Set<Timer>();

  constructor(port: Port, scheduler: Scheduler, properties: VirtualHostProperties) {
    this.name = properties.name;
    this.ip = properties.ip;
    this.mac = properties.mac;
    this.mtuBytes = properties.mtuBytes;
    this.port = port;
    this.scheduler = scheduler;
    this.macNumber = macOf(properties.mac);
    this.ipNumber = ipOf(properties.ip);
    this.gatewayIp = ipOf(properties.gatewayIp);
    port.onFrame = (frame) => this.receive(frame);
  }

  openSocket(port: number): FabricSocket {
    if (!Number.isInteger(port) || port < 1 || port > 65535)
      throw new DdfError('INVALID_OPTION', `${port} is not a UDP port`, { where: this.name });
    if (this.sockets.has(port))
      throw new DdfError('ADDRESS_IN_USE', `UDP port ${port} of ${this.ip} is in use`, {
        where: this.name,
        remedy: 'Close the socket that has it, or take another port.',
      });
    const socket = new VirtualSocket(
      this.ip,
      port,
      (destinationIp, destinationPort, payload) => this.sendUdp(port, destinationIp, destinationPort, payload),
      () => this.sockets.delete(port),
    );
    this.sockets.set(port, socket);
    return socket;
  }

  /** Becomes a member of a multicast group. Harmless if it is one. */
  joinGroup(group: string, version: IgmpVersion = 3): void {
    const address = groupOf(group);
    if (this.groups.has(address)) return;
    this.groups.set(address, version);
    this.sayTwice(() => this.groups.has(address) && this.report(address, CHANGE_TO_EXCLUDE_MODE));
  }

  /** Ends a membership; in version 1 without a word. Harmless if there is none. */
  leaveGroup(group: string): void {
    const address = groupOf(group);
    const version = this.groups.get(address);
    if (version === undefined || !this.groups.delete(address) || version === 1) return;
    this.sayTwice(() => {
      if (this.groups.has(address)) return;
      const records = [{ type: CHANGE_TO_INCLUDE_MODE, group: address, sources: [] }];
      if (version === 2) this.sendIgmp(ALL_ROUTERS_GROUP, { type: 'leave', group: address });
      else this.sendIgmp(IGMPV3_ROUTERS_GROUP, { type: 'report of records', records });
    });
  }

  /** Whether the gateway's MAC address is known; asks for it if not. */
  resolveGateway(): boolean {
    if (this.gatewayMac === undefined) this.askForGateway(ARP_TRIES);
    return this.gatewayMac !== undefined;
  }

  /** Gives the gateway's MAC address, as a static ARP entry does: it is never asked for. */
  setGateway(mac: string): void {
    this.learnGateway(macOf(mac));
    this.gatewayAskAgainUs = Number.POSITIVE_INFINITY;
  }

  /** Takes the host off its port: nothing is sent, received or due afterwards. */
  close(): void {
    this.port.onFrame = undefined;
    this.arpTimer?.cancel();
    for (const timer of this.igmpTimers) timer.cancel();
    this.sockets.clear();
    this.groups.clear();
    this.pending.length = 0;
  }

  private sendUdp(sourcePort: number, destinationIp: string, destinationPort: number, payload: Uint8Array): void {
    if (IPV4_HEADER_BYTES + UDP_HEADER_BYTES + payload.length > this.mtuBytes)
      throw new DdfError('INVALID_PACKET', `a datagram of ${payload.length} bytes does not fit into ${this.mtuBytes}`, {
        where: this.name,
        remedy: `At most ${this.mtuBytes - IPV4_HEADER_BYTES - UDP_HEADER_BYTES} bytes fit.`,
      });
    const destination = ipOf(destinationIp);
    const toGroup = isMulticastIpv4(destination);
    const endpoints = {
      sourceMac: this.macNumber,
      destinationMac: toGroup ? multicastMac(destination) : 0,
      sourceIp: this.ipNumber,
      destinationIp: destination,
      sourcePort,
      destinationPort,
    };
    const frame = buildUdpFrame(endpoints, payload);
    if (toGroup) this.port.send(frame);
    else this.sendToGateway(frame);
  }

  private sayTwice(say: () => void): void {
    say();
    const timer = this.scheduler.at(this.scheduler.nowUs() + IGMP_REPEAT_US, () => {
      this.igmpTimers.delete(timer);
      say();
    });
    this.igmpTimers.add(timer);
  }

  private report(group: number, recordType: number): void {
    const version = this.groups.get(group)!;
    const records = [{ type: recordType, group, sources: [] }];
    if (version === 3) this.sendIgmp(IGMPV3_ROUTERS_GROUP, { type: 'report of records', records });
    else this.sendIgmp(group, { type: 'report', version, group });
  }

  private sendIgmp(destinationIp: number, message: IgmpMessage): void {
    this.port.send(buildIgmpFrame({ sourceMac: this.macNumber, sourceIp: this.ipNumber, destinationIp }, message));
  }

  /** Fills in the destination address, now or as soon as it is known. */
  private sendToGateway(frame: Frame): void {
    if (this.gatewayMac === undefined) {
      if (this.pending.length >= PENDING_FRAMES) {
        this.pending.shift();
        this.drops.noGateway++;
      }
      this.pending.push(frame);
      this.askForGateway(ARP_TRIES);
      return;
    }
    if (this.scheduler.nowUs() >= this.gatewayAskAgainUs) this.askForGateway(1);
    writeMac(frame, 0, this.gatewayMac);
    this.port.send(frame);
  }

  private askForGateway(tries: number): void {
    if (this.arpTimer !== undefined) return;
    const ask = (left: number): void => {
      this.arpTimer = undefined;
      if (left === 0) {
        this.drops.noGateway += this.pending.length;
        this.pending.length = 0;
        return;
      }
      this.sendArp(MAC_BROADCAST, { operation: ARP_REQUEST, targetMac: 0, targetIp: this.gatewayIp });
      this.arpTimer = this.scheduler.at(this.scheduler.nowUs() + ARP_RETRY_US, () => ask(left - 1));
    };
    ask(tries);
  }

  private sendArp(destination: number, packet: Pick<ArpPacket, 'operation' | 'targetMac' | 'targetIp'>): void {
    const frame = new Uint8Array(ETHERNET_HEADER_BYTES + ARP_BYTES);
    emitEthernet(frame, 0, { destination, source: this.macNumber, etherType: ETHERTYPE_ARP });
    emitArp(frame, ETHERNET_HEADER_BYTES, { ...packet, senderMac: this.macNumber, senderIp: this.ipNumber });
    this.port.send(frame);
  }

  private receive(frame: Frame): void {
    const ethernet = parseEthernet(frame);
    if (typeof ethernet === 'string') {
      this.drops.malformed++;
    } else if (ethernet.destination !== this.macNumber && !isGroupMac(ethernet.destination)) {
      this.drops.notForUs++;
    } else if (ethernet.etherType === ETHERTYPE_IPV4) {
      this.receiveIpv4(ethernet.payload);
    } else if (ethernet.etherType === ETHERTYPE_ARP) {
      this.receiveArp(ethernet.payload);
    } else {
      this.drops.notForUs++;
    }
  }

  private receiveArp(bytes: Uint8Array): void {
    const packet = parseArp(bytes);
    if (typeof packet === 'string') {
      this.drops.malformed++;
      return;
    }
    // Only the gateway is a neighbour; its own requests tell its address too.
    if (packet.senderIp === this.gatewayIp && packet.targetIp === this.ipNumber) this.learnGateway(packet.senderMac);
    if (packet.targetIp !== this.ipNumber) {
      this.drops.notForUs++;
    } else if (packet.operation === ARP_REQUEST) {
      this.sendArp(packet.senderMac, {
        operation: ARP_REPLY,
        targetMac: packet.senderMac,
        targetIp: packet.senderIp,
      });
    }
  }

  private learnGateway(mac: number): void {
    this.gatewayMac = mac;
    this.gatewayAskAgainUs = this.scheduler.nowUs() + ARP_LIFETIME_US;
    this.arpTimer?.cancel();
    this.arpTimer = undefined;
    for (const frame of this.pending.splice(0)) this.sendToGateway(frame);
  }

  private receiveIpv4(bytes: Uint8Array): void {
    const packet = parseIpv4Packet(bytes);
    if (typeof packet === 'string' || packet.isFragment) {
      this.drops.malformed++;
    } else if (packet.protocol === IP_PROTOCOL_IGMP && packet.destination === ALL_SYSTEMS_GROUP) {
      this.receiveQuery(packet);
    } else if (packet.destination !== this.ipNumber && !this.groups.has(packet.destination)) {
      this.drops.notForUs++;
    } else if (packet.protocol === IP_PROTOCOL_UDP) {
      this.receiveUdp(packet);
    } else if (packet.protocol === IP_PROTOCOL_ICMP) {
      this.receiveIcmp(packet);
    } else {
      this.drops.notForUs++;
    }
  }

  private receiveUdp(packet: Ipv4Packet): void {
    const datagram = parseUdp(packet);
    if (typeof datagram === 'string') {
      this.drops.malformed++;
      return;
    }
    const socket = this.sockets.get(datagram.destinationPort);
    if (socket === undefined) this.drops.noSocket++;
    else socket.onDatagram?.(datagram.payload, formatIpv4(packet.source), datagram.sourcePort);
  }

  /** Answered at once: there is nobody on this link to share the answer with. */
  private receiveQuery(packet: Ipv4Packet): void {
    const message = parseIgmp(packet.payload);
    if (typeof message === 'string') this.drops.malformed++;
    else if (message.type !== 'query') this.drops.notForUs++;
    else for (const group of this.groups.keys()) this.report(group, MODE_IS_EXCLUDE);
  }

  private receiveIcmp(packet: Ipv4Packet): void {
    const message = parseIcmp(packet.payload);
    if (typeof message === 'string') {
      this.drops.malformed++;
      return;
    }
    // Many would answer a question to a group.
    if (message.type !== ICMP_ECHO_REQUEST || packet.destination !== this.ipNumber) {
      this.drops.notForUs++;
      return;
    }
    const icmpBytes = ICMP_HEADER_BYTES + message.payload.length;
    const frame = new Uint8Array(ETHERNET_HEADER_BYTES + IPV4_HEADER_BYTES + icmpBytes);
    emitEthernet(frame, 0, { destination: 0, source: this.macNumber, etherType: ETHERTYPE_IPV4 });
    emitIpv4(
      frame,
      ETHERNET_HEADER_BYTES,
      {
        source: this.ipNumber,
        destination: packet.source,
        protocol: IP_PROTOCOL_ICMP,
        timeToLive: REPLY_TIME_TO_LIVE,
        trafficClass: packet.trafficClass,
      },
      icmpBytes,
    );
    emitIcmp(frame, ETHERNET_HEADER_BYTES + IPV4_HEADER_BYTES, { ...message, type: ICMP_ECHO_REPLY });
    this.sendToGateway(frame);
  }
}

type SendDatagram = (destinationIp: string, destinationPort: number, payload: Uint8Array) => void;

class VirtualSocket implements FabricSocket {
  readonly ip: string;
  readonly port: number;
  onDatagram: FabricSocket['onDatagram'];
  private readonly sendDatagram: SendDatagram;
  private readonly release: () => void;
  private isOpen = true;

  constructor(ip: string, port: number, sendDatagram: SendDatagram, release: () => void) {
    this.ip = ip;
    this.port = port;
    this.sendDatagram = sendDatagram;
    this.release = release;
  }

  send(destinationIp: string, destinationPort: number, payload: Uint8Array): void {
    if (this.isOpen) this.sendDatagram(destinationIp, destinationPort, payload);
  }

  close(): void {
    if (!this.isOpen) return;
    this.isOpen = false;
    this.onDatagram = undefined;
    this.release();
  }
}

function macOf(text: string): number {
  const mac = parseMac(text);
  if (mac === undefined) throw new DdfError('INVALID_OPTION', `'${text}' is not a MAC address`);
  return mac;
}

function groupOf(text: string): number {
  const group = parseIpv4(text);
  if (group === undefined || !isMulticastIpv4(group))
    throw new DdfError('INVALID_OPTION', `'${text}' is not an IPv4 multicast address`);
  return group;
}

function ipOf(text: string): number {
  const ip = parseIpv4(text);
  if (ip === undefined) throw new DdfError('INVALID_OPTION', `'${text}' is not an IPv4 address`);
  return ip;
}
