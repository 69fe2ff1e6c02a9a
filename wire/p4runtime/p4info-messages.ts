// Generated from the schemas beside it by `npx tsx scripts/wire-generate.ts`. Do not edit.

import type { Any } from './messages.ts';

/** p4.config.v1.P4TypeInfo */
export interface P4TypeInfo {
  structs: Map<string, P4StructTypeSpec>;
  headers: Map<string, P4HeaderTypeSpec>;
  headerUnions: Map<string, P4HeaderUnionTypeSpec>;
  enums: Map<string, P4EnumTypeSpec>;
  error?: P4ErrorTypeSpec;
  serializableEnums: Map<string, P4SerializableEnumTypeSpec>;
  newTypes: Map<string, P4NewTypeSpec>;
}

/** p4.config.v1.P4DataTypeSpec */
export interface P4DataTypeSpec {
  bitstring?: P4BitstringLikeTypeSpec;
  bool?: P4BoolType;
  tuple?: P4TupleTypeSpec;
  struct?: P4NamedType;
  header?: P4NamedType;
  headerUnion?: P4NamedType;
  headerStack?: P4HeaderStackTypeSpec;
  headerUnionStack?: P4HeaderUnionStackTypeSpec;
  enum?: P4NamedType;
  error?: P4ErrorType;
  serializableEnum?: P4NamedType;
  newType?: P4NamedType;
}

/** p4.config.v1.P4NamedType */
export interface P4NamedType {
  name: string;
}

/** p4.config.v1.P4BoolType, which has no fields. */
export type P4BoolType = Record<never, never>;

/** p4.config.v1.P4ErrorType, which has no fields. */
export type P4ErrorType = Record<never, never>;

/** p4.config.v1.P4BitstringLikeTypeSpec */
export interface P4BitstringLikeTypeSpec {
  bit?: P4BitTypeSpec;
  int?: P4IntTypeSpec;
  varbit?: P4VarbitTypeSpec;
  annotations: string[];
  annotationLocations: SourceLocation[];
  structuredAnnotations: StructuredAnnotation[];
}

/** p4.config.v1.P4BitTypeSpec */
export interface P4BitTypeSpec {
  bitwidth: number;
}

/** p4.config.v1.P4IntTypeSpec */
export interface P4IntTypeSpec {
  bitwidth: number;
}

/** p4.config.v1.P4VarbitTypeSpec */
export interface P4VarbitTypeSpec {
  maxBitwidth: number;
}

/** p4.config.v1.P4TupleTypeSpec */
export interface P4TupleTypeSpec {
  members: P4DataTypeSpec[];
}

/** p4.config.v1.P4StructTypeSpec */
export interface P4StructTypeSpec {
  members: P4StructTypeSpecMember[];
  annotations: string[];
  annotationLocations: SourceLocation[];
  structuredAnnotations: StructuredAnnotation[];
}

/** p4.config.v1.P4StructTypeSpec.Member */
export interface P4StructTypeSpecMember {
  name: string;
  typeSpec?: P4DataTypeSpec;
}

/** p4.config.v1.P4HeaderTypeSpec */
export interface P4HeaderTypeSpec {
  members: P4HeaderTypeSpecMember[];
  annotations: string[];
  annotationLocations: SourceLocation[];
  structuredAnnotations: StructuredAnnotation[];
}

/** p4.config.v1.P4HeaderTypeSpec.Member */
export interface P4HeaderTypeSpecMember {
  name: string;
  typeSpec?: P4BitstringLikeTypeSpec;
}

/** p4.config.v1.P4HeaderUnionTypeSpec */
export interface P4HeaderUnionTypeSpec {
  members: P4HeaderUnionTypeSpecMember[];
  annotations: string[];
  annotationLocations: SourceLocation[];
  structuredAnnotations: StructuredAnnotation[];
}

/** p4.config.v1.P4HeaderUnionTypeSpec.Member */
export interface P4HeaderUnionTypeSpecMember {
  name: string;
  header?: P4NamedType;
}

/** p4.config.v1.P4HeaderStackTypeSpec */
export interface P4HeaderStackTypeSpec {
  header?: P4NamedType;
  size: number;
}

/** p4.config.v1.P4HeaderUnionStackTypeSpec */
export interface P4HeaderUnionStackTypeSpec {
  headerUnion?: P4NamedType;
  size: number;
}

/** p4.config.v1.KeyValuePair */
export interface KeyValuePair {
  key: string;
  value?: Expression;
}

/** p4.config.v1.KeyValuePairList */
export interface KeyValuePairList {
  kvPairs: KeyValuePair[];
}

/** p4.config.v1.Expression */
export interface Expression {
  stringValue?: string;
  int64Value?: bigint;
  boolValue?: boolean;
}

/** p4.config.v1.ExpressionList */
export interface ExpressionList {
  expressions: Expression[];
}

/** p4.config.v1.StructuredAnnotation */
export interface StructuredAnnotation {
  name: string;
  expressionList?: ExpressionList;
  kvPairList?: KeyValuePairList;
  sourceLocation?: SourceLocation;
}

/** p4.config.v1.SourceLocation */
export interface SourceLocation {
  file: string;
  line: number;
  column: number;
}

/** p4.config.v1.P4EnumTypeSpec */
export interface P4EnumTypeSpec {
  members: P4EnumTypeSpecMember[];
  annotations: string[];
  structuredAnnotations: StructuredAnnotation[];
  annotationLocations: SourceLocation[];
}

/** p4.config.v1.P4EnumTypeSpec.Member */
export interface P4EnumTypeSpecMember {
  name: string;
  annotations: string[];
  structuredAnnotations: StructuredAnnotation[];
  annotationLocations: SourceLocation[];
}

/** p4.config.v1.P4SerializableEnumTypeSpec */
export interface P4SerializableEnumTypeSpec {
  underlyingType?: P4BitTypeSpec;
  members: P4SerializableEnumTypeSpecMember[];
  annotations: string[];
  structuredAnnotations: StructuredAnnotation[];
  annotationLocations: SourceLocation[];
}

/** p4.config.v1.P4SerializableEnumTypeSpec.Member */
export interface P4SerializableEnumTypeSpecMember {
  name: string;
  value: Uint8Array;
  annotations: string[];
  structuredAnnotations: StructuredAnnotation[];
  annotationLocations: SourceLocation[];
}

/** p4.config.v1.P4ErrorTypeSpec */
export interface P4ErrorTypeSpec {
  members: string[];
}

/** p4.config.v1.P4NewTypeTranslation */
export interface P4NewTypeTranslation {
  uri: string;
  sdnBitwidth?: number;
  sdnString?: P4NewTypeTranslationSdnString;
}

/** p4.config.v1.P4NewTypeTranslation.SdnString, which has no fields. */
export type P4NewTypeTranslationSdnString = Record<never, never>;

/** p4.config.v1.P4NewTypeSpec */
export interface P4NewTypeSpec {
  originalType?: P4DataTypeSpec;
  translatedType?: P4NewTypeTranslation;
  annotations: string[];
  structuredAnnotations: StructuredAnnotation[];
  annotationLocations: SourceLocation[];
}

/** p4.config.v1.P4Info */
export interface P4Info {
  pkgInfo?: PkgInfo;
  tables: Table[];
  actions: Action[];
  actionProfiles: ActionProfile[];
  counters: Counter[];
  directCounters: DirectCounter[];
  meters: Meter[];
  directMeters: DirectMeter[];
  controllerPacketMetadata: ControllerPacketMetadata[];
  valueSets: ValueSet[];
  registers: Register[];
  digests: Digest[];
  externs: Extern[];
  typeInfo?: P4TypeInfo;
}

/** p4.config.v1.Documentation */
export interface Documentation {
  brief: string;
  description: string;
}

/** p4.config.v1.PlatformProperties */
export interface PlatformProperties {
  multicastGroupTableSize: number;
  multicastGroupTableTotalReplicas: number;
  multicastGroupTableMaxReplicasPerEntry: number;
}

/** p4.config.v1.PkgInfo */
export interface PkgInfo {
  name: string;
  version: string;
  doc?: Documentation;
  annotations: string[];
  arch: string;
  organization: string;
  contact: string;
  url: string;
  structuredAnnotations: StructuredAnnotation[];
  annotationLocations: SourceLocation[];
  platformProperties?: PlatformProperties;
}

/** p4.config.v1.P4Ids, which has no fields. */
export type P4Ids = Record<never, never>;

/** p4.config.v1.P4Ids.Prefix */
export const P4IdsPrefix = {
  UNSPECIFIED: 0,
  ACTION: 1,
  TABLE: 2,
  VALUE_SET: 3,
  CONTROLLER_HEADER: 4,
  PSA_EXTERNS_START: 16,
  ACTION_PROFILE: 17,
  COUNTER: 18,
  DIRECT_COUNTER: 19,
  METER: 20,
  DIRECT_METER: 21,
  REGISTER: 22,
  DIGEST: 23,
  OTHER_EXTERNS_START: 128,
  MAX: 255,
} as const;
export type P4IdsPrefix = number;

/** p4.config.v1.Preamble */
export interface Preamble {
  id: number;
  name: string;
  alias: string;
  annotations: string[];
  doc?: Documentation;
  structuredAnnotations: StructuredAnnotation[];
  annotationLocations: SourceLocation[];
}

/** p4.config.v1.Extern */
export interface Extern {
  externTypeId: number;
  externTypeName: string;
  instances: ExternInstance[];
}

/** p4.config.v1.ExternInstance */
export interface ExternInstance {
  preamble?: Preamble;
  info?: Any;
}

/** p4.config.v1.MatchField */
export interface MatchField {
  id: number;
  name: string;
  annotations: string[];
  bitwidth: number;
  matchType?: MatchFieldMatchType;
  doc?: Documentation;
  otherMatchType?: string;
  typeName?: P4NamedType;
  structuredAnnotations: StructuredAnnotation[];
  annotationLocations: SourceLocation[];
}

/** p4.config.v1.MatchField.MatchType */
export const MatchFieldMatchType = {
  UNSPECIFIED: 0,
  EXACT: 2,
  LPM: 3,
  TERNARY: 4,
  RANGE: 5,
  OPTIONAL: 6,
} as const;
export type MatchFieldMatchType = number;

/** p4.config.v1.TableActionCall */
export interface TableActionCall {
  actionId: number;
  arguments: TableActionCallArgument[];
}

/** p4.config.v1.TableActionCall.Argument */
export interface TableActionCallArgument {
  paramId: number;
  value: Uint8Array;
}

/** p4.config.v1.Table */
export interface Table {
  preamble?: Preamble;
  matchFields: MatchField[];
  actionRefs: ActionRef[];
  constDefaultActionId: number;
  initialDefaultAction?: TableActionCall;
  implementationId: number;
  directResourceIds: number[];
  size: bigint;
  idleTimeoutBehavior: TableIdleTimeoutBehavior;
  isConstTable: boolean;
  hasInitialEntries: boolean;
  otherProperties?: Any;
}

/** p4.config.v1.Table.IdleTimeoutBehavior */
export const TableIdleTimeoutBehavior = {
  NO_TIMEOUT: 0,
  NOTIFY_CONTROL: 1,
} as const;
export type TableIdleTimeoutBehavior = number;

/** p4.config.v1.ActionRef */
export interface ActionRef {
  id: number;
  annotations: string[];
  scope: ActionRefScope;
  structuredAnnotations: StructuredAnnotation[];
  annotationLocations: SourceLocation[];
}

/** p4.config.v1.ActionRef.Scope */
export const ActionRefScope = {
  TABLE_AND_DEFAULT: 0,
  TABLE_ONLY: 1,
  DEFAULT_ONLY: 2,
} as const;
export type ActionRefScope = number;

/** p4.config.v1.Action */
export interface Action {
  preamble?: Preamble;
  params: ActionParam[];
}

/** p4.config.v1.Action.Param */
export interface ActionParam {
  id: number;
  name: string;
  annotations: string[];
  bitwidth: number;
  doc?: Documentation;
  typeName?: P4NamedType;
  structuredAnnotations: StructuredAnnotation[];
  annotationLocations: SourceLocation[];
}

/** p4.config.v1.ActionProfile */
export interface ActionProfile {
  preamble?: Preamble;
  tableIds: number[];
  withSelector: boolean;
  size: bigint;
  maxGroupSize: number;
  sumOfWeights?: ActionProfileSumOfWeights;
  sumOfMembers?: ActionProfileSumOfMembers;
  weightsDisallowed: boolean;
}

/** p4.config.v1.ActionProfile.SumOfWeights, which has no fields. */
export type ActionProfileSumOfWeights = Record<never, never>;

/** p4.config.v1.ActionProfile.SumOfMembers */
export interface ActionProfileSumOfMembers {
  maxMemberWeight: number;
}

/** p4.config.v1.CounterSpec */
export interface CounterSpec {
  unit: CounterSpecUnit;
}

/** p4.config.v1.CounterSpec.Unit */
export const CounterSpecUnit = {
  UNSPECIFIED: 0,
  BYTES: 1,
  PACKETS: 2,
  BOTH: 3,
} as const;
export type CounterSpecUnit = number;

/** p4.config.v1.Counter */
export interface Counter {
  preamble?: Preamble;
  spec?: CounterSpec;
  size: bigint;
  indexTypeName?: P4NamedType;
}

/** p4.config.v1.DirectCounter */
export interface DirectCounter {
  preamble?: Preamble;
  spec?: CounterSpec;
  directTableId: number;
}

/** p4.config.v1.MeterSpec */
export interface MeterSpec {
  unit: MeterSpecUnit;
  type: MeterSpecType;
}

/** p4.config.v1.MeterSpec.Unit */
export const MeterSpecUnit = {
  UNSPECIFIED: 0,
  BYTES: 1,
  PACKETS: 2,
} as const;
export type MeterSpecUnit = number;

/** p4.config.v1.MeterSpec.Type */
export const MeterSpecType = {
  TWO_RATE_THREE_COLOR: 0,
  SINGLE_RATE_THREE_COLOR: 1,
  SINGLE_RATE_TWO_COLOR: 2,
} as const;
export type MeterSpecType = number;

/** p4.config.v1.Meter */
export interface Meter {
  preamble?: Preamble;
  spec?: MeterSpec;
  size: bigint;
  indexTypeName?: P4NamedType;
}

/** p4.config.v1.DirectMeter */
export interface DirectMeter {
  preamble?: Preamble;
  spec?: MeterSpec;
  directTableId: number;
}

/** p4.config.v1.ControllerPacketMetadata */
export interface ControllerPacketMetadata {
  preamble?: Preamble;
  metadata: ControllerPacketMetadataMetadata[];
}

/** p4.config.v1.ControllerPacketMetadata.Metadata */
export interface ControllerPacketMetadataMetadata {
  id: number;
  name: string;
  annotations: string[];
  bitwidth: number;
  typeName?: P4NamedType;
  structuredAnnotations: StructuredAnnotation[];
  annotationLocations: SourceLocation[];
}

/** p4.config.v1.ValueSet */
export interface ValueSet {
  preamble?: Preamble;
  match: MatchField[];
  size: number;
}

/** p4.config.v1.Register */
export interface Register {
  preamble?: Preamble;
  typeSpec?: P4DataTypeSpec;
  size: number;
  indexTypeName?: P4NamedType;
}

/** p4.config.v1.Digest */
export interface Digest {
  preamble?: Preamble;
  typeSpec?: P4DataTypeSpec;
}
