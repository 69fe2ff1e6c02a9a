import { DdfError } from '../../base/errors.ts';
import type { CounterArrayControl, CounterValue } from '../control.ts';

/** Packets and bytes side by side. Counts are exact up to 2^53. */
export class CounterArray implements CounterArrayControl {
  readonly name: string;
  readonly size: number;
  /** Packets of cell i at 2i, bytes at 2i + 1. */
  readonly cells: Float64Array;

  constructor(name: string, size: number) {
    this.name = name;
    this.size = size;
    this.cells = new Float64Array(2 * size);
  }

  copy(): CounterArray {
    const copy = new CounterArray(this.name, this.size);
    copy.cells.set(this.cells);
    return copy;
  }

  read(index: number): CounterValue {
    checkIndex(this, index);
    return { packets: BigInt(this.cells[2 * index]!), bytes: BigInt(this.cells[2 * index + 1]!) };
  }

  write(index: number, value: CounterValue): void {
    checkIndex(this, index);
    this.cells[2 * index] = Number(value.packets);
    this.cells[2 * index + 1] = Number(value.bytes);
  }
}

/** Throws DdfError NOT_FOUND for a cell that an array does not have. */
export function checkIndex(array: { readonly name: string; readonly size: number }, index: number): void {
  if (Number.isInteger(index) && index >= 0 && index < array.size) return;
  throw new DdfError('NOT_FOUND', `${array.name} has no cell ${index}`, {
    where: array.name,
    remedy: `Use an index in 0..${array.size - 1}.`,
  });
}
