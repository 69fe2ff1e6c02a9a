import { crc32 } from 'node:zlib';
import { writeUint32 } from '../../wire/packet/integers.ts';

/**
 * NACK elimination of one switch, in the terms of docs/protocol.md: three registers with the same index, read and written once per
 * packet in the order A, B, C. Written for comparison with p4/repair.p4: same inputs, same outputs. Times are ticks, unsigned 32 bits
 * that wrap.
 */

export interface EliminationIntervals {
  readonly eliminationTicks: number;
  readonly staleTicks: number;
  /** At most staleTicks. */
  readonly graceTicks: number;
}

export interface NackVerdict {
  /** false: eliminated. */
  readonly forwarded: boolean;
  /** The mark of a NACK that goes up. */
  readonly anew: boolean;
}

/** To every port of the tree: the switch does not know the block. */
export const WHOLE_TREE = 0xffff_ffff;

export class EliminationModel {
  private readonly slots: number;
  private readonly intervals: EliminationIntervals;
  // A
  private readonly key: Uint32Array;
  private readonly touched: Uint32Array;
  // B
  private readonly need: Uint32Array;
  private readonly forwarded: Uint32Array;
  // C
  private readonly asked: Uint32Array;
  private readonly waiting: Uint32Array;

  constructor(slots: number, intervals: EliminationIntervals) {
    this.slots = slots;
    this.intervals = intervals;
    this.key = new Uint32Array(slots);
    this.touched = new Uint32Array(slots);
    this.need = new Uint32Array(slots);
    this.forwarded = new Uint32Array(slots);
    this.asked = new Uint32Array(slots);
    this.waiting = new Uint32Array(slots);
  }

  /**
   * A NACK from a port of the tree.
   * @param need    at least 1
   * @param portBit one-hot
   * @param now     ticks
   */
  handleNack(label: number, block: number, need: number, portBit: number, now: number): NackVerdict {
    const { slot, own } = this.place(label, block);
    const { mine, old } = this.look(slot, own, now);
    if (mine || old) {
      this.key[slot] = own;
      this.touched[slot] = now;
    }

    let verdict: NackVerdict = { forwarded: true, anew: true };
    if (mine && !old && age(now, this.forwarded[slot]) <= this.intervals.eliminationTicks)
      verdict = { forwarded: need > this.need[slot], anew: false };
    if ((mine || old) && verdict.forwarded) {
      this.need[slot] = need;
      this.forwarded[slot] = now;
    }

    if (mine) this.asked[slot] |= portBit;
    else if (old) {
      this.asked[slot] = this.waiting[slot] | portBit;
      this.waiting[slot] = 0;
    } else this.waiting[slot] |= portBit;
    return verdict;
  }

  /**
   * A REPAIR from upstream.
   * @returns the ports that it is for; the tree has to be intersected with it
   */
  handleRepair(label: number, block: number, now: number): number {
    const { slot, own } = this.place(label, block);
    const { mine } = this.look(slot, own, now);
    if (!mine) return WHOLE_TREE;
    const { eliminationTicks, staleTicks, graceTicks } = this.intervals;
    this.touched[slot] = now - (staleTicks - graceTicks);
    this.forwarded[slot] = now - eliminationTicks - 1;
    return this.asked[slot];
  }

  /** The switch restarts: its registers are zero again. */
  restart(): void {
    for (const register of [this.key, this.touched, this.need, this.forwarded, this.asked, this.waiting])
      register.fill(0);
  }

  slotOf(label: number, block: number): number {
    return this.place(label, block).slot;
  }

  /** Whether the block holds its slot, and whether another NACK could take it over now. For checks of properties. */
  standing(label: number, block: number, now: number): { mine: boolean; old: boolean } {
    const { slot, own } = this.place(label, block);
    return this.look(slot, own, now);
  }

  private look(slot: number, own: number, now: number): { mine: boolean; old: boolean } {
    return {
      mine: this.key[slot] === own,
      old: this.key[slot] === 0 || age(now, this.touched[slot]) > this.intervals.staleTicks,
    };
  }

  private place(label: number, block: number): { slot: number; own: number } {
    const bytes = new Uint8Array(8);
    writeUint32(bytes, 0, label);
    writeUint32(bytes, 4, block);
    // Keys start at 1, so that a register that was lost is nobody's.
    return { slot: crc16(bytes) % this.slots, own: 1 + (crc32(bytes) % 0xffff_ffff) };
  }
}

/** How long ago a tick was; the clock does not run backwards. */
function age(now: number, then: number): number {
  return (now - then) >>> 0;
}

/** CRC-16/ARC: what v1model's HashAlgorithm.crc16 is on bmv2. */
export function crc16(bytes: Uint8Array): number {
  let crc = 0;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit++) crc = (crc & 1) === 1 ? (crc >>> 1) ^ 0xa001 : crc >>> 1;
  }
  return crc;
}
