import type { SimpleSwitch } from './bmv2/switch.ts';
import type { EmbeddedSwitch } from './embedded.ts';
import type { SentFrame } from './run.ts';

/** A port's queue in simple_switch_grpc holds 64 frames and drops the next ones; a few frames leave by the same port for one that comes in. */
const BATCH = 12;

/**
 * Gives both switches the same frames and describes the first ones for which something else leaves.
 *
 * @param same what has to be equal of a frame that leaves; default all of it
 */
export async function differences(
  embedded: EmbeddedSwitch,
  bmv2: SimpleSwitch,
  frames: readonly SentFrame[],
  cpuPort: number,
  same: (frame: Uint8Array) => Uint8Array = (frame) => frame,
): Promise<string[]> {
  const found: string[] = [];
  for (let start = 0; start < frames.length && found.length < 10; start += BATCH) {
    const batch = frames.slice(start, start + BATCH);
    const wantedUp: SentFrame[] = [];
    const ours = batch.map(({ port, frame }) => {
      embedded.inject(port, frame.slice());
      const sent = embedded.takeSent();
      wantedUp.push(...sent.filter((each) => each.port === cpuPort));
      return sent.filter((each) => each.port !== cpuPort);
    });
    const theirs = await bmv2.injectAll(batch);
    const up: SentFrame[] = bmv2.takeSent();
    while (up.length < wantedUp.length) {
      const late = await bmv2.takeLate();
      if (late.length === 0) break;
      up.push(...late);
    }
    batch.forEach(({ port, frame }, index) => {
      const [mine, other] = [describe(ours[index]!, same), describe(theirs[index]!, same)];
      if (mine !== other)
        found.push(`frame ${start + index} at port ${port}: ${hex(frame)}\n embedded: ${mine}\n bmv2: ${other}`);
    });
    const [mine, other] = [describe(wantedUp, same), describe(up, same)];
    if (mine !== other)
      found.push(`up from frames ${start}..${start + BATCH - 1}\n embedded: ${mine}\n bmv2: ${other}`);
  }
  return found;
}

/** In the order of the ports: each has a queue of its own, so nothing is said about the order between them. */
function describe(sent: readonly SentFrame[], same: (frame: Uint8Array) => Uint8Array): string {
  const ordered = [...sent].sort((a, b) => a.port - b.port);
  return ordered.map(({ port, frame }) => `${port}:${hex(same(frame))}`).join(' ') || 'nothing';
}

function hex(frame: Uint8Array): string {
  return Buffer.from(frame).toString('hex');
}
