import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { canonicalEntity } from '../../../controller/reconcile/canonical.ts';
import { applyUpdates, entityMap, planWrites } from '../../../controller/reconcile/diff.ts';
import { EntityFactory } from '../../../controller/tables/entities.ts';
import { transferEntities } from '../../../controller/tables/transfers.ts';
import { type Entity, type Update, UpdateType } from '../../../wire/p4runtime/messages.ts';
import { P4InfoIndex } from '../../../wire/p4runtime/p4info-index.ts';
import { parseP4InfoText } from '../../../wire/p4runtime/p4info-text.ts';

const P4INFO = new URL('../../../p4/build/fabric.p4info.txtpb', import.meta.url);
const index = new P4InfoIndex(parseP4InfoText(readFileSync(P4INFO, 'utf8')));
const factory = new EntityFactory(index);

const transfer = (label: number, multicastGroup: number, ports: number[], treeMask = 1): Entity[] =>
  transferEntities(factory, {
    label,
    tenant: 1,
    multicastGroup,
    upstreamPort: 1,
    downstreamPorts: ports,
    treeMask,
    transferIndex: multicastGroup,
  });

const anyEntity: fc.Arbitrary<Entity[]> = fc.oneof(
  fc
    .record({
      label: fc.nat(5),
      group: fc.integer({ min: 1, max: 4 }),
      ports: fc.uniqueArray(fc.integer({ min: 1, max: 4 })),
      mask: fc.nat(3),
    })
    .map(({ label, group, ports, mask }) => transfer(label, group, ports, mask)),
  fc
    .record({ port: fc.integer({ min: 1, max: 4 }), role: fc.constantFrom('host_port', 'fabric_port') })
    .map(({ port, role }) => [
      factory.tableEntry('port_role', { match: { ingress_port: port }, action: { name: role } }),
    ]),
  fc
    .nat(3)
    .map((id) => [factory.defaultAction('switch_identity', { name: 'set_switch_id', params: { switch_id: id } })]),
  fc
    .record({ cell: fc.nat(2), rate: fc.integer({ min: 1, max: 3 }) })
    .map(({ cell, rate }) => [
      factory.meter('control_meter', cell, { committed: rate, committedBurst: 1, peak: rate, peakBurst: 1 }),
    ]),
);
const anyState = fc.array(anyEntity, { maxLength: 12 }).map((lists) => entityMap(lists.flat()));

const values = (state: ReturnType<typeof entityMap>): Record<string, string> =>
  Object.fromEntries([...state].map(([key, { value }]) => [key, value]));

describe('the difference', () => {
  it('turns what is there into what is desired, whatever the two are', () => {
    fc.assert(
      fc.property(anyState, anyState, (desired, actual) => {
        for (const phase of planWrites(desired, actual)) applyUpdates(actual, phase);
        expect(values(actual)).toEqual(values(desired));
        expect(planWrites(desired, actual)).toEqual([]);
      }),
      { seed: 11, numRuns: 300 },
    );
  });

  it('never lets an entry stand without the group it uses, at any point between phases or within one', () => {
    const groupOf = (entity: Entity): number | undefined => {
      const { tableEntry } = entity;
      if (tableEntry?.tableId !== index.tables.require('transfer').id) return undefined;
      return Number(BigInt(`0x${Buffer.from(tableEntry.action!.action!.params[1]!.value).toString('hex')}`));
    };
    const isWhole = (state: ReturnType<typeof entityMap>): boolean =>
      [...state.values()].every(({ entity }) => {
        const group = groupOf(entity);
        return group === undefined || state.has(`multicast group ${group}`);
      });
    fc.assert(
      fc.property(anyState, anyState, fc.boolean(), (desired, actual, backwards) => {
        fc.pre(isWhole(actual) && isWhole(desired));
        for (const phase of planWrites(desired, actual)) {
          // A switch may take the updates of a phase in any order.
          for (const update of backwards ? [...phase].reverse() : phase) {
            applyUpdates(actual, [update]);
            expect(isWhole(actual)).toBe(true);
          }
        }
      }),
      { seed: 12, numRuns: 300 },
    );
  });

  it('makes before it breaks', () => {
    const actual = entityMap(transfer(1, 1, [2, 3]));
    const phases = planWrites(entityMap(transfer(2, 2, [2])), actual);
    expect(phases.map((phase) => phase.map(shape))).toEqual([
      ['INSERT multicast group'],
      ['INSERT table entry'],
      ['DELETE table entry'],
      ['DELETE multicast group'],
    ]);
  });

  it('breaks first in a table that has no room for both', () => {
    const actual = entityMap([...transfer(1, 1, [2]), ...transfer(2, 2, [2])]);
    const desired = entityMap([...transfer(2, 2, [2]), ...transfer(3, 3, [2])]);
    const { id } = index.tables.require('transfer');
    const phases = planWrites(desired, actual, { tableSize: (tableId) => (tableId === id ? 2 : 100) });
    expect(phases.map((phase) => phase.map(shape))).toEqual([
      ['DELETE table entry'],
      ['INSERT multicast group'],
      ['INSERT table entry'],
      ['DELETE multicast group'],
    ]);
  });

  it('leaves alone what may not be removed', () => {
    const actual = entityMap([...transfer(1, 1, [2]), ...transfer(2, 2, [2])]);
    const phases = planWrites(new Map(), actual, { mayRemove: ({ key }) => key === 'multicast group 2' });
    expect(phases).toEqual([[{ type: UpdateType.DELETE, entity: actual.get('multicast group 2')!.entity }]]);
  });

  it('sets defaults and meters back instead of deleting them', () => {
    const identity = factory.defaultAction('switch_identity', { name: 'set_switch_id', params: { switch_id: 3 } });
    const meter = factory.meter('control_meter', 2, { committed: 1, committedBurst: 1, peak: 1, peakBurst: 1 });
    const phases = planWrites(new Map(), entityMap([identity, meter]));
    expect(
      phases.flat().map(({ type, entity }) => [type, entity?.tableEntry?.action, entity?.meterEntry?.config]),
    ).toEqual([
      [UpdateType.MODIFY, undefined, undefined],
      [UpdateType.MODIFY, undefined, undefined],
    ]);
  });
});

describe('the canonical form', () => {
  it('is the same however a server pads values and orders fields, replicas and members', () => {
    const [group, entry] = transfer(5, 6, [1, 2]);
    const padded = structuredClone(entry!);
    padded.tableEntry!.match[0]!.exact!.value = new Uint8Array([0, 0, 0, 5]);
    padded.tableEntry!.action!.action!.params.reverse();
    padded.tableEntry!.counterData = { byteCount: 7n, packetCount: 1n };
    expect(canonicalEntity(padded)).toEqual(canonicalEntity(entry!));
    const reordered = structuredClone(group!);
    const replicas = reordered.packetReplicationEngineEntry!.multicastGroupEntry!.replicas;
    replicas.reverse();
    replicas[0] = { egressPort: 2, instance: 1, backupReplicas: [] };
    replicas[1]!.port = new Uint8Array([0, 1]);
    expect(canonicalEntity(reordered)).toEqual(canonicalEntity(group!));
  });

  it('tells apart what differs', () => {
    const texts = [
      ...transfer(5, 6, [1, 2]),
      ...transfer(5, 6, [1, 3], 2),
      ...transfer(6, 7, [1]),
      factory.defaultAction('switch_identity', { name: 'set_switch_id', params: { switch_id: 1 } }),
      factory.defaultAction('switch_identity', { name: 'set_switch_id', params: { switch_id: 2 } }),
    ].map((entity) => JSON.stringify(canonicalEntity(entity)));
    expect(new Set(texts).size).toBe(texts.length);
  });

  it('leaves out kinds that nobody here manages', () => {
    expect(canonicalEntity({ counterEntry: { counterId: 1 } })).toBeUndefined();
    expect(canonicalEntity({})).toBeUndefined();
  });
});

function shape({ type, entity }: Update): string {
  const name = Object.entries(UpdateType).find(([, value]) => value === type)![0];
  return `${name} ${canonicalEntity(entity!)!.kind}`;
}
