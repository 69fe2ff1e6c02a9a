import type { Choice } from './choice.ts';
import type { JsonView } from './json-view.ts';
import {
  type ExpressionContext,
  loadCondition,
  loadData,
  loadFieldChoice,
  loadHeaderChoice,
  loadUnionChoice,
} from './load-expressions.ts';
import type { Names } from './names.ts';
import type {
  Action,
  ArithmeticOperator,
  BooleanExpression,
  DataExpression,
  FieldList,
  Header,
  HeaderField,
  LearnList,
  Primitive,
  Stack,
  StandardMetadata,
} from './program.ts';

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
      return loadAssignment(target, value, context);
    }
    case 'add_to_field':
    case 'subtract_from_field': {
      const [target, value] = of(2) as [JsonView, JsonView];
      return assignArithmetic(op.string() === 'add_to_field' ? '+' : '-', target, target, value, context);
    }
    case 'add':
    case 'subtract':
    case 'bit_and':
    case 'bit_or':
    case 'bit_xor':
    case 'shift_left':
    case 'shift_right': {
      const [target, left, right] = of(3) as [JsonView, JsonView, JsonView];
      return assignArithmetic(ARITHMETIC[op.string()]!, target, left, right, context);
    }
    case 'assign_VL': {
      const [target, source] = of(2).map((parameter) => names.field(named(parameter, 'field')));
      return assignVarbit(target!, source!, parameters);
    }
    case 'assign_header':
    case 'copy_header': {
      const [target, source] = of(2) as [JsonView, JsonView];
      const header = names.header(named(target, 'header'));
      return branches(loadHeaderChoice(source, context), (from) => assignHeader(header, from, parameters));
    }
    case 'assign_union': {
      const [target, source] = of(2) as [JsonView, JsonView];
      const { headers } = names.union(named(target, 'header_union'));
      return branches(loadUnionChoice(source, context), (from) => assignHeaders(headers, from, parameters));
    }
    case 'assign_header_stack':
    case 'assign_union_stack': {
      const isUnion = op.string() === 'assign_union_stack';
      const stack = (view: JsonView): Stack =>
        isUnion ? names.unionStack(named(view, 'header_union_stack')) : names.stack(named(view, 'header_stack'));
      const [target, source] = of(2).map(stack) as [Stack, Stack];
      const next: Primitive = { kind: 'assign', target: target.next, value: { kind: 'field', field: source.next } };
      return sequence([next, assignHeaders(target.elements.flat(), source.elements.flat(), parameters)]);
    }
    case 'push':
    case 'pop': {
      const [stack, count] = of(2) as [JsonView, JsonView];
      const isUnion = stack.get('type').raw === 'header_union_stack';
      return {
        kind: op.string() as 'push' | 'pop',
        stack: isUnion ? names.unionStack(stack.get('value')) : names.stack(named(stack, 'header_stack')),
        count: data(count),
      };
    }
    case 'add_header_fast':
      return { kind: 'validate-header', header: names.header(named(of(1)[0]!, 'header')) };
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
      return toTarget(target, context, (field) => ({
        kind: 'execute-meter',
        meter,
        index: data(index),
        target: field,
      }));
    }
    case 'register_read': {
      const [target, array, index] = of(3) as [JsonView, JsonView, JsonView];
      const register = names.register(named(array, 'register_array'));
      const cell = data(index);
      return toTarget(target, context, (field) => ({ kind: 'register-read', register, index: cell, target: field }));
    }
    case 'register_write': {
      const [array, index, value] = of(3) as [JsonView, JsonView, JsonView];
      const register = names.register(named(array, 'register_array'));
      return { kind: 'register-write', register, index: data(index), value: data(value) };
    }
    case 'modify_field_with_hash_based_offset': {
      const [target, base, calculation, max] = of(4) as [JsonView, JsonView, JsonView, JsonView];
      const operands = {
        calculation: names.calculation(named(calculation, 'calculation')),
        base: data(base),
        max: data(max),
      };
      return toTarget(target, context, (field) => ({ kind: 'hash', target: field, ...operands }));
    }
    case 'modify_field_rng_uniform': {
      const [target, low, high] = of(3) as [JsonView, JsonView, JsonView];
      const bounds = { low: data(low), high: data(high) };
      return toTarget(target, context, (field) => ({ kind: 'random', target: field, ...bounds }));
    }
    case 'log_msg': {
      const [format, ...rest] = parameters.items();
      if (format === undefined || rest.length > 1) throw parameters.invalid('is not a format and a list of values');
      const vector = rest[0] === undefined ? undefined : named(rest[0], 'parameters_vector');
      // p4c writes an object without members when there are no values.
      const values = vector === undefined || (vector.isObject && vector.keys().length === 0) ? [] : vector.items();
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

const ARITHMETIC: Readonly<Record<string, ArithmeticOperator>> = {
  add: '+',
  subtract: '-',
  bit_and: '&',
  bit_or: '|',
  bit_xor: '^',
  shift_left: '<<',
  shift_right: '>>',
};

/** To a field, saturating if the field does, or to a cell of a register array. */
export function loadAssignment(target: JsonView, value: JsonView, context: ExpressionContext): Primitive {
  return assignment(target, loadData(value, context), context);
}

function assignArithmetic(
  operator: ArithmeticOperator,
  target: JsonView,
  left: JsonView,
  right: JsonView,
  context: ExpressionContext,
): Primitive {
  const operands = { left: loadData(left, context), right: loadData(right, context) };
  return assignment(target, { kind: 'arithmetic', operator, ...operands }, context);
}

function assignment(target: JsonView, value: DataExpression, context: ExpressionContext): Primitive {
  if (target.get('type').raw === 'register') {
    const cell = loadData(target, context);
    if (cell.kind !== 'register') throw target.invalid('is no cell of a register array');
    return { kind: 'register-write', register: cell.register, index: cell.index, value };
  }
  return toTarget(target, context, (field) => {
    if (field.length !== undefined) {
      if (value.kind === 'field') return assignVarbit(field, value.field, target);
      throw target.invalid('is a field of variable length, to which only another is assigned');
    }
    if (!field.saturating) return { kind: 'assign', target: field, value };
    const { widthBits } = field;
    const cast = field.signed ? 'sat_cast' : 'usat_cast';
    return { kind: 'assign', target: field, value: { kind: 'cast', cast, operand: value, widthBits } };
  });
}

function assignVarbit(target: HeaderField, source: HeaderField, view: JsonView): Primitive {
  if (target.length === undefined || source.length === undefined) throw view.invalid('are not of variable length');
  return { kind: 'assign-varbit', target, source };
}

function assignHeader(target: Header, source: Header, view: JsonView): Primitive {
  if (target.typeName !== source.typeName) throw view.invalid('are headers of different types');
  return { kind: 'assign-header', target, source };
}

function assignHeaders(targets: readonly Header[], sources: readonly Header[], view: JsonView): Primitive {
  if (targets.length !== sources.length) throw view.invalid('are of different types');
  return sequence(targets.map((target, i) => assignHeader(target, sources[i]!, view)));
}

function sequence(primitives: readonly Primitive[]): Primitive {
  return { kind: 'sequence', primitives };
}

function branches<T>(choice: Choice<T>, make: (item: T) => Primitive): Primitive {
  if (choice.kind === 'one') return make(choice.item);
  const { condition } = choice;
  return { kind: 'branch', condition, yes: branches(choice.yes, make), no: branches(choice.no, make) };
}

/** The value of a `{type, value}` pair of a given type. */
function named(view: JsonView, type: string): JsonView {
  const actual = view.get('type');
  if (actual.string() !== type) throw actual.invalid(`is ${actual.string()} where ${type} is needed`);
  return view.get('value');
}

/** Writes to a field that the program names, or to one of a stack's element; beyond the stack's end nothing happens. */
function toTarget(view: JsonView, context: ExpressionContext, write: (field: HeaderField) => Primitive): Primitive {
  const bounds: BooleanExpression[] = [];
  const fields = loadFieldChoice(view, { ...context, bounds });
  const [first, ...others] = bounds;
  const written = branches(fields, write);
  if (first === undefined) return written;
  const within = others.reduce((left, right) => ({ kind: 'logic', operator: 'and', left, right }), first);
  return { kind: 'branch', condition: within, yes: written, no: { kind: 'no-op' } };
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
