import type {
  CounterSpecUnit,
  MeterSpecType,
  MeterSpecUnit,
  P4DataTypeSpec,
  P4NewTypeTranslation,
} from './p4info-messages.ts';

/** What the P4Info index knows about a program: messages of P4Info with their references resolved. */

export interface NamedObject {
  readonly id: number;
  /** Fully qualified: control instances and name. */
  readonly name: string;
  /** The shortest suffix of the name that is unique. */
  readonly alias: string;
}

/** A value of the program: a match field, an action parameter, a field of a controller header. */
export interface FieldInfo {
  readonly id: number;
  readonly name: string;
  /** 0 for values that are translated to strings (@p4runtime_translation). */
  readonly widthBits: number;
  /** Name of the field's P4 type if it has one, as `port_id_t`. */
  readonly typeName: string | undefined;
  /** When controllers see other values than the switch (@p4runtime_translation); `widthBits` is the controllers'. */
  readonly translation: P4NewTypeTranslation | undefined;
}

export type MatchKind = 'exact' | 'lpm' | 'ternary' | 'range' | 'optional';

export interface MatchFieldInfo extends FieldInfo {
  readonly kind: MatchKind;
}

export interface ActionInfo extends NamedObject {
  readonly params: readonly FieldInfo[];
  readonly paramById: ReadonlyMap<number, FieldInfo>;
  readonly paramByName: ReadonlyMap<string, FieldInfo>;
}

/** Where an action of a table may stand. */
export type ActionScope = 'table and default' | 'table only' | 'default only';

export interface TableActionInfo {
  readonly action: ActionInfo;
  readonly scope: ActionScope;
}

export interface TableInfo extends NamedObject {
  readonly size: number;
  readonly fields: readonly MatchFieldInfo[];
  readonly fieldById: ReadonlyMap<number, MatchFieldInfo>;
  readonly fieldByName: ReadonlyMap<string, MatchFieldInfo>;
  readonly actions: readonly TableActionInfo[];
  readonly actionById: ReadonlyMap<number, TableActionInfo>;
  /** Entries have a priority: some key is ternary, range or optional. */
  readonly needsPriority: boolean;
  /** `const entries`. */
  readonly isConst: boolean;
  readonly hasConstDefault: boolean;
  readonly supportsIdleTimeout: boolean;
  readonly profile: ProfileInfo | undefined;
  readonly directCounter: DirectCounterInfo | undefined;
  readonly directMeter: DirectMeterInfo | undefined;
}

export interface ProfileInfo extends NamedObject {
  readonly tableIds: readonly number[];
  readonly withSelector: boolean;
  readonly size: number;
  /** 0: only the size limits groups. */
  readonly maxGroupSize: number;
  /** What `size` and `maxGroupSize` count. */
  readonly sizeSemantics: 'sum of weights' | 'sum of members';
  /** 0: no limit. */
  readonly maxMemberWeight: number;
  readonly weightsDisallowed: boolean;
}

export interface CounterInfo extends NamedObject {
  readonly size: number;
  readonly unit: CounterSpecUnit;
}

export interface DirectCounterInfo extends NamedObject {
  readonly unit: CounterSpecUnit;
  readonly tableId: number;
}

export interface MeterInfo extends NamedObject {
  readonly size: number;
  readonly unit: MeterSpecUnit;
  readonly type: MeterSpecType;
}

export interface DirectMeterInfo extends NamedObject {
  readonly unit: MeterSpecUnit;
  readonly type: MeterSpecType;
  readonly tableId: number;
}

export interface RegisterInfo extends NamedObject {
  readonly size: number;
  readonly type: P4DataTypeSpec | undefined;
}

/** A set of values that the parser selects by: each member has one value per field. */
export interface ValueSetInfo extends NamedObject {
  readonly size: number;
  readonly fields: readonly MatchFieldInfo[];
}

export interface DigestInfo extends NamedObject {
  /** Of one message. */
  readonly type: P4DataTypeSpec | undefined;
}

/** A header that packets to or from the controller carry: packet_in, packet_out. */
export interface ControllerHeaderInfo extends NamedObject {
  readonly fields: readonly FieldInfo[];
}
