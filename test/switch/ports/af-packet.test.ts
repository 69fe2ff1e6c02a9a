import { existsSync } from 'node:fs';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type Libc, loadLibc } from '../../../base/linux/libc.ts';
import { AfPacketPort } from '../../../switch/ports/af-packet.ts';
import { InterfaceControl } from '../../../switch/ports/linux/interface.ts';
import type { LinkState } from '../../../switch/ports/linux/link-monitor.ts';
import type { Frame } from '../../../switch/ports/port.ts';
import { PortLoop } from '../../../switch/ports/port-loop.ts';
import { handOver } from '../../../switch/runtime/frames.ts';
import { ip, tag, whyNoInterfaces } from './veth.ts';

const reason = whyNoInterfaces();
const A = `dta${tag}`;
const B = `dtb${tag}`;
const MTU = 9500;

async function until(condition: () => boolean, what: string): Promise<void> {
  for (let i = 0; !condition(); i++) {
    if (i === 500) throw new Error(`${what} did not happen`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

/** EtherType of the experiments (IEEE 802), so that the kernel does not care. */
function frameOf(length: number, fill = 0): Frame {
  const frame = new Uint8Array(length).fill(fill);
  frame.set([2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x88, 0xb5].slice(0, length));
  return frame;
}

function send(port: AfPacketPort, frame: Frame): void {
  handOver(frame, (memory, start, end) => port.send(memory, start, end));
}

describe.skipIf(reason !== undefined)(`a port on an interface${reason === undefined ? '' : ` (${reason})`}`, () => {
  let libc: Libc;
  let interfaces: InterfaceControl;
  let a: AfPacketPort;
  let b: AfPacketPort;
  let loop: PortLoop;
  let received: Frame[];
  let changes: [string, LinkState][];
  let failures: string[];

  beforeAll(async () => {
    libc = await loadLibc();
    interfaces = new InterfaceControl(libc);
  });
  afterAll(() => interfaces.close());

  const addInterfaces = (): void => {
    ip('link', 'add', A, 'mtu', String(MTU), 'type', 'veth', 'peer', 'name', B, 'mtu', String(MTU));
    for (const name of [A, B]) ip('link', 'set', name, 'addrgenmode', 'none', 'up');
  };

  beforeEach(() => {
    addInterfaces();
    a = new AfPacketPort(libc, interfaces, A);
    b = new AfPacketPort(libc, interfaces, B);
    received = [];
    changes = [];
    failures = [];
    b.onFrame = (memory, start, end) => received.push(memory.bytes.slice(start, end));
    loop = new PortLoop(libc, interfaces, [a, b], {
      onLink: (port, state) => changes.push([port.interfaceName, state]),
      onReturn(old, fresh) {
        fresh.onFrame = old.onFrame;
        if (old === a) a = fresh;
        else b = fresh;
      },
      onReturnFailed: (_, error) => failures.push(error.message),
    });
    loop.start();
  });
  afterEach(async () => {
    await loop.stop();
    a.close();
    b.close();
    try {
      ip('link', 'delete', A);
    } catch {
      // A test has deleted it.
    }
  });

  it('carries frames of all lengths, in order and unchanged', async () => {
    const lengths = [14, 15, 59, 60, 64, 1400, 1514, 4096, 9014, MTU + 14];
    const frames = lengths.map((length, i) => frameOf(length, i));
    for (const frame of frames) send(a, frame.slice());
    await until(() => received.length === frames.length, 'arrival');
    expect(received.map((frame) => Buffer.from(frame).equals(frames[received.indexOf(frame)]!))).toEqual(
      frames.map(() => true),
    );
    expect(a.statistics()).toMatchObject({ framesSent: frames.length, tooLong: 0, sendFailed: 0, framesReceived: 0 });
    expect(b.statistics()).toMatchObject({ framesReceived: frames.length, ringDropped: 0, unusable: 0 });
  });

  it('carries many more frames than its ring holds', async () => {
    const count = 20_000;
    for (let sent = 0; sent < count; ) {
      for (const end = Math.min(count, sent + 100); sent < end; sent++) {
        const frame = frameOf(64);
        new DataView(frame.buffer).setUint32(20, sent);
        send(a, frame);
      }
      // Senders here are faster than the reader, who has to get its turn.
      await until(() => received.length > sent - 200, 'arrival');
    }
    await until(() => received.length === count, 'arrival');
    expect(received.every((frame, i) => new DataView(frame.buffer).getUint32(20) === i)).toBe(true);
  });

  it('passes frames on from one ring to the other port without a copy', async () => {
    b.onFrame = (memory, start, end) => b.send(memory, start, end);
    a.onFrame = (memory, start, end) => received.push(memory.bytes.slice(start, end));
    for (let i = 0; i < 300; i++) send(a, frameOf(1000 + i, i));
    await until(() => received.length === 300, 'return');
    expect(received.every((frame, i) => frame.length === 1000 + i && frame[900] === (i & 0xff))).toBe(true);
  });

  it('puts VLAN tags back that the kernel took out', async () => {
    const tagged = frameOf(MTU + 18, 7);
    tagged.set([0x81, 0x00, 0x60, 0x2a, 0x88, 0xb5], 12);
    const service = frameOf(200, 9);
    service.set([0x88, 0xa8, 0x00, 0x07, 0x81, 0x00, 0x00, 0x08, 0x88, 0xb5], 12);
    send(a, tagged.slice());
    send(a, service.slice());
    await until(() => received.length === 2, 'arrival');
    expect([Buffer.from(received[0]!), Buffer.from(received[1]!)]).toEqual([Buffer.from(tagged), Buffer.from(service)]);
  });

  it('counts what cannot be sent', async () => {
    send(a, frameOf(13));
    send(a, frameOf(MTU + 100));
    send(a, frameOf(100));
    await until(() => received.length === 1, 'arrival');
    expect(a.statistics()).toMatchObject({ framesSent: 1, tooLong: 1, sendFailed: 1 });
  });

  it('takes frames that have become larger than its slots, when the MTU was raised', async () => {
    for (const name of [A, B]) ip('link', 'set', name, 'mtu', '12000');
    send(a, frameOf(12_014, 5));
    send(a, frameOf(100, 6));
    await until(() => received.length === 2, 'arrival');
    expect(received.map((frame) => [frame.length, frame[50]])).toEqual([
      [12_014, 5],
      [100, 6],
    ]);
  });

  it('notices that an interface goes down, comes up, and is deleted', async () => {
    ip('link', 'set', B, 'down');
    await until(() => b.state === 'down', 'down');
    send(a, frameOf(100));
    await new Promise((resolve) => setTimeout(resolve, 20));
    ip('link', 'set', B, 'up');
    await until(() => b.state === 'up', 'up');
    send(a, frameOf(101));
    await until(() => received.length === 1, 'arrival');
    ip('link', 'delete', A);
    await until(() => a.state === 'gone' && b.state === 'gone', 'deletion');
    send(a, frameOf(100));
    a.flush();
    expect(a.statistics().sendFailed).toBeGreaterThan(0);
    expect(changes.filter(([name]) => name === B).map(([, state]) => state)).toEqual(['down', 'up', 'down', 'gone']);
  });

  it('takes interfaces again that were deleted and made anew, as often as they are', async () => {
    for (let round = 1; round <= 3; round++) {
      const before = [a, b];
      ip('link', 'delete', A);
      if (round > 1) await until(() => a.state === 'gone' && b.state === 'gone', 'deletion');
      addInterfaces();
      await until(() => !before.includes(a) && !before.includes(b) && a.state === 'up' && b.state === 'up', 'return');
      send(a, frameOf(100 * round));
      await until(() => received.length === round, 'arrival');
    }
    expect(received.map(({ length }) => length)).toEqual([100, 200, 300]);
    expect(failures).toEqual([]);
    expect(changes.filter(([name, state]) => name === B && state === 'gone')).toHaveLength(3);
  });

  it.skipIf(!existsSync('/dev/net/tun'))('does not take what has only the name of one that is gone', async () => {
    ip('link', 'delete', A);
    await until(() => a.state === 'gone' && b.state === 'gone', 'deletion');
    // A tunnel is not Ethernet.
    ip('tuntap', 'add', A, 'mode', 'tun');
    await until(() => failures.length > 0, 'refusal');
    expect(failures[0]).toMatch(/not Ethernet/);
    expect(a.state).toBe('gone');
    ip('tuntap', 'delete', A, 'mode', 'tun');
    addInterfaces();
    await until(() => a.state === 'up' && b.state === 'up', 'return');
  });

  it('says what is wrong with an interface', () => {
    const open = (name: string) => () => new AfPacketPort(libc, interfaces, name).close();
    expect(open('nosuchinterface')).toThrow(/There is no network interface nosuchinterface/);
    expect(open('lo')).toThrow(/not Ethernet/);
    expect(open('interface-of-16b')).toThrow(/1 to 15 bytes/);
  });
});
