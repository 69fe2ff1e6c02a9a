import { decodeBits, decodeSigned, encodeBits, encodeSigned } from '../../../wire/p4runtime/byte-strings.ts';
import type { Entity, P4Data, RegisterEntry, UpdateType } from '../../../wire/p4runtime/messages.ts';
import type { P4InfoIndex } from '../../../wire/p4runtime/p4info-index.ts';
import type { RegisterInfo } from '../../../wire/p4runtime/p4info-objects.ts';
import type { ProgramControl, RegisterArrayControl } from '../../control.ts';
import { RpcError } from '../rpc-error.ts';
import { cellRange, cellWork, objectById, objectsById, replaceCells, requireModify } from '../validation.ts';
import type { EntityKind, Undo } from './entity-kind.ts';

/** Registers whose cells are bit<W> or int<W> (P4Runtime 1.5, section "RegisterEntry"). */
export class Registers implements EntityKind<RegisterEntry> {
  private readonly info: P4InfoIndex;
  private readonly arrays: ReadonlyMap<string, RegisterArrayControl>;

  constructor(info: P4InfoIndex, control: ProgramControl) {
    this.info = info;
    this.arrays = control.registers;
  }

  write(type: UpdateType, entity: RegisterEntry): Undo {
    requireModify(type, 'register');
    const register = objectById(this.info.registers, entity.registerId);
    const array = this.arrays.get(register.name)!;
    const { first, end } = cellRange(entity.index, array.size, `Register ${register.name}`);
    const value = parseCell(entity.data, register);
    return replaceCells(
      first,
      end,
      value,
      (index) => array.read(index),
      (index, cell) => array.write(index, cell),
    );
  }

  workOf(entity: RegisterEntry): number {
    return cellWork(entity.index, this.arrays.get(this.info.registers.get(entity.registerId)?.name ?? ''));
  }

  *read(filter: RegisterEntry): Generator<Entity> {
    for (const register of objectsById(this.info.registers, filter.registerId)) {
      const array = this.arrays.get(register.name)!;
      const { first, end } = cellRange(
        filter.registerId === 0 ? undefined : filter.index,
        array.size,
        `Register ${register.name}`,
      );
      for (let index = first; index < end; index++)
        yield {
          registerEntry: {
            registerId: register.id,
            index: { index: BigInt(index) },
            data: cellMessage(array.read(index), register),
          },
        };
    }
  }
}

function cellType(register: RegisterInfo): { signed: boolean; widthBits: number } {
  const bitstring = register.type?.bitstring;
  if (bitstring?.bit !== undefined) return { signed: false, widthBits: bitstring.bit.bitwidth };
  if (bitstring?.int !== undefined) return { signed: true, widthBits: bitstring.int.bitwidth };
  throw new RpcError('UNIMPLEMENTED', `Register ${register.name}: this switch serves only cells of bit<W> or int<W>`);
}

function parseCell(data: P4Data | undefined, register: RegisterInfo): bigint {
  const { signed, widthBits } = cellType(register);
  if (data?.bitstring === undefined)
    throw new RpcError(
      'INVALID_ARGUMENT',
      `Register ${register.name}: the data must be a bitstring of ${widthBits} bits`,
    );
  try {
    return signed
      ? BigInt.asUintN(widthBits, decodeSigned(data.bitstring, widthBits))
      : decodeBits(data.bitstring, widthBits);
  } catch (error) {
    throw new RpcError('OUT_OF_RANGE', `Register ${register.name}: ${error instanceof Error ? error.message : error}`);
  }
}

function cellMessage(value: bigint, register: RegisterInfo): P4Data {
  const { signed, widthBits } = cellType(register);
  return { bitstring: signed ? encodeSigned(BigInt.asIntN(widthBits, value)) : encodeBits(value) };
}
