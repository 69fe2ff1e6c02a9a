import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { RpcCode } from '../../../switch/server/rpc-error.ts';
import { Bench, type TestStream } from './client.ts';

const bytes = (...values: number[]): Uint8Array => new Uint8Array(values);
const PACKET = { payload: bytes(0xaa, 0xbb), metadata: [{ metadataId: 1, value: bytes(1, 2) }] };

describe('packets over the stream (B.11)', () => {
  let bench: Bench;
  let primary: TestStream;
  beforeEach(async () => {
    const started = await Bench.startWithProgram();
    bench = started;
    primary = started.primary;
  });
  afterEach(() => bench.stop());

  it('a packet-out goes to the CPU port with its header in front', async () => {
    primary.send({ packet: PACKET });
    primary.arbitrate(1n);
    await primary.nextArbitration();
    expect(bench.device.sent).toEqual([bytes(1, 2, 0xaa, 0xbb)]);
  });

  it('row 75: a packet-out with another set of metadata is not sent', async () => {
    const wrong = [
      [],
      [...PACKET.metadata, ...PACKET.metadata],
      [{ metadataId: 2, value: bytes(1) }],
      [{ metadataId: 1, value: bytes(1, 0, 0) }],
    ];
    for (const metadata of wrong) {
      primary.send({ packet: { ...PACKET, metadata } });
      expect(await primary.nextError()).toMatchObject({
        canonicalCode: RpcCode.INVALID_ARGUMENT,
        packetOut: { packetOut: { payload: PACKET.payload } },
      });
    }
    expect(bench.device.sent).toEqual([]);
  });

  it("row 76: a packet-out that is not the primary's is not sent", async () => {
    const backup = await bench.client.contend(undefined);
    const stranger = bench.client.stream();
    for (const stream of [backup, stranger]) {
      stream.send({ packet: PACKET });
      expect((await stream.nextError()).canonicalCode).toBe(RpcCode.PERMISSION_DENIED);
    }
    expect(bench.device.sent).toEqual([]);
  });

  it('row 77: an ack of an unknown digest list is reported', async () => {
    primary.send({ digestAck: { digestId: 5, listId: 6n } });
    expect(await primary.nextError()).toMatchObject({
      canonicalCode: RpcCode.INVALID_ARGUMENT,
      digestListAck: { digestListAck: { digestId: 5, listId: 6n } },
    });
  });

  it('row 78: packet-ins go to the primary only, and only once there is a pipeline', async () => {
    const backup = await bench.client.contend(undefined);
    bench.device.onCpuFrame!(bytes(0, 7, 2, 0xcc));
    expect((await primary.next()).packet).toEqual({
      payload: bytes(0xcc),
      metadata: [
        { metadataId: 1, value: bytes(7) },
        { metadataId: 2, value: bytes(2) },
      ],
    });
    // Shorter than the header: nothing that could be delivered.
    bench.device.onCpuFrame!(bytes(0, 7));
    backup.arbitrate(undefined);
    await backup.nextArbitration();
    expect(backup.pending + primary.pending).toBe(0);

    const fresh = await Bench.start();
    const stream = await fresh.client.contend(1n);
    fresh.device.onCpuFrame!(bytes(0, 7, 2, 0xcc));
    stream.send({ packet: PACKET });
    expect((await stream.nextError()).canonicalCode).toBe(RpcCode.FAILED_PRECONDITION);
    await fresh.stop();
  });

  it('other and empty messages are reported, the stream goes on', async () => {
    primary.send({ other: { typeUrl: 'type.googleapis.com/x' } });
    expect(await primary.nextError()).toMatchObject({
      canonicalCode: RpcCode.UNIMPLEMENTED,
      other: { other: { typeUrl: 'type.googleapis.com/x' } },
    });
    primary.send({});
    expect((await primary.nextError()).canonicalCode).toBe(RpcCode.INVALID_ARGUMENT);
    primary.arbitrate(1n);
    expect((await primary.nextArbitration()).status).toBe(RpcCode.OK);
  });

  it('row 80: packets to a slow reader are dropped, arbitration is not', async () => {
    primary.call.pause();
    const frame = new Uint8Array(9000);
    for (let i = 0; i < 5000; i++) bench.device.onCpuFrame!(frame);
    await bench.client.contend(2n);
    primary.call.resume();
    let packets = 0;
    for (;;) {
      const message = await primary.next();
      if (message.arbitration !== undefined) {
        expect(message.arbitration.status!.code).toBe(RpcCode.ALREADY_EXISTS);
        break;
      }
      packets++;
    }
    expect(packets).toBeLessThan(5000);
  });
});
