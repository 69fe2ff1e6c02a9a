import { DdfError } from '../../base/errors.ts';
import { multiply } from './galois.ts';
import { assembleKernel, INPUTS_PER_PASS, type Kernel, ROW_UNIT, TABLE_BYTES } from './wasm/kernel-module.ts';
import { instantiate, Memory } from './wasm/web-assembly.ts';

/** Longest row. Segments are shorter: their length has to fit a UDP datagram. */
const MAX_ROW_BYTES = 1 << 16;
/** Most outputs at once: the source symbols of a block. */
const MAX_OUTPUTS = 64;
/** Inputs that are copied in together, so that they are still in the processor's cache when they are read. */
const INPUTS_PER_GROUP = 4 * INPUTS_PER_PASS;

const COEFFICIENTS = 256 * TABLE_BYTES;
const INPUTS = COEFFICIENTS + ROW_UNIT;
const OUTPUTS = INPUTS + INPUTS_PER_GROUP * MAX_ROW_BYTES;
const PAGE_BYTES = 1 << 16;
const PAGES = Math.ceil((OUTPUTS + MAX_OUTPUTS * MAX_ROW_BYTES) / PAGE_BYTES);

/**
 * What the kernel works in: tables, and scratch room that means nothing between two calls. Fixed in size (4.3 MiB of address space, of which only
 * what rows of the lengths in use touch becomes memory), one per thread.
 */
const memory = new Memory({ initial: PAGES, maximum: PAGES });
const bytes = new Uint8Array(memory.buffer);
for (let coefficient = 0; coefficient < 256; coefficient++)
  for (let half = 0; half < 16; half++) {
    bytes[coefficient * TABLE_BYTES + half] = multiply(coefficient, half);
    bytes[coefficient * TABLE_BYTES + 16 + half] = multiply(coefficient, half << 4);
  }
const kernel: Kernel = instantiate<Kernel>(assembleKernel(), { kernel: { memory } });

/**
 * Each output becomes the sum over all inputs of the input times its coefficient.
 *
 * Copies every input into the kernel's memory once, whatever the number of outputs, and the outputs out of it. That costs a third of the
 * time for one output and next to nothing for several (docs/measurements.md), so that callers keep their bytes where they like.
 *
 * @param inputs       none longer than the outputs; shorter ones count as padded with zeros
 * @param outputs      1..64 of one length, at most 64 KiB; need not be cleared, and may not overlap an input
 * @param coefficients outputs x inputs of them, those of the first output first
 */
export function combineLinearly(
  inputs: readonly Uint8Array[],
  outputs: readonly Uint8Array[],
  coefficients: Uint8Array,
): void {
  const length = outputs[0].length;
  if (length > MAX_ROW_BYTES || outputs.length > MAX_OUTPUTS)
    throw new DdfError('INVALID_OPTION', `${outputs.length} rows of ${length} bytes are more than fit`, {
      where: 'erasure code',
      remedy: `Use at most ${MAX_OUTPUTS} symbols of at most ${MAX_ROW_BYTES} bytes.`,
    });
  const stride = Math.ceil(length / ROW_UNIT) * ROW_UNIT;
  if (stride === 0) return;
  bytes.fill(0, OUTPUTS, OUTPUTS + outputs.length * stride);
  for (let first = 0; first < inputs.length; first += INPUTS_PER_GROUP) {
    const count = Math.min(INPUTS_PER_GROUP, inputs.length - first);
    for (let i = 0; i < count; i++) placeInput(inputs[first + i], INPUTS + i * stride, length);
    // A row that makes up the number of a pass is multiplied by 0, whatever stands there.
    bytes.fill(0, COEFFICIENTS, COEFFICIENTS + INPUTS_PER_GROUP);
    const coefficientsEnd = COEFFICIENTS + Math.ceil(count / INPUTS_PER_PASS) * INPUTS_PER_PASS;
    for (let row = 0; row < outputs.length; row++) {
      for (let i = 0; i < count; i++) bytes[COEFFICIENTS + i] = coefficients[row * inputs.length + first + i];
      const output = OUTPUTS + row * stride;
      kernel.multiplyAccumulate(INPUTS, stride, COEFFICIENTS, coefficientsEnd, output, output + stride);
    }
  }
  for (let row = 0; row < outputs.length; row++) {
    const start = OUTPUTS + row * stride;
    outputs[row].set(bytes.subarray(start, start + length));
  }
}

/** What stands behind `length`, up to the end of the row, only reaches bytes that are not copied out. */
function placeInput(input: Uint8Array, address: number, length: number): void {
  if (input.length > length)
    throw new DdfError('INVALID_OPTION', `A symbol has ${input.length} bytes, the result is to have ${length}`, {
      where: 'erasure code',
      remedy: "Give the length of the block's longest symbol.",
    });
  bytes.set(input, address);
  if (input.length < length) bytes.fill(0, address + input.length, address + length);
}
