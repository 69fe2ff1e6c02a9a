import type { Calculation, DataExpression, HashAlgorithm, HashInput, Header } from '../bmv2/program.ts';
import { type Code, code, joined, lines, name, nothing } from './code.ts';
import { Concatenation, storeBytes } from './concatenation.ts';
import { bits, normal, type Scope } from './expression.ts';
import type { Layout } from './layout.ts';

type Piece = Exclude<HashInput, { kind: 'payload' }>;

/** The function that computes a calculation. Its result is a number below 2^53, or a BigInt for `identity` of more bits. */
export function calculationFunction(calculation: Calculation, layout: Layout): Code {
  const scope: Scope = { layout };
  const pieces = calculation.inputs.filter((input): input is Piece => input.kind !== 'payload');
  const payload = pieces.length < calculation.inputs.length;
  const headers = new Set<Header>();
  for (const piece of pieces)
    if (piece.kind === 'field' && !piece.field.header.metadata) headers.add(piece.field.header);
  const allValid = joined(
    [...headers].map((header) => layout.isValid(header)),
    '&&',
    code`true`,
  );

  const all = new Concatenation(pieces.map((piece) => ({ value: expressionOf(piece), widthBits: widthOf(piece) })));
  const fast = payload ? hashOfBytes(calculation, all, scope, true) : hashOfConcatenation(calculation, all, scope);
  const slow = headers.size === 0 ? nothing : hashOfValidPieces(calculation, pieces, payload, scope);
  return code`function ${calculationName(calculation)}() {
if (${allValid}) {
${fast}
}
${slow}
}`;
}

/** How wide an algorithm's result is at most. */
export function hashBits(algorithm: HashAlgorithm): number {
  switch (algorithm) {
    case 'identity':
      return 64;
    case 'crc32':
    case 'crc32_custom':
    case 'xor32':
      return 32;
    default:
      return 16;
  }
}

export function calculationName(calculation: Calculation): Code {
  return name('H', calculation.index);
}

function expressionOf(piece: Piece): DataExpression {
  return piece.kind === 'field' ? { kind: 'field', field: piece.field } : { kind: 'constant', value: piece.value };
}

function widthOf(piece: Piece): number {
  return piece.kind === 'field' ? piece.field.widthBits : piece.widthBits;
}

/** Where the algorithm allows, straight from the words without bytes in between. */
function hashOfConcatenation(calculation: Calculation, all: Concatenation, scope: Scope): Code {
  const length = Math.ceil(all.widthBits / 8);
  switch (calculation.algorithm) {
    case 'csum16':
    case 'cksum16': {
      const words: Code[] = [];
      for (let start = 0; start < all.widthBits; start += 16) words.push(normal(all.at(start, 16, scope), 16));
      return code`return ${name('foldedComplement')}(${joined(words, '+')});`;
    }
    case 'xor16': {
      const words: Code[] = [];
      for (let start = 0; start < all.widthBits; start += 16) words.push(normal(all.at(start, 16, scope), 16));
      return code`return ${joined(words, '^')};`;
    }
    case 'identity':
      if (length <= 4) return code`return ${normal(all.at(0, 8 * length, scope), 8 * length)};`;
      return hashOfBytes(calculation, all, scope, false);
    default:
      return hashOfBytes(calculation, all, scope, false);
  }
}

function hashOfBytes(calculation: Calculation, all: Concatenation, scope: Scope, payload: boolean): Code {
  const length = Math.ceil(all.widthBits / 8);
  const buffer = payload
    ? code`const b = ${name('hashBuffer')}(${length} + length - parsed);`
    : code`const b = ${name('hashBuffer')}(${length});`;
  return lines([buffer, ...storeBytes(all, name('b'), code`0`, scope), finish(calculation, code`${length}`, payload)]);
}

/** Leaves out the fields of invalid headers, so that every bit's place is known only now. */
function hashOfValidPieces(calculation: Calculation, pieces: readonly Piece[], payload: boolean, scope: Scope): Code {
  const size = Math.ceil(pieces.reduce((sum, piece) => sum + widthOf(piece), 0) / 8);
  const puts = pieces.map((piece) => {
    const width = widthOf(piece);
    const stores: Code[] = [];
    for (let high = width; high > 0; ) {
      const part = high % 32 === 0 ? 32 : high % 32;
      high -= part;
      const value = normal(bits(expressionOf(piece), scope, high, part), part);
      stores.push(code`n = ${name('putBits')}(b, n, ${value}, ${part});`);
    }
    return piece.kind === 'field' && !piece.field.header.metadata
      ? code`if (${scope.layout.isValid(piece.field.header)}) { ${stores} }`
      : lines(stores);
  });
  const length = payload ? code`${size} + length - parsed` : code`${size}`;
  return lines([
    code`const b = ${name('hashBuffer')}(${length});`,
    code`b.fill(0, 0, ${size});`,
    code`let n = 0;`,
    ...puts,
    code`n = n + 7 >> 3;`,
    finish(calculation, code`n`, payload),
  ]);
}

function finish(calculation: Calculation, length: Code, payload: boolean): Code {
  const algorithm = name(calculation.algorithm);
  if (!payload) return code`return ${algorithm}(b, ${length});`;
  return lines([
    code`b.set(frame.subarray(parsed), ${length});`,
    code`return ${algorithm}(b, ${length} + length - parsed);`,
  ]);
}
