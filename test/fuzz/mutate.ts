import type { Random } from '../../base/random.ts';
import { pick } from './target.ts';

/** Mutations of bytes, JSON documents and texts. None of them changes its argument. */

const BYTES = [0x00, 0x01, 0x7f, 0x80, 0xff, 0x0a, 0x22];

/** Flips, overwrites, cuts, repeats or inserts bytes, a few times. */
export function mutateBytes(random: Random, bytes: Uint8Array, times = 1 + random.below(4)): Uint8Array {
  // Not slice(): a Buffer's would share its bytes.
  let out: Uint8Array = Uint8Array.from(bytes);
  for (let i = 0; i < times; i++) out = mutateBytesOnce(random, out);
  return out;
}

function mutateBytesOnce(random: Random, bytes: Uint8Array): Uint8Array {
  const at = random.below(bytes.length + 1);
  const some = 1 + random.below(random.chance(0.8) ? 8 : 1 + bytes.length);
  const kind = random.below(8);
  if (bytes.length === 0 || kind === 0) return splice(bytes, at, 0, randomBytes(random, some));
  const place = random.below(bytes.length);
  switch (kind) {
    case 1:
      bytes[place] = bytes[place]! ^ (1 << random.below(8));
      return bytes;
    case 2:
      bytes[place] = random.below(256);
      return bytes;
    case 3:
      bytes.fill(pick(random, BYTES), place, place + some);
      return bytes;
    case 4:
      return bytes.slice(0, at);
    case 5:
      return splice(bytes, place, some, new Uint8Array(0));
    case 6:
      return splice(bytes, at, 0, bytes.slice(place, place + some));
    default: {
      // A length, an offset, a count: numbers of 4 bytes in either order of bytes.
      const number = new Uint8Array(4);
      new DataView(number.buffer).setUint32(0, pick(random, NUMBERS_32), random.chance(0.5));
      bytes.set(number.subarray(0, bytes.length - place), place);
      return bytes;
    }
  }
}

const NUMBERS_32 = [0, 1, 0x7f, 0xff, 0xffff, 0x1_0000, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff];

function splice(bytes: Uint8Array, at: number, removed: number, inserted: Uint8Array): Uint8Array {
  const rest = bytes.subarray(Math.min(bytes.length, at + removed));
  const out = new Uint8Array(Math.min(at, bytes.length) + inserted.length + rest.length);
  out.set(bytes.subarray(0, at));
  out.set(inserted, at);
  out.set(rest, at + inserted.length);
  return out;
}

export function randomBytes(random: Random, length: number): Uint8Array {
  const bytes = new Uint8Array(length);
  for (let i = 0; i < length; i++) bytes[i] = random.below(256);
  return bytes;
}

type Path = readonly (string | number)[];

/** A JSON document with an index of its places, so that one mutation copies no more than the way to its place. */
export class JsonDocument {
  readonly root: unknown;
  private readonly paths: Path[] = [];
  /** Values by the key that they stand under: what stands elsewhere under the same key is the likeliest to be taken for right. */
  private readonly byKey = new Map<string, unknown[]>();
  private readonly strings: string[] = [];

  constructor(root: unknown) {
    this.root = root;
    this.walk(root, []);
  }

  private walk(value: unknown, path: Path): void {
    if (path.length > 0) this.paths.push(path);
    const key = [...path].reverse().find((part): part is string => typeof part === 'string');
    if (key !== undefined) {
      const known = this.byKey.get(key) ?? [];
      this.byKey.set(key, known);
      known.push(value);
    }
    if (typeof value === 'string') this.strings.push(value);
    if (Array.isArray(value)) {
      value.forEach((item, i) => {
        this.walk(item, [...path, i]);
      });
    } else if (typeof value === 'object' && value !== null)
      for (const [name, member] of Object.entries(value)) this.walk(member, [...path, name]);
  }

  mutate(random: Random, times = 1 + random.below(3)): unknown {
    let root = this.root;
    for (let i = 0; i < times; i++) {
      const path = pick(random, this.paths);
      root = edit(root, path, (parent, key) => this.change(random, parent, key, path));
    }
    return root;
  }

  /** Changes the copy of a container at one of its keys. */
  private change(random: Random, parent: Record<string, unknown> | unknown[], key: string | number, path: Path): void {
    const list = Array.isArray(parent) ? parent : undefined;
    const record = parent as Record<string | number, unknown>;
    const name = [...path].reverse().find((part): part is string => typeof part === 'string');
    switch (random.below(9)) {
      case 0:
        if (list !== undefined) list.splice(Number(key), 1);
        else delete record[key];
        break;
      case 1:
        if (list !== undefined) list.splice(Number(key), 0, list[Number(key)]);
        else record[`${key}${random.below(3)}`] = record[key];
        break;
      case 2:
        if (list !== undefined && list.length > 1) {
          const other = random.below(list.length);
          [list[other], list[Number(key)]] = [list[Number(key)], list[other]];
        } else record[key] = pick(random, this.strings);
        break;
      case 3:
        record[key] = wrongValue(random);
        break;
      case 4:
        record[key] = near(random, record[key], this.strings);
        break;
      case 5:
        record[key] = nest(random, record[key]);
        break;
      case 6:
        record[key] = valueAt(this.root, pick(random, this.paths));
        break;
      default:
        record[key] = pick(random, this.byKey.get(name ?? '') ?? [null]);
    }
  }
}

/** A copy of `root` in which `change` was applied to the container at the end of `path`; itself where the path leads nowhere. */
function edit(
  root: unknown,
  path: Path,
  change: (parent: Record<string, unknown> | unknown[], key: string | number) => void,
): unknown {
  if (typeof root !== 'object' || root === null) return root;
  const copy = Array.isArray(root) ? [...root] : { ...root };
  const [key, ...rest] = path as [string | number, ...Path];
  if (rest.length === 0) change(copy as Record<string, unknown> | unknown[], key);
  else {
    const record = copy as Record<string | number, unknown>;
    if (!Object.hasOwn(record, key)) return root;
    record[key] = edit(record[key], rest, change);
  }
  return copy;
}

function valueAt(root: unknown, path: Path): unknown {
  let value = root;
  for (const key of path) value = (value as Record<string | number, unknown>)[key];
  return value;
}

const WRONG: readonly ((random: Random) => unknown)[] = [
  () => null,
  () => true,
  () => [],
  () => ({}),
  () => '',
  () => -1,
  () => 0.5,
  () => 2 ** 31,
  () => 2 ** 32,
  () => 2 ** 53,
  () => 1e300,
  () => '__proto__',
  () => 'constructor',
  () => [null],
  () => ({ type: 'field', value: null }),
  (random) => random.below(2 ** 20),
  (random) => `0x${'f'.repeat(1 + random.below(9000))}`,
  (random) => `-0x${'8'.repeat(1 + random.below(64))}`,
  (random) => 'x'.repeat(random.below(5000)),
  (random) => Array.from({ length: random.below(300) }, (_, i) => i),
];

function wrongValue(random: Random): unknown {
  return pick(random, WRONG)(random);
}

/** Another value of the same type. */
function near(random: Random, value: unknown, strings: readonly string[]): unknown {
  switch (typeof value) {
    case 'number':
      return random.chance(0.5) ? value + random.below(5) - 2 : Math.round(value * random.float() * 3);
    case 'boolean':
      return !value;
    case 'string':
      if (/^-?0x[0-9a-f]+$/i.test(value)) return `0x${random.below(2 ** random.below(32)).toString(16)}`;
      return random.chance(0.7) ? pick(random, strings) : value.slice(random.below(value.length + 1));
    default:
      return value;
  }
}

/** Puts a value into itself again and again: expressions in expressions, lists in lists. */
function nest(random: Random, value: unknown): unknown {
  const depth = random.chance(0.9) ? 1 + random.below(5) : 1 + random.below(2000);
  let out = value;
  const kind = random.below(3);
  for (let i = 0; i < depth; i++) {
    if (kind === 0) out = [out];
    else if (kind === 1) out = { type: 'expression', value: out };
    else out = { type: 'expression', value: { op: pick(random, OPERATORS), left: i % 2 ? value : null, right: out } };
  }
  return out;
}

const OPERATORS = [
  '+',
  '-',
  '*',
  '<<',
  '>>',
  '&',
  '==',
  'and',
  'not',
  'd2b',
  'b2d',
  '~',
  '?',
  'two_comp_mod',
  'usat_cast',
];

/** Words and signs of a text deleted, repeated, swapped or replaced; sometimes bytes. */
export class TextDocument {
  private readonly tokens: readonly string[];
  private readonly lines: readonly string[];

  constructor(text: string) {
    this.tokens = text.split(/(\s+|[^\w\s])/).filter((token) => token !== '');
    this.lines = text.split(/(?<=\n)/);
  }

  mutate(random: Random): string {
    if (random.chance(0.3)) return mutateParts(random, this.lines).join('');
    const text = mutateParts(random, this.tokens).join('');
    if (random.chance(0.8)) return text;
    return new TextDecoder().decode(mutateBytes(random, new TextEncoder().encode(text)));
  }
}

const WORDS = [
  '',
  '0',
  '-1',
  '99999999999999999999',
  '0x7fffffff',
  'true',
  '"',
  "'",
  '{',
  '}',
  '[',
  ']',
  ':',
  '\\',
  '#',
  '*a',
  '&a',
  '~',
  '\u0000',
  '{1..999999}',
];

function mutateParts(random: Random, parts: readonly string[]): string[] {
  const out = [...parts];
  for (let i = 1 + random.below(3); i > 0 && out.length > 0; i--) {
    const at = random.below(out.length);
    const some = random.chance(0.7) ? 1 : 1 + random.below(20);
    switch (random.below(6)) {
      case 0:
        out.splice(at, some);
        break;
      case 1:
        out.splice(at, 0, ...out.slice(at, at + some));
        break;
      case 2:
        out.splice(at, 0, pick(random, parts));
        break;
      case 3:
        out[at] = pick(random, parts);
        break;
      case 4:
        out[at] = pick(random, WORDS).repeat(random.chance(0.9) ? 1 : 1 + random.below(300));
        break;
      default: {
        const other = random.below(out.length);
        [out[at], out[other]] = [out[other]!, out[at]!];
      }
    }
  }
  return out;
}
