import { canonicalBits } from '../../wire/p4runtime/byte-strings.ts';
import type { Entity, MasterArbitrationUpdate, PacketMetadata } from '../../wire/p4runtime/messages.ts';
import type { P4RoleConfig } from '../../wire/p4runtime/role-messages.ts';
import { messageCodec, unpackAny } from '../../wire/proto.ts';
import { RpcError } from './rpc-error.ts';

const configCodec = messageCodec<P4RoleConfig>('stratum.P4RoleConfig');

/**
 * What a role may do (P4Runtime 1.5, section "Role Config"): by default everything. With a config it writes, reads and hears of the objects that the
 * config names, and gets the packets that pass its filter.
 */
export class RoleScope {
  private readonly config: P4RoleConfig | undefined;
  readonly exclusive: ReadonlySet<number>;
  private readonly allowed: ReadonlySet<number>;

  constructor(config?: P4RoleConfig) {
    this.config = config;
    this.exclusive = new Set(config?.exclusiveP4Ids);
    this.allowed = new Set([...this.exclusive, ...(config?.sharedP4Ids ?? [])]);
  }

  get canPushPipeline(): boolean {
    return this.config?.canPushPipeline ?? true;
  }

  /** @param id of a P4Info object; `undefined` for entities that belong to none: they are for roles without a config */
  covers(id: number | undefined): boolean {
    return this.config === undefined || (id !== undefined && this.allowed.has(id));
  }

  wantsPacket(metadata: readonly PacketMetadata[]): boolean {
    if (this.config === undefined) return true;
    const filter = this.config.packetInFilter;
    if (!this.config.receivesPacketIns || filter === undefined) return this.config.receivesPacketIns;
    const given = metadata.find(({ metadataId }) => metadataId === filter.metadataId);
    return given !== undefined && Buffer.from(canonicalBits(filter.value)).equals(given.value);
  }

  /** An id that one of the two wants for itself and the other wants too. */
  conflictWith(other: RoleScope): number | undefined {
    for (const id of this.exclusive) if (other.allowed.has(id)) return id;
    for (const id of other.exclusive) if (this.allowed.has(id)) return id;
    return undefined;
  }
}

/** Throws INVALID_ARGUMENT for roles by number and for configs that this switch does not know. */
export function parseRole(role: MasterArbitrationUpdate['role']): { name: string; scope: RoleScope } {
  if (role === undefined) return { name: '', scope: new RoleScope() };
  const { name, config, id } = role;
  if (id !== 0n) throw new RpcError('INVALID_ARGUMENT', `Roles go by name, not by the id ${id}`);
  if (config === undefined) return { name, scope: new RoleScope() };
  if (name === '') throw new RpcError('INVALID_ARGUMENT', 'The default role may do everything, it has no config');
  const decoded = unpackAny(configCodec, config);
  if (decoded === undefined)
    throw new RpcError(
      'INVALID_ARGUMENT',
      `Role ${name}: this switch knows configs of type ${configCodec.fullName}, not ${config.typeUrl}`,
    );
  return { name, scope: new RoleScope(decoded) };
}

/** The P4Info object that an entity belongs to: what roles go by. 0 in reads of all objects of a kind. */
export function objectIdOf(entity: Entity | undefined): number | undefined {
  if (entity === undefined) return undefined;
  return (
    entity.tableEntry?.tableId ??
    entity.directCounterEntry?.tableEntry?.tableId ??
    entity.directMeterEntry?.tableEntry?.tableId ??
    entity.actionProfileMember?.actionProfileId ??
    entity.actionProfileGroup?.actionProfileId ??
    entity.counterEntry?.counterId ??
    entity.meterEntry?.meterId ??
    entity.registerEntry?.registerId ??
    entity.valueSetEntry?.valueSetId ??
    entity.digestEntry?.digestId
  );
}
