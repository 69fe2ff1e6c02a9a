import { describe, expect, test } from 'vitest';
import {
  assign,
  call,
  callTable,
  extract,
  field,
  hex,
  type Json,
  named,
  op,
  type ProgramSpec,
  send,
  standard,
} from '../program-builder.ts';
import { TestDevice } from '../test-device.ts';

const drop: Json = call('mark_to_drop', named('header', 'standard_metadata'));
const group = (id: number): Json => assign(standard('mcast_grp'), hex(id));

/** One header of one byte, `h.x`, then payload. */
function path(ingress: readonly Json[], egress: readonly Json[] = [], more: Partial<ProgramSpec> = {}): TestDevice {
  return new TestDevice({
    headers: { h: [['x', 8]], r: [['value', 64]] },
    states: [{ name: 'start', operations: [extract('h')] }],
    actions: [
      { name: 'in', primitives: ingress },
      { name: 'out', primitives: egress },
    ],
    ingress: { tables: [callTable('in')] },
    egress: { tables: [callTable('out')] },
    deparser: ['r', 'h'],
    ...more,
  });
}

/** Copies a metadata field into the header `r`, which is put in front. */
const report = (name: string): Json[] => [
  call('add_header', named('header', 'r')),
  assign(field('r', 'value'), standard(name)),
];
const reported = (bytes: readonly number[]): number => bytes.slice(0, 8).reduce((value, byte) => value * 256 + byte, 0);

describe('the packet path of simple_switch', () => {
  test('sends a packet that nothing decided about out of port 0', () => {
    expect(path([]).run(7, [1, 2])).toEqual([{ port: 0, bytes: [1, 2] }]);
  });

  test('drops by egress_spec 511, at the end of ingress and of egress', () => {
    const device = path([drop]);
    expect(device.run(7, [1])).toEqual([]);
    expect(device.device.statistics).toMatchObject({ received: 1, transmitted: 0, dropped: 1 });
    expect(path([send(511)]).run(7, [1])).toEqual([]);
    expect(path([send(2)], [drop]).run(7, [1])).toEqual([]);
    expect(path([send(2)], [send(3)]).run(7, [1])).toEqual([{ port: 2, bytes: [1] }]);
  });

  test('egress_spec is no decision in egress: 512 is cut to 0', () => {
    const device = path([send(2)], report('egress_spec'));
    expect(reported(device.run(7, [1])[0]!.bytes)).toBe(0);
  });

  test('mark_to_drop clears the multicast group; one that is set afterwards wins over the drop', () => {
    const both = (ingress: readonly Json[]): TestDevice => {
      const device = path(ingress);
      device.control.setMulticastGroup(4, [{ port: 1, instance: 0 }]);
      return device;
    };
    expect(both([group(4), drop]).run(7, [1])).toEqual([]);
    expect(both([drop, group(4)]).run(7, [1])).toEqual([{ port: 1, bytes: [1] }]);
  });

  test('multicast copies carry port, instance and type, and the vector as ingress left it', () => {
    const device = path(
      [assign(field('h', 'x'), op('+', field('h', 'x'), hex(1))), group(4), send(9)],
      [
        ...report('egress_rid'),
        assign(field('r', 'value'), op('|', op('<<', standard('egress_port'), hex(16)), standard('egress_rid'))),
        assign(field('h', 'x'), op('+', op('*', field('h', 'x'), hex(2)), standard('instance_type'))),
      ],
    );
    device.control.setMulticastGroup(4, [
      { port: 1, instance: 10 },
      { port: 2, instance: 20 },
      { port: 1, instance: 30 },
    ]);
    const sent = device.run(7, [3, 99, 98]);
    expect(sent.map(({ port }) => port)).toEqual([1, 2, 1]);
    expect(sent.map(({ bytes }) => reported(bytes))).toEqual([0x1000a, 0x20014, 0x1001e]);
    // (3 + 1) * 2 + instance_type 5, the same for every copy.
    for (const { bytes } of sent) expect(bytes.slice(8)).toEqual([13, 99, 98]);
  });

  test('each copy has bytes of its own, whether headers moved or not', () => {
    const device = path([group(4)], [assign(field('h', 'x'), standard('egress_port'))]);
    device.control.setMulticastGroup(
      4,
      [1, 2, 3].map((port) => ({ port, instance: 0 })),
    );
    const frames: Uint8Array[] = [];
    device.device.onTransmit = (_port, frame) => frames.push(frame);
    device.device.receive(9, Uint8Array.of(0, 7));
    expect(frames.map((frame) => [...frame])).toEqual([
      [1, 7],
      [2, 7],
      [3, 7],
    ]);
  });

  test('a group that is unknown or empty drops', () => {
    const device = path([group(4)]);
    expect(device.run(7, [1])).toEqual([]);
    device.control.setMulticastGroup(4, []);
    expect(device.run(7, [1])).toEqual([]);
    expect(device.device.statistics.dropped).toBe(2);
    device.control.setMulticastGroup(4, [{ port: 3, instance: 0 }]);
    expect(device.run(7, [1]).length).toBe(1);
    device.control.deleteMulticastGroup(4);
    expect(device.run(7, [1])).toEqual([]);
  });

  test('instance_type is 0 for unicast', () => {
    expect(
      reported(
        path([assign(standard('instance_type'), hex(3)), send(1)], report('instance_type')).run(7, [1])[0]!.bytes,
      ),
    ).toBe(0);
  });

  test('parser errors do not drop', () => {
    const device = path([...report('parser_error'), send(1)]);
    expect(device.run(7, [])[0]!.bytes).toEqual([0, 0, 0, 0, 0, 0, 0, 1]);
  });

  test('metadata starts at zero for every packet', () => {
    const device = new TestDevice({
      headers: { h: [['x', 8]] },
      scalars: [['s', 8]],
      states: [{ name: 'start', operations: [extract('h')] }],
      actions: [
        {
          name: 'in',
          primitives: [
            assign(field('scalars', 's'), op('+', field('scalars', 's'), field('h', 'x'))),
            assign(field('h', 'x'), field('scalars', 's')),
            send(1),
          ],
        },
      ],
      ingress: { tables: [callTable('in')] },
    });
    expect(device.run(1, [5])[0]!.bytes).toEqual([5]);
    expect(device.run(1, [5])[0]!.bytes).toEqual([5]);
  });

  test('packet_length in egress follows added and removed headers, in ingress it is what came in', () => {
    expect(reported(path([...report('packet_length'), send(1)]).run(7, [1, 2, 3])[0]!.bytes)).toBe(3);
    const device = path(
      [call('add_header', named('header', 'r')), send(1)],
      [assign(field('r', 'value'), standard('packet_length'))],
    );
    expect(reported(device.run(7, [1, 2, 3])[0]!.bytes)).toBe(11);
    const shorter = path([call('remove_header', named('header', 'h')), send(1)], report('packet_length'));
    expect(reported(shorter.run(7, [1, 2, 3])[0]!.bytes)).toBe(2);
  });

  test('timestamps are the device clock in microseconds, queue depths those of the port', () => {
    const at = (name: string, egress: boolean): number => {
      const device = egress ? path([send(4)], report(name)) : path([...report(name), send(4)]);
      device.nowUs = 5_000_000_123;
      device.queueDepth = (port) => 10 * port;
      return reported(device.run(7, [1])[0]!.bytes);
    };
    expect(at('ingress_global_timestamp', false)).toBe(5_000_000_123);
    expect(at('egress_global_timestamp', true)).toBe(5_000_000_123);
    expect(at('enq_timestamp', true)).toBe(5_000_000_123 % 2 ** 32);
    expect(at('deq_timedelta', true)).toBe(0);
    expect(at('enq_qdepth', true)).toBe(40);
    expect(at('deq_qdepth', true)).toBe(40);
  });

  test('truncate keeps that many bytes of what is sent', () => {
    const device = path([call('truncate', field('h', 'x')), send(1)]);
    expect(device.run(7, [2, 3, 4])[0]!.bytes).toEqual([2, 3]);
    expect(device.run(7, [9, 3, 4])[0]!.bytes).toEqual([9, 3, 4]);
  });

  test('exit ends a pipeline, not the packet, and does not reach egress', () => {
    const device = new TestDevice({
      headers: { h: [['x', 8]] },
      states: [{ name: 'start', operations: [extract('h')] }],
      actions: [
        { name: 'leave', primitives: [call('exit'), send(1)] },
        { name: 'never', primitives: [send(2)] },
        { name: 'add', primitives: [assign(field('h', 'x'), op('+', field('h', 'x'), hex(1)))] },
      ],
      ingress: { tables: [callTable('leave', 'tbl_never'), callTable('never')] },
      egress: { tables: [callTable('add')] },
    });
    expect(device.run(7, [1])).toEqual([{ port: 1, bytes: [2] }]);
    expect(device.run(7, [1])).toEqual([{ port: 1, bytes: [2] }]);
  });

  test('a pipeline that goes round for ever fails the packet', () => {
    const device = path([], [], { ingress: { tables: [callTable('in', 'tbl_in')] } });
    expect(device.run(7, [1])).toEqual([]);
    expect(device.device.statistics.errors).toBe(1);
  });
});
