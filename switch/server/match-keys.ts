import type { FieldMatch } from '../../wire/p4runtime/messages.ts';
import type { MatchFieldInfo } from '../../wire/p4runtime/p4info-objects.ts';
import type { MatchValue } from '../control.ts';
import type { FieldCodec, FieldValues } from './field-values.ts';
import { RpcError } from './rpc-error.ts';

/** A match field with what is needed for each of very many entries, made once. */
interface KeyField {
  readonly id: number;
  readonly info: MatchFieldInfo;
  readonly codec: FieldCodec;
  readonly ones: bigint;
  /** Names the field in errors. */
  readonly place: string;
}

/** Match keys of one table or value set, as messages and as values (P4Runtime 1.5, section "Match Format"). */
export class KeyFormat {
  private readonly fields: readonly KeyField[];
  private readonly where: string;

  /** @param where names what has the keys, in errors */
  constructor(values: FieldValues, fields: readonly MatchFieldInfo[], where: string) {
    this.where = where;
    this.fields = fields.map((info) => ({
      id: info.id,
      info,
      codec: values.codec(info),
      ones: (1n << BigInt(info.widthBits)) - 1n,
      place: `${where}, match field ${info.name}`,
    }));
  }

  /** The values in the order of the fields, also of those that are left out. Throws INVALID_ARGUMENT, or what the field's codec throws. */
  parse(matches: readonly FieldMatch[]): MatchValue[] {
    const { fields } = this;
    const given = this.inOrder(matches) ? matches : this.sorted(matches);
    const key: MatchValue[] = [];
    for (let i = 0; i < fields.length; i++) {
      const match = given[i];
      key.push(match === undefined ? dontCare(fields[i]!) : parseField(fields[i]!, match));
    }
    return key;
  }

  /** Whether there is one match for each field, as most clients send them. */
  private inOrder(matches: readonly FieldMatch[]): boolean {
    const { fields } = this;
    if (matches.length !== fields.length) return false;
    for (let i = 0; i < fields.length; i++) if (matches[i]!.fieldId !== fields[i]!.id) return false;
    return true;
  }

  private sorted(matches: readonly FieldMatch[]): (FieldMatch | undefined)[] {
    const given = this.fields.map((): FieldMatch | undefined => undefined);
    for (const match of matches) {
      const place = this.fields.findIndex(({ id }) => id === match.fieldId);
      if (place < 0)
        throw new RpcError('INVALID_ARGUMENT', `${this.where} has no match field with id ${match.fieldId}`);
      if (given[place] !== undefined)
        throw new RpcError(
          'INVALID_ARGUMENT',
          `${this.where}: match field ${this.fields[place]!.info.name} is given twice`,
        );
      given[place] = match;
    }
    return given;
  }

  /** Shortest strings, don't-care fields left out, in the order of the P4Info. */
  message(key: readonly MatchValue[]): FieldMatch[] {
    const matches: FieldMatch[] = [];
    this.fields.forEach(({ id: fieldId, codec, ones }, i) => {
      const value = key[i]!;
      switch (value.kind) {
        case 'exact':
          matches.push({ fieldId, exact: { value: codec.encode(value.value) } });
          break;
        case 'lpm':
          if (value.prefixLength > 0)
            matches.push({ fieldId, lpm: { value: codec.encode(value.value), prefixLen: value.prefixLength } });
          break;
        case 'ternary':
          if (value.mask !== 0n)
            matches.push({ fieldId, ternary: { value: codec.encode(value.value), mask: codec.encode(value.mask) } });
          break;
        case 'range':
          if (value.low !== 0n || value.high !== ones)
            matches.push({ fieldId, range: { low: codec.encode(value.low), high: codec.encode(value.high) } });
          break;
        case 'optional':
          if (value.value !== undefined) matches.push({ fieldId, optional: { value: codec.encode(value.value) } });
          break;
      }
    });
    return matches;
  }
}

function dontCare({ info, ones, place }: KeyField): MatchValue {
  switch (info.kind) {
    case 'exact':
      throw invalid(place, 'an exact field cannot be left out');
    case 'lpm':
      return { kind: 'lpm', value: 0n, prefixLength: 0 };
    case 'ternary':
      return { kind: 'ternary', value: 0n, mask: 0n };
    case 'range':
      return { kind: 'range', low: 0n, high: ones };
    case 'optional':
      return { kind: 'optional' };
  }
}

const MUST_BE_OMITTED = 'a field that matches everything must be left out';

function invalid(place: string, what: string): RpcError {
  return new RpcError('INVALID_ARGUMENT', `${place}: ${what}`);
}

function wrongKind({ info, place }: KeyField): RpcError {
  return invalid(place, `it is matched as ${info.kind}, and that is what must be set`);
}

function parseField(field: KeyField, match: FieldMatch): MatchValue {
  const { codec, ones, place } = field;
  switch (field.info.kind) {
    case 'exact':
      if (match.exact === undefined) throw wrongKind(field);
      return { kind: 'exact', value: codec.decode(match.exact.value, place) };
    case 'optional':
      if (match.optional === undefined) throw wrongKind(field);
      return { kind: 'optional', value: codec.decode(match.optional.value, place) };
    case 'lpm': {
      if (match.lpm === undefined) throw wrongKind(field);
      const { prefixLen } = match.lpm;
      const { widthBits } = field.info;
      const value = codec.decode(match.lpm.value, place);
      if (prefixLen === 0) throw invalid(place, MUST_BE_OMITTED);
      if (prefixLen < 0 || prefixLen > widthBits)
        throw invalid(place, `a prefix of ${prefixLen} bits is not in 1..${widthBits}`);
      if ((value & (ones >> BigInt(prefixLen))) !== 0n) throw invalid(place, 'bits after the prefix must be 0');
      return { kind: 'lpm', value, prefixLength: prefixLen };
    }
    case 'ternary': {
      if (match.ternary === undefined) throw wrongKind(field);
      const value = codec.decode(match.ternary.value, place);
      const mask = codec.decode(match.ternary.mask, place);
      if (mask === 0n) throw invalid(place, MUST_BE_OMITTED);
      if ((value & ~mask) !== 0n) throw invalid(place, 'bits outside of the mask must be 0');
      return { kind: 'ternary', value, mask };
    }
    case 'range': {
      if (match.range === undefined) throw wrongKind(field);
      const low = codec.decode(match.range.low, place);
      const high = codec.decode(match.range.high, place);
      if (low > high) throw invalid(place, 'the low end is above the high end');
      if (low === 0n && high === ones) throw invalid(place, MUST_BE_OMITTED);
      return { kind: 'range', low, high };
    }
  }
}

/** A text that is equal for equal keys of one table or value set. */
export function keyText(key: readonly MatchValue[]): string {
  return key.map(valueText).join('|');
}

function valueText(value: MatchValue): string {
  switch (value.kind) {
    case 'exact':
      return `${value.value}`;
    case 'lpm':
      return `${value.value}/${value.prefixLength}`;
    case 'ternary':
      return `${value.value}&${value.mask}`;
    case 'range':
      return `${value.low}-${value.high}`;
    case 'optional':
      return `${value.value ?? '*'}`;
  }
}
