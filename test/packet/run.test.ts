import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { embeddedSwitch } from './embedded.ts';
import { encodePacket, parsePacket } from './packet-text.ts';
import { runScript } from './run.ts';

const packet = (text: string): Uint8Array => encodePacket(parsePacket(text.split(' '), new Map()));

describe('packets as scripts write them', () => {
  it('become bytes', () => {
    // IPv4 header and checksum worked by hand
    expect(
      Buffer.from(packet('ip src=10.0.0.1 dst=10.0.0.2 udp sport=1 dport=2 payload bytes=3')).toString('hex'),
    ).toBe(
      '020000000002020000000001080045' +
        '00001f000040004011' +
        '26cc' +
        '0a0000010a000002' +
        '00010002000b0000' +
        '000102',
    );
  });

  it('have the fabric header of docs/protocol.md', () => {
    const bytes = packet('fabric type=NACK label=0x01020304 tenant=2 serial=3 block=4 need=9 marks=1 hops=2').subarray(
      42,
    );
    expect(bytes.length).toBe(40);
    const hex = Buffer.from(bytes).toString('hex');
    expect(hex.slice(0, 64)).toBe(
      '13000000' + '01020304' + '0002000000000003' + '00000016' + '00000000' + '00000004' + '00400900',
    );
    expect(hex.slice(72)).toBe('01000200');
  });
});

describe('a packet script fails', () => {
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'ddf-packet-'));
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  const STAGE = [
    'add port_role ingress_port=1 => host_port',
    'add egress_role egress_port=2 => to_host bit=1',
    'add ipv4_lpm ipv4_destination=10.0.0.2/32 => next_hop port=2 source_mac=02:00:00:00:00:0a destination_mac=02:00:00:00:00:0b',
    'let one = ip dst=10.0.0.2 tcp',
    'let out = one ip ttl=63 eth src=02:00:00:00:00:0a dst=02:00:00:00:00:0b',
  ];
  const run = (...lines: string[]): Promise<void> => {
    const path = join(folder, 'script.stf');
    writeFileSync(path, [...STAGE, ...lines].join('\n'));
    return runScript(embeddedSwitch(), path);
  };

  it('only for a reason', async () => {
    await run('packet 1 one', 'expect 2 out', 'packet 1 one ip dst=10.0.0.3', 'no_packet', 'drop NO_ROUTE');
  });

  it('when a frame is missing, and says what happened instead', async () => {
    await expect(run('packet 1 one ip dst=10.0.0.3', 'expect 2 out')).rejects.toThrow(
      /stf:7: expect 2 out\nNothing left by port 2. dropped as no-route/,
    );
  });

  it('when a frame leaves by another port', async () => {
    await expect(run('packet 1 one', 'expect 3 out')).rejects.toThrow('Nothing left by port 3. left by port 2');
  });

  it('when a field differs, and names it', async () => {
    await expect(run('packet 1 one', 'expect 2 out ip ttl=62')).rejects.toThrow(
      /wanted ip .*ttl=0x3e.*\nfound {2}ip .*ttl=0x3f/,
    );
  });

  it('when a frame is not expected, before the next packet and at the end', async () => {
    await expect(run('packet 1 one', 'packet 1 one', 'expect 2 out')).rejects.toThrow(
      /stf:7: packet 1 one\nleft by port 2/,
    );
    await expect(run('packet 1 one')).rejects.toThrow(/at the end\nleft by port 2/);
    await expect(run('packet 1 one', 'no_packet')).rejects.toThrow('left by port 2');
  });

  it('when a drop is not named, or another one is', async () => {
    await expect(run('packet 6 one')).rejects.toThrow('dropped as unknown-port 1 times, not 0');
    await expect(run('packet 6 one', 'drop NO_ROUTE')).rejects.toThrow('dropped as unknown-port 1 times, not 0');
    await expect(run('packet 1 one', 'expect 2 out', 'drop NO_ROUTE')).rejects.toThrow(
      'dropped as no-route 0 times, not 1',
    );
  });

  it('when a counter says something else', async () => {
    const lines = ['packet 1 one', 'expect 2 out'];
    await run(...lines, 'counter egress_port_counter port=2 tagged=0 kind=KIND_IPV4 packets=1 bytes=54');
    await expect(run(...lines, 'counter egress_port_counter port=2 tagged=0 kind=KIND_IPV4 packets=2')).rejects.toThrow(
      'It counted 1 packets, 54 bytes',
    );
  });

  it('when it is not understood', async () => {
    await expect(run('pocket 1 one')).rejects.toThrow('There is no command pocket');
    await expect(run('packet 1 ip colour=3')).rejects.toThrow('ip has no field colour');
    await expect(run('packet 1 two')).rejects.toThrow('"two" is no layer, field or packet');
    await expect(run('packet 1 ip ttl=many')).rejects.toThrow('"many" is no number, address or constant');
    await expect(run('add port_role port=1 => host_port')).rejects.toThrow('The key ingress_port is missing');
    await expect(run('add port_role ingress_port=2 => to_host bit=1')).rejects.toThrow(
      'port_role has no action to_host',
    );
    await expect(run('add egress_role egress_port=3 => to_host')).rejects.toThrow('to_host needs bit');
    await expect(run('drop NONSENSE')).rejects.toThrow('"DROP_NONSENSE" is no number');
    await expect(run('advance 3')).rejects.toThrow('is no time');
  });
});
