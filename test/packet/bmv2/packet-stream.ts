import { Client, credentials, type ServiceError, status } from '@grpc/grpc-js';
import protobuf from 'protobufjs';

/**
 * The second gRPC server of simple_switch_grpc (`--dp-grpc-server-addr`): frames in and out of its ports without interfaces. A frame that it sends
 * has the id of the frame that caused it.
 */
const SCHEMA = `
syntax = "proto3";
package p4.bm;

message PacketStreamRequest {
  uint64 id = 1;
  uint64 device_id = 2;
  uint32 port = 3;
  bytes packet = 4;
}

message PacketStreamResponse {
  uint64 id = 1;
  uint64 device_id = 2;
  uint32 port = 3;
  bytes packet = 4;
}
`;

const root = protobuf.parse(SCHEMA).root;
const requestType = root.lookupType('p4.bm.PacketStreamRequest');
const responseType = root.lookupType('p4.bm.PacketStreamResponse');

/** A frame at a port; `id` is not 0 and unique within an {@link exchange}. */
export interface StreamFrame {
  readonly id: number;
  readonly port: number;
  readonly frame: Uint8Array;
}

const DEADLINE_MS = 60_000;
const READY_MS = 10_000;
const RETRY_MS = 20;
/** How long it may take the switch to notice that a stream has begun. */
const ATTACH_MS = 100;

export class PacketStream {
  private readonly client: Client;
  private readonly deviceId: number;

  constructor(address: string, deviceId: number) {
    this.client = new Client(address, credentials.createInsecure());
    this.deviceId = deviceId;
  }

  close(): void {
    this.client.close();
  }

  /** The switch serves streams a little later than P4Runtime. */
  async whenReady(): Promise<void> {
    for (const end = Date.now() + READY_MS; ; await pause(RETRY_MS)) {
      try {
        await this.exchange([]);
        return;
      } catch (error) {
        if ((error as ServiceError).code !== status.UNAVAILABLE || Date.now() > end) throw error;
      }
    }
  }

  /**
   * Sends frames and gives all that left because of them, in the order in which it left.
   *
   * The switch ends the stream when no packet is left inside it, so nothing has to be waited for.
   * @param meanwhile what else may make packets leave; the stream stays open until it is done
   */
  exchange(frames: readonly StreamFrame[], meanwhile?: () => Promise<void>): Promise<StreamFrame[]> {
    return new Promise((resolve, reject) => {
      const left: StreamFrame[] = [];
      const stream = this.client.makeBidiStreamRequest(
        '/p4.bm.DataplaneInterface/PacketStream',
        (request: object) => Buffer.from(requestType.encode(requestType.fromObject(request)).finish()),
        (bytes: Buffer) => readResponse(bytes),
        { deadline: Date.now() + DEADLINE_MS },
      );
      stream.on('data', (frame: StreamFrame) => left.push(frame));
      stream.on('error', (error: ServiceError) => reject(error));
      stream.on('status', ({ code }) => {
        if (code === status.OK) resolve(left);
      });
      for (const { id, port, frame } of frames) stream.write({ id, deviceId: this.deviceId, port, packet: frame });
      if (meanwhile === undefined) {
        stream.end();
        return;
      }
      setTimeout(() => {
        meanwhile().then(
          () => stream.end(),
          (error: unknown) => {
            stream.cancel();
            reject(error);
          },
        );
      }, ATTACH_MS);
    });
  }
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

function readResponse(bytes: Buffer): StreamFrame {
  const { id, port, packet } = responseType.toObject(responseType.decode(bytes), { longs: Number, defaults: true });
  return { id, port, frame: Uint8Array.from(packet) };
}
