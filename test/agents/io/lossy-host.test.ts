import { expect, test } from 'vitest';
import type { FabricHost, FabricSocket } from '../../../agents/io/fabric-socket.ts';
import { createLossyHost } from '../../../agents/io/lossy-host.ts';
import { createRandom } from '../../../base/random.ts';

/** Hands back what it is sent. */
function mirror(): FabricHost {
  return {
    ip: '10.1.1.1',
    mac: '02:00:00:01:00:01',
    mtuBytes: 9000,
    openSocket(port) {
      const socket: FabricSocket = {
        ip: '10.1.1.1',
        port,
        onDatagram: undefined,
        send: (ip, sourcePort, payload) => socket.onDatagram?.(payload, ip, sourcePort),
        close: () => {},
      };
      return socket;
    },
  };
}

function run(loss: number, seed: number): { got: number[]; lost: { sent: number; received: number } } {
  const host = createLossyHost(mirror(), loss, createRandom(seed));
  const socket = host.openSocket(1);
  const got: number[] = [];
  socket.onDatagram = (payload) => got.push(payload[0]! * 256 + payload[1]!);
  for (let i = 0; i < 2000; i++) socket.send('10.1.1.2', 2, Uint8Array.of(i >> 8, i & 255));
  return { got, lost: host.lost };
}

test('loses its share both ways, the same datagrams for the same seed', () => {
  const { got, lost } = run(0.1, 7);
  expect(got.length + lost.sent + lost.received).toBe(2000);
  expect(lost.sent).toBeGreaterThan(150);
  expect(lost.sent).toBeLessThan(250);
  expect(lost.received).toBeGreaterThan(130);
  expect(lost.received).toBeLessThan(230);
  expect(run(0.1, 7).got).toEqual(got);
  expect(run(0.1, 8).got).not.toEqual(got);
});

test('loses nothing when it is not asked to', () => {
  expect(run(0, 1).got).toHaveLength(2000);
});
