import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createLogger } from '../../base/logger.ts';
import { createRandom } from '../../base/random.ts';
import { ApiClient } from '../../controller/cli/client.ts';
import type { RolloutEvent, RolloutView, VersionView } from '../../controller/service.ts';
import type { NarrowLink } from '../../lab/fabric.ts';
import { type Lab, startLab } from '../../lab/lab.ts';
import { smallFabric } from '../lab/small-fabric.ts';

const OBJECT = 'models/test';
const BYTES = 2_500_000;

let directory = '';
let lab: Lab | undefined;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'ddf-path-'));
});

afterEach(async () => {
  await lab?.stop();
  lab = undefined;
  await rm(directory, { recursive: true, force: true });
});

/** An object to four servers, two on each leaf, on a fabric with jumbo frames but for these links. */
async function rollOut(
  narrowLinks: readonly NarrowLink[],
  lossPercent = 0,
): Promise<{ rollout: RolloutView; messages: string[] }> {
  const random = createRandom('path');
  const path = join(directory, 'object');
  await writeFile(
    path,
    Uint8Array.from({ length: BYTES }, () => random.below(256)),
  );
  lab = await startLab({
    topology: smallFabric(4),
    seed: 1,
    lossPercent,
    narrowLinks,
    directory: join(directory, 'lab'),
    logger: createLogger('silent'),
  });
  const client = new ApiClient(lab.url);
  const versions = `/v1/objects/${encodeURIComponent(OBJECT)}/versions`;
  await client.post<VersionView>(versions, { version: 1, path });
  await lab.startServers(new Map());
  const { id } = await client.post<RolloutView>('/v1/rollouts', { object: OBJECT, version: 1, servers: 'all' });
  const messages: string[] = [];
  for await (const event of client.events(id)) messages.push((event as RolloutEvent).message);
  return { rollout: await client.get<RolloutView>(`/v1/rollouts/${id}`), messages };
}

describe('the path of a transfer', () => {
  test('carries what the topology says: one probe, and the stream with the round trip that was measured', async () => {
    const { rollout } = await rollOut([]);
    expect(rollout).toMatchObject({ state: 'active', verified: 4 });
    const sent = rollout.transfers.filter(({ source }) => source !== 'unicast');
    expect(sent).toHaveLength(1);
    expect(sent[0]).toMatchObject({ state: 'closed', segmentBytes: 8192, pathSegmentBytes: 8192, error: null });
    expect(sent[0]!.sender.probeAnswers).toBeGreaterThanOrEqual(4);
    expect(sent[0]!.sender.rttUs).toBeGreaterThan(0);
    expect(sent[0]!.receiverTotals.probePackets).toBeGreaterThanOrEqual(4);
  });

  test('is narrower in the middle of the tree: everything is sent in segments that pass', async () => {
    // Ordinary Ethernet: 1,500 bytes hold tag, IP, UDP and fabric header and 1,414 bytes of payload.
    const narrow = ['spine1', 'spine2'].map((spine) => ({ between: ['leaf2', spine], mtuBytes: 1500 }) as const);
    const { rollout, messages } = await rollOut(narrow, 1);
    expect(rollout).toMatchObject({ state: 'active', verified: 4, error: null });
    const sent = rollout.transfers.filter(({ source }) => source !== 'unicast');
    expect(sent).toHaveLength(2);
    expect(sent[0]).toMatchObject({
      state: 'failed',
      segmentBytes: 8192,
      error: {
        code: 'PATH_TOO_NARROW',
        message: `segments of 8192 B do not pass, those of ${sent[1]!.segmentBytes} B do`,
      },
    });
    expect(sent[0]!.sender.dataPackets).toBe(0);
    expect(sent[1]!.segmentBytes).toBeGreaterThan(1414 - 64);
    expect(sent[1]!.segmentBytes).toBeLessThanOrEqual(1414);
    expect(sent[1]).toMatchObject({ state: 'closed', pathSegmentBytes: sent[1]!.segmentBytes, error: null });
    expect(sent[1]!.sender.dataPackets).toBeGreaterThanOrEqual(BYTES / 1414);
    expect(messages.join('\n')).toContain(`the path carries packets of ${sent[1]!.segmentBytes} B of payload only`);
  });

  test('carries nothing: the transfers say PATH_TOO_NARROW, and servers read by unicast', async () => {
    const narrow = ['mn1', 'mn2'].map((node, i) => ({ between: [node, `leaf${i + 1}`], mtuBytes: 400 }) as const);
    const { rollout, messages } = await rollOut(narrow);
    expect(rollout).toMatchObject({ state: 'active', verified: 4 });
    const sent = rollout.transfers.filter(({ source }) => source !== 'unicast');
    for (const transfer of sent)
      expect(transfer).toMatchObject({
        state: 'failed',
        pathSegmentBytes: null,
        error: {
          code: 'PATH_TOO_NARROW',
          message: 'none of 4 receivers answered probes with 512 to 8192 B of payload',
          where: `tree of transfer ${transfer.label}`,
          remedy: 'Check that the links of the tree are up and carry IP packets of the MTU that the topology says.',
        },
      });
    expect(rollout.transfers.find(({ source }) => source === 'unicast')).toMatchObject({ receivers: 4, complete: 4 });
    expect(messages.join('\n')).toContain('none of 4 receivers answered probes');
  });
});
