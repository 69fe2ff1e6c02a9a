import { afterEach, describe, expect, test } from 'vitest';
import { BatchedSocket } from '../../../agents/io/linux/batched-socket.ts';
import { EAGAIN, EIO, EPERM } from '../../../base/linux/abi.ts';
import { type Libc, loadLibc } from '../../../base/linux/libc.ts';

const HERE = '127.0.0.1';
const [RECEIVER_PORT, SENDER_PORT] = [56_911, 56_912];

const found = await loadLibc().then(
  (libc) => ({ libc, reason: undefined }),
  (error: Error) => ({ libc: undefined, reason: error.message }),
);

/** Direct calls, of which sendmmsg fails with the errors of a list first; 0 lets a call through, for one message. */
function refusing(libc: Libc, errors: number[]): { libc: Libc; calls: () => number } {
  let errno = 0;
  let calls = 0;
  return {
    calls: () => calls,
    libc: {
      ...libc,
      sendmmsg(fd, messages, count, flags) {
        calls++;
        errno = errors.shift() ?? -1;
        if (errno > 0) return -1;
        return libc.sendmmsg(fd, messages, errno === 0 ? 1 : count, flags);
      },
      errno: () => (errno > 0 ? errno : libc.errno()),
    },
  };
}

describe.skipIf(found.libc === undefined)(
  `what the kernel refuses${found.reason === undefined ? '' : ` (skipped: ${found.reason})`}`,
  () => {
    const opened: BatchedSocket[] = [];
    afterEach(() => {
      for (const socket of opened.splice(0)) socket.close();
    });

    function pair(errors: number[], segmentation = true) {
      const { libc, calls } = refusing(found.libc!, errors);
      const receiver = new BatchedSocket(found.libc!, HERE, RECEIVER_PORT, 9000);
      const sender = new BatchedSocket(libc, HERE, SENDER_PORT, 9000, { segmentation });
      opened.push(receiver, sender);
      const got: number[] = [];
      receiver.onDatagram = (payload) => got.push(payload[0]!);
      const send = (number: number, length = 1000): void =>
        sender.send(HERE, RECEIVER_PORT, new Uint8Array(length).fill(number));
      const receive = (): number[] => {
        while (receiver.receive());
        return got.splice(0);
      };
      return { sender, send, receive, calls };
    }

    test('without room datagrams wait, in their order, and the socket says so', () => {
      const { sender, send, receive } = pair([EAGAIN, 0, EAGAIN], false);
      for (let i = 0; i < 5; i++) send(i);
      expect(sender.hasRoom).toBe(true);
      expect(sender.flush()).toBe(false);
      expect(sender.hasRoom).toBe(false);
      expect(receive()).toEqual([]);
      // One message leaves, then there is no room again; what comes meanwhile goes behind the rest.
      expect(sender.flush()).toBe(false);
      send(5);
      expect(receive()).toEqual([0]);
      expect(sender.flush()).toBe(true);
      expect(sender.hasRoom).toBe(true);
      expect(receive()).toEqual([1, 2, 3, 4, 5]);
      expect(sender.statistics()).toMatchObject({ datagramsSent: 6, sendsDeferred: 2, sendsFailed: 0 });
    });

    test('a joined message waits as a whole, and takes more of its kind', () => {
      const { sender, send, receive } = pair([EAGAIN]);
      for (let i = 0; i < 5; i++) send(i);
      expect(sender.flush()).toBe(false);
      for (let i = 5; i < 8; i++) send(i);
      expect(sender.flush()).toBe(true);
      expect(receive()).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
      expect(sender.statistics()).toMatchObject({ datagramsSent: 8, sendCalls: 1 });
    });

    test('what is handed in without room beyond what may wait is counted, not sent', () => {
      const { sender, send, receive } = pair(new Array(10_000).fill(EAGAIN), false);
      for (let i = 0; i < 1000; i++) send(i & 127);
      expect(sender.hasRoom).toBe(false);
      const waiting = 1000 - sender.statistics().sendsFailed;
      expect(waiting).toBeGreaterThan(64);
      expect(receive()).toEqual([]);
      expect(sender.statistics().datagramsSent).toBe(0);
    });

    test('where messages cannot be joined they are sent one by one, and none is joined any more', () => {
      const { sender, send, receive, calls } = pair([EIO]);
      for (let i = 0; i < 5; i++) send(i);
      send(5, 300);
      expect(sender.flush()).toBe(true);
      expect(receive()).toEqual([0, 1, 2, 3, 4, 5]);
      expect(calls()).toBe(1 + 6);
      for (let i = 6; i < 9; i++) send(i);
      expect(sender.flush()).toBe(true);
      expect(receive()).toEqual([6, 7, 8]);
      expect(sender.statistics()).toMatchObject({ datagramsSent: 9, sendsFailed: 0 });
    });

    test('a joined message that is sent one by one may run out of room in the middle', () => {
      const { sender, send, receive } = pair([EIO, 0, 0, EAGAIN]);
      for (let i = 0; i < 5; i++) send(i);
      expect(sender.flush()).toBe(false);
      expect(receive()).toEqual([0, 1]);
      expect(sender.flush()).toBe(true);
      expect(receive()).toEqual([2, 3, 4]);
      expect(sender.statistics()).toMatchObject({ datagramsSent: 5, sendsDeferred: 1, sendsFailed: 0 });
    });

    test('a datagram that is refused for good is counted, and those behind it leave', () => {
      const { sender, send, receive } = pair([0, EPERM], false);
      for (let i = 0; i < 4; i++) send(i);
      expect(sender.flush()).toBe(true);
      expect(receive()).toEqual([0, 2, 3]);
      expect(sender.statistics()).toMatchObject({ datagramsSent: 3, sendsFailed: 1 });
    });

    test('joined messages end at 64 segments and at 65,507 bytes', () => {
      const { sender, send, receive } = pair([]);
      for (let i = 0; i < 130; i++) send(i & 127, 20);
      sender.flush();
      expect(receive().length).toBe(130);
      for (let i = 0; i < 20; i++) send(i, 8900);
      sender.flush();
      expect(receive()).toEqual(Array.from({ length: 20 }, (_, i) => i));
      expect(sender.statistics()).toMatchObject({ datagramsSent: 150, sendsFailed: 0, sendCalls: 2 });
    });

    test('what a full receive buffer lost is counted', () => {
      const { sender, send, receive } = pair([]);
      // More than the buffer takes, whatever the system allows: a datagram of 8,900 bytes weighs about twice as much.
      const count = 12_000;
      for (let i = 0; i < count; i++) {
        send(1, 8900);
        if (i % 16 === 15) sender.flush();
      }
      sender.flush();
      const received = receive().length;
      const { receivesLost } = opened[0]!.statistics();
      expect(received).toBeLessThan(count);
      expect(received + receivesLost).toBe(count);
    });

    test('a datagram that is too long is refused', () => {
      const { send } = pair([]);
      expect(() => send(1, 65_508)).toThrow(expect.objectContaining({ code: 'INVALID_PACKET' }));
    });
  },
);
