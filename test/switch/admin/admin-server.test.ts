import { readFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type AdminServer, startAdminServer } from '../../../switch/admin/admin-server.ts';
import type { PacketTraceView } from '../../../switch/admin/trace-request.ts';
import { TestDevice } from '../test-device.ts';

const FABRIC = readFileSync(new URL('../../../p4/build/fabric.json', import.meta.url));
const FRAME = new Array<number>(64).fill(0);

let device: TestDevice;
let server: AdminServer;

beforeEach(async () => {
  device = new TestDevice(FABRIC);
  server = await startAdminServer({ device: device.device, address: '127.0.0.1:0' });
});
afterEach(() => server.stop());

async function ask(body: unknown, path = '/v1/traces', method = 'POST') {
  const response = await fetch(`http://127.0.0.1:${server.port}${path}`, {
    method,
    ...(method === 'GET' ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  });
  return { status: response.status, answer: (await response.json()) as Record<string, unknown> };
}

async function traces(body: unknown): Promise<PacketTraceView[]> {
  const { status, answer } = await ask(body);
  expect(status).toBe(200);
  return answer.items as PacketTraceView[];
}

describe('a switch that can be looked into', () => {
  test('tries a frame without a mark, and names why the fabric drops it', async () => {
    const [trace] = await traces({ port: 9, frame: Buffer.from(FRAME).toString('hex') });
    expect(trace).toMatchObject({ port: 9, atUs: 0 });
    expect(trace!.events.at(-1)).toEqual({ kind: 'drop', at: 'ingress' });
    expect(trace!.text).toContain('table FabricIngress.admission.port_role [ingress_port=0x9]: miss');
    expect(trace!.text).toMatch(/drop_reason=0x2 \(unknown-port\)/);
    expect(device.device.statistics.received).toBe(0);
    await traces({ port: 9, frame: '00', inject: true });
    expect(device.device.statistics.received).toBe(1);
  });

  test('waits for the next packets of a port, and no longer than it was told', async () => {
    const waiting = traces({ count: 2, port: 3 });
    const timer = setInterval(() => {
      device.run(4, FRAME);
      device.run(3, FRAME);
    }, 5);
    try {
      expect((await waiting).map(({ port }) => port)).toEqual([3, 3]);
    } finally {
      clearInterval(timer);
    }
    expect(await traces({ count: 2, port: 3, seconds: 0.01 })).toEqual([]);
  });

  test('ends what waits when it stops', async () => {
    const waiting = ask({ seconds: 60 }).catch((error: unknown) => error);
    await new Promise((resolve) => setTimeout(resolve, 20));
    await server.stop();
    await waiting;
    await server.stop();
  });

  test.each([
    ['', 'body'],
    ['[]', 'body'],
    ['7', 'body'],
    [{ frame: '00' }, 'port'],
    [{ port: 512, frame: '00' }, 'port'],
    [{ port: '1' }, 'port'],
    [{ port: 1, frame: '0' }, 'frame'],
    [{ port: 1, frame: 'zz' }, 'frame'],
    [{ port: 1, frame: 7 }, 'frame'],
    [{ port: 1, frame: '00', inject: 'yes' }, 'inject'],
    [{ count: 0 }, 'count'],
    [{ count: 1001 }, 'count'],
    [{ seconds: 0 }, 'seconds'],
    [{ seconds: 61 }, 'seconds'],
    [{ seconds: '1' }, 'seconds'],
    ['x'.repeat(300_000), 'body'],
  ])('refuses %j and says that it is the %s', async (body, where) => {
    const { status, answer } = await ask(body);
    expect([status, answer.code, answer.where]).toEqual([400, 'INVALID_REQUEST', where]);
  });

  test('has nothing else', async () => {
    expect(await ask({}, '/')).toMatchObject({ status: 404, answer: { code: 'NOT_FOUND' } });
    expect((await ask({}, '/v1/traces', 'GET')).status).toBe(404);
  });

  test('says that its address is taken, or none', async () => {
    const address = `127.0.0.1:${server.port}`;
    await expect(startAdminServer({ device: device.device, address })).rejects.toMatchObject({
      code: 'ADDRESS_IN_USE',
    });
    for (const wrong of ['9', 'localhost', 'localhost:99999'])
      await expect(startAdminServer({ device: device.device, address: wrong })).rejects.toMatchObject({
        code: 'INVALID_OPTION',
      });
  });
});
