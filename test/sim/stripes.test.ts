import { expect, test } from 'vitest';
import { readFabricProgram } from '../../lab/p4-program.ts';
import { studyTransfer } from '../../lab/study/transfer-study.ts';

const PROGRAM = readFabricProgram();

test('two trees over links between switches that are half as fast as those of the hosts: 1.8 times the goodput of one', () => {
  const options = {
    receivers: 4,
    leaves: 2,
    spines: 2,
    mtuBytes: 9000,
    hostBitsPerSecond: 1e9,
    coreBitsPerSecond: 5e8,
    delayUs: 10,
    seed: 1,
    loss: 0,
    payloadBytes: 8 << 20,
  };
  const one = studyTransfer(PROGRAM, options);
  const two = studyTransfer(PROGRAM, { ...options, maxStripes: 2 });
  expect([one.verified, two.verified]).toEqual([4, 4]);
  expect([one.stripes, two.stripes]).toEqual([1, 2]);
  expect(one.seconds / two.seconds).toBeGreaterThan(1.8);
  expect(two.linkBytesOverBound).toBeLessThan(1.05);
});
