import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  assembleModule,
  type Code,
  doWhile,
  i32,
  local,
  setLocal,
  signed,
  unsigned,
  type ValueType,
  v128,
} from '../../../../agents/fec/wasm/assembler.ts';
import { assembleKernel } from '../../../../agents/fec/wasm/kernel-module.ts';
import { instantiate, Memory } from '../../../../agents/fec/wasm/web-assembly.ts';

describe('LEB128', () => {
  test('the examples of the DWARF standard, appendix C', () => {
    expect(unsigned(2)).toEqual([2]);
    expect(unsigned(127)).toEqual([127]);
    expect(unsigned(128)).toEqual([0x80, 1]);
    expect(unsigned(12857)).toEqual([0xb9, 0x64]);
    expect(signed(2)).toEqual([2]);
    expect(signed(-2)).toEqual([0x7e]);
    expect(signed(127)).toEqual([0xff, 0]);
    expect(signed(-127)).toEqual([0x81, 0x7f]);
    expect(signed(-129)).toEqual([0xff, 0x7e]);
  });

  test('ends of the range', () => {
    expect(unsigned(0)).toEqual([0]);
    expect(unsigned(0xffff_ffff)).toEqual([0xff, 0xff, 0xff, 0xff, 0x0f]);
    expect(signed(0x7fff_ffff)).toEqual([0xff, 0xff, 0xff, 0xff, 0x07]);
    expect(signed(-0x8000_0000)).toEqual([0x80, 0x80, 0x80, 0x80, 0x78]);
  });
});

/** Runs one function that stores a result of sixteen bytes at address 64. */
function run(code: Code, args: readonly number[] = [], locals: readonly ValueType[] = [], content: Uint8Array = BYTES) {
  const memory = new Memory({ initial: 1, maximum: 1 });
  const bytes = new Uint8Array(memory.buffer);
  bytes.set(content);
  const module = assembleModule({
    memory: { module: 'test', name: 'memory' },
    functions: [
      { name: 'unused', parameters: [], locals: [], code: [] },
      { name: 'run', parameters: args.map(() => 'i32'), locals, code },
    ],
  });
  const { run } = instantiate<{ run(...args: number[]): void }>(module, { test: { memory } });
  run(...args);
  return [...bytes.subarray(64, 80)];
}

const BYTES = Uint8Array.from({ length: 48 }, (_, i) => i * 5 + 3);
const at = (address: number): Code => i32.constant(address);
const stored = (value: Code): Code => v128.store(at(64), value);
const sixteen = (value: (i: number) => number): number[] => Array.from({ length: 16 }, (_, i) => value(i) & 0xff);

describe('instructions', () => {
  test('load and store at any address, with an offset', () => {
    expect(run(stored(v128.load(at(3))))).toEqual(sixteen((i) => BYTES[i + 3]));
    expect(run(v128.store(at(0), v128.load(at(1), 30), 64))).toEqual(sixteen((i) => BYTES[i + 31]));
  });

  test('and, xor, constants', () => {
    const both = (i: number): [number, number] => [BYTES[i], BYTES[i + 16]];
    const [a, b] = [v128.load(at(0)), v128.load(at(16))];
    expect(run(stored(v128.and(a, b)))).toEqual(sixteen((i) => both(i)[0] & both(i)[1]));
    expect(run(stored(v128.xor(a, b)))).toEqual(sixteen((i) => both(i)[0] ^ both(i)[1]));
    expect(run(stored(v128.constantOf(0xa5)))).toEqual(sixteen(() => 0xa5));
  });

  test('swizzle takes 0 for indices that are too high', () => {
    const indices = Uint8Array.of(0, 15, 16, 255, 3, 3, 1, 2, 128, 4, 5, 6, 7, 8, 9, 10);
    const content = Uint8Array.from([...BYTES.subarray(0, 16), ...indices]);
    expect(run(stored(v128.swizzle(v128.load(at(0)), v128.load(at(16)))), [], [], content)).toEqual(
      [...indices].map((index) => (index < 16 ? BYTES[index] : 0)),
    );
  });

  test('16-bit shifts', () => {
    expect(run(stored(v128.shiftRight16(v128.load(at(0)), at(4))))).toEqual(
      sixteen((i) => (BYTES[i] | (i % 2 === 0 ? BYTES[i + 1] << 8 : 0)) >> 4),
    );
  });

  test('arithmetic of addresses, locals and loops', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 40 }), fc.integer({ min: 0, max: 255 }), (turns, step) => {
        // sum += step, as long as the counter is below the number of turns; then the vector at address 3 * byte[sum] is stored.
        const [limit, counter, sum] = [0, 1, 2];
        const code = [
          doWhile(
            i32.isBelow(local(counter), local(limit)),
            setLocal(sum, i32.add(local(sum), i32.constant(step))),
            setLocal(counter, i32.add(local(counter), i32.constant(1))),
          ),
          stored(v128.load(i32.multiply(i32.loadByte(local(sum), 2), i32.constant(3)))),
        ].flat();
        const content = Uint8Array.from({ length: 11_000 }, (_, i) => (i * 7 + (i >> 8)) & 0xff);
        const from = 3 * content[turns * step + 2];
        // The vector may overlap the place of the result: it is read before.
        expect(run(code, [turns], ['i32', 'i32'], content)).toEqual(sixteen((i) => content[from + i]));
      }),
      { seed: 22, numRuns: 30 },
    );
  });

  test('comparison is unsigned', () => {
    const [counter] = [0];
    const code = [
      doWhile(i32.isBelow(local(counter), i32.constant(5)), setLocal(counter, i32.constant(-1))),
      stored(v128.load(i32.add(local(counter), i32.constant(1)))),
    ].flat();
    expect(run(code, [1])).toEqual(sixteen((i) => BYTES[i]));
  });
});

test('the kernel is a module of a few hundred bytes that the engine accepts', () => {
  const module = assembleKernel();
  expect([...module.subarray(0, 8)]).toEqual([0, 0x61, 0x73, 0x6d, 1, 0, 0, 0]);
  expect(module.length).toBeLessThan(600);
  const memory = new Memory({ initial: 1, maximum: 1 });
  expect(Object.keys(instantiate<object>(module, { kernel: { memory } }))).toEqual(['multiplyAccumulate']);
});
