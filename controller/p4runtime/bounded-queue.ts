/** First in, first out, with an end: what does not fit pushes out the oldest and is counted. */
export class BoundedQueue<T> {
  readonly capacity: number;
  /** Items lost so far. */
  dropped = 0;
  private items: T[] = [];
  private head = 0;

  /** @param capacity at least 1 */
  constructor(capacity: number) {
    this.capacity = capacity;
  }

  get length(): number {
    return this.items.length - this.head;
  }

  push(item: T): void {
    if (this.length >= this.capacity) {
      this.head++;
      this.dropped++;
    }
    this.items.push(item);
    if (this.head > this.capacity) {
      this.items = this.items.slice(this.head);
      this.head = 0;
    }
  }

  take(): T | undefined {
    if (this.length === 0) return undefined;
    const item = this.items[this.head++];
    if (this.length === 0) this.clear();
    return item;
  }

  clear(): void {
    this.items = [];
    this.head = 0;
  }
}
