import { DdfError } from '../../base/errors.ts';
import { decodeBits, encodeBits } from '../../wire/p4runtime/byte-strings.ts';
import { SdnPort } from '../../wire/p4runtime/messages.ts';
import type { P4InfoIndex } from '../../wire/p4runtime/p4info-index.ts';
import type { P4NewTypeTranslation } from '../../wire/p4runtime/p4info-messages.ts';
import type { FieldInfo } from '../../wire/p4runtime/p4info-objects.ts';
import type { ProgramControl } from '../control.ts';
import { RpcError } from './rpc-error.ts';

/** The port type of PSA: the only translation that P4Runtime itself defines. */
const PSA_PORT_URI = 'p4.org/psa/v1/PortId_t';
/** Distinct names of one type; the type's width may allow fewer. */
const MAX_NAMES = 65_536;

/** The values of one match field or action parameter, as they are sent and as the device has them. */
export interface FieldCodec {
  /** Throws INVALID_ARGUMENT for strings that are none of the field's type or cannot be translated. */
  decode(bytes: Uint8Array, where: string): bigint;
  encode(value: bigint): Uint8Array;
}

/**
 * Values of match fields and action parameters between controllers and the device. They are the same unless their type is translated
 * (@p4runtime_translation; P4Runtime 1.5, section "Translation of P4 User-Defined Types"): numbers of another width then keep their value, and
 * names get numbers in the order in which they first occur.
 */
export class FieldValues {
  private readonly translators: ReadonlyMap<string, FieldCodec>;

  /** Throws DdfError UNSUPPORTED_PROGRAM for translated types where this switch cannot translate. */
  constructor(info: P4InfoIndex, control: ProgramControl, cpuPort: number) {
    const translators = new Map<string, FieldCodec>();
    const translate = (field: FieldInfo, deviceBits: number | undefined): void => {
      const { typeName, translation } = field;
      if (typeName === undefined || translation === undefined || deviceBits === undefined) return;
      if (!translators.has(typeName))
        translators.set(typeName, makeTranslator(typeName, translation, deviceBits, cpuPort));
    };
    for (const table of info.tables)
      table.fields.forEach((field, i) => {
        if (field.translation !== undefined && field.kind !== 'exact' && field.kind !== 'optional')
          throw unsupported(
            `table ${table.name}, match field ${field.name}`,
            `Only exact and optional matches of a translated type are served, not ${field.kind}`,
          );
        translate(field, control.tables.get(table.name)?.keys[i]?.widthBits);
      });
    for (const action of info.actions)
      action.params.forEach((param, i) => {
        translate(param, control.actions.get(action.name)?.[i]?.widthBits);
      });
    for (const header of info.controllerHeaders)
      for (const field of header.fields)
        if (field.translation !== undefined)
          throw unsupported(
            `controller header ${header.name}, field ${field.name}`,
            'Packet metadata of translated types are not served',
          );
    this.translators = translators;
  }

  codec({ typeName, widthBits }: FieldInfo): FieldCodec {
    return (typeName === undefined ? undefined : this.translators.get(typeName)) ?? new Plain(widthBits);
  }
}

/** Values that are the same on either side. */
class Plain implements FieldCodec {
  private readonly widthBits: number;

  constructor(widthBits: number) {
    this.widthBits = widthBits;
  }

  decode(bytes: Uint8Array, where: string): bigint {
    return plain(bytes, this.widthBits, where);
  }

  encode(value: bigint): Uint8Array {
    return encodeBits(value);
  }
}

function makeTranslator(
  type: string,
  translation: P4NewTypeTranslation,
  deviceBits: number,
  cpuPort: number,
): FieldCodec {
  if (translation.sdnString !== undefined) return new Names(type, deviceBits);
  const cpu = translation.uri === PSA_PORT_URI ? BigInt(cpuPort) : undefined;
  return new Numbers(type, translation.sdnBitwidth ?? 0, deviceBits, cpu);
}

function plain(bytes: Uint8Array, widthBits: number, where: string): bigint {
  try {
    return decodeBits(bytes, widthBits);
  } catch (error) {
    throw new RpcError('INVALID_ARGUMENT', `${where}: ${error instanceof Error ? error.message : error}`);
  }
}

function unsupported(where: string, message: string): DdfError {
  return new DdfError('UNSUPPORTED_PROGRAM', message, { where: `P4Info, ${where}` });
}

/** Numbers keep their value, as long as the device's type holds it. The port to the CPU has a number of its own. */
class Numbers implements FieldCodec {
  private readonly type: string;
  private readonly sdnBits: number;
  private readonly deviceBits: number;
  private readonly cpuPort: bigint | undefined;

  constructor(type: string, sdnBits: number, deviceBits: number, cpuPort: bigint | undefined) {
    this.type = type;
    this.sdnBits = sdnBits;
    this.deviceBits = deviceBits;
    this.cpuPort = cpuPort;
  }

  decode(bytes: Uint8Array, where: string): bigint {
    const value = plain(bytes, this.sdnBits, where);
    if (this.cpuPort !== undefined && value === SDN_PORT_CPU) return this.cpuPort;
    if (value >> BigInt(this.deviceBits) !== 0n)
      throw new RpcError(
        'INVALID_ARGUMENT',
        `${where}: ${value} cannot be translated, the device has ${this.deviceBits} bits for ${this.type}`,
      );
    return value;
  }

  encode(value: bigint): Uint8Array {
    return encodeBits(value === this.cpuPort ? SDN_PORT_CPU : value);
  }
}

const SDN_PORT_CPU = BigInt(SdnPort.SDN_PORT_CPU >>> 0);

const utf8 = new TextDecoder('utf-8', { fatal: true });

/** A name is what its UTF-8 bytes are: nothing is made canonical. Number 0 is left to values that nobody has named. */
class Names implements FieldCodec {
  private readonly type: string;
  private readonly room: number;
  private readonly numbers = new Map<string, bigint>();
  private readonly names: Uint8Array[] = [];

  constructor(type: string, deviceBits: number) {
    this.type = type;
    this.room = Math.min(2 ** deviceBits - 1, MAX_NAMES);
  }

  decode(bytes: Uint8Array, where: string): bigint {
    let name: string;
    try {
      name = utf8.decode(bytes);
    } catch {
      throw new RpcError('INVALID_ARGUMENT', `${where}: a value of ${this.type} is a string in UTF-8`);
    }
    if (name === '') throw new RpcError('INVALID_ARGUMENT', `${where}: the string is empty`);
    const known = this.numbers.get(name);
    if (known !== undefined) return known;
    if (this.names.length >= this.room)
      throw new RpcError(
        'RESOURCE_EXHAUSTED',
        `${where}: ${this.type} has room for ${this.room} names, and "${name}" would be one more`,
      );
    this.names.push(bytes.slice());
    const number = BigInt(this.names.length);
    this.numbers.set(name, number);
    return number;
  }

  encode(value: bigint): Uint8Array {
    return this.names[Number(value) - 1] ?? new TextEncoder().encode(`#${value}`);
  }
}
