import type { MeterArrayControl, MeterConfig } from '../control.ts';
import { checkIndex } from './counters.ts';

export const GREEN = 0;
export const YELLOW = 1;
export const RED = 2;

export type MeterUnit = 'bytes' | 'packets';

interface Bucket {
  readonly tokensPerUs: number;
  readonly size: number;
  tokens: number;
  /** Tokens that have come since the meter was configured. */
  filled: number;
}

/**
 * A two-rate three-colour marker, colour-blind (RFC 2698, section 3). Tokens are whole, and counted since the configuration so that
 * no fraction is lost, as in simple_switch.
 */
export class Meter {
  readonly config: MeterConfig;
  private readonly unit: MeterUnit;
  private readonly startUs: number;
  private readonly peak: Bucket;
  private readonly committed: Bucket;

  constructor(config: MeterConfig, unit: MeterUnit, nowUs: number) {
    this.config = config;
    this.unit = unit;
    this.startUs = nowUs;
    this.peak = fullBucket(config.pir, config.pburst);
    this.committed = fullBucket(config.cir, config.cburst);
  }

  copy(): Meter {
    const copy = new Meter(this.config, this.unit, this.startUs);
    Object.assign(copy.peak, this.peak);
    Object.assign(copy.committed, this.committed);
    return copy;
  }

  /** The colour of a packet of `bytes` bytes that comes at `nowUs`. */
  execute(bytes: number, nowUs: number): number {
    const elapsedUs = nowUs - this.startUs;
    const needed = this.unit === 'packets' ? 1 : bytes;
    if (!take(this.peak, needed, elapsedUs)) return RED;
    return take(this.committed, needed, elapsedUs) ? GREEN : YELLOW;
  }
}

/** Meters by index. A cell that was never configured is green. */
export class MeterArray implements MeterArrayControl {
  readonly name: string;
  readonly size: number;
  readonly unit: MeterUnit;
  private readonly meters = new Map<number, Meter>();
  private readonly nowUs: () => number;

  constructor(name: string, size: number, unit: MeterUnit, nowUs: () => number) {
    this.name = name;
    this.size = size;
    this.unit = unit;
    this.nowUs = nowUs;
  }

  configure(index: number, config: MeterConfig | undefined): void {
    checkIndex(this, index);
    if (config === undefined) this.meters.delete(index);
    else this.meters.set(index, new Meter(config, this.unit, this.nowUs()));
  }

  config(index: number): MeterConfig | undefined {
    checkIndex(this, index);
    return this.meters.get(index)?.config;
  }

  copy(): MeterArray {
    const copy = new MeterArray(this.name, this.size, this.unit, this.nowUs);
    for (const [index, meter] of this.meters) copy.meters.set(index, meter.copy());
    return copy;
  }

  execute(index: number, bytes: number, nowUs: number): number {
    if (this.meters.size === 0) return GREEN;
    return this.meters.get(index)?.execute(bytes, nowUs) ?? GREEN;
  }
}

function fullBucket(ratePerSecond: bigint, size: bigint): Bucket {
  return { tokensPerUs: Number(ratePerSecond) / 1e6, size: Number(size), tokens: Number(size), filled: 0 };
}

function fill(bucket: Bucket, elapsedUs: number): void {
  const filled = Math.floor(elapsedUs * bucket.tokensPerUs);
  if (filled <= bucket.filled) return;
  bucket.tokens = Math.min(bucket.size, bucket.tokens + filled - bucket.filled);
  bucket.filled = filled;
}

function take(bucket: Bucket, needed: number, elapsedUs: number): boolean {
  fill(bucket, elapsedUs);
  if (bucket.tokens < needed) return false;
  bucket.tokens -= needed;
  return true;
}
