import { DdfError } from '../../base/errors.ts';
import type { Random } from '../../base/random.ts';
import type { MatchValue, ProgramControl, TableControl, TableKey } from '../../switch/control.ts';
import { pick } from './target.ts';

/** Values that programs compare with, or all bits, or any. */
export function randomBits(random: Random, widthBits: number): bigint {
  const all = (1n << BigInt(widthBits)) - 1n;
  switch (random.below(4)) {
    case 0:
      return BigInt(random.below(8)) & all;
    case 1:
      return all;
    default: {
      let value = 0n;
      for (let bits = 0; bits < widthBits; bits += 32) value = (value << 32n) | BigInt(random.uint32());
      return value & all;
    }
  }
}

function randomMatch(random: Random, { kind, widthBits }: TableKey): MatchValue {
  const value = randomBits(random, widthBits);
  const all = (1n << BigInt(widthBits)) - 1n;
  switch (kind) {
    case 'exact':
      return { kind, value };
    case 'lpm': {
      const prefixLength = random.below(widthBits + 1);
      return { kind, value: value & (all ^ (all >> BigInt(prefixLength))), prefixLength };
    }
    case 'ternary': {
      const mask = randomBits(random, widthBits);
      return { kind, value: value & mask, mask };
    }
    case 'range': {
      const other = randomBits(random, widthBits);
      return value < other ? { kind, low: value, high: other } : { kind, low: other, high: value };
    }
    case 'optional':
      return random.chance(0.5) ? { kind } : { kind, value };
  }
}

/** Tries that many entries per table, and a default action; what a table refuses with an error of ours is left out. */
export function fillTables(random: Random, program: ProgramControl, entriesPerTable: number): void {
  for (const table of program.tables.values()) {
    if (table.actions.length === 0) continue;
    for (let i = 0; i < entriesPerTable; i++) accept(() => insertOne(random, program, table));
    if (random.chance(0.2)) accept(() => table.setDefault(randomCall(random, program, table)));
  }
}

function insertOne(random: Random, program: ProgramControl, table: TableControl): void {
  const match = table.keys.map((key) => randomMatch(random, key));
  const priority = table.keys.every(({ kind }) => kind === 'exact' || kind === 'lpm') ? 0 : 1 + random.below(5);
  const call = randomCall(random, program, table);
  try {
    table.insert(match, priority, call);
  } catch (error) {
    if (!(error instanceof DdfError)) throw error;
    // A table with a selector takes sets of actions.
    const selector = Array.from({ length: 1 + random.below(3) }, (_, i) => ({ ...call, weight: 1 + i }));
    table.insert(match, priority, { selector });
  }
}

function randomCall(random: Random, program: ProgramControl, table: TableControl) {
  const action = pick(random, table.actions);
  const params = program.actions.get(action) ?? [];
  return { action, params: params.map(({ widthBits }) => randomBits(random, widthBits)) };
}

function accept(attempt: () => void): void {
  try {
    attempt();
  } catch (error) {
    if (!(error instanceof DdfError)) throw error;
  }
}
