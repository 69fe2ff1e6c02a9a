import { describe, expect, test } from 'vitest';
import { TransferDriver } from '../../../agents/io/transfer-driver.ts';
import { ProbedSender, type ProbedSenderEvent } from '../../../agents/protocol/probed-sender.ts';
import { VirtualScheduler } from '../../../base/clock.ts';
import { createRandom } from '../../../base/random.ts';
import { FABRIC_TYPE_DATA, FABRIC_TYPE_PROBE } from '../../../p4/build/constants.ts';
import { decodeFabric, encodeFabric, FABRIC_HEADER_BYTES } from '../../../wire/fabric/header.ts';
import { makeContent, makePipe, ReceiverHost, TRANSFER } from './harness.ts';

interface World {
  readonly seed: string;
  /** Largest segment that reaches each receiver; 0: nothing does. */
  readonly carried: readonly number[];
  readonly segmentBytes?: number;
  readonly loss?: number;
  readonly delayUs?: number;
  readonly largestSegmentBytes?: number;
  /** Those that the sender is told of. Default: all. */
  readonly expected?: number;
  /** When receivers begin to listen. */
  readonly listenUs?: number;
}

/** A sender that probes, and receivers behind links of their own. */
class Paths {
  readonly scheduler = new VirtualScheduler();
  readonly sender: ProbedSender;
  readonly events: ProbedSenderEvent[] = [];
  readonly receivers: ReceiverHost[];
  readonly sentTypes: number[] = [];
  pathUs = 0;

  constructor(world: World) {
    const { carried, loss = 0, delayUs = 100, segmentBytes = 8192, listenUs = 0, largestSegmentBytes } = world;
    const { scheduler } = this;
    const random = createRandom(world.seed);
    const layout = { manifestBytes: 76, payloadBytes: 2_000_000, segmentBytes };
    const content = makeContent(random.fork('content'), layout.manifestBytes, layout.payloadBytes);
    this.sender = new ProbedSender(0, {
      ...layout,
      transfer: TRANSFER,
      reader: { read: (offset, length) => content.stream.subarray(offset, offset + length) },
      rateFloorBitsPerSecond: 1e7,
      rateCeilingBitsPerSecond: 1e9,
      rttUs: 400,
      expectDone: false,
      probeReceivers: world.expected ?? carried.length,
      ...(largestSegmentBytes === undefined ? {} : { largestSegmentBytes }),
    });
    const downs: ((datagram: Uint8Array) => void)[] = [];
    const driver = new TransferDriver({
      machine: this.sender,
      scheduler,
      send: (datagram) => {
        this.sentTypes.push(datagram[0]! & 15);
        for (const down of downs) down(datagram);
      },
      onEvent: (event) => {
        this.events.push(event);
        if (event.type === 'path') this.pathUs = scheduler.nowUs();
      },
      onFailure: (error) => {
        throw error;
      },
    });
    this.receivers = carried.map((largest, i) => {
      const up = makePipe(scheduler, random.fork(`up ${i}`), { delayUs, loss }, (datagram) =>
        driver.handlePacket(datagram),
      );
      const options = { transfer: TRANSFER, ...layout, rttUs: 400, eliminationUs: 10_000, sendDone: true };
      const host = new ReceiverHost(scheduler, content, { ...options, random: random.fork(`r ${i}`) }, up);
      const drop = ({ length }: Uint8Array): boolean =>
        length > largest + FABRIC_HEADER_BYTES || scheduler.nowUs() < listenUs;
      downs.push(
        makePipe(scheduler, random.fork(`down ${i}`), { delayUs, loss, drop }, (datagram) => host.receive(datagram)),
      );
      return host;
    });
    driver.pump();
  }

  /** Until the path is known, or nothing more happens. */
  probe(): ProbedSenderEvent | undefined {
    this.scheduler.runWhile(() => this.events.length > 0, 10_000_000);
    return this.events[0];
  }
}

function eight(largest: number): number[] {
  return Array.from({ length: 8 }, () => largest);
}

describe('probing a path', () => {
  test('takes one round trip where the tree carries what it should, and measures it', () => {
    const paths = new Paths({ seed: 'wide', carried: eight(9000), delayUs: 700 });
    expect(paths.probe()).toEqual({ type: 'path', segmentBytes: 8192, silent: 0 });
    expect(paths.pathUs).toBeLessThanOrEqual(1400 + 200);
    const { rttUs, probePackets, probeAnswers } = paths.sender.counters;
    expect({ probePackets, probeAnswers }).toEqual({ probePackets: 1, probeAnswers: 8 });
    expect(rttUs).toBeGreaterThanOrEqual(1400);
    expect(rttUs).toBeLessThan(1450);
    expect(paths.scheduler.runWhile(() => paths.receivers.every(({ complete }) => complete), 10_000_000)).toBe(true);
    expect(paths.sender.counters.packetsRejected).toBe(0);
  });

  test('finds the largest size within 64 bytes, for whatever the narrowest link carries', () => {
    for (const narrow of [512, 513, 700, 1376, 1444, 2048, 4000, 8191]) {
      const paths = new Paths({ seed: `narrow ${narrow}`, carried: [9000, 9000, narrow, 9000] });
      const event = paths.probe();
      expect(event).toMatchObject({ type: 'path', silent: 0 });
      const { segmentBytes } = event as { segmentBytes: number };
      expect(segmentBytes).toBeLessThanOrEqual(narrow);
      expect(segmentBytes).toBeGreaterThan(narrow - 64);
      expect(paths.pathUs).toBeLessThan(500_000);
      expect(paths.sender.counters.probePackets).toBeLessThan(160);
      // The layout is the receivers' too: nothing more is sent.
      paths.scheduler.runUntil(5_000_000);
      expect(paths.sentTypes).not.toContain(FABRIC_TYPE_DATA);
      expect(paths.sender.pollTimeout()).toBeUndefined();
    }
  });

  test('has a number for each probe, however large the segments', () => {
    for (const narrow of [600, 9000, 64_000]) {
      const carried = [...eight(65_000), narrow];
      const paths = new Paths({ seed: `large ${narrow}`, carried, segmentBytes: 65_000, listenUs: 500_000 });
      const event = paths.probe() as { segmentBytes: number };
      expect(event.segmentBytes).toBeLessThanOrEqual(narrow);
      expect(event.segmentBytes).toBeGreaterThan(narrow - 64);
      expect(paths.sender.counters.probePackets).toBeLessThanOrEqual(256);
    }
  });

  test('is not misled by loss', () => {
    let exact = 0;
    for (let seed = 0; seed < 50; seed++) {
      const paths = new Paths({ seed: `lossy ${seed}`, carried: eight(9000), loss: 0.1 });
      const event = paths.probe();
      expect(event?.type).toBe('path');
      if (event?.type === 'path' && event.segmentBytes === 8192) exact++;
      expect(paths.pathUs).toBeLessThan(500_000);
    }
    // Five probes that are lost, there or back, to one of eight receivers: 0.2 %.
    expect(exact).toBe(50);
  });

  test('goes on without receivers that answer nothing', () => {
    const paths = new Paths({ seed: 'silent', carried: [9000, 0, 9000] });
    expect(paths.probe()).toEqual({ type: 'path', segmentBytes: 8192, silent: 1 });
    expect(paths.pathUs).toBeLessThan(150_000);
    expect(paths.scheduler.runWhile(() => paths.receivers[2]!.complete, 5_000_000)).toBe(true);
  });

  test('waits for receivers that are late', () => {
    const paths = new Paths({ seed: 'late', carried: eight(9000), listenUs: 300_000 });
    expect(paths.probe()).toEqual({ type: 'path', segmentBytes: 8192, silent: 0 });
  });

  test('fails where not even the smallest packet passes, in bounded time', () => {
    for (const carried of [eight(511), eight(0)]) {
      const paths = new Paths({ seed: 'nothing', carried });
      const event = paths.probe();
      expect(event).toMatchObject({ type: 'pathFailed', error: { code: 'PATH_TOO_NARROW' } });
      expect(paths.scheduler.nowUs()).toBeLessThan(1_500_000);
      expect(paths.sender.counters.probePackets).toBeLessThan(60);
      expect(paths.sender.pollTimeout()).toBeUndefined();
    }
  });

  test('starts at what the own interface takes', () => {
    const carried = eight(9000);
    const paths = new Paths({ seed: 'own interface', carried, largestSegmentBytes: 1432 });
    expect(paths.probe()).toEqual({ type: 'path', segmentBytes: 1408, silent: 0 });
    const sizes = new Paths({ seed: 'own interface', carried, largestSegmentBytes: 100 });
    expect(sizes.probe()).toMatchObject({ type: 'pathFailed', error: { code: 'PATH_TOO_NARROW' } });
  });

  test('ends when it is closed, with a word to the tree', () => {
    const paths = new Paths({ seed: 'closed', carried: [0] });
    paths.scheduler.runUntil(1000);
    paths.sender.close(1000);
    paths.scheduler.runUntil(2_000_000);
    expect(paths.events.at(-1)).toEqual({ type: 'closed', reason: 'ended' });
  });

  test('counts what is no answer, and forged answers do not fill the memory', () => {
    const paths = new Paths({ seed: 'forged', carried: [0] });
    const answer = (fields: { type?: number; epoch?: number; need?: number; block?: number; payload?: number }) => {
      const { type = FABRIC_TYPE_PROBE, epoch = 0, need = 1, block = 1, payload = 0 } = fields;
      const header = { type, flags: 0, label: 7, objectIdHigh: 0x10000, objectIdLow: 0x2a, objectVersion: 22 };
      const rest = { baseVersion: 0, block, symbol: 0, sourceSymbols: 0, need, epoch };
      const buffer = new Uint8Array(FABRIC_HEADER_BYTES + payload);
      const datagram = encodeFabric(buffer, { ...header, ...rest }, new Uint8Array(payload));
      expect(typeof decodeFabric(datagram)).toBe('object');
      paths.sender.handlePacket(paths.scheduler.nowUs(), datagram);
    };
    answer({ need: 0 });
    answer({ epoch: 200 });
    answer({ payload: 8 });
    expect(paths.sender.counters).toMatchObject({
      packetsRejected: 3,
      rejectedType: 1,
      rejectedBlock: 1,
      rejectedLength: 1,
    });
    for (let block = 0; block < 10_000; block++) answer({ block });
    expect(paths.sender.counters.probeAnswers).toBe(10_000);
  });
});
