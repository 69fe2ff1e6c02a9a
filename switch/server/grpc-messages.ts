import { RpcError } from './rpc-error.ts';

/** Each message is preceded by one byte that says whether it is compressed, and four of its length. */
const PREFIX_BYTES = 5;

/** A message as it goes over the wire (gRPC over HTTP/2, "Length-Prefixed-Message"). */
export function framed(message: Uint8Array): Buffer {
  const frame = Buffer.allocUnsafe(PREFIX_BYTES + message.length);
  frame[0] = 0;
  frame.writeUInt32BE(message.length, 1);
  frame.set(message, PREFIX_BYTES);
  return frame;
}

/** Takes messages out of a stream of bytes, which are cut anywhere. */
export class MessageReader {
  private readonly maxBytes: number;
  private chunks: Buffer[] = [];
  private length = 0;
  /** Of the message that is under way, prefix included; at first only the prefix is known to be needed. */
  private needed = PREFIX_BYTES;

  constructor(maxBytes: number) {
    this.maxBytes = maxBytes;
  }

  /** Whether part of a message has come. */
  get isWithinMessage(): boolean {
    return this.length > 0;
  }

  /**
   * The messages that are complete now; they may share memory with the chunk.
   * @throws RpcError RESOURCE_EXHAUSTED for one that is too long, UNIMPLEMENTED for one that is compressed
   */
  push(chunk: Buffer): Buffer[] {
    this.chunks.push(chunk);
    this.length += chunk.length;
    const messages: Buffer[] = [];
    while (this.length >= this.needed) {
      if (this.chunks.length > 1) this.chunks = [Buffer.concat(this.chunks)];
      const bytes = this.chunks[0]!;
      const end = PREFIX_BYTES + this.messageBytes(bytes);
      this.needed = end;
      if (bytes.length < end) break;
      messages.push(bytes.subarray(PREFIX_BYTES, end));
      this.chunks = bytes.length === end ? [] : [bytes.subarray(end)];
      this.length -= end;
      this.needed = PREFIX_BYTES;
    }
    return messages;
  }

  private messageBytes(bytes: Buffer): number {
    if (bytes[0] !== 0) throw new RpcError('UNIMPLEMENTED', 'Compressed messages are not served');
    const length = bytes.readUInt32BE(1);
    if (length > this.maxBytes)
      throw new RpcError('RESOURCE_EXHAUSTED', `A message of ${length} bytes is longer than ${this.maxBytes}`);
    return length;
  }
}
