import type { BooleanExpression, DataExpression } from './program.ts';

/** One of several things, of which the packet decides: an element of a stack, or what `?` chooses. */
export type Choice<T> =
  | { readonly kind: 'one'; readonly item: T }
  | {
      readonly kind: 'choice';
      readonly condition: BooleanExpression;
      readonly yes: Choice<T>;
      readonly no: Choice<T>;
    };

export function one<T>(item: T): Choice<T> {
  return { kind: 'one', item };
}

/** The item at `index` - `first`; below the first one the first, beyond the last one the last. */
export function byIndex<T>(index: DataExpression, items: readonly T[], first = 0): Choice<T> {
  if (index.kind === 'constant') {
    const place = Number(index.value) - first;
    return one(items[Math.max(0, Math.min(items.length - 1, place))]!);
  }
  if (items.length === 1) return one(items[0]!);
  const middle = items.length >> 1;
  const right: DataExpression = { kind: 'constant', value: BigInt(first + middle) };
  return {
    kind: 'choice',
    condition: { kind: 'comparison', operator: '<', left: index, right },
    yes: byIndex(index, items.slice(0, middle), first),
    no: byIndex(index, items.slice(middle), first + middle),
  };
}

export function map<T, U>(choice: Choice<T>, change: (item: T) => U): Choice<U> {
  if (choice.kind === 'one') return one(change(choice.item));
  return { ...choice, yes: map(choice.yes, change), no: map(choice.no, change) };
}

export function flatMap<T, U>(choice: Choice<T>, change: (item: T) => Choice<U>): Choice<U> {
  if (choice.kind === 'one') return change(choice.item);
  return { ...choice, yes: flatMap(choice.yes, change), no: flatMap(choice.no, change) };
}

export function items<T>(choice: Choice<T>): T[] {
  return choice.kind === 'one' ? [choice.item] : [...items(choice.yes), ...items(choice.no)];
}

export function dataOf(choice: Choice<DataExpression>): DataExpression {
  if (choice.kind === 'one') return choice.item;
  return { kind: 'choice', condition: choice.condition, yes: dataOf(choice.yes), no: dataOf(choice.no) };
}

export function booleanOf(choice: Choice<BooleanExpression>): BooleanExpression {
  return choice.kind === 'one' ? choice.item : choose(choice.condition, booleanOf(choice.yes), booleanOf(choice.no));
}

export function choose(condition: BooleanExpression, yes: BooleanExpression, no: BooleanExpression): BooleanExpression {
  return { kind: 'boolean-choice', condition, yes, no };
}
