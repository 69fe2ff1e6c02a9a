/** What a socket has carried since it was opened. */
export interface SocketStatistics {
  readonly datagramsSent: number;
  readonly datagramsReceived: number;
  /** System calls that sent or received something; 0 where they cannot be counted. */
  readonly sendCalls: number;
  readonly receiveCalls: number;
  /** How often the kernel had no room, so that datagrams waited. */
  readonly sendsDeferred: number;
  /** Thrown away: handed in without room, or refused by the kernel for good. */
  readonly sendsFailed: number;
  /** Lost because the kernel's receive buffer was full; 0 where it does not tell. */
  readonly receivesLost: number;
}

/** UDP over the fabric as an agent sees it. Implementations: the kernel's sockets (udp-host.ts), a virtual host's stack in the lab. */
export interface FabricSocket {
  /** Dotted IPv4 address and UDP port that this socket receives on. */
  readonly ip: string;
  readonly port: number;
  /** Sends one datagram from this socket. The bytes are copied or consumed before the call returns. */
  send(destinationIp: string, destinationPort: number, payload: Uint8Array): void;
  /**
   * False while as much waits for the kernel as may: whoever sends on then loses datagrams, which are counted. Room comes back by itself.
   * Default true.
   */
  readonly hasRoom?: boolean;
  /** Called with each datagram; `payload` is only valid during the call. */
  onDatagram: ((payload: Uint8Array, sourceIp: string, sourcePort: number) => void) | undefined;
  statistics?(): SocketStatistics;
  close(): void;
  /** Of sockets that are bound in the background: rejects with ADDRESS_IN_USE or AGENT_FAILED when that fails. */
  readonly whenBound?: Promise<void>;
}

/** What an agent's host gives it: its fabric address and sockets on it. */
export interface FabricHost {
  readonly ip: string;
  readonly mac: string;
  readonly mtuBytes: number;
  /** Throws ADDRESS_IN_USE, or lets the socket's `whenBound` say so. */
  openSocket(port: number): FabricSocket;
}
