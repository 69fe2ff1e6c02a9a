import { DdfError } from '../../base/errors.ts';

/**
 * STF, the packet tests that p4c carries beside its samples: one command a line, `#` begins a comment. Names may be the end of the
 * full name. The grammar is that of p4c's tools/stf, with the commands that its driver hands to simple_switch_CLI.
 */
export type StfCommand =
  | {
      readonly kind: 'add';
      readonly table: string;
      /** The higher wins. */
      readonly priority: number | undefined;
      readonly keys: readonly StfKey[];
      readonly call: StfCall;
      /** A name for the entry: `= ID`. */
      readonly id: string | undefined;
    }
  | { readonly kind: 'set-default'; readonly table: string; readonly call: StfCall }
  | { readonly kind: 'remove-all' }
  | { readonly kind: 'packet'; readonly port: number; readonly bytes: Uint8Array }
  | { readonly kind: 'expect'; readonly port: number; readonly pattern: StfPattern | undefined }
  /** The packet before it sent nothing. */
  | { readonly kind: 'no-packet' }
  | { readonly kind: 'wait' }
  | {
      readonly kind: 'check-counter';
      readonly counter: string;
      /** A cell, or the name of an entry (`$ID`). */
      readonly cell: number | string;
      readonly check: StfCheck | undefined;
    }
  /** `port` and `group`: where clones of the session go; neither removes the session. */
  | {
      readonly kind: 'mirror';
      readonly session: number;
      readonly port: number | undefined;
      readonly group: number | undefined;
    }
  | { readonly kind: 'create-group'; readonly group: number }
  /** Nodes are numbered from 0 in the order they are made. */
  | { readonly kind: 'create-node'; readonly instance: number; readonly ports: readonly number[] }
  | { readonly kind: 'update-node'; readonly node: number; readonly ports: readonly number[] }
  | { readonly kind: 'associate-node'; readonly group: number; readonly node: number }
  | {
      readonly kind: 'counter-write';
      readonly counter: string;
      readonly cell: number;
      readonly packets: bigint;
      readonly bytes: bigint;
    }
  | {
      readonly kind: 'register-write';
      readonly register: string;
      /** Absent: every cell. */
      readonly cell: number | undefined;
      readonly value: bigint;
    }
  | {
      readonly kind: 'meter-set';
      readonly meter: string;
      /** Absent: every cell. */
      readonly cell: number | undefined;
      readonly committed: StfRate;
      readonly peak: StfRate;
    }
  /** Commands that only print: what they name has to exist. */
  | { readonly kind: 'read'; readonly what: 'counter' | 'register' | 'meter' | 'mirror'; readonly name: string };

/** A value as it is written: what a wildcard or a missing prefix length means depends on the key's kind. */
export interface StfKey {
  readonly name: string;
  readonly text: string;
}

export interface StfCall {
  readonly action: string;
  readonly arguments: readonly { readonly name: string; readonly value: bigint }[];
}

export interface StfPattern {
  /** Hexadecimal digits in lower case, `*` for any. */
  readonly digits: string;
  /** Nothing may follow. */
  readonly exact: boolean;
}

export interface StfCheck {
  readonly unit: 'packets' | 'bytes';
  readonly operator: '==' | '!=' | '<' | '<=' | '>' | '>=';
  readonly value: bigint;
}

/** Units (bytes or packets) per microsecond, and a burst of units. */
export interface StfRate {
  readonly perUs: number;
  readonly burst: bigint;
}

export interface StfLine {
  readonly line: number;
  readonly text: string;
  readonly command: StfCommand;
}

/** Throws DdfError INVALID_FILE that names the line. */
export function parseStf(text: string, path: string): StfLine[] {
  return text.split('\n').flatMap((raw, index) => {
    const line = raw.replace(/#.*$/, '').trim();
    if (line === '') return [];
    try {
      return [{ line: index + 1, text: line, command: parseCommand(line) }];
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
      throw new DdfError('INVALID_FILE', `${error.message}: ${line}`, { where: `${path}:${index + 1}` });
    }
  });
}

function parseCommand(line: string): StfCommand {
  const [, word, rest] = /^(\S+)\s*(.*)$/.exec(line)!;
  const words = rest === '' ? [] : rest!.split(/\s+/);
  const integerAt = (place: number): number => integer(words[place]);
  switch (word!.toLowerCase()) {
    case 'add':
      return parseAdd(rest!);
    case 'setdefault': {
      const [, table, call] = match(/^(\S+)\s+(.+)$/, rest!, 'setdefault TABLE ACTION(ARGUMENTS)');
      return { kind: 'set-default', table: table!, call: parseCall(call!) };
    }
    case 'remove':
      if (words[0]?.toLowerCase() !== 'all') throw new SyntaxError('Only `remove all` is known');
      return { kind: 'remove-all' };
    case 'packet':
      return { kind: 'packet', port: integerAt(0), bytes: parseBytes(words.slice(1).join('')) };
    case 'expect':
      return { kind: 'expect', port: integerAt(0), pattern: parsePattern(words.slice(1).join('')) };
    case 'no_packet':
      return { kind: 'no-packet' };
    case 'wait':
      return { kind: 'wait' };
    case 'check_counter':
      return parseCheckCounter(rest!);
    case 'mirroring_add':
      return { kind: 'mirror', session: integerAt(0), port: integerAt(1), group: undefined };
    case 'mirroring_add_mc':
      return { kind: 'mirror', session: integerAt(0), port: undefined, group: integerAt(1) };
    case 'mirroring_delete':
      return { kind: 'mirror', session: integerAt(0), port: undefined, group: undefined };
    case 'mirroring_get':
      return { kind: 'read', what: 'mirror', name: String(integerAt(0)) };
    case 'mc_mgrp_create':
      return { kind: 'create-group', group: integerAt(0) };
    case 'mc_node_create':
      return { kind: 'create-node', instance: integerAt(0), ports: words.slice(1).map(integer) };
    case 'mc_node_update':
      return { kind: 'update-node', node: integerAt(0), ports: words.slice(1).map(integer) };
    case 'mc_node_associate':
      return { kind: 'associate-node', group: integerAt(0), node: integerAt(1) };
    case 'counter_read':
      return { kind: 'read', what: 'counter', name: name(words[0]) };
    case 'counter_write':
      return {
        kind: 'counter-write',
        counter: name(words[0]),
        cell: integerAt(1),
        packets: number(words[2]),
        bytes: number(words[3]),
      };
    case 'register_read':
      return { kind: 'read', what: 'register', name: name(words[0]) };
    case 'register_write':
      return { kind: 'register-write', register: name(words[0]), cell: integerAt(1), value: number(words[2]) };
    case 'register_reset':
      return { kind: 'register-write', register: name(words[0]), cell: undefined, value: 0n };
    case 'meter_get_rates':
      return { kind: 'read', what: 'meter', name: name(words[0]) };
    case 'meter_set_rates':
      return {
        kind: 'meter-set',
        meter: name(words[0]),
        cell: integerAt(1),
        committed: rate(words[2]),
        peak: rate(words[3]),
      };
    case 'meter_array_set_rates':
      return {
        kind: 'meter-set',
        meter: name(words[0]),
        cell: undefined,
        committed: rate(words[1]),
        peak: rate(words[2]),
      };
    default:
      throw new SyntaxError(`There is no command ${word}`);
  }
}

/** `add TABLE [PRIORITY] KEY:VALUE... ACTION(ARGUMENTS) [= ID]` */
function parseAdd(text: string): StfCommand {
  const [, table, priority, keys, call, id] = match(
    /^(\S+)\s+(?:(\d+)\s+)?((?:[^\s(]+:\s*[^\s(]+\s+)*)([^\s(:]+\s*\([^)]*\))\s*(?:=\s*(\w+))?$/,
    text,
    'add TABLE [PRIORITY] KEY:VALUE... ACTION(ARGUMENTS) [= ID]',
  );
  return {
    kind: 'add',
    table: table!,
    priority: priority === undefined ? undefined : Number(priority),
    keys: [...keys!.matchAll(/([^\s:]+):\s*(\S+)/g)].map(([, key, value]) => ({ name: key!, text: value! })),
    call: parseCall(call!),
    id,
  };
}

function parseCall(text: string): StfCall {
  const [, action, list] = match(/^([^\s(]+)\s*\(([^)]*)\)$/, text.trim(), 'ACTION(NAME:VALUE, ...)');
  const parts = list!.trim() === '' ? [] : list!.split(',');
  return {
    action: action!,
    arguments: parts.map((part) => {
      const [, argument, value] = match(/^\s*([^\s:]+)\s*:\s*(\S+)\s*$/, part, 'NAME:VALUE');
      return { name: argument!, value: number(value) };
    }),
  };
}

function parseCheckCounter(text: string): StfCommand {
  const [, counter, cell, unit, operator, value] = match(
    /^([^\s(]+)\s*\(\s*(\$?\w+)\s*\)\s*(?:(packets|bytes)\s*(==|!=|<=|<|>=|>)\s*(\w+))?$/i,
    text,
    'check_counter COUNTER(CELL) [packets|bytes == NUMBER]',
  );
  return {
    kind: 'check-counter',
    counter: counter!,
    cell: /^\d/.test(cell!) ? integer(cell) : cell!.replace(/^\$/, ''),
    check:
      unit === undefined
        ? undefined
        : {
            unit: unit.toLowerCase() as StfCheck['unit'],
            operator: operator as StfCheck['operator'],
            value: number(value),
          },
  };
}

function parseBytes(digits: string): Uint8Array {
  if (!/^(?:[0-9a-f]{2})*$/i.test(digits)) throw new SyntaxError('The packet is not whole bytes in hexadecimal');
  return Uint8Array.from(Buffer.from(digits, 'hex'));
}

function parsePattern(text: string): StfPattern | undefined {
  if (text === '') return undefined;
  const exact = text.endsWith('$');
  const digits = (exact ? text.slice(0, -1) : text).toLowerCase();
  if (!/^[0-9a-f*]*$/.test(digits)) throw new SyntaxError('The packet is not hexadecimal digits and wildcards');
  return { digits, exact };
}

/** `RATE:BURST` */
function rate(text: string | undefined): StfRate {
  const [, perUs, burst] = match(/^([\d.]+):(\d+)$/, text ?? '', 'RATE:BURST');
  return { perUs: Number(perUs), burst: BigInt(burst!) };
}

function match(pattern: RegExp, text: string, shape: string): RegExpExecArray {
  const found = pattern.exec(text);
  if (found === null) throw new SyntaxError(`This is not ${shape}`);
  return found;
}

function name(text: string | undefined): string {
  if (text === undefined) throw new SyntaxError('A name is missing');
  return text;
}

function integer(text: string | undefined): number {
  return Number(number(text));
}

/** Decimal, hexadecimal, octal or binary. */
function number(text: string | undefined): bigint {
  if (text === undefined || !/^(\d+|0x[0-9a-f]+|0b[01]+|0o[0-7]+)$/i.test(text))
    throw new SyntaxError(text === undefined ? 'A number is missing' : `"${text}" is no number`);
  return BigInt(text);
}
