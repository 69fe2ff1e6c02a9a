import { DdfError } from '../../base/errors.ts';
import { keyLayout } from '../compile/table.ts';
import type { MatchValue, ValueSetControl } from '../control.ts';
import type { EntryIndex } from './exact-index.ts';
import { MatchTable } from './match-table.ts';
import type { PortStates } from './port-states.ts';

/** What one transition of the parser looks the key up in. */
export interface ValueSetUse {
  index: EntryIndex;
}

/** Values that the control plane gives to the parser: for each transition that uses them a table without actions. */
export class ValueSet implements ValueSetControl {
  readonly name: string;
  readonly size: number;
  readonly keys: ValueSetControl['keys'];
  readonly uses: readonly ValueSetUse[];
  private readonly masks: readonly (readonly bigint[])[];
  private current: readonly (readonly MatchValue[])[] = [];
  private readonly nowUs: () => number;
  private readonly ports: PortStates;

  /** @param masks for each transition that uses it, of each key the bits that are compared */
  constructor(
    shape: { readonly name: string; readonly size: number; readonly widths: readonly number[] },
    masks: readonly (readonly bigint[])[],
    nowUs: () => number,
    ports: PortStates,
  ) {
    this.name = shape.name;
    this.size = shape.size;
    this.keys = shape.widths.map((widthBits, i) => ({ name: String(i), widthBits }));
    this.masks = masks;
    this.nowUs = nowUs;
    this.ports = ports;
    this.uses = masks.map((mask) => ({ index: this.indexOf([], mask) }));
  }

  setMembers(members: readonly (readonly MatchValue[])[]): void {
    if (members.length > this.size)
      throw new DdfError('TABLE_FULL', `Value set ${this.name} holds ${this.size} members, not ${members.length}`, {
        where: this.name,
      });
    const indexes = this.masks.map((mask) => this.indexOf(members, mask));
    for (const [i, index] of indexes.entries()) this.uses[i]!.index = index;
    this.current = members;
  }

  members(): readonly (readonly MatchValue[])[] {
    return this.current;
  }

  private indexOf(members: readonly (readonly MatchValue[])[], mask: readonly bigint[]): EntryIndex {
    const { places, words } = keyLayout(this.keys);
    const table = new MatchTable(
      {
        name: this.name,
        size: this.size,
        keys: this.keys.map((key, i) => ({ ...key, kind: 'ternary' as const, ...places[i]! })),
        words,
        actions: [{ name: '', parameters: [], words: 0 }],
        hasCounter: false,
        meterUnit: undefined,
        defaultCall: undefined,
        entries: [],
      },
      this.nowUs,
      this.ports,
    );
    members.forEach((member, place) => {
      if (member.length !== this.keys.length) throw this.refusal(`A member has ${this.keys.length} values`);
      const match = member.map((value, i) => this.underMask(value, mask[i]!, this.keys[i]!.widthBits));
      // Different priorities: two members may be one under the mask.
      table.insert(match, place, { action: '', params: [] });
    });
    return table.index;
  }

  private underMask(value: MatchValue, mask: bigint, widthBits: number): MatchValue {
    const ones = (1n << BigInt(widthBits)) - 1n;
    if (mask === ones) return value;
    switch (value.kind) {
      case 'exact':
        return { kind: 'ternary', value: value.value & mask, mask };
      case 'ternary':
        return { kind: 'ternary', value: value.value & value.mask & mask, mask: value.mask & mask };
      case 'optional':
        return value.value === undefined ? value : { kind: 'ternary', value: value.value & mask, mask };
      case 'lpm': {
        const prefix = (ones ^ ((1n << BigInt(widthBits - value.prefixLength)) - 1n)) & mask;
        return { kind: 'ternary', value: value.value & prefix, mask: prefix };
      }
      case 'range':
        throw this.refusal('The parser compares this key under a mask, so a member cannot be a range');
    }
  }

  private refusal(what: string): DdfError {
    return new DdfError('INVALID_REQUEST', `${what} (value set ${this.name})`, { where: this.name });
  }
}
