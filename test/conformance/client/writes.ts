import { status } from '@grpc/grpc-js';
import { expect } from 'vitest';
import { createPipeline } from '../../../controller/p4runtime/pipeline.ts';
import { type Entity, UpdateType } from '../../../wire/p4runtime/messages.ts';
import type { MessageInput } from '../../../wire/proto.ts';
import type { WriteAnswer } from '../../controller/p4runtime/fake-server.ts';
import type { Checks } from '../rows.ts';
import type { ClientContext } from './checks.ts';
import { factory, index, p4info, padded, portRole, transfer, withReconciler } from './fabric.ts';

/** What each write of a list carries, in its order. */
function kinds(writes: ClientContext['server']['writes']): string[] {
  return writes.map(({ updates }) => {
    const found = new Set(updates.map(({ entity }) => (entity?.tableEntry === undefined ? 'group' : 'entry')));
    return `${updates[0]!.type === UpdateType.DELETE ? 'delete' : 'write'} ${[...found].join(' and ')}`;
  });
}

/** Rows about capabilities, batches, byte strings and reads. */
export const WRITE_CHECKS: Checks<ClientContext> = {
  25: async ({ server, connectPrimary }) => {
    const connection = await connectPrimary();
    for (const version of ['1.3.0', '1.5.0', '1.4.0-rc.1']) {
      server.capabilities = version;
      expect(await connection.capabilities()).toBe(version);
    }
    server.capabilities = undefined;
    expect(await connection.capabilities()).toBe('1.0.0');
  },
  30: async ({ server, connectPrimary }) => {
    const connection = await connectPrimary();
    await withReconciler(connection, [...transfer(7), ...transfer(8)], async (reconciler) => {
      await reconciler.converge();
      expect(kinds(server.writes)).toEqual(['write group', 'write entry']);
      server.writes.length = 0;
      reconciler.removeDesired('test');
      await reconciler.converge();
      expect(kinds(server.writes)).toEqual(['delete entry', 'delete group']);
    });
  },
  31: async ({ server, connectPrimary }) => {
    const connection = await connectPrimary();
    const answers: WriteAnswer[] = [{ codes: [0] }, { codes: [0, 6, 0] }, { codes: [0, 0] }, { code: status.UNKNOWN }];
    for (const answer of answers) {
      server.answerWrite = () => answer;
      expect(await connection.write([1, 2].map((port) => ({ type: 1, entity: portRole(port) })))).toMatchObject({
        kind: 'unknown',
      });
    }
    // It was carried out after all: reading it back shows that nothing is left to do.
    const wanted = [portRole(1), portRole(2)];
    server.answerWrite = () => {
      server.chunks = [wanted];
      return { code: status.UNKNOWN };
    };
    server.writes.length = 0;
    await withReconciler(connection, wanted, async (reconciler, events) => {
      await reconciler.converge();
      expect(server.reads).toHaveLength(2);
      expect(server.writes).toHaveLength(1);
      expect(events.at(-1)).toMatchObject({ type: 'converged' });
    });
  },
  32: async ({ server, connectPrimary }) => {
    const connection = await connectPrimary();
    const deviceConfig = new Uint8Array(6 * 1024 * 1024).fill(0x20);
    await connection.setPipeline(createPipeline(p4info, deviceConfig));
    expect(server.pipelines[0]?.config?.p4DeviceConfig).toHaveLength(deviceConfig.length);
    // A whole table in one message.
    const entry = portRole(1).tableEntry!;
    const entities = Array.from({ length: 600 }, () => ({
      tableEntry: { ...entry, metadata: new Uint8Array(10_000) },
    }));
    server.chunks = [entities];
    expect(await connection.read([{ tableEntry: { tableId: entry.tableId } }])).toHaveLength(entities.length);
  },
  36: async ({ server, connectPrimary }) => {
    const connection = await connectPrimary();
    const wanted = [
      portRole(3),
      ...transfer(0x102, [300, 5]),
      factory.tableEntry('punt', {
        match: { ether_type: 0x0806, ipv4_destination: { value: 0x0a000000, mask: 0xff000000 } },
        action: { name: 'punt_to_controller', params: { reason: 1 } },
        priority: 10,
      }),
      factory.tableEntry('ipv4_lpm', {
        match: { ipv4_destination: { value: 0x0a010000, prefixLength: 16 } },
        action: [{ name: 'next_hop', params: { port: 1, source_mac: 0x0200, destination_mac: 0x0300 } }],
      }),
    ];
    await withReconciler(connection, wanted, async (reconciler) => {
      await reconciler.converge();
      const sent = server.writes.flatMap(({ updates }) => updates.map(({ entity }) => entity!));
      expect(sent).toHaveLength(wanted.length);
      for (const bytes of byteStrings(sent)) if (bytes.length > 1) expect(bytes[0]).not.toBe(0);
    });
    server.writes.length = 0;
    server.chunks = [wanted.map(padded)];
    await withReconciler(connection, wanted, (reconciler) => reconciler.converge());
    expect(server.writes).toEqual([]);
  },
  48: async ({ server, connectPrimary }) => {
    const connection = await connectPrimary();
    const entry = portRole(1);
    const punt = index.tables.require('punt');
    const noPunt = punt.actions.find(({ scope }) => scope === 'default only')!.action;
    const noise: MessageInput<Entity>[] = [
      // Default entries among the others: said to be so, to be known by their action, or by a priority that no entry has.
      { tableEntry: { tableId: punt.id, isDefaultAction: true, action: { action: { actionId: noPunt.id } } } },
      { tableEntry: { tableId: punt.id, priority: 1, action: { action: { actionId: noPunt.id } } } },
      { tableEntry: { tableId: punt.id, action: { action: { actionId: punt.actions[0]!.action.id } } } },
      // What cannot be changed, is of another program, or was not asked for.
      { tableEntry: { ...portRole(9).tableEntry, isConst: true } },
      { tableEntry: { tableId: 0x02123456 } },
      { counterEntry: { counterId: index.counters.require('drop_counter').id, index: { index: 1n } } },
    ];
    server.chunks = [[entry, ...noise]];
    await withReconciler(connection, [entry], async (reconciler) => {
      await reconciler.converge();
      expect(reconciler.entityCount).toBe(1);
    });
    expect(server.writes).toEqual([]);
  },
};

function byteStrings(value: unknown): Uint8Array[] {
  if (value instanceof Uint8Array) return [value];
  if (typeof value !== 'object' || value === null) return [];
  return Object.values(value).flatMap(byteStrings);
}
