import { crcParameters } from './crc-parameters.ts';
import type { JsonView } from './json-view.ts';
import { loadBoolean } from './load-expressions.ts';
import { define, fieldOf, type Names } from './names.ts';
import {
  type Action,
  type Calculation,
  type ConstantActionCall,
  type ConstantEntry,
  type ConstantMatch,
  type DataExpression,
  HASH_ALGORITHMS,
  type HashAlgorithm,
  type HashInput,
  type MatchKind,
  type Pipeline,
  type PipelineNode,
  type Selector,
  type Table,
  type TableKey,
} from './program.ts';

/** More than any switch holds; keeps a hostile file from asking for all memory. */
const MAX_TABLE_SIZE = 16 * 1024 * 1024;

type Open<T> = { -readonly [K in keyof T]: T[K] };

/** @param tables collects the tables of all pipelines; a table's index is its place there */
export function loadPipeline(view: JsonView, names: Names, tables: Table[], calculations: Calculation[]): Pipeline {
  const profiles = new Map<string, Selector | undefined>();
  for (const profile of view.find('action_profiles')?.items() ?? [])
    define(profiles, profile.get('name'), loadSelector(profile, names, calculations));

  const nodes = new Map<string, PipelineNode>();
  const tableViews = view.get('tables').items();
  const conditionalViews = view.find('conditionals')?.items() ?? [];
  const callViews = view.find('action_calls')?.items() ?? [];
  const opened = tableViews.map((item) => {
    const table = loadTable(item, names, profiles, tables.length);
    tables.push(table);
    return define(nodes, item.get('name'), table) as Open<Table>;
  });
  const conditionals = conditionalViews.map((item) =>
    define(nodes, item.get('name'), {
      kind: 'conditional' as const,
      name: item.get('name').string(),
      source: sourceFragment(item),
      condition: loadBoolean(item.get('expression'), { names }),
      yes: undefined as PipelineNode | undefined,
      no: undefined as PipelineNode | undefined,
    }),
  );
  const calls = callViews.map((item) => {
    const action = names.actionById(item.get('action_id'));
    if (action.parameters.length > 0) throw item.get('action_id').invalid('calls an action that needs parameters');
    return define(nodes, item.get('name'), {
      kind: 'call' as const,
      name: item.get('name').string(),
      action,
      next: undefined as PipelineNode | undefined,
    });
  });

  const find = (nameView: JsonView | undefined): PipelineNode | undefined => {
    if (nameView === undefined) return undefined;
    const node = nodes.get(nameView.string());
    if (node === undefined) throw nameView.invalid(`names no table or conditional: ${nameView.string()}`);
    return node;
  };
  tableViews.forEach((item, i) => {
    const table = opened[i]!;
    table.baseNext = find(item.find('base_default_next'));
    table.next = loadNext(item.get('next_tables'), table, find);
  });
  conditionalViews.forEach((item, i) => {
    conditionals[i]!.yes = find(item.find('true_next'));
    conditionals[i]!.no = find(item.find('false_next'));
  });
  callViews.forEach((item, i) => {
    calls[i]!.next = find(item.find('next_node'));
  });
  return { name: view.get('name').string(), initial: find(view.find('init_table')), nodes: [...nodes.values()] };
}

function loadNext(
  view: JsonView,
  table: Table,
  find: (name: JsonView | undefined) => PipelineNode | undefined,
): Table['next'] {
  if (view.has('__HIT__') || view.has('__MISS__'))
    return { kind: 'hit-miss', hit: find(view.find('__HIT__')), miss: find(view.find('__MISS__')) };
  const byAction = new Map<Action, PipelineNode | undefined>();
  for (const action of table.actions) {
    if (!view.has(action.name)) throw view.invalid(`has no successor for action ${action.name}`);
    byAction.set(action, find(view.find(action.name)));
  }
  return { kind: 'action', byAction };
}

function loadTable(
  view: JsonView,
  names: Names,
  profiles: ReadonlyMap<string, Selector | undefined>,
  index: number,
): Table {
  const type = view.get('type');
  const name = view.get('name').string();
  let selector: Selector | undefined;
  if (type.string() === 'indirect_ws' || type.string() === 'indirect') {
    const profile = view.get('action_profile');
    if (!profiles.has(profile.string())) throw profile.invalid('names no action profile of this pipeline');
    selector = profiles.get(profile.string());
    if (type.string() === 'indirect_ws' && selector === undefined)
      throw profile.invalid('names an action profile without a selector');
  } else if (type.string() !== 'simple') throw type.unsupported(`tables of type ${type.string()}`);

  const keys = view
    .get('key')
    .items()
    .map((key) => loadKey(key, names));
  if (keys.filter((key) => key.match === 'lpm').length > 1) throw view.get('key').invalid('has more than one lpm key');
  const actions: Action[] = [];
  for (const item of view.get('action_ids').items()) {
    const action = names.actionById(item);
    // Entries name their actions.
    if (actions.some((other) => other.name === action.name)) throw item.invalid(`is a second action ${action.name}`);
    actions.push(action);
  }
  const meterView = view.find('direct_meters');
  const directMeter = meterView === undefined ? undefined : names.meter(meterView);
  if (directMeter !== undefined && directMeter.direct?.table !== name)
    throw view.get('direct_meters').invalid('names a meter that is bound to no entry of this table');
  const counters = [...names.counters.values()].filter((counter) => counter.directTable === name);
  if (counters.length > 1) throw view.invalid('has more than one direct counter');

  const defaultEntry = view.find('default_entry');
  const entryViews = view.find('entries')?.items() ?? [];
  const byPriority = keys.some((key) => key.match === 'ternary' || key.match === 'range');
  const last = entryViews.reduce((most, entry) => Math.max(most, entry.find('priority')?.integer() ?? 0), 0);
  return {
    kind: 'table',
    name,
    index,
    keys,
    size: Math.max(view.get('max_size').integer(0, MAX_TABLE_SIZE), entryViews.length),
    actions,
    next: { kind: 'action', byAction: new Map() },
    baseNext: undefined,
    defaultCall: defaultEntry === undefined ? undefined : loadCall(defaultEntry, names, actions),
    defaultIsConst:
      defaultEntry?.find('action_const')?.boolean() === true &&
      defaultEntry.find('action_entry_const')?.boolean() === true,
    entries: loadEntries(entryViews, keys, actions, names, byPriority ? last : undefined),
    selector,
    directCounter: counters[0],
    directMeter,
  };
}

function sourceFragment(view: JsonView): string | undefined {
  const fragment = view.find('source_info')?.find('source_fragment')?.raw;
  return typeof fragment === 'string' ? fragment.replace(/\s+/g, ' ') : undefined;
}

function loadKey(view: JsonView, names: Names): TableKey {
  const match = view.get('match_type');
  const target = view.get('target');
  const name = view.find('name')?.string() ?? target.path;
  if (match.string() === 'valid') {
    const header = names.header(target);
    return { name, match: 'exact', value: { kind: 'validity', header }, widthBits: 1 };
  }
  const kinds: readonly MatchKind[] = ['exact', 'lpm', 'ternary', 'range'];
  const kind = kinds.find((candidate) => candidate === match.string());
  if (kind === undefined) throw match.unsupported(`keys of match type ${match.string()}`);
  const [headerName, fieldName] = target.tuple(2) as [JsonView, JsonView];
  if (!headerName.isString) throw headerName.unsupported('keys in a header that is computed');
  const header = names.header(headerName);
  const field = fieldName.raw === '$valid$' ? undefined : fieldOf(header, fieldName);
  const plain: DataExpression = field === undefined ? { kind: 'validity', header } : { kind: 'field', field };
  const mask = view.find('mask')?.hexadecimal();
  const value: DataExpression =
    mask === undefined
      ? plain
      : { kind: 'arithmetic', operator: '&', left: plain, right: { kind: 'constant', value: mask } };
  return { name, match: kind, value, widthBits: field?.widthBits ?? 1 };
}

function loadEntries(views: readonly JsonView[], ...how: EntryContext): ConstantEntry[] {
  const paths = new Map<string, string>();
  return views.map((view) => {
    const entry = loadEntry(view, ...how);
    const identity = entryIdentity(entry, how[0]);
    const other = paths.get(identity);
    if (other !== undefined) throw view.invalid(`matches the same packets as ${other}, with the same priority`);
    paths.set(identity, view.path);
    return entry;
  });
}

function entryIdentity({ match, priority }: ConstantEntry, keys: readonly TableKey[]): string {
  return [priority, ...match.map((part, i) => matchIdentity(part, keys[i]!.widthBits))].join('|');
}

function matchIdentity(part: ConstantMatch, widthBits: number): string {
  switch (part.kind) {
    case 'exact':
      return `${part.value}`;
    case 'lpm':
      return `${part.value >> BigInt(widthBits - part.prefixLength)}/${part.prefixLength}`;
    case 'ternary':
      return `${part.value}&${part.mask}`;
    case 'range':
      return `${part.low}-${part.high}`;
  }
}

type EntryContext = [
  keys: readonly TableKey[],
  actions: readonly Action[],
  names: Names,
  /** See {@link loadEntry}. */
  last: number | undefined,
];

/** @param last the largest number in the table's `priority` members, where low numbers win; absent without priorities */
function loadEntry(
  view: JsonView,
  keys: readonly TableKey[],
  actions: readonly Action[],
  names: Names,
  last: number | undefined,
): ConstantEntry {
  const match = view
    .get('match_key')
    .tuple(keys.length)
    .map((part, i) => loadMatch(part, keys[i]!));
  const priority = last === undefined ? 0 : last + 1 - (view.find('priority')?.integer() ?? last);
  return { match, priority, call: loadCall(view.get('action_entry'), names, actions) };
}

function loadMatch(view: JsonView, key: TableKey): ConstantMatch {
  const bits = (member: string): bigint => {
    const value = view.get(member);
    // Booleans appear where the key is a header's validity.
    const number = value.isBoolean ? BigInt(value.boolean()) : value.hexadecimal();
    if (number < 0n || number >> BigInt(key.widthBits) !== 0n)
      throw value.invalid(`does not fit into the ${key.widthBits} bits of ${key.name}`);
    return number;
  };
  const type = view.get('match_type');
  if (type.string() !== key.match && !(type.string() === 'valid' && key.match === 'exact'))
    throw type.invalid(`is ${type.string()} where the table's key is ${key.match}`);
  switch (key.match) {
    case 'exact':
      return { kind: 'exact', value: bits('key') };
    case 'lpm':
      return {
        kind: 'lpm',
        value: bits('key'),
        prefixLength: view.get('prefix_length').integer(0, key.widthBits),
      };
    case 'ternary':
      return { kind: 'ternary', value: bits('key') & bits('mask'), mask: bits('mask') };
    case 'range':
      return { kind: 'range', low: bits('start'), high: bits('end') };
  }
}

function loadCall(view: JsonView, names: Names, actions: readonly Action[]): ConstantActionCall {
  const action = names.actionById(view.get('action_id'));
  if (!actions.includes(action)) throw view.get('action_id').invalid(`is ${action.name}, no action of this table`);
  const params = view
    .get('action_data')
    .tuple(action.parameters.length)
    .map((item, i) => BigInt.asUintN(action.parameters[i]!.widthBits, item.hexadecimal()));
  return { action, params };
}

function loadSelector(view: JsonView, names: Names, calculations: Calculation[]): Selector | undefined {
  const selector = view.find('selector');
  if (selector === undefined) return undefined;
  const calculation = loadCalculation(selector, names, `${view.get('name').string()} selector`, calculations.length);
  calculations.push(calculation);
  return { calculation };
}

export function loadCalculation(view: JsonView, names: Names, name: string, index: number): Calculation {
  const algo = view.get('algo');
  const algorithm: HashAlgorithm | undefined =
    HASH_ALGORITHMS.find((candidate) => candidate === algo.string()) ?? crcParameters(algo.string());
  if (algorithm === undefined) throw algo.unsupported(`the hash algorithm ${algo.string()}`);
  const inputs = view
    .get('input')
    .items()
    .flatMap((input) => loadHashInput(input, names));
  const payload = inputs.findIndex((input) => input.kind === 'payload');
  if (payload >= 0 && payload !== inputs.length - 1) throw view.get('input').invalid('has something after the payload');
  return { name, index, algorithm, inputs };
}

function loadHashInput(view: JsonView, names: Names): HashInput[] {
  const type = view.get('type');
  switch (type.string()) {
    case 'field':
      return [{ kind: 'field', field: names.field(view.get('value')) }];
    case 'header':
      return names.header(view.get('value')).fields.map((field) => ({ kind: 'field' as const, field }));
    case 'hexstr': {
      const widthBits = view.get('bitwidth').integer(1, 4096);
      return [{ kind: 'constant', value: BigInt.asUintN(widthBits, view.get('value').hexadecimal()), widthBits }];
    }
    case 'payload':
      return [{ kind: 'payload' }];
    default:
      throw type.unsupported(`hash inputs of type ${type.string()}`);
  }
}
