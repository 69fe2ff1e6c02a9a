import { readFileSync } from 'node:fs';
import protobuf from 'protobufjs';
import { describe, expect, it } from 'vitest';
import { DdfError } from '../../base/errors.ts';
import { createRandom } from '../../base/random.ts';
import type { FromAgent } from '../../wire/agent/messages.ts';
import { GENERATED_FILES, generateMessages } from '../../wire/generate.ts';
import {
  type Entity,
  type P4Error,
  type Status,
  type StreamMessageRequest,
  type TableEntry,
  UpdateType,
  type WriteRequest,
} from '../../wire/p4runtime/messages.ts';
import { type P4Info, TableIdleTimeoutBehavior } from '../../wire/p4runtime/p4info-messages.ts';
import { P4_ENTITIES_SCHEMA } from '../../wire/p4runtime/schema-entities.ts';
import { GOOGLE_ANY_SCHEMA } from '../../wire/p4runtime/schema-google.ts';
import { P4_DATA_SCHEMA } from '../../wire/p4runtime/schema-p4data.ts';
import { messageCodec, packAny, serviceDefinition, unpackAny } from '../../wire/proto.ts';

const tableEntry = messageCodec<TableEntry>('p4.v1.TableEntry');
const writeRequest = messageCodec<WriteRequest>('p4.v1.WriteRequest');
const status = messageCodec<Status>('google.rpc.Status');
const p4Error = messageCodec<P4Error>('p4.v1.Error');
const fromAgent = messageCodec<FromAgent>('ddf.agent.v1.FromAgent');

describe('generated message types', () => {
  for (const file of GENERATED_FILES)
    it(`${file.path} is up to date`, () => {
      expect(readFileSync(new URL(`../../${file.path}`, import.meta.url), 'utf8')).toBe(generateMessages(file));
    });
});

describe('message codec', () => {
  it('gives every scalar and array its default and leaves messages and oneofs undefined', () => {
    const entry = tableEntry.decode(new Uint8Array(0));
    expect(entry).toEqual({
      tableId: 0,
      match: [],
      priority: 0,
      controllerMetadata: 0n,
      isDefaultAction: false,
      idleTimeoutNs: 0n,
      metadata: new Uint8Array(0),
      isConst: false,
    });
    expect(entry.action).toBeUndefined();
  });

  it('keeps 64-bit integers exact, signed and unsigned', () => {
    for (const value of [
      0n,
      1n,
      127n,
      128n,
      2n ** 31n,
      2n ** 32n,
      2n ** 53n - 1n,
      2n ** 53n,
      2n ** 53n + 1n,
      2n ** 63n,
      2n ** 64n - 1n,
    ]) {
      const decoded = tableEntry.decode(tableEntry.encode({ controllerMetadata: value }));
      expect(decoded.controllerMetadata).toBe(value);
    }
    for (const value of [0n, -1n, 1n, -(2n ** 31n), -(2n ** 63n), 2n ** 63n - 1n])
      expect(tableEntry.decode(tableEntry.encode({ idleTimeoutNs: value })).idleTimeoutNs).toBe(value);
    for (const value of [0, -1, 2 ** 31 - 1, -(2 ** 31)])
      expect(tableEntry.decode(tableEntry.encode({ priority: value })).priority).toBe(value);
  });

  it('refuses values that a field cannot hold', () => {
    expect(() => tableEntry.encode({ tableId: -1 })).toThrow(DdfError);
    expect(() => tableEntry.encode({ tableId: 1.5 })).toThrow(DdfError);
    expect(() => tableEntry.encode({ idleTimeoutNs: 2n ** 63n })).toThrow(DdfError);
    expect(() => tableEntry.encode({ controllerMetadata: -1n })).toThrow(DdfError);
  });

  it('keeps the presence of empty messages and of oneof members at their default', () => {
    const entry = tableEntry.decode(tableEntry.encode({ counterData: {}, action: { actionProfileMemberId: 0 } }));
    expect(entry.counterData).toEqual({ byteCount: 0n, packetCount: 0n });
    expect(entry.action).toEqual({ actionProfileMemberId: 0 });
  });

  it('lets the last member of a oneof win', () => {
    const bytes = Buffer.concat([
      tableEntry.encode({ action: { actionProfileMemberId: 7 } }),
      tableEntry.encode({ action: { actionProfileGroupId: 8 } }),
    ]);
    expect(tableEntry.decode(bytes).action).toEqual({ actionProfileGroupId: 8 });
  });

  it('ignores fields that it does not know', () => {
    const unknown = [0xfa, 0x3e, 2, 1, 2, 0xf8, 0x3e, 5, 0xf9, 0x3e, 1, 2, 3, 4, 5, 6, 7, 8, 0xfd, 0x3e, 1, 2, 3, 4];
    const bytes = Buffer.concat([Buffer.from(unknown), tableEntry.encode({ tableId: 5 })]);
    expect(tableEntry.decode(bytes).tableId).toBe(5);
  });

  it('owns the bytes that it decoded', () => {
    const encoded = tableEntry.encode({ metadata: new Uint8Array([1, 2, 3]) });
    const decoded = tableEntry.decode(encoded);
    encoded.fill(0xff);
    expect(decoded.metadata).toEqual(new Uint8Array([1, 2, 3]));
  });

  it('decodes maps and both forms of repeated numbers', () => {
    const p4Info = messageCodec<P4Info>('p4.config.v1.P4Info');
    const info = p4Info.decode(
      p4Info.encode({
        tables: [
          { directResourceIds: [1, 300, 0xffffffff], idleTimeoutBehavior: TableIdleTimeoutBehavior.NOTIFY_CONTROL },
        ],
        typeInfo: { newTypes: new Map([['port_t', { translatedType: { uri: 'p4.org/psa', sdnBitwidth: 32 } }]]) },
      }),
    );
    expect(info.tables[0]!.directResourceIds).toEqual([1, 300, 0xffffffff]);
    expect(info.typeInfo!.newTypes.get('port_t')!.translatedType!.sdnBitwidth).toBe(32);
    const unpacked = new Uint8Array([0x12, 4, 0x38, 1, 0x38, 2]);
    expect(p4Info.decode(unpacked).tables[0]!.directResourceIds).toEqual([1, 2]);
  });

  it('agrees with protobufjs in both directions', () => {
    const root = new protobuf.Root();
    for (const schema of [GOOGLE_ANY_SCHEMA, P4_DATA_SCHEMA, P4_ENTITIES_SCHEMA]) protobuf.parse(schema, root);
    root.resolveAll();
    const theirs = root.lookupType('p4.v1.Entity');
    const ours = messageCodec<Entity>('p4.v1.Entity');
    const random = createRandom('entities');
    for (let round = 0; round < 200; round++) {
      const entity: Entity = {
        tableEntry: tableEntry.create({
          tableId: random.uint32(),
          priority: random.uint32() | 0,
          controllerMetadata: (BigInt(random.uint32()) << 32n) | BigInt(random.uint32()),
          match: Array.from({ length: random.below(5) }, (_, fieldId) => ({
            fieldId,
            ternary: { value: new Uint8Array(random.below(300)).fill(fieldId), mask: new Uint8Array(random.below(9)) },
          })),
        }),
      };
      const bytes = ours.encode(entity);
      const again = theirs.encode(theirs.decode(bytes)).finish();
      expect(ours.decode(again)).toEqual(entity);
    }
  });

  it('refuses malformed bytes with the name of the message, and never hangs or crashes on random ones', () => {
    expect(() => tableEntry.decode(new Uint8Array([0x12, 200]))).toThrow(DdfError);
    expect(() => tableEntry.decode(new Uint8Array([0x08]))).toThrow(/cut off/);
    expect(() => tableEntry.decode(new Uint8Array([0x0b]))).toThrow(/wire type 3/);
    try {
      tableEntry.decode(new Uint8Array(20).fill(0xff));
    } catch (error) {
      expect(error).toMatchObject({ code: 'INVALID_REQUEST', where: 'p4.v1.TableEntry' });
    }
    const random = createRandom('mutations');
    const good = writeRequest.encode({
      deviceId: 3n,
      updates: [
        {
          type: 1,
          entity: { tableEntry: { tableId: 1, match: [{ fieldId: 1, exact: { value: new Uint8Array(4) } }] } },
        },
      ],
    });
    for (let round = 0; round < 2000; round++) {
      const bytes = good.slice();
      for (let i = 0; i <= random.below(4); i++) bytes[random.below(bytes.length)] = random.below(256);
      try {
        writeRequest.decode(bytes);
      } catch (error) {
        expect(error).toBeInstanceOf(DdfError);
      }
    }
  });

  it('refuses messages that are nested without end', () => {
    const p4Data = messageCodec('p4.v1.P4Data');
    let bytes = new Uint8Array(0);
    for (let depth = 0; depth < 200; depth++) {
      // P4Data.tuple (field 4) with one member (field 1)
      const member = Buffer.concat([Buffer.from([0x0a]), length(bytes.length), bytes]);
      bytes = new Uint8Array(Buffer.concat([Buffer.from([0x22]), length(member.length), member]));
    }
    expect(() => p4Data.decode(bytes)).toThrow(/nested too deep/);
  });

  it('puts a message together that comes in many pieces, in time that grows with their number', () => {
    const stream = messageCodec<StreamMessageRequest>('p4.v1.StreamMessageRequest');
    const pieces = 200_000;
    const piece = Buffer.from(stream.encode({ packet: { metadata: [{ metadataId: 1 }] } }));
    const last = stream.encode({ packet: { payload: new Uint8Array([7]) } });
    const bytes = Buffer.concat([...new Array<Buffer>(pieces).fill(piece), last]);
    // Anything that looks at all the former pieces for each would take hours.
    const { packet } = stream.decode(bytes);
    expect(packet!.metadata).toHaveLength(pieces);
    expect(packet!.payload).toEqual(new Uint8Array([7]));
    expect(stream.decode(Buffer.concat([piece, stream.encode({ other: {} }), piece])).packet!.metadata).toHaveLength(1);
  });

  it('refuses more messages than memory may hold', () => {
    const bytes = new Uint8Array(2 * 2_100_000);
    for (let i = 0; i < bytes.length; i += 2) bytes[i] = 0x22;
    expect(() => writeRequest.decode(bytes)).toThrow(/more than 2000000 messages/);
    expect(writeRequest.decode(bytes.subarray(0, 20_000)).updates).toHaveLength(10_000);
  });

  it('encodes agent messages', () => {
    const message = fromAgent.decode(
      fromAgent.encode({
        hello: { agentId: 'host-1', incarnation: 1n << 40n, held: [{ objectId: 2n ** 64n - 1n, version: 22 }] },
      }),
    );
    expect(message.hello!.held[0]).toMatchObject({ objectId: 2n ** 64n - 1n, version: 22, sizeBytes: 0n });
    expect(message.reply).toBeUndefined();
  });
});

function length(value: number): Uint8Array {
  return value < 128 ? new Uint8Array([value]) : new Uint8Array([(value & 0x7f) | 0x80, value >> 7]);
}

describe('google.protobuf.Any', () => {
  it('carries error details of a Status', () => {
    const bytes = status.encode({ code: 2, details: [packAny(p4Error, { canonicalCode: 6, message: 'exists' })] });
    const decoded = status.decode(bytes);
    expect(decoded.details[0]!.typeUrl).toBe('type.googleapis.com/p4.v1.Error');
    expect(unpackAny(p4Error, decoded.details[0]!)).toMatchObject({ canonicalCode: 6, message: 'exists' });
    expect(unpackAny(tableEntry, decoded.details[0]!)).toBeUndefined();
  });
});

describe('service definition', () => {
  it('has paths, streaming flags and serialisers', () => {
    const service = serviceDefinition('p4.v1.P4Runtime');
    expect(Object.keys(service)).toHaveLength(6);
    expect(service.Read).toMatchObject({
      path: '/p4.v1.P4Runtime/Read',
      requestStream: false,
      responseStream: true,
      originalName: 'read',
    });
    expect(service.StreamChannel).toMatchObject({ requestStream: true, responseStream: true });
    const bytes = service.Write!.requestSerialize({ updates: [{ type: UpdateType.DELETE }] });
    expect(service.Write!.requestDeserialize(bytes)).toMatchObject({ updates: [{ type: 3 }], deviceId: 0n });
  });
});
