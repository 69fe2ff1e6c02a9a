import type { Random } from '../../base/random.ts';
import { emptyMessage, type FieldPlan, type MessageObject, type MessagePlan } from '../../wire/proto-codec.ts';
import { mutateBytes, randomBytes } from './mutate.ts';
import { pick } from './target.ts';

/** A copy of a message with some of its fields, at any depth, changed to others of their type. `ids` are numbers that mean something to the reader. */
export function mutateMessage<T extends object>(
  random: Random,
  plan: MessagePlan,
  message: T,
  ids: readonly number[],
  times = 1 + random.below(3),
): T {
  const copy = structuredClone(message) as MessageObject;
  for (let i = 0; i < times; i++) {
    const places: [MessagePlan, MessageObject][] = [];
    collect(plan, copy, places);
    const [at, object] = pick(random, places);
    if (at.fields.length > 0) changeField(random, pick(random, at.fields), object, ids);
  }
  return copy as T;
}

function collect(plan: MessagePlan, message: MessageObject, places: [MessagePlan, MessageObject][]): void {
  places.push([plan, message]);
  for (const field of plan.fields) {
    const value = message[field.name];
    if (field.kind !== 'message' || value === undefined) continue;
    const inner =
      field.shape === 'single'
        ? [value]
        : field.shape === 'repeated'
          ? (value as unknown[])
          : [...(value as Map<string, unknown>).values()];
    for (const item of inner) collect(field.message!, item as MessageObject, places);
  }
}

function changeField(random: Random, field: FieldPlan, message: MessageObject, ids: readonly number[]): void {
  const before = message[field.name];
  if (field.shape === 'map') {
    const map = before as Map<string, unknown> | undefined;
    if (map !== undefined && random.chance(0.5)) map.clear();
    else map?.set(`key${random.below(3)}`, newValue(random, field, undefined, ids));
    return;
  }
  if (field.shape === 'repeated') {
    const list = (before as unknown[] | undefined) ?? [];
    message[field.name] = list;
    const at = random.below(list.length + 1);
    const kind = random.below(5);
    if (kind === 0) list.splice(at, 1);
    else if (kind === 1 && at < list.length) list.splice(at, 0, structuredClone(list[at]));
    else if (kind === 2 && at < list.length) list.push(...list.splice(at, 1));
    else if (kind === 3 && at < list.length) list[at] = newValue(random, field, list[at], ids);
    else list.splice(at, 0, newValue(random, field, undefined, ids));
    return;
  }
  if (before !== undefined && (field.kind === 'message' || field.oneofOthers !== undefined) && random.chance(0.4)) {
    delete message[field.name];
    return;
  }
  for (const other of field.oneofOthers ?? []) delete message[other];
  message[field.name] = newValue(random, field, before, ids);
}

const INTEGERS = [
  0n,
  1n,
  -1n,
  2n,
  127n,
  128n,
  255n,
  256n,
  510n,
  511n,
  512n,
  65_535n,
  65_536n,
  0x7fff_ffffn,
  0x8000_0000n,
  0xffff_ffffn,
  1n << 53n,
  (1n << 63n) - 1n,
  1n << 63n,
];

function newValue(random: Random, field: FieldPlan, before: unknown, ids: readonly number[]): unknown {
  const integer = (): bigint => {
    if (random.chance(0.3) && (typeof before === 'number' || typeof before === 'bigint'))
      return BigInt(before) + BigInt(random.below(5) - 2);
    if (random.chance(0.4) && ids.length > 0) return BigInt(pick(random, ids));
    return random.chance(0.5) ? BigInt(random.below(20)) : pick(random, INTEGERS);
  };
  switch (field.kind) {
    case 'uint32':
      return Number(BigInt.asUintN(32, integer()));
    case 'int32':
      return Number(BigInt.asIntN(32, integer()));
    case 'enum':
      return random.chance(0.8)
        ? pick(random, [...field.enumeration!.values.values()])
        : Number(BigInt.asIntN(32, integer()));
    case 'uint64':
      return BigInt.asUintN(64, integer());
    case 'int64':
      return BigInt.asIntN(64, integer());
    case 'bool':
      return random.chance(0.5);
    case 'string':
      return pick(random, [
        '',
        'a',
        '\u0000',
        'packet_in',
        'é'.repeat(40),
        '__proto__',
        'x'.repeat(random.below(3000)),
      ]);
    case 'bytes': {
      const bytes = before instanceof Uint8Array ? before : new Uint8Array(1);
      const kind = random.below(5);
      if (kind === 0) return new Uint8Array(0);
      if (kind === 1) return Uint8Array.from([0, 0, ...bytes]);
      if (kind === 2) return randomBytes(random, random.below(20));
      if (kind === 3) return new Uint8Array(random.below(3000)).fill(255);
      return mutateBytes(random, bytes, 1);
    }
    case 'message':
      return emptyMessage(field.message!);
  }
}
