import type { SenderOptions } from '../../../agents/protocol/sender.ts';
import { VirtualScheduler } from '../../../base/clock.ts';
import { createRandom, type Random } from '../../../base/random.ts';
import {
  type Content,
  makeContent,
  makePipe,
  type PipeOptions,
  type ReceiverBehaviour,
  ReceiverHost,
  type ReceiverSettings,
  SenderHost,
  TRANSFER,
} from './harness.ts';

export interface StarOptions {
  readonly seed: string;
  readonly manifestBytes?: number;
  readonly payloadBytes?: number;
  readonly segmentBytes?: number;
  readonly receivers?: number;
  /** Of every link from the sender to a receiver. */
  readonly down?: Partial<PipeOptions>;
  readonly up?: Partial<PipeOptions>;
  readonly sender?: Partial<SenderOptions>;
  readonly receiver?: Partial<ReceiverSettings>;
  readonly behaviour?: ReceiverBehaviour;
}

/** A sender and receivers around a point that copies everything, with no switch that eliminates anything. */
export class Star {
  readonly scheduler = new VirtualScheduler();
  readonly random: Random;
  readonly content: Content;
  readonly sender: SenderHost;
  readonly receivers: ReceiverHost[] = [];
  private readonly options: StarOptions;
  private readonly layout: { manifestBytes: number; payloadBytes: number; segmentBytes: number };
  private readonly downs: ((datagram: Uint8Array) => void)[] = [];

  constructor(options: StarOptions) {
    this.options = options;
    this.random = createRandom(options.seed);
    this.layout = {
      manifestBytes: options.manifestBytes ?? 76,
      payloadBytes: options.payloadBytes ?? 300_000,
      segmentBytes: options.segmentBytes ?? 1376,
    };
    const { manifestBytes, payloadBytes } = this.layout;
    this.content = makeContent(this.random.fork('content'), manifestBytes, payloadBytes);
    this.sender = new SenderHost(
      this.scheduler,
      {
        transfer: TRANSFER,
        ...this.layout,
        reader: { read: (offset, length) => this.content.stream.subarray(offset, offset + length) },
        rateFloorBitsPerSecond: 1e7,
        rateCeilingBitsPerSecond: 1e9,
        rttUs: 400,
        expectDone: (options.receivers ?? 1) === 1,
        ...options.sender,
      },
      (datagram) => {
        for (const down of this.downs) down(datagram);
      },
    );
    for (let i = 0; i < (options.receivers ?? 1); i++) this.addReceiver();
  }

  addReceiver(receiver: Partial<ReceiverSettings> = {}, behaviour = this.options.behaviour): ReceiverHost {
    const index = this.receivers.length;
    const pipe = { delayUs: 100, loss: 0 };
    const up = makePipe(this.scheduler, this.random.fork(`up ${index}`), { ...pipe, ...this.options.up }, (datagram) =>
      this.sender.receive(datagram),
    );
    const host = new ReceiverHost(
      this.scheduler,
      this.content,
      {
        transfer: TRANSFER,
        ...this.layout,
        random: this.random.fork(`receiver ${index}`),
        rttUs: 400,
        eliminationUs: 10_000,
        sendDone: true,
        ...this.options.receiver,
        ...receiver,
      },
      up,
      behaviour,
    );
    this.receivers.push(host);
    this.downs.push(
      makePipe(this.scheduler, this.random.fork(`down ${index}`), { ...pipe, ...this.options.down }, (datagram) =>
        host.receive(datagram),
      ),
    );
    return host;
  }

  start(): void {
    this.sender.pump();
    for (const receiver of this.receivers) receiver.pump();
  }

  /** Runs until every receiver is complete; false if that takes longer than 60 s. */
  runToEnd(limitUs = 60_000_000): boolean {
    this.start();
    return this.scheduler.runWhile(() => this.receivers.every((receiver) => receiver.complete), limitUs);
  }
}
