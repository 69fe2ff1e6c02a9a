import { describe, expect, it } from 'vitest';
import { DdfError } from '../../../base/errors.ts';
import { createRandom } from '../../../base/random.ts';
import { P4InfoIndex } from '../../../wire/p4runtime/p4info-index.ts';
import { parseP4InfoText } from '../../../wire/p4runtime/p4info-text.ts';
import { PacketMetadataCodec } from '../../../wire/p4runtime/packet-metadata.ts';

const SAMPLE = String.raw`
# what p4c writes
pkg_info { arch: "v1model" }
tables {
  preamble { id: 0x02000001 name: "Ingress.route" alias: "route" annotations: "@id(1)" }
  match_fields { id: 1 name: "destination" bitwidth: 32 match_type: LPM }
  match_fields < id: 2, name: 'ether\x5ftype'; bitwidth: 16 match_type: TERNARY >
  action_refs { id: 16777217 }
  action_refs: { id: 16777218 scope: DEFAULT_ONLY }
  const_default_action_id: 16777218
  direct_resource_ids: [318767105]
  size: 1024
}
actions {
  preamble { id: 16777217 name: "Ingress.forward" alias: "forward" }
  params { id: 1 name: "port" bitwidth: 9 type_name { name: "port_t" } }
}
actions { preamble { id: 16777218 name: "Ingress." "no_route" alias: "no_route" } }
direct_counters { preamble { id: 318767105 name: "Ingress.routed" alias: "routed" } spec { unit: BOTH } direct_table_id: 33554433 }
controller_packet_metadata {
  preamble { id: 67108865 name: "packet_in" alias: "packet_in" }
  metadata { id: 2 name: "ingress_port" bitwidth: 9 }
  metadata { id: 5 name: "padding" bitwidth: 7 }
  metadata { id: 1 name: "reason" bitwidth: 8 }
}
type_info {
  new_types { key: "port_t" value { translated_type { uri: "x" sdn_bitwidth: -0 } } }
}
`;

describe('P4Info text', () => {
  it('reads what compilers write', () => {
    const info = parseP4InfoText(SAMPLE);
    expect(info.pkgInfo!.arch).toBe('v1model');
    expect(info.tables[0]).toMatchObject({
      size: 1024n,
      constDefaultActionId: 16777218,
      directResourceIds: [318767105],
    });
    expect(info.tables[0]!.matchFields[1]!.name).toBe('ether_type');
    expect(info.actions[1]!.preamble!.name).toBe('Ingress.no_route');
    expect(info.typeInfo!.newTypes.get('port_t')!.translatedType!.uri).toBe('x');
  });

  it.each([
    ['tables { size: 5 ]', ':1:18'],
    ['tables {\n  sise: 5\n}', ':2:3'],
    ['tables {\n  size: "five"\n}', ':2:9'],
    ['tables { size: 99999999999999999999 }', ':1:16'],
    ['tables { preamble { name: "open\n" } }', ':1:27'],
    ['tables { match_fields { match_type: BEST } }', ':1:37'],
    ['tables { match_fields { match_type: LPM other_match_type: "x" } }', ':1:41'],
    ['tables { size: 1 size: 2 }', ':1:18'],
    ['tables {', ':1:9'],
    ['tables { is_const_table: maybe }', ':1:26'],
    ['tables { size 5 }', ':1:15'],
    ['pkg_info { name: "\\q" }', ':1:18'],
    ['@', ':1:1'],
    ['externs { instances { info { [type.googleapis.com/x] {} } } }', ':1:30'],
    ['tables { other_properties { value: "\\400" } }', ':1:36'],
  ])('says where %j is wrong', (text, where) => {
    try {
      parseP4InfoText(text, 'program.txtpb');
      expect.unreachable();
    } catch (error) {
      expect(error).toBeInstanceOf(DdfError);
      expect(error).toMatchObject({ code: 'INVALID_FILE', where: `program.txtpb${where}` });
    }
  });

  it('answers every mutation of a text with a message or a DdfError', () => {
    const random = createRandom('p4info text');
    for (let round = 0; round < 1500; round++) {
      const at = random.below(SAMPLE.length);
      const length = random.below(5);
      const text = SAMPLE.slice(0, at) + String.fromCharCode(9 + random.below(120)) + SAMPLE.slice(at + length);
      try {
        new P4InfoIndex(parseP4InfoText(text));
      } catch (error) {
        if (!(error instanceof DdfError)) throw error;
      }
    }
  });
});

describe('P4Info index', () => {
  it('finds objects by id, name and alias, with references resolved', () => {
    const index = new P4InfoIndex(parseP4InfoText(SAMPLE));
    const table = index.tables.require('route');
    expect(table).toBe(index.tables.require(0x02000001));
    expect(table).toBe(index.tables.get('Ingress.route'));
    expect(table.needsPriority).toBe(true);
    expect(table.fieldByName.get('destination')).toMatchObject({ id: 1, kind: 'lpm', widthBits: 32 });
    expect(table.actionById.get(16777218)).toMatchObject({ scope: 'default only' });
    expect(table.directCounter!.name).toBe('Ingress.routed');
    expect(table.hasConstDefault).toBe(true);
    expect(index.actions.require('forward').paramByName.get('port')).toMatchObject({
      widthBits: 9,
      typeName: 'port_t',
    });
    expect(() => index.tables.require('nowhere')).toThrow(/no table nowhere/);
  });

  it.each([
    [
      'row 81: an id without the prefix of its kind',
      'id: 16777217 name: "Ingress.forward"',
      'id: 1 name: "Ingress.forward"',
      /does not begin with 0x01/,
    ],
    ['two objects with one id', 'id: 16777218 name', 'id: 16777217 name', /Two objects of kind action have the id/],
    ['two objects with one alias', 'alias: "no_route"', 'alias: "forward"', /alias forward/],
    ['a reference to nothing', 'action_refs { id: 16777217 }', 'action_refs { id: 16777300 }', /unknown id/],
    [
      'a direct resource of nothing',
      'direct_resource_ids: [318767105]',
      'direct_resource_ids: [318767106]',
      /direct resource/,
    ],
    ['a counter of nothing', 'direct_table_id: 33554433', 'direct_table_id: 33554434', /unknown table/],
    ['two fields with one id', 'id: 2, name', 'id: 1, name', /have the id 1/],
    ['a missing name', 'name: "Ingress.route" ', '', /has no name/],
    ['an unknown match kind', 'match_type: LPM', 'other_match_type: "fuzzy"', /fuzzy is not supported/],
  ])('refuses %s', (_, from, to, message) => {
    const info = parseP4InfoText(SAMPLE.replace(from, to));
    expect(() => new P4InfoIndex(info)).toThrow(message);
  });
});

describe('packet metadata', () => {
  const header = new P4InfoIndex(parseP4InfoText(SAMPLE)).controllerHeaders.require('packet_in');
  const codec = new PacketMetadataCodec(header);

  it('row 79: goes by id and width, not by position', () => {
    const metadata = codec.fromValues({ reason: 7n, padding: 0n, ingress_port: 510n });
    const frame = codec.join([...metadata].reverse(), new Uint8Array([0xaa]));
    expect(frame).toEqual(new Uint8Array([0xff, 0x00, 0x07, 0xaa]));
    const split = codec.split(frame);
    expect(codec.toValues(split.metadata)).toEqual({ ingress_port: 510n, padding: 0n, reason: 7n });
    expect(split.metadata[0]!.value).toEqual(new Uint8Array([1, 0xfe]));
    expect(split.payload).toEqual(new Uint8Array([0xaa]));
  });

  it('refuses a header that is not made of whole bytes', () => {
    const info = parseP4InfoText(SAMPLE.replace('name: "padding" bitwidth: 7', 'name: "padding" bitwidth: 6'));
    const odd = new P4InfoIndex(info).controllerHeaders.require('packet_in');
    expect(() => new PacketMetadataCodec(odd)).toThrow(/no whole bytes/);
  });

  it('refuses another set of fields and values that do not fit', () => {
    const metadata = codec.fromValues({ reason: 7n, padding: 0n, ingress_port: 1n });
    expect(() => codec.join(metadata.slice(1), new Uint8Array(0))).toThrow(/ingress_port is missing/);
    expect(() => codec.join([...metadata, metadata[0]!], new Uint8Array(0))).toThrow(/twice/);
    expect(() => codec.join([...metadata, { metadataId: 9, value: new Uint8Array(1) }], new Uint8Array(0))).toThrow(
      /id 9/,
    );
    expect(() => codec.toValues([{ metadataId: 1, value: new Uint8Array([1, 0]) }])).toThrow(/does not fit/);
    expect(() => codec.split(new Uint8Array(2))).toThrow(/shorter/);
  });
});
