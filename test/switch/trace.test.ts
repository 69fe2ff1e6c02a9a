import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { DdfError } from '../../base/errors.ts';
import { createRandom } from '../../base/random.ts';
import { Device } from '../../switch/device.ts';
import type { PacketTrace, TraceEvent } from '../../switch/trace/events.ts';
import { formatTrace } from '../../switch/trace/format.ts';
import { assign, call, callTable, extract, field, hex, op } from './program-builder.ts';
import { pack, TestDevice } from './test-device.ts';

const PATH = readFileSync(new URL('../packet/programs/path.json', import.meta.url));
const RESOURCES = readFileSync(new URL('../packet/programs/resources.json', import.meta.url));
const FABRIC = readFileSync(new URL('../../p4/build/fabric.json', import.meta.url));

function pathDevice(): TestDevice {
  const device = new TestDevice(PATH);
  device.nowUs = 1000;
  device.control.setCloneSession(5, [{ port: 3, instance: 7 }], 0);
  device.control.setMulticastGroup(1, [
    { port: 1, instance: 11 },
    { port: 6, instance: 12 },
  ]);
  return device;
}

const PAYLOAD = Array.from({ length: 18 }, (_, i) => 0xe0 + i);
const kinds = (trace: PacketTrace, ...wanted: TraceEvent['kind'][]): TraceEvent[] =>
  trace.events.filter(({ kind }) => wanted.includes(kind));

/** A packet of resources.p4. */
function resource(kind: number, name: bigint, address = 0n, flow = 0n): Uint8Array {
  return Uint8Array.from(
    pack([
      [BigInt(kind), 8],
      [name, 72],
      [address, 128],
      [flow, 16],
      [0n, 16],
    ]),
  );
}

const NAME = (7n << 64n) | 0x1234n;

describe('a trace', () => {
  test('of an injected packet changes nothing about what the device does, whatever is asked for', () => {
    const plain = pathDevice();
    const traced = pathDevice();
    for (let value = 0; value < 35; value++)
      for (const port of [4, 9]) {
        const bytes = [value, 5, ...PAYLOAD];
        const expected = plain.run(port, bytes);
        traced.sent.length = 0;
        const trace = traced.device.trace(port, Uint8Array.from(bytes), { inject: true });
        expect(traced.sent.splice(0)).toEqual(expected);
        const transmitted = kinds(trace, 'transmit').map((event) =>
          event.kind === 'transmit' ? { port: event.port, bytes: [...Buffer.from(event.frame, 'hex')] } : undefined,
        );
        expect(transmitted).toEqual(expected);
      }
    expect(traced.device.statistics).toEqual(plain.device.statistics);
  });

  test('of a packet that is only tried leaves no marks', () => {
    const device = new TestDevice(RESOURCES);
    const counted = device.control.tables.get('ResourcesIngress.counted')!;
    const metered = device.control.tables.get('ResourcesIngress.named')!;
    const match = [{ kind: 'exact', value: NAME }] as const;
    const entry = counted.insert(match, 0, { action: 'ResourcesIngress.forward', params: [1n] });
    const limited = metered.insert(match, 0, { action: 'ResourcesIngress.metered', params: [1n] });
    const once = { cir: 0n, cburst: 30n, pir: 0n, pburst: 30n };
    metered.configureMeter(limited, once);
    device.control.meters.get('ResourcesIngress.packets')!.configure(1, { ...once, pburst: 1n, cburst: 1n });
    device.nowUs = 50;
    const frames = [1, 2, 3, 6].map((kind) => resource(kind, NAME, 0n, 1n));
    const before = frames.map((frame) => [...frame]);
    for (let round = 0; round < 2; round++) {
      const traces = frames.map((frame) => device.device.trace(4, frame, { inject: false }));
      expect(traces.map((trace) => kinds(trace, 'transmit', 'drop').map(({ kind }) => kind))).toEqual([
        ['transmit'],
        ['transmit'],
        ['drop'],
        ['transmit'],
      ]);
      // Green both times: colour and indirect_colour are the last two bytes.
      const [coloured, , , indirect] = traces.map(
        (trace) => kinds(trace, 'transmit')[0] as Extract<TraceEvent, { kind: 'transmit' }> | undefined,
      );
      expect([coloured!.frame.slice(-4, -2), indirect!.frame.slice(-2)]).toEqual(['00', '00']);
    }
    expect(frames.map((frame) => [...frame])).toEqual(before);
    expect(counted.counter(entry)).toEqual({ packets: 0n, bytes: 0n });
    expect(counted.lastHitUs(entry)).toBe(0);
    expect(device.sent).toEqual([]);
    expect(device.device.statistics).toMatchObject({ received: 0, transmitted: 0, dropped: 0, errors: 0 });
  });

  test('of a live packet leaves the marks that the packet leaves', () => {
    const device = new TestDevice(RESOURCES);
    const counted = device.control.tables.get('ResourcesIngress.counted')!;
    const entry = counted.insert([{ kind: 'exact', value: NAME }], 0, {
      action: 'ResourcesIngress.forward',
      params: [1n],
    });
    device.nowUs = 50;
    device.device.trace(4, resource(2, NAME), { inject: true });
    expect(counted.counter(entry)).toEqual({ packets: 1n, bytes: 30n });
    expect(counted.lastHitUs(entry)).toBe(50);
    expect(device.device.statistics).toMatchObject({ received: 1, transmitted: 1 });
  });

  test('names tables, keys, entries, actions and parameters as the program does', () => {
    const device = new TestDevice(RESOURCES);
    const addressed = device.control.tables.get('ResourcesIngress.addressed')!;
    addressed.insert(
      [
        { kind: 'ternary', value: 0xabn << 120n, mask: 0xffn << 120n },
        { kind: 'range', low: 1n, high: 9n },
      ],
      7,
      { action: 'ResourcesIngress.forward', params: [300n] },
    );
    const hit = device.device.trace(4, resource(3, 0n, (0xabn << 120n) | 0xcdn, 5n), { inject: false });
    expect(kinds(hit, 'table')).toEqual([
      {
        kind: 'table',
        table: 'ResourcesIngress.addressed',
        keys: [
          { name: 'headers.packet.address', match: 'ternary', value: `0xab${'0'.repeat(28)}cd` },
          { name: 'headers.packet.flow', match: 'range', value: '0x5' },
        ],
        hit: true,
        entry: { match: [`0xab${'0'.repeat(30)}&&&0xff${'0'.repeat(30)}`, '0x1..0x9'], priority: 7 },
        action: { name: 'ResourcesIngress.forward', parameters: [{ name: 'port', value: '0x12c' }] },
      },
    ]);
    expect(kinds(hit, 'parser-state', 'parsed', 'egress', 'transmit')).toMatchObject([
      { kind: 'parser-state', state: 'start' },
      { kind: 'parsed', bytes: 30, headers: ['packet'] },
      { kind: 'egress', port: 300, instance: 0, instanceType: 0 },
      { kind: 'transmit', port: 300, bytes: 30, headers: ['packet'] },
    ]);
    const miss = device.device.trace(4, resource(3, 0n), { inject: false });
    expect(kinds(miss, 'table')).toMatchObject([
      { hit: false, action: { name: 'ResourcesIngress.discard', parameters: [] } },
    ]);
    expect(miss.events.at(-1)).toEqual({ kind: 'drop', at: 'ingress' });
    // The conditions in the words of the source.
    expect(kinds(miss, 'condition').at(-1)).toEqual({
      kind: 'condition',
      condition: 'headers.packet.kind == 3',
      holds: true,
    });
  });

  test('shows clones, copies, resubmission, recirculation and digests in their order', () => {
    const device = pathDevice();
    const steps = (value: number) =>
      kinds(
        device.device.trace(9, Uint8Array.from([value, 5, ...PAYLOAD]), { inject: false }),
        'ingress',
        'clone',
        'digest',
        'resubmit',
        'recirculate',
        'multicast',
        'egress',
        'transmit',
        'drop',
      ).map((event) => {
        if (event.kind === 'ingress') return `ingress ${event.instanceType}`;
        return event.kind === 'egress' ? `egress ${event.port} ${event.instance} ${event.instanceType}` : event.kind;
      });
    expect(steps(4)).toEqual(['ingress 0', 'resubmit', 'ingress 6', 'egress 2 0 0', 'transmit']);
    expect(steps(6)).toEqual(['ingress 0', 'egress 2 0 0', 'clone', 'drop', 'egress 3 7 2', 'transmit']);
    expect(steps(7)).toEqual(['ingress 0', 'egress 2 0 0', 'recirculate', 'ingress 4', 'egress 2 0 0', 'transmit']);
    expect(steps(27)).toEqual([
      'ingress 0',
      'clone',
      'egress 3 7 1',
      'transmit',
      'multicast',
      'egress 1 11 5',
      'transmit',
      'egress 6 12 5',
      'transmit',
    ]);
    expect(steps(31)).toEqual(['ingress 0', 'digest', 'drop']);
    expect(steps(17)).toEqual(['ingress 0', 'drop']);
  });

  test('names the parser error and the numbered reason of a drop', () => {
    const device = new TestDevice(FABRIC);
    const trace = device.device.trace(1, new Uint8Array(5), { inject: false });
    expect(kinds(trace, 'parsed')).toEqual([{ kind: 'parsed', bytes: 0, headers: [], error: 'PacketTooShort' }]);
    const after = kinds(trace, 'metadata')[0] as Extract<TraceEvent, { kind: 'metadata' }>;
    const reason = after.values.find(({ name }) => name.endsWith('drop_reason'))!;
    expect(BigInt(reason.value)).toBeGreaterThan(0n);
    const text = formatTrace(trace, {
      meaning: (name, value) => (name.endsWith('drop_reason') ? `reason ${value}` : undefined),
    });
    expect(text).toContain(`drop_reason=${reason.value} (reason ${BigInt(reason.value)})`);
  });

  test('ends with the fault of the packet, which counts only if it was injected', () => {
    const device = pathDevice();
    const bytes = Uint8Array.from([34, 1, ...PAYLOAD]);
    const tried = device.device.trace(9, bytes, { inject: false });
    expect(tried.events.slice(-2)).toMatchObject([
      { kind: 'log', message: 'value 1 from port 9' },
      { kind: 'fault', message: 'An assertion of the switch program failed' },
    ]);
    expect(device.device.statistics.errors).toBe(0);
    device.device.trace(9, bytes, { inject: true });
    expect(device.device.statistics).toMatchObject({ errors: 1, failedAssertions: 1 });
    expect(device.run(9, [0, 5, ...PAYLOAD]).length).toBe(1);
  });

  test('is cut when a packet has no end', () => {
    const device = new TestDevice({
      headers: { h: [['x', 8]] },
      states: [{ name: 'start', operations: [extract('h')] }],
      actions: [
        {
          name: 'around',
          primitives: [call('recirculate', hex(1)), assign(field('h', 'x'), op('+', field('h', 'x'), hex(1)))],
        },
      ],
      egress: { tables: [callTable('around')] },
      root: { field_lists: [{ id: 1, name: 'none', elements: [] }] },
    });
    const { events } = device.device.trace(1, Uint8Array.of(1), { inject: true });
    expect(events.length).toBeLessThanOrEqual(10_001);
    expect(device.device.statistics.errors).toBe(1);
    expect(device.run(1, [1])).toEqual([]);
    expect(device.device.statistics.errors).toBe(2);
  });
});

describe('tracing the next packets', () => {
  test('gives so many of a port, and ends', () => {
    const device = pathDevice();
    const traces: PacketTrace[] = [];
    device.device.traceNext({ port: 9 }, 2, (trace) => traces.push(trace));
    for (const port of [4, 9, 4, 9, 9]) device.run(port, [0, 5, ...PAYLOAD]);
    expect(traces.map(({ port, atUs }) => [port, atUs])).toEqual([
      [9, 1000],
      [9, 1000],
    ]);
    expect(device.device.statistics).toMatchObject({ received: 5, transmitted: 5 });
  });

  test('can be given up, and serves several at once', () => {
    const device = pathDevice();
    const ports: number[] = [];
    const cancel = device.device.traceNext({}, 1000, ({ port }) => ports.push(port));
    device.device.traceNext({ port: 4 }, 1, ({ port }) => ports.push(100 + port));
    device.run(4, [0, 5, ...PAYLOAD]);
    cancel();
    cancel();
    device.run(4, [0, 5, ...PAYLOAD]);
    expect(ports).toEqual([4, 104]);
  });

  test('is bounded', () => {
    const device = pathDevice();
    const refused = (count: number) => () => device.device.traceNext({}, count, () => {});
    for (const count of [0, -1, 1.5, 1001]) expect(refused(count)).toThrow(DdfError);
    for (let i = 0; i < 16; i++) refused(1)();
    expect(refused(1)).toThrow('already traces for 16 others');
    device.run(4, [0, 5, ...PAYLOAD]);
    refused(1)();
  });

  test('needs a program, and no other packet in the works', () => {
    const bare = new Device({ deviceId: 1n, cpuPort: 510, clock: { nowUs: () => 0 }, random: createRandom(1) });
    expect(() => bare.trace(1, new Uint8Array(1), { inject: false })).toThrow('runs no program');
    const device = pathDevice();
    let refusal: unknown;
    device.device.onTransmit = () => {
      try {
        device.device.trace(1, Uint8Array.from([0, 5, ...PAYLOAD]), { inject: true });
      } catch (error) {
        refusal = error;
      }
    };
    device.device.receive(1, Uint8Array.from([0, 5, ...PAYLOAD]));
    expect(refusal).toMatchObject({ code: 'CONFLICT' });
  });
});

describe('the text of a trace', () => {
  test('has one event a line, what belongs to a pipeline below it', () => {
    const device = new TestDevice(RESOURCES);
    device.control.tables
      .get('ResourcesIngress.routed')!
      .insert([{ kind: 'lpm', value: 1n << 120n, prefixLength: 8 }], 0, {
        action: 'ResourcesIngress.forward',
        params: [3n],
      });
    const text = formatTrace(device.device.trace(4, resource(4, 0n, (1n << 120n) | 2n), { inject: false }));
    expect(text.split('\n').filter((line) => !/if|action resources/.test(line))).toEqual([
      'packet on port 4 at 0 us',
      '  ingress port 4, 30 bytes: 0400000000000000000001000000000000000000000000000002000000000000'.slice(0, -4),
      '    parser state start',
      '    parsed 30 bytes: packet',
      '    table ResourcesIngress.routed [headers.packet.address=0x1000000000000000000000000000002]: hit',
      '        entry 0x1000000000000000000000000000000/8',
      '        action ResourcesIngress.forward(port=0x3)',
      '    after ingress: metadata_t.colour=0x3 standard_metadata.egress_spec=0x3',
      '  egress port 3, instance 0',
      '    after egress: metadata_t.colour=0x3',
      '    transmit on port 3, 30 bytes (packet): 040000000000000000000100000000000000000000000000000200000300',
      '',
    ]);
  });
});
