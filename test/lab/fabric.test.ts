import { expect, test } from 'vitest';
import { VirtualScheduler } from '../../base/clock.ts';
import { Fabric } from '../../lab/fabric.ts';
import { smallFabric } from './small-fabric.ts';

test('links carry IP packets of the MTU, between switches with an object tag; longer frames are dropped and counted', () => {
  const scheduler = new VirtualScheduler();
  const topology = smallFabric(2);
  const fabric = new Fabric(topology, scheduler, { seed: 1 });
  const leaf = fabric.devices.get('leaf1')!;
  const { port: hostPort } = topology.hosts.find(({ name }) => name === 'mn1')!;
  const { port: corePort } = topology.links.find(({ a }) => a.switch === 'leaf1')!.a;
  for (const port of [hostPort, corePort])
    for (const ipPacketBytes of [9000, 9001, 9018, 9019]) leaf.onTransmit?.(port, new Uint8Array(14 + ipPacketBytes));
  scheduler.runUntil(10_000);
  const from = (port: number) =>
    fabric.links.find((link) => link.from?.switch === 'leaf1' && link.from.port === port)!.statistics();
  expect(from(hostPort)).toMatchObject({ framesIn: 4, framesDelivered: 1, framesTooLong: 3 });
  expect(from(corePort)).toMatchObject({ framesIn: 4, framesDelivered: 3, framesTooLong: 1, bytesTooLong: 9033 });
});
