/** What the sender has to repair: one question per block, its hold, its answer. */

interface Answer {
  readonly block: number;
  /** Symbols that this answer has to contain. */
  target: number;
  sent: number;
  state: 'held' | 'ready' | 'finished';
  /** Held: when the hold ends. Finished: when the last symbol left. */
  atUs: number;
}

export class RepairQueue {
  private readonly holdUs: number;
  private readonly memoryUs: number;
  private readonly capacity: number;
  private readonly answers = new Map<number, Answer>();
  /** In the order of their ends, since all holds are equally long. */
  private readonly held = new Fifo<Answer>();
  private readonly ready = new Fifo<Answer>();

  /**
   * @param holdUs   how long a question waits for larger needs
   * @param memoryUs how long after its last symbol an answer still counts as under way: what a NACK needs that passed the first switch
   *                 before the answer did
   * @param capacity questions at once; more are refused, their receivers ask again
   */
  constructor(holdUs: number, memoryUs: number, capacity = 4096) {
    this.holdUs = holdUs;
    this.memoryUs = memoryUs;
    this.capacity = capacity;
  }

  /**
   * A NACK. A new question (`anew`, or nothing is known of the block) is answered in full, anything else extends the answer under way.
   * @returns false if there are too many questions
   */
  ask(nowUs: number, block: number, need: number, anew: boolean): boolean {
    let answer = this.answers.get(block);
    if (answer?.state === 'finished' && (anew || nowUs - answer.atUs > this.memoryUs)) {
      this.answers.delete(block);
      answer = undefined;
    }
    if (answer === undefined) {
      if (this.answers.size >= this.capacity && !this.forgetFinished(nowUs)) return false;
      answer = { block, target: need, sent: 0, state: 'held', atUs: nowUs + this.holdUs };
      this.answers.set(block, answer);
      this.held.push(answer);
      return true;
    }
    answer.target = Math.max(answer.target, anew ? answer.sent + need : need);
    if (answer.state === 'finished' && answer.target > answer.sent) this.makeReady(answer);
    return true;
  }

  /** Ends the holds that are over. */
  release(nowUs: number): void {
    for (let first = this.held.first; first !== undefined && first.atUs <= nowUs; first = this.held.first) {
      this.held.shift();
      this.makeReady(first);
    }
  }

  /** When the next hold ends. */
  nextReleaseUs(): number | undefined {
    return this.held.first?.atUs;
  }

  /** The block whose answer is next. */
  nextBlock(): number | undefined {
    return this.ready.first?.block;
  }

  /**
   * One symbol of the next answer leaves.
   * @returns how many of the answer are still to come
   */
  symbolSent(nowUs: number): number {
    const answer = this.ready.first!;
    answer.sent++;
    const remaining = answer.target - answer.sent;
    if (remaining === 0) {
      this.ready.shift();
      answer.state = 'finished';
      answer.atUs = nowUs;
    }
    return remaining;
  }

  private makeReady(answer: Answer): void {
    answer.state = 'ready';
    this.ready.push(answer);
  }

  private forgetFinished(nowUs: number): boolean {
    for (const [block, answer] of this.answers)
      if (answer.state === 'finished' && nowUs - answer.atUs > this.memoryUs) this.answers.delete(block);
    return this.answers.size < this.capacity;
  }
}

/** A queue whose `shift` costs nothing. */
class Fifo<T> {
  private items: T[] = [];
  private head = 0;

  get first(): T | undefined {
    return this.items[this.head];
  }

  push(item: T): void {
    this.items.push(item);
  }

  shift(): void {
    this.head++;
    if (this.head * 2 > this.items.length) {
      this.items = this.items.slice(this.head);
      this.head = 0;
    }
  }
}
