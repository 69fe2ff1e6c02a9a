import { expect, test } from 'vitest';
import { createUdpHost } from '../../../agents/io/udp-host.ts';

test('datagrams of the kernel arrive with their source', async () => {
  const host = createUdpHost('127.0.0.1', 9000);
  const receiver = host.openSocket(56_901);
  const sender = host.openSocket(56_902);
  const got = new Promise<string>((resolve) => {
    receiver.onDatagram = (payload, ip, port) => resolve(`${Buffer.from(payload).toString()} from ${ip}:${port}`);
  });
  const bytes = Buffer.from('hello');
  // Sockets bind in the background: the first datagram may come before the receiver is there.
  const again = setInterval(() => sender.send('127.0.0.1', 56_901, bytes), 20);
  expect(await got).toBe('hello from 127.0.0.1:56902');
  clearInterval(again);
  receiver.close();
  receiver.close();
  sender.close();
  sender.send('127.0.0.1', 56_901, bytes);
});

test('an address that no interface has is refused', () => {
  expect(() => createUdpHost('203.0.113.77', 9000)).toThrow(expect.objectContaining({ code: 'INVALID_OPTION' }));
});

test('a port that is taken is reported', async () => {
  const host = createUdpHost('127.0.0.1', 9000);
  const first = host.openSocket(56_903);
  const second = host.openSocket(56_903);
  await expect(second.whenBound).rejects.toMatchObject({ code: 'ADDRESS_IN_USE' });
  expect(() => second.send('127.0.0.1', 1, new Uint8Array(1))).toThrow(
    expect.objectContaining({ code: 'ADDRESS_IN_USE' }),
  );
  first.close();
  second.close();
});
