import { DdfError } from '../../base/errors.ts';

type JsonObject = { readonly [key: string]: unknown };

/**
 * A value inside a JSON document that knows where it stands, so that every complaint names the field:
 * `$.pipelines[0].tables[3].key[1].match_type`.
 */
export class JsonView {
  readonly path: string;
  readonly raw: unknown;

  constructor(raw: unknown, path = '$') {
    this.raw = raw;
    this.path = path;
  }

  get isNull(): boolean {
    return this.raw === null || this.raw === undefined;
  }

  get isString(): boolean {
    return typeof this.raw === 'string';
  }

  get isArray(): boolean {
    return Array.isArray(this.raw);
  }

  get isObject(): boolean {
    return typeof this.raw === 'object' && this.raw !== null && !Array.isArray(this.raw);
  }

  get isBoolean(): boolean {
    return typeof this.raw === 'boolean';
  }

  /** A member that must be there. */
  get(key: string): JsonView {
    const member = this.find(key);
    if (member === undefined) throw this.invalid(`has no "${key}"`);
    return member;
  }

  /** A member, or `undefined` if it is absent or null. */
  find(key: string): JsonView | undefined {
    if (!this.isObject) throw this.invalid('is not an object');
    const object = this.raw as JsonObject;
    const value = Object.hasOwn(object, key) ? object[key] : undefined;
    return value === undefined || value === null ? undefined : new JsonView(value, `${this.path}.${key}`);
  }

  has(key: string): boolean {
    return this.isObject && Object.hasOwn(this.raw as JsonObject, key);
  }

  keys(): string[] {
    if (!this.isObject) throw this.invalid('is not an object');
    return Object.keys(this.raw as JsonObject);
  }

  items(): JsonView[] {
    if (!Array.isArray(this.raw)) throw this.invalid('is not an array');
    return this.raw.map((value: unknown, index) => new JsonView(value, `${this.path}[${index}]`));
  }

  /** An array of exactly `count` items. */
  tuple(count: number): JsonView[] {
    const items = this.items();
    if (items.length !== count) throw this.invalid(`has ${items.length} items where ${count} are needed`);
    return items;
  }

  string(): string {
    if (typeof this.raw !== 'string') throw this.invalid('is not a string');
    return this.raw;
  }

  boolean(): boolean {
    if (typeof this.raw !== 'boolean') throw this.invalid('is not true or false');
    return this.raw;
  }

  integer(minimum = 0, maximum = Number.MAX_SAFE_INTEGER): number {
    if (typeof this.raw !== 'number' || !Number.isSafeInteger(this.raw)) throw this.invalid('is not an integer');
    if (this.raw < minimum || this.raw > maximum) throw this.invalid(`is ${this.raw}, outside ${minimum}..${maximum}`);
    return this.raw;
  }

  /** `0x1f`, `1f` or `-0x3`. */
  hexadecimal(): bigint {
    const match = /^(-?)(?:0[xX])?([0-9a-fA-F]+)$/.exec(this.string());
    if (match === null || match[2]!.length > 8192) throw this.invalid('is not a hexadecimal number');
    const magnitude = BigInt(`0x${match[2]}`);
    return match[1] === '-' ? -magnitude : magnitude;
  }

  invalid(what: string): DdfError {
    return new DdfError('INVALID_PROGRAM', `The switch program's JSON is wrong: ${this.path} ${what}`, {
      where: this.path,
      remedy: 'Compile the P4 program again with p4c-bm2-ss.',
    });
  }

  unsupported(what: string): DdfError {
    return new DdfError('UNSUPPORTED_PROGRAM', `This switch cannot run ${what} (at ${this.path})`, {
      where: this.path,
      remedy: 'Change the P4 program so that it does without.',
    });
  }
}
