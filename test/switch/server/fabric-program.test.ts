import { readFileSync } from 'node:fs';
import {
  type ClientReadableStream,
  credentials,
  makeGenericClientConstructor,
  type ServiceDefinition,
} from '@grpc/grpc-js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ETHERTYPE_ARP, PUNT_REASON_ARP, PUNT_SIZE } from '../../../p4/build/constants.ts';
import { RpcCode } from '../../../switch/server/rpc-error.ts';
import { MAX_BATCH_WORK } from '../../../switch/server/running-program.ts';
import { encodeBits } from '../../../wire/p4runtime/byte-strings.ts';
import {
  SetForwardingPipelineConfigRequestAction as ConfigAction,
  type FieldMatch,
  type ReadResponse,
  type TableAction,
  type TableEntry,
  UpdateType,
} from '../../../wire/p4runtime/messages.ts';
import { P4InfoIndex } from '../../../wire/p4runtime/p4info-index.ts';
import { parseP4InfoText } from '../../../wire/p4runtime/p4info-text.ts';
import { PacketMetadataCodec } from '../../../wire/p4runtime/packet-metadata.ts';
import { type MessageInput, serviceDefinition } from '../../../wire/proto.ts';
import { Bench } from './bench.ts';
import type { TestStream } from './client.ts';

const build = new URL('../../../p4/build/', import.meta.url);
const info = new P4InfoIndex(parseP4InfoText(readFileSync(new URL('fabric.p4info.txtpb', build), 'utf8')));
const bmv2Json = readFileSync(new URL('fabric.json', build));
const TRANSFER = info.tables.require('transfer').id;
const config = { p4info: info.p4Info, p4DeviceConfig: new Uint8Array(bmv2Json) };

function call(alias: string, ...params: bigint[]) {
  const action = info.actions.require(alias);
  return {
    actionId: action.id,
    params: action.params.map(({ id }, i) => ({ paramId: id, value: encodeBits(params[i]!) })),
  };
}

function entry(
  table: string,
  values: bigint[],
  action: MessageInput<TableAction>,
  more: MessageInput<TableEntry> = {},
) {
  const { id, fields } = info.tables.require(table);
  const match = fields.flatMap((field, i): MessageInput<FieldMatch>[] => {
    const value = values[i];
    if (value === undefined) return [];
    const bytes = encodeBits(value);
    if (field.kind === 'exact') return [{ fieldId: field.id, exact: { value: bytes } }];
    if (field.kind === 'lpm') return [{ fieldId: field.id, lpm: { value: bytes, prefixLen: 24 } }];
    return [{ fieldId: field.id, ternary: { value: bytes, mask: encodeBits((1n << BigInt(field.widthBits)) - 1n) } }];
  });
  return { tableEntry: { tableId: id, match, action, ...more } };
}

describe('the server in front of the device that runs the fabric program', () => {
  const transmitted: [number, Uint8Array][] = [];
  let bench: Bench;
  let primary: TestStream;
  beforeAll(async () => {
    const started = await Bench.startWithProgram(config);
    bench = started;
    primary = started.primary;
    bench.device.onTransmit = (port, frame) => transmitted.push([port, frame.slice()]);
  });
  afterAll(() => bench.stop());

  it('refuses the rest of a batch that would keep it busy for long, and goes on with the next', async () => {
    const { id: counterId, size } = info.counters.require('transfer_egress_counter');
    const all = { counterEntry: { counterId, data: { packetCount: 0n, byteCount: 0n } } };
    const whole = Math.floor(MAX_BATCH_WORK / size);
    const updates = Array.from({ length: whole + 2 }, () => ({ type: UpdateType.MODIFY, entity: all }));
    const { errors } = await bench.client.write(updates);
    const { OK, RESOURCE_EXHAUSTED } = RpcCode;
    expect(errors?.map(({ canonicalCode }) => canonicalCode)).toEqual([
      ...new Array<number>(whole).fill(OK),
      RESOURCE_EXHAUSTED,
      RESOURCE_EXHAUSTED,
    ]);
    expect((await bench.client.write(updates.slice(0, whole))).code).toBe(OK);
  });

  it('answers others while a read goes on that finds nothing', async () => {
    const many = Array.from({ length: 20_000 }, () => ({ tableEntry: { controllerMetadata: 1n, tableId: TRANSFER } }));
    const entries = Array.from({ length: 200 }, (_, i) =>
      entry('transfer', [BigInt(900_000 + i)], { action: call('follow_tree', 1n, 1n, 1n, 1n, BigInt(i)) }),
    );
    const write = (type: UpdateType) => bench.client.write(entries.map((entity) => ({ type, entity })));
    expect((await write(UpdateType.INSERT)).code).toBe(RpcCode.OK);
    const order: string[] = [];
    const read = bench.client.read(many).then(() => order.push('read'));
    await bench.client.read([{ tableEntry: { tableId: TRANSFER, isDefaultAction: true } }]);
    order.push('other');
    await read;
    expect(order).toEqual(['other', 'read']);
    await write(UpdateType.DELETE);
  });

  it('refuses a P4Info of another program, and a program that is none', async () => {
    const other = parseP4InfoText(
      readFileSync(new URL('fabric.p4info.txtpb', build), 'utf8').replace(
        'name: "label"\n    bitwidth: 32',
        'name: "label"\n    bitwidth: 31',
      ),
    );
    expect(await bench.client.set(ConfigAction.VERIFY, { ...config, p4info: other })).toMatchObject({
      code: RpcCode.INVALID_ARGUMENT,
      message: expect.stringMatching(/transfer, key label has 32 bits, not 31/),
    });
    for (const text of ['', '{', '{}', '[]', 'null', '{"program": 5}'])
      expect(
        (await bench.client.set(ConfigAction.VERIFY, { ...config, p4DeviceConfig: new TextEncoder().encode(text) }))
          .code,
      ).toBe(RpcCode.INVALID_ARGUMENT);
    expect((await bench.client.write([])).code).toBe(0);
  });

  it('keeps entries of every kind of table', async () => {
    const { client } = bench;
    const tree = call('follow_tree', 1n, 7n, 3n, 0xf0n, 5n);
    const hop = (port: bigint) => ({ action: call('next_hop', port, 0x0200_0000_0001n, 0x0200_0000_0002n), weight: 1 });
    const written = [
      entry('transfer', [0xdeadbeefn], { action: tree }, { metadata: new Uint8Array([1]) }),
      entry('replica_rewrite', [4n, 1n], { action: call('rewrite', 0x0200_0000_0003n, 0x0a000001n, 56832n) }),
      entry('ipv4_lpm', [0x0a000000n], { actionProfileActionSet: { actionProfileActions: [hop(1n), hop(2n)] } }),
      entry('classify', [0x0a000001n], { action: call('set_tag', 2n ** 64n - 1n, 3n, 4n) }, { priority: 9 }),
    ];
    for (const entity of written) {
      expect(await client.insert(entity)).toBe(0);
      expect(await client.insert(entity)).toBe(RpcCode.ALREADY_EXISTS);
    }
    const { entities } = await client.read([{ tableEntry: {} }]);
    expect(entities).toHaveLength(written.length);
    for (const entity of written)
      expect(entities).toContainEqual({ tableEntry: expect.objectContaining(plain(entity.tableEntry)) });
    expect(
      await client.modify(entry('transfer', [0xdeadbeefn], { action: call('follow_tree', 1n, 8n, 3n, 0xf0n, 5n) })),
    ).toBe(0);
    for (const entity of written) expect(await client.delete(entity)).toBe(0);
    expect((await client.read([{ tableEntry: {} }])).entities).toEqual([]);
  });

  it('fills a table to its size and says when it is full', async () => {
    const { client } = bench;
    const { id } = info.tables.require('punt');
    const punt = (etherType: number) =>
      entry('punt', [BigInt(etherType + 1)], { action: call('punt_to_controller', 1n) }, { priority: 1 });
    const updates = Array.from({ length: PUNT_SIZE }, (_, i) => ({ type: UpdateType.INSERT, entity: punt(i) }));
    expect((await client.write(updates)).code).toBe(0);
    expect(await client.insert(punt(PUNT_SIZE))).toBe(RpcCode.RESOURCE_EXHAUSTED);
    expect((await client.read([{ tableEntry: { tableId: id } }])).entities).toHaveLength(PUNT_SIZE);
    expect((await client.set(ConfigAction.VERIFY_AND_COMMIT, config)).code).toBe(0);
    expect((await client.read([{ tableEntry: { tableId: id } }])).entities).toEqual([]);
  });

  it("changes the default entry of a keyless table and restores the program's own", async () => {
    const { client } = bench;
    const tableEntry = { tableId: info.tables.require('repair_intervals').id, isDefaultAction: true };
    const current = async () =>
      (await client.read([{ tableEntry }])).entities[0]!.tableEntry!.action!.action!.params.map(({ value }) => value);
    const original = await current();
    const action = { action: call('set_intervals', 1n, 2n, 3n) };
    expect(await client.modify({ tableEntry: { ...tableEntry, action } })).toBe(0);
    expect(await current()).toEqual([1, 2, 3].map((value) => new Uint8Array([value])));
    expect(await client.modify({ tableEntry })).toBe(0);
    expect(await current()).toEqual(original);
    expect(await client.modify({ tableEntry: { ...tableEntry, tableId: info.tables.require('transfer').id } })).toBe(
      RpcCode.PERMISSION_DENIED,
    );
  });

  it('writes and reads counters, direct counters, meters and registers', async () => {
    const { client } = bench;
    const index = { index: 3n };
    const data = { packetCount: 5n, byteCount: 6n };
    const counterEntry = { counterId: info.counters.require('drop_counter').id, index, data };
    const meterEntry = {
      meterId: info.meters.require('control_meter').id,
      index,
      config: { cir: 1n, cburst: 2n, pir: 3n, pburst: 4n },
    };
    const registerEntry = {
      registerId: info.registers.require('slot_key').id,
      index,
      data: { bitstring: new Uint8Array([0xff, 1, 2, 3]) },
    };
    for (const entity of [{ counterEntry }, { meterEntry }, { registerEntry }]) {
      expect(await client.modify(entity)).toBe(0);
      expect((await client.read([entity.meterEntry === undefined ? entity : { meterEntry }])).entities).toMatchObject([
        entity,
      ]);
    }
    const { tableEntry } = entry('transfer', [7n], { action: call('follow_tree', 1n, 7n, 3n, 0xf0n, 5n) });
    await client.insert({ tableEntry });
    expect(await client.modify({ directCounterEntry: { tableEntry, data } })).toBe(0);
    expect((await client.read([{ directCounterEntry: { tableEntry } }])).entities).toMatchObject([
      { directCounterEntry: { data } },
    ]);
  });

  it('carries packets both ways', async () => {
    const { client } = bench;
    const packetOut = new PacketMetadataCodec(info.controllerHeaders.require('packet_out'));
    const packetIn = new PacketMetadataCodec(info.controllerHeaders.require('packet_in'));
    const payload = new Uint8Array(60).fill(0xab);
    primary.send({ packet: { payload, metadata: packetOut.fromValues({ egress_port: 9n }) } });
    primary.arbitrate(1n);
    await primary.nextArbitration();
    expect(transmitted).toEqual([[9, payload]]);

    expect(await client.insert(entry('port_role', [4n], { action: call('host_port') }))).toBe(0);
    const punt = entry(
      'punt',
      [BigInt(ETHERTYPE_ARP)],
      { action: call('punt_to_controller', BigInt(PUNT_REASON_ARP)) },
      { priority: 1 },
    );
    expect(await client.insert(punt)).toBe(0);
    const arp = new Uint8Array(60);
    arp.set([
      0xff,
      0xff,
      0xff,
      0xff,
      0xff,
      0xff,
      2,
      0,
      0,
      0,
      0,
      1,
      ETHERTYPE_ARP >> 8,
      ETHERTYPE_ARP & 0xff,
      0,
      1,
      8,
      0,
      6,
      4,
      0,
      1,
    ]);
    bench.device.receive(4, arp.slice());
    const { packet } = await primary.next();
    expect(packetIn.toValues(packet!.metadata)).toEqual({ ingress_port: 4n, reason: BigInt(PUNT_REASON_ARP) });
    expect(packet!.payload).toEqual(arp);
  });

  it('reads more cells than memory holds one piece after the other, and stops when nobody wants them', async () => {
    const methods = serviceDefinition('p4.v1.P4Runtime') as unknown as ServiceDefinition;
    const Client = makeGenericClientConstructor(methods, 'P4Runtime');
    const client = new Client(`127.0.0.1:${bench.server.port}`, credentials.createInsecure());
    // A few kilobytes that ask for all registers, more than a million cells, a thousand times.
    const entities = new Array<object>(1000).fill({ registerEntry: {} });
    const call: ClientReadableStream<ReadResponse> = client.Read!({ deviceId: 1n, entities });
    let cells = 0;
    await new Promise<void>((resolve) => {
      call.on('error', () => resolve());
      call.on('data', (response: ReadResponse) => {
        cells += response.entities.length;
        if (cells > 10_000) call.cancel();
      });
    });
    expect(cells).toBeGreaterThan(10_000);
    client.close();
    expect((await bench.client.write([])).code).toBe(0);
  });
});

/** What a read gives back of what was written. */
function plain(tableEntry: object): object {
  return { ...tableEntry, action: expect.anything() };
}
