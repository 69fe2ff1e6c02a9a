import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { loadLibc } from '../../../base/linux/libc.ts';
import { AfPacketPort } from '../../../switch/ports/af-packet.ts';
import { InterfaceControl } from '../../../switch/ports/linux/interface.ts';
import { FrameMemory } from '../../../switch/runtime/frames.ts';
import { ip, run, tag, whyNoInterfaces } from './veth.ts';

function whySkipped(): string | undefined {
  const reason = whyNoInterfaces();
  if (reason !== undefined) return reason;
  try {
    run('tc', '-Version');
    return undefined;
  } catch {
    return 'needs tc';
  }
}

const reason = whySkipped();
const NEAR = `dqa${tag}`;
const FAR = `dqb${tag}`;
const NAMESPACE = `dq${tag}`;
const MTU = 9500;
const RATE_MBITS = 20;
const BURST_BYTES = 20_000;
/** Far more than the burst, and charged less than the socket's buffer. */
const SENT_BYTES = 1_660_000;
/** Frames by which the level may be wrong. The qdisc is asked between two readings, so that what leaves meanwhile is none of it. */
const ERROR_FRAMES = 1;

/** What the qdisc itself says. */
function backlog(): number {
  const [qdisc] = JSON.parse(run('tc', '-json', '-statistics', 'qdisc', 'show', 'dev', NEAR)) as { qlen: number }[];
  return qdisc!.qlen;
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

describe.skipIf(reason !== undefined)(
  `the level of a port's queue${reason === undefined ? '' : ` (${reason})`}`,
  () => {
    let interfaces: InterfaceControl;
    let port: AfPacketPort;

    beforeEach(async () => {
      ip('netns', 'add', NAMESPACE);
      ip(
        ...['link', 'add', NEAR, 'mtu', `${MTU}`, 'type', 'veth'],
        ...['peer', 'name', FAR, 'mtu', `${MTU}`, 'netns', NAMESPACE],
      );
      ip('link', 'set', NEAR, 'addrgenmode', 'none', 'up');
      ip('-n', NAMESPACE, 'link', 'set', FAR, 'addrgenmode', 'none', 'up');
      run(
        'tc',
        ...['qdisc', 'add', 'dev', NEAR, 'root'],
        ...['tbf', 'rate', `${RATE_MBITS}mbit`, 'burst', `${BURST_BYTES}`, 'limit', '4mb'],
      );
      const libc = await loadLibc();
      interfaces = new InterfaceControl(libc);
      port = new AfPacketPort(libc, interfaces, NEAR);
    });
    afterEach(() => {
      port?.close();
      interfaces?.close();
      for (const remove of [() => ip('link', 'delete', NEAR), () => ip('netns', 'delete', NAMESPACE)]) {
        try {
          remove();
        } catch {
          // It was not made.
        }
      }
    });

    /** Asks for the level before each frame, as a program does. */
    const send = async (frames: number, bytes: number): Promise<void> => {
      for (let sent = 0; sent < frames; ) {
        for (const end = Math.min(frames, sent + 10); sent < end; sent++) {
          port.queueDepth();
          const frame = new Uint8Array(bytes);
          frame.set([2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x88, 0xb5]);
          port.send(new FrameMemory(frame), 0, bytes);
        }
        port.flush();
        await new Promise(setImmediate);
      }
    };

    it.each([1400, 8300])(
      'rises by what is above the shaped rate and falls to 0 when all is sent, of %i B',
      async (bytes) => {
        expect(port.queueDepth()).toBe(0);
        const frames = Math.round(SENT_BYTES / bytes);
        const startedAtMs = performance.now();
        await send(frames, bytes);
        const full = port.queueDepth();
        // No more can have left than the shaper allows.
        const leftBytes = BURST_BYTES + (RATE_MBITS / 8) * 1000 * (performance.now() - startedAtMs);
        expect(full).toBeGreaterThanOrEqual(Math.floor(frames - leftBytes / bytes));
        expect(full).toBeLessThanOrEqual(frames);
        expect(full).toBeGreaterThan(frames / 4);

        const levels = [full];
        const deadline = Date.now() + 10_000;
        while (levels.at(-1)! > 0) {
          if (Date.now() > deadline) throw new Error(`still ${levels.at(-1)} frames after 10 s`);
          await pause(20);
          const before = port.queueDepth();
          const between = backlog();
          await pause(0);
          const after = port.queueDepth();
          expect(before).toBeGreaterThanOrEqual(between - ERROR_FRAMES);
          expect(after).toBeLessThanOrEqual(between + ERROR_FRAMES);
          levels.push(before, after);
        }
        expect(levels).toEqual(levels.toSorted((a, b) => b - a));
        expect(new Set(levels).size).toBeGreaterThan(3);
        expect(backlog()).toBe(0);
        expect(port.statistics()).toMatchObject({ framesSent: frames, queueDropped: 0 });
      },
    );

    it('counts frames of both lengths together', async () => {
      await send(30, 1400);
      await send(30, 8300);
      for (let i = 0; i < 30; i++) {
        await send(1, 1400);
        await send(1, 8300);
      }
      await pause(0);
      const before = port.queueDepth();
      const between = backlog();
      await pause(0);
      const after = port.queueDepth();
      expect(between).toBeGreaterThan(50);
      expect(before).toBeGreaterThanOrEqual(between - ERROR_FRAMES);
      expect(after).toBeLessThanOrEqual(between + ERROR_FRAMES);
    });

    it('is 0 on a port that does not wait for anything', async () => {
      run('tc', 'qdisc', 'delete', 'dev', NEAR, 'root');
      await send(100, 1400);
      expect(port.queueDepth()).toBe(0);
    });
  },
);
