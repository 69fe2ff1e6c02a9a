import { readFileSync } from 'node:fs';
import { vi } from 'vitest';
import type { SwitchConnection } from '../../../controller/p4runtime/connection.ts';
import { createPipeline } from '../../../controller/p4runtime/pipeline.ts';
import { Reconciler, type ReconcilerEvent, type ReconcilerOptions } from '../../../controller/reconcile/reconciler.ts';
import { EntityFactory } from '../../../controller/tables/entities.ts';
import { transferEntities } from '../../../controller/tables/transfers.ts';
import type { Entity } from '../../../wire/p4runtime/messages.ts';
import { P4InfoIndex } from '../../../wire/p4runtime/p4info-index.ts';
import { parseP4InfoText } from '../../../wire/p4runtime/p4info-text.ts';

// What the controller runs on its switches, for checks that need a program.

const P4INFO = new URL('../../../p4/build/fabric.p4info.txtpb', import.meta.url);
export const p4info = parseP4InfoText(readFileSync(P4INFO, 'utf8'));
export const pipeline = createPipeline(p4info, new TextEncoder().encode('{}'));
export const index = new P4InfoIndex(p4info);
export const factory = new EntityFactory(index);

export const portRole = (port: number): Entity =>
  factory.tableEntry('port_role', { match: { ingress_port: port }, action: { name: 'host_port' } });

/** A group and the entry that refers to it. */
export const transfer = (label: number, ports: readonly number[] = [2]): Entity[] =>
  transferEntities(factory, {
    label,
    tenant: 1,
    multicastGroup: label,
    upstreamPort: 1,
    downstreamPorts: ports,
    treeMask: 2,
    transferIndex: label,
  });

/** Waits for what others do; generous, since machines are busy at times. */
export const soon = (assertion: () => void): Promise<void> => vi.waitFor(assertion, { timeout: 30_000, interval: 5 });

export const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Runs with a reconciler that wants some entities, and closes it. */
export async function withReconciler(
  connection: SwitchConnection,
  wanted: readonly Entity[],
  action: (reconciler: Reconciler, events: ReconcilerEvent[]) => Promise<void>,
  options: Partial<ReconcilerOptions> = {},
): Promise<void> {
  const events: ReconcilerEvent[] = [];
  const reconciler = new Reconciler({ connection, pipeline, retryFirstMs: 2, retryMaximumMs: 20, ...options });
  reconciler.onEvent((event) => events.push(event));
  try {
    reconciler.setDesired('test', wanted);
    await action(reconciler, events);
  } finally {
    reconciler.close();
  }
}

/** The message with two zero bytes before every byte string. */
export function padded<T>(message: T): T {
  if (message instanceof Uint8Array)
    return (message.length === 0 ? message : new Uint8Array([0, 0, ...message])) as unknown as T;
  if (Array.isArray(message)) return message.map(padded) as unknown as T;
  if (typeof message !== 'object' || message === null) return message;
  return Object.fromEntries(Object.entries(message).map(([name, value]) => [name, padded(value)])) as T;
}
