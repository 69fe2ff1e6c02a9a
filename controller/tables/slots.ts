import { DdfError } from '../../base/errors.ts';
import type { P4InfoIndex } from '../../wire/p4runtime/p4info-index.ts';

/**
 * Numbers for transfers that run at the same time, from 1 to one less than the size of the table `transfer`. They go round, so that a number rests as
 * long as possible before its counters and registers are used again.
 */
export class TransferSlots {
  private readonly size: number;
  private readonly taken = new Set<number>();
  private last = 0;

  constructor(index: P4InfoIndex) {
    this.size = index.tables.require('transfer').size;
  }

  /** Throws TABLE_FULL. */
  take(): number {
    const last = this.size - 1;
    if (this.taken.size >= last)
      throw new DdfError('TABLE_FULL', `${last} transfers are running, table transfer has no room for another`, {
        remedy: 'Wait until some have ended, or raise TRANSFER_SIZE in p4/sizes.p4.',
        recoverable: true,
      });
    do this.last = (this.last % last) + 1;
    while (this.taken.has(this.last));
    this.taken.add(this.last);
    return this.last;
  }

  release(slot: number): void {
    this.taken.delete(slot);
  }
}
