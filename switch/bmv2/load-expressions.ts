import type { JsonView } from './json-view.ts';
import { fieldOf, type Names } from './names.ts';
import type { ActionParameter, BooleanExpression, DataExpression, Header } from './program.ts';

/** Where an expression stands decides what it may use. */
export interface ExpressionContext {
  readonly names: Names;
  /** Inside an action: its parameters. */
  readonly parameters?: readonly ActionParameter[];
  /** Inside a parser: lookahead is allowed. */
  readonly inParser?: boolean;
}

/** bmv2's expressions are untyped in JSON: the type of each follows from its leaves. */
type Operand =
  | { readonly type: 'data'; readonly data: DataExpression }
  | { readonly type: 'boolean'; readonly boolean: BooleanExpression }
  | { readonly type: 'header'; readonly header: Header };

const MAX_DEPTH = 200;
/** Shifts by more than this make numbers of thousands of bits: no field is that wide. */
const MAX_SHIFT = 8192n;

export function loadData(view: JsonView, context: ExpressionContext): DataExpression {
  return asData(loadOperand(view, context, 0), view);
}

export function loadBoolean(view: JsonView, context: ExpressionContext): BooleanExpression {
  return asBoolean(loadOperand(view, context, 0), view);
}

/** A condition that may be written as a boolean or as a number that is not zero. */
export function loadCondition(view: JsonView, context: ExpressionContext): BooleanExpression {
  const operand = loadOperand(view, context, 0);
  return operand.type === 'data' ? { kind: 'non-zero', operand: operand.data } : asBoolean(operand, view);
}

function asData(operand: Operand, view: JsonView): DataExpression {
  if (operand.type !== 'data') throw view.invalid(`is a ${operand.type} where a number is needed`);
  return operand.data;
}

function asBoolean(operand: Operand, view: JsonView): BooleanExpression {
  if (operand.type !== 'boolean') throw view.invalid(`is a ${operand.type} where a boolean is needed`);
  return operand.boolean;
}

function loadOperand(view: JsonView, context: ExpressionContext, depth: number): Operand {
  if (depth > MAX_DEPTH) throw view.invalid('is nested too deeply');
  const type = view.get('type');
  const value = view.get('value');
  switch (type.string()) {
    case 'field':
      return { type: 'data', data: loadFieldOperand(value, context) };
    case 'hexstr':
      return { type: 'data', data: { kind: 'constant', value: value.hexadecimal() } };
    case 'bool':
      return { type: 'boolean', boolean: { kind: 'literal', value: value.boolean() } };
    case 'header':
      return { type: 'header', header: context.names.header(value) };
    case 'runtime_data':
    case 'local':
      return { type: 'data', data: loadParameter(value, context) };
    case 'lookahead':
      return { type: 'data', data: loadLookahead(value, context) };
    case 'expression':
      // p4c wraps an expression into another one in some places.
      return value.has('type') ? loadOperand(value, context, depth + 1) : loadOperation(value, context, depth + 1);
    case 'header_stack':
    case 'stack_field':
    case 'header_union':
    case 'header_union_stack':
    case 'union_stack_field':
    case 'register':
      throw type.unsupported(`operands of type ${type.string()}`);
    default:
      throw type.invalid(`is no type of operand: ${type.string()}`);
  }
}

function loadFieldOperand(view: JsonView, context: ExpressionContext): DataExpression {
  const [headerName, fieldName] = view.tuple(2) as [JsonView, JsonView];
  if (!headerName.isString) throw headerName.unsupported('fields of a header that is computed');
  const header = context.names.header(headerName);
  if (fieldName.raw === '$valid$') return { kind: 'validity', header };
  return { kind: 'field', field: fieldOf(header, fieldName) };
}

function loadParameter(view: JsonView, context: ExpressionContext): DataExpression {
  const index = view.integer();
  const parameter = context.parameters?.[index];
  if (parameter === undefined) throw view.invalid('is the index of no action parameter');
  return { kind: 'parameter', index, widthBits: parameter.widthBits };
}

function loadLookahead(view: JsonView, context: ExpressionContext): DataExpression {
  if (context.inParser !== true) throw view.invalid('looks ahead outside a parser');
  const [offset, width] = view.tuple(2) as [JsonView, JsonView];
  return { kind: 'lookahead', offsetBits: offset.integer(0, 65536), widthBits: width.integer(1, 4096) };
}

function loadOperation(view: JsonView, context: ExpressionContext, depth: number): Operand {
  const op = view.get('op');
  const operator = op.string();
  const operand = (key: string): Operand => loadOperand(view.get(key), context, depth);
  const data = (key: string): DataExpression => asData(operand(key), view.get(key));
  const boolean = (key: string): BooleanExpression => asBoolean(operand(key), view.get(key));
  switch (operator) {
    case '-':
    case '+': {
      const left: DataExpression = view.find('left') === undefined ? { kind: 'constant', value: 0n } : data('left');
      return { type: 'data', data: { kind: 'arithmetic', operator, left, right: data('right') } };
    }
    case '<<':
    case '>>': {
      const right = data('right');
      if (right.kind === 'constant' && (right.value < 0n || right.value > MAX_SHIFT))
        throw view.get('right').invalid('shifts by a negative or an enormous number of bits');
      return { type: 'data', data: { kind: 'arithmetic', operator, left: data('left'), right } };
    }
    case '*':
    case '/':
    case '%':
    case '&':
    case '|':
    case '^':
      return { type: 'data', data: { kind: 'arithmetic', operator, left: data('left'), right: data('right') } };
    case '~':
      return { type: 'data', data: { kind: 'complement', operand: data('right') } };
    case '<':
    case '>':
    case '<=':
    case '>=':
      return {
        type: 'boolean',
        boolean: { kind: 'comparison', operator, left: data('left'), right: data('right') },
      };
    case '==':
    case '!=':
      return { type: 'boolean', boolean: loadEquality(view, operator, operand('left'), operand('right')) };
    case 'and':
    case 'or':
      return {
        type: 'boolean',
        boolean: { kind: 'logic', operator, left: boolean('left'), right: boolean('right') },
      };
    case 'not':
      return { type: 'boolean', boolean: { kind: 'not', operand: boolean('right') } };
    case 'd2b':
      return { type: 'boolean', boolean: { kind: 'non-zero', operand: data('right') } };
    case 'b2d':
      return { type: 'data', data: { kind: 'from-boolean', operand: boolean('right') } };
    case 'valid': {
      const right = operand('right');
      if (right.type !== 'header') throw view.get('right').invalid('is not a header');
      return { type: 'boolean', boolean: { kind: 'is-valid', header: right.header } };
    }
    case 'two_comp_mod':
    case 'sat_cast':
    case 'usat_cast': {
      const width = data('right');
      if (width.kind !== 'constant' || width.value < 1n || width.value > 4096n)
        throw view.get('right').invalid('is not a width in bits');
      const widthBits = Number(width.value);
      return { type: 'data', data: { kind: 'cast', cast: operator, operand: data('left'), widthBits } };
    }
    case '?':
      return loadChoice(view, boolean('cond'), operand('left'), operand('right'));
    case 'valid_union':
    case 'dereference_header_stack':
    case 'dereference_union_stack':
    case 'last_stack_index':
    case 'size_stack':
    case 'access_field':
    case 'access_union_header':
      throw op.unsupported(`the operation ${operator}`);
    default:
      throw op.invalid(`is no operation: ${operator}`);
  }
}

function loadEquality(view: JsonView, operator: '==' | '!=', left: Operand, right: Operand): BooleanExpression {
  const equal = operator === '==';
  if (left.type === 'data' && right.type === 'data')
    return { kind: 'comparison', operator, left: left.data, right: right.data };
  if (left.type === 'boolean' && right.type === 'boolean')
    return { kind: 'boolean-comparison', equal, left: left.boolean, right: right.boolean };
  if (left.type === 'header' && right.type === 'header') {
    if (left.header.typeName !== right.header.typeName) throw view.invalid('compares headers of different types');
    return { kind: 'header-comparison', equal, left: left.header, right: right.header };
  }
  throw view.invalid(`compares a ${left.type} with a ${right.type}`);
}

function loadChoice(view: JsonView, condition: BooleanExpression, yes: Operand, no: Operand): Operand {
  if (yes.type === 'data' && no.type === 'data')
    return { type: 'data', data: { kind: 'choice', condition, yes: yes.data, no: no.data } };
  if (yes.type === 'boolean' && no.type === 'boolean') {
    const chosen: BooleanExpression = {
      kind: 'logic',
      operator: 'and',
      left: condition,
      right: yes.boolean,
    };
    const otherwise: BooleanExpression = {
      kind: 'logic',
      operator: 'and',
      left: { kind: 'not', operand: condition },
      right: no.boolean,
    };
    return { type: 'boolean', boolean: { kind: 'logic', operator: 'or', left: chosen, right: otherwise } };
  }
  throw view.invalid(`chooses between a ${yes.type} and a ${no.type}`);
}
