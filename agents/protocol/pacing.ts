/**
 * Spaces packets so that they leave at a rate, with a small burst after a pause: the virtual scheduling form of a token bucket
 * (ITU-T I.371, GCRA). Rates are bits per second of whole frames.
 */
export class Pacer {
  private readonly burstUs: number;
  private dueUs = Number.NEGATIVE_INFINITY;

  /** @param burstUs how much of a pause may be made up for at once, in microseconds of the rate */
  constructor(burstUs: number) {
    this.burstUs = burstUs;
  }

  /** When the next packet may leave: a time in the past if it may leave now. */
  readyAtUs(): number {
    return this.dueUs - this.burstUs;
  }

  sent(nowUs: number, bytes: number, rateBitsPerSecond: number): void {
    this.dueUs = Math.max(nowUs, this.dueUs) + (bytes * 8e6) / rateBitsPerSecond;
  }
}

/** Queue levels below this (of 255) are no reason to slow down. */
const LEVEL_THRESHOLD = 64;
/** A level of 255 halves the rate, lower ones take proportionally less. */
const LARGEST_CUT = 0.5;
/** Share of the ceiling that the rate gains back per second. */
const RECOVERY_PER_SECOND = 0.5;
/** Cuts in a row that change nothing about the level before reports are disregarded. */
const FRUITLESS_CUTS = 3;
const MEMORY_US = 1_000_000;
const LONGEST_DISREGARD_US = 32_000_000;

/**
 * The rate between a floor and a ceiling. Reports of filling queues lower it, at most once per SYNC epoch, time raises it again. If the
 * reported level does not fall although the rate did, the queue is not ours to drain, or the report is wrong: reports are then
 * disregarded for a while, each time for longer, so that one odd receiver cannot pin the rate.
 */
export class RateControl {
  private floor: number;
  private ceiling: number;
  private base: number;
  private baseUs = 0;
  private lastEpoch = -1;
  private lastLevel = 0;
  private lastReportUs = Number.NEGATIVE_INFINITY;
  private fruitless = 0;
  private disregardUntilUs = Number.NEGATIVE_INFINITY;
  private disregardUs = MEMORY_US;

  /** Starts at the ceiling. */
  constructor(floorBitsPerSecond: number, ceilingBitsPerSecond: number) {
    this.floor = floorBitsPerSecond;
    this.ceiling = ceilingBitsPerSecond;
    this.base = ceilingBitsPerSecond;
  }

  setLimits(nowUs: number, floorBitsPerSecond: number, ceilingBitsPerSecond: number): void {
    const wasAtCeiling = this.rateBitsPerSecond(nowUs) >= this.ceiling;
    this.floor = floorBitsPerSecond;
    this.ceiling = ceilingBitsPerSecond;
    this.restart(nowUs, wasAtCeiling ? ceilingBitsPerSecond : this.rateBitsPerSecond(nowUs));
  }

  rateBitsPerSecond(nowUs: number): number {
    const gained = ((nowUs - this.baseUs) / 1e6) * RECOVERY_PER_SECOND * this.ceiling;
    return Math.max(this.floor, Math.min(this.ceiling, this.base + gained));
  }

  onReport(nowUs: number, epoch: number, level: number): void {
    if (level < LEVEL_THRESHOLD || epoch === this.lastEpoch || nowUs < this.disregardUntilUs) return;
    const recent = nowUs - this.lastReportUs < MEMORY_US;
    if (recent && level >= this.lastLevel) this.fruitless++;
    else this.fruitless = 0;
    if (recent && level < this.lastLevel) this.disregardUs = MEMORY_US;
    this.lastEpoch = epoch;
    this.lastLevel = level;
    this.lastReportUs = nowUs;
    if (this.fruitless >= FRUITLESS_CUTS) {
      this.fruitless = 0;
      this.disregardUntilUs = nowUs + this.disregardUs;
      this.disregardUs = Math.min(2 * this.disregardUs, LONGEST_DISREGARD_US);
      return;
    }
    this.restart(nowUs, this.rateBitsPerSecond(nowUs) * (1 - (LARGEST_CUT * level) / 255));
  }

  private restart(nowUs: number, rate: number): void {
    this.base = Math.max(this.floor, Math.min(this.ceiling, rate));
    this.baseUs = nowUs;
  }
}

/** Lets repairs go first, but while there is new data they get at most their share of the bytes. */
export class RepairShare {
  private readonly ratio: number;
  private readonly most: number;
  private credit: number;

  /**
   * @param share     of the rate that repairs may take from new data, 0..1 exclusive
   * @param mostBytes credit that repairs can save up
   */
  constructor(share: number, mostBytes: number) {
    this.ratio = share / (1 - share);
    this.most = mostBytes;
    this.credit = mostBytes;
  }

  get mayRepair(): boolean {
    return this.credit > 0;
  }

  dataSent(bytes: number): void {
    this.credit = Math.min(this.most, this.credit + bytes * this.ratio);
  }

  repairSent(bytes: number): void {
    this.credit = Math.max(-this.most, this.credit - bytes);
  }
}
