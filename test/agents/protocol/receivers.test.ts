import { describe, expect, test } from 'vitest';
import { AskSchedule } from '../../../agents/protocol/ask-schedule.ts';
import { ResponseTime } from '../../../agents/protocol/response-time.ts';
import { HeaderTemplate, probeWaitUs } from '../../../agents/protocol/transfer.ts';
import { createRandom } from '../../../base/random.ts';
import {
  FABRIC_FLAG_CLOSED,
  FABRIC_TYPE_DATA,
  FABRIC_TYPE_DONE,
  FABRIC_TYPE_PROBE,
  FABRIC_TYPE_REPAIR,
  FABRIC_TYPE_SYNC,
} from '../../../p4/build/constants.ts';
import { decodeFabric, encodeFabric } from '../../../wire/fabric/header.ts';
import { readUint32 } from '../../../wire/packet/integers.ts';
import { TRANSFER } from './harness.ts';
import { Star, type StarOptions } from './star.ts';

const typeOf = (datagram: Uint8Array): number => datagram[0] & 15;
const blockOf = (datagram: Uint8Array): number => readUint32(datagram, 24);
const isData = (datagram: Uint8Array, block: number, symbol: number): boolean =>
  typeOf(datagram) === FABRIC_TYPE_DATA && blockOf(datagram) === block && datagram[28] === symbol;
const isClosed = (datagram: Uint8Array): boolean =>
  typeOf(datagram) === FABRIC_TYPE_SYNC && (datagram[1] & FABRIC_FLAG_CLOSED) !== 0;

describe('a receiver behind a bad link', () => {
  test('that loses 10 % in both directions gets all of it by repair; the others lose nothing and ask nothing', () => {
    const options: StarOptions = {
      seed: 'lossy',
      receivers: 4,
      payloadBytes: 4_000_000,
      sender: { expectDone: false },
    };
    const star = new Star(options);
    const lossy = star.receivers[0];
    const receive = lossy.receive.bind(lossy);
    lossy.receive = (datagram) => {
      if (!star.random.chance(0.1)) receive(datagram);
    };
    const toSender = star.sender.receive.bind(star.sender);
    star.sender.receive = (datagram) => {
      if (!star.random.chance(0.1)) toSender(datagram);
    };
    expect(star.runToEnd()).toBe(true);
    const alone = new Star(options);
    expect(alone.runToEnd()).toBe(true);
    for (const receiver of star.receivers) receiver.expectComplete();
    expect(lossy.machine.counters.unicastBytes).toBe(0);
    expect(lossy.machine.counters.blocksDecoded).toBeGreaterThan(40);
    for (const [i, receiver] of star.receivers.entries()) {
      if (receiver === lossy) continue;
      expect(receiver.machine.counters).toMatchObject({ nacksSent: 0, lostSymbols: 0, unicastBytes: 0 });
      // The sender's rate is shared with the repairs, which are 12 % of what is sent.
      expect(receiver.completeUs! / alone.receivers[i].completeUs!).toBeLessThan(1.25);
    }
  });

  test('that became slow is measured anew: answers are late there, not lost', () => {
    const star = new Star({
      seed: 'slow path',
      payloadBytes: 600_000,
      down: { delayUs: 400_000, drop: (datagram) => isData(datagram, 3, 9) || isData(datagram, 5, 1) },
      up: { delayUs: 400_000 },
    });
    expect(star.runToEnd()).toBe(true);
    const host = star.receivers[0];
    host.expectComplete();
    expect(host.machine.counters).toMatchObject({ unicastRequests: 0, lostSymbols: 2 });
    expect(host.machine.counters.nacksSent).toBeLessThanOrEqual(16);
  });
});

describe('late joiners', () => {
  test('do not ask for blocks of which nothing came: those are read by unicast at once', () => {
    const star = new Star({ seed: 'late', payloadBytes: 6_000_000, sender: { expectDone: false } });
    star.start();
    star.scheduler.runUntil(25_000);
    const late = star.addReceiver();
    late.pump();
    star.scheduler.runUntil(27_000);
    // Before the stream has ended, in one piece up to the block that was being sent.
    const asked = late.events.flatMap((event) => (event.type === 'unicastNeeded' ? event.ranges : []));
    expect(asked.length).toBeGreaterThanOrEqual(1);
    expect(asked[0].start).toBe(76);
    expect(asked[0].end).toBeGreaterThan(2_500_000);
    expect(star.runToEnd()).toBe(true);
    late.expectComplete();
    // The manifest is one short block, the one that was being sent may have been one too.
    expect(late.machine.counters.nacksSent).toBeLessThanOrEqual(2);
    expect(star.receivers[0].machine.counters.unicastBytes).toBe(0);
  });
});

describe('restarts', () => {
  test('segments in chunks that were verified before need not come again', () => {
    const payloadBytes = 3 << 20;
    const star = new Star({ seed: 'resumed', receivers: 0, payloadBytes, sender: { expectDone: false } });
    const disk = star.content.payload.slice();
    disk.fill(0, 1 << 20, 2 << 20);
    const host = star.addReceiver({ verifiedChunks: [0, 2], manifestIsHeld: true }, { disk });
    const start = 1 << 20;
    const blockBytes = 64 * 1376;
    const firstBlock = Math.floor(start / blockBytes);
    const receive = host.receive.bind(host);
    // Of the block on the border only what lies in the missing chunk arrives.
    host.receive = (datagram) => {
      const offset = (blockOf(datagram) - 1) * blockBytes + (datagram[28] + 1) * 1376;
      if (typeOf(datagram) !== FABRIC_TYPE_DATA || blockOf(datagram) !== firstBlock + 1 || offset > start)
        receive(datagram);
    };
    expect(star.runToEnd()).toBe(true);
    host.expectComplete();
    expect(host.machine.counters).toMatchObject({ nacksSent: 0, unicastBytes: 0, lostSymbols: 0, chunksVerified: 1 });
  });

  test('lost symbols of a block on the border are restored from what stood there', () => {
    const payloadBytes = 3 << 20;
    const star = new Star({
      seed: 'resumed with loss',
      receivers: 0,
      payloadBytes,
      down: { loss: 0.05 },
      sender: { expectDone: false },
    });
    const disk = star.content.payload.slice();
    disk.fill(0, 1 << 20, 2 << 20);
    const host = star.addReceiver({ verifiedChunks: [0, 2], manifestIsHeld: true }, { disk });
    expect(star.runToEnd()).toBe(true);
    host.expectComplete();
    expect(host.machine.counters.blocksDecoded).toBeGreaterThan(5);
    expect(host.machine.counters.chunksFailed).toBe(0);
  });
});

describe('loss at the end', () => {
  const payloadBytes = 4 * 64 * 1376;
  const isOfLastBlock = (datagram: Uint8Array): boolean =>
    typeOf(datagram) === FABRIC_TYPE_DATA && blockOf(datagram) === 4;
  const run = (drop: (datagram: Uint8Array) => boolean, options: Partial<StarOptions> = {}): Star => {
    const star = new Star({ seed: 'end', payloadBytes, down: { drop }, ...options });
    expect(star.runToEnd()).toBe(true);
    for (const receiver of star.receivers) receiver.expectComplete();
    return star;
  };

  test('the last symbols: a SYNC tells, one repair each', () => {
    const star = run((datagram) => isOfLastBlock(datagram) && datagram[28] >= 60);
    expect(star.sender.machine.counters.repairPackets).toBe(4);
    expect(star.scheduler.nowUs()).toBeLessThan(20_000);
  });

  test('the whole last block: more than is asked for, it is read by unicast', () => {
    const star = run(isOfLastBlock);
    expect(star.receivers[0].machine.counters).toMatchObject({ nacksSent: 0, unicastBytes: 64 * 1376 });
    expect(star.scheduler.nowUs()).toBeLessThan(20_000);
  });

  test('the last symbol and all SYNCs of the tail but the last one', () => {
    let syncs = 0;
    const star = run((datagram) => isData(datagram, 4, 63) || (typeOf(datagram) === FABRIC_TYPE_SYNC && syncs++ < 9));
    expect(star.receivers[0].machine.counters).toMatchObject({ lostSymbols: 1, unicastBytes: 0 });
    expect(star.scheduler.nowUs()).toBeLessThan(700_000);
  });

  test('the last symbol and every SYNC: silence ends it', () => {
    const star = run((datagram) => isData(datagram, 4, 63) || typeOf(datagram) === FABRIC_TYPE_SYNC);
    expect(star.receivers[0].machine.counters).toMatchObject({ nacksSent: 0, unicastBytes: 1376 });
    expect(star.scheduler.nowUs()).toBeLessThan(3_100_000);
  });

  test('the last symbol, its repairs and the first closed SYNCs: the last one says that nothing more comes', () => {
    let closed = 0;
    const star = new Star({
      seed: 'closed lost',
      payloadBytes,
      down: {
        drop: (datagram) =>
          isData(datagram, 4, 63) || typeOf(datagram) === FABRIC_TYPE_REPAIR || (isClosed(datagram) && closed++ < 2),
      },
    });
    star.start();
    star.scheduler.runUntil(8000);
    star.sender.machine.close(8000);
    star.sender.pump();
    expect(star.runToEnd()).toBe(true);
    expect(star.receivers[0].events).toContainEqual({ type: 'streamEnded', label: TRANSFER.label, reason: 'closed' });
    expect(star.scheduler.nowUs()).toBeLessThan(30_000);
  });

  test('every closed SYNC: silence says the same', () => {
    const star = new Star({ seed: 'all closed lost', payloadBytes, down: { drop: isClosed } });
    star.start();
    star.scheduler.runUntil(1500);
    star.sender.machine.close(1500);
    star.sender.pump();
    expect(star.runToEnd()).toBe(true);
    expect(star.receivers[0].events).toContainEqual({ type: 'streamEnded', label: TRANSFER.label, reason: 'idle' });
  });

  test('DONEs: each SYNC asks for another, one that arrives is enough', () => {
    let dones = 0;
    const star = run(() => false, {
      up: { drop: (datagram) => typeOf(datagram) === FABRIC_TYPE_DONE && dones++ < 5 },
    });
    star.scheduler.runUntil(star.scheduler.nowUs() + 2_000_000);
    expect(dones).toBe(6);
    expect(star.sender.machine.isClosed).toBe(true);
  });

  test('every DONE: the receiver has it all the same, the sender ends at its deadline', () => {
    const star = run(() => false, {
      up: { drop: (datagram) => typeOf(datagram) === FABRIC_TYPE_DONE },
      sender: { deadlineUs: 5_000_000 },
    });
    star.scheduler.runUntil(6_000_000);
    expect(star.sender.events.at(-1)).toEqual({ type: 'closed', reason: 'deadline' });
    expect(star.receivers[0].count('streamEnded')).toBe(1);
    expect(star.receivers[0].machine.pollTimeout()).toBeUndefined();
  });
});

describe('NACKs that nobody answers', () => {
  test('end in the unicast lane after the patience that silence gets', () => {
    const star = new Star({
      seed: 'no answer',
      down: { drop: (datagram) => typeOf(datagram) === FABRIC_TYPE_REPAIR || isData(datagram, 1, 9) },
      // The stream goes on being alive.
      sender: { deadlineUs: 20_000_000 },
    });
    const sync = setSyncs(star);
    expect(star.runToEnd()).toBe(true);
    sync.stop();
    star.receivers[0].expectComplete();
    const { nacksSent, unicastBytes } = star.receivers[0].machine.counters;
    expect(unicastBytes).toBe(1376);
    expect(nacksSent).toBeGreaterThanOrEqual(6);
    expect(nacksSent).toBeLessThanOrEqual(10);
    expect(star.scheduler.nowUs()).toBeLessThan(5_000_000);
  });

  /** Something of the transfer arrives every 100 ms: without it silence would end the stream. */
  function setSyncs(star: Star): { stop(): void } {
    let stopped = false;
    const headers = new HeaderTemplate(TRANSFER, star.receivers[0].machine.layout);
    let epoch = 100;
    const tick = (): void => {
      if (stopped) return;
      const header = headers.forEpoch(FABRIC_TYPE_SYNC, epoch++ & 255, { block: 1 });
      star.receivers[0].receive(encodeFabric(new Uint8Array(40), header, new Uint8Array(0)));
      star.scheduler.at(star.scheduler.nowUs() + 100_000, tick);
    };
    tick();
    return {
      stop: () => {
        stopped = true;
      },
    };
  }

  function ask(repairs: (nowUs: number) => boolean): number {
    const random = createRandom('asks');
    const schedule = new AskSchedule(new ResponseTime(400, 10_000, random), 1_000_000);
    schedule.add(0, 5, 1);
    for (let nowUs = 0; nowUs < 60_000_000; nowUs += 1000) {
      if (repairs(nowUs)) schedule.repairArrived(nowUs);
      for (const { isHopeless } of schedule.due(nowUs)) {
        if (isHopeless) return nowUs;
        schedule.asked(nowUs, 5);
      }
    }
    return Number.POSITIVE_INFINITY;
  }

  test('are repeated as long as the sender repairs other blocks, and never for ever', () => {
    expect(ask(() => false)).toBeLessThan(2_500_000);
    const untilFive = ask((nowUs) => nowUs < 5_000_000);
    expect(untilFive).toBeGreaterThan(5_900_000);
    expect(untilFive).toBeLessThan(8_000_000);
    const always = ask(() => true);
    expect(always).toBeGreaterThan(9_000_000);
    expect(always).toBeLessThan(12_000_000);
  });
});

describe('response time', () => {
  test('backs off for all blocks while nothing is measured, once per round', () => {
    const response = new ResponseTime(400, 1000, { ...createRandom('r'), float: () => 0 });
    expect(response.retryDelayUs(1)).toBe(1400);
    response.expired(2000, 0);
    response.expired(2001, 1000);
    expect(response.retryDelayUs(1)).toBe(2800);
    expect(response.retryDelayUs(3)).toBe(2800);
    expect(response.retryDelayUs(5)).toBe(5600);
    response.expired(5000, 2000);
    expect(response.retryDelayUs(1)).toBe(5600);
    response.sample(4000);
    expect(response.retryDelayUs(1)).toBe(4000 + 4 * 2000);
    for (let i = 1; i < 100; i++) response.expired(i * 1e6, i * 1e6);
    expect(response.retryDelayUs(1)).toBe(64 * 12_000);
    expect(response.retryDelayUs(20)).toBe(1_000_000);
  });
});

describe('probes', () => {
  function probe(star: Star, epoch: number, need = 0): Uint8Array {
    const headers = new HeaderTemplate(TRANSFER, star.receivers[0].machine.layout);
    const header = headers.forEpoch(FABRIC_TYPE_PROBE, epoch & 255, { block: 200, need });
    return encodeFabric(new Uint8Array(2000), header, new Uint8Array(1376)).slice();
  }

  test('are answered under their number, without payload, within the time that they give', () => {
    const star = new Star({ seed: 'probes', receivers: 20, receiver: { startTimeoutUs: 10_000_000 } });
    const heard: { block: number; epoch: number; need: number; bytes: number; atUs: number }[] = [];
    star.sender.receive = (datagram) => {
      const packet = decodeFabric(datagram);
      if (typeof packet === 'string') throw new Error(packet);
      expect(packet).toMatchObject({ type: FABRIC_TYPE_PROBE, label: TRANSFER.label });
      const { block, epoch, need, payload } = packet;
      heard.push({ block, epoch, need, bytes: payload.length, atUs: star.scheduler.nowUs() });
    };
    for (const receiver of star.receivers) receiver.receive(probe(star, 3));
    star.scheduler.runUntil(1_000_000);
    expect(heard).toHaveLength(20);
    expect(heard.every(({ epoch, need, bytes }) => epoch === 3 && need === 1 && bytes === 0)).toBe(true);
    expect(new Set(heard.map(({ block }) => block)).size).toBe(20);
    for (const { block, atUs } of heard) expect(atUs).toBe(100 + probeWaitUs(200, block));
    expect(new Set(heard.map(({ atUs }) => atUs)).size).toBeGreaterThan(10);
    // The start may still take as long as it may.
    expect(star.receivers[0].machine.pollTimeout()).toBe(10_000_000);
    expect(star.receivers[0].machine.counters.probePackets).toBe(1);
  });

  test('answers of others are no probes, and a flood is answered in part', () => {
    const star = new Star({ seed: 'probe flood' });
    let answers = 0;
    star.sender.receive = () => answers++;
    star.receivers[0].receive(probe(star, 1, 1));
    expect(star.receivers[0].machine.counters.rejectedType).toBe(1);
    for (let i = 0; i < 1000; i++) star.receivers[0].receive(probe(star, i));
    star.scheduler.runUntil(1_000_000);
    expect(answers).toBeGreaterThanOrEqual(1);
    expect(answers).toBeLessThanOrEqual(16);
  });
});

test('parity that is kept is bounded: beyond it the oldest block is left to unicast', () => {
  const star = new Star({
    seed: 'bounded',
    payloadBytes: 2_000_000,
    receiver: { bufferBytes: 4 * 1376 },
    sender: { expectDone: false },
    // Two symbols lost per block, and every second repair.
    down: {
      drop: (datagram) =>
        (typeOf(datagram) === FABRIC_TYPE_DATA && datagram[28] % 16 === 5) ||
        (typeOf(datagram) === FABRIC_TYPE_REPAIR && datagram[28] % 2 === 0),
    },
  });
  expect(star.runToEnd()).toBe(true);
  star.receivers[0].expectComplete();
});
