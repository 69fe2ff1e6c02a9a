// Generated from the schemas beside it by `npx tsx scripts/wire-generate.ts`. Do not edit.

import type { P4Info } from './p4info-messages.ts';

/** google.protobuf.Any */
export interface Any {
  typeUrl: string;
  value: Uint8Array;
}

/** google.rpc.Status */
export interface Status {
  code: number;
  message: string;
  details: Any[];
}

/** p4.v1.P4Data */
export interface P4Data {
  bitstring?: Uint8Array;
  varbit?: P4Varbit;
  bool?: boolean;
  tuple?: P4StructLike;
  struct?: P4StructLike;
  header?: P4Header;
  headerUnion?: P4HeaderUnion;
  headerStack?: P4HeaderStack;
  headerUnionStack?: P4HeaderUnionStack;
  enum?: string;
  error?: string;
  enumValue?: Uint8Array;
}

/** p4.v1.P4Varbit */
export interface P4Varbit {
  bitstring: Uint8Array;
  bitwidth: number;
}

/** p4.v1.P4StructLike */
export interface P4StructLike {
  members: P4Data[];
}

/** p4.v1.P4Header */
export interface P4Header {
  isValid: boolean;
  bitstrings: Uint8Array[];
}

/** p4.v1.P4HeaderUnion */
export interface P4HeaderUnion {
  validHeaderName: string;
  validHeader?: P4Header;
}

/** p4.v1.P4HeaderStack */
export interface P4HeaderStack {
  entries: P4Header[];
}

/** p4.v1.P4HeaderUnionStack */
export interface P4HeaderUnionStack {
  entries: P4HeaderUnion[];
}

/** p4.v1.Entity */
export interface Entity {
  externEntry?: ExternEntry;
  tableEntry?: TableEntry;
  actionProfileMember?: ActionProfileMember;
  actionProfileGroup?: ActionProfileGroup;
  meterEntry?: MeterEntry;
  directMeterEntry?: DirectMeterEntry;
  counterEntry?: CounterEntry;
  directCounterEntry?: DirectCounterEntry;
  packetReplicationEngineEntry?: PacketReplicationEngineEntry;
  valueSetEntry?: ValueSetEntry;
  registerEntry?: RegisterEntry;
  digestEntry?: DigestEntry;
}

/** p4.v1.ExternEntry */
export interface ExternEntry {
  externTypeId: number;
  externId: number;
  entry?: Any;
}

/** p4.v1.TableEntry */
export interface TableEntry {
  tableId: number;
  match: FieldMatch[];
  action?: TableAction;
  priority: number;
  controllerMetadata: bigint;
  meterConfig?: MeterConfig;
  counterData?: CounterData;
  isDefaultAction: boolean;
  idleTimeoutNs: bigint;
  timeSinceLastHit?: TableEntryIdleTimeout;
  metadata: Uint8Array;
  meterCounterData?: MeterCounterData;
  isConst: boolean;
}

/** p4.v1.TableEntry.IdleTimeout */
export interface TableEntryIdleTimeout {
  elapsedNs: bigint;
}

/** p4.v1.FieldMatch */
export interface FieldMatch {
  fieldId: number;
  exact?: FieldMatchExact;
  ternary?: FieldMatchTernary;
  lpm?: FieldMatchLPM;
  range?: FieldMatchRange;
  optional?: FieldMatchOptional;
  other?: Any;
}

/** p4.v1.FieldMatch.Exact */
export interface FieldMatchExact {
  value: Uint8Array;
}

/** p4.v1.FieldMatch.Ternary */
export interface FieldMatchTernary {
  value: Uint8Array;
  mask: Uint8Array;
}

/** p4.v1.FieldMatch.LPM */
export interface FieldMatchLPM {
  value: Uint8Array;
  prefixLen: number;
}

/** p4.v1.FieldMatch.Range */
export interface FieldMatchRange {
  low: Uint8Array;
  high: Uint8Array;
}

/** p4.v1.FieldMatch.Optional */
export interface FieldMatchOptional {
  value: Uint8Array;
}

/** p4.v1.TableAction */
export interface TableAction {
  action?: Action;
  actionProfileMemberId?: number;
  actionProfileGroupId?: number;
  actionProfileActionSet?: ActionProfileActionSet;
}

/** p4.v1.Action */
export interface Action {
  actionId: number;
  params: ActionParam[];
}

/** p4.v1.Action.Param */
export interface ActionParam {
  paramId: number;
  value: Uint8Array;
}

/** p4.v1.ActionProfileActionSet */
export interface ActionProfileActionSet {
  actionProfileActions: ActionProfileAction[];
  actionSelectionMode: ActionProfileActionSetActionSelectionMode;
  sizeSemantics: ActionProfileActionSetSizeSemantics;
}

/** p4.v1.ActionProfileActionSet.ActionSelectionMode */
export const ActionProfileActionSetActionSelectionMode = {
  DEFAULT_MODE_DETERMINED_BY_ACTION_SELECTOR: 0,
  HASH: 1,
  RANDOM: 2,
} as const;
export type ActionProfileActionSetActionSelectionMode = number;

/** p4.v1.ActionProfileActionSet.SizeSemantics */
export const ActionProfileActionSetSizeSemantics = {
  DEFAULT_SIZE_DETERMINED_BY_ACTION_SELECTOR: 0,
  SUM_OF_WEIGHTS: 1,
  SUM_OF_MEMBERS: 2,
} as const;
export type ActionProfileActionSetSizeSemantics = number;

/** p4.v1.ActionProfileAction */
export interface ActionProfileAction {
  action?: Action;
  weight: number;
  watch?: number;
  watchPort?: Uint8Array;
}

/** p4.v1.ActionProfileMember */
export interface ActionProfileMember {
  actionProfileId: number;
  memberId: number;
  action?: Action;
}

/** p4.v1.ActionProfileGroup */
export interface ActionProfileGroup {
  actionProfileId: number;
  groupId: number;
  members: ActionProfileGroupMember[];
  maxSize: number;
}

/** p4.v1.ActionProfileGroup.Member */
export interface ActionProfileGroupMember {
  memberId: number;
  weight: number;
  watch?: number;
  watchPort?: Uint8Array;
}

/** p4.v1.Index */
export interface Index {
  index: bigint;
}

/** p4.v1.MeterEntry */
export interface MeterEntry {
  meterId: number;
  index?: Index;
  config?: MeterConfig;
  counterData?: MeterCounterData;
}

/** p4.v1.DirectMeterEntry */
export interface DirectMeterEntry {
  tableEntry?: TableEntry;
  config?: MeterConfig;
  counterData?: MeterCounterData;
}

/** p4.v1.MeterConfig */
export interface MeterConfig {
  cir: bigint;
  cburst: bigint;
  pir: bigint;
  pburst: bigint;
  eburst: bigint;
}

/** p4.v1.CounterEntry */
export interface CounterEntry {
  counterId: number;
  index?: Index;
  data?: CounterData;
}

/** p4.v1.DirectCounterEntry */
export interface DirectCounterEntry {
  tableEntry?: TableEntry;
  data?: CounterData;
}

/** p4.v1.CounterData */
export interface CounterData {
  byteCount: bigint;
  packetCount: bigint;
}

/** p4.v1.MeterCounterData */
export interface MeterCounterData {
  green?: CounterData;
  yellow?: CounterData;
  red?: CounterData;
}

/** p4.v1.PacketReplicationEngineEntry */
export interface PacketReplicationEngineEntry {
  multicastGroupEntry?: MulticastGroupEntry;
  cloneSessionEntry?: CloneSessionEntry;
}

/** p4.v1.BackupReplica */
export interface BackupReplica {
  port: Uint8Array;
  instance: number;
}

/** p4.v1.Replica */
export interface Replica {
  egressPort?: number;
  instance: number;
  port?: Uint8Array;
  backupReplicas: BackupReplica[];
}

/** p4.v1.MulticastGroupEntry */
export interface MulticastGroupEntry {
  multicastGroupId: number;
  replicas: Replica[];
  metadata: Uint8Array;
}

/** p4.v1.CloneSessionEntry */
export interface CloneSessionEntry {
  sessionId: number;
  replicas: Replica[];
  classOfService: number;
  packetLengthBytes: number;
}

/** p4.v1.ValueSetMember */
export interface ValueSetMember {
  match: FieldMatch[];
}

/** p4.v1.ValueSetEntry */
export interface ValueSetEntry {
  valueSetId: number;
  members: ValueSetMember[];
}

/** p4.v1.RegisterEntry */
export interface RegisterEntry {
  registerId: number;
  index?: Index;
  data?: P4Data;
}

/** p4.v1.DigestEntry */
export interface DigestEntry {
  digestId: number;
  config?: DigestEntryConfig;
}

/** p4.v1.DigestEntry.Config */
export interface DigestEntryConfig {
  maxTimeoutNs: bigint;
  maxListSize: number;
  ackTimeoutNs: bigint;
}

/** p4.v1.WriteRequest */
export interface WriteRequest {
  deviceId: bigint;
  roleId: bigint;
  electionId?: Uint128;
  updates: Update[];
  atomicity: WriteRequestAtomicity;
  role: string;
}

/** p4.v1.WriteRequest.Atomicity */
export const WriteRequestAtomicity = {
  CONTINUE_ON_ERROR: 0,
  ROLLBACK_ON_ERROR: 1,
  DATAPLANE_ATOMIC: 2,
} as const;
export type WriteRequestAtomicity = number;

/** p4.v1.WriteResponse, which has no fields. */
export type WriteResponse = Record<never, never>;

/** p4.v1.ReadRequest */
export interface ReadRequest {
  deviceId: bigint;
  entities: Entity[];
  role: string;
}

/** p4.v1.ReadResponse */
export interface ReadResponse {
  entities: Entity[];
}

/** p4.v1.Update */
export interface Update {
  type: UpdateType;
  entity?: Entity;
}

/** p4.v1.Update.Type */
export const UpdateType = {
  UNSPECIFIED: 0,
  INSERT: 1,
  MODIFY: 2,
  DELETE: 3,
} as const;
export type UpdateType = number;

/** p4.v1.StreamMessageRequest */
export interface StreamMessageRequest {
  arbitration?: MasterArbitrationUpdate;
  packet?: PacketOut;
  digestAck?: DigestListAck;
  other?: Any;
}

/** p4.v1.StreamMessageResponse */
export interface StreamMessageResponse {
  arbitration?: MasterArbitrationUpdate;
  packet?: PacketIn;
  digest?: DigestList;
  idleTimeoutNotification?: IdleTimeoutNotification;
  other?: Any;
  error?: StreamError;
}

/** p4.v1.PacketMetadata */
export interface PacketMetadata {
  metadataId: number;
  value: Uint8Array;
}

/** p4.v1.PacketOut */
export interface PacketOut {
  payload: Uint8Array;
  metadata: PacketMetadata[];
}

/** p4.v1.PacketIn */
export interface PacketIn {
  payload: Uint8Array;
  metadata: PacketMetadata[];
}

/** p4.v1.DigestListAck */
export interface DigestListAck {
  digestId: number;
  listId: bigint;
}

/** p4.v1.DigestList */
export interface DigestList {
  digestId: number;
  listId: bigint;
  data: P4Data[];
  timestamp: bigint;
}

/** p4.v1.MasterArbitrationUpdate */
export interface MasterArbitrationUpdate {
  deviceId: bigint;
  role?: Role;
  electionId?: Uint128;
  status?: Status;
}

/** p4.v1.Role */
export interface Role {
  id: bigint;
  config?: Any;
  name: string;
}

/** p4.v1.IdleTimeoutNotification */
export interface IdleTimeoutNotification {
  tableEntry: TableEntry[];
  timestamp: bigint;
}

/** p4.v1.StreamError */
export interface StreamError {
  canonicalCode: number;
  message: string;
  space: string;
  code: number;
  packetOut?: PacketOutError;
  digestListAck?: DigestListAckError;
  other?: StreamOtherError;
}

/** p4.v1.PacketOutError */
export interface PacketOutError {
  packetOut?: PacketOut;
}

/** p4.v1.DigestListAckError */
export interface DigestListAckError {
  digestListAck?: DigestListAck;
}

/** p4.v1.StreamOtherError */
export interface StreamOtherError {
  other?: Any;
}

/** p4.v1.Uint128 */
export interface Uint128 {
  high: bigint;
  low: bigint;
}

/** p4.v1.SetForwardingPipelineConfigRequest */
export interface SetForwardingPipelineConfigRequest {
  deviceId: bigint;
  roleId: bigint;
  electionId?: Uint128;
  action: SetForwardingPipelineConfigRequestAction;
  config?: ForwardingPipelineConfig;
  role: string;
}

/** p4.v1.SetForwardingPipelineConfigRequest.Action */
export const SetForwardingPipelineConfigRequestAction = {
  UNSPECIFIED: 0,
  VERIFY: 1,
  VERIFY_AND_SAVE: 2,
  VERIFY_AND_COMMIT: 3,
  COMMIT: 4,
  RECONCILE_AND_COMMIT: 5,
} as const;
export type SetForwardingPipelineConfigRequestAction = number;

/** p4.v1.SetForwardingPipelineConfigResponse, which has no fields. */
export type SetForwardingPipelineConfigResponse = Record<never, never>;

/** p4.v1.ForwardingPipelineConfig */
export interface ForwardingPipelineConfig {
  p4info?: P4Info;
  p4DeviceConfig: Uint8Array;
  cookie?: ForwardingPipelineConfigCookie;
}

/** p4.v1.ForwardingPipelineConfig.Cookie */
export interface ForwardingPipelineConfigCookie {
  cookie: bigint;
}

/** p4.v1.GetForwardingPipelineConfigRequest */
export interface GetForwardingPipelineConfigRequest {
  deviceId: bigint;
  responseType: GetForwardingPipelineConfigRequestResponseType;
}

/** p4.v1.GetForwardingPipelineConfigRequest.ResponseType */
export const GetForwardingPipelineConfigRequestResponseType = {
  ALL: 0,
  COOKIE_ONLY: 1,
  P4INFO_AND_COOKIE: 2,
  DEVICE_CONFIG_AND_COOKIE: 3,
} as const;
export type GetForwardingPipelineConfigRequestResponseType = number;

/** p4.v1.GetForwardingPipelineConfigResponse */
export interface GetForwardingPipelineConfigResponse {
  config?: ForwardingPipelineConfig;
}

/** p4.v1.Error */
export interface P4Error {
  canonicalCode: number;
  message: string;
  space: string;
  code: number;
  details?: Any;
}

/** p4.v1.SdnPort */
export const SdnPort = {
  SDN_PORT_UNKNOWN: 0,
  SDN_PORT_MIN: 1,
  SDN_PORT_MAX: -257,
  SDN_PORT_RECIRCULATE: -6,
  SDN_PORT_CPU: -3,
} as const;
export type SdnPort = number;

/** p4.v1.CapabilitiesRequest */
export interface CapabilitiesRequest {
  deviceId: bigint;
}

/** p4.v1.CapabilitiesResponse */
export interface CapabilitiesResponse {
  p4runtimeApiVersion: string;
  experimental?: Any;
}
