import { status } from '@grpc/grpc-js';
import { expect } from 'vitest';
import type { ReceivedPacket } from '../../../controller/p4runtime/connection.ts';
import type { StreamMessageResponse } from '../../../wire/p4runtime/messages.ts';
import type { MessageInput } from '../../../wire/proto.ts';
import { verdict } from '../../controller/p4runtime/fake-server.ts';
import type { Checks } from '../rows.ts';
import type { ClientContext } from './checks.ts';
import { pause, pipeline, portRole, soon, withReconciler } from './fabric.ts';

const digest = (listId: bigint): MessageInput<StreamMessageResponse> => ({ digest: { digestId: 0x17000001, listId } });

/** A packet-in whose metadata are padded and not in the order of the P4Info. */
const packetIn = (port: number): MessageInput<StreamMessageResponse> => ({
  packet: {
    payload: new Uint8Array([port]),
    metadata: [
      { metadataId: 2, value: new Uint8Array([1]) },
      { metadataId: 1, value: new Uint8Array([0, 0, port]) },
    ],
  },
});

/** Rows about what comes and goes over the stream. */
export const STREAM_CHECKS: Checks<ClientContext> = {
  54: async ({ server, connectPrimary }) => {
    const connection = await connectPrimary();
    const entry = { ...portRole(1).tableEntry!, idleTimeoutNs: 3_600_000_000_000n };
    const idle: number[] = [];
    connection.onIdle = (entries) => idle.push(entries.length);
    await withReconciler(connection, [portRole(1)], async (reconciler, events) => {
      await reconciler.converge();
      for (let i = 0; i < 3; i++) server.send({ idleTimeoutNotification: { tableEntry: [entry] } });
      await soon(() => expect(idle).toEqual([1]));
      // Acting on it: the entry is to go, and has gone already.
      server.answerWrite = ({ updates }) => ({ codes: updates.map(() => status.NOT_FOUND) });
      reconciler.removeDesired('test');
      await reconciler.converge();
      expect(events.at(-1)).toEqual({ type: 'converged', inserted: 0, modified: 0, deleted: 1 });
      expect(server.reads).toHaveLength(1);
    });
  },
  74: async ({ server, connectPrimary }) => {
    const connection = await connectPrimary();
    const handled: bigint[] = [];
    let finish: (() => void) | undefined;
    connection.onDigest = async ({ listId }) => {
      handled.push(listId);
      if (listId === 2n && handled.length === 2) throw new Error('not now');
      await new Promise<void>((resolve) => {
        finish = resolve;
      });
    };
    server.send(digest(1n));
    await soon(() => expect(handled).toEqual([1n]));
    await pause(10);
    expect(server.acks).toEqual([]);
    finish!();
    await soon(() => expect(server.acks.map(({ listId }) => listId)).toEqual([1n]));
    // One that failed is not acknowledged; the switch sends it again. One that comes again although it was acknowledged was not lost: only the ack was.
    server.send(digest(2n));
    await soon(() => expect(handled).toEqual([1n, 2n]));
    server.send(digest(1n));
    await soon(() => expect(server.acks.map(({ listId }) => listId)).toEqual([1n, 1n]));
    server.send(digest(2n));
    await soon(() => expect(handled).toEqual([1n, 2n, 2n]));
    finish!();
    await soon(() => expect(server.acks.map(({ listId }) => listId)).toEqual([1n, 1n, 2n]));
    expect(server.acks.every(({ digestId }) => digestId === 0x17000001)).toBe(true);
  },
  79: async ({ server, connectPrimary }) => {
    const connection = await connectPrimary();
    await connection.setPipeline(pipeline);
    const received: ReceivedPacket[] = [];
    connection.onPacket = (packet) => received.push(packet);
    server.send(packetIn(7));
    await soon(() => expect(received).toHaveLength(1));
    expect(received[0]).toEqual({ payload: new Uint8Array([7]), metadata: { ingress_port: 7n, reason: 1n } });
    // A field that is too wide, unknown, or missing: not a packet of this program.
    const bad = [[1, 0x1_00_00], [9, 1], [1]] as const;
    for (const [metadataId, value = 1] of bad)
      server.send({
        packet: {
          payload: new Uint8Array([1]),
          metadata: [{ metadataId, value: new Uint8Array([value >> 16, value >> 8, value]) }],
        },
      });
    await soon(() => expect(connection.packetsDropped).toBe(3));
    expect(connection.sendPacket(new Uint8Array([1]), { egress_port: 0x102n })).toBe(true);
    await soon(() => expect(server.packetsOut).toHaveLength(1));
    expect(server.packetsOut[0]?.metadata).toEqual([{ metadataId: 1, value: new Uint8Array([1, 2]) }]);
  },
  80: async ({ server, connectPrimary }) => {
    const connection = await connectPrimary({ packetQueueLength: 8 });
    await connection.setPipeline(pipeline);
    const received: number[] = [];
    const others: string[] = [];
    connection.onPacket = ({ payload }) => {
      // A slow consumer: everything else has arrived by the time it has read one packet.
      if (received.length === 0) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 50);
      received.push(payload[0]!);
    };
    connection.onDigest = () => void others.push('digest');
    connection.onIdle = () => others.push('idle');
    for (let i = 0; i < 200; i++) server.send(packetIn(i));
    server.send(digest(1n));
    server.send({ idleTimeoutNotification: { tableEntry: [portRole(1).tableEntry!] } });
    server.send({ arbitration: verdict(status.ALREADY_EXISTS, { high: 9n, low: 0n }) });
    await soon(() => expect(connection.state).toBe('backup'));
    await soon(() => expect(received.at(-1)).toBe(199));
    expect(others.sort()).toEqual(['digest', 'idle']);
    expect(received.length + connection.packetsDropped).toBe(200);
  },
};
