import { assembleModule, type Code, doWhile, i32, local, setLocal, type ValueType, v128 } from './assembler.ts';

/**
 * The inner loop of the erasure code as a WebAssembly module: sixteen bytes are multiplied by a coefficient at once. A product is the sum of the
 * products of the source byte's two halves, and with only sixteen values each half's product is a look-up in a register (`i8x16.swizzle`), as
 * Plank, Greenan and Miller describe it in "Screaming Fast Galois Field Arithmetic Using Intel SIMD Instructions" (FAST 2013).
 */

/** Inputs per pass over the output: fewer loads and stores of it. More would not leave their tables in registers. */
export const INPUTS_PER_PASS = 2;

const LANE = 16;
const LANES_PER_TURN = 2;

/** Rows are worked on in pieces of this size: they are as long as a multiple of it. */
export const ROW_UNIT = LANES_PER_TURN * LANE;

/** Per coefficient, its products with 0..15 and then with 0, 16, .. 240. The table of coefficient c stands at address c * 32. */
export const TABLE_BYTES = 2 * LANE;

export interface Kernel {
  /**
   * Adds the product of each input with its coefficient to the output. Every argument but the stride is an address.
   * @param inputs          rows, one every `stride` bytes
   * @param coefficients    one byte for each row, a multiple of INPUTS_PER_PASS of them, at least one
   * @param coefficientsEnd address behind the last
   * @param output          a row
   * @param outputEnd       address behind its end: a multiple of ROW_UNIT behind its start, at least one
   */
  multiplyAccumulate(
    inputs: number,
    stride: number,
    coefficients: number,
    coefficientsEnd: number,
    output: number,
    outputEnd: number,
  ): void;
}

/** Imports its memory as `kernel.memory`, exports what `Kernel` has. */
export function assembleKernel(): Uint8Array<ArrayBuffer> {
  const parameters: ValueType[] = ['i32', 'i32', 'i32', 'i32', 'i32', 'i32'];
  const [inputs, stride, coefficients, coefficientsEnd, output, outputEnd] = parameters.map((_, i) => i);
  const locals: ValueType[] = [];
  const declare = (type: ValueType): number => parameters.length + locals.push(type) - 1;
  const target = declare('i32');
  const table = declare('i32');
  const passed = Array.from({ length: INPUTS_PER_PASS }, () => ({
    source: declare('i32'),
    lowProducts: declare('v128'),
    highProducts: declare('v128'),
  }));
  const sums = Array.from({ length: LANES_PER_TURN }, () => declare('v128'));
  const bytes = declare('v128');
  const lowHalf = declare('v128');

  const beginPass = passed.flatMap(({ source, lowProducts, highProducts }, i): Code[] => [
    setLocal(source, local(inputs)),
    setLocal(inputs, i32.add(local(inputs), local(stride))),
    setLocal(table, i32.multiply(i32.loadByte(local(coefficients), i), i32.constant(TABLE_BYTES))),
    setLocal(lowProducts, v128.load(local(table))),
    setLocal(highProducts, v128.load(local(table), LANE)),
  ]);
  const product = (lowProducts: number, highProducts: number): Code =>
    v128.xor(
      v128.swizzle(local(lowProducts), v128.and(local(bytes), local(lowHalf))),
      v128.swizzle(local(highProducts), v128.and(v128.shiftRight16(local(bytes), i32.constant(4)), local(lowHalf))),
    );
  const addProducts = passed.flatMap(({ source, lowProducts, highProducts }): Code[] => [
    ...sums.flatMap((sum, lane): Code[] => [
      setLocal(bytes, v128.load(local(source), lane * LANE)),
      setLocal(sum, v128.xor(local(sum), product(lowProducts, highProducts))),
    ]),
    setLocal(source, i32.add(local(source), i32.constant(ROW_UNIT))),
  ]);
  const turn: Code[] = [
    ...sums.map((sum, lane) => setLocal(sum, v128.load(local(target), lane * LANE))),
    ...addProducts,
    ...sums.map((sum, lane) => v128.store(local(target), local(sum), lane * LANE)),
    setLocal(target, i32.add(local(target), i32.constant(ROW_UNIT))),
  ];
  const code: Code[] = [
    setLocal(lowHalf, v128.constantOf(0x0f)),
    doWhile(
      i32.isBelow(local(coefficients), local(coefficientsEnd)),
      ...beginPass,
      setLocal(target, local(output)),
      doWhile(i32.isBelow(local(target), local(outputEnd)), ...turn),
      setLocal(coefficients, i32.add(local(coefficients), i32.constant(INPUTS_PER_PASS))),
    ),
  ];
  return assembleModule({
    memory: { module: 'kernel', name: 'memory' },
    functions: [{ name: 'multiplyAccumulate', parameters, locals, code: code.flat() }],
  });
}
