import type { JsonView } from './json-view.ts';
import { loadAssignment, loadPrimitive } from './load-actions.ts';
import { type ExpressionContext, loadCondition, loadData, memberOf } from './load-expressions.ts';
import type { Names } from './names.ts';
import type {
  DataExpression,
  Header,
  Parser,
  ParserOperation,
  ParserState,
  ParserTransition,
  Stack,
  StandardMetadata,
} from './program.ts';

export function loadParser(view: JsonView, names: Names, metadata: StandardMetadata): Parser {
  const stateViews = view.get('parse_states').items();
  const states: (ParserState & { transitions: ParserTransition[] })[] = stateViews.map((state, index) => {
    const operations = state
      .get('parser_ops')
      .items()
      .flatMap((view) => checked(names, (context) => [loadOperation(view, context, metadata)]));
    let key: ParserState['key'] = [];
    const checks = checked(names, (context) => {
      key = state
        .get('transition_key')
        .items()
        .map((part) => loadKeyPart(part, context));
      return [];
    });
    return { name: state.get('name').string(), index, operations: [...operations, ...checks], key, transitions: [] };
  });
  const byName = new Map(states.map((state) => [state.name, state]));
  const find = (nameView: JsonView | undefined): ParserState | undefined => {
    if (nameView === undefined) return undefined;
    const state = byName.get(nameView.string());
    if (state === undefined) throw nameView.invalid(`names no state of this parser: ${nameView.string()}`);
    return state;
  };
  stateViews.forEach((stateView, index) => {
    const state = states[index]!;
    const transitions = stateView
      .get('transitions')
      .items()
      .map((item) => loadTransition(item, state, names, find(item.find('next_state'))));
    // simple_switch takes the default when no other agrees, wherever it stands; of several the last.
    const isDefault = (transition: ParserTransition): boolean => transition.parts.length === 0;
    state.transitions.push(
      ...transitions.filter((each) => !isDefault(each)),
      ...transitions.filter(isDefault).slice(-1),
    );
  });
  return { name: view.get('name').string(), initial: find(view.find('init_state')), states };
}

/** Puts in front of what `load` makes that the stacks whose last elements it reads have one. */
function checked(names: Names, load: (context: ExpressionContext) => ParserOperation[]): ParserOperation[] {
  const lastRead = new Set<Stack>();
  const loaded = load({ names, lastRead });
  return [...[...lastRead].map((stack) => ({ kind: 'require-last' as const, stack })), ...loaded];
}

function loadOperation(view: JsonView, context: ExpressionContext, metadata: StandardMetadata): ParserOperation {
  const op = view.get('op');
  const parameters = view.get('parameters');
  switch (op.string()) {
    case 'extract':
      return loadExtract(parameters.tuple(1)[0]!, undefined, context.names);
    case 'extract_VL': {
      const [target, length] = parameters.tuple(2) as [JsonView, JsonView];
      return loadExtract(target, loadData(length, context), context.names);
    }
    case 'set': {
      const [target, value] = parameters.tuple(2) as [JsonView, JsonView];
      return { kind: 'primitive', primitive: loadAssignment(target, value, context) };
    }
    case 'verify': {
      const [condition, error] = parameters.tuple(2) as [JsonView, JsonView];
      // Old compilers wrote the error's number.
      const code: DataExpression =
        typeof error.raw === 'number' ? { kind: 'constant', value: BigInt(error.integer()) } : loadData(error, context);
      return { kind: 'verify', condition: loadCondition(condition, context), error: code };
    }
    case 'advance':
      return { kind: 'advance', bits: loadData(parameters.tuple(1)[0]!, context) };
    case 'shift': {
      const bytes = parameters.tuple(1)[0]!.integer(0, 65536);
      return { kind: 'advance', bits: { kind: 'constant', value: BigInt(8 * bytes) } };
    }
    case 'primitive': {
      const call = parameters.tuple(1)[0]!;
      const primitive = loadPrimitive(call, context, metadata, 0);
      if (primitive.kind === 'jump' || primitive.kind === 'exit')
        throw call.get('op').invalid('cannot stand in a parser');
      return { kind: 'primitive', primitive };
    }
    default:
      throw op.unsupported(`the parser operation ${op.string()}`);
  }
}

function loadExtract(view: JsonView, lengthBits: DataExpression | undefined, names: Names): ParserOperation {
  const type = view.get('type');
  const value = view.get('value');
  const matching = (header: Header): void => {
    if (header.metadata) throw value.invalid('extracts into metadata');
    if ((header.varbit === undefined) !== (lengthBits === undefined))
      throw value.invalid(`is a header ${header.varbit === undefined ? 'without' : 'with'} a field of variable length`);
  };
  switch (type.string()) {
    case 'regular': {
      const header = names.header(value);
      matching(header);
      return { kind: 'extract', header, lengthBits };
    }
    case 'stack': {
      const stack = names.stack(value);
      matching(stack.elements[0]![0]!);
      return { kind: 'extract-next', stack, member: 0, lengthBits };
    }
    case 'union_stack': {
      const [stackName, memberName] = value.tuple(2) as [JsonView, JsonView];
      const stack = names.unionStack(stackName);
      const member = memberOf(stack, memberName);
      matching(stack.elements[0]![member]!);
      return { kind: 'extract-next', stack, member, lengthBits };
    }
    default:
      throw type.invalid(`is nothing that is extracted into: ${type.string()}`);
  }
}

function loadKeyPart(view: JsonView, context: ExpressionContext): { value: DataExpression; widthBits: number } {
  const value = loadData(view, context);
  const widthBits = widthOf(value);
  if (widthBits === undefined) throw view.invalid('is neither a field nor lookahead');
  return { value, widthBits };
}

/** A part of a key is a field, one of several of a stack, or lookahead. */
function widthOf(value: DataExpression): number | undefined {
  switch (value.kind) {
    case 'field':
      return value.field.widthBits;
    case 'lookahead':
      return value.widthBits;
    case 'validity':
      return 1;
    case 'choice':
      return widthOf(value.yes);
    default:
      return undefined;
  }
}

function loadTransition(
  view: JsonView,
  state: ParserState,
  names: Names,
  next: ParserState | undefined,
): ParserTransition {
  const valueSet = undefined;
  const type = view.get('type');
  switch (type.string()) {
    case 'default':
      return { parts: [], valueSet, next };
    case 'hexstr': {
      const all = [...state.key].reduce((bits, part) => bits + paddedBits(part.widthBits), 0);
      if (state.key.length === 0) throw view.invalid('has a value in a state without a transition key');
      const value = view.get('value').hexadecimal();
      const mask = view.find('mask')?.hexadecimal() ?? (1n << BigInt(all)) - 1n;
      if (value < 0n || value >> BigInt(all) !== 0n) throw view.get('value').invalid('is wider than the key');
      return { parts: split(state, value, mask), valueSet, next };
    }
    case 'parse_vset':
      return loadValueSetTransition(view, state, names, next);
    default:
      throw type.invalid(`is no type of transition: ${type.string()}`);
  }
}

function loadValueSetTransition(
  view: JsonView,
  state: ParserState,
  names: Names,
  next: ParserState | undefined,
): ParserTransition {
  const name = view.get('value');
  const valueSet = names.valueSet(name);
  const widths = state.key.map((part) => part.widthBits);
  if (widths.reduce((sum, width) => sum + width, 0) !== valueSet.compressedBits)
    throw name.invalid(`names a value set of ${valueSet.compressedBits} bits, which the key does not have`);
  if (valueSet.widths.length > 1 && valueSet.widths.join() !== widths.join())
    throw name.invalid('names a value set that another state compares with a key of other parts');
  valueSet.widths = widths;
  const all = widths.reduce((bits, width) => bits + paddedBits(width), 0);
  const mask = view.find('mask')?.hexadecimal() ?? (1n << BigInt(all)) - 1n;
  return { parts: split(state, 0n, mask), valueSet, next };
}

function paddedBits(widthBits: number): number {
  return Math.ceil(widthBits / 8) * 8;
}

/** Values and masks are the key's parts one after the other, each padded to whole bytes. */
function split(state: ParserState, value: bigint, mask: bigint): { value: bigint; mask: bigint }[] {
  const parts: { value: bigint; mask: bigint }[] = [];
  let shift = 0n;
  for (const part of [...state.key].reverse()) {
    const bits = BigInt(part.widthBits);
    // A value with bits in the padding can never match; keeping those bits in the mask keeps it so.
    const padded = BigInt(paddedBits(part.widthBits));
    const partMask = (mask >> shift) & ((1n << padded) - 1n);
    const partValue = (value >> shift) & partMask;
    const full = partMask & ((1n << bits) - 1n);
    parts.unshift({ value: partValue, mask: partValue >> bits === 0n ? full : partMask });
    shift += padded;
  }
  return parts;
}
