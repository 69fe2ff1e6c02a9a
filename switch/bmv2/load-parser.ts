import type { JsonView } from './json-view.ts';
import { loadPrimitive, loadTarget } from './load-actions.ts';
import { type ExpressionContext, loadCondition, loadData } from './load-expressions.ts';
import type { Names } from './names.ts';
import type {
  DataExpression,
  Parser,
  ParserOperation,
  ParserState,
  ParserTransition,
  StandardMetadata,
} from './program.ts';

export function loadParser(view: JsonView, names: Names, metadata: StandardMetadata): Parser {
  const context: ExpressionContext = { names, inParser: true };
  const stateViews = view.get('parse_states').items();
  const states: (ParserState & { transitions: ParserTransition[] })[] = stateViews.map((state, index) => ({
    name: state.get('name').string(),
    index,
    operations: state
      .get('parser_ops')
      .items()
      .map((operation) => loadOperation(operation, context, metadata)),
    key: state
      .get('transition_key')
      .items()
      .map((part) => loadKeyPart(part, context)),
    transitions: [],
  }));
  const byName = new Map(states.map((state) => [state.name, state]));
  const find = (nameView: JsonView | undefined): ParserState | undefined => {
    if (nameView === undefined) return undefined;
    const state = byName.get(nameView.string());
    if (state === undefined) throw nameView.invalid(`names no state of this parser: ${nameView.string()}`);
    return state;
  };
  stateViews.forEach((stateView, index) => {
    const state = states[index]!;
    for (const item of stateView.get('transitions').items())
      state.transitions.push(loadTransition(item, state, find(item.find('next_state'))));
  });
  return { name: view.get('name').string(), initial: find(view.find('init_state')), states };
}

function loadOperation(view: JsonView, context: ExpressionContext, metadata: StandardMetadata): ParserOperation {
  const op = view.get('op');
  const parameters = view.get('parameters');
  switch (op.string()) {
    case 'extract': {
      const target = parameters.tuple(1)[0]!;
      const type = target.get('type');
      if (type.string() !== 'regular') throw type.unsupported(`extraction into a ${type.string()}`);
      const header = context.names.header(target.get('value'));
      if (header.metadata) throw target.invalid('extracts into metadata');
      return { kind: 'extract', header };
    }
    case 'set': {
      const [target, value] = parameters.tuple(2) as [JsonView, JsonView];
      return { kind: 'set', target: loadTarget(target, context.names), value: loadData(value, context) };
    }
    case 'verify': {
      const [condition, error] = parameters.tuple(2) as [JsonView, JsonView];
      return { kind: 'verify', condition: loadCondition(condition, context), error: loadData(error, context) };
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

function loadKeyPart(view: JsonView, context: ExpressionContext): { value: DataExpression; widthBits: number } {
  const value = loadData(view, context);
  switch (value.kind) {
    case 'field':
      return { value, widthBits: value.field.widthBits };
    case 'lookahead':
      return { value, widthBits: value.widthBits };
    case 'validity':
      return { value, widthBits: 1 };
    default:
      throw view.invalid('is neither a field nor lookahead');
  }
}

function loadTransition(view: JsonView, state: ParserState, next: ParserState | undefined): ParserTransition {
  const type = view.get('type');
  switch (type.string()) {
    case 'default':
      return { parts: [], next };
    case 'hexstr': {
      const all = [...state.key].reduce((bits, part) => bits + paddedBits(part.widthBits), 0);
      if (state.key.length === 0) throw view.invalid('has a value in a state without a transition key');
      const value = view.get('value').hexadecimal();
      const mask = view.find('mask')?.hexadecimal() ?? (1n << BigInt(all)) - 1n;
      if (value < 0n || value >> BigInt(all) !== 0n) throw view.get('value').invalid('is wider than the key');
      return { parts: split(state, value, mask), next };
    }
    case 'parse_vset':
      throw type.unsupported('parser value sets');
    default:
      throw type.invalid(`is no type of transition: ${type.string()}`);
  }
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
