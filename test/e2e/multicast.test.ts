import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { whyNoInterfaces } from '../switch/ports/veth.ts';
import { type LineProcess, NamespaceFabric } from './namespace-fabric.ts';

const GROUP = '239.1.2.3';
const PORT = 5000;

/** Two leaves and a spine. */
const TOPOLOGY = `
name: multicast
mtu: 9000 B
switches:
  - { name: spine1, layer: spine }
  - { name: 'leaf{1..2}', layer: leaf }
hosts:
  - name: mn1
    kind: memory-node
    switch: leaf1
    link: &host { rate: 1 Gb/s, delay: 10 us, queue: 256 frames }
  - { name: 'gpu{1..4}', kind: gpu-server, switch: 'leaf{1..2}', link: *host }
links:
  - between: leaf{1..2}
    and: spine1
    link: { rate: 4 Gb/s, delay: 10 us, queue: 512 frames }
`;

/** Prints what it hears; joins, leaves and says that it did when it is told to. */
const LISTENER = `
const [group, own] = process.argv.slice(1);
const socket = require('node:dgram').createSocket({ type: 'udp4', reuseAddr: true });
socket.on('message', (message) => console.log(String(message)));
socket.bind(${PORT}, () => console.log('bound'));
require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
  if (line === 'join') socket.addMembership(group, own);
  else socket.dropMembership(group, own);
  console.log(line);
});
`;

/** Sends 1, 2, 3, ... to the group, for ever. */
const SPEAKER = `
const [group, own] = process.argv.slice(1);
const socket = require('node:dgram').createSocket('udp4');
let count = 0;
socket.bind(0, () => {
  socket.setMulticastTTL(8);
  socket.setMulticastInterface(own);
  setInterval(() => socket.send(String(++count), ${PORT}, group), 20);
});
`;

const reason = whyNoInterfaces();
const title = `plain sockets on hosts in namespaces, over ddf switch and ddf controller${reason === undefined ? '' : ` (${reason})`}`;

describe.skipIf(reason !== undefined)(title, { timeout: 120_000 }, () => {
  let fabric: NamespaceFabric;
  beforeEach(async () => {
    fabric = await NamespaceFabric.start(TOPOLOGY);
  }, 120_000);
  afterEach(() => fabric?.stop(), 60_000);

  const start = (name: string, program: string): LineProcess =>
    fabric.spawn(name, process.execPath, '-e', program, GROUP, fabric.host(name).ip);
  const framesOf = (name: string): number =>
    Number(fabric.run(name, 'cat', `/sys/class/net/${fabric.deviceOf(name)}/statistics/rx_packets`));
  /** Waits until a host's interface gets nothing, or the next thing, for as long as thirty datagrams take. */
  async function until(name: string, quiet: boolean): Promise<void> {
    for (;;) {
      const before = framesOf(name);
      await new Promise((resolve) => setTimeout(resolve, 600));
      if (quiet === framesOf(name) - before < 3) return;
    }
  }
  async function heard(listener: LineProcess, count: number): Promise<number[]> {
    const numbers: number[] = [];
    while (numbers.length < count) numbers.push(Number(await listener.line()));
    return numbers;
  }

  it('a member hears a group that a host on another leaf sends to, and nothing after it has left', async () => {
    // One of them speaks version 2.
    fabric.run('gpu4', 'sh', '-c', `echo 2 > /proc/sys/net/ipv4/conf/${fabric.deviceOf('gpu4')}/force_igmp_version`);
    const listeners = new Map(['gpu1', 'gpu2', 'gpu3', 'gpu4'].map((name) => [name, start(name, LISTENER)]));
    const listener = (name: string): LineProcess => listeners.get(name)!;
    for (const one of listeners.values()) expect(await one.line()).toBe('bound');
    for (const name of ['gpu1', 'gpu2', 'gpu4']) {
      listener(name).say('join');
      expect(await listener(name).line()).toBe('join');
    }
    start('mn1', SPEAKER);
    for (const name of ['gpu1', 'gpu2', 'gpu4']) {
      const numbers = await heard(listener(name), 20);
      // Every datagram once, in order.
      expect(numbers).toEqual(numbers.map((_, i) => numbers[0]! + i));
    }
    // Who has not joined gets nothing.
    await until('gpu3', true);
    for (const name of ['gpu1', 'gpu4']) {
      await until(name, false);
      listener(name).say('leave');
      await until(name, true);
    }
    await heard(listener('gpu2'), 20);
    // And back again
    listener('gpu4').say('join');
    await until('gpu4', false);
  });
});
