import { DdfError } from '../../base/errors.ts';
import { encodeBits, encodeSigned } from '../../wire/p4runtime/byte-strings.ts';
import type { P4Data } from '../../wire/p4runtime/messages.ts';
import type { P4DataTypeSpec, P4Info } from '../../wire/p4runtime/p4info-messages.ts';
import type { DigestInfo } from '../../wire/p4runtime/p4info-objects.ts';
import type { DigestControl } from '../control.ts';

/** Builds a message's P4Data from the fields that the device gives, in their order; advances the iterator by what it takes. */
type Builder = (fields: Iterator<bigint>) => P4Data;

/** As deep as anybody nests types. */
const MAX_DEPTH = 16;

/**
 * How a digest's messages look to controllers. The device flattens structs; P4Info says how they are put together again.
 * @throws DdfError UNSUPPORTED_PROGRAM for types that digests cannot carry here, PROGRAM_MISMATCH when the device has other fields
 */
export function digestBuilder(
  digest: DigestInfo,
  control: DigestControl,
  p4Info: P4Info,
): (values: readonly bigint[]) => P4Data {
  const where = `P4Info, digest ${digest.name}`;
  const widths: number[] = [];
  const builder = builderOf(digest.type, p4Info, widths, where, 0);
  if (widths.length !== control.fields.length || widths.some((width, i) => width !== control.fields[i]!.widthBits))
    throw new DdfError(
      'PROGRAM_MISMATCH',
      `The P4Info does not belong to this program: digest ${digest.name} has fields of ${control.fields
        .map(({ widthBits }) => widthBits)
        .join()} bits, not ${widths.join()}`,
      { where },
    );
  return (values) => builder(values[Symbol.iterator]());
}

function next(fields: Iterator<bigint>): bigint {
  return fields.next().value as bigint;
}

function builderOf(
  type: P4DataTypeSpec | undefined,
  p4Info: P4Info,
  widths: number[],
  where: string,
  depth: number,
): Builder {
  const inner = (member: P4DataTypeSpec | undefined): Builder => builderOf(member, p4Info, widths, where, depth + 1);
  const types = p4Info.typeInfo;
  if (depth > MAX_DEPTH) throw new DdfError('UNSUPPORTED_PROGRAM', 'Types are nested too deeply', { where });
  if (type?.bitstring?.bit !== undefined) {
    widths.push(type.bitstring.bit.bitwidth);
    return (fields) => ({ bitstring: encodeBits(next(fields)) });
  }
  if (type?.bitstring?.int !== undefined) {
    const { bitwidth } = type.bitstring.int;
    widths.push(bitwidth);
    return (fields) => ({ bitstring: encodeSigned(BigInt.asIntN(bitwidth, next(fields))) });
  }
  if (type?.bool !== undefined) {
    widths.push(1);
    return (fields) => ({ bool: next(fields) !== 0n });
  }
  if (type?.tuple !== undefined) {
    const members = type.tuple.members.map(inner);
    return (fields) => ({ tuple: { members: members.map((member) => member(fields)) } });
  }
  const struct = type?.struct && types?.structs.get(type.struct.name);
  if (struct !== undefined) {
    const members = struct.members.map((member) => inner(member.typeSpec));
    return (fields) => ({ struct: { members: members.map((member) => member(fields)) } });
  }
  const header = type?.header && types?.headers.get(type.header.name);
  if (header !== undefined) {
    // The device gives the fields alone: a header that is sent as a message is taken to be valid.
    const members = header.members.map((member) => inner({ bitstring: member.typeSpec }));
    return (fields) => ({
      header: { isValid: true, bitstrings: members.map((member) => member(fields).bitstring ?? new Uint8Array(1)) },
    });
  }
  const enumeration = type?.serializableEnum && types?.serializableEnums.get(type.serializableEnum.name);
  if (enumeration?.underlyingType !== undefined) {
    widths.push(enumeration.underlyingType.bitwidth);
    return (fields) => ({ enumValue: encodeBits(next(fields)) });
  }
  const renamed = type?.newType && types?.newTypes.get(type.newType.name);
  if (renamed?.originalType !== undefined) return inner(renamed.originalType);
  throw new DdfError('UNSUPPORTED_PROGRAM', 'Digests of this type are not served', {
    where,
    remedy: 'Digests may hold bit<W>, int<W>, bool, serializable enums, and tuples, structs and headers of them.',
  });
}
