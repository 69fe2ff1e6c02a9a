import { readFileSync } from 'node:fs';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { DdfError } from '../../../base/errors.ts';
import { createPipeline } from '../../../controller/p4runtime/pipeline.ts';
import { entityMap } from '../../../controller/reconcile/diff.ts';
import { type ForeignPolicy, Reconciler, type ReconcilerEvent } from '../../../controller/reconcile/reconciler.ts';
import { EntityFactory } from '../../../controller/tables/entities.ts';
import { transferEntities } from '../../../controller/tables/transfers.ts';
import type { Entity } from '../../../wire/p4runtime/messages.ts';
import { P4InfoIndex } from '../../../wire/p4runtime/p4info-index.ts';
import { parseP4InfoText } from '../../../wire/p4runtime/p4info-text.ts';
import { FakeSwitch } from './fake-switch.ts';

const P4INFO = new URL('../../../p4/build/fabric.p4info.txtpb', import.meta.url);
const p4info = parseP4InfoText(readFileSync(P4INFO, 'utf8'));
const factory = new EntityFactory(new P4InfoIndex(p4info));
const pipeline = createPipeline(p4info, new Uint8Array());

const transfer = (label: number, ports = [2]): Entity[] =>
  transferEntities(factory, {
    label,
    tenant: 1,
    multicastGroup: label,
    upstreamPort: 1,
    downstreamPorts: ports,
    treeMask: 2,
    transferIndex: label,
  });
const base = [
  factory.tableEntry('port_role', { match: { ingress_port: 1 }, action: { name: 'host_port' } }),
  factory.defaultAction('switch_identity', { name: 'set_switch_id', params: { switch_id: 1 } }),
];

/** Waits for what others do; generous, since machines are busy at times. */
const soon = (assertion: () => void): Promise<void> => vi.waitFor(assertion, { timeout: 30_000, interval: 5 });

const values = (entities: readonly Entity[]): Map<string, string> =>
  new Map([...entityMap(entities)].map(([key, { value }]) => [key, value]));

let reconciler: Reconciler | undefined;
afterEach(() => reconciler?.close());

function start(fake: FakeSwitch, foreign?: ForeignPolicy): { reconciler: Reconciler; events: ReconcilerEvent[] } {
  const events: ReconcilerEvent[] = [];
  reconciler = new Reconciler({
    connection: fake,
    pipeline,
    retryFirstMs: 1,
    retryMaximumMs: 5,
    ...(foreign && { foreign }),
  });
  reconciler.onEvent((event) => events.push(event));
  return { reconciler, events };
}

describe('a reconciler', () => {
  it('gives an empty switch its program and what all owners want', async () => {
    const fake = new FakeSwitch();
    const { reconciler, events } = start(fake);
    reconciler.setDesired('base', base);
    reconciler.setDesired('transfer:7', transfer(7));
    await reconciler.converge();
    expect(fake.contents()).toEqual(values([...base, ...transfer(7)]));
    expect(events[0]).toEqual({ type: 'pipeline', result: 'installed' });
    expect(events).toContainEqual({ type: 'converged', inserted: 3, modified: 1, deleted: 0 });
    expect(reconciler.entityCount).toBe(4);
    expect(reconciler.owners).toEqual(['base', 'transfer:7']);
  });

  it('writes only the difference when an owner changes its mind or leaves', async () => {
    const fake = new FakeSwitch();
    const { reconciler } = start(fake);
    reconciler.setDesired('base', base);
    reconciler.setDesired('transfer:7', transfer(7));
    await reconciler.converge();
    fake.writes.length = 0;
    reconciler.setDesired('transfer:7', transfer(7, [2, 3]));
    await reconciler.converge();
    expect(fake.writes.flat()).toHaveLength(1);
    reconciler.removeDesired('transfer:7');
    await reconciler.converge();
    expect(fake.contents()).toEqual(values(base));
    expect(fake.reads).toBe(1);
  });

  it('leaves out a write when nothing changed, and shares runs between calls', async () => {
    const fake = new FakeSwitch();
    const { reconciler, events } = start(fake);
    reconciler.setDesired('base', base);
    await Promise.all(Array.from({ length: 20 }, () => reconciler.converge()));
    expect(events.filter(({ type }) => type === 'converged').length).toBeLessThanOrEqual(2);
    const writes = fake.writes.length;
    await reconciler.converge();
    expect(fake.writes.length).toBe(writes);
  });

  it('keeps an entity that two owners want until the last one leaves, and refuses contradictions', async () => {
    const fake = new FakeSwitch();
    const { reconciler } = start(fake);
    reconciler.setDesired('a', transfer(7));
    reconciler.setDesired('b', transfer(7));
    expect(() => reconciler.setDesired('c', transfer(7, [3]))).toThrow(/a|b and c want different things/);
    reconciler.removeDesired('a');
    await reconciler.converge();
    expect(fake.contents()).toEqual(values(transfer(7)));
    reconciler.removeDesired('b');
    await reconciler.converge();
    expect(fake.contents().size).toBe(0);
  });

  it('refuses what the switch has no room for, and changes nothing then', async () => {
    const fake = new FakeSwitch();
    const { reconciler } = start(fake);
    reconciler.setDesired('base', base);
    const tooMany = Array.from({ length: 65 }, (_, i) =>
      factory.tableEntry('punt', {
        match: { ether_type: i },
        action: { name: 'punt_to_controller', params: { reason: 1 } },
        priority: 1,
      }),
    );
    expect(() => reconciler.setDesired('punts', tooMany)).toThrow(/table punt has room for 64, 65 are wanted/);
    await reconciler.converge();
    expect(fake.contents()).toEqual(values(base));
  });

  it('removes foreign entries, or keeps them but for its own', async () => {
    for (const policy of ['remove', 'keep'] as const) {
      const fake = new FakeSwitch();
      fake.hasProgram = true;
      fake.entities = entityMap(transfer(9));
      const { reconciler, events } = start(fake, policy);
      reconciler.setDesired('transfer:7', transfer(7));
      await reconciler.converge();
      reconciler.removeDesired('transfer:7');
      await reconciler.converge();
      expect(fake.contents()).toEqual(values(policy === 'keep' ? transfer(9) : []));
      expect(events[0]).toEqual({ type: 'pipeline', result: 'unchanged' });
      reconciler.close();
    }
  });

  it('row 7: adopts the entries that an earlier run has marked as its own, and keeps the others', async () => {
    const fake = new FakeSwitch();
    const adopt = { adopt: 0xddfn };
    const entries = (label: number) => transfer(label).filter(({ tableEntry }) => tableEntry !== undefined);
    const { reconciler: earlier } = start(fake, adopt);
    earlier.setDesired('transfer:7', entries(7));
    earlier.setDesired('transfer:8', entries(8));
    await earlier.converge();
    const marks = [...fake.entities.values()].map(({ entity }) => entity.tableEntry?.controllerMetadata);
    expect(new Set(marks)).toEqual(new Set([0xddfn]));
    earlier.close();
    const others = [...entityMap(entries(9)).values(), ...entityMap(transfer(10)).values()];
    for (const known of others) fake.entities.set(known.key, known);

    const { reconciler, events } = start(fake, adopt);
    reconciler.setDesired('transfer:7', entries(7));
    await reconciler.converge();
    expect(events).toContainEqual({ type: 'converged', inserted: 0, modified: 0, deleted: entries(8).length });
    // What is wanted is taken over, whoever has written it.
    reconciler.setDesired('transfer:9', entries(9));
    await reconciler.converge();
    expect(events).toContainEqual({ type: 'converged', inserted: 0, modified: entries(9).length, deleted: 0 });
    reconciler.removeDesired('transfer:7');
    reconciler.removeDesired('transfer:9');
    await reconciler.converge();
    expect(fake.contents()).toEqual(values(transfer(10)));
  });

  it('row 7: refuses a mark that says nothing', () => {
    expect(() => start(new FakeSwitch(), { adopt: 0n })).toThrow('mark of adopted entries is 0');
  });

  it('brings a switch that lost everything back without being asked', async () => {
    const fake = new FakeSwitch();
    const { reconciler, events } = start(fake);
    reconciler.setDesired('base', base);
    await reconciler.converge();
    fake.enter('down');
    await expect(reconciler.converge()).rejects.toThrow('not connected');
    reconciler.setDesired('transfer:7', transfer(7));
    fake.restart();
    events.length = 0;
    fake.enter('primary');
    await soon(() => expect(events.some(({ type }) => type === 'converged')).toBe(true));
    expect(fake.contents()).toEqual(values([...base, ...transfer(7)]));
  });

  it('finds out what became of a write when the switch did not say', async () => {
    const fake = new FakeSwitch();
    const { reconciler } = start(fake);
    reconciler.setDesired('transfer:7', transfer(7));
    let lies = 1;
    fake.onWrite = async (updates) => {
      if (lies-- <= 0) return undefined;
      fake.onWrite = undefined;
      await fake.write(updates);
      return { kind: 'unknown', error: new DdfError('SWITCH_UNREACHABLE', 'no answer') };
    };
    await reconciler.converge();
    expect(fake.contents()).toEqual(values(transfer(7)));
    expect(fake.reads).toBe(2);
  });

  it('copes with entries that appear or vanish behind its back', async () => {
    const fake = new FakeSwitch();
    const { reconciler } = start(fake);
    reconciler.setDesired('transfer:7', transfer(7));
    await reconciler.converge();
    fake.entities = entityMap(transfer(8));
    reconciler.setDesired('transfer:8', transfer(8));
    await reconciler.converge();
    expect(fake.contents()).toEqual(values([...transfer(7), ...transfer(8)]));
  });

  it('gives up on a switch that keeps refusing, says why, and asks again later', async () => {
    const fake = new FakeSwitch();
    const { reconciler, events } = start(fake);
    const error = new DdfError('SWITCH_REJECTED', 'no');
    fake.onWrite = (updates) => ({
      kind: 'rejected',
      failures: [{ update: updates[0]!, code: 13, message: 'no' }],
      error,
    });
    reconciler.setDesired('base', base);
    await expect(reconciler.converge()).rejects.toBe(error);
    expect(events).toContainEqual({ type: 'failed', error });
    fake.onWrite = undefined;
    await soon(() => expect(fake.contents()).toEqual(values(base)));
  });

  it('sets a default back that nobody wants any more, even when the switch was away in between', async () => {
    const fake = new FakeSwitch();
    const { reconciler } = start(fake);
    reconciler.setDesired('base', base);
    await reconciler.converge();
    fake.enter('down');
    reconciler.removeDesired('base');
    fake.writes.length = 0;
    fake.enter('primary');
    await reconciler.converge();
    expect(fake.writes.flat().map(({ entity }) => entity?.tableEntry?.isDefaultAction)).toEqual([true, false]);
  });

  it('does not touch the switch when it is closed', async () => {
    const fake = new FakeSwitch();
    const { reconciler } = start(fake);
    await reconciler.converge();
    reconciler.setDesired('base', base);
    reconciler.close();
    await expect(reconciler.converge()).rejects.toThrow('closed');
    expect(fake.contents().size).toBe(0);
  });
});
