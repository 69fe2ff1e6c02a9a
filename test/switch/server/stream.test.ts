import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { RpcCode } from '../../../switch/server/rpc-error.ts';
import { CPU_PORT, entity, idleEntry, LEARNED, probe } from '../../conformance/server/program.ts';
import { Bench } from './bench.ts';
import type { TestStream } from './client.ts';

/** A packet with the controller's header before it, back to the controller. */
function fromCpu(digest: boolean, payload: Uint8Array): Uint8Array {
  const frame = new Uint8Array(7 + payload.length);
  frame.set([CPU_PORT >> 8, CPU_PORT & 255, 0, 0, 0, 0, digest ? 1 : 0]);
  frame.set(payload, 7);
  return frame;
}

describe('the stream', () => {
  let bench: Bench;
  let primary: TestStream;
  beforeEach(async () => {
    const started = await Bench.startWithProgram();
    bench = started;
    primary = started.primary;
  });
  afterEach(() => bench.stop());

  it('reports other and empty messages, and goes on', async () => {
    primary.send({ other: { typeUrl: 'type.googleapis.com/x' } });
    expect(await primary.nextError()).toMatchObject({
      canonicalCode: RpcCode.UNIMPLEMENTED,
      other: { other: { typeUrl: 'type.googleapis.com/x' } },
    });
    primary.send({});
    expect((await primary.nextError()).canonicalCode).toBe(RpcCode.INVALID_ARGUMENT);
    primary.arbitrate(1n);
    expect((await primary.nextArbitration()).status).toBe(RpcCode.OK);
  });

  it('drops packets to a slow reader, and never the news of who is primary', async () => {
    primary.call.pause();
    // Straight into the device: a reader that is paused sends nothing either.
    for (let i = 0; i < 5000; i++) bench.device.sendFromCpu(fromCpu(false, new Uint8Array(9000)));
    await bench.client.contend(2n);
    primary.call.resume();
    let packets = 0;
    for (;;) {
      const message = await primary.next();
      if (message.arbitration !== undefined) {
        expect(message.arbitration.status!.code).toBe(RpcCode.ALREADY_EXISTS);
        break;
      }
      packets++;
    }
    expect(packets).toBeLessThan(5000);
  });

  it('acknowledgements come from the primary only; a list that nobody waits for is no error', async () => {
    const backup = await bench.client.contend(undefined);
    backup.send({ digestAck: { digestId: LEARNED, listId: 1n } });
    expect((await backup.nextError()).canonicalCode).toBe(RpcCode.PERMISSION_DENIED);
    primary.send({ digestAck: { digestId: LEARNED, listId: 99n } });
    await primary.settle(1n);
    expect(primary.pending).toEqual([]);
  });

  it('a digest that nobody was there for comes again', async () => {
    const config = { maxTimeoutNs: 0n, ackTimeoutNs: 10n ** 12n };
    await bench.client.insert({ digestEntry: { digestId: LEARNED, config } });
    await primary.close();
    const learn = (): Uint8Array => fromCpu(true, probe({ address: 7 }));
    bench.device.sendFromCpu(learn());
    const next = await bench.client.contend(2n);
    bench.device.sendFromCpu(learn());
    bench.device.sendFromCpu(learn());
    expect((await next.nextOf('digest')).data).toHaveLength(1);
    await next.nextOf('packet');
    await next.nextOf('packet');
    await next.settle(2n);
    expect(next.pending).toEqual([]);
  });

  it('reports many idle entries in few notices, those of one scan together', async () => {
    const updates = Array.from({ length: 1200 }, (_, i) => ({
      type: 1,
      entity: entity(
        idleEntry({
          match: [{ fieldId: 1, exact: { value: new Uint8Array([1, i >> 8, i & 255]) } }],
          idleTimeoutNs: 10n ** 9n,
        }),
      ),
    }));
    expect((await bench.client.write(updates)).code).toBe(RpcCode.OK);
    bench.scheduler.runUntil(1_500_000);
    await primary.settle(1n);
    const sizes = primary.take().map(({ idleTimeoutNotification }) => idleTimeoutNotification!.tableEntry.length);
    expect(sizes).toEqual([512, 512, 176]);
    bench.scheduler.runUntil(1_900_000);
    await primary.settle(1n);
    expect(primary.pending).toEqual([]);
  });
});
