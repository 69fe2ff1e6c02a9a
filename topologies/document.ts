import { isAlias, isMap, isScalar, isSeq, LineCounter, type Node, parseDocument } from 'yaml';
import { DdfError } from '../base/errors.ts';
import { expandNames } from './names.ts';
import { parseQuantity, type Quantity } from './quantity.ts';

/** A YAML node that knows its place, so that every complaint can name file, line and field. */
export class Item {
  private readonly source: Source;
  private readonly node: Node | null;
  /** Path of field names from the top, such as `hosts[1].link.rate`; empty at the top. */
  readonly field: string;

  constructor(source: Source, node: Node | null, field: string) {
    this.source = source;
    this.node = node !== null && isAlias(node) ? (node.resolve(source.document) ?? null) : node;
    this.field = field;
  }

  fail(message: string, remedy?: string): never {
    const line = this.source.lines.linePos(this.node?.range?.[0] ?? 0).line;
    const place = `${this.source.fileName}:${line}`;
    throw new DdfError('INVALID_TOPOLOGY', message, {
      where: this.field === '' ? place : `${place} ${this.field}`,
      ...(remedy === undefined ? {} : { remedy }),
    });
  }

  /** The fields of a mapping; complains about those that are neither required nor optional, and about required ones that are missing. */
  fields<R extends string, O extends string = never>(
    required: readonly R[],
    optional: readonly O[] = [],
  ): Record<R, Item> & Partial<Record<O, Item>> {
    const known: readonly string[] = [...required, ...optional];
    const node = this.node;
    if (node === null || !isMap(node)) this.fail(`a mapping with the fields ${known.join(', ')} is expected`);
    const found: Record<string, Item> = {};
    for (const pair of node.items) {
      const keyNode = pair.key as Node;
      const name = isScalar(keyNode) ? String(keyNode.value) : '?';
      const path = this.field === '' ? name : `${this.field}.${name}`;
      if (!known.includes(name))
        new Item(this.source, keyNode, path).fail(`unknown field "${name}"`, `Known fields here: ${known.join(', ')}.`);
      const value = pair.value as Node | null;
      // A field without a value has no place of its own: complaints point at its name.
      found[name] = new Item(this.source, value?.range == null ? keyNode : value, path);
    }
    for (const name of required) if (found[name] === undefined) this.fail(`the field "${name}" is missing`);
    return found as Record<R, Item> & Partial<Record<O, Item>>;
  }

  /** The members of a sequence. */
  list(): Item[] {
    const node = this.node;
    if (node === null || !isSeq(node)) this.fail('a list is expected');
    return node.items.map((member, index) => new Item(this.source, member as Node, `${this.field}[${index}]`));
  }

  text(): string {
    const node = this.node;
    if (node === null || !isScalar(node) || typeof node.value !== 'string' || node.value === '')
      this.fail('a text is expected');
    return node.value;
  }

  wholeNumber(minimum: number, maximum: number): number {
    const node = this.node;
    const value = node !== null && isScalar(node) ? node.value : undefined;
    if (typeof value !== 'number' || !Number.isInteger(value) || value < minimum || value > maximum)
      this.fail(`a whole number in ${minimum}..${maximum} is expected`);
    return value;
  }

  oneOf<T extends string>(values: readonly T[]): T {
    const text = this.text();
    const value = values.find((candidate) => candidate === text);
    if (value === undefined) this.fail(`"${text}" is not one of ${values.join(', ')}`);
    return value;
  }

  names(): string[] {
    const result = expandNames(this.text());
    if ('problem' in result) this.fail(result.problem);
    return result.names;
  }

  quantity(quantity: Quantity): number {
    const node = this.node;
    const value = node !== null && isScalar(node) ? node.value : undefined;
    const result = parseQuantity(typeof value === 'number' ? String(value) : this.text(), quantity);
    if ('problem' in result) this.fail(result.problem);
    return result.value;
  }
}

interface Source {
  readonly fileName: string;
  readonly lines: LineCounter;
  readonly document: ReturnType<typeof parseDocument>;
}

/** Parses YAML; throws INVALID_TOPOLOGY with file and line for text that is none. */
export function openDocument(text: string, fileName: string): Item {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, uniqueKeys: true, prettyErrors: false });
  const problem = document.errors[0] ?? document.warnings[0];
  if (problem !== undefined)
    throw new DdfError('INVALID_TOPOLOGY', `not valid YAML: ${problem.message}`, {
      where: `${fileName}:${lines.linePos(problem.pos[0]).line}`,
      cause: problem,
    });
  return new Item({ fileName, lines, document }, document.contents as Node | null, '');
}
