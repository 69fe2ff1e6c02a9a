import { DdfError } from '../base/errors.ts';
import { emptyMessage, type FieldPlan, type MessageObject, type MessagePlan } from './proto-codec.ts';

/**
 * Reader of the protobuf text format (https://protobuf.dev/reference/protobuf/textformat-spec/), as P4 compilers write it. Expanded Any values are
 * refused by name, unknown fields too: a P4Info that says more than the schema knows must not be half understood.
 */

interface Token {
  readonly kind: 'name' | 'number' | 'string' | 'symbol' | 'end';
  readonly text: string;
  readonly line: number;
  readonly column: number;
  /** Of a string literal. */
  readonly bytes?: Uint8Array;
}

const MAX_DEPTH = 100;

/**
 * @param source names the text in errors
 * @throws DdfError INVALID_FILE with `where` as source:line:column
 */
export function parseTextMessage(plan: MessagePlan, text: string, source: string): MessageObject {
  const parser = new Parser(text, source);
  const message = emptyMessage(plan);
  parser.fields(plan, message, '', 0);
  return message;
}

class Parser {
  private readonly text: string;
  private readonly source: string;
  private position = 0;
  private line = 1;
  private lineStart = 0;
  private token: Token;

  constructor(text: string, source: string) {
    this.text = text;
    this.source = source;
    this.token = this.scan();
  }

  /** Fields up to `close`, or to the end of the text if that is empty. */
  fields(plan: MessagePlan, message: MessageObject, close: string, depth: number): void {
    if (depth > MAX_DEPTH) throw this.error(this.token, 'Messages are nested too deep');
    const seen = new Set<string>();
    for (;;) {
      const token = this.token;
      if (close === '' ? token.kind === 'end' : token.text === close && token.kind === 'symbol') return;
      if (token.kind === 'end') throw this.error(token, `The text ends where ${close} is missing`);
      if (token.text === '[') throw this.error(token, 'Extensions and expanded Any values are not supported');
      if (token.kind !== 'name') throw this.error(token, `A field name is expected, not ${describe(token)}`);
      const field = plan.byProtoName.get(token.text);
      if (field === undefined) throw this.error(token, `${plan.fullName} has no field ${token.text}`);
      if (field.shape === 'single') {
        const other = [field.name, ...(field.oneofOthers ?? [])].find((name) => seen.has(name));
        if (other !== undefined) throw this.error(token, `${token.text} cannot be given after ${other}`);
        seen.add(field.name);
      }
      this.advance();
      this.fieldValue(field, message, token, depth);
      if (this.token.text === ',' || this.token.text === ';') this.advance();
    }
  }

  private fieldValue(field: FieldPlan, message: MessageObject, name: Token, depth: number): void {
    if (this.isSymbol(':')) this.advance();
    else if (field.kind !== 'message')
      throw this.error(this.token, `A colon is expected after ${name.text}, not ${describe(this.token)}`);
    if (this.isSymbol('[') && field.shape !== 'single') {
      this.advance();
      while (!this.isSymbol(']')) {
        this.add(field, message, depth);
        if (this.isSymbol(',')) this.advance();
        else if (!this.isSymbol(']'))
          throw this.error(this.token, `A comma or ] is expected, not ${describe(this.token)}`);
      }
      this.advance();
      return;
    }
    this.add(field, message, depth);
  }

  private add(field: FieldPlan, message: MessageObject, depth: number): void {
    if (field.shape === 'map') this.mapEntry(field, message[field.name] as Map<string, unknown>, depth);
    else if (field.shape === 'repeated') (message[field.name] as unknown[]).push(this.value(field, depth));
    else message[field.name] = this.value(field, depth);
  }

  private value(field: FieldPlan, depth: number): unknown {
    if (field.kind === 'message') {
      const nested = emptyMessage(field.message!);
      this.block((close) => this.fields(field.message!, nested, close, depth + 1));
      return nested;
    }
    const token = this.token;
    this.advance();
    switch (field.kind) {
      case 'string':
      case 'bytes':
        return this.stringValue(field.kind, token);
      case 'bool':
        if (['true', 't', '1', 'True'].includes(token.text)) return true;
        if (['false', 'f', '0', 'False'].includes(token.text)) return false;
        throw this.error(token, `true or false is expected, not ${describe(token)}`);
      case 'enum': {
        const value = token.kind === 'name' ? field.enumeration!.values.get(token.text) : undefined;
        if (value !== undefined) return value;
        if (token.kind === 'name') throw this.error(token, `${field.enumeration!.fullName} has no value ${token.text}`);
        return Number(this.integer(token, -(2n ** 31n), 2n ** 31n - 1n));
      }
      case 'uint32':
        return Number(this.integer(token, 0n, 2n ** 32n - 1n));
      case 'int32':
        return Number(this.integer(token, -(2n ** 31n), 2n ** 31n - 1n));
      case 'uint64':
        return this.integer(token, 0n, 2n ** 64n - 1n);
      case 'int64':
        return this.integer(token, -(2n ** 63n), 2n ** 63n - 1n);
    }
  }

  /** A map is written as a list of entries with the fields key and value. */
  private mapEntry(field: FieldPlan, map: Map<string, unknown>, depth: number): void {
    let key = '';
    let value: MessageObject = emptyMessage(field.message!);
    this.block((close) => {
      while (!this.isSymbol(close)) {
        const name = this.token;
        this.advance();
        if (this.isSymbol(':')) this.advance();
        if (name.text === 'key') {
          const token = this.token;
          this.advance();
          key = this.stringValue('string', token) as string;
        } else if (name.text === 'value') {
          value = emptyMessage(field.message!);
          this.block((inner) => this.fields(field.message!, value, inner, depth + 1));
        } else throw this.error(name, `key or value is expected, not ${describe(name)}`);
        if (this.isSymbol(',') || this.isSymbol(';')) this.advance();
      }
    });
    map.set(key, value);
  }

  private block(body: (close: string) => void): void {
    const open = this.token;
    if (!this.isSymbol('{') && !this.isSymbol('<')) throw this.error(open, `{ is expected, not ${describe(open)}`);
    this.advance();
    body(open.text === '{' ? '}' : '>');
    this.advance();
  }

  private stringValue(kind: 'string' | 'bytes', first: Token): string | Uint8Array {
    if (first.kind !== 'string') throw this.error(first, `A string is expected, not ${describe(first)}`);
    const parts = [first.bytes!];
    // Adjacent literals are one string.
    while (this.token.kind === 'string') {
      parts.push(this.token.bytes!);
      this.advance();
    }
    const bytes = Buffer.concat(parts);
    if (kind === 'bytes') return new Uint8Array(bytes);
    try {
      return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
    } catch {
      throw this.error(first, 'The string is not UTF-8');
    }
  }

  private integer(token: Token, least: bigint, most: bigint): bigint {
    const digits = token.kind === 'number' ? token.text.replace(/^-/, '') : '';
    const octal = /^0[0-7]+$/.test(digits);
    if (!octal && !/^(0|[1-9][0-9]*|0[xX][0-9a-fA-F]+)$/.test(digits))
      throw this.error(token, `A whole number is expected, not ${describe(token)}`);
    const magnitude = BigInt(octal ? `0o${digits.slice(1)}` : digits);
    const value = token.text.startsWith('-') ? -magnitude : magnitude;
    if (value < least || value > most) throw this.error(token, `${token.text} is not in ${least}..${most}`);
    return value;
  }

  private isSymbol(text: string): boolean {
    return this.token.kind === 'symbol' && this.token.text === text;
  }

  private advance(): void {
    if (this.token.kind === 'end') throw this.error(this.token, 'The text ends too early');
    this.token = this.scan();
  }

  private scan(): Token {
    this.skipBlank();
    const start = { line: this.line, column: this.position - this.lineStart + 1 };
    const rest = this.position;
    const character = this.text[rest];
    if (character === undefined) return { kind: 'end', text: '', ...start };
    if (character === '"' || character === "'") {
      const bytes = this.scanString(character, start);
      return { kind: 'string', text: this.text.slice(rest, this.position), bytes, ...start };
    }
    const word = matchAt(/[A-Za-z_][A-Za-z0-9_]*/y, this.text, rest);
    if (word !== undefined) return this.take('name', word, start);
    const number = matchAt(/-?\s*[0-9.][0-9A-Za-z_.+]*/y, this.text, rest);
    if (number !== undefined) return { ...this.take('number', number, start), text: number.replace(/\s/g, '') };
    if ('{}<>[]:,;'.includes(character)) return this.take('symbol', character, start);
    throw this.error(
      { kind: 'symbol', text: character, ...start },
      `${JSON.stringify(character)} is not expected here`,
    );
  }

  private take(kind: Token['kind'], text: string, start: { line: number; column: number }): Token {
    this.position += text.length;
    return { kind, text, ...start };
  }

  private skipBlank(): void {
    for (;;) {
      const character = this.text[this.position];
      if (character === '\n') {
        this.position++;
        this.line++;
        this.lineStart = this.position;
      } else if (character === '#') {
        while (this.position < this.text.length && this.text[this.position] !== '\n') this.position++;
      } else if (character !== undefined && ' \t\r\f\v\uFEFF'.includes(character)) this.position++;
      else return;
    }
  }

  private scanString(quote: string, start: { line: number; column: number }): Uint8Array {
    const parts: Uint8Array[] = [];
    const fail = (what: string): DdfError => this.error({ kind: 'string', text: '', ...start }, what);
    this.position++;
    for (;;) {
      const character = this.text[this.position];
      if (character === undefined || character === '\n') throw fail('The string does not end on its line');
      if (character === quote) {
        this.position++;
        return Buffer.concat(parts);
      }
      if (character !== '\\') {
        const plain = matchAt(/[^\\\n"']+|["']/y, this.text, this.position)!;
        parts.push(Buffer.from(plain, 'utf8'));
        this.position += plain.length;
        continue;
      }
      const sequence = matchAt(
        /\\(x[0-9a-fA-F]{1,2}|[0-7]{1,3}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[abfnrtv?\\'"])/y,
        this.text,
        this.position,
      );
      const bytes = sequence === undefined ? undefined : escapedBytes(sequence.slice(1));
      if (sequence === undefined || bytes === undefined) throw fail('The string has an escape that does not exist');
      parts.push(bytes);
      this.position += sequence.length;
    }
  }

  private error(token: Token, what: string): DdfError {
    return new DdfError('INVALID_FILE', what, { where: `${this.source}:${token.line}:${token.column}` });
  }
}

function matchAt(pattern: RegExp, text: string, position: number): string | undefined {
  pattern.lastIndex = position;
  return pattern.exec(text)?.[0];
}

const SIMPLE_ESCAPES: Readonly<Record<string, number>> = { a: 7, b: 8, f: 12, n: 10, r: 13, t: 9, v: 11 };

function escapedBytes(sequence: string): Uint8Array | undefined {
  const kind = sequence[0]!;
  if (kind === 'x') return new Uint8Array([Number.parseInt(sequence.slice(1), 16)]);
  if (kind === 'u' || kind === 'U') {
    const point = Number.parseInt(sequence.slice(1), 16);
    return point > 0x10ffff ? undefined : Buffer.from(String.fromCodePoint(point), 'utf8');
  }
  if (/[0-7]/.test(kind)) {
    const value = Number.parseInt(sequence, 8);
    return value > 255 ? undefined : new Uint8Array([value]);
  }
  return new Uint8Array([SIMPLE_ESCAPES[kind] ?? kind.charCodeAt(0)]);
}

function describe(token: Token): string {
  return token.kind === 'end' ? 'the end of the text' : token.text;
}
