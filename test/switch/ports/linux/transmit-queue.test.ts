import { describe, expect, it } from 'vitest';
import { createRandom } from '../../../../base/random.ts';
import { TransmitQueue } from '../../../../switch/ports/linux/transmit-queue.ts';

/** Linux 6.18 on x86-64: up to a page in one piece whose size is a power of two, then a small head and pages in pairs where they are full. */
function chargeOf(bytes: number): number {
  const inOnePiece = bytes + 336;
  if (bytes < 4080) return 256 + (inOnePiece <= 576 ? 576 : 2 ** Math.ceil(Math.log2(inOnePiece)));
  return 832 + 4096 * Math.ceil((bytes - 14) / 4096);
}

/** A queue in the kernel: what was added and has not left. */
class Kernel {
  readonly lengths: number[] = [];
  readonly queue = new TransmitQueue();

  add(bytes: number): void {
    this.lengths.push(bytes);
    this.queue.add(bytes);
  }

  leave(frames: number): void {
    this.lengths.splice(0, frames);
  }

  read(): void {
    this.queue.read(this.lengths.reduce((sum, bytes) => sum + chargeOf(bytes), 0));
  }
}

describe('frames in an interface queue', () => {
  it('are counted to the frame once their charge is learnt, large and small ones together', () => {
    const kernel = new Kernel();
    for (const bytes of [1400, 8300, 60, 4110, 4200, 2000]) {
      kernel.add(bytes);
      expect(kernel.queue.isLearning).toBe(true);
      kernel.read();
      expect(kernel.queue.isLearning).toBe(false);
    }
    const random = createRandom(5);
    for (let step = 0; step < 2000; step++) {
      for (let n = random.below(20); n > 0; n--) kernel.add([1400, 8300, 60, 4110, 4200, 2000][random.below(6)]!);
      kernel.leave(random.below(22));
      kernel.read();
      expect(kernel.queue.length).toBe(kernel.lengths.length);
    }
    kernel.leave(kernel.lengths.length);
    kernel.read();
    expect(kernel.queue.length).toBe(0);
  });

  it('are never too few while frames leave between all readings, and get exact', () => {
    const kernel = new Kernel();
    const random = createRandom(6);
    for (let step = 0; step < 500; step++) {
      const bytes = random.below(2) === 0 ? 1400 : 8300;
      for (let n = 1 + random.below(8); n > 0; n--) {
        kernel.add(bytes);
        if (random.below(3) === 0) kernel.leave(1);
      }
      kernel.read();
      expect(kernel.queue.length).toBeGreaterThanOrEqual(kernel.lengths.length);
      if (step > 100) expect(kernel.queue.length).toBe(kernel.lengths.length);
      kernel.leave(random.below(4));
    }
  });

  it('read too deep by at most half before anything is known of them', () => {
    for (const [bytes, factor] of [
      [1400, 1.25],
      [8300, 1.5],
    ] as const) {
      const kernel = new Kernel();
      for (let i = 0; i < 400; i++) kernel.add(bytes);
      kernel.leave(200);
      kernel.read();
      expect(kernel.queue.length).toBeGreaterThanOrEqual(200);
      expect(kernel.queue.length).toBeLessThanOrEqual(200 * factor);
    }
  });

  it('are remembered up to a bound, the last ones', () => {
    const kernel = new Kernel();
    for (let i = 0; i < 40_000; i++) kernel.queue.add(60);
    expect(kernel.queue.length).toBe(16_384);
    kernel.queue.read(3 * chargeOf(60));
    expect(kernel.queue.length).toBeLessThanOrEqual(5);
    kernel.queue.read(0);
    expect(kernel.queue.length).toBe(0);
  });
});
