import { describe, expect, it } from 'vitest';
import { StreamInbox } from '../../../controller/p4runtime/inbox.ts';
import type { StreamMessageResponse, TableEntry } from '../../../wire/p4runtime/messages.ts';
import { PacketMetadataCodec } from '../../../wire/p4runtime/packet-metadata.ts';
import { messageCodec } from '../../../wire/proto.ts';
import { index, pause, portRole } from '../../conformance/client/fabric.ts';

const response = messageCodec<StreamMessageResponse>('p4.v1.StreamMessageResponse');
const packet = (n: number): StreamMessageResponse =>
  response.create({
    packet: {
      payload: new Uint8Array([n]),
      metadata: [1, 2].map((metadataId) => ({ metadataId, value: new Uint8Array([1]) })),
    },
  });

function open(packetQueueLength: number): { inbox: StreamInbox; acks: bigint[] } {
  const acks: bigint[] = [];
  const inbox = new StreamInbox({ packetQueueLength, acknowledge: ({ listId }) => acks.push(listId) });
  inbox.packetIn = new PacketMetadataCodec(index.controllerHeaders.require('packet_in'));
  return { inbox, acks };
}

const idleNotice = (idleTimeoutNs: bigint): StreamMessageResponse => {
  const entry: TableEntry = { ...portRole(1).tableEntry!, idleTimeoutNs };
  return response.create({ idleTimeoutNotification: { tableEntry: [entry], timestamp: 0n } });
};

describe('the inbox of a stream', () => {
  it('keeps the newest packets of a flood, in order, and everything else', async () => {
    const { inbox, acks } = open(100);
    const packets: number[] = [];
    inbox.onPacket = ({ payload }) => packets.push(payload[0]!);
    inbox.onDigest = () => {};
    inbox.receive(response.create({ digest: { digestId: 1, listId: 5n, data: [], timestamp: 0n } }));
    for (let i = 0; i < 1000; i++) inbox.receive(packet(i & 0xff));
    expect(packets).toEqual([]);
    await pause(20);
    expect(inbox.packetsDropped).toBe(900);
    expect(packets).toEqual(Array.from({ length: 100 }, (_, i) => (900 + i) & 0xff));
    expect(acks).toEqual([5n]);
  });

  it('gives the event loop turns between packets', async () => {
    const { inbox } = open(1000);
    let handled = 0;
    inbox.onPacket = () => handled++;
    for (let i = 0; i < 1000; i++) inbox.receive(packet(1));
    await new Promise((resolve) => setImmediate(resolve));
    expect(handled).toBeGreaterThan(0);
    expect(handled).toBeLessThan(1000);
    await pause(20);
    expect(handled).toBe(1000);
  });

  it('reports an idle entry once per time-out of its own, and anew after another mastership', async () => {
    const { inbox } = open(1);
    let reports = 0;
    inbox.onIdle = () => reports++;
    for (let i = 0; i < 5; i++) inbox.receive(idleNotice(3_600_000_000_000n));
    await pause(5);
    expect(reports).toBe(1);
    inbox.forget();
    inbox.receive(idleNotice(1_000n));
    await pause(5);
    inbox.receive(idleNotice(1_000n));
    await pause(5);
    expect(reports).toBe(3);
  });

  it('hands nothing over after it was closed', async () => {
    const { inbox } = open(10);
    let handled = 0;
    inbox.onPacket = () => handled++;
    inbox.receive(packet(1));
    inbox.close();
    await pause(5);
    expect(handled).toBe(0);
  });
});
