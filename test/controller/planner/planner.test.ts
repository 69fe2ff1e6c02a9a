import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { planText } from '../../../controller/planner/plan-text.ts';
import { makePlan } from '../../../controller/planner/planner.ts';
import { DELTA_BYTES, FULL_BYTES, World } from './fixture.ts';

const demo = { object: 'models/demo', version: 22, servers: 'all' as const };

describe('the example of the product: 40 have it, 16 have version 21, 8 have nothing', () => {
  const world = World.example();
  const { view, cohorts } = makePlan(demo, world.directory, world.fabric);

  it('sends nothing to the 40, one delta to the 16, one object to the 8', () => {
    expect(view.targets).toBe(64);
    expect(view.cohorts.map((c) => [c.kind, c.from, c.servers.length, c.mechanism, c.payload, c.source])).toEqual([
      ['current', 22, 40, 'none', null, null],
      ['delta', 21, 16, 'multicast', { base: 21, sizeBytes: DELTA_BYTES }, 'mn1'],
      ['full', null, 8, 'multicast', { base: null, sizeBytes: FULL_BYTES }, 'mn1'],
    ]);
  });

  it('takes one object and one delta out of the source, not 24 objects', () => {
    expect(view.bytes.source).toBe(FULL_BYTES + DELTA_BYTES);
    expect(view.bytes.unicastSource).toBe(24 * FULL_BYTES);
  });

  it('counts every link of a tree once per payload', () => {
    // Source's leaf to a spine, the spine to three leaves; every leaf has members of both cohorts.
    expect(view.cohorts[1]!.stripes[0]!.coreLinks).toHaveLength(4);
    expect(view.bytes.coreLinks).toBe(4 * (FULL_BYTES + DELTA_BYTES));
    expect(view.bytes.hostLinks).toBe(8 * FULL_BYTES + 16 * DELTA_BYTES);
    // Servers are dealt to the leaves 16 by 16: of the 24, 6 are on the source's leaf, 18 two links away.
    expect(view.bytes.unicastCoreLinks).toBe(18 * 2 * FULL_BYTES);
  });

  it('says why, and what it did not do at which cost', () => {
    expect(view.cohorts[1]!.reasons[0]).toContain('16 servers proved version 21');
    expect(view.cohorts[1]!.rejected).toContainEqual(
      expect.objectContaining({ alternative: 'full image', bytes: FULL_BYTES }),
    );
    expect(view.cohorts[2]!.rejected).toContainEqual(
      expect.objectContaining({ alternative: 'unicast to each', bytes: 8 * FULL_BYTES }),
    );
    expect(view.warnings).toEqual([]);
  });

  it('predicts from the configured rates and says so', () => {
    const [, delta, full] = view.cohorts;
    expect(full!.predictedSeconds).toMatchObject({ unit: 's', source: 'configured' });
    // 1 Gb/s, 95 %: 0.32 s for 40 MB and what the delta takes meanwhile.
    expect(full!.predictedSeconds!.value).toBeGreaterThan((8 * (FULL_BYTES + DELTA_BYTES)) / 1e9);
    expect(full!.predictedSeconds!.value).toBeLessThan((1.1 * 8 * (FULL_BYTES + DELTA_BYTES)) / 1e9);
    expect(delta!.predictedSeconds!.value).toBeLessThan(full!.predictedSeconds!.value / 10);
  });

  it('has the tree and the payload that the rollout executes', () => {
    expect(cohorts.map((c) => c.trees.map((tree) => tree.receivers.length))).toEqual([[], [16], [8]]);
    expect(cohorts.map((c) => c.payload?.base)).toEqual([undefined, 21, 0]);
  });

  it('reads like the example', () => {
    const text = planText(view);
    expect(text).toContain('64 servers need models/demo version 22\n');
    expect(text).toContain('40 have it: nothing is sent\n');
    expect(text).toContain('16 have version 21: the 21-to-22 delta (600 kB) multicast once to the 16 from mn1\n');
    expect(text).toContain('8 have nothing to build on: the whole object (40.0 MB) multicast once to the 8 from mn1\n');
    expect(text).toContain('out of the sources 40.6 MB; by unicast of the whole object 960 MB, 23.6 times as much\n');
    expect(text).not.toMatch(/undefined|NaN|null/);
  });
});

describe('edge cases', () => {
  it('sends nothing when everybody is current, even without a source', () => {
    const world = World.example();
    for (const server of world.servers) world.hold(server, 'models/demo', 22);
    world.detached.add('mn1');
    const { view } = makePlan(demo, world.directory, world.fabric);
    expect(view.cohorts.map((c) => c.kind)).toEqual(['current']);
    expect(view.bytes).toMatchObject({ source: 0, unicastSource: 0, unicastCoreLinks: 0 });
    expect(planText(view)).toContain('nothing leaves a source');
  });

  it('uses the full image where no delta exists from what they hold, and says so', () => {
    const world = World.example();
    world.publish('models/demo', 20);
    const server = world.servers[7]!;
    world.hold(server, 'models/demo', 20);
    const { view } = makePlan({ ...demo, servers: [server] }, world.directory, world.fabric);
    expect(view.cohorts).toHaveLength(1);
    expect(view.cohorts[0]).toMatchObject({ kind: 'full', from: null, servers: [server] });
    expect(view.cohorts[0]!.reasons[0]).toBe('1 server holds version 20, but there is no delta from 20 to 22');
  });

  it('takes the base with the smallest delta', () => {
    const world = World.example();
    world.publish('models/demo', 20);
    world.payload('models/demo', 22, 20, DELTA_BYTES / 2);
    const server = world.servers[5]!;
    world.hold(server, 'models/demo', 20);
    const { view } = makePlan({ ...demo, servers: [server] }, world.directory, world.fabric);
    expect(view.cohorts[0]).toMatchObject({ kind: 'delta', from: 20 });
    expect(view.cohorts[0]!.rejected.map((r) => r.alternative)).toContain('delta from 21');
  });

  it('does not take a delta that is as large as the image', () => {
    const world = World.example();
    world.payload('models/demo', 22, 21, FULL_BYTES);
    const { view } = makePlan(demo, world.directory, world.fabric);
    expect(view.cohorts.map((c) => [c.kind, c.servers.length])).toEqual([
      ['current', 40],
      ['full', 24],
    ]);
    expect(view.cohorts[1]!.rejected.map((r) => r.alternative)).toContain('delta from 21');
  });

  it('leaves a delta aside whose Memory Node is away', () => {
    const world = World.example();
    world.publish('models/demo', 22, 'mn2');
    world.detached.add('mn1');
    const { view } = makePlan(demo, world.directory, world.fabric);
    expect(view.cohorts.map((c) => [c.kind, c.source])).toEqual([
      ['current', null],
      ['full', 'mn2'],
    ]);
    expect(view.cohorts[1]!.rejected).toContainEqual(
      expect.objectContaining({ alternative: 'delta from 21', reason: expect.stringContaining('no Memory Node') }),
    );
  });

  it('spreads cohorts over Memory Nodes: the less loaded, then the nearer', () => {
    const world = World.example();
    for (const node of ['mn2', 'mn3']) world.publish('models/demo', 22, node);
    world.loads.set('mn1', 1);
    world.loads.set('mn2', 1);
    expect(makePlan(demo, world.directory, world.fabric).view.cohorts[2]!.source).toBe('mn3');
    world.loads.clear();
    const onLeaf2 = world.topology.hosts
      .filter((h) => h.switch === 'leaf2' && h.kind === 'gpu-server')
      .map((h) => h.name);
    const near = makePlan({ ...demo, servers: onLeaf2 }, world.directory, world.fabric).view;
    expect(near.cohorts.find((c) => c.kind === 'full')!.source).toBe('mn2');
  });

  it('reads by unicast from a server when no Memory Node is there', () => {
    const world = World.example();
    world.detached.add('mn1');
    const { view } = makePlan({ ...demo, servers: [world.servers[7]!] }, world.directory, world.fabric);
    expect(view.cohorts[0]).toMatchObject({ mechanism: 'unicast', stripes: [], kind: 'full' });
    expect(
      world.directory.holders(world.directory.findObject('models/demo')!.objectId, 22).map((h) => h.agent),
    ).toContain(view.cohorts[0]!.source);
  });

  it('refuses when nobody who is there could send it', () => {
    const world = World.example();
    for (const server of world.servers) world.detached.add(server);
    world.detached.add('mn1');
    expect(() => makePlan(demo, world.directory, world.fabric)).toThrowError(
      expect.objectContaining({ code: 'AGENT_UNREACHABLE' }),
    );
  });

  it('warns of servers that are away', () => {
    const world = World.example();
    world.detached.add('gpu08');
    const { view } = makePlan(demo, world.directory, world.fabric);
    expect(view.warnings).toEqual(['gpu08 is not attached: it takes part when it attaches before the deadline']);
  });

  it.each([
    [{ servers: [] }, 'INVALID_REQUEST', /at least one server/],
    [{ servers: ['gpu01', 'gpu99'] }, 'NOT_FOUND', /"gpu99"/],
    [{ servers: ['mn1'] }, 'INVALID_REQUEST', /"mn1" is a Memory Node/],
    [{ object: 'models/other' }, 'NOT_FOUND', /"models\/other"/],
    [{ version: 23 }, 'NOT_FOUND', /no version 23/],
    [{ deadlineSeconds: 0 }, 'INVALID_REQUEST', /deadline/],
    [{ deadlineSeconds: Number.NaN }, 'INVALID_REQUEST', /deadline/],
  ])('refuses %j with %s', (change, code, message) => {
    const world = World.example();
    const attempt = (): unknown => makePlan({ ...demo, ...change }, world.directory, world.fabric);
    expect(attempt).toThrowError(expect.objectContaining({ code }));
    expect(attempt).toThrowError(message);
  });
});

it('puts every target into exactly one cohort and never sends more than unicast would', () => {
  fc.assert(
    fc.property(
      fc.array(fc.constantFrom(0, 20, 21, 22), { minLength: 64, maxLength: 64 }),
      fc.boolean(),
      (held, delta20) => {
        const world = new World();
        for (const version of [20, 21, 22]) world.publish('models/demo', version);
        world.payload('models/demo', 22, 21, DELTA_BYTES);
        if (delta20) world.payload('models/demo', 22, 20, 2 * DELTA_BYTES);
        held.forEach((version, i) => {
          if (version !== 0) world.hold(world.servers[i]!, 'models/demo', version);
        });
        const { view } = makePlan(demo, world.directory, world.fabric);
        expect(view.cohorts.flatMap((c) => c.servers).sort()).toEqual([...world.servers].sort());
        expect(view.bytes.source).toBeLessThanOrEqual(view.bytes.unicastSource);
        expect(view.bytes.coreLinks).toBeLessThanOrEqual(Math.max(view.bytes.unicastCoreLinks, 4 * view.bytes.source));
        for (const cohort of view.cohorts)
          for (const server of cohort.servers) {
            const version = held[world.servers.indexOf(server)]!;
            if (cohort.kind === 'current') expect(version).toBe(22);
            if (cohort.kind === 'delta') expect(version).toBe(cohort.from);
            if (cohort.kind === 'full') expect(version === 0 || (version === 20 && !delta20)).toBe(true);
          }
      },
    ),
    { seed: 7, numRuns: 30 },
  );
});
