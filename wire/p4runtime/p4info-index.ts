import { DdfError } from '../../base/errors.ts';
import {
  type Action,
  type ActionProfile,
  ActionRefScope,
  type MatchField,
  MatchFieldMatchType,
  P4IdsPrefix,
  type P4Info,
  type P4NamedType,
  type Preamble,
  type Table,
  TableIdleTimeoutBehavior,
} from './p4info-messages.ts';
import type {
  ActionInfo,
  ActionScope,
  ControllerHeaderInfo,
  CounterInfo,
  DigestInfo,
  DirectCounterInfo,
  DirectMeterInfo,
  FieldInfo,
  MatchFieldInfo,
  MatchKind,
  MeterInfo,
  NamedObject,
  ProfileInfo,
  RegisterInfo,
  TableActionInfo,
  TableInfo,
  ValueSetInfo,
} from './p4info-objects.ts';

/** Objects of one kind by id, full name or alias. */
export class ObjectIndex<T extends NamedObject> implements Iterable<T> {
  /** As in error messages: "table". */
  readonly kind: string;
  private readonly byId = new Map<number, T>();
  private readonly byName = new Map<string, T>();
  private readonly byAlias = new Map<string, T>();

  /** Throws DdfError INVALID_PROGRAM for two objects with the same id, name or alias. */
  constructor(kind: string, objects: readonly T[]) {
    this.kind = kind;
    for (const object of objects) {
      this.add(this.byId, object.id, object, `id 0x${object.id.toString(16)}`);
      this.add(this.byName, object.name, object, `name ${object.name}`);
      if (object.alias !== '') this.add(this.byAlias, object.alias, object, `alias ${object.alias}`);
    }
  }

  private add<K>(map: Map<K, T>, key: K, object: T, what: string): void {
    const other = map.get(key);
    if (other !== undefined)
      throw invalid(
        `Two objects of kind ${this.kind} have the ${what}`,
        `${this.kind} ${other.name} and ${object.name}`,
      );
    map.set(key, object);
  }

  /** By id, or by full name or alias. */
  get(key: number | string): T | undefined {
    return typeof key === 'number' ? this.byId.get(key) : (this.byName.get(key) ?? this.byAlias.get(key));
  }

  /** Like {@link get}; throws DdfError NOT_FOUND. */
  require(key: number | string): T {
    const object = this.get(key);
    if (object !== undefined) return object;
    throw new DdfError(
      'NOT_FOUND',
      `The P4Info has no ${this.kind} ${typeof key === 'number' ? `with id 0x${key.toString(16)}` : key}`,
    );
  }

  get size(): number {
    return this.byId.size;
  }

  [Symbol.iterator](): Iterator<T> {
    return this.byId.values();
  }
}

/** A P4Info whose references are known to hold, by id, name and alias. */
export class P4InfoIndex {
  readonly p4Info: P4Info;
  readonly tables: ObjectIndex<TableInfo>;
  readonly actions: ObjectIndex<ActionInfo>;
  readonly profiles: ObjectIndex<ProfileInfo>;
  readonly counters: ObjectIndex<CounterInfo>;
  readonly directCounters: ObjectIndex<DirectCounterInfo>;
  readonly meters: ObjectIndex<MeterInfo>;
  readonly directMeters: ObjectIndex<DirectMeterInfo>;
  readonly registers: ObjectIndex<RegisterInfo>;
  readonly controllerHeaders: ObjectIndex<ControllerHeaderInfo>;
  readonly valueSets: ObjectIndex<ValueSetInfo>;
  readonly digests: ObjectIndex<DigestInfo>;

  /** Throws DdfError INVALID_PROGRAM (ids without the prefix of their kind, duplicates, references to nothing). */
  constructor(p4Info: P4Info) {
    this.p4Info = p4Info;
    const named = (kind: string, prefix: number, preamble: Preamble | undefined): NamedObject =>
      checkPreamble(kind, prefix, preamble);
    this.actions = new ObjectIndex(
      'action',
      p4Info.actions.map((action) => actionInfo(action, p4Info)),
    );
    this.profiles = new ObjectIndex('action profile', p4Info.actionProfiles.map(profileInfo));
    this.counters = new ObjectIndex(
      'counter',
      p4Info.counters.map((counter) => ({
        ...named('counter', P4IdsPrefix.COUNTER, counter.preamble),
        size: Number(counter.size),
        unit: counter.spec?.unit ?? 0,
      })),
    );
    this.directCounters = new ObjectIndex(
      'direct counter',
      p4Info.directCounters.map((counter) => ({
        ...named('direct counter', P4IdsPrefix.DIRECT_COUNTER, counter.preamble),
        unit: counter.spec?.unit ?? 0,
        tableId: counter.directTableId,
      })),
    );
    this.meters = new ObjectIndex(
      'meter',
      p4Info.meters.map((meter) => ({
        ...named('meter', P4IdsPrefix.METER, meter.preamble),
        size: Number(meter.size),
        unit: meter.spec?.unit ?? 0,
        type: meter.spec?.type ?? 0,
      })),
    );
    this.directMeters = new ObjectIndex(
      'direct meter',
      p4Info.directMeters.map((meter) => ({
        ...named('direct meter', P4IdsPrefix.DIRECT_METER, meter.preamble),
        unit: meter.spec?.unit ?? 0,
        type: meter.spec?.type ?? 0,
        tableId: meter.directTableId,
      })),
    );
    this.registers = new ObjectIndex(
      'register',
      p4Info.registers.map((register) => ({
        ...named('register', P4IdsPrefix.REGISTER, register.preamble),
        size: register.size,
        type: register.typeSpec,
      })),
    );
    this.controllerHeaders = new ObjectIndex(
      'controller header',
      p4Info.controllerPacketMetadata.map((header) => {
        const object = named('controller header', P4IdsPrefix.CONTROLLER_HEADER, header.preamble);
        return {
          ...object,
          fields: checkFields(
            header.metadata.map((field) => fieldInfo(field, p4Info)),
            object.name,
          ),
        };
      }),
    );
    this.valueSets = new ObjectIndex(
      'value set',
      p4Info.valueSets.map((set) => {
        const object = named('value set', P4IdsPrefix.VALUE_SET, set.preamble);
        const where = `value set ${object.name}`;
        return { ...object, size: set.size, fields: set.match.map((field) => matchFieldInfo(field, where, p4Info)) };
      }),
    );
    this.digests = new ObjectIndex(
      'digest',
      p4Info.digests.map((digest) => ({
        ...named('digest', P4IdsPrefix.DIGEST, digest.preamble),
        type: digest.typeSpec,
      })),
    );
    this.tables = new ObjectIndex(
      'table',
      p4Info.tables.map((table) => this.tableInfo(table)),
    );
    this.checkReferences();
  }

  private tableInfo(table: Table): TableInfo {
    const object = checkPreamble('table', P4IdsPrefix.TABLE, table.preamble);
    const where = `table ${object.name}`;
    const fields = checkFields(
      table.matchFields.map((field) => matchFieldInfo(field, where, this.p4Info)),
      where,
    );
    const actions = table.actionRefs.map((ref): TableActionInfo => {
      const action = this.actions.get(ref.id);
      if (action === undefined) throw invalid(`An action refers to the unknown id 0x${ref.id.toString(16)}`, where);
      return { action, scope: SCOPES.get(ref.scope) ?? 'table and default' };
    });
    const profile = table.implementationId === 0 ? undefined : this.profiles.get(table.implementationId);
    if (table.implementationId !== 0 && profile === undefined)
      throw invalid(`Its implementation has the unknown id 0x${table.implementationId.toString(16)}`, where);
    for (const id of table.directResourceIds)
      if (this.directCounters.get(id) === undefined && this.directMeters.get(id) === undefined)
        throw invalid(`A direct resource has the unknown id 0x${id.toString(16)}`, where);
    if (table.constDefaultActionId !== 0 && !actions.some(({ action }) => action.id === table.constDefaultActionId))
      throw invalid('Its const default action is none of its actions', where);
    return {
      ...object,
      size: Number(table.size),
      fields,
      fieldById: new Map(fields.map((field) => [field.id, field])),
      fieldByName: new Map(fields.map((field) => [field.name, field])),
      actions,
      actionById: new Map(actions.map((ref) => [ref.action.id, ref])),
      needsPriority: fields.some(({ kind }) => kind === 'ternary' || kind === 'range' || kind === 'optional'),
      isConst: table.isConstTable,
      hasConstDefault: table.constDefaultActionId !== 0,
      supportsIdleTimeout: table.idleTimeoutBehavior !== TableIdleTimeoutBehavior.NO_TIMEOUT,
      profile,
      directCounter: firstOf(table.directResourceIds, this.directCounters),
      directMeter: firstOf(table.directResourceIds, this.directMeters),
    };
  }

  private checkReferences(): void {
    for (const resource of [...this.directCounters, ...this.directMeters])
      if (this.tables.get(resource.tableId) === undefined)
        throw invalid(
          `It belongs to the unknown table 0x${resource.tableId.toString(16)}`,
          `direct resource ${resource.name}`,
        );
    for (const profile of this.profiles)
      for (const id of profile.tableIds)
        if (this.tables.get(id) === undefined)
          throw invalid(`It belongs to the unknown table 0x${id.toString(16)}`, `action profile ${profile.name}`);
  }
}

const SCOPES: ReadonlyMap<number, ActionScope> = new Map([
  [ActionRefScope.TABLE_AND_DEFAULT, 'table and default'],
  [ActionRefScope.TABLE_ONLY, 'table only'],
  [ActionRefScope.DEFAULT_ONLY, 'default only'],
]);

const MATCH_KINDS: ReadonlyMap<number, MatchKind> = new Map([
  [MatchFieldMatchType.EXACT, 'exact'],
  [MatchFieldMatchType.LPM, 'lpm'],
  [MatchFieldMatchType.TERNARY, 'ternary'],
  [MatchFieldMatchType.RANGE, 'range'],
  [MatchFieldMatchType.OPTIONAL, 'optional'],
]);

function invalid(message: string, where: string): DdfError {
  return new DdfError('INVALID_PROGRAM', message, { where: `P4Info, ${where}` });
}

function checkPreamble(kind: string, prefix: number, preamble: Preamble | undefined): NamedObject {
  if (preamble === undefined || preamble.name === '') throw invalid(`An object of kind ${kind} has no name`, kind);
  if (preamble.id >>> 24 !== prefix)
    throw invalid(
      `The id 0x${preamble.id.toString(16)} does not begin with 0x${prefix.toString(16).padStart(2, '0')}`,
      `${kind} ${preamble.name}`,
    );
  return { id: preamble.id, name: preamble.name, alias: preamble.alias };
}

function fieldInfo(
  field: { id: number; name: string; bitwidth: number; typeName?: P4NamedType },
  p4Info: P4Info,
): FieldInfo {
  const typeName = field.typeName?.name;
  const type = typeName === undefined ? undefined : p4Info.typeInfo?.newTypes.get(typeName);
  return { id: field.id, name: field.name, widthBits: field.bitwidth, typeName, translation: type?.translatedType };
}

function checkFields<T extends FieldInfo>(fields: readonly T[], where: string): readonly T[] {
  const ids = new Set<number>();
  const names = new Set<string>();
  for (const field of fields) {
    if (field.id === 0) throw invalid(`${field.name} has the id 0`, where);
    if (ids.has(field.id)) throw invalid(`Two fields or parameters have the id ${field.id}`, where);
    if (names.has(field.name)) throw invalid(`Two fields or parameters are called ${field.name}`, where);
    if (field.widthBits < 0) throw invalid(`${field.name} has a negative width`, where);
    ids.add(field.id);
    names.add(field.name);
  }
  return fields;
}

function matchFieldInfo(field: MatchField, where: string, p4Info: P4Info): MatchFieldInfo {
  const kind = MATCH_KINDS.get(field.matchType ?? 0);
  if (kind === undefined)
    throw new DdfError(
      'UNSUPPORTED_PROGRAM',
      `Match kind ${field.otherMatchType ?? field.matchType} is not supported`,
      {
        where: `P4Info, ${where}, field ${field.name}`,
      },
    );
  return { ...fieldInfo(field, p4Info), kind };
}

function actionInfo(action: Action, p4Info: P4Info): ActionInfo {
  const object = checkPreamble('action', P4IdsPrefix.ACTION, action.preamble);
  const params = checkFields(
    action.params.map((param) => fieldInfo(param, p4Info)),
    `action ${object.name}`,
  );
  return {
    ...object,
    params,
    paramById: new Map(params.map((param) => [param.id, param])),
    paramByName: new Map(params.map((param) => [param.name, param])),
  };
}

function profileInfo(profile: ActionProfile): ProfileInfo {
  return {
    ...checkPreamble('action profile', P4IdsPrefix.ACTION_PROFILE, profile.preamble),
    tableIds: profile.tableIds,
    withSelector: profile.withSelector,
    size: Number(profile.size),
    maxGroupSize: profile.maxGroupSize,
    sizeSemantics: profile.sumOfMembers === undefined ? 'sum of weights' : 'sum of members',
    maxMemberWeight: profile.sumOfMembers?.maxMemberWeight ?? 0,
    weightsDisallowed: profile.weightsDisallowed,
  };
}

function firstOf<T extends NamedObject>(ids: readonly number[], index: ObjectIndex<T>): T | undefined {
  for (const id of ids) {
    const object = index.get(id);
    if (object !== undefined) return object;
  }
  return undefined;
}
