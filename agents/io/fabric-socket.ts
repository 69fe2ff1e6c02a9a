/** UDP over the fabric as an agent sees it. Implementations: node:dgram on a real interface, a virtual host's stack in the lab. */
export interface FabricSocket {
  /** Dotted IPv4 address and UDP port that this socket receives on. */
  readonly ip: string;
  readonly port: number;
  /** Sends one datagram from this socket. The bytes are copied or consumed before the call returns. */
  send(destinationIp: string, destinationPort: number, payload: Uint8Array): void;
  /** Called with each datagram; `payload` is only valid during the call. */
  onDatagram: ((payload: Uint8Array, sourceIp: string, sourcePort: number) => void) | undefined;
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
