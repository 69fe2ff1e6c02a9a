import type { JsonView } from './json-view.ts';
import { define, type Names } from './names.ts';
import type { Header, HeaderField, ParserErrors, StandardMetadata } from './program.ts';

/** Wider than any field that p4c makes; keeps a hostile file from asking for a gigantic field store. */
const MAX_FIELD_BITS = 4096;

interface FieldShape {
  readonly name: string;
  readonly widthBits: number;
  readonly signed: boolean;
}

export function loadHeaders(root: JsonView, names: Names): Header[] {
  refuseUnlessEmpty(root, 'header_stacks', 'header stacks');
  refuseUnlessEmpty(root, 'header_union_types', 'header unions');
  refuseUnlessEmpty(root, 'header_unions', 'header unions');
  refuseUnlessEmpty(root, 'header_union_stacks', 'stacks of header unions');
  const types = new Map<string, readonly FieldShape[]>();
  for (const type of root.get('header_types').items()) {
    define(types, type.get('name'), type.get('fields').items().map(loadField));
  }
  return root
    .get('headers')
    .items()
    .map((view) => define(names.headers, view.get('name'), loadHeader(view, types)));
}

function loadField(view: JsonView): FieldShape {
  const items = view.items();
  if (items.length !== 2 && items.length !== 3) throw view.invalid('is not [name, width] or [name, width, signed]');
  const [name, width, signed] = items as [JsonView, JsonView, JsonView | undefined];
  if (width.raw === '*') throw width.unsupported('fields of variable length (varbit)');
  return {
    name: name.string(),
    widthBits: width.integer(1, MAX_FIELD_BITS),
    signed: signed?.isBoolean ? signed.boolean() : false,
  };
}

function loadHeader(view: JsonView, types: ReadonlyMap<string, readonly FieldShape[]>): Header {
  const typeView = view.get('header_type');
  const shapes = types.get(typeView.string());
  if (shapes === undefined) throw typeView.invalid(`names no header type: ${typeView.string()}`);
  const metadata = view.find('metadata')?.boolean() ?? false;
  const widthBits = shapes.reduce((sum, shape) => sum + shape.widthBits, 0);
  if (!metadata && widthBits % 8 !== 0) throw typeView.invalid(`is a header of ${widthBits} bits, not of whole bytes`);
  const fields: HeaderField[] = [];
  const header: Header = {
    name: view.get('name').string(),
    id: view.get('id').integer(),
    typeName: typeView.string(),
    metadata,
    fields,
    widthBits,
  };
  let offsetBits = 0;
  for (const shape of shapes) {
    if (fields.some((field) => field.name === shape.name))
      throw typeView.invalid(`is a header type with two fields named ${shape.name}`);
    fields.push({ header, offsetBits, ...shape });
    offsetBits += shape.widthBits;
  }
  return header;
}

/** Errors that a program does not list get numbers that no listed one has. */
export function loadErrors(root: JsonView): ParserErrors {
  const values = new Map<string, number>();
  for (const item of root.find('errors')?.items() ?? []) {
    const [name, value] = item.tuple(2) as [JsonView, JsonView];
    define(values, name, value.integer(0, 0x7fff_fffe));
  }
  let free = Math.max(6, ...values.values()) + 1;
  const value = (name: string): number => values.get(name) ?? free++;
  return {
    noError: values.get('NoError') ?? 0,
    packetTooShort: value('PacketTooShort'),
    parserTimeout: value('ParserTimeout'),
    parserInvalidArgument: value('ParserInvalidArgument'),
  };
}

/** Finds simple_switch's metadata under its own names or the aliases that the program declares. */
export function loadStandardMetadata(root: JsonView, names: Names): StandardMetadata {
  const aliases = new Map<string, HeaderField>();
  for (const item of root.find('field_aliases')?.items() ?? []) {
    const [alias, target] = item.tuple(2) as [JsonView, JsonView];
    // p4c repeats aliases when a program instantiates v1model's metadata more than once.
    aliases.set(alias.string(), names.field(target));
  }
  const optional = (header: string, field: string): HeaderField | undefined =>
    aliases.get(`${header}.${field}`) ??
    names.headers.get(header)?.fields.find((candidate) => candidate.name === field) ??
    names.headers.get('standard_metadata')?.fields.find((candidate) => candidate.name === field);
  const required = (field: string): HeaderField => {
    const found = optional('standard_metadata', field);
    if (found === undefined) throw root.get('headers').invalid(`declares no standard_metadata.${field}`);
    return found;
  };
  // simple_switch fills the queueing metadata only if all of it is there.
  const queueing = ['enq_timestamp', 'enq_qdepth', 'deq_timedelta', 'deq_qdepth'].map((field) =>
    optional('queueing_metadata', field),
  );
  const [enqueueTimestamp, enqueueDepth, dequeueDelta, dequeueDepth] = queueing.includes(undefined) ? [] : queueing;
  return {
    ingressPort: required('ingress_port'),
    egressSpec: required('egress_spec'),
    egressPort: required('egress_port'),
    packetLength: required('packet_length'),
    instanceType: required('instance_type'),
    multicastGroup: optional('intrinsic_metadata', 'mcast_grp'),
    egressRid: optional('intrinsic_metadata', 'egress_rid'),
    parserError: optional('standard_metadata', 'parser_error'),
    checksumError: optional('standard_metadata', 'checksum_error'),
    ingressTimestamp: optional('intrinsic_metadata', 'ingress_global_timestamp'),
    egressTimestamp: optional('intrinsic_metadata', 'egress_global_timestamp'),
    enqueueTimestamp,
    enqueueDepth,
    dequeueDelta,
    dequeueDepth,
    priority: optional('intrinsic_metadata', 'priority'),
  };
}

/** Refuses a section of the format that is not implemented, unless the program leaves it empty. */
export function refuseUnlessEmpty(root: JsonView, key: string, what: string): void {
  const section = root.find(key);
  if (section !== undefined && section.items().length > 0) throw section.items()[0]!.unsupported(what);
}
