import { createHash } from 'node:crypto';
import { expect } from 'vitest';
import { WHOLE_STREAM } from '../../../agents/protocol/layout.ts';
import { type ReceiverEvent, type ReceiverOptions, TransferReceiver } from '../../../agents/protocol/receiver.ts';
import { type SenderEvent, type SenderOptions, TransferSender } from '../../../agents/protocol/sender.ts';
import type { TransferIdentity } from '../../../agents/protocol/transfer.ts';
import type { VirtualScheduler } from '../../../base/clock.ts';
import type { Random } from '../../../base/random.ts';
import { CHUNK_BYTES } from '../../../objects/chunks.ts';

/** Drivers for sender and receiver in virtual time, and the lossy pipes between them. */

export const TRANSFER = { label: 7, objectId: 0x0001_0000_0000_002an, objectVersion: 22, baseVersion: 0 } as const;

export interface Content {
  readonly manifest: Uint8Array;
  readonly payload: Uint8Array;
  readonly stream: Uint8Array;
}

export function makeContent(random: Random, manifestBytes: number, payloadBytes: number): Content {
  const stream = new Uint8Array(manifestBytes + payloadBytes);
  for (let i = 0; i + 4 <= stream.length; i += 4) {
    const word = random.uint32();
    stream[i] = word;
    stream[i + 1] = word >>> 8;
    stream[i + 2] = word >>> 16;
    stream[i + 3] = word >>> 24;
  }
  return { stream, manifest: stream.subarray(0, manifestBytes), payload: stream.subarray(manifestBytes) };
}

export interface PipeOptions {
  readonly delayUs: number;
  readonly loss?: number;
  readonly duplication?: number;
  /** Extra delay, uniform up to this, drawn per packet: packets overtake each other. */
  readonly jitterUs?: number;
  /** Share of packets of which one byte is changed. */
  readonly corruption?: number;
  /** Drops chosen packets. */
  readonly drop?: (datagram: Uint8Array) => boolean;
}

export type Deliver = (datagram: Uint8Array) => void;
/** To the address that a receiver has of a sender. */
export type SendTo = (datagram: Uint8Array, destination: string) => void;

export function makePipe(scheduler: VirtualScheduler, random: Random, options: PipeOptions, deliver: Deliver): Deliver {
  const once = (datagram: Uint8Array): void => {
    if (random.chance(options.loss ?? 0)) return;
    if (random.chance(options.corruption ?? 0)) datagram[random.below(datagram.length)] ^= 1 + random.below(255);
    const jitterUs = options.jitterUs === undefined ? 0 : random.below(options.jitterUs);
    scheduler.at(scheduler.nowUs() + options.delayUs + jitterUs, () => deliver(datagram));
  };
  return (datagram) => {
    if (options.drop?.(datagram) === true) return;
    once(datagram.slice());
    if (random.chance(options.duplication ?? 0)) once(datagram.slice());
  };
}

interface Machine {
  handlePacket(nowUs: number, datagram: Uint8Array): void;
  handleTimeout(nowUs: number): void;
  pollTransmit(nowUs: number): Uint8Array | undefined;
  pollTimeout(): number | undefined;
  /** Of receivers, which may have several senders. */
  readonly destination?: string;
}

/** What a driver does between a machine and the world. */
abstract class Host {
  protected readonly scheduler: VirtualScheduler;
  private readonly send: SendTo;
  private armedUs = Number.POSITIVE_INFINITY;
  private halted = false;

  constructor(scheduler: VirtualScheduler, send: SendTo) {
    this.scheduler = scheduler;
    this.send = send;
  }

  protected abstract get machine(): Machine;
  protected abstract handleEvents(): void;

  receive(datagram: Uint8Array): void {
    if (this.halted) return;
    this.machine.handlePacket(this.scheduler.nowUs(), datagram);
    this.pump();
  }

  /** The process is killed. */
  halt(): void {
    this.halted = true;
  }

  pump(): void {
    if (this.halted) return;
    const nowUs = this.scheduler.nowUs();
    this.machine.handleTimeout(nowUs);
    this.handleEvents();
    for (let out = this.machine.pollTransmit(nowUs); out !== undefined; out = this.machine.pollTransmit(nowUs))
      this.send(out, this.machine.destination ?? '');
    this.handleEvents();
    const next = this.machine.pollTimeout();
    if (next === undefined || next >= this.armedUs) return;
    this.armedUs = next;
    this.scheduler.at(next, () => {
      if (this.armedUs !== next) return;
      this.armedUs = Number.POSITIVE_INFINITY;
      this.pump();
    });
  }
}

export class SenderHost extends Host {
  readonly machine: TransferSender;
  readonly events: SenderEvent[] = [];

  constructor(scheduler: VirtualScheduler, options: SenderOptions, send: Deliver) {
    super(scheduler, send);
    this.machine = new TransferSender(scheduler.nowUs(), options);
  }

  protected handleEvents(): void {
    for (let event = this.machine.poll(); event !== undefined; event = this.machine.poll()) this.events.push(event);
  }
}

/** Options of a receiver; of one stripe, unless they say which. */
export type ReceiverSettings = Omit<ReceiverOptions, 'sink' | 'stripes'> &
  Partial<Pick<ReceiverOptions, 'stripes'>> & {
    readonly transfer: TransferIdentity;
    readonly rttUs: number;
    readonly sendDone: boolean;
  };

export interface ReceiverBehaviour {
  /** Answers to unicast requests; default: the true bytes after 5 ms. Undefined: nobody answers. */
  readonly unicast?: (start: number, end: number, attempt: number) => Uint8Array | undefined;
  /** Starts from these bytes instead of nothing. */
  readonly disk?: Uint8Array;
  /** Damages what is written; only for hash failures. */
  readonly mayWriteWrong?: boolean;
}

export class ReceiverHost extends Host {
  readonly machine: TransferReceiver;
  readonly events: ReceiverEvent[] = [];
  readonly disk: Uint8Array;
  completeUs: number | undefined;
  private readonly content: Content;
  private readonly behaviour: ReceiverBehaviour;
  private readonly random: Random;
  private unicastRequests = 0;

  constructor(
    scheduler: VirtualScheduler,
    content: Content,
    options: ReceiverSettings,
    send: SendTo,
    behaviour: ReceiverBehaviour = {},
  ) {
    super(scheduler, send);
    this.content = content;
    this.behaviour = behaviour;
    this.random = options.random.fork('unicast');
    this.disk = behaviour.disk ?? new Uint8Array(content.payload.length);
    const { transfer, rttUs, sendDone } = options;
    this.machine = new TransferReceiver(scheduler.nowUs(), {
      stripes: [{ label: transfer.label, stripe: WHOLE_STREAM, sender: 'sender', rttUs, sendDone }],
      ...options,
      sink: {
        write: (offset, bytes) => this.write(offset, bytes),
        read: (offset, length) => this.disk.subarray(offset, offset + length),
      },
    });
  }

  get complete(): boolean {
    return this.machine.isComplete;
  }

  count(type: ReceiverEvent['type']): number {
    return this.events.filter((event) => event.type === type).length;
  }

  expectComplete(): void {
    expect(this.complete).toBe(true);
    expect(Buffer.from(this.disk.buffer, this.disk.byteOffset, this.disk.length).equals(this.content.payload)).toBe(
      true,
    );
  }

  private write(offset: number, bytes: Uint8Array): void {
    if (this.behaviour.mayWriteWrong !== true) {
      const truth = this.content.payload.subarray(offset, offset + bytes.length);
      if (!Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).equals(truth))
        throw new Error(`wrong bytes written at ${offset}`);
    }
    this.disk.set(bytes, offset);
  }

  protected handleEvents(): void {
    for (let event = this.machine.poll(); event !== undefined; event = this.machine.poll()) {
      this.events.push(event);
      switch (event.type) {
        case 'manifestComplete':
          this.machine.manifestVerified(sha256(event.bytes) === sha256(this.content.manifest));
          break;
        case 'chunkComplete': {
          const start = event.chunk * CHUNK_BYTES;
          const same =
            sha256(this.disk.subarray(start, start + CHUNK_BYTES)) ===
            sha256(this.content.payload.subarray(start, start + CHUNK_BYTES));
          this.machine.chunkVerified(event.chunk, same);
          break;
        }
        case 'unicastNeeded':
          for (const range of event.ranges) this.readByUnicast(range.start, range.end);
          break;
        case 'complete':
          this.completeUs = this.scheduler.nowUs();
          break;
        default:
      }
    }
  }

  private readByUnicast(start: number, end: number): void {
    const attempt = ++this.unicastRequests;
    this.scheduler.at(this.scheduler.nowUs() + 5000, () => {
      const unicast = this.behaviour.unicast;
      const bytes = unicast === undefined ? this.content.stream.subarray(start, end) : unicast(start, end, attempt);
      if (bytes === undefined) return;
      // HTTP cuts where it likes.
      for (let at = 0; at < bytes.length; ) {
        const length = Math.min(bytes.length - at, 1 + this.random.below(100_000));
        this.machine.unicastData(start + at, bytes.subarray(at, at + length));
        at += length;
      }
      this.pump();
    });
  }
}

function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}
