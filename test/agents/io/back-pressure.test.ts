import { expect, test } from 'vitest';
import { loadLibc } from '../../../base/linux/libc.ts';
import { measure, WAYS } from '../../../scripts/bench-socket/measure.ts';
import { makePeers, whyNoVeth } from '../../../scripts/bench-socket/namespaces.ts';

const MTU_BYTES = 9000;
const RATE = 100e6;
const DATAGRAM_BYTES = 1400;
const FRAME_BYTES = DATAGRAM_BYTES + 42;

const reason =
  whyNoVeth() ??
  (await loadLibc().then(
    () => undefined,
    (error: Error) => error.message,
  ));

test.skipIf(reason !== undefined).each(WAYS.filter(({ name }) => name.startsWith('batched')))(
  `a sender without a rate waits for a slow interface and loses nothing in its queue: $name${reason === undefined ? '' : ` (skipped: ${reason})`}`,
  { timeout: 60_000 },
  async (way) => {
    const peers = await makePeers(MTU_BYTES, RATE);
    try {
      const figures = await measure(peers, way, DATAGRAM_BYTES, undefined);
      const perSecond = RATE / 8 / FRAME_BYTES;
      expect(figures.sendsDeferred).toBeGreaterThan(0);
      expect(figures.sendsFailed).toBe(0);
      // What the kernel took has arrived, but for what is on its way at either end of the run.
      expect(figures.sentPerSecond / figures.receivedPerSecond).toBeGreaterThan(0.9);
      expect(figures.sentPerSecond / figures.receivedPerSecond).toBeLessThan(1.1);
      expect(figures.receivedPerSecond).toBeGreaterThan(0.7 * perSecond);
      expect(figures.receivedPerSecond).toBeLessThan(1.2 * perSecond);
    } finally {
      peers.remove();
    }
  },
);
