// Generated from the schemas beside it by `npx tsx scripts/wire-generate.ts`. Do not edit.

/** stratum.P4RoleConfig */
export interface P4RoleConfig {
  exclusiveP4Ids: number[];
  sharedP4Ids: number[];
  packetInFilter?: P4RoleConfigPacketFilter;
  receivesPacketIns: boolean;
  canPushPipeline: boolean;
}

/** stratum.P4RoleConfig.PacketFilter */
export interface P4RoleConfigPacketFilter {
  metadataId: number;
  value: Uint8Array;
}
