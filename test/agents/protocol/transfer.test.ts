import { describe, expect, test } from 'vitest';
import { FABRIC_FLAG_CLOSED, FABRIC_TYPE_DATA, FABRIC_TYPE_SYNC } from '../../../p4/build/constants.ts';
import { readUint32 } from '../../../wire/packet/integers.ts';
import { TRANSFER } from './harness.ts';
import { Star } from './star.ts';

const typeOf = (datagram: Uint8Array): number => datagram[0] & 15;
const blockOf = (datagram: Uint8Array): number => readUint32(datagram, 24);

test('without loss everything is sent once and DONE ends the transfer', () => {
  const star = new Star({ seed: 'clean', payloadBytes: 2_500_000, segmentBytes: 8192 });
  expect(star.runToEnd()).toBe(true);
  star.receivers[0].expectComplete();
  expect(star.receivers[0].count('unicastNeeded')).toBe(0);
  expect(star.receivers[0].count('chunkComplete')).toBe(3);
  star.scheduler.runUntil(star.scheduler.nowUs() + 1_000_000);
  expect(star.sender.events.map((event) => event.type)).toEqual(['sent', 'done', 'closed']);
  expect(star.sender.machine.counters).toMatchObject({ repairPackets: 0, nacksReceived: 0, doneReceived: true });
  expect(star.receivers[0].machine.counters).toMatchObject({ duplicates: 0, nacksSent: 0, lostSymbols: 0 });
  expect(star.receivers[0].count('streamEnded')).toBe(1);
});

test('tail loss: the last packets are noticed by SYNC', () => {
  let dropped = 0;
  const star = new Star({
    seed: 'tail loss',
    down: {
      drop: (datagram) => typeOf(datagram) === FABRIC_TYPE_DATA && blockOf(datagram) === 4 && dropped++ < 1000,
    },
    sender: { expectDone: true },
    payloadBytes: 3 * 64 * 1376 + 5 * 1376,
  });
  expect(star.runToEnd()).toBe(true);
  star.receivers[0].expectComplete();
  expect(dropped).toBe(5);
  expect(star.receivers[0].count('unicastNeeded')).toBe(0);
  expect(star.sender.machine.counters.repairPackets).toBe(5);
});

test('lost SYNC: the next one serves', () => {
  let syncs = 0;
  const star = new Star({
    seed: 'lost sync',
    down: {
      drop: (datagram) =>
        (typeOf(datagram) === FABRIC_TYPE_SYNC && syncs++ < 4) ||
        (typeOf(datagram) === FABRIC_TYPE_DATA && blockOf(datagram) === 4 && datagram[28] === 0),
    },
  });
  expect(star.runToEnd()).toBe(true);
  star.receivers[0].expectComplete();
  expect(syncs).toBeGreaterThan(4);
});

test('manifest lost: it is repaired like anything else, and chunks wait for it', () => {
  const star = new Star({
    seed: 'manifest lost',
    down: { drop: (datagram) => typeOf(datagram) === FABRIC_TYPE_DATA && blockOf(datagram) === 0 },
  });
  expect(star.runToEnd()).toBe(true);
  star.receivers[0].expectComplete();
  const types = star.receivers[0].events.map((event) => event.type);
  expect(types.indexOf('manifestComplete')).toBeLessThan(types.indexOf('chunkComplete'));
  expect(types).not.toContain('unicastNeeded');
});

test('all lose the same packet: one repair serves them all', () => {
  const star = new Star({
    seed: 'common loss',
    receivers: 8,
    down: {
      drop: (datagram) => typeOf(datagram) === FABRIC_TYPE_DATA && blockOf(datagram) === 1 && datagram[28] === 9,
    },
  });
  expect(star.runToEnd()).toBe(true);
  for (const receiver of star.receivers) receiver.expectComplete();
  const { repairPackets, parityAheadPackets } = star.sender.machine.counters;
  expect(repairPackets - parityAheadPackets).toBe(1);
});

test('independent loss: parity serves whatever each one misses', () => {
  const star = new Star({
    seed: 'loss',
    receivers: 6,
    payloadBytes: 1_500_000,
    down: { loss: 0.03 },
    up: { loss: 0.03 },
  });
  expect(star.runToEnd()).toBe(true);
  for (const receiver of star.receivers) {
    receiver.expectComplete();
    expect(receiver.count('unicastNeeded')).toBe(0);
    expect(receiver.machine.counters.blocksDecoded).toBeGreaterThan(0);
  }
});

test('late joiner: the live stream, and unicast for what it cannot ask for', () => {
  const star = new Star({ seed: 'late joiner', receivers: 1, payloadBytes: 3_000_000, sender: { expectDone: false } });
  star.start();
  star.scheduler.runUntil(12_000);
  const late = star.addReceiver();
  late.pump();
  expect(star.runToEnd()).toBe(true);
  late.expectComplete();
  const counters = late.machine.counters;
  expect(counters.unicastBytes).toBeGreaterThan(1_000_000);
  expect(counters.unicastBytes).toBeLessThan(2_000_000);
  // The manifest is one short block: the sender repairs it.
  expect(counters.repairPackets).toBeGreaterThan(0);
  // One prefix, not a request per block.
  expect(counters.unicastRequests).toBeLessThan(4);
  star.receivers[0].expectComplete();
});

test('slow receiver: it falls back to unicast and the other does not notice', () => {
  const star = new Star({
    seed: 'slow receiver',
    receivers: 1,
    payloadBytes: 2_000_000,
    sender: { expectDone: false },
  });
  const alone = new Star({
    seed: 'slow receiver',
    receivers: 1,
    payloadBytes: 2_000_000,
    sender: { expectDone: false },
  });
  const slow = star.addReceiver();
  const receive = slow.receive.bind(slow);
  slow.receive = (datagram) => {
    if (star.random.chance(0.6)) receive(datagram);
  };
  expect(star.runToEnd()).toBe(true);
  slow.expectComplete();
  expect(slow.count('unicastNeeded')).toBeGreaterThan(0);
  expect(alone.runToEnd()).toBe(true);
  expect(star.receivers[0].completeUs! - alone.receivers[0].completeUs!).toBeLessThan(2000);
});

test('sender stops: silence ends in the unicast lane', () => {
  const star = new Star({ seed: 'sender stops', payloadBytes: 2_000_000 });
  star.start();
  star.scheduler.runUntil(5000);
  star.sender.halt();
  expect(star.runToEnd()).toBe(true);
  star.receivers[0].expectComplete();
  expect(star.receivers[0].events).toContainEqual({ type: 'streamEnded', label: TRANSFER.label, reason: 'idle' });
});

test('a sender that never starts: the start timeout ends in the unicast lane', () => {
  const star = new Star({ seed: 'never', receiver: { startTimeoutUs: 1_000_000 } });
  star.sender.halt();
  expect(star.runToEnd()).toBe(true);
  star.receivers[0].expectComplete();
});

test('sender closes while a receiver is incomplete: the rest is read by unicast at once', () => {
  const star = new Star({ seed: 'closed', payloadBytes: 2_000_000 });
  star.start();
  star.scheduler.runUntil(6000);
  star.sender.machine.close(6000);
  star.sender.pump();
  expect(star.runToEnd()).toBe(true);
  expect(star.scheduler.nowUs()).toBeLessThan(20_000);
  star.receivers[0].expectComplete();
  expect(star.receivers[0].events).toContainEqual({ type: 'streamEnded', label: TRANSFER.label, reason: 'closed' });
  star.scheduler.runUntil(100_000);
  expect(star.sender.machine.isClosed).toBe(true);
});

test('deadlines end both sides', () => {
  const star = new Star({
    seed: 'deadline',
    payloadBytes: 2_000_000,
    sender: { deadlineUs: 8000, expectDone: true },
    receiver: { deadlineUs: 6000 },
    behaviour: { unicast: () => undefined },
  });
  expect(star.runToEnd(1_000_000)).toBe(false);
  expect(star.receivers[0].events).toContainEqual({ type: 'streamEnded', label: TRANSFER.label, reason: 'deadline' });
  expect(star.sender.events.at(-1)).toEqual({ type: 'closed', reason: 'deadline' });
});

test('restart with verified chunks: only the others are received', () => {
  const payloadBytes = 4 * 1024 * 1024 + 1000;
  const star = new Star({ seed: 'restart', receivers: 0, payloadBytes, segmentBytes: 1376 });
  const disk = star.content.payload.slice();
  disk.fill(0, 2 << 20, 3 << 20);
  disk.fill(0, 4 << 20);
  const host = star.addReceiver({ verifiedChunks: [0, 1, 3], manifestIsHeld: true }, { disk });
  expect(star.runToEnd()).toBe(true);
  host.expectComplete();
  expect(host.events.filter((event) => event.type === 'chunkComplete')).toEqual([
    { type: 'chunkComplete', chunk: 2 },
    { type: 'chunkComplete', chunk: 4 },
  ]);
  expect(host.machine.counters).toMatchObject({ chunksVerified: 2, unicastBytes: 0 });
});

test('restart with everything verified: complete at once, DONE at the first SYNC', () => {
  const star = new Star({ seed: 'all held', receivers: 0, sender: { expectDone: true } });
  const host = star.addReceiver({ verifiedChunks: [0], manifestIsHeld: true }, { disk: star.content.payload.slice() });
  expect(host.complete).toBe(true);
  star.start();
  star.scheduler.runUntil(1_000_000);
  expect(star.sender.machine.counters.doneReceived).toBe(true);
  expect(star.sender.machine.isClosed).toBe(true);
});

test('duplicated, reordered and corrupted packets do no harm', () => {
  const star = new Star({
    seed: 'chaos',
    receivers: 3,
    payloadBytes: 1_200_000,
    down: { loss: 0.01, duplication: 0.05, jitterUs: 300, corruption: 0.02 },
    up: { loss: 0.01, duplication: 0.05, jitterUs: 300, corruption: 0.02 },
  });
  expect(star.runToEnd()).toBe(true);
  for (const receiver of star.receivers) {
    receiver.expectComplete();
    expect(receiver.machine.counters.packetsRejected).toBeGreaterThan(0);
    expect(receiver.machine.counters.duplicates).toBeGreaterThan(0);
  }
});

describe('sizes', () => {
  for (const [name, manifestBytes, payloadBytes, segmentBytes] of [
    ['1-byte payload', 44, 1, 8192],
    ['no manifest', 0, 5000, 1376],
    ['last short block', 76, 64 * 512 * 3 + 700, 512],
    ['exactly one block', 76, 64 * 512, 512],
    ['one byte more than a block', 76, 64 * 512 + 1, 512],
    ['tiny segments', 100, 3000, 1],
    ['manifest of two blocks', 64 * 512 + 300, 100_000, 512],
  ] as const)
    test(name, () => {
      const star = new Star({
        seed: name,
        receivers: 3,
        manifestBytes,
        payloadBytes,
        segmentBytes,
        down: { loss: 0.05 },
        up: { loss: 0.05 },
      });
      expect(star.runToEnd()).toBe(true);
      for (const receiver of star.receivers) receiver.expectComplete();
    });
});

describe('hash failures', () => {
  const payloadBytes = 3 << 20;

  /** Everything the sender sends is well formed, but its copy of one byte is damaged. */
  function starWithDamagedSender(damagedAt: number, unicastIsDamaged: boolean): Star {
    const honest = new Star({ seed: 'hash', receivers: 0, payloadBytes });
    const damaged = honest.content.stream.slice();
    damaged[damagedAt] ^= 1;
    const star = new Star({
      seed: 'hash',
      receivers: 0,
      payloadBytes,
      sender: { reader: { read: (offset, length) => damaged.subarray(offset, offset + length) } },
    });
    const from = unicastIsDamaged ? damaged : star.content.stream;
    star.addReceiver({}, { mayWriteWrong: true, unicast: (start, end) => from.subarray(start, end) });
    return star;
  }

  test('a wrong chunk is reported and read by unicast', () => {
    const star = starWithDamagedSender(76 + 1_500_000, false);
    expect(star.runToEnd()).toBe(true);
    const host = star.receivers[0];
    host.expectComplete();
    expect(host.events).toContainEqual({ type: 'chunkRejected', chunk: 1, failures: 1 });
    expect(host.machine.counters).toMatchObject({ chunksFailed: 1, chunksVerified: 3, unicastBytes: 1 << 20 });
  });

  test('a wrong manifest is read by unicast before any chunk counts', () => {
    const star = starWithDamagedSender(10, false);
    expect(star.runToEnd()).toBe(true);
    const host = star.receivers[0];
    host.expectComplete();
    expect(host.machine.counters).toMatchObject({ chunksFailed: 0, unicastBytes: 76 });
    expect(host.count('manifestComplete')).toBe(2);
  });

  for (const [what, damagedAt] of [
    ['chunk', 76 + 1_500_000],
    ['manifest', 10],
  ] as const)
    test(`a ${what} that is wrong everywhere ends the transfer with an error`, () => {
      const star = starWithDamagedSender(damagedAt, true);
      expect(star.runToEnd(10_000_000)).toBe(false);
      const host = star.receivers[0];
      const failed = host.events.filter((event) => event.type === 'failed');
      expect(failed).toHaveLength(1);
      expect(failed[0].error.code).toBe('HASH_MISMATCH');
      expect(host.machine.pollTimeout()).toBeUndefined();
    });
});

test('REPORT: the worst queue level of an epoch is told once and slows the sender', () => {
  const star = new Star({ seed: 'report', payloadBytes: 8_000_000, segmentBytes: 8192, sender: { expectDone: false } });
  const host = star.receivers[0];
  const receive = host.receive.bind(host);
  host.receive = (datagram) => {
    if (star.random.chance(0.1)) datagram[37] = 200;
    receive(datagram);
  };
  expect(star.runToEnd()).toBe(true);
  host.expectComplete();
  expect(star.sender.machine.counters.reportsReceived).toBe(host.machine.counters.reportsSent);
  expect(star.sender.machine.counters.reportsReceived).toBeGreaterThan(0);
  expect(star.sender.machine.counters.reportsReceived).toBeLessThanOrEqual(star.sender.machine.counters.syncPackets);
  expect(star.sender.machine.rateBitsPerSecond(star.scheduler.nowUs())).toBeLessThan(1e9);
});

test('closed SYNCs say so', () => {
  const flags: number[] = [];
  const star = new Star({
    seed: 'flags',
    down: {
      drop: (datagram) => {
        if (typeOf(datagram) === FABRIC_TYPE_SYNC) flags.push(datagram[1]);
        return false;
      },
    },
  });
  star.start();
  star.scheduler.runUntil(1_000_000);
  expect(flags.slice(-3)).toEqual([FABRIC_FLAG_CLOSED, FABRIC_FLAG_CLOSED, FABRIC_FLAG_CLOSED]);
  expect(flags.slice(0, -3).every((value) => value === 0)).toBe(true);
});
