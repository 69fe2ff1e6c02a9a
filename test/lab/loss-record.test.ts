import { expect, test } from 'vitest';
import { LossRecord } from '../../lab/study/loss-record.ts';
import { FABRIC_TYPE_DATA, FABRIC_TYPE_NACK, FABRIC_TYPE_REPAIR } from '../../p4/build/constants.ts';
import { UDP_FRAME_OVERHEAD_BYTES } from '../../wire/packet/udp.ts';

function frame(type: number, block: number, symbol: number): Uint8Array {
  const bytes = new Uint8Array(UDP_FRAME_OVERHEAD_BYTES + 40);
  bytes[UDP_FRAME_OVERHEAD_BYTES] = 0x10 | type;
  bytes[UDP_FRAME_OVERHEAD_BYTES + 27] = block;
  bytes[UDP_FRAME_OVERHEAD_BYTES + 28] = symbol;
  return bytes;
}

test('an ideal aggregator passes what is above all that it has passed', () => {
  const record = new LossRecord(['a', 'b', 'c']);
  // a lost one symbol, b two, c two: the need of a, then that of b; c adds nothing.
  for (const [host, lost] of [
    ['a', [3]],
    ['b', [1, 2]],
    ['c', [5, 6]],
  ] as const)
    for (const symbol of lost) record.observe(host, false, frame(FABRIC_TYPE_DATA, 0, symbol), false);
  expect(record.summary()).toMatchObject({ lostBlocks: 1, idealNacks: 2, largestLosses: 2 });
});

test('what is lost of the answer is asked for again, and parity ahead comes off the needs', () => {
  const record = new LossRecord(['a', 'b']);
  record.observe('a', false, frame(FABRIC_TYPE_DATA, 7, 0), false);
  record.observe('a', false, frame(FABRIC_TYPE_DATA, 7, 1), false);
  // One ahead, which a gets; then a NACK and an answer, which it loses.
  record.observe('source', true, frame(FABRIC_TYPE_REPAIR, 7, 64), true);
  record.observe('source', false, frame(FABRIC_TYPE_NACK, 7, 0), true);
  record.observe('source', true, frame(FABRIC_TYPE_REPAIR, 7, 65), true);
  record.observe('a', false, frame(FABRIC_TYPE_REPAIR, 7, 65), false);
  record.observe('source', true, frame(FABRIC_TYPE_REPAIR, 7, 66), true);
  expect(record.summary()).toMatchObject({ nacksAtSource: 1, idealNacks: 2, repairSymbols: 3 });
});

test('what the source loses, everybody loses; other frames are not looked at', () => {
  const record = new LossRecord(['a', 'b', 'c']);
  record.observe('source', true, frame(FABRIC_TYPE_DATA, 0, 9), false);
  record.observe('a', false, new Uint8Array(60), false);
  expect(record.summary()).toMatchObject({ lostBlocks: 1, idealNacks: 1, largestLosses: 1 });
});
