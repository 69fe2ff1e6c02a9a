import type { Random } from '../../base/random.ts';
import { encodeBits } from '../../wire/p4runtime/byte-strings.ts';
import type { Action, Entity, FieldMatch, TableAction, TableEntry, Update } from '../../wire/p4runtime/messages.ts';
import { UpdateType } from '../../wire/p4runtime/messages.ts';
import type { ObjectIndex, P4InfoIndex } from '../../wire/p4runtime/p4info-index.ts';
import type { ActionInfo, MatchFieldInfo, NamedObject, TableInfo } from '../../wire/p4runtime/p4info-objects.ts';
import { type MessageInput, messageCodec } from '../../wire/proto.ts';
import { randomBits } from './entries.ts';
import { pick } from './target.ts';

/** Requests that a server which runs this P4Info may well accept. The values are few, so that requests meet each other's entries. */
export class RequestSamples {
  /** All ids of the P4Info. */
  readonly ids: readonly number[];
  private readonly info: P4InfoIndex;
  private readonly tables: readonly TableInfo[];

  constructor(info: P4InfoIndex) {
    this.info = info;
    this.tables = [...info.tables];
    const objects: Iterable<NamedObject>[] = [
      info.tables,
      info.actions,
      info.profiles,
      info.counters,
      info.directCounters,
      info.meters,
      info.directMeters,
      info.registers,
      info.digests,
      info.valueSets,
    ];
    this.ids = objects.flatMap((kind) => [...kind].map(({ id }) => id));
  }

  update(random: Random): Update {
    const type = pick(random, [UpdateType.INSERT, UpdateType.INSERT, UpdateType.MODIFY, UpdateType.DELETE]);
    return { type, entity: this.entity(random) };
  }

  /** For writes; most of them serve as filters of reads as well. */
  entity(random: Random): Entity {
    return entityCodec.decode(entityCodec.encode(this.draft(random)));
  }

  private draft(random: Random): MessageInput<Entity> {
    const { info } = this;
    switch (random.below(14)) {
      case 0:
        return {
          packetReplicationEngineEntry: {
            multicastGroupEntry: { multicastGroupId: 1 + random.below(6), replicas: replicas(random) },
          },
        };
      case 1:
        return {
          packetReplicationEngineEntry: {
            cloneSessionEntry: {
              sessionId: 1 + random.below(6),
              replicas: replicas(random),
              packetLengthBytes: random.below(100),
            },
          },
        };
      case 2:
        return {
          counterEntry: {
            counterId: anyId(random, info.counters),
            ...cell(random),
            data: { byteCount: BigInt(random.below(9)), packetCount: 2n },
          },
        };
      case 3:
        return {
          meterEntry: {
            meterId: anyId(random, info.meters),
            ...cell(random),
            config: { cir: 1n, cburst: 2n, pir: 3n, pburst: 4n },
          },
        };
      case 4:
        return {
          registerEntry: {
            registerId: anyId(random, info.registers),
            ...cell(random),
            data: { bitstring: Uint8Array.from([random.below(256)]) },
          },
        };
      case 5:
        return {
          directCounterEntry: { tableEntry: this.tableEntry(random), data: { byteCount: 1n, packetCount: 1n } },
        };
      case 6:
        return {
          directMeterEntry: {
            tableEntry: this.tableEntry(random),
            config: { cir: 1n, cburst: 1n, pir: 1n, pburst: 1n },
          },
        };
      case 7:
        return {
          digestEntry: {
            digestId: anyId(random, info.digests),
            config: { maxTimeoutNs: 1000n, maxListSize: 4, ackTimeoutNs: 1000n },
          },
        };
      case 8:
        return {
          valueSetEntry: {
            valueSetId: anyId(random, info.valueSets),
            members: [{ match: [{ fieldId: 1, exact: { value: encodeBits(BigInt(random.below(4))) } }] }],
          },
        };
      case 9: {
        const profile = [...info.profiles][0];
        const table = this.tables.find((candidate) => candidate.profile !== undefined);
        const actionProfileId = profile?.id ?? 1;
        if (table === undefined || random.chance(0.4))
          return {
            actionProfileGroup: {
              actionProfileId,
              groupId: 1 + random.below(4),
              maxSize: 4,
              members: [{ memberId: 1 + random.below(4), weight: 1 }],
            },
          };
        return {
          actionProfileMember: { actionProfileId, memberId: 1 + random.below(4), action: this.action(random, table) },
        };
      }
      default:
        return { tableEntry: this.tableEntry(random) };
    }
  }

  tableEntry(random: Random): MessageInput<TableEntry> {
    const table = pick(random, this.tables);
    if (random.chance(0.1))
      return {
        tableId: table.id,
        isDefaultAction: true,
        ...(random.chance(0.3) ? {} : { action: { action: this.action(random, table) } }),
      };
    return {
      tableId: table.id,
      match: table.fields.flatMap((field) => fieldMatch(random, field)),
      priority: table.needsPriority ? 1 + random.below(4) : 0,
      action: this.tableAction(random, table),
    };
  }

  private tableAction(random: Random, table: TableInfo): MessageInput<TableAction> {
    if (table.profile === undefined) return { action: this.action(random, table) };
    if (random.chance(0.3))
      return random.chance(0.5)
        ? { actionProfileMemberId: 1 + random.below(4) }
        : { actionProfileGroupId: 1 + random.below(4) };
    const actionProfileActions = Array.from({ length: 1 + random.below(3) }, () => ({
      action: this.action(random, table),
      weight: 1 + random.below(3),
    }));
    return { actionProfileActionSet: { actionProfileActions } };
  }

  private action(random: Random, table: TableInfo): MessageInput<Action> {
    const { action } = pick(random, table.actions);
    return actionOf(random, action);
  }
}

const entityCodec = messageCodec<Entity>('p4.v1.Entity');

function anyId(random: Random, objects: ObjectIndex<NamedObject>): number {
  const all = [...objects];
  return all.length === 0 ? 1 : pick(random, all).id;
}

function cell(random: Random): { index?: { index: bigint } } {
  return random.chance(0.1) ? {} : { index: { index: BigInt(random.below(6)) } };
}

function replicas(random: Random) {
  return Array.from({ length: random.below(4) }, (_, i) => {
    const port = 1 + random.below(6);
    return random.chance(0.5) ? { egressPort: port, instance: i } : { port: encodeBits(BigInt(port)), instance: i };
  });
}

function actionOf(random: Random, { id, params }: ActionInfo): MessageInput<Action> {
  return {
    actionId: id,
    params: params.map((param) => ({ paramId: param.id, value: encodeBits(randomBits(random, param.widthBits)) })),
  };
}

function fieldMatch(random: Random, { id: fieldId, kind, widthBits }: MatchFieldInfo): MessageInput<FieldMatch>[] {
  const all = (1n << BigInt(widthBits)) - 1n;
  const value = BigInt(random.below(5)) & all;
  switch (kind) {
    case 'exact':
      return [{ fieldId, exact: { value: encodeBits(value) } }];
    case 'lpm': {
      const prefixLen = random.below(widthBits + 1);
      if (prefixLen === 0) return [];
      return [{ fieldId, lpm: { value: encodeBits(value & (all ^ (all >> BigInt(prefixLen)))), prefixLen } }];
    }
    case 'ternary': {
      const mask = random.chance(0.5) ? all : randomBits(random, widthBits);
      return mask === 0n || random.chance(0.3)
        ? []
        : [{ fieldId, ternary: { value: encodeBits(value & mask), mask: encodeBits(mask) } }];
    }
    case 'range': {
      const high = value + BigInt(random.below(3));
      if (high > all || (value === 0n && high === all)) return [];
      return [{ fieldId, range: { low: encodeBits(value), high: encodeBits(high) } }];
    }
    case 'optional':
      return random.chance(0.4) ? [] : [{ fieldId, optional: { value: encodeBits(value) } }];
  }
}
