import { describe, expect, test } from 'vitest';
import type { StripeSource } from '../../../agents/protocol/receiver-lane.ts';
import { VirtualScheduler } from '../../../base/clock.ts';
import { createRandom } from '../../../base/random.ts';
import { FABRIC_TYPE_DONE, FABRIC_TYPE_NACK, FABRIC_TYPE_REPORT } from '../../../p4/build/constants.ts';
import { readUint32 } from '../../../wire/packet/integers.ts';
import { makeContent, makePipe, ReceiverHost, SenderHost, TRANSFER } from './harness.ts';

const LAYOUT = { manifestBytes: 76, payloadBytes: 3_000_000, segmentBytes: 1376 };

interface Source {
  readonly stripe: StripeSource;
  readonly host: SenderHost;
}

/** One receiver, and senders of stripes that each have a link of their own to it. */
class Stripes {
  readonly scheduler = new VirtualScheduler();
  readonly sources = new Map<string, Source>();
  readonly receiver: ReceiverHost;
  /** Types of the datagrams that went to a sender. */
  readonly sent: { readonly to: string; readonly type: number; readonly label: number; readonly block: number }[] = [];
  private readonly random = createRandom('stripes');
  private readonly content = makeContent(this.random, LAYOUT.manifestBytes, LAYOUT.payloadBytes);
  private readonly loss: number;
  private readonly strays: boolean;

  /** @param strays whether senders send blocks of other stripes as well */
  constructor(stripes: readonly StripeSource[], loss = 0, strays = false) {
    this.loss = loss;
    this.strays = strays;
    this.receiver = new ReceiverHost(
      this.scheduler,
      this.content,
      {
        transfer: TRANSFER,
        ...LAYOUT,
        stripes,
        random: this.random.fork('receiver'),
        rttUs: 400,
        eliminationUs: 10_000,
        sendDone: true,
      },
      (datagram, to) => {
        const [type, label, block] = [datagram[0] & 15, readUint32(datagram, 4), readUint32(datagram, 24)];
        this.sent.push({ to, type, label, block });
        const source = this.sources.get(to);
        if (source !== undefined)
          makePipe(this.scheduler, this.random, { delayUs: 100, loss }, (copy) => source.host.receive(copy))(datagram);
      },
    );
    for (const stripe of stripes) this.start(stripe);
    this.receiver.pump();
  }

  /** A sender of the stripe, or of everything under its label. */
  start(stripe: StripeSource): void {
    const down = makePipe(this.scheduler, this.random, { delayUs: 100, loss: this.loss }, (datagram) =>
      this.receiver.receive(datagram),
    );
    const host = new SenderHost(
      this.scheduler,
      {
        transfer: { ...TRANSFER, label: stripe.label },
        ...LAYOUT,
        reader: { read: (offset, length) => this.content.stream.subarray(offset, offset + length) },
        rateFloorBitsPerSecond: 1e7,
        rateCeilingBitsPerSecond: 1e9,
        rttUs: 400,
        expectDone: true,
        ...(this.strays ? {} : { stripe: stripe.stripe }),
      },
      down,
    );
    this.sources.set(stripe.sender, { stripe, host });
    host.pump();
  }

  set(stripes: readonly StripeSource[]): void {
    this.receiver.machine.setStripes(this.scheduler.nowUs(), stripes);
    this.receiver.pump();
  }

  run(limitUs = 60_000_000): boolean {
    return this.scheduler.runWhile(() => this.receiver.complete, limitUs);
  }
}

function source(label: number, index: number, count: number, sender = `sender ${label}`): StripeSource {
  return { label, stripe: { index, count }, sender, rttUs: 400, sendDone: true };
}

describe('stripes', () => {
  test('two senders bring a payload, each is asked for its own blocks and hears DONE', () => {
    const world = new Stripes([source(7, 0, 2), source(8, 1, 2)], 0.02);
    expect(world.run()).toBe(true);
    world.scheduler.runUntil(world.scheduler.nowUs() + 2_000_000);
    world.receiver.expectComplete();
    expect(world.receiver.machine.counters.unicastBytes).toBe(0);
    const nacks = world.sent.filter(({ type }) => type === FABRIC_TYPE_NACK);
    expect(nacks.length).toBeGreaterThan(0);
    for (const { to, label, block } of world.sent.filter(({ type }) => type === FABRIC_TYPE_NACK)) {
      expect(to).toBe(`sender ${label}`);
      expect(block % 2).toBe(label - 7);
    }
    for (const { host } of world.sources.values()) expect(host.machine.counters.doneReceived).toBe(true);
  });

  test('packets under another stripe’s label are not taken', () => {
    const world = new Stripes([source(7, 0, 2), source(8, 1, 2)], 0, true);
    expect(world.run()).toBe(true);
    world.receiver.expectComplete();
    const { rejectedBlock, packetsRejected, duplicates } = world.receiver.machine.counters;
    expect(rejectedBlock).toBeGreaterThan(1000);
    expect(packetsRejected).toBe(rejectedBlock);
    expect(duplicates).toBe(0);
  });

  test('a source fails: another takes its stripe under a new label, what is held is kept', () => {
    const world = new Stripes([source(7, 0, 2), source(8, 1, 2)], 0.01);
    world.scheduler.runUntil(12_000);
    world.sources.get('sender 8')!.host.halt();
    world.scheduler.runUntil(20_000);
    const replacement = source(9, 1, 2);
    world.set([source(7, 0, 2), replacement]);
    world.start(replacement);
    expect(world.run()).toBe(true);
    world.receiver.expectComplete();
    expect(world.receiver.machine.counters.unicastBytes).toBe(0);
    // What had come before the failure came again and was not needed.
    expect(world.receiver.machine.counters.duplicates).toBeGreaterThan(300);
    expect(world.receiver.events).toContainEqual({ type: 'streamEnded', label: 8, reason: 'replaced' });
    expect(world.receiver.machine.labels).toEqual([7, 9]);
  });

  test('a stripe that nobody sends any more is read by unicast, the other goes on', () => {
    const world = new Stripes([source(7, 0, 2), source(8, 1, 2)]);
    world.scheduler.runUntil(8000);
    world.set([source(7, 0, 2)]);
    expect(world.run()).toBe(true);
    world.receiver.expectComplete();
    const { unicastBytes } = world.receiver.machine.counters;
    expect(unicastBytes).toBeGreaterThan(500_000);
    expect(unicastBytes).toBeLessThan(1_500_000);
  });

  test('taken out of the tree: everything missing by unicast, nothing is said any more', () => {
    const world = new Stripes([source(7, 0, 2), source(8, 1, 2)], 0.02);
    world.scheduler.runUntil(8000);
    world.set([]);
    const said = world.sent.length;
    expect(world.run()).toBe(true);
    world.scheduler.runUntil(world.scheduler.nowUs() + 2_000_000);
    world.receiver.expectComplete();
    expect(world.sent.slice(said)).toEqual([]);
    expect(world.receiver.machine.pollTimeout()).toBeUndefined();
  });

  test('a label that is known with another part, or from another sender, is a new one', () => {
    const world = new Stripes([source(7, 0, 1)]);
    world.scheduler.runUntil(5000);
    world.set([source(7, 0, 1, 'another')]);
    expect(world.receiver.events).toContainEqual({ type: 'streamEnded', label: 7, reason: 'replaced' });
    expect(world.run()).toBe(true);
    world.receiver.expectComplete();
    const heard = world.sent.filter(({ type }) => type === FABRIC_TYPE_DONE || type === FABRIC_TYPE_REPORT);
    expect(new Set(heard.map(({ to }) => to))).toEqual(new Set(['another']));
  });

  test('stripes that are not of one payload are refused and change nothing', () => {
    const world = new Stripes([source(7, 0, 2), source(8, 1, 2)]);
    for (const bad of [
      [source(7, 0, 2), source(8, 1, 3)],
      [source(7, 0, 2), source(8, 0, 2)],
      [source(7, 0, 2), source(7, 1, 2)],
      [source(7, 2, 2)],
    ])
      expect(() => world.set(bad)).toThrow(expect.objectContaining({ code: 'INVALID_OPTION' }));
    expect(world.run()).toBe(true);
    expect(world.receiver.machine.counters.unicastBytes).toBe(0);
  });
});
