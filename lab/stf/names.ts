import { DdfError } from '../../base/errors.ts';
import type { ActionCall, MatchValue, ProgramControl, TableControl, TableKey } from '../../switch/control.ts';
import type { StfCall, StfKey } from './script.ts';

export type ProgramNames = Pick<ProgramControl, 'tables' | 'actions'>;

/** The object of that name, or the only one whose name ends in it. */
export function findByName<T>(all: ReadonlyMap<string, T>, name: string, what: string): T {
  const exact = all.get(name);
  if (exact !== undefined) return exact;
  const found = [...all].filter(([candidate]) => candidate.endsWith(name));
  if (found.length === 1) return found[0]![1];
  throw wrong(found.length === 0 ? `there is no ${what} ${name}` : `more than one ${what} ends in ${name}`);
}

export function resolveCall(names: ProgramNames, table: TableControl, call: StfCall): ActionCall {
  const own = new Map(table.actions.map((action) => [action, action]));
  const action = findByName(own, call.action, `action of ${table.name}`);
  const parameters = names.actions.get(action) ?? [];
  const values = new Map(call.arguments.map(({ name, value }) => [name, value]));
  for (const name of values.keys())
    if (!parameters.some((parameter) => parameter.name === name)) throw wrong(`${action} has no parameter ${name}`);
  const params = parameters.map(({ name }) => {
    const value = values.get(name);
    if (value === undefined) throw wrong(`${action} needs ${name}`);
    return value;
  });
  return { action, params };
}

/** Keys that are not given match anything, or 0 where they are exact. */
export function resolveMatch(table: TableControl, given: readonly StfKey[]): MatchValue[] {
  const match: MatchValue[] = table.keys.map((key) => matchValue(key, undefined));
  for (const { name, text } of given) {
    const place = findKey(table.keys, name);
    if (place < 0) throw wrong(`${table.name} has no key ${name}`);
    match[place] = matchValue(table.keys[place]!, text);
  }
  return match;
}

/** As p4c's driver finds it: `$N` is an index, `.valid` or `$valid$` the validity, and the end of the name is enough. */
function findKey(keys: readonly TableKey[], written: string): number {
  const name = written.replace(/\$(\d+)/, '[$1]');
  const at = (test: (key: string) => boolean): number => keys.findIndex((key) => test(key.name));
  const tests: ((key: string) => boolean)[] = [
    (key) => key === name,
    (key) => key === `${name}$` || key === `${name}.$valid$`,
    (key) => name.endsWith('.valid') && key === name.replace(/valid$/, '$valid$'),
    (key) => key.endsWith(`.${name}`) || key.endsWith(`.${name}$`),
    (key) => name === 'valid' && key.endsWith('$valid$'),
  ];
  return tests.map(at).find((place) => place >= 0) ?? -1;
}

function matchValue(key: TableKey, text: string | undefined): MatchValue {
  const ones = (1n << BigInt(key.widthBits)) - 1n;
  switch (key.kind) {
    case 'exact':
      return { kind: 'exact', value: checked(number(text ?? '0'), key) };
    case 'optional':
      return text === undefined ? { kind: 'optional' } : { kind: 'optional', value: checked(number(text), key) };
    case 'lpm': {
      if (text === undefined) return { kind: 'lpm', value: 0n, prefixLength: 0 };
      const [value, length] = text.split('/');
      const digits = digitsOf(value!);
      // A value stands for the prefix of its digits, as p4c's driver has it.
      const written = digits === undefined ? key.widthBits : digits.bits * digits.text.replaceAll('*', '').length;
      const prefixLength = Math.min(key.widthBits, length === undefined ? written : Number(length));
      const mask = ones ^ ((1n << BigInt(key.widthBits - prefixLength)) - 1n);
      return { kind: 'lpm', value: checked(number(value!.replaceAll('*', '0')), key) & mask, prefixLength };
    }
    case 'ternary': {
      if (text === undefined) return { kind: 'ternary', value: 0n, mask: 0n };
      const [value, mask] = text.split('&&&');
      const under = mask === undefined ? (writtenMask(value!) ?? ones) : number(mask);
      return { kind: 'ternary', value: checked(number(value!.replaceAll('*', '0')), key) & under, mask: under & ones };
    }
    case 'range': {
      if (text === undefined) return { kind: 'range', low: 0n, high: ones };
      const [low, high] = text.split('->');
      return { kind: 'range', low: checked(number(low!), key), high: checked(number(high ?? low!), key) };
    }
  }
}

interface Digits {
  readonly text: string;
  /** Bits a digit. */
  readonly bits: number;
}

function digitsOf(text: string): Digits | undefined {
  const bits = { '0x': 4, '0o': 3, '0b': 1 }[text.slice(0, 2).toLowerCase()];
  return bits === undefined ? undefined : { text: text.slice(2), bits };
}

/** Ones for the digits that are written, zeros for wildcards and in front; `undefined` for a decimal number. */
function writtenMask(text: string): bigint | undefined {
  const digits = digitsOf(text);
  if (digits === undefined) return undefined;
  const one = (1n << BigInt(digits.bits)) - 1n;
  return [...digits.text].reduce((mask, digit) => (mask << BigInt(digits.bits)) | (digit === '*' ? 0n : one), 0n);
}

function checked(value: bigint, key: TableKey): bigint {
  if (value >> BigInt(key.widthBits) !== 0n) throw wrong(`${value} is wider than ${key.name}`);
  return value;
}

function number(text: string): bigint {
  if (!/^(\d+|0x[0-9a-f]+|0b[01]+|0o[0-7]+)$/i.test(text)) throw wrong(`"${text}" is no number`);
  return BigInt(text);
}

function wrong(what: string): DdfError {
  return new DdfError('INVALID_REQUEST', what);
}
