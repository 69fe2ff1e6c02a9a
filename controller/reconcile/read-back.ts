import { DdfError } from '../../base/errors.ts';
import type { Entity, TableEntry } from '../../wire/p4runtime/messages.ts';
import type { P4InfoIndex } from '../../wire/p4runtime/p4info-index.ts';
import type { MessageInput } from '../../wire/proto.ts';
import type { SwitchConnection } from '../p4runtime/connection.ts';
import { canonicalEntity } from './canonical.ts';
import { type EntityMap, entityMap, type KnownEntity } from './diff.ts';

type Filter = MessageInput<Entity>;

/**
 * Reads what a switch holds, as far as a reconciler may have to change it: all tables, groups and sessions, and the defaults and meters that it wants or
 * has set. Switches differ in what they let be read, and how: what one refuses is asked for in smaller pieces, and what comes is filtered again, since
 * a read without match is ambiguous (P4Runtime 1.5, "Wildcard Reads").
 */
export class ReadBack {
  private readonly connection: Pick<SwitchConnection, 'read'>;
  private readonly index: P4InfoIndex;
  /** Whether the switch refused to answer everything in one call. */
  private inPieces = false;

  constructor(connection: Pick<SwitchConnection, 'read'>, index: P4InfoIndex) {
    this.connection = connection;
    this.index = index;
  }

  /**
   * @param own entities that may be on the switch because we want them, or wanted them
   * @throws SWITCH_UNREACHABLE, NOT_PRIMARY, or SWITCH_REJECTED when a table cannot be read
   */
  async read(own: EntityMap): Promise<Map<string, KnownEntity>> {
    const entities = this.inPieces ? await this.readInPieces(own) : await this.readAtOnce(own);
    return entityMap(entities.filter((entity) => this.isOurs(entity, own)));
  }

  /** Another switch may be behind the connection now. */
  forget(): void {
    this.inPieces = false;
  }

  private async readAtOnce(own: EntityMap): Promise<Entity[]> {
    try {
      return await this.connection.read([
        ...this.tableFilters(),
        ALL_GROUPS,
        ALL_SESSIONS,
        ...[...own.values()].flatMap(permanentFilter),
      ]);
    } catch (error) {
      if (!isRefusal(error)) throw error;
      this.inPieces = true;
      return this.readInPieces(own);
    }
  }

  private async readInPieces(own: EntityMap): Promise<Entity[]> {
    const known = [...own.values()];
    // Without knowing what is in a table nothing can be done for it.
    const pieces: Entity[][] = [];
    for (const filter of this.tableFilters()) pieces.push(await this.connection.read([filter]));
    const ofKind = (kind: KnownEntity['kind']): Filter[] =>
      known.filter((entity) => entity.kind === kind).map(({ entity }) => replicationFilter(entity));
    pieces.push((await this.tryRead(ALL_GROUPS)) ?? (await this.readEach(ofKind('multicast group'))));
    pieces.push((await this.tryRead(ALL_SESSIONS)) ?? (await this.readEach(ofKind('clone session'))));
    pieces.push(await this.readEach(known.flatMap(permanentFilter)));
    return pieces.flat();
  }

  private tableFilters(): Filter[] {
    return [...this.index.tables]
      .filter((table) => !table.isConst && table.fields.length > 0)
      .map((table) => ({ tableEntry: { tableId: table.id } }));
  }

  /** What the switch does not show is taken for absent: writing it tells more. */
  private async readEach(filters: readonly Filter[]): Promise<Entity[]> {
    const pieces: Entity[][] = [];
    for (const filter of filters) pieces.push((await this.tryRead(filter)) ?? []);
    return pieces.flat();
  }

  private async tryRead(filter: Filter): Promise<Entity[] | undefined> {
    try {
      return await this.connection.read([filter]);
    } catch (error) {
      if (isRefusal(error)) return undefined;
      throw error;
    }
  }

  /** Whether the entity is one that was asked for. */
  private isOurs(entity: Entity, own: EntityMap): boolean {
    const canonical = canonicalEntity(entity);
    if (canonical === undefined) return false;
    if (canonical.kind === 'default action' || canonical.kind === 'meter') return own.has(canonical.key);
    return entity.tableEntry === undefined || this.isEntry(entity.tableEntry);
  }

  /** Some switches list the default entry among the others, without saying so. */
  private isEntry({ tableId, match, priority, action, isConst }: TableEntry): boolean {
    const table = this.index.tables.get(tableId);
    if (table === undefined || isConst) return false;
    if (match.length > 0) return true;
    if (action === undefined || table.fields.some(({ kind }) => kind === 'exact')) return false;
    const call = action.action;
    const onlyDefault = call !== undefined && table.actionById.get(call.actionId)?.scope === 'default only';
    return !onlyDefault && (!table.needsPriority || priority > 0);
  }
}

const ALL_GROUPS: Filter = { packetReplicationEngineEntry: { multicastGroupEntry: { multicastGroupId: 0 } } };
const ALL_SESSIONS: Filter = { packetReplicationEngineEntry: { cloneSessionEntry: { sessionId: 0 } } };

function replicationFilter({ packetReplicationEngineEntry: replication }: Entity): Filter {
  const { multicastGroupEntry: group, cloneSessionEntry: session } = replication!;
  return {
    packetReplicationEngineEntry:
      group === undefined
        ? { cloneSessionEntry: { sessionId: session!.sessionId } }
        : { multicastGroupEntry: { multicastGroupId: group.multicastGroupId } },
  };
}

/** Of entities that are always there, one of many is asked for. */
function permanentFilter({ kind, entity: { tableEntry, meterEntry } }: KnownEntity): Filter[] {
  if (kind === 'default action') return [{ tableEntry: { tableId: tableEntry!.tableId, isDefaultAction: true } }];
  if (kind === 'meter') return [{ meterEntry: { meterId: meterEntry!.meterId, index: meterEntry!.index } }];
  return [];
}

/** Whether a switch that can be reached does not do what it was asked for. */
function isRefusal(error: unknown): boolean {
  return error instanceof DdfError && error.code === 'SWITCH_REJECTED';
}
