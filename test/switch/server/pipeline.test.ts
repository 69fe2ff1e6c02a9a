import {
  type ClientReadableStream,
  credentials,
  makeGenericClientConstructor,
  type ServiceDefinition,
  type ServiceError,
} from '@grpc/grpc-js';
import pino from 'pino';
import { describe, expect, it } from 'vitest';
import { VirtualScheduler } from '../../../base/clock.ts';
import { DdfError } from '../../../base/errors.ts';
import { createRandom } from '../../../base/random.ts';
import { Device } from '../../../switch/device.ts';
import { startP4RuntimeServer } from '../../../switch/server/p4runtime-server.ts';
import { checkProgramMatches } from '../../../switch/server/program-check.ts';
import { RpcCode } from '../../../switch/server/rpc-error.ts';
import {
  SetForwardingPipelineConfigRequestAction as ConfigAction,
  UpdateType,
} from '../../../wire/p4runtime/messages.ts';
import { P4InfoIndex } from '../../../wire/p4runtime/p4info-index.ts';
import { parseP4InfoText } from '../../../wire/p4runtime/p4info-text.ts';
import { serviceDefinition } from '../../../wire/proto.ts';
import {
  bytes,
  CONFIG,
  CONST,
  CPU_PORT,
  call,
  EXACT,
  entity,
  exact,
  exactEntry,
  FORWARD,
  forward,
  GROUP_SELECTOR,
  GROUPS,
  INITIAL,
  idleEntry,
  KINDS,
  LEARNED,
  METERED,
  meteredEntry,
  p4InfoText,
  packetOut,
  probe,
  RATES,
  received,
  SEEN,
  STATE,
  ternary,
} from '../../conformance/server/program.ts';
import { Bench } from './bench.ts';

const newDevice = (deviceId = 1n): Device =>
  new Device({ deviceId, cpuPort: CPU_PORT, clock: new VirtualScheduler(), random: createRandom(1) });
const P4INFO = p4InfoText('conformance');

describe('a P4Info that does not belong to the program', () => {
  const { control } = newDevice().compile(new Uint8Array(CONFIG.p4DeviceConfig!));
  const differences = (from: string | RegExp, to: string): string => {
    try {
      checkProgramMatches(new P4InfoIndex(parseP4InfoText(P4INFO.replace(from, to))), control);
    } catch (error) {
      if (error instanceof DdfError) return `${error.code}: ${error.message}`;
    }
    return '';
  };

  it('matches itself', () => {
    expect(differences('', '')).toBe('');
  });

  it('may promise more room than a table has that begins with entries: p4c makes it as large as they are many', () => {
    // 1024 is what p4c 1.2.4.2 writes of a table without `size`, and the source's `size` of one with it.
    const { tables } = new P4InfoIndex(parseP4InfoText(P4INFO));
    for (const [name, described] of [
      ['SwitchIngress.const_table', 1024],
      ['SwitchIngress.initial_table', 2],
    ] as const) {
      expect(tables.require(name).size).toBe(described);
      expect(control.tables.get(name)!.size).toBe(2);
    }
    expect(differences('size: 2\n', 'size: 4096\n')).toBe('');
  });

  it.each([
    ['SwitchIngress.exact_table', 'SwitchIngress.another_table', /no table SwitchIngress.another_table/],
    [
      'name: "label"\n    bitwidth: 32',
      'name: "label"\n    bitwidth: 31',
      /exact_table, key label has 32 bits, not 31/,
    ],
    [
      'name: "small"\n    bitwidth: 8\n    match_type: EXACT',
      'name: "small"\n    bitwidth: 8\n    match_type: LPM',
      /key small is matched as exact, not as lpm/,
    ],
    [/match_fields \{\s+id: 2\s+name: "small"[^}]*\}/, '', /exact_table has 2 keys, not 1/],
    [
      /action_refs \{\s+id: 16777217\s+\}/,
      'action_refs { id: 16777221 }',
      /exact_table has no action SwitchIngress.elsewhere/,
    ],
    [
      'name: "tag"\n    bitwidth: 32',
      'name: "tag"\n    bitwidth: 33',
      /action SwitchIngress.forward, parameter tag has 32 bits, not 33/,
    ],
    [/params \{\s+id: 2[^}]*\}/, '', /action SwitchIngress.forward has 2 parameters, not 1/],
    ['size: 16\n', 'size: 17\n', /room for 16 entries, not 17/],
    ['"SwitchIngress.seen"', '"SwitchIngress.losses"', /no counter SwitchIngress.losses/],
    ['"SwitchIngress.rates"', '"SwitchIngress.rate"', /no meter SwitchIngress.rate/],
    ['bitwidth: 12', 'bitwidth: 13', /register SwitchIngress.state has cells of 12 bits, not 13/],
    ['"Parse.kinds"', '"Parse.sorts"', /no value set Parse.sorts/],
    ['name: "learned_t"', 'name: "unlearned_t"', /no digest unlearned_t/],
  ])('%s -> %s', (from, to, message) => {
    expect(differences(from, to)).toMatch(/^PROGRAM_MISMATCH/);
    expect(differences(from, to)).toMatch(message);
  });

  it('is refused at Set, and what ran goes on', async () => {
    const bench = await Bench.startWithProgram();
    const p4info = parseP4InfoText(
      P4INFO.replace('name: "label"\n    bitwidth: 32', 'name: "label"\n    bitwidth: 31'),
    );
    const before = bench.device.program;
    const outcome = await bench.client.set(ConfigAction.VERIFY_AND_COMMIT, { ...CONFIG, p4info });
    expect(outcome).toMatchObject({ code: RpcCode.INVALID_ARGUMENT, message: expect.stringContaining('key label') });
    expect(bench.device.program).toBe(before);
    expect((await bench.client.write([])).code).toBe(0);
    await bench.stop();
  });
});

describe('RECONCILE_AND_COMMIT', () => {
  const data = { packetCount: 3n, byteCount: 4n };
  const meter = { cir: 1n, cburst: 2n, pir: 3n, pburst: 4n };
  const read = (bench: Bench) =>
    bench.client
      .read([
        { actionProfileMember: {} },
        { actionProfileGroup: {} },
        { tableEntry: { counterData: {} } },
        { tableEntry: { tableId: METERED, meterConfig: {} } },
        { tableEntry: { tableId: EXACT, isDefaultAction: true, counterData: {} } },
        { counterEntry: {} },
        { meterEntry: {} },
        { registerEntry: {} },
        { valueSetEntry: {} },
        { digestEntry: {} },
        { packetReplicationEngineEntry: { multicastGroupEntry: {} } },
        { packetReplicationEngineEntry: { cloneSessionEntry: {} } },
      ])
      .then(({ entities }) => entities);

  const fill = async ({ client }: Bench): Promise<void> => {
    const insert = [
      { actionProfileMember: { actionProfileId: GROUP_SELECTOR, memberId: 1, action: call(FORWARD, 1, 1) } },
      {
        actionProfileGroup: {
          actionProfileId: GROUP_SELECTOR,
          groupId: 1,
          maxSize: 6,
          members: [{ memberId: 1, weight: 2 }],
        },
      },
      entity({ tableId: GROUPS, match: [exact(1, 5)], action: { actionProfileGroupId: 1 } }),
      entity(exactEntry({ action: forward(9), counterData: data, metadata: bytes(1) })),
      entity(meteredEntry({ meterConfig: meter })),
      entity(idleEntry({ idleTimeoutNs: 10n ** 9n })),
      { packetReplicationEngineEntry: { multicastGroupEntry: { multicastGroupId: 1, metadata: bytes(5) } } },
      { packetReplicationEngineEntry: { cloneSessionEntry: { sessionId: 2, packetLengthBytes: 7 } } },
      { digestEntry: { digestId: LEARNED, config: { maxListSize: 5 } } },
    ];
    for (const each of insert) expect(await client.insert(each)).toBe(0);
    const index = { index: 2n };
    const modify = [
      { counterEntry: { counterId: SEEN, index, data } },
      { meterEntry: { meterId: RATES, index, config: meter } },
      { registerEntry: { registerId: STATE, index, data: { bitstring: bytes(9) } } },
      { valueSetEntry: { valueSetId: KINDS, members: [{ match: [exact(1, 3)] }] } },
      entity({ tableId: EXACT, isDefaultAction: true, action: forward(4), counterData: data }),
      entity({ tableId: CONST, match: [exact(1, 0xf1)], counterData: data }),
      entity({ tableId: INITIAL, match: [ternary(1, bytes(0xf1), bytes(0xff))], priority: 2, action: forward(6) }),
    ];
    for (const each of modify) expect(await client.modify(each)).toBe(0);
    expect(
      await client.delete(entity({ tableId: INITIAL, match: [ternary(1, bytes(0xf2), bytes(0xff))], priority: 1 })),
    ).toBe(0);
  };

  it('keeps everything that controllers have written', async () => {
    const bench = await Bench.startWithProgram();
    await fill(bench);
    const before = await read(bench);
    const program = bench.device.program;
    expect((await bench.client.set(ConfigAction.RECONCILE_AND_COMMIT, CONFIG)).code).toBe(0);
    expect(bench.device.program).not.toBe(program);
    const after = await read(bench);
    expect(after).toHaveLength(before.length);
    expect(after).toEqual(expect.arrayContaining(before));
    const primary = bench.primary;
    primary.send(packetOut(probe({ label: 5, small: 6, kind: 3 })));
    expect(received(await primary.nextOf('packet'))).toMatchObject({ inSet: 1 });
    bench.scheduler.runUntil(1_500_000);
    expect((await primary.nextOf('idleTimeoutNotification')).tableEntry).toHaveLength(1);
    await bench.stop();
  });

  it('changes nothing when the new config has no place for something', async () => {
    const bench = await Bench.startWithProgram();
    await fill(bench);
    const before = await read(bench);
    const smaller = P4INFO.replace(/preamble \{\s+id: 33554433[\s\S]*?^\}/m, (text) =>
      text.replace('size: 16', 'size: 1'),
    );
    const other = parseP4InfoText(smaller.replace(/value_sets \{[\s\S]*?^\}\n/m, ''));
    const outcome = await bench.client.set(ConfigAction.RECONCILE_AND_COMMIT, { ...CONFIG, p4info: other });
    expect(outcome).toMatchObject({
      code: RpcCode.INVALID_ARGUMENT,
      message: expect.stringContaining('cannot take over'),
    });
    expect(await read(bench)).toEqual(before);
    await bench.stop();
  });

  it('is a first commit where nothing ran', async () => {
    const bench = await Bench.start();
    await bench.client.contend(1n);
    expect((await bench.client.set(ConfigAction.RECONCILE_AND_COMMIT, CONFIG)).code).toBe(0);
    expect(await bench.client.insert(entity(exactEntry()))).toBe(0);
    await bench.stop();
  });
});

describe('a saved config', () => {
  it('takes writes and reads until it is committed, while packets go on as before', async () => {
    const bench = await Bench.startWithProgram();
    const { client, primary } = bench;
    const tag = async () => {
      primary.send(packetOut(probe({ label: 5, small: 6 })));
      return received(await primary.nextOf('packet')).tag;
    };
    await client.insert(entity(exactEntry({ action: forward(1) })));
    expect((await client.set(ConfigAction.VERIFY_AND_SAVE, CONFIG)).code).toBe(0);
    expect(await client.list(entity({ tableId: EXACT }))).toEqual([]);
    expect(await client.insert(entity(exactEntry({ action: forward(2) })))).toBe(0);
    expect(await tag()).toBe(1);
    expect((await client.set(ConfigAction.COMMIT)).code).toBe(0);
    expect(await tag()).toBe(2);
    await bench.stop();
  });
});

describe('the server', () => {
  const logger = pino({ level: 'silent' });
  const scheduler = new VirtualScheduler();

  it('names a port that is in use', async () => {
    const first = await startP4RuntimeServer({ devices: [newDevice()], address: '127.0.0.1:0', scheduler, logger });
    const address = `127.0.0.1:${first.port}`;
    await expect(startP4RuntimeServer({ devices: [newDevice()], address, scheduler, logger })).rejects.toMatchObject({
      code: 'ADDRESS_IN_USE',
      message: expect.stringContaining(address),
    });
    await first.stop();
    await first.stop();
  });

  it('refuses two devices with one id, and an address that is none', async () => {
    const devices = [newDevice(), newDevice()];
    await expect(startP4RuntimeServer({ devices, address: '127.0.0.1:0', scheduler, logger })).rejects.toMatchObject({
      code: 'INVALID_OPTION',
    });
    await expect(startP4RuntimeServer({ devices: [], address: 'unix', scheduler, logger })).rejects.toBeInstanceOf(
      DdfError,
    );
  });

  it('ends calls with malformed messages and goes on', async () => {
    const bench = await Bench.startWithProgram();
    const identity = { requestSerialize: (raw: Buffer) => raw, responseDeserialize: (raw: Buffer) => raw };
    const methods = Object.entries(serviceDefinition('p4.v1.P4Runtime')).map(
      ([name, method]) => [name, { ...method, ...identity }] as const,
    );
    const Raw = makeGenericClientConstructor(Object.fromEntries(methods) as unknown as ServiceDefinition, 'P4Runtime');
    const client = new Raw(`127.0.0.1:${bench.server.port}`, credentials.createInsecure());
    const garbage = Buffer.from([0x0a, 0xff, 0x01]);
    const unary = await new Promise<number>((resolve) =>
      client.Write!(garbage, (error: ServiceError) => resolve(error.code)),
    );
    expect(unary).not.toBe(0);
    const ended = (stream: ClientReadableStream<Buffer>): Promise<number> =>
      new Promise((resolve) => {
        stream.on('data', () => undefined);
        stream.on('error', (error: Error) => resolve((error as ServiceError).code));
      });
    expect(await ended(client.Read!(garbage))).not.toBe(0);
    const stream = client.StreamChannel!();
    stream.write(garbage);
    expect(await ended(stream)).not.toBe(0);
    expect((await bench.client.write([])).code).toBe(0);
    client.close();
    await bench.stop();
  });

  it('sends large tables in several messages, from one state', async () => {
    const bench = await Bench.startWithProgram();
    const updates = Array.from({ length: 1500 }, (_, i) => ({
      type: UpdateType.INSERT,
      entity: entity(idleEntry({ match: [exact(1, 1, i >> 8, i & 255)] })),
    }));
    expect((await bench.client.write(updates)).code).toBe(0);
    const { entities, responses } = await bench.client.read([{ tableEntry: { tableId: idleEntry().tableId! } }]);
    expect(entities).toHaveLength(1500);
    expect(responses).toBeGreaterThan(1);
    await bench.stop();
  });

  it('keeps to the limits of multicast groups that the program states', async () => {
    const limits =
      'platform_properties { multicast_group_table_size: 2 multicast_group_table_total_replicas: 3 multicast_group_table_max_replicas_per_entry: 2 }';
    const p4info = parseP4InfoText(P4INFO.replace('arch: "v1model"', `arch: "v1model" ${limits}`));
    const bench = await Bench.startWithProgram({ ...CONFIG, p4info });
    const group = (multicastGroupId: number, ...ports: number[]) => ({
      packetReplicationEngineEntry: {
        multicastGroupEntry: { multicastGroupId, replicas: ports.map((port) => ({ port: bytes(port) })) },
      },
    });
    const { client } = bench;
    expect(await client.insert(group(1, 1, 2, 3))).toBe(RpcCode.RESOURCE_EXHAUSTED);
    expect(await client.insert(group(1, 1, 2))).toBe(0);
    expect(await client.insert(group(2, 1, 2))).toBe(RpcCode.RESOURCE_EXHAUSTED);
    expect(await client.insert(group(2))).toBe(0);
    expect(await client.insert(group(3))).toBe(RpcCode.RESOURCE_EXHAUSTED);
    expect(await client.modify(group(2, 1))).toBe(0);
    await bench.stop();
  });
});
