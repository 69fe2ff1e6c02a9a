import type { Entity, UpdateType } from '../../../wire/p4runtime/messages.ts';
import { RpcError } from '../rpc-error.ts';

/** Takes a change back. Good only as long as everything that changed later has been taken back before. */
export type Undo = () => void;

/** What the server does with one kind of entity of a running program. Both methods throw RpcError for what cannot be done, and then nothing has changed. */
export interface EntityKind<E> {
  write(type: UpdateType, entity: E): Undo;
  /** How many cells or entries a write of this may touch, where that is not one. Must not throw. */
  workOf?(entity: E): number;
  /**
   * The entities that a read asks for: fields at their defaults are wildcards, by the rules of the kind. Cells of arrays, of which there may be
   * millions, are read as they are taken, with the RpcErrors that there are.
   */
  read(filter: E): Iterable<Entity>;
}

/** A kind that this switch does not serve, by its name. */
export class UnservedKind<E> implements EntityKind<E> {
  private readonly name: string;

  constructor(name: string) {
    this.name = name;
  }

  write(): never {
    throw this.unserved();
  }

  read(): never {
    throw this.unserved();
  }

  private unserved(): RpcError {
    return new RpcError('UNIMPLEMENTED', `This switch does not serve ${this.name}`);
  }
}
