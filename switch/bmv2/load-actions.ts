import type { JsonView } from './json-view.ts';
import { type ExpressionContext, loadCondition, loadData } from './load-expressions.ts';
import type { Names } from './names.ts';
import type { Action, FieldList, HeaderField, LearnList, Primitive, StandardMetadata } from './program.ts';

export function loadActions(root: JsonView, names: Names, metadata: StandardMetadata): Action[] {
  return root
    .get('actions')
    .items()
    .map((view, index) => {
      const parameters = view
        .get('runtime_data')
        .items()
        .map((item) => ({ name: item.get('name').string(), widthBits: item.get('bitwidth').integer(1, 4096) }));
      const calls = view.get('primitives').items();
      const context = { names, parameters };
      const primitives = calls.map((call) => loadPrimitive(call, context, metadata, calls.length));
      const id = view.get('id').integer();
      if (names.actionsById.has(id)) throw view.get('id').invalid(`repeats the id ${id}`);
      const action: Action = { name: view.get('name').string(), id, index, parameters, primitives };
      names.actionsById.set(id, action);
      // p4c numbers overloads apart but may give two copies of one action the same name: tables refer to ids.
      if (!names.actions.has(action.name)) names.actions.set(action.name, action);
      return action;
    });
}

/** @param count primitives of the enclosing action: the bound of jumps */
export function loadPrimitive(
  view: JsonView,
  context: ExpressionContext,
  metadata: StandardMetadata,
  count: number,
): Primitive {
  const op = view.get('op');
  const parameters = view.get('parameters');
  const names = context.names;
  const of = (amount: number): JsonView[] => parameters.tuple(amount);
  const data = (parameter: JsonView) => loadData(parameter, context);
  switch (op.string()) {
    case 'assign':
    case 'modify_field': {
      const [target, value] = of(2) as [JsonView, JsonView];
      return { kind: 'assign', target: loadTarget(target, names), value: data(value) };
    }
    case 'assign_header':
    case 'copy_header': {
      const [target, source] = of(2).map((parameter) => names.header(named(parameter, 'header')));
      if (target!.typeName !== source!.typeName) throw parameters.invalid('are headers of different types');
      return { kind: 'assign-header', target: target!, source: source! };
    }
    case 'add_header':
    case 'remove_header': {
      const header = names.header(named(of(1)[0]!, 'header'));
      return { kind: op.string() === 'add_header' ? 'add-header' : 'remove-header', header };
    }
    case '_jump':
      return { kind: 'jump', unless: undefined, to: loadJump(of(1)[0]!, context, count) };
    case '_jump_if_zero': {
      const [condition, to] = of(2) as [JsonView, JsonView];
      return { kind: 'jump', unless: loadCondition(condition, context), to: loadJump(to, context, count) };
    }
    case 'exit':
      of(0);
      return { kind: 'exit' };
    case 'mark_to_drop': {
      // p4c passes copies of the standard metadata too, which drop nothing until they are copied back.
      const header = names.header(named(of(1)[0]!, 'header'));
      const find = (name: string) => header.fields.find((candidate) => candidate.name === name);
      const egressSpec = find('egress_spec');
      if (egressSpec === undefined) throw parameters.invalid('is not the standard metadata');
      return { kind: 'mark-to-drop', egressSpec, multicastGroup: find('mcast_grp') };
    }
    case 'drop':
      of(0);
      return {
        kind: 'mark-to-drop',
        egressSpec: metadata.egressSpec,
        multicastGroup: metadata.multicastGroup,
      };
    case 'truncate':
      return { kind: 'truncate', lengthBytes: data(of(1)[0]!) };
    case 'clone_ingress_pkt_to_egress':
    case 'clone_egress_pkt_to_egress': {
      const [session, list] = of(2) as [JsonView, JsonView];
      return { kind: 'clone', session: data(session), keep: loadFieldListId(list, context) };
    }
    case 'resubmit':
    case 'recirculate':
      return { kind: op.string() as 'resubmit' | 'recirculate', keep: loadFieldListId(of(1)[0]!, context) };
    case 'generate_digest': {
      // The first is the receiver, which means nothing to simple_switch.
      const [, list] = of(2) as [JsonView, JsonView];
      return { kind: 'digest', list: loadLearnListId(list, context) };
    }
    case 'count': {
      const [array, index] = of(2) as [JsonView, JsonView];
      const counter = names.counter(named(array, 'counter_array'));
      if (counter.directTable !== undefined) throw array.invalid('is a direct counter: entries count by themselves');
      return { kind: 'count', counter, index: data(index) };
    }
    case 'execute_meter': {
      const [array, index, target] = of(3) as [JsonView, JsonView, JsonView];
      const meter = names.meter(named(array, 'meter_array'));
      if (meter.direct !== undefined) throw array.invalid('is a direct meter: a hit executes it');
      return { kind: 'execute-meter', meter, index: data(index), target: loadTarget(target, names) };
    }
    case 'register_read': {
      const [target, array, index] = of(3) as [JsonView, JsonView, JsonView];
      const register = names.register(named(array, 'register_array'));
      return { kind: 'register-read', register, index: data(index), target: loadTarget(target, names) };
    }
    case 'register_write': {
      const [array, index, value] = of(3) as [JsonView, JsonView, JsonView];
      const register = names.register(named(array, 'register_array'));
      return { kind: 'register-write', register, index: data(index), value: data(value) };
    }
    case 'modify_field_with_hash_based_offset': {
      const [target, base, calculation, max] = of(4) as [JsonView, JsonView, JsonView, JsonView];
      return {
        kind: 'hash',
        target: loadTarget(target, names),
        calculation: names.calculation(named(calculation, 'calculation')),
        base: data(base),
        max: data(max),
      };
    }
    case 'modify_field_rng_uniform': {
      const [target, low, high] = of(3) as [JsonView, JsonView, JsonView];
      return { kind: 'random', target: loadTarget(target, names), low: data(low), high: data(high) };
    }
    case 'log_msg': {
      const [format, ...rest] = parameters.items();
      if (format === undefined || rest.length > 1) throw parameters.invalid('is not a format and a list of values');
      const values = rest[0] === undefined ? [] : named(rest[0], 'parameters_vector').items();
      return { kind: 'log', format: named(format, 'string').string(), values: values.map(data) };
    }
    case 'assert':
    case 'assume':
      return { kind: 'assert', condition: loadCondition(of(1)[0]!, context), place: sourceOf(view) };
    case 'no_op':
      return { kind: 'no-op' };
    default:
      throw op.unsupported(`the primitive ${op.string()}`);
  }
}

/** The value of a `{type, value}` pair of a given type. */
function named(view: JsonView, type: string): JsonView {
  const actual = view.get('type');
  if (actual.string() !== type) {
    const unknown = actual.string() === 'expression' || actual.string().includes('stack');
    throw unknown
      ? actual.unsupported(`operands of type ${actual.string()} here`)
      : actual.invalid(`is ${actual.string()} where ${type} is needed`);
  }
  return view.get('value');
}

/** What is assigned to: a field that the program names. */
export function loadTarget(view: JsonView, names: Names): HeaderField {
  return names.field(named(view, 'field'));
}

function loadFieldListId(view: JsonView, context: ExpressionContext): FieldList {
  const list = context.names.fieldListsById.get(loadConstant(view, context));
  if (list === undefined) throw view.invalid('is the id of no field list');
  return list;
}

function loadLearnListId(view: JsonView, context: ExpressionContext): LearnList | undefined {
  const id = loadConstant(view, context);
  const list = context.names.learnListsById.get(id);
  if (list === undefined && id !== 0) throw view.invalid('is the id of no learn list');
  return list;
}

function loadConstant(view: JsonView, context: ExpressionContext): number {
  const value = loadData(view, context);
  if (value.kind !== 'constant') throw view.unsupported('lists of fields that are chosen per packet');
  return Number(value.value);
}

function loadJump(view: JsonView, context: ExpressionContext, count: number): number {
  const target = loadData(view, context);
  if (target.kind !== 'constant' || target.value < 0n || target.value > BigInt(count))
    throw view.invalid('is not the index of a primitive of this action');
  return Number(target.value);
}

/** Where in the P4 source it stands, as far as the compiler said. */
function sourceOf(view: JsonView): string {
  const info = view.find('source_info');
  const file = info?.find('filename')?.raw;
  const line = info?.find('line')?.raw;
  return typeof file === 'string' ? `${file}${typeof line === 'number' ? `:${line}` : ''}` : view.path;
}
