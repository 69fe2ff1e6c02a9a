/**
 * What users and networks get wrong with a switch: each gets an error that names the place and, where there is one, the way out. More of it stands
 * with the parts: interfaces in ports/ and standalone/, requests of P4Runtime in server/ and ../conformance, made-up input of all kinds in ../fuzz.
 */
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createRandom } from '../../base/random.ts';
import { loadProgram } from '../../switch/bmv2/load-program.ts';
import { Device } from '../../switch/device.ts';
import { RpcCode } from '../../switch/server/rpc-error.ts';
import {
  SetForwardingPipelineConfigRequestAction as ConfigAction,
  type Entity,
  UpdateType,
} from '../../wire/p4runtime/messages.ts';
import { P4InfoIndex } from '../../wire/p4runtime/p4info-index.ts';
import { parseP4InfoText } from '../../wire/p4runtime/p4info-text.ts';
import type { MessageInput } from '../../wire/proto.ts';
import { buildJson, encode } from './program-builder.ts';
import { Bench } from './server/bench.ts';
import type { TestStream } from './server/client.ts';

const BUILD = new URL('../../p4/build/', import.meta.url);
const FABRIC = new Uint8Array(readFileSync(new URL('fabric.json', BUILD)));
const P4INFO_TEXT = readFileSync(new URL('fabric.p4info.txtpb', BUILD), 'utf8');
const info = new P4InfoIndex(parseP4InfoText(P4INFO_TEXT));

describe('a program file', () => {
  const text = new TextDecoder().decode(FABRIC);

  it.each<[string, string | object, string, RegExp]>([
    ['that is cut off', text.slice(0, 5000), '$', /not a JSON document: .*(position|end of JSON)/],
    ['that is something else', 'table punt {', '$', /not a JSON document/],
    ['that is another JSON', { name: 'ddf' }, '$', /\$ has no "__meta__"/],
    [
      'of a future format',
      { ...buildJson({}), __meta__: { version: [3, 0] } },
      '$.__meta__.version[0]',
      /version 3 of the bmv2 JSON/,
    ],
    [
      'with a field of the wrong type',
      text.replace(/"max_size"\s*:\s*\d+/, '"max_size": "many"'),
      '$.pipelines[0].tables[0].max_size',
      /is not an integer/,
    ],
    [
      'with a name that leads nowhere',
      text.replace(/"init_table"\s*:\s*"[^"]+"/, '"init_table": "nowhere"'),
      '$.pipelines[0].init_table',
      /nowhere/,
    ],
  ])('%s is refused with the path to the field', (_what, program, where, message) => {
    const bytes = typeof program === 'string' ? new TextEncoder().encode(program) : encode(program);
    expect(() => loadProgram(bytes)).toThrow(
      expect.objectContaining({ where, message: expect.stringMatching(message), remedy: expect.stringMatching(/\.$/) }),
    );
  });

  it.each<[string, { [key: string]: unknown }, string]>([
    ['PSA', { parsers: [{ name: 'ingress_parser' }, { name: 'egress_parser' }] }, '$.parsers'],
    ['PNA', { parsers: [{ name: 'main_parser' }], pipelines: [{ name: 'main_control' }] }, '$.parsers'],
    ['no known architecture', { headers: [], header_types: [] }, '$.headers'],
  ])('for %s is refused as such', (_architecture, parts, where) => {
    expect(() => loadProgram(encode({ ...buildJson({}), ...parts }))).toThrow(
      expect.objectContaining({
        code: 'UNSUPPORTED_PROGRAM',
        where,
        message: expect.stringMatching(/none for v1model/),
        remedy: expect.stringMatching(/v1model/),
      }),
    );
  });

  it('with the same entry twice is refused', () => {
    const entry = { action_entry: { action_id: 0, action_data: [] }, priority: 1 };
    const program = (...matches: object[]) =>
      encode(
        buildJson({
          headers: { h: [['a', 8]] },
          actions: [{ name: 'drop' }],
          ingress: {
            tables: [
              {
                name: 't',
                keys: [{ match: 'ternary', field: ['h', 'a'] }],
                actions: ['drop'],
                entries: matches.map((match) => ({ ...entry, match_key: [{ match_type: 'ternary', ...match }] })),
              },
            ],
          },
        }),
      );
    loadProgram(program({ key: '0x01', mask: '0x0f' }, { key: '0x01', mask: '0x1f' }));
    expect(() => loadProgram(program({ key: '0x01', mask: '0x0f' }, { key: '0xf1', mask: '0x0f' }))).toThrow(
      expect.objectContaining({
        code: 'INVALID_PROGRAM',
        where: '$.pipelines[0].tables[0].entries[1]',
        message: expect.stringMatching(/same packets as \$\.pipelines\[0\]\.tables\[0\]\.entries\[0\]/),
      }),
    );
  });
});

describe('a P4Info file', () => {
  it.each([
    ['that is cut off', P4INFO_TEXT.slice(0, P4INFO_TEXT.indexOf('match_fields') + 20)],
    ['with a field that there is not', P4INFO_TEXT.replace('match_fields', 'match_filds')],
    ['with a value of the wrong type', P4INFO_TEXT.replace(/bitwidth: \d+/, 'bitwidth: "nine"')],
    ['that is the program', new TextDecoder().decode(FABRIC)],
  ])('%s is refused with file, line and column', (_what, text) => {
    expect(() => parseP4InfoText(text, 'fabric.p4info.txtpb')).toThrow(
      expect.objectContaining({
        code: 'INVALID_FILE',
        where: expect.stringMatching(/^fabric\.p4info\.txtpb:\d+:\d+$/),
      }),
    );
  });
});

describe('a controller', () => {
  let bench: Bench & { primary: TestStream };
  const config = { p4info: info.p4Info, p4DeviceConfig: FABRIC };
  beforeAll(async () => {
    bench = await Bench.startWithProgram(config);
  });
  afterAll(() => bench.stop());

  const tableEntry = (
    table: string,
    value: number[],
    action: string,
    params: number[][],
    id = info.tables.require(table).id,
  ) => ({
    tableEntry: {
      tableId: id,
      match: [{ fieldId: 1, exact: { value: Uint8Array.from(value) } }],
      action: {
        action: {
          actionId: info.actions.require(action).id,
          params: params.map((param, i) => ({ paramId: i + 1, value: Uint8Array.from(param) })),
        },
      },
    },
  });
  const insert = async (entity: MessageInput<Entity>) =>
    (await bench.client.write([{ type: UpdateType.INSERT, entity }])).message;

  it('with a program for another architecture is told so, and what ran goes on', async () => {
    const psa = parseP4InfoText(P4INFO_TEXT.replace('arch: "v1model"', 'arch: "psa"'));
    const outcome = await bench.client.set(ConfigAction.VERIFY_AND_COMMIT, { ...config, p4info: psa });
    expect(outcome).toMatchObject({
      code: RpcCode.INVALID_ARGUMENT,
      message: expect.stringMatching(/for psa, this switch runs v1model/),
    });
    expect((await bench.client.write([])).code).toBe(0);
  });

  it('that is the second with its election id is refused, and one with a lower one may not write', async () => {
    const second = bench.newClient();
    const stream = second.stream();
    stream.arbitrate(1n);
    expect(await stream.end()).toBe(RpcCode.INVALID_ARGUMENT);
    const backup = await second.contend(0n);
    const update = { type: UpdateType.INSERT, entity: tableEntry('port_role', [9], 'host_port', []) };
    expect(await second.write([update], { electionId: { low: 0n } })).toMatchObject({
      code: RpcCode.PERMISSION_DENIED,
      message: expect.stringMatching(/Not primary/),
    });
    await backup.close();
  });

  it('that writes into a table that there is not is told which', async () => {
    expect(await insert(tableEntry('port_role', [9], 'host_port', [], 0x0200_dead))).toMatch(
      /no table with id 0x200dead/,
    );
    expect(await insert(tableEntry('port_role', [9], 'permit', []))).toMatch(/port_role has no action/);
  });

  it('that writes values too wide is told the field', async () => {
    expect(await insert(tableEntry('port_role', [2, 0], 'host_port', []))).toMatch(
      /port_role, match field ingress_port: .*0x200 does not fit into bit<9>/,
    );
    expect(await insert(tableEntry('port_bit', [9], 'set_bit', [[1, 0, 0, 0, 0]]))).toMatch(
      /port_bit, action .*set_bit, parameter bit: .*does not fit into bit<32>/,
    );
    expect(await insert(tableEntry('port_role', [], 'host_port', []))).toMatch(/ingress_port: .*empty/);
  });

  it('that fills a table is told its size', async () => {
    const { id, size } = info.tables.require('port_role');
    const updates = Array.from({ length: size + 1 }, (_, i) => ({
      type: UpdateType.INSERT,
      entity: tableEntry('port_role', [i >> 8, i & 255], 'host_port', []),
    }));
    const outcome = await bench.client.write(updates);
    const codes = outcome.errors!.map(({ canonicalCode }) => canonicalCode);
    expect(codes.filter((code) => code === 0)).toHaveLength(size);
    expect(codes.at(-1)).toBe(size === 512 ? RpcCode.INVALID_ARGUMENT : RpcCode.RESOURCE_EXHAUSTED);
    expect((await bench.client.read([{ tableEntry: { tableId: id } }])).entities).toHaveLength(size);
  });
});

describe('a frame', () => {
  it('that is shorter than its headers, or longer than any link takes, is one dropped packet and no fault', () => {
    const device = new Device({ deviceId: 1n, cpuPort: 510, clock: { nowUs: () => 0 }, random: createRandom(1) });
    device.load(device.compile(FABRIC));
    const whole = new Uint8Array(120);
    whole.set([2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45]);
    for (let length = 0; length <= whole.length; length++) device.receive(1, whole.slice(0, length));
    for (const length of [9500, 65_535, 1_000_000]) {
      const frame = new Uint8Array(length);
      frame.set(whole);
      device.receive(1, frame);
    }
    expect(device.statistics).toMatchObject({ received: 124, dropped: 124, transmitted: 0, errors: 0, outOfRange: 0 });
  });
});
