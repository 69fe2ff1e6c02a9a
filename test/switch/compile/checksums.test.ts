import { describe, expect, test } from 'vitest';
import {
  assign,
  callTable,
  expression,
  extract,
  field,
  hex,
  type Json,
  send,
  standard,
  valid,
} from '../program-builder.ts';
import { pack, TestDevice } from '../test-device.ts';

/** RFC 1071, as its section 4.1 writes it. */
function internetChecksum(bytes: readonly number[]): number {
  let sum = 0;
  for (let i = 0; i < bytes.length; i += 2) sum += (bytes[i]! << 8) + (bytes[i + 1] ?? 0);
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >>> 16);
  return ~sum & 0xffff;
}

const checksum = (way: 'verify' | 'update', condition: Json | null): Json => ({
  name: way,
  id: 0,
  target: ['h', 'sum'],
  type: 'generic',
  calculation: 'k',
  verify: way === 'verify',
  update: way === 'update',
  if_cond: condition === null ? null : expression(condition),
});

function device(algo: string, input: readonly Json[], checksums: readonly Json[], inH = true): TestDevice {
  return new TestDevice({
    headers: {
      h: [
        ['a', 4],
        ['b', 12],
        ['c', 32],
        ['sum', 16],
        ['error', 8],
      ],
    },
    states: [{ name: 'start', operations: inH ? [extract('h')] : [] }],
    actions: [
      {
        name: 'go',
        primitives: [...(inH ? [assign(field('h', 'error'), standard('checksum_error'))] : []), send(1)],
      },
      { name: 'change', primitives: [assign(field('h', 'c'), hex(0xdeadbeef))] },
    ],
    ingress: { tables: [callTable('go')] },
    egress: { tables: [callTable('change')] },
    calculations: [{ name: 'k', id: 0, algo, input }],
    checksums,
  });
}

const f = (name: string): Json => ({ type: 'field', value: ['h', name] });
const packet = (a: number, b: number, c: number, sum: number): number[] =>
  pack([
    [BigInt(a), 4],
    [BigInt(b), 12],
    [BigInt(c), 32],
    [BigInt(sum), 16],
    [0n, 8],
  ]);

describe('checksums', () => {
  test('are verified into checksum_error, also over what is not parsed', () => {
    const good = internetChecksum([0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc, 1, 2, 3]);
    const over = device('csum16', [f('a'), f('b'), f('c'), { type: 'payload' } as Json], [checksum('verify', null)]);
    const error = (sum: number, payload: readonly number[]) =>
      over.run(1, [...packet(1, 0x234, 0x56789abc, sum), ...payload])[0]!.bytes[8];
    expect(error(good, [1, 2, 3])).toBe(0);
    expect(error(good ^ 1, [1, 2, 3])).toBe(1);
    expect(error(good, [1, 2, 4])).toBe(1);
  });

  test('are not verified when the condition or the target says no', () => {
    const never = device(
      'csum16',
      [f('a'), f('b')],
      [checksum('verify', { op: '==', left: field('h', 'a'), right: hex(9) })],
    );
    expect(never.run(1, packet(1, 2, 3, 4))[0]!.bytes[8]).toBe(0);
    const absent = device('csum16', [f('a')], [checksum('verify', null)], false);
    expect(absent.run(1, [1, 2])[0]!.bytes).toEqual([1, 2]);
  });

  test('are updated from what egress left, for copies that are sent', () => {
    const over = device('csum16', [f('a'), f('b'), f('c')], [checksum('update', valid('h'))]);
    const bytes = over.run(1, packet(1, 0x234, 0x56789abc, 0))[0]!.bytes;
    expect((bytes[6]! << 8) | bytes[7]!).toBe(internetChecksum([0x12, 0x34, 0xde, 0xad, 0xbe, 0xef]));
  });

  test.each([
    ['crc16', 0xbb3d],
    ['crcCCITT', 0x29b1],
    ['xor16', 0x3132 ^ 0x3334 ^ 0x3536 ^ 0x3738 ^ 0x3900],
  ])('by %s', (algo, known) => {
    const digits: Json = { type: 'hexstr', value: '0x313233343536373839', bitwidth: 72 };
    const over = device(algo, [digits], [checksum('update', null)]);
    const bytes = over.run(1, packet(1, 2, 3, 0))[0]!.bytes;
    expect((bytes[6]! << 8) | bytes[7]!).toBe(known);
  });

  test('leave out headers that are not there', () => {
    const over = device(
      'csum16',
      [f('a'), f('b'), { type: 'hexstr', value: '0x1234', bitwidth: 16 } as Json],
      [checksum('update', null)],
      false,
    );
    expect(over.run(1, [5])[0]!.bytes).toEqual([5]);
    expect(over.device.statistics.errors).toBe(0);
  });

  test('compare the whole of a long result', () => {
    const over = device('identity', [f('c')], [checksum('verify', null)]);
    expect(over.run(1, packet(1, 2, 7, 7))[0]!.bytes[8]).toBe(0);
    expect(over.run(1, packet(1, 2, 0x10007, 7))[0]!.bytes[8]).toBe(1);
  });
});
