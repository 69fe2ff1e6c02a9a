import { type Entity, type Update, UpdateType } from '../../wire/p4runtime/messages.ts';
import { type CanonicalEntity, canonicalEntity, ENTITY_KINDS, type EntityKind, isPermanent } from './canonical.ts';

export interface KnownEntity extends CanonicalEntity {
  readonly entity: Entity;
}

/** Entities by their canonical keys. */
export type EntityMap = ReadonlyMap<string, KnownEntity>;

/** Leaves out what the reconciler does not manage. Of equal keys the last one stays. */
export function entityMap(entities: Iterable<Entity>): Map<string, KnownEntity> {
  const map = new Map<string, KnownEntity>();
  for (const entity of entities) {
    const known = knownEntity(entity);
    if (known !== undefined) map.set(known.key, known);
  }
  return map;
}

export interface DiffOptions {
  /** Whether an entity that is there and not desired goes. Default: all go. */
  readonly mayRemove?: (present: KnownEntity) => boolean;
  /** Number of entries that a table has room for, by its id. Default: room for all. */
  readonly tableSize?: (tableId: number) => number;
}

/**
 * What turns `actual` into `desired`: phases to be written one after another, since a switch may reorder within one. What others refer to comes
 * before them and goes after them; the new comes before the old goes, except in tables without room for both at once.
 */
export function planWrites(desired: EntityMap, actual: EntityMap, options: DiffOptions = {}): Update[][] {
  const { mayRemove = () => true, tableSize = () => Number.POSITIVE_INFINITY } = options;
  const added: KnownEntity[] = [];
  const changed: KnownEntity[] = [];
  for (const wanted of desired.values()) {
    const present = actual.get(wanted.key);
    if (present?.value === wanted.value) continue;
    if (present !== undefined || isPermanent(wanted.kind)) changed.push(wanted);
    else added.push(wanted);
  }
  const removed: KnownEntity[] = [];
  for (const present of actual.values()) {
    if (desired.has(present.key) || !mayRemove(present)) continue;
    // Setting it back is a change: there is nothing to delete.
    if (isPermanent(present.kind)) changed.push({ ...present, entity: withoutConfig(present.entity) });
    else removed.push(present);
  }

  const crowded = crowdedTables(actual, added, tableSize);
  const isCrowded = ({ entity }: KnownEntity): boolean => crowded.has(entity.tableEntry?.tableId ?? 0);
  const first = removed.filter(isCrowded);
  const last = removed.filter((known) => !isCrowded(known));
  const phases: Update[][] = [updates(UpdateType.DELETE, first)];
  const [insertions, modifications, deletions] = [added, changed, last].map(byKind);
  for (const kind of ENTITY_KINDS)
    phases.push([
      ...updates(UpdateType.INSERT, insertions!.get(kind)!),
      ...updates(UpdateType.MODIFY, modifications!.get(kind)!),
    ]);
  for (const kind of [...ENTITY_KINDS].reverse()) phases.push(updates(UpdateType.DELETE, deletions!.get(kind)!));
  return phases.filter((phase) => phase.length > 0);
}

/**
 * What a switch holds after updates, all of which it accepted.
 * @param known entities whose texts need not be made again
 */
export function applyUpdates(
  actual: Map<string, KnownEntity>,
  applied: readonly Update[],
  known: ReadonlyMap<Entity, KnownEntity> = new Map(),
): void {
  for (const { type, entity } of applied) {
    if (entity === undefined) continue;
    const one = known.get(entity) ?? knownEntity(entity);
    if (one === undefined) continue;
    if (type === UpdateType.DELETE || isReset(entity)) actual.delete(one.key);
    else actual.set(one.key, one);
  }
}

function knownEntity(entity: Entity): KnownEntity | undefined {
  const canonical = canonicalEntity(entity);
  return canonical && { ...canonical, entity };
}

function byKind(entities: readonly KnownEntity[]): ReadonlyMap<EntityKind, readonly KnownEntity[]> {
  const groups = new Map<EntityKind, KnownEntity[]>(ENTITY_KINDS.map((kind) => [kind, []]));
  for (const known of entities) groups.get(known.kind)!.push(known);
  return groups;
}

function updates(type: UpdateType, known: readonly KnownEntity[]): Update[] {
  return known.map(({ entity }) => ({ type, entity }));
}

/** Tables that cannot hold what they have and what is added at the same time. */
function crowdedTables(
  actual: EntityMap,
  added: readonly KnownEntity[],
  tableSize: (tableId: number) => number,
): ReadonlySet<number> {
  const counts = new Map<number, number>();
  for (const entities of [actual.values(), added])
    for (const { kind, entity } of entities) {
      if (kind !== 'table entry') continue;
      const { tableId } = entity.tableEntry!;
      counts.set(tableId, (counts.get(tableId) ?? 0) + 1);
    }
  return new Set([...counts].filter(([tableId, count]) => count > tableSize(tableId)).map(([tableId]) => tableId));
}

/** A default action back to the program's, a meter back to always green. */
function withoutConfig({ tableEntry, meterEntry }: Entity): Entity {
  if (tableEntry !== undefined) return { tableEntry: { ...tableEntry, action: undefined } };
  return { meterEntry: { ...meterEntry!, config: undefined } };
}

function isReset({ tableEntry, meterEntry }: Entity): boolean {
  if (tableEntry?.isDefaultAction === true) return tableEntry.action === undefined;
  return meterEntry !== undefined && meterEntry.config === undefined;
}
