import { booleanOf, byIndex, type Choice, choose, dataOf, flatMap, map, one } from './choice.ts';
import type { JsonView } from './json-view.ts';
import { fieldOf, type Names } from './names.ts';
import type { ActionParameter, BooleanExpression, DataExpression, Header, HeaderField, Stack } from './program.ts';

/** Where an expression stands decides what it may use. */
export interface ExpressionContext {
  readonly names: Names;
  /** Inside an action: its parameters. */
  readonly parameters?: readonly ActionParameter[];
  /** Inside a parser, where lookahead is allowed: collects the stacks whose last element is read. */
  readonly lastRead?: Set<Stack>;
  /** Where something is assigned to: collects what has to hold so that the elements of stacks that it names are there. */
  readonly bounds?: BooleanExpression[];
}

/** bmv2's expressions are untyped in JSON: the type of each follows from its leaves. */
type Operand =
  | { readonly type: 'data'; readonly data: DataExpression }
  | { readonly type: 'boolean'; readonly boolean: BooleanExpression }
  | { readonly type: 'header'; readonly header: Choice<Header> }
  | { readonly type: 'union'; readonly union: Choice<readonly Header[]> }
  | { readonly type: 'stack'; readonly stack: Stack };

const MAX_DEPTH = 200;
/** Shifts by more than this make numbers of thousands of bits: no field is that wide. */
const MAX_SHIFT = 8192n;

export function loadData(view: JsonView, context: ExpressionContext): DataExpression {
  return asData(loadOperand(view, context, 0), view);
}

export function loadBoolean(view: JsonView, context: ExpressionContext): BooleanExpression {
  return asBoolean(loadOperand(view, context, 0), view);
}

/** A header, or one of several. */
export function loadHeaderChoice(view: JsonView, context: ExpressionContext): Choice<Header> {
  return asHeader(loadOperand(view, context, 0), view);
}

/** A field that is assigned to, or one of several; the assignment has to wait for `bounds` of the context. */
export function loadFieldChoice(view: JsonView, context: ExpressionContext): Choice<HeaderField> {
  const value = view.get('value');
  switch (view.get('type').string()) {
    case 'field':
      return one(context.names.field(value));
    case 'stack_field': {
      const [stackName, fieldName] = value.tuple(2) as [JsonView, JsonView];
      return lastFields(context.names.stack(stackName), 0, fieldName, context);
    }
    case 'expression':
      if (value.has('type')) return loadFieldChoice(value, context);
      if (value.get('op').raw === 'access_field') return loadAccess(value, context, 1);
      throw value.get('op').invalid('computes a value, to which nothing can be assigned');
    default:
      throw view.get('type').invalid(`is ${view.get('type').string()} where field is needed`);
  }
}

/** The headers of a union, or of one of several. */
export function loadUnionChoice(view: JsonView, context: ExpressionContext): Choice<readonly Header[]> {
  return asUnion(loadOperand(view, context, 0), view);
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

function asHeader(operand: Operand, view: JsonView): Choice<Header> {
  if (operand.type !== 'header') throw view.invalid(`is a ${operand.type} where a header is needed`);
  return operand.header;
}

function asUnion(operand: Operand, view: JsonView): Choice<readonly Header[]> {
  if (operand.type !== 'union') throw view.invalid(`is a ${operand.type} where a header union is needed`);
  return operand.union;
}

function asStack(operand: Operand, view: JsonView): Stack {
  if (operand.type !== 'stack') throw view.invalid(`is a ${operand.type} where a stack is needed`);
  return operand.stack;
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
      return { type: 'header', header: one(context.names.header(value)) };
    case 'header_union':
      return { type: 'union', union: one(context.names.union(value).headers) };
    case 'header_stack':
      return { type: 'stack', stack: context.names.stack(value) };
    case 'header_union_stack':
      return { type: 'stack', stack: context.names.unionStack(value) };
    case 'stack_field':
      return { type: 'data', data: loadStackField(value, context) };
    case 'union_stack_field':
      return { type: 'data', data: loadUnionStackField(value, context) };
    case 'register':
      return { type: 'data', data: loadRegister(value, context) };
    case 'runtime_data':
    case 'local':
      return { type: 'data', data: loadParameter(value, context) };
    case 'lookahead':
      return { type: 'data', data: loadLookahead(value, context) };
    case 'expression':
      // p4c wraps an expression into another one in some places.
      return value.has('type') ? loadOperand(value, context, depth + 1) : loadOperation(value, context, depth + 1);
    default:
      throw type.invalid(`is no type of operand: ${type.string()}`);
  }
}

function loadFieldOperand(view: JsonView, context: ExpressionContext): DataExpression {
  const [headerName, fieldName] = view.tuple(2) as [JsonView, JsonView];
  const header = context.names.header(headerName);
  if (fieldName.raw === '$valid$') return { kind: 'validity', header };
  return { kind: 'field', field: fieldOf(header, fieldName) };
}

/** `[stack, field]`: of the element that was extracted last. */
function loadStackField(view: JsonView, context: ExpressionContext): DataExpression {
  const [stackName, fieldName] = view.tuple(2) as [JsonView, JsonView];
  return lastField(context.names.stack(stackName), 0, fieldName, context);
}

/** `[stack, member, field]` */
function loadUnionStackField(view: JsonView, context: ExpressionContext): DataExpression {
  const [stackName, memberName, fieldName] = view.tuple(3) as [JsonView, JsonView, JsonView];
  const stack = context.names.unionStack(stackName);
  return lastField(stack, memberOf(stack, memberName), fieldName, context);
}

export function memberOf(stack: Stack, memberName: JsonView): number {
  const member = stack.memberNames.indexOf(memberName.string());
  if (member < 0) throw memberName.invalid(`names no member of the unions in ${stack.name}`);
  return member;
}

function lastField(stack: Stack, member: number, fieldName: JsonView, context: ExpressionContext): DataExpression {
  return dataOf(map(lastFields(stack, member, fieldName, context), (field) => ({ kind: 'field', field })));
}

function lastFields(
  stack: Stack,
  member: number,
  fieldName: JsonView,
  context: ExpressionContext,
): Choice<HeaderField> {
  context.lastRead?.add(stack);
  const headers = stack.elements.map((element) => element[member]!);
  const last = byIndex({ kind: 'field', field: stack.next }, headers, 1);
  return map(last, (header) => fieldOf(header, fieldName));
}

/** `access_field` of a real field. */
function loadAccess(view: JsonView, context: ExpressionContext, depth: number): Choice<HeaderField> {
  const place = view.get('right');
  const headers = asHeader(loadOperand(view.get('left'), context, depth), view.get('left'));
  return map(headers, (header) => present(header.fields[place.integer()], place));
}

/** An element of a stack, where a value outside has to stay without effect if something is assigned. */
function elementAt<T>(index: DataExpression, elements: readonly T[], context: ExpressionContext): Choice<T> {
  context.bounds?.push(
    { kind: 'comparison', operator: '>=', left: index, right: constant(0n) },
    { kind: 'comparison', operator: '<', left: index, right: constant(BigInt(elements.length)) },
  );
  return byIndex(index, elements);
}

/** `[array, index]` */
function loadRegister(view: JsonView, context: ExpressionContext): DataExpression {
  const [array, index] = view.tuple(2) as [JsonView, JsonView];
  return { kind: 'register', register: context.names.register(array), index: loadData(index, context) };
}

function loadParameter(view: JsonView, context: ExpressionContext): DataExpression {
  const index = view.integer();
  const parameter = context.parameters?.[index];
  if (parameter === undefined) throw view.invalid('is the index of no action parameter');
  return { kind: 'parameter', index, widthBits: parameter.widthBits };
}

function loadLookahead(view: JsonView, context: ExpressionContext): DataExpression {
  if (context.lastRead === undefined) throw view.invalid('looks ahead outside a parser');
  const [offset, width] = view.tuple(2) as [JsonView, JsonView];
  return { kind: 'lookahead', offsetBits: offset.integer(0, 65536), widthBits: width.integer(1, 4096) };
}

function loadOperation(view: JsonView, context: ExpressionContext, depth: number): Operand {
  const op = view.get('op');
  const operator = op.string();
  const operand = (key: string): Operand => loadOperand(view.get(key), context, depth);
  const data = (key: string): DataExpression => asData(operand(key), view.get(key));
  const boolean = (key: string): BooleanExpression => asBoolean(operand(key), view.get(key));
  const header = (key: string): Choice<Header> => asHeader(operand(key), view.get(key));
  const union = (key: string): Choice<readonly Header[]> => asUnion(operand(key), view.get(key));
  const stack = (key: string): Stack => asStack(operand(key), view.get(key));
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
    case 'valid':
      return { type: 'boolean', boolean: booleanOf(map(header('right'), isValid)) };
    case 'valid_union':
      return { type: 'boolean', boolean: booleanOf(map(union('right'), (headers) => anyOf(headers.map(isValid)))) };
    case 'dereference_header_stack': {
      const headers = stack('left').elements.map((element) => element[0]!);
      return { type: 'header', header: elementAt(data('right'), headers, context) };
    }
    case 'dereference_union_stack':
      return { type: 'union', union: elementAt(data('right'), stack('left').elements, context) };
    case 'access_union_header': {
      const place = view.get('right').integer();
      const members = map(union('left'), (headers) => present(headers[place], view.get('right')));
      return { type: 'header', header: members };
    }
    case 'access_field': {
      const place = view.get('right').integer();
      const fields = map(header('left'), (of): DataExpression => {
        // The hidden validity comes after the fields.
        if (place === of.fields.length) return { kind: 'validity', header: of };
        return { kind: 'field', field: present(of.fields[place], view.get('right')) };
      });
      return { type: 'data', data: dataOf(fields) };
    }
    case 'last_stack_index': {
      const next: DataExpression = { kind: 'field', field: stack('right').next };
      const index: DataExpression = { kind: 'arithmetic', operator: '-', left: next, right: constant(1n) };
      // simple_switch computes it in an unsigned number of 64 bits.
      const data: DataExpression = { kind: 'arithmetic', operator: '&', left: index, right: constant(2n ** 64n - 1n) };
      return { type: 'data', data };
    }
    case 'size_stack':
      return { type: 'data', data: { kind: 'field', field: stack('right').next } };
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
  if (left.type === 'header' && right.type === 'header')
    return booleanOf(pairs(left.header, right.header, (a, b) => sameHeader(view, equal, a, b)));
  if (left.type === 'union' && right.type === 'union') {
    const same = booleanOf(pairs(left.union, right.union, (a, b) => sameUnion(view, a, b)));
    return equal ? same : { kind: 'not', operand: same };
  }
  throw view.invalid(`compares a ${left.type} with a ${right.type}`);
}

function loadChoice(view: JsonView, condition: BooleanExpression, yes: Operand, no: Operand): Operand {
  if (yes.type === 'data' && no.type === 'data')
    return { type: 'data', data: { kind: 'choice', condition, yes: yes.data, no: no.data } };
  if (yes.type === 'boolean' && no.type === 'boolean')
    return { type: 'boolean', boolean: choose(condition, yes.boolean, no.boolean) };
  if (yes.type === 'header' && no.type === 'header')
    return { type: 'header', header: { kind: 'choice', condition, yes: yes.header, no: no.header } };
  if (yes.type === 'union' && no.type === 'union')
    return { type: 'union', union: { kind: 'choice', condition, yes: yes.union, no: no.union } };
  throw view.invalid(`chooses between a ${yes.type} and a ${no.type}`);
}

function constant(value: bigint): DataExpression {
  return { kind: 'constant', value };
}

function isValid(header: Header): BooleanExpression {
  return { kind: 'is-valid', header };
}

function anyOf(conditions: readonly BooleanExpression[]): BooleanExpression {
  return conditions.reduce((left, right) => ({ kind: 'logic', operator: 'or', left, right }));
}

function present<T>(item: T | undefined, view: JsonView): T {
  if (item === undefined) throw view.invalid('is the place of nothing');
  return item;
}

function pairs<A, B, T>(a: Choice<A>, b: Choice<B>, combine: (a: A, b: B) => T): Choice<T> {
  return flatMap(a, (left) => map(b, (right) => combine(left, right)));
}

function sameHeader(view: JsonView, equal: boolean, left: Header, right: Header): BooleanExpression {
  if (left.typeName !== right.typeName) throw view.invalid('compares headers of different types');
  return { kind: 'header-comparison', equal, left, right };
}

/** simple_switch's: unions are equal if the same member is valid in both, and equal. */
function sameUnion(view: JsonView, left: readonly Header[], right: readonly Header[]): BooleanExpression {
  if (left.length !== right.length) throw view.invalid('compares unions of different types');
  return anyOf(
    left.map((header, i) => ({
      kind: 'logic',
      operator: 'and',
      left: isValid(header),
      right: sameHeader(view, true, header, right[i]!),
    })),
  );
}
