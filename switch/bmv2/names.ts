import type { JsonView } from './json-view.ts';
import type {
  Action,
  Calculation,
  CounterArray,
  FieldList,
  Header,
  HeaderField,
  HeaderUnion,
  LearnList,
  MeterArray,
  RegisterArray,
  Stack,
  ValueSet,
} from './program.ts';

/** A header whose union is not loaded yet. */
export interface LoadedHeader extends Header {
  readonly rivals: Header[];
}

/** A value set whose parts the states that use it tell. */
export interface OpenValueSet extends ValueSet {
  readonly compressedBits: number;
  widths: readonly number[];
}

/** What the names in a program mean, filled section by section while it is loaded. */
export class Names {
  readonly headers = new Map<string, Header>();
  readonly headersById = new Map<number, LoadedHeader>();
  readonly stacks = new Map<string, Stack>();
  readonly unions = new Map<string, HeaderUnion>();
  readonly unionStacks = new Map<string, Stack>();
  readonly valueSets = new Map<string, OpenValueSet>();
  readonly counters = new Map<string, CounterArray>();
  readonly meters = new Map<string, MeterArray>();
  readonly registers = new Map<string, RegisterArray>();
  readonly calculations = new Map<string, Calculation>();
  readonly fieldListsById = new Map<number, FieldList>([[0, { id: 0, fields: [] }]]);
  readonly learnListsById = new Map<number, LearnList>();
  readonly actions = new Map<string, Action>();
  readonly actionsById = new Map<number, Action>();

  header(view: JsonView): Header {
    return lookUp(this.headers, view, 'header');
  }

  headerById(view: JsonView): LoadedHeader {
    const header = this.headersById.get(view.integer());
    if (header === undefined) throw view.invalid('is the id of no header');
    return header;
  }

  stack(view: JsonView): Stack {
    return lookUp(this.stacks, view, 'header stack');
  }

  union(view: JsonView): HeaderUnion {
    return lookUp(this.unions, view, 'header union');
  }

  unionStack(view: JsonView): Stack {
    return lookUp(this.unionStacks, view, 'stack of header unions');
  }

  valueSet(view: JsonView): OpenValueSet {
    return lookUp(this.valueSets, view, 'parser value set');
  }

  counter(view: JsonView): CounterArray {
    return lookUp(this.counters, view, 'counter array');
  }

  meter(view: JsonView): MeterArray {
    return lookUp(this.meters, view, 'meter array');
  }

  register(view: JsonView): RegisterArray {
    return lookUp(this.registers, view, 'register array');
  }

  calculation(view: JsonView): Calculation {
    return lookUp(this.calculations, view, 'calculation');
  }

  actionById(view: JsonView): Action {
    const action = this.actionsById.get(view.integer());
    if (action === undefined) throw view.invalid(`is the id of no action`);
    return action;
  }

  /** A `[header, field]` pair that names a real field, not a hidden one. */
  field(view: JsonView): HeaderField {
    const [header, name] = view.tuple(2) as [JsonView, JsonView];
    return fieldOf(this.header(header), name);
  }
}

export function fieldOf(header: Header, name: JsonView): HeaderField {
  const field = header.fields.find((candidate) => candidate.name === name.string());
  if (field === undefined) throw name.invalid(`names no field of header ${header.name}`);
  return field;
}

/** Adds to a map of names; a second object of the same name is refused. */
export function define<T, V extends T>(map: Map<string, T>, view: JsonView, value: V): V {
  const name = view.string();
  if (map.has(name)) throw view.invalid(`repeats the name ${name}`);
  map.set(name, value);
  return value;
}

function lookUp<T>(map: ReadonlyMap<string, T>, view: JsonView, what: string): T {
  const found = map.get(view.string());
  if (found === undefined) throw view.invalid(`names no ${what}: ${view.string()}`);
  return found;
}
