import type { MeterArrayControl, MeterConfig } from '../control.ts';
import { checkIndex } from './counters.ts';

export const GREEN = 0;
export const YELLOW = 1;
export const RED = 2;

interface Bucket {
  readonly tokensPerUs: number;
  readonly size: number;
  tokens: number;
}

interface Meter {
  readonly config: MeterConfig;
  readonly committed: Bucket;
  readonly peak: Bucket;
  filledUs: number;
}

/** Two-rate three-colour markers, colour-blind (RFC 2698, section 3). A cell that was never configured is green. */
export class MeterArray implements MeterArrayControl {
  readonly name: string;
  readonly size: number;
  readonly unit: 'bytes' | 'packets';
  private readonly meters = new Map<number, Meter>();
  private readonly nowUs: () => number;

  constructor(name: string, size: number, unit: 'bytes' | 'packets', nowUs: () => number) {
    this.name = name;
    this.size = size;
    this.unit = unit;
    this.nowUs = nowUs;
  }

  configure(index: number, config: MeterConfig | undefined): void {
    checkIndex(this, index);
    if (config === undefined) this.meters.delete(index);
    else
      this.meters.set(index, {
        config,
        committed: fullBucket(config.cir, config.cburst),
        peak: fullBucket(config.pir, config.pburst),
        filledUs: this.nowUs(),
      });
  }

  config(index: number): MeterConfig | undefined {
    checkIndex(this, index);
    return this.meters.get(index)?.config;
  }

  /** The colour of a packet of `bytes` bytes that comes at `nowUs`. */
  execute(index: number, bytes: number, nowUs: number): number {
    if (this.meters.size === 0) return GREEN;
    const meter = this.meters.get(index);
    if (meter === undefined) return GREEN;
    const elapsedUs = nowUs - meter.filledUs;
    if (elapsedUs > 0) {
      fill(meter.committed, elapsedUs);
      fill(meter.peak, elapsedUs);
      meter.filledUs = nowUs;
    }
    const needed = this.unit === 'packets' ? 1 : bytes;
    if (meter.peak.tokens < needed) return RED;
    meter.peak.tokens -= needed;
    if (meter.committed.tokens < needed) return YELLOW;
    meter.committed.tokens -= needed;
    return GREEN;
  }
}

function fullBucket(ratePerSecond: bigint, size: bigint): Bucket {
  return { tokensPerUs: Number(ratePerSecond) / 1e6, size: Number(size), tokens: Number(size) };
}

function fill(bucket: Bucket, elapsedUs: number): void {
  bucket.tokens = Math.min(bucket.size, bucket.tokens + elapsedUs * bucket.tokensPerUs);
}
