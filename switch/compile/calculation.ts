import type { Calculation, DataExpression, HashAlgorithm, HashInput, Header } from '../bmv2/program.ts';
import { type Code, code, joined, lines, name, nothing } from './code.ts';
import { Concatenation, storeBytes } from './concatenation.ts';
import { normal, type Scope } from './expression.ts';
import type { Layout } from './layout.ts';
import { putField, putValue } from './put.ts';

/** What the parser has left of the packet. */
const PAYLOAD_BYTES: Code = code`start + length - parsed`;

type Piece = Exclude<HashInput, { kind: 'payload' }>;

/** The function that computes a calculation. Its result is a number below 2^53, or a BigInt where it has more. */
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

  const body = lines([
    code`if (${allValid}) {\n${fast()}\n}`,
    headers.size === 0 ? nothing : hashOfValidPieces(calculation, pieces, payload, scope),
  ]);
  function fast(): Code {
    // Where a bit stands is known only at run time behind a varbit.
    if (pieces.some((piece) => piece.kind === 'field' && piece.field.length !== undefined))
      return hashOfValidPieces(calculation, pieces, payload, scope);
    const all = new Concatenation(pieces.map((piece) => ({ value: expressionOf(piece), widthBits: widthOf(piece) })));
    return payload ? hashOfBytes(calculation, all, scope, true) : hashOfConcatenation(calculation, all, scope);
  }
  return lines([stateOf(calculation), code`function ${calculationName(calculation)}() {\n${body}\n}`]);
}

/** How wide an algorithm's result is at most. Above 32 it may be a BigInt. */
export function hashBits(algorithm: HashAlgorithm): number {
  if (typeof algorithm !== 'string') return algorithm.widthBits;
  switch (algorithm) {
    case 'crc32':
    case 'xor32':
    case 'toeplitz':
      return 32;
    case 'identity':
    case 'xxh64':
    case 'round_robin':
    case 'round_robin_consistent':
      return 64;
    default:
      return 16;
  }
}

/** What an algorithm keeps from packet to packet, or makes once, as `Z` with the calculation's number. */
function stateOf({ algorithm, index }: Calculation): Code {
  if (typeof algorithm !== 'string') {
    const { widthBits, polynomial, initial, final, reflected } = algorithm;
    return code`const ${name('Z', index)} = ${name('crc')}(${widthBits}, ${polynomial}, ${initial}, ${final}, ${reflected});`;
  }
  switch (algorithm) {
    case 'round_robin':
      return code`const ${name('Z', index)} = ${name('roundRobin')}();`;
    case 'round_robin_consistent':
      return code`const ${name('Z', index)} = ${name('roundRobinConsistent')}();`;
    default:
      return nothing;
  }
}

/** The function that hashes bytes. */
function hashName(calculation: Calculation): Code {
  const { algorithm, index } = calculation;
  if (typeof algorithm !== 'string' || algorithm.startsWith('round_robin')) return name('Z', index);
  return name(algorithm === 'cksum16' ? 'csum16' : algorithm);
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
    ? code`const b = ${name('hashBuffer')}(${length} + ${PAYLOAD_BYTES});`
    : code`const b = ${name('hashBuffer')}(${length});`;
  return lines([buffer, ...storeBytes(all, name('b'), code`0`, scope), finish(calculation, code`${length}`, payload)]);
}

/** Leaves out the fields of invalid headers, so that every bit's place is known only now. */
function hashOfValidPieces(calculation: Calculation, pieces: readonly Piece[], payload: boolean, scope: Scope): Code {
  const size = Math.ceil(pieces.reduce((sum, piece) => sum + widthOf(piece), 0) / 8);
  const puts = pieces.map((piece) => {
    if (piece.kind === 'constant') return putValue(expressionOf(piece), piece.widthBits, name('b'), scope);
    const put = putField(piece.field, name('b'), scope);
    const { header } = piece.field;
    return header.metadata ? put : code`if (${scope.layout.isValid(header)}) { ${put} }`;
  });
  const length = payload ? code`${size} + ${PAYLOAD_BYTES}` : code`${size}`;
  return lines([
    code`const b = ${name('hashBuffer')}(${length});`,
    code`b.fill(0, 0, ${size});`,
    code`let a = 0;`,
    ...puts,
    code`const n = a + 7 >> 3;`,
    finish(calculation, name('n'), payload),
  ]);
}

function finish(calculation: Calculation, length: Code, payload: boolean): Code {
  const algorithm = hashName(calculation);
  if (!payload) return code`return ${algorithm}(b, ${length});`;
  return lines([
    code`b.set(memory.bytes.subarray(parsed, start + length), ${length});`,
    code`return ${algorithm}(b, ${length} + ${PAYLOAD_BYTES});`,
  ]);
}
