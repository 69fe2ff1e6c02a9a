/**
 * Generated JavaScript as a type of its own. The only ways to make it are {@link code} templates, whose interpolations are
 * numbers, identifiers, literals or other code, and the functions below: no string ever becomes code by being pasted.
 */
export class Code {
  readonly #text: string;

  private constructor(text: string) {
    this.#text = text;
  }

  toString(): string {
    return this.#text;
  }

  get isEmpty(): boolean {
    return this.#text === '';
  }

  /** For this module's functions; templates go through {@link code}. */
  static assemble(fixed: TemplateStringsArray, values: readonly CodeValue[]): Code {
    let text = fixed[0]!;
    for (let i = 0; i < values.length; i++) text += render(values[i]!) + fixed[i + 1]!;
    return new Code(text);
  }

  static sequence(parts: readonly Code[], separator: string): Code {
    return new Code(
      parts
        .filter((part) => !part.isEmpty)
        .map((part) => part.#text)
        .join(separator),
    );
  }

  static name(prefix: string, index: number | undefined): Code {
    if (!/^[a-zA-Z_$][\w$]*$/.test(prefix)) throw new TypeError(`not an identifier: ${prefix}`);
    return new Code(index === undefined ? prefix : `${prefix}${checked(index)}`);
  }

  static literal(value: string): Code {
    return new Code(JSON.stringify(value).replace(/[\u2028\u2029]/g, (c) => `\\u${c.charCodeAt(0).toString(16)}`));
  }

  static comment(text: string): Code {
    return new Code(`/* ${text.replace(/[^\w .,:()[\]=<>-]/g, '_')} */`);
  }
}

export type CodeValue = Code | number | bigint | boolean | readonly Code[];

/** Integers whose decimal literal means exactly them. */
function checked(value: number): number {
  if (!Number.isInteger(value) || Math.abs(value) > 2 ** 53) throw new TypeError(`not an exact integer: ${value}`);
  return value;
}

function render(value: CodeValue): string {
  if (value instanceof Code) return value.toString();
  if (typeof value === 'number') return value < 0 ? `(${checked(value)})` : `${checked(value)}`;
  if (typeof value === 'bigint') return value < 0n ? `(${value}n)` : `${value}n`;
  if (typeof value === 'boolean') return `${value}`;
  return lines(value).toString();
}

export function code(fixed: TemplateStringsArray, ...values: readonly CodeValue[]): Code {
  return Code.assemble(fixed, values);
}

/** An identifier: a fixed prefix and, where there are many of a kind, a number. */
export function name(prefix: string, index?: number): Code {
  return Code.name(prefix, index);
}

/** A string literal. */
export function literal(value: string): Code {
  return Code.literal(value);
}

/** A comment that names what the code belongs to, for whoever reads the generated program. */
export function comment(text: string): Code {
  return Code.comment(text);
}

/** Statements, one after the other. */
export function lines(parts: readonly Code[]): Code {
  return Code.sequence(parts, '\n');
}

/** Arguments or operands, separated by commas. */
export function list(parts: readonly Code[]): Code {
  return Code.sequence(parts, ', ');
}

/** Operands joined by one of JavaScript's operators; `none` when there are none. */
export function joined(parts: readonly Code[], operator: '|' | '^' | '&&' | '||' | '+', none: Code = code`0`): Code {
  if (parts.length === 0) return none;
  return parts.length === 1 ? parts[0]! : code`(${Code.sequence(parts, ` ${operator} `)})`;
}

export const nothing: Code = code``;
