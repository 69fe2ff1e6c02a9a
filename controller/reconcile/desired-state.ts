import { DdfError } from '../../base/errors.ts';
import type { Entity } from '../../wire/p4runtime/messages.ts';
import { type EntityMap, entityMap, type KnownEntity } from './diff.ts';

/** What several owners want of one switch. Owners may want the same entity if they want it to be the same. */
export class DesiredState {
  private readonly byOwner = new Map<string, EntityMap>();
  private merged: EntityMap = new Map();

  /** The union of what all owners want. */
  get entities(): EntityMap {
    return this.merged;
  }

  get owners(): readonly string[] {
    return [...this.byOwner.keys()];
  }

  /**
   * Replaces what an owner wants.
   * @param accept is shown the new union and may throw: then nothing changes
   * @throws CONFLICT when another owner wants one of the entities to be different
   */
  set(owner: string, entities: readonly Entity[], accept: (union: EntityMap) => void): void {
    const wanted = new Map(this.byOwner).set(owner, entityMap(entities));
    const union = merge(wanted);
    accept(union);
    this.byOwner.set(owner, wanted.get(owner)!);
    this.merged = union;
  }

  remove(owner: string): void {
    if (this.byOwner.delete(owner)) this.merged = merge(this.byOwner);
  }
}

function merge(byOwner: ReadonlyMap<string, EntityMap>): EntityMap {
  const union = new Map<string, KnownEntity>();
  const ownerOf = new Map<string, string>();
  for (const [owner, entities] of byOwner)
    for (const [key, known] of entities) {
      const other = union.get(key);
      if (other !== undefined && other.value !== known.value)
        throw new DdfError('CONFLICT', `${ownerOf.get(key)} and ${owner} want different things of one entity`, {
          where: key,
          remedy: 'This is a defect in the controller: report it.',
        });
      union.set(key, known);
      ownerOf.set(key, owner);
    }
  return union;
}
