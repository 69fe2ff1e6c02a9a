/** Frames that are remembered: more than a socket's buffer of 8 MiB (twice what we ask for, socket(7)) has room for. */
const MOST_FRAMES = 16_384;
/** Frames whose lengths differ by less are charged alike, but for those around a step. */
const CLASS_BYTES = 16;
const CLASSES = 65_536 / CLASS_BYTES;
/** What every frame takes besides its bytes at least, on 64-bit machines: struct sk_buff and its shared info. */
const LEAST_OVERHEAD_BYTES = 512;

/**
 * How many of the frames that were given to a packet socket have not left the interface's queue, from what the kernel charges the socket for them.
 *
 * The charge of a frame (truesize in linux/skbuff.h) is the memory that it takes: 2,304 B for 1,400 B and 13,120 B for 8,300 B with pages of 4 KiB, in
 * steps that depend on kernel and device. It is learnt. Between two readings the charge grows by that of the frames that were added, less that of those
 * that left; so a growth by frames of one length is never more than their charge, and the largest is the charge itself as soon as none left in between.
 * Until then frames of that length count for less than they are charged, and the queue reads too deep. Frames leave in the order in which they came.
 */
export class TransmitQueue {
  private readonly charges = Uint32Array.from({ length: CLASSES }, (_, at) => leastCharge(at));
  /** A ring of the classes of the frames that have not left, as far as the last reading tells. */
  private readonly classes = new Uint16Array(MOST_FRAMES);
  private first = 0;
  private count = 0;
  /** Of the frames in the ring, as learnt. */
  private charge = 0;
  private lastReading = 0;
  private addedSinceReading = 0;
  private addedClass = 0;
  private addedOneClass = true;

  get length(): number {
    return this.count;
  }

  /** Nothing is known of frames as long as the last one: two readings around the next ones would tell. */
  get isLearning(): boolean {
    return this.charges[this.addedClass] === leastCharge(this.addedClass);
  }

  /** The kernel has taken a frame. */
  add(bytes: number): void {
    const frameClass = Math.min(CLASSES - 1, Math.trunc((bytes - 1) / CLASS_BYTES));
    if (this.count === MOST_FRAMES) this.removeFirst();
    this.classes[(this.first + this.count++) % MOST_FRAMES] = frameClass;
    this.charge += this.charges[frameClass]!;
    if (this.addedSinceReading++ === 0) this.addedOneClass = true;
    else if (frameClass !== this.addedClass) this.addedOneClass = false;
    this.addedClass = frameClass;
  }

  /** @param chargedBytes what the kernel charges the socket now (SIOCOUTQ) */
  read(chargedBytes: number): void {
    if (this.addedSinceReading > 0 && this.addedOneClass)
      this.learn(Math.floor((chargedBytes - this.lastReading) / this.addedSinceReading));
    this.lastReading = chargedBytes;
    this.addedSinceReading = 0;
    while (this.count > 0 && this.charge - this.charges[this.classes[this.first]!]! >= chargedBytes) this.removeFirst();
  }

  private learn(chargeOfFrame: number): void {
    const frameClass = this.addedClass;
    if (chargeOfFrame <= this.charges[frameClass]!) return;
    this.charges[frameClass] = chargeOfFrame;
    this.charge = 0;
    for (let i = 0; i < this.count; i++) this.charge += this.charges[this.classes[(this.first + i) % MOST_FRAMES]!]!;
  }

  private removeFirst(): void {
    this.charge -= this.charges[this.classes[this.first]!]!;
    this.first = (this.first + 1) % MOST_FRAMES;
    this.count--;
  }
}

function leastCharge(frameClass: number): number {
  return frameClass * CLASS_BYTES + 1 + LEAST_OVERHEAD_BYTES;
}
