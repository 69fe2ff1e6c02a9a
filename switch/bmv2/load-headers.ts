import type { JsonView } from './json-view.ts';
import { hiddenField } from './load-stacks.ts';
import { define, type LoadedHeader, type Names } from './names.ts';
import type { Header, HeaderField, ParserErrors, StandardMetadata } from './program.ts';

/** Wider than any field that p4c makes; keeps a hostile file from asking for a gigantic field store. */
const MAX_FIELD_BITS = 4096;
/** The same for a header with a field of variable length. */
const MAX_HEADER_BYTES = 16384;

type Open<T> = { -readonly [K in keyof T]: T[K] };

interface FieldShape {
  readonly name: string;
  readonly widthBits: number;
  readonly signed: boolean;
  readonly saturating: boolean;
  readonly varbit: boolean;
}

interface HeaderShape {
  readonly fields: readonly FieldShape[];
  /** Of a header with a varbit. */
  readonly maxBytes: number;
}

export function loadHeaders(root: JsonView, names: Names): Header[] {
  const types = new Map<string, HeaderShape>();
  for (const type of root.get('header_types').items()) {
    if (type.find('length_exp') !== undefined)
      throw type.get('length_exp').unsupported('headers whose type tells the length of a field');
    const fields = type.get('fields').items().map(loadField);
    if (fields.filter((field) => field.varbit).length > 1)
      throw type.get('fields').invalid('has two fields of variable length');
    define(types, type.get('name'), {
      fields,
      maxBytes: fields.some((field) => field.varbit) ? type.get('max_length').integer(0, MAX_HEADER_BYTES) : 0,
    });
  }
  return root
    .get('headers')
    .items()
    .map((view) => {
      const header = loadHeader(view, types);
      if (names.headersById.has(header.id)) throw view.get('id').invalid(`repeats the id ${header.id}`);
      names.headersById.set(header.id, header);
      return define(names.headers, view.get('name'), header);
    });
}

function loadField(view: JsonView): FieldShape {
  const items = view.items();
  if (items.length < 2 || items.length > 4) throw view.invalid('is not [name, width, signed, saturating]');
  const [name, width, signed, saturating] = items as [JsonView, JsonView, JsonView | undefined, JsonView | undefined];
  const varbit = width.raw === '*';
  return {
    name: name.string(),
    widthBits: varbit ? 0 : width.integer(1, MAX_FIELD_BITS),
    // p4c writes null for a type that is no number.
    signed: signed?.raw === true,
    saturating: saturating?.raw === true,
    varbit,
  };
}

function loadHeader(view: JsonView, types: ReadonlyMap<string, HeaderShape>): LoadedHeader {
  const typeView = view.get('header_type');
  const type = types.get(typeView.string());
  if (type === undefined) throw typeView.invalid(`names no header type: ${typeView.string()}`);
  const name = view.get('name').string();
  const metadata = view.find('metadata')?.boolean() ?? false;
  const widthBits = type.fields.reduce((sum, shape) => sum + shape.widthBits, 0);
  if (!metadata && widthBits % 8 !== 0) throw typeView.invalid(`is a header of ${widthBits} bits, not of whole bytes`);
  const varbits = 8 * type.maxBytes - widthBits;
  if (type.maxBytes > 0 && varbits < 0)
    throw typeView.invalid('is a header type whose field of variable length has no room');
  const fields: HeaderField[] = [];
  const header: Open<LoadedHeader> = {
    name,
    id: view.get('id').integer(),
    typeName: typeView.string(),
    metadata,
    fields,
    widthBits,
    varbit: undefined,
    rivals: [],
  };
  let offsetBits = 0;
  for (const shape of type.fields) {
    if (fields.some((field) => field.name === shape.name))
      throw typeView.invalid(`is a header type with two fields named ${shape.name}`);
    const { signed, saturating } = shape;
    const field: HeaderField = {
      header,
      name: shape.name,
      widthBits: shape.varbit ? varbits : shape.widthBits,
      signed,
      saturating,
      offsetBits,
      length: shape.varbit ? hiddenField(`${name}.${shape.name} length`) : undefined,
    };
    if (shape.varbit) header.varbit = field;
    fields.push(field);
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
    stackOutOfBounds: value('StackOutOfBounds'),
    headerTooShort: value('HeaderTooShort'),
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
