import { type Share, shareRates } from '../planner/rates.ts';

/** A share of the links, and the agent that sends by it. */
export interface SenderShare extends Share {
  readonly source: string;
}

/** Who sends how fast: transfers that run at the same time share the links that they have in common. */
export class RateBook {
  private readonly segmentBytes: number;
  private readonly shares = new Map<number, SenderShare>();
  private ceilings = new Map<number, number>();

  constructor(segmentBytes: number) {
    this.segmentBytes = segmentBytes;
  }

  /** Payload bits per second; undefined for a label that sends nothing. */
  ceiling(label: number): number | undefined {
    return this.ceilings.get(label);
  }

  sourceOf(label: number): string | undefined {
    return this.shares.get(label)?.source;
  }

  /** The transfer sends with another weight from now on. @returns as {@link change} */
  reweigh(label: number, weight: number): Map<number, number> {
    const share = this.shares.get(label);
    return share === undefined ? new Map() : this.change(label, { ...share, weight });
  }

  /** How many transfers run over a directed link, by its key. */
  loads(): Map<string, number> {
    const loads = new Map<string, number>();
    for (const { links } of this.shares.values())
      for (const { key } of links) loads.set(key, (loads.get(key) ?? 0) + 1);
    return loads;
  }

  /**
   * A transfer starts, takes more or less, or ends (undefined).
   * @returns the new ceilings of all transfers, this one included, for which they changed
   */
  change(label: number, share: SenderShare | undefined): Map<number, number> {
    if (share === undefined) this.shares.delete(label);
    else this.shares.set(label, share);
    const before = this.ceilings;
    this.ceilings = shareRates(this.shares, this.segmentBytes);
    return new Map([...this.ceilings].filter(([key, ceiling]) => before.get(key) !== ceiling));
  }
}
