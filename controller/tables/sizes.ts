import { DdfError } from '../../base/errors.ts';
import type { Entity } from '../../wire/p4runtime/messages.ts';
import type { P4InfoIndex } from '../../wire/p4runtime/p4info-index.ts';

/**
 * Checks that a switch has room for all of these entities together, by the sizes that its P4Info guarantees.
 * @throws TABLE_FULL naming table or selector, size and what was wanted
 */
export function checkSizes(index: P4InfoIndex, entities: Iterable<Entity>, switchName: string): void {
  const entries = new Map<number, number>();
  const members = new Map<number, number>();
  let multicastGroups = 0;
  const add = (counts: Map<number, number>, id: number, count: number): void => {
    counts.set(id, (counts.get(id) ?? 0) + count);
  };
  for (const { tableEntry, packetReplicationEngineEntry: replication } of entities) {
    if (replication?.multicastGroupEntry !== undefined) multicastGroups++;
    if (tableEntry === undefined || tableEntry.isDefaultAction) continue;
    add(entries, tableEntry.tableId, 1);
    const set = tableEntry.action?.actionProfileActionSet?.actionProfileActions;
    const profile = index.tables.get(tableEntry.tableId)?.profile;
    if (set === undefined || profile === undefined) continue;
    const size =
      profile.sizeSemantics === 'sum of members' ? set.length : set.reduce((sum, { weight }) => sum + weight, 0);
    if (profile.maxGroupSize > 0 && size > profile.maxGroupSize)
      throw full(switchName, `a group of action selector ${profile.alias}`, profile.maxGroupSize, size);
    add(members, profile.id, size);
  }
  for (const [id, wanted] of entries) {
    const table = index.tables.require(id);
    if (wanted > table.size) throw full(switchName, `table ${table.alias}`, table.size, wanted);
  }
  for (const [id, wanted] of members) {
    const profile = index.profiles.require(id);
    if (wanted > profile.size) throw full(switchName, `action selector ${profile.alias}`, profile.size, wanted);
  }
  const groups = index.p4Info.pkgInfo?.platformProperties?.multicastGroupTableSize ?? 0;
  if (groups > 0 && multicastGroups > groups)
    throw full(switchName, 'the table of multicast groups', groups, multicastGroups);
}

function full(switchName: string, what: string, size: number, wanted: number): DdfError {
  return new DdfError('TABLE_FULL', `${what} has room for ${size}, ${wanted} are wanted; nothing was written`, {
    where: `switch ${switchName}`,
    remedy: 'Run fewer transfers at a time, or raise the size in p4/sizes.p4.',
  });
}
