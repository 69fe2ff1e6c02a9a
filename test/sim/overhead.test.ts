import { describe, expect, test } from 'vitest';
import { Tree, type TreeOptions } from './tree.ts';

/** Bytes of frames that leave the source, headers, repairs and SYNCs included, per byte of payload. */
function overhead(options: Partial<TreeOptions> & { payloadBytes: number }): { ratio: number; tree: Tree } {
  const tree = new Tree({ seed: 'overhead', leaves: 4, receiversPerLeaf: 1, segmentBytes: 8192, ...options });
  expect(tree.run()).toBe(true);
  tree.scheduler.runUntil(tree.scheduler.nowUs() + 5_000_000);
  expect(tree.sender.machine.isClosed).toBe(true);
  for (const receiver of tree.receivers) receiver.expectComplete();
  return { ratio: tree.sender.machine.counters.frameBytes / options.payloadBytes, tree };
}

describe('bytes out of the source with 8 KiB segments', () => {
  for (const payloadBytes of [200_000, 700_000, 8 << 20])
    test(`no loss, ${payloadBytes} B`, () => {
      const { ratio, tree } = overhead({ payloadBytes });
      expect(tree.sender.machine.counters.repairPackets).toBe(0);
      expect(ratio).toBeLessThanOrEqual(1.02);
    });

  test('no loss, 200 kB, and nobody ever says DONE', () => {
    const { ratio } = overhead({
      payloadBytes: 200_000,
      receiver: { sendDone: false },
      sender: { expectDone: false, deadlineUs: 3_000_000 },
    });
    expect(ratio).toBeLessThanOrEqual(1.02);
  });

  test('1 % loss on every host link, 64 receivers', () => {
    const { ratio, tree } = overhead({ payloadBytes: 4 << 20, receiversPerLeaf: 16, hostLink: { loss: 0.01 } });
    console.log(`1 % loss, 64 receivers: ${ratio.toFixed(4)} bytes out of the source per byte of payload`);
    expect(ratio).toBeLessThanOrEqual(1.1);
    for (const receiver of tree.receivers) expect(receiver.count('unicastNeeded')).toBe(0);
  });
});
