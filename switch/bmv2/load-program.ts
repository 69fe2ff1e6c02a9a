import { DdfError } from '../../base/errors.ts';
import { JsonView } from './json-view.ts';
import { loadActions, loadPrimitive } from './load-actions.ts';
import { loadCondition } from './load-expressions.ts';
import { loadErrors, loadHeaders, loadStandardMetadata, refuseUnlessEmpty } from './load-headers.ts';
import { loadParser } from './load-parser.ts';
import { loadCalculation, loadPipeline } from './load-pipeline.ts';
import { loadStacks } from './load-stacks.ts';
import { define, Names } from './names.ts';
import type {
  Calculation,
  Checksum,
  FieldList,
  HeaderField,
  LearnList,
  MeterArray,
  Primitive,
  Program,
  StandardMetadata,
  Table,
  ValueSet,
} from './program.ts';

/** The format's major version: a higher one would mean other things by the same names. */
const FORMAT_MAJOR = 2;
/** simple_switch keeps the id of a list in 16 bits. */
const MAX_LIST_ID = 0xffff;
/** Where the program does not say how many members a value set may have. */
const DEFAULT_VALUE_SET_SIZE = 1024;
const MAX_ARRAY_SIZE = 64 * 1024 * 1024;

/**
 * Reads a bmv2 JSON (format 2.x, as p4c-bm2-ss writes it for v1model) into the intermediate form.
 *
 * Throws DdfError INVALID_PROGRAM for what breaks the format and UNSUPPORTED_PROGRAM for what this switch does not implement;
 * `where` is the JSON path of the offending member.
 */
export function loadProgram(json: Uint8Array): Program {
  const root = new JsonView(parse(json));
  const version = root.get('__meta__').get('version').tuple(2);
  if (version[0]!.integer() !== FORMAT_MAJOR)
    throw version[0]!.unsupported(`version ${version[0]!.integer()} of the bmv2 JSON format`);
  checkArchitecture(root);

  const names = new Names();
  const headers = loadHeaders(root, names);
  const standardMetadata = loadStandardMetadata(root, names);
  const stacks = loadStacks(root, names);
  const valueSets = loadValueSets(root, names);
  refuseUnlessEmpty(root, 'extern_instances', 'extern objects');
  const counters = loadCounters(root, names);
  const meters = loadMeters(root, names);
  const registers = loadRegisters(root, names);
  const fieldLists = loadFieldLists(root, names);
  const learnLists = loadLearnLists(root, names);
  const calculations: Calculation[] = [];
  for (const view of root.find('calculations')?.items() ?? []) {
    const calculation = loadCalculation(view, names, view.get('name').string(), calculations.length);
    calculations.push(define(names.calculations, view.get('name'), calculation));
  }
  const actions = loadActions(root, names, standardMetadata);
  const tables: Table[] = [];
  const pipeline = (name: string) => loadPipeline(named(root, 'pipelines', name), names, tables, calculations);
  const ingress = pipeline('ingress');
  const egress = pipeline('egress');
  if (new Set(tables.map((table) => table.name)).size !== tables.length)
    throw root.get('pipelines').invalid('have two tables of the same name');

  const deparser = named(root, 'deparsers', 'deparser');
  const parser = loadParser(named(root, 'parsers', 'parser'), names, standardMetadata);
  return {
    headers,
    stacks,
    valueSets,
    valueSetUses: parser.states
      .flatMap((state) => state.transitions)
      .filter((transition) => transition.valueSet !== undefined),
    errors: loadErrors(root),
    standardMetadata,
    counters,
    meters,
    registers,
    fieldLists,
    learnLists,
    calculations,
    actions,
    tables,
    parser,
    ingress,
    egress,
    deparser: loadDeparserOrder(deparser, names),
    deparserPrimitives: loadDeparserPrimitives(deparser, names, standardMetadata),
    checksums: loadChecksums(root, names),
  };
}

function parse(json: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(json));
  } catch (error) {
    throw new DdfError('INVALID_PROGRAM', `The switch program is not a JSON document: ${(error as Error).message}`, {
      where: '$',
      remedy: 'Give the JSON file that p4c-bm2-ss wrote.',
      cause: error,
    });
  }
}

/** What v1model's programs are made of: simple_switch looks these parts up by their names. */
const PARTS = [
  ['headers', 'standard_metadata'],
  ['parsers', 'parser'],
  ['pipelines', 'ingress'],
  ['pipelines', 'egress'],
  ['deparsers', 'deparser'],
] as const;

/** PSA and PNA compile to the same format, but their parts have other names. */
function checkArchitecture(root: JsonView): void {
  for (const [section, name] of PARTS) {
    if (find(root, section, name) !== undefined) continue;
    const view = root.get(section);
    throw new DdfError(
      'UNSUPPORTED_PROGRAM',
      `The program is none for v1model: ${view.path} has none named "${name}"`,
      { where: view.path, remedy: 'Give a program for v1model, compiled by p4c-bm2-ss.' },
    );
  }
}

function find(root: JsonView, section: string, name: string): JsonView | undefined {
  return root
    .get(section)
    .items()
    .find((view) => view.get('name').raw === name);
}

function named(root: JsonView, section: (typeof PARTS)[number][0], name: string): JsonView {
  return find(root, section, name)!;
}

function loadDeparserOrder(view: JsonView, names: Names) {
  return view
    .get('order')
    .items()
    .map((item) => {
      const header = names.header(item);
      if (header.metadata) throw item.invalid('emits metadata');
      return header;
    });
}

function loadDeparserPrimitives(view: JsonView, names: Names, metadata: StandardMetadata): Primitive[] {
  return (view.find('primitives')?.items() ?? []).map((call) => {
    const primitive = loadPrimitive(call, { names }, metadata, 0);
    if (primitive.kind === 'jump' || primitive.kind === 'exit')
      throw call.get('op').invalid('cannot stand in a deparser');
    return primitive;
  });
}

function loadValueSets(root: JsonView, names: Names): ValueSet[] {
  return (root.find('parse_vsets')?.items() ?? []).map((view, index) => {
    const compressedBits = view.get('compressed_bitwidth').integer(1, 4096);
    return define(names.valueSets, view.get('name'), {
      name: view.get('name').string(),
      index,
      size: view.find('max_size')?.integer(0, MAX_ARRAY_SIZE) ?? DEFAULT_VALUE_SET_SIZE,
      compressedBits,
      // As long as no state says more.
      widths: [compressedBits],
    });
  });
}

function loadCounters(root: JsonView, names: Names) {
  return (root.find('counter_arrays')?.items() ?? []).map((view, index) => {
    const direct = view.find('is_direct')?.boolean() ?? false;
    return define(names.counters, view.get('name'), {
      name: view.get('name').string(),
      index,
      size: direct ? 0 : view.get('size').integer(0, MAX_ARRAY_SIZE),
      directTable: direct ? view.get('binding').string() : undefined,
    });
  });
}

function loadMeters(root: JsonView, names: Names): MeterArray[] {
  return (root.find('meter_arrays')?.items() ?? []).map((view, index) => {
    const rates = view.get('rate_count');
    if (rates.integer() !== 2) throw rates.unsupported(`meters with ${rates.integer()} rates`);
    const type = view.get('type').string();
    if (type !== 'bytes' && type !== 'packets') throw view.get('type').invalid('is neither bytes nor packets');
    const direct =
      view.find('is_direct')?.boolean() === true
        ? { table: view.get('binding').string(), target: names.field(view.get('result_target')) }
        : undefined;
    const size = direct === undefined ? view.get('size').integer(0, MAX_ARRAY_SIZE) : 0;
    return define(names.meters, view.get('name'), { name: view.get('name').string(), index, size, unit: type, direct });
  });
}

/** What clones, resubmitted and recirculated packets keep. Constants in a list, which P4-14 allows, keep nothing. */
function loadFieldLists(root: JsonView, names: Names): FieldList[] {
  return (root.find('field_lists')?.items() ?? []).map((view) => {
    const id = view.get('id').integer(0, MAX_LIST_ID);
    if (id > 0 && names.fieldListsById.has(id)) throw view.get('id').invalid(`repeats the id ${id}`);
    const elements = view.get('elements').items();
    const fields = elements.filter((item) => item.get('type').raw !== 'hexstr').map((item) => listedField(item, names));
    const list: FieldList = { id, fields };
    names.fieldListsById.set(id, list);
    return list;
  });
}

function loadLearnLists(root: JsonView, names: Names): LearnList[] {
  const byName = new Map<string, LearnList>();
  return (root.find('learn_lists')?.items() ?? []).map((view, index) => {
    const id = view.get('id').integer(1, MAX_LIST_ID);
    if (names.learnListsById.has(id)) throw view.get('id').invalid(`repeats the id ${id}`);
    const fields = view
      .get('elements')
      .items()
      .map((item) => listedField(item, names));
    const list: LearnList = { name: view.get('name').string(), id, index, fields };
    names.learnListsById.set(id, list);
    // p4c makes a list for each call: those of one name are one kind of message.
    const same = byName.get(list.name);
    if (same !== undefined && widthsOf(same) !== widthsOf(list))
      throw view.get('elements').invalid('differ from those of another list of this name');
    byName.set(list.name, list);
    return list;
  });
}

function widthsOf(list: LearnList): string {
  return list.fields.map((field) => field.widthBits).join();
}

function listedField(view: JsonView, names: Names): HeaderField {
  const type = view.get('type');
  if (type.string() !== 'field') throw type.unsupported(`lists with a ${type.string()}`);
  return names.field(view.get('value'));
}

function loadRegisters(root: JsonView, names: Names) {
  return (root.find('register_arrays')?.items() ?? []).map((view, index) =>
    define(names.registers, view.get('name'), {
      name: view.get('name').string(),
      index,
      size: view.get('size').integer(0, MAX_ARRAY_SIZE),
      widthBits: view.get('bitwidth').integer(1, 4096),
    }),
  );
}

function loadChecksums(root: JsonView, names: Names): Checksum[] {
  return (root.find('checksums')?.items() ?? []).map((view) => {
    const type = view.get('type');
    if (type.string() !== 'generic') throw type.unsupported(`checksums of type ${type.string()}`);
    const condition = view.find('if_cond');
    return {
      name: view.get('name').string(),
      target: names.field(view.get('target')),
      calculation: names.calculation(view.get('calculation')),
      verify: view.find('verify')?.boolean() ?? true,
      update: view.find('update')?.boolean() ?? true,
      condition: condition === undefined ? undefined : loadCondition(condition, { names }),
    };
  });
}
