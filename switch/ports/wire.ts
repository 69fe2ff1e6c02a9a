import type { Scheduler } from '../../base/clock.ts';
import type { Frame, Port } from './port.ts';

/**
 * Bytes that every Ethernet frame occupies on a wire beside those that software sees: preamble and start delimiter 8, FCS 4,
 * interframe gap 12 (IEEE 802.3, clauses 3.1 and 4.4.2). They cost time and are counted nowhere.
 */
const FRAME_OVERHEAD_BYTES = 24;
/** A shorter frame is padded on the wire (64 bytes with FCS). */
const SHORTEST_FRAME_BYTES = 60;

/** One direction of a wire, or both when they are alike. */
export interface WireProperties {
  readonly rateBitsPerSecond: number;
  /** One-way propagation delay, microseconds. */
  readonly delayUs: number;
  /** Frames that wait for the wire at most; the next one is dropped. The frame being sent does not wait. */
  readonly queueFrames: number;
  /** The longest frame that it carries, bytes without FCS; longer ones are dropped before they wait. Absent: any length. */
  readonly maxFrameBytes?: number;
}

/**
 * What happens to a frame at the far end of a direction, before it is delivered. It calls `deliver` as often as the frame
 * arrives (never, once, or more), at once or later, each time with bytes of its own. See impairments.ts.
 */
export interface FrameStage {
  /** Returns whether the frame arrives; false: it is lost. */
  pass(frame: Frame, deliver: (frame: Frame) => void): boolean;
}

/** Bytes are frame lengths without FCS. */
export interface WireStatistics {
  /** Handed in by the sending end, whatever became of them. */
  readonly framesIn: number;
  readonly bytesIn: number;
  /** Handed out to the receiving end. */
  readonly framesDelivered: number;
  readonly bytesDelivered: number;
  /** Dropped because the queue was full. */
  readonly framesQueueDropped: number;
  readonly bytesQueueDropped: number;
  /** Dropped because they were longer than the wire carries. */
  readonly framesTooLong: number;
  readonly bytesTooLong: number;
  /** Sent, but never handed out: lost by the stage at the end of the wire. */
  readonly framesLost: number;
  readonly bytesLost: number;
  /** Waiting, being sent or propagating; what a stage holds back is not among them. */
  readonly framesInFlight: number;
}

/** A transmit queue, a serialising transmitter and a propagation delay, with a stage at the far end. */
export class WireDirection {
  private readonly scheduler: Scheduler;
  private readonly properties: WireProperties;
  private readonly maxFrameBytes: number;
  private readonly stage: FrameStage | undefined;
  private readonly arrive: (frame: Frame) => void;
  /** When the transmitter has sent everything that was accepted; with fractions of a microsecond, so that rates are exact. */
  private idleAtUs = 0;
  /** Ring of the times at which accepted frames start to be sent; those in the future are the queue. */
  private readonly starts: Float64Array;
  private firstStart = 0;
  private startCount = 0;
  private framesIn = 0;
  private bytesIn = 0;
  private framesDelivered = 0;
  private bytesDelivered = 0;
  private framesQueueDropped = 0;
  private bytesQueueDropped = 0;
  private framesTooLong = 0;
  private bytesTooLong = 0;
  private framesLost = 0;
  private bytesLost = 0;
  private framesInFlight = 0;

  constructor(
    scheduler: Scheduler,
    properties: WireProperties,
    stage: FrameStage | undefined,
    arrive: (frame: Frame) => void,
  ) {
    this.scheduler = scheduler;
    this.properties = properties;
    this.maxFrameBytes = properties.maxFrameBytes ?? Number.POSITIVE_INFINITY;
    this.stage = stage;
    this.arrive = arrive;
    this.starts = new Float64Array(properties.queueFrames + 1);
  }

  send(frame: Frame): void {
    this.framesIn++;
    this.bytesIn += frame.length;
    if (frame.length > this.maxFrameBytes) {
      this.framesTooLong++;
      this.bytesTooLong += frame.length;
      return;
    }
    const nowUs = this.scheduler.nowUs();
    if (this.idleAtUs > nowUs && this.queueDepth() >= this.properties.queueFrames) {
      this.framesQueueDropped++;
      this.bytesQueueDropped += frame.length;
      return;
    }
    const startUs = Math.max(nowUs, this.idleAtUs);
    if (startUs > nowUs) {
      this.starts[(this.firstStart + this.startCount) % this.starts.length] = startUs;
      this.startCount++;
    }
    const wireBits = (Math.max(frame.length, SHORTEST_FRAME_BYTES) + FRAME_OVERHEAD_BYTES) * 8;
    this.idleAtUs = startUs + (wireBits * 1_000_000) / this.properties.rateBitsPerSecond;
    this.framesInFlight++;
    this.scheduler.at(this.idleAtUs + this.properties.delayUs, () => this.handOut(frame));
  }

  queueDepth(): number {
    const nowUs = this.scheduler.nowUs();
    while (this.startCount > 0 && this.starts[this.firstStart]! <= nowUs) {
      this.firstStart = (this.firstStart + 1) % this.starts.length;
      this.startCount--;
    }
    return this.startCount;
  }

  statistics(): WireStatistics {
    return {
      framesIn: this.framesIn,
      bytesIn: this.bytesIn,
      framesDelivered: this.framesDelivered,
      bytesDelivered: this.bytesDelivered,
      framesQueueDropped: this.framesQueueDropped,
      bytesQueueDropped: this.bytesQueueDropped,
      framesTooLong: this.framesTooLong,
      bytesTooLong: this.bytesTooLong,
      framesLost: this.framesLost,
      bytesLost: this.bytesLost,
      framesInFlight: this.framesInFlight,
    };
  }

  private handOut(frame: Frame): void {
    this.framesInFlight--;
    if (this.stage === undefined) {
      this.deliver(frame);
      return;
    }
    // Whoever takes a frame owns it and may shorten or change it: its length on this wire is noted before.
    const { length } = frame;
    if (!this.stage.pass(frame, this.deliver)) {
      this.framesLost++;
      this.bytesLost += length;
    }
  }

  private readonly deliver = (frame: Frame): void => {
    this.framesDelivered++;
    this.bytesDelivered += frame.length;
    this.arrive(frame);
  };
}

/** What each direction of a {@link Wire} ends in; absent: a perfect wire. */
export interface WireStages {
  readonly aToB?: FrameStage;
  readonly bToA?: FrameStage;
}

/** A full-duplex point-to-point wire: what is sent into one end comes out of the other, in order. */
export class Wire {
  readonly a: Port;
  readonly b: Port;
  readonly aToB: WireDirection;
  readonly bToA: WireDirection;

  constructor(scheduler: Scheduler, properties: WireProperties, stages: WireStages = {}) {
    this.aToB = new WireDirection(scheduler, properties, stages.aToB, (frame) => this.b.onFrame?.(frame));
    this.bToA = new WireDirection(scheduler, properties, stages.bToA, (frame) => this.a.onFrame?.(frame));
    this.a = endOf(this.aToB);
    this.b = endOf(this.bToA);
  }
}

function endOf(outgoing: WireDirection): Port {
  return {
    send: (frame) => outgoing.send(frame),
    queueDepth: () => outgoing.queueDepth(),
    onFrame: undefined,
  };
}
