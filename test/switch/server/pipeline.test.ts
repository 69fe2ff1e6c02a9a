import {
  type ClientReadableStream,
  credentials,
  makeGenericClientConstructor,
  type ServiceDefinition,
  type ServiceError,
} from '@grpc/grpc-js';
import pino from 'pino';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { DdfError } from '../../../base/errors.ts';
import { startP4RuntimeServer } from '../../../switch/server/p4runtime-server.ts';
import { checkProgramMatches } from '../../../switch/server/program-check.ts';
import { RpcCode } from '../../../switch/server/rpc-error.ts';
import {
  SetForwardingPipelineConfigRequestAction as ConfigAction,
  GetForwardingPipelineConfigRequestResponseType as ResponseType,
  UpdateType,
} from '../../../wire/p4runtime/messages.ts';
import { P4InfoIndex } from '../../../wire/p4runtime/p4info-index.ts';
import { parseP4InfoText } from '../../../wire/p4runtime/p4info-text.ts';
import { serviceDefinition } from '../../../wire/proto.ts';
import { Bench, SAMPLE_CONFIG } from './client.ts';
import { FakeDevice, FakeProgram } from './fake-device.ts';
import { SAMPLE, SAMPLE_P4INFO } from './sample-program.ts';

describe('pipeline config and the order of checks (B.2)', () => {
  let bench: Bench;
  beforeEach(async () => {
    bench = await Bench.start();
  });
  afterEach(() => bench.stop());

  it('row 18: unknown device or role, then not primary, then no pipeline', async () => {
    const { client } = bench;
    expect((await client.write([], { deviceId: 9n })).code).toBe(RpcCode.NOT_FOUND);
    expect((await client.write([], { role: 'nobody' })).code).toBe(RpcCode.NOT_FOUND);
    expect((await client.set(ConfigAction.VERIFY, SAMPLE_CONFIG, { deviceId: 9n })).code).toBe(RpcCode.NOT_FOUND);
    expect((await client.set(ConfigAction.VERIFY, SAMPLE_CONFIG, { role: 'nobody' })).code).toBe(RpcCode.NOT_FOUND);
    expect((await client.write([])).code).toBe(RpcCode.PERMISSION_DENIED);
    expect((await client.set(ConfigAction.VERIFY, SAMPLE_CONFIG)).code).toBe(RpcCode.PERMISSION_DENIED);
    await client.contend(1n);
    expect((await client.write([], { electionId: undefined })).code).toBe(RpcCode.PERMISSION_DENIED);
    expect((await client.write([])).code).toBe(RpcCode.FAILED_PRECONDITION);
  });

  it('row 19: reads need a known device and a pipeline, no stream', async () => {
    const { client } = bench;
    expect((await client.read([], { deviceId: 9n })).code).toBe(RpcCode.NOT_FOUND);
    expect((await client.read([])).code).toBe(RpcCode.FAILED_PRECONDITION);
    const primary = await client.contend(1n);
    await client.set(ConfigAction.VERIFY_AND_COMMIT, SAMPLE_CONFIG);
    await primary.close();
    expect((await bench.newClient().read([{ tableEntry: {} }])).code).toBe(0);
    expect((await client.read([], { role: 'nobody' })).code).toBe(RpcCode.NOT_FOUND);
  });

  it('row 22: before any Set, Get answers OK without a config', async () => {
    expect(await bench.client.get()).toEqual({ code: 0, config: undefined });
  });

  it('row 23: actions of Set', async () => {
    const { client, device } = bench;
    await client.contend(1n);
    for (const action of [ConfigAction.VERIFY, ConfigAction.VERIFY_AND_SAVE, ConfigAction.VERIFY_AND_COMMIT]) {
      expect((await client.set(action)).code).toBe(RpcCode.INVALID_ARGUMENT);
      expect((await client.set(action, {})).code).toBe(RpcCode.INVALID_ARGUMENT);
      const broken = await client.set(action, { ...SAMPLE_CONFIG, p4DeviceConfig: new TextEncoder().encode('broken') });
      expect(broken).toMatchObject({ code: RpcCode.INVALID_ARGUMENT, message: expect.stringContaining('broken') });
    }
    expect((await client.set(ConfigAction.COMMIT)).code).toBe(RpcCode.NOT_FOUND);
    expect((await client.set(ConfigAction.COMMIT, SAMPLE_CONFIG)).code).toBe(RpcCode.INVALID_ARGUMENT);
    expect((await client.set(ConfigAction.RECONCILE_AND_COMMIT, SAMPLE_CONFIG)).code).toBe(RpcCode.UNIMPLEMENTED);
    expect((await client.set(ConfigAction.UNSPECIFIED, SAMPLE_CONFIG)).code).toBe(RpcCode.INVALID_ARGUMENT);
    expect((await client.set(99, SAMPLE_CONFIG)).code).toBe(RpcCode.INVALID_ARGUMENT);

    expect((await client.set(ConfigAction.VERIFY, SAMPLE_CONFIG)).code).toBe(0);
    expect(device.program).toBeUndefined();
    expect((await client.set(ConfigAction.VERIFY_AND_SAVE, SAMPLE_CONFIG)).code).toBe(0);
    expect(device.program).toBeUndefined();
    expect(await client.get()).toEqual({ code: 0, config: undefined });
    expect((await client.write([])).code).toBe(RpcCode.UNIMPLEMENTED);
    expect((await client.set(ConfigAction.COMMIT)).code).toBe(0);
    expect(device.program).toBeDefined();
    expect((await client.set(ConfigAction.COMMIT)).code).toBe(RpcCode.NOT_FOUND);

    const group = { packetReplicationEngineEntry: { multicastGroupEntry: { multicastGroupId: 1 } } };
    expect(await client.insert(group)).toBe(0);
    expect((await client.set(ConfigAction.VERIFY_AND_COMMIT, SAMPLE_CONFIG)).code).toBe(0);
    expect(await client.insert(group)).toBe(0);
  });

  it('row 24: the cookie comes back, and response types choose the parts', async () => {
    const { client } = bench;
    await client.contend(1n);
    await client.set(ConfigAction.VERIFY_AND_COMMIT, SAMPLE_CONFIG);
    const parts = async (type: number) => {
      const { config } = await client.get(type);
      return [config!.p4info !== undefined, config!.p4DeviceConfig.length > 0, config!.cookie!.cookie];
    };
    expect(await parts(ResponseType.ALL)).toEqual([true, true, 77n]);
    expect(await parts(ResponseType.COOKIE_ONLY)).toEqual([false, false, 77n]);
    expect(await parts(ResponseType.P4INFO_AND_COOKIE)).toEqual([true, false, 77n]);
    expect(await parts(ResponseType.DEVICE_CONFIG_AND_COOKIE)).toEqual([false, true, 77n]);
    expect((await client.get(9)).code).toBe(RpcCode.INVALID_ARGUMENT);
    expect((await client.get()).config!.p4info).toEqual(SAMPLE.p4Info);
  });

  it('row 25: Capabilities gives the full version, NOT_FOUND for an unknown device', async () => {
    expect((await bench.client.capabilities(1n)).response!.p4runtimeApiVersion).toMatch(/^1\.5\.\d+$/);
    expect((await bench.client.capabilities(0n)).code).toBe(0);
    expect((await bench.client.capabilities(9n)).code).toBe(RpcCode.NOT_FOUND);
  });

  it('row 32: takes pipeline configs above 4 MB', async () => {
    const { client } = bench;
    await client.contend(1n);
    const large = new TextEncoder().encode(`${SAMPLE_P4INFO}\n#${'x'.repeat(6 * 1024 * 1024)}`);
    expect((await client.set(ConfigAction.VERIFY_AND_COMMIT, { ...SAMPLE_CONFIG, p4DeviceConfig: large })).code).toBe(
      0,
    );
    expect((await client.get()).config!.p4DeviceConfig.length).toBe(large.length);
  });

  it('another role has its own primary, which may write', async () => {
    const { client } = bench;
    await client.contend(1n);
    await client.set(ConfigAction.VERIFY_AND_COMMIT, SAMPLE_CONFIG);
    await client.contend(5n, { role: { name: 'second' } });
    expect((await client.write([], { role: 'second', electionId: { low: 5n } })).code).toBe(0);
    expect((await client.write([], { role: 'second', electionId: { low: 1n } })).code).toBe(RpcCode.PERMISSION_DENIED);
  });
});

describe('a P4Info that does not belong to the program', () => {
  const differences = (from: string | RegExp, to: string): string => {
    const loaded = new FakeProgram(SAMPLE);
    try {
      checkProgramMatches(new P4InfoIndex(parseP4InfoText(SAMPLE_P4INFO.replace(from, to))), loaded);
    } catch (error) {
      if (error instanceof DdfError) return `${error.code}: ${error.message}`;
    }
    return '';
  };

  it('matches itself', () => {
    expect(differences('', '')).toBe('');
  });

  it.each([
    ['Ingress.exact_table', 'Ingress.other_table', /no table Ingress.other_table/],
    ['name: "label" bitwidth: 32', 'name: "label" bitwidth: 31', /exact_table, key label has 32 bits, not 31/],
    [
      'name: "small" bitwidth: 8 match_type: EXACT',
      'name: "small" bitwidth: 8 match_type: LPM',
      /key small is matched as exact, not as lpm/,
    ],
    ['match_fields { id: 2 name: "small" bitwidth: 8 match_type: EXACT }', '', /exact_table has 2 keys, not 1/],
    ['action_refs { id: 0x01000002 }', 'action_refs { id: 0x01000005 }', /exact_table has no action Ingress.elsewhere/],
    [
      'name: "port" bitwidth: 9',
      'name: "port" bitwidth: 10',
      /action Ingress.forward, parameter port has 9 bits, not 10/,
    ],
    ['params { id: 2 name: "tag" bitwidth: 64 }', '', /action Ingress.forward has 2 parameters, not 1/],
    ['size: 16', 'size: 17', /room for 16 entries, not 17/],
    ['"Ingress.drops"', '"Ingress.losses"', /no counter Ingress.losses/],
    ['spec { unit: BOTH } size: 8', 'spec { unit: BOTH } size: 9', /counter Ingress.drops has 8 cells, not 9/],
    ['"Ingress.rates"', '"Ingress.rate"', /no meter Ingress.rate/],
    ['bitwidth: 12', 'bitwidth: 13', /register Ingress.state has cells of 12 bits, not 13/],
  ])('%s -> %s', (from, to, message) => {
    expect(differences(from, to)).toMatch(/^PROGRAM_MISMATCH/);
    expect(differences(from, to)).toMatch(message);
  });

  it('row 83: translated types are refused', () => {
    const translated = `type_info { new_types { key: "port_t" value { translated_type { uri: "x" sdn_string {} } } } }\ntables {`;
    expect(differences('tables {', translated)).toMatch(/^UNSUPPORTED_PROGRAM.*port_t/);
  });

  it('is refused at Set, and what ran goes on', async () => {
    const bench = await Bench.startWithProgram();
    const p4info = parseP4InfoText(SAMPLE_P4INFO.replace('name: "label" bitwidth: 32', 'name: "label" bitwidth: 31'));
    const before = bench.device.program;
    const outcome = await bench.client.set(ConfigAction.VERIFY_AND_COMMIT, { ...SAMPLE_CONFIG, p4info });
    expect(outcome).toMatchObject({ code: RpcCode.INVALID_ARGUMENT, message: expect.stringContaining('key label') });
    expect(bench.device.program).toBe(before);
    expect((await bench.client.write([])).code).toBe(0);
    await bench.stop();
  });
});

describe('the server', () => {
  const logger = pino({ level: 'silent' });

  it('names a port that is in use', async () => {
    const first = await startP4RuntimeServer({ devices: [new FakeDevice(1n)], address: '127.0.0.1:0', logger });
    const second = startP4RuntimeServer({ devices: [new FakeDevice(1n)], address: `127.0.0.1:${first.port}`, logger });
    await expect(second).rejects.toMatchObject({
      code: 'ADDRESS_IN_USE',
      message: expect.stringContaining(`127.0.0.1:${first.port}`),
    });
    await first.stop();
    await first.stop();
  });

  it('refuses two devices with one id, and an address that is none', async () => {
    const devices = [new FakeDevice(1n), new FakeDevice(1n)];
    await expect(startP4RuntimeServer({ devices, address: '127.0.0.1:0', logger })).rejects.toMatchObject({
      code: 'INVALID_OPTION',
    });
    await expect(startP4RuntimeServer({ devices: [], address: 'unix', logger })).rejects.toBeInstanceOf(DdfError);
  });

  it('ends calls with malformed messages and goes on', async () => {
    const bench = await Bench.startWithProgram();
    const identity = { requestSerialize: (bytes: Buffer) => bytes, responseDeserialize: (bytes: Buffer) => bytes };
    const raw = Object.entries(serviceDefinition('p4.v1.P4Runtime')).map(
      ([name, method]) => [name, { ...method, ...identity }] as const,
    );
    const Raw = makeGenericClientConstructor(Object.fromEntries(raw) as unknown as ServiceDefinition, 'P4Runtime');
    const client = new Raw(`127.0.0.1:${bench.server.port}`, credentials.createInsecure());
    const garbage = Buffer.from([0x0a, 0xff, 0x01]);
    const unary = await new Promise<number>((resolve) =>
      client.Write!(garbage, (error: ServiceError) => resolve(error.code)),
    );
    expect(unary).not.toBe(0);
    const ended = (call: ClientReadableStream<Buffer>): Promise<number> =>
      new Promise((resolve) => {
        call.on('data', () => undefined);
        call.on('error', (error: Error) => resolve((error as ServiceError).code));
      });
    expect(await ended(client.Read!(garbage))).not.toBe(0);
    const stream = client.StreamChannel!();
    stream.write(garbage);
    expect(await ended(stream)).not.toBe(0);
    expect((await bench.client.write([])).code).toBe(0);
    client.close();
    await bench.stop();
  });

  it('keeps devices apart', async () => {
    const bench = await Bench.startWithProgram();
    expect((await bench.client.write([], { deviceId: 2n })).code).toBe(RpcCode.PERMISSION_DENIED);
    await bench.client.contend(1n, { deviceId: 2n });
    expect((await bench.client.write([{ type: UpdateType.INSERT }], { deviceId: 2n })).code).toBe(
      RpcCode.FAILED_PRECONDITION,
    );
    await bench.stop();
  });
});
