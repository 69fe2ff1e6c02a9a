/**
 * Small bmv2 JSON programs for tests, in the shape that p4c-bm2-ss writes. A program is given as its differences from an empty one:
 * one header type per header, standard metadata, a parser, two pipelines of tables that call actions, a deparser.
 */

export type Json = { [key: string]: unknown } | readonly unknown[] | string | number | boolean | null;

export interface ActionSpec {
  readonly name: string;
  readonly parameters?: readonly (readonly [name: string, widthBits: number])[];
  readonly primitives?: readonly Json[];
}

export interface TableSpec {
  readonly name: string;
  readonly keys?: readonly {
    readonly match: string;
    readonly field: readonly [string, string];
    readonly name?: string;
  }[];
  readonly actions: readonly string[];
  readonly default?: string;
  readonly defaultData?: readonly string[];
  readonly constDefault?: boolean;
  readonly size?: number;
  readonly next?: { readonly [action: string]: string | null };
  /** The table, conditional or end that follows whatever happens; default: the end. */
  readonly after?: string | null;
  readonly entries?: readonly Json[];
  readonly profile?: string;
}

export interface PipelineSpec {
  readonly start?: string | null;
  readonly tables?: readonly TableSpec[];
  readonly conditionals?: readonly {
    readonly name: string;
    readonly expression: Json;
    readonly yes: string | null;
    readonly no: string | null;
  }[];
  readonly profiles?: readonly Json[];
}

export interface StateSpec {
  readonly name: string;
  readonly operations?: readonly Json[];
  readonly key?: readonly Json[];
  readonly transitions?: readonly Json[];
}

export interface ProgramSpec {
  readonly headers?: {
    readonly [name: string]: readonly (readonly [name: string, width: number | '*', signed?: boolean])[];
  };
  /** Bytes that a header with a field of width `*` has at most. */
  readonly maxBytes?: { readonly [name: string]: number };
  /** Headers of the same type: name to the name of the header whose type they share. */
  readonly sameType?: { readonly [name: string]: string };
  readonly scalars?: readonly (readonly [name: string, width: number, signed?: boolean])[];
  readonly states?: readonly StateSpec[];
  readonly actions?: readonly ActionSpec[];
  readonly ingress?: PipelineSpec;
  readonly egress?: PipelineSpec;
  readonly deparser?: readonly string[];
  readonly counters?: readonly Json[];
  readonly meters?: readonly Json[];
  readonly registers?: readonly Json[];
  readonly calculations?: readonly Json[];
  readonly checksums?: readonly Json[];
  /** Further members of the root, or others in place of those above. */
  readonly root?: { readonly [key: string]: unknown };
}

const STANDARD_METADATA: readonly (readonly [string, number])[] = [
  ['ingress_port', 9],
  ['egress_spec', 9],
  ['egress_port', 9],
  ['instance_type', 32],
  ['packet_length', 32],
  ['enq_timestamp', 32],
  ['enq_qdepth', 19],
  ['deq_timedelta', 32],
  ['deq_qdepth', 19],
  ['ingress_global_timestamp', 48],
  ['egress_global_timestamp', 48],
  ['mcast_grp', 16],
  ['egress_rid', 16],
  ['checksum_error', 1],
  ['parser_error', 32],
  ['priority', 3],
];

const ERRORS = [
  'NoError',
  'PacketTooShort',
  'NoMatch',
  'StackOutOfBounds',
  'HeaderTooShort',
  'ParserTimeout',
  'ParserInvalidArgument',
];

export const hex = (value: bigint | number): Json => ({
  type: 'hexstr',
  value: value < 0 ? `-0x${(-BigInt(value)).toString(16)}` : `0x${value.toString(16)}`,
});
export const field = (header: string, name: string): Json => ({ type: 'field', value: [header, name] });
export const standard = (name: string): Json => field('standard_metadata', name);
export const valid = (header: string): Json => ({ op: 'd2b', left: null, right: field(header, '$valid$') });
/** An operation as an operand of another. */
export const expression = (value: Json): Json => ({ type: 'expression', value });
export const op = (operator: string, left: Json, right: Json): Json => expression({ op: operator, left, right });
export const assign = (target: Json, value: Json): Json => ({ op: 'assign', parameters: [target, value] });
export const call = (primitive: string, ...parameters: readonly Json[]): Json => ({ op: primitive, parameters });
export const named = (type: string, value: Json): Json => ({ type, value });
export const extract = (header: string): Json => ({ op: 'extract', parameters: [{ type: 'regular', value: header }] });
export const goTo = (next: string | null): Json => ({ type: 'default', value: null, mask: null, next_state: next });
export const send = (port: number): Json => assign(standard('egress_spec'), hex(port));

/** A table that only calls an action, as p4c makes one for every statement of a control. */
export const callTable = (action: string, after: string | null = null): TableSpec => ({
  name: `tbl_${action}`,
  actions: [action],
  default: action,
  constDefault: true,
  after,
});

export function buildJson(spec: ProgramSpec): { [key: string]: unknown } {
  const headers = Object.entries(spec.headers ?? {});
  const same = Object.entries(spec.sameType ?? {});
  const scalars = spec.scalars ?? [];
  const actions = spec.actions ?? [];
  const actionId = (name: string): number => actions.findIndex((action) => action.name === name);
  const pipeline = (name: string, id: number, given: PipelineSpec = {}) => ({
    name,
    id,
    init_table: given.start ?? given.tables?.[0]?.name ?? null,
    tables: (given.tables ?? []).map((table, index) => buildTable(table, 100 * id + index, actionId)),
    action_profiles: given.profiles ?? [],
    conditionals: (given.conditionals ?? []).map((conditional, index) => ({
      name: conditional.name,
      id: 100 * id + index,
      expression: expression(conditional.expression),
      true_next: conditional.yes,
      false_next: conditional.no,
    })),
  });
  return {
    header_types: [
      { name: 'scalars_0', id: 0, fields: scalars },
      { name: 'standard_metadata', id: 1, fields: STANDARD_METADATA },
      ...headers.map(([name, fields], i) => ({
        name: `${name}_t`,
        id: i + 2,
        fields,
        max_length: spec.maxBytes?.[name],
      })),
    ],
    headers: [
      { name: 'scalars', id: 0, header_type: 'scalars_0', metadata: true },
      { name: 'standard_metadata', id: 1, header_type: 'standard_metadata', metadata: true },
      ...headers.map(([name], i) => ({ name, id: i + 2, header_type: `${name}_t`, metadata: false })),
      ...same.map(([name, of], i) => ({ name, id: 500 + i, header_type: `${of}_t`, metadata: false })),
    ],
    header_stacks: [],
    header_union_types: [],
    header_unions: [],
    header_union_stacks: [],
    field_lists: [],
    errors: ERRORS.map((name, value) => [name, value]),
    enums: [],
    parsers: [
      {
        name: 'parser',
        id: 0,
        init_state: (spec.states ?? [])[0]?.name ?? null,
        parse_states: (spec.states ?? []).map((state, id) => ({
          name: state.name,
          id,
          parser_ops: state.operations ?? [],
          transitions: state.transitions ?? [goTo(null)],
          transition_key: state.key ?? [],
        })),
      },
    ],
    parse_vsets: [],
    deparsers: [{ name: 'deparser', id: 0, order: spec.deparser ?? headers.map(([name]) => name), primitives: [] }],
    meter_arrays: spec.meters ?? [],
    counter_arrays: spec.counters ?? [],
    register_arrays: spec.registers ?? [],
    calculations: spec.calculations ?? [],
    learn_lists: [],
    actions: actions.map(({ name, parameters, primitives }, id) => ({
      name,
      id,
      runtime_data: (parameters ?? []).map(([parameter, bitwidth]) => ({ name: parameter, bitwidth })),
      primitives: primitives ?? [],
    })),
    pipelines: [pipeline('ingress', 0, spec.ingress), pipeline('egress', 1, spec.egress)],
    checksums: spec.checksums ?? [],
    force_arith: [],
    extern_instances: [],
    field_aliases: [
      ['queueing_metadata.enq_timestamp', ['standard_metadata', 'enq_timestamp']],
      ['queueing_metadata.enq_qdepth', ['standard_metadata', 'enq_qdepth']],
      ['queueing_metadata.deq_timedelta', ['standard_metadata', 'deq_timedelta']],
      ['queueing_metadata.deq_qdepth', ['standard_metadata', 'deq_qdepth']],
      ['intrinsic_metadata.ingress_global_timestamp', ['standard_metadata', 'ingress_global_timestamp']],
      ['intrinsic_metadata.egress_global_timestamp', ['standard_metadata', 'egress_global_timestamp']],
      ['intrinsic_metadata.mcast_grp', ['standard_metadata', 'mcast_grp']],
      ['intrinsic_metadata.egress_rid', ['standard_metadata', 'egress_rid']],
    ],
    program: 'test',
    __meta__: { version: [2, 23], compiler: 'test' },
    ...spec.root,
  };
}

export function buildProgram(spec: ProgramSpec): Uint8Array {
  return encode(buildJson(spec));
}

export function encode(json: unknown): Uint8Array {
  return new TextEncoder().encode(JSON.stringify(json));
}

function buildTable(table: TableSpec, id: number, actionId: (name: string) => number): Json {
  const after = table.after ?? null;
  const matches = (table.keys ?? []).map((key) => key.match);
  const strongest = ['range', 'ternary', 'lpm'].find((match) => matches.includes(match)) ?? 'exact';
  return {
    name: table.name,
    id,
    key: (table.keys ?? []).map((key) => ({
      match_type: key.match,
      name: key.name ?? key.field.join('.'),
      target: key.field,
      mask: null,
    })),
    match_type: strongest,
    type: table.profile === undefined ? 'simple' : 'indirect_ws',
    ...(table.profile === undefined ? {} : { action_profile: table.profile }),
    max_size: table.size ?? 1024,
    with_counters: false,
    support_timeout: false,
    direct_meters: null,
    action_ids: table.actions.map(actionId),
    actions: table.actions,
    base_default_next: after,
    next_tables: table.next ?? Object.fromEntries(table.actions.map((action) => [action, after])),
    ...(table.default === undefined
      ? {}
      : {
          default_entry: {
            action_id: actionId(table.default),
            action_const: table.constDefault ?? false,
            action_data: table.defaultData ?? [],
            action_entry_const: table.constDefault ?? false,
          },
        }),
    ...(table.entries === undefined ? {} : { entries: table.entries }),
  };
}
