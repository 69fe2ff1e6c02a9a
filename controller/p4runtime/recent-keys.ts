/** Keys with a number each, of which the oldest are forgotten. */
export class RecentKeys {
  private readonly capacity: number;
  private readonly values = new Map<string, number>();

  /** @param capacity at least 1 */
  constructor(capacity: number) {
    this.capacity = capacity;
  }

  has(key: string): boolean {
    return this.values.has(key);
  }

  valueOf(key: string): number | undefined {
    return this.values.get(key);
  }

  /** A key that is there already becomes the newest. */
  add(key: string, value = 0): void {
    this.values.delete(key);
    this.values.set(key, value);
    if (this.values.size <= this.capacity) return;
    const [oldest] = this.values.keys();
    this.values.delete(oldest!);
  }

  clear(): void {
    this.values.clear();
  }
}
