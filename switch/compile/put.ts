import type { DataExpression, HeaderField } from '../bmv2/program.ts';
import { type Code, code, lines, name } from './code.ts';
import { type Scope, unsignedBits } from './expression.ts';

/** Appends a field at bit `a` of zeroed bytes, and moves `a` behind it. */
export function putField(field: HeaderField, target: Code, scope: Scope): Code {
  if (field.length === undefined) return putValue({ kind: 'field', field }, field.widthBits, target, scope);
  const { layout } = scope;
  return code`a = ${name('putVarbit')}(${target}, a, phv, ${layout.place(field)}, ${layout.word(field.length)});`;
}

/** The same with a value of that width. */
export function putValue(value: DataExpression, widthBits: number, target: Code, scope: Scope): Code {
  const stores: Code[] = [];
  for (let high = widthBits; high > 0; ) {
    const part = high % 32 === 0 ? 32 : high % 32;
    high -= part;
    stores.push(code`a = ${name('putBits')}(${target}, a, ${unsignedBits(value, scope, high, part)}, ${part});`);
  }
  return lines(stores);
}
