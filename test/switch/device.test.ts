import { readFileSync } from 'node:fs';
import pino from 'pino';
import { describe, expect, test } from 'vitest';
import { DdfError } from '../../base/errors.ts';
import { createRandom } from '../../base/random.ts';
import { Device } from '../../switch/index.ts';
import { assign, buildProgram, callTable, extract, field, hex, named, op, send, standard } from './program-builder.ts';
import { TestDevice } from './test-device.ts';

function bareDevice(): Device {
  return new Device({ deviceId: 3n, cpuPort: 510, clock: { nowUs: () => 0 }, random: createRandom(1) });
}

/** Sends everything back with the first byte one higher. */
const echo = buildProgram({
  headers: { h: [['x', 8]] },
  states: [{ name: 'start', operations: [extract('h')] }],
  actions: [
    {
      name: 'echo',
      primitives: [
        assign(field('h', 'x'), op('+', field('h', 'x'), hex(1))),
        assign(standard('egress_spec'), standard('ingress_port')),
      ],
    },
  ],
  ingress: { tables: [callTable('echo')] },
});

describe('a device', () => {
  test('drops what comes before it has a program', () => {
    const device = bareDevice();
    device.receive(1, Uint8Array.of(1));
    expect(device.statistics).toMatchObject({ received: 1, dropped: 1, transmitted: 0 });
    expect(device.program).toBeUndefined();
  });

  test('keeps what runs when a program does not compile', () => {
    const device = bareDevice();
    const control = device.load(device.compile(echo));
    expect(() => device.compile(Uint8Array.of(1, 2))).toThrow(DdfError);
    expect(() => device.compile(new TextEncoder().encode('{"__meta__":{"version":[9,0]}}'))).toThrow(DdfError);
    expect(device.program).toBe(control);
    let out = 0;
    device.onTransmit = () => out++;
    device.receive(1, Uint8Array.of(1));
    expect(out).toBe(1);
  });

  test('starts with nothing of the state that was before', () => {
    const device = bareDevice();
    const program = device.compile(buildProgram({ registers: [{ name: 'r', id: 0, size: 4, bitwidth: 32 }] }));
    expect(program.control.registers.get('r')!.size).toBe(4);
    const first = device.load(program);
    first.registers.get('r')!.write(1, 5n);
    expect(device.load(program).registers.get('r')!.read(1)).toBe(0n);
    expect(() => bareDevice().load(program)).toThrow(/not compiled by this device/);
  });

  test('exchanges frames with the CPU by its port', () => {
    const device = bareDevice();
    device.load(device.compile(echo));
    const up: number[][] = [];
    device.onCpuFrame = (frame) => up.push([...frame]);
    device.onTransmit = () => expect.unreachable();
    device.sendFromCpu(Uint8Array.of(7, 8));
    expect(up).toEqual([[8, 8]]);
    expect(device.statistics).toMatchObject({ received: 1, transmitted: 1 });
  });

  test('lets a frame wait that an output brings back at once', () => {
    const device = bareDevice();
    device.load(device.compile(echo));
    const order: string[] = [];
    device.onTransmit = (port, frame) => {
      order.push(`sent ${port}:${frame[0]}`);
      if (frame[0]! < 4) device.receive(port + 1, frame);
      order.push(`returned ${frame[0]}`);
    };
    device.receive(1, Uint8Array.of(0));
    expect(order).toEqual([
      'sent 1:1',
      'returned 1',
      'sent 2:2',
      'returned 2',
      'sent 3:3',
      'returned 3',
      'sent 4:4',
      'returned 4',
    ]);
  });

  test('bounds what waits', () => {
    const device = bareDevice();
    device.load(device.compile(echo));
    let flood = true;
    device.onTransmit = () => {
      if (flood) for (let i = 0; i < 5000; i++) device.receive(1, Uint8Array.of(1));
      flood = false;
    };
    device.receive(1, Uint8Array.of(1));
    expect(device.statistics).toMatchObject({ received: 5001, transmitted: 1025, dropped: 3976 });
  });

  test('goes on when whoever takes its frames throws', () => {
    const device = bareDevice();
    device.load(device.compile(echo));
    device.onTransmit = () => {
      throw new Error('unplugged');
    };
    device.receive(1, Uint8Array.of(1));
    device.receive(1, Uint8Array.of(1));
    expect(device.statistics).toMatchObject({ received: 2, errors: 2 });
  });

  test('takes entries by the names of the program: exact, with parameters and a direct counter', () => {
    const device = new TestDevice({
      headers: {
        h: [
          ['x', 8],
          ['mac', 48],
        ],
      },
      states: [{ name: 'start', operations: [extract('h')] }],
      actions: [
        {
          name: 'forward',
          parameters: [
            ['port', 9],
            ['mac', 48],
          ],
          primitives: [
            assign(standard('egress_spec'), named('runtime_data', 0)),
            assign(field('h', 'mac'), named('runtime_data', 1)),
          ],
        },
        { name: 'discard', primitives: [send(511)] },
        { name: 'mark', primitives: [assign(field('h', 'x'), hex(0xee))] },
      ],
      counters: [{ name: 'hits', id: 0, is_direct: true, binding: 't' }],
      ingress: {
        tables: [
          {
            name: 't',
            keys: [{ match: 'exact', field: ['h', 'x'] }],
            actions: ['forward', 'discard'],
            default: 'discard',
            next: { __HIT__: 'tbl_mark', __MISS__: null },
          },
          callTable('mark'),
        ],
      },
    });
    const table = device.control.tables.get('t')!;
    expect(table.keys).toEqual([{ name: 'h.x', kind: 'exact', widthBits: 8 }]);
    expect(table.actions).toEqual(['forward', 'discard']);
    const frame = [5, 0, 0, 0, 0, 0, 0, 9];
    expect(device.run(1, frame)).toEqual([]);
    const entry = table.insert([{ kind: 'exact', value: 5n }], 0, { action: 'forward', params: [3n, 0x010203040506n] });
    device.nowUs = 77;
    expect(device.run(1, frame)).toEqual([{ port: 3, bytes: [0xee, 1, 2, 3, 4, 5, 6, 9] }]);
    expect(table.counter(entry)).toEqual({ packets: 1n, bytes: 8n });
    expect(table.lastHitUs(entry)).toBe(77);
    table.delete(entry);
    expect(device.run(1, frame)).toEqual([]);
    table.setDefault({ action: 'forward', params: [4n, 0n] });
    expect(device.run(1, frame)).toEqual([{ port: 4, bytes: [5, 0, 0, 0, 0, 0, 0, 9] }]);
    expect(device.control.counters.has('hits')).toBe(false);
    expect(device.control.actions.get('forward')).toEqual([
      { name: 'port', widthBits: 9 },
      { name: 'mac', widthBits: 48 },
    ]);
  });

  test('chooses members of a selector by the hash of the packet', () => {
    const device = new TestDevice({
      headers: { h: [['flow', 16]] },
      states: [{ name: 'start', operations: [extract('h')] }],
      actions: [
        {
          name: 'forward',
          parameters: [['port', 9]],
          primitives: [assign(standard('egress_spec'), named('runtime_data', 0))],
        },
      ],
      ingress: {
        tables: [{ name: 't', keys: [{ match: 'lpm', field: ['h', 'flow'] }], actions: ['forward'], profile: 'p' }],
        profiles: [
          {
            name: 'p',
            id: 0,
            max_size: 10,
            selector: { algo: 'identity', input: [{ type: 'field', value: ['h', 'flow'] }] },
          },
        ],
      },
    });
    const member = (port: bigint, weight: number) => ({ action: 'forward', params: [port], weight });
    device.control.tables
      .get('t')!
      .insert([{ kind: 'lpm', value: 0n, prefixLength: 0 }], 0, { selector: [member(1n, 1), member(2n, 2)] });
    const ports = Array.from({ length: 6 }, (_, flow) => device.run(9, [0x10, flow])[0]!.port);
    // 0x1000 % 3 is 1.
    expect(ports).toEqual([2, 2, 1, 2, 2, 1]);
  });

  test('writes down what the program logs, and faults once a second', () => {
    const lines: string[] = [];
    const logger = pino({ base: null, timestamp: false }, { write: (line: string) => lines.push(line) });
    const device = new Device({
      deviceId: 3n,
      cpuPort: 510,
      clock: { nowUs: () => 0 },
      random: createRandom(1),
      logger,
    });
    const values = { type: 'parameters_vector', value: [field('h', 'x'), hex(-5)] };
    const json = buildProgram({
      headers: { h: [['x', 8]] },
      states: [{ name: 'start', operations: [extract('h')] }],
      actions: [
        {
          name: 'log',
          primitives: [
            { op: 'log_msg', parameters: [named('string', 'x is "{}", then {} and {}'), values] },
            // What p4c writes for a text alone.
            { op: 'log_msg', parameters: [named('string', 'here'), { type: 'parameters_vector', value: {} }] },
            assign(field('h', 'x'), op('%', field('h', 'x'), field('h', 'x'))),
            send(1),
          ],
        },
      ],
      ingress: { tables: [callTable('log')] },
    });
    device.load(device.compile(json));
    device.receive(1, Uint8Array.of(200));
    device.receive(1, Uint8Array.of(0));
    device.receive(1, Uint8Array.of(0));
    const messages = lines.map((line) => (JSON.parse(line) as { msg: string }).msg);
    expect(messages.slice(0, 2)).toEqual(['x is "200", then -5 and {}', 'here']);
    expect(messages.filter((message) => message.includes('divided by zero')).length).toBe(1);
    expect(device.statistics).toMatchObject({ transmitted: 1, errors: 2 });
  });

  test('applies the entries of the program by their priority, the low number first', () => {
    const entry = (key: string, mask: string, port: string, priority: number) => ({
      match_key: [{ match_type: 'ternary', key, mask }],
      action_entry: { action_id: 0, action_data: [port] },
      priority,
    });
    const device = new TestDevice({
      headers: { h: [['x', 8]] },
      states: [{ name: 'start', operations: [extract('h')] }],
      actions: [
        {
          name: 'forward',
          parameters: [['port', 9]],
          primitives: [assign(standard('egress_spec'), named('runtime_data', 0))],
        },
      ],
      ingress: {
        tables: [
          {
            name: 't',
            keys: [{ match: 'ternary', field: ['h', 'x'] }],
            actions: ['forward'],
            entries: [
              entry('0x10', '0xf0', '0x1', 1),
              entry('0x12', '0xff', '0x2', 2),
              entry('0x00', '0x00', '0x3', 3),
            ],
          },
        ],
      },
    });
    expect([0x12, 0x1f, 0x22].map((x) => device.run(9, [x])[0]!.port)).toEqual([1, 1, 3]);
    expect([...device.control.tables.get('t')!.entries()].map(({ priority }) => priority)).toEqual([3, 2, 1]);
  });

  test('runs the fabric program: an unknown port drops and is counted', () => {
    const json = readFileSync(new URL('../../p4/build/fabric.json', import.meta.url));
    const device = new TestDevice(json);
    expect(device.run(1, new Array<number>(64).fill(0))).toEqual([]);
    expect(device.device.statistics).toMatchObject({ received: 1, dropped: 1, errors: 0, outOfRange: 0 });
  });
});
