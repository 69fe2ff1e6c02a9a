import type { RegisterArrayControl } from '../control.ts';
import { readWide, storeWide } from './arithmetic.ts';
import { checkIndex } from './counters.ts';

export class RegisterArray implements RegisterArrayControl {
  readonly name: string;
  readonly size: number;
  readonly widthBits: number;
  /** ceil(widthBits / 32) words a cell, the least significant first. */
  readonly cells: Uint32Array;
  private readonly words: number;

  constructor(name: string, size: number, widthBits: number) {
    this.name = name;
    this.size = size;
    this.widthBits = widthBits;
    this.words = Math.ceil(widthBits / 32);
    this.cells = new Uint32Array(size * this.words);
  }

  copy(): RegisterArray {
    const copy = new RegisterArray(this.name, this.size, this.widthBits);
    copy.cells.set(this.cells);
    return copy;
  }

  read(index: number): bigint {
    checkIndex(this, index);
    return readWide(this.cells, index * this.words, this.words);
  }

  write(index: number, value: bigint): void {
    checkIndex(this, index);
    storeWide(this.cells, index * this.words, this.widthBits, value);
  }
}
