import protobuf from 'protobufjs';
import { DdfError } from '../base/errors.ts';
import { AGENT_SCHEMA } from './agent/schema.ts';
import { P4_ENTITIES_SCHEMA } from './p4runtime/schema-entities.ts';
import { GOOGLE_ANY_SCHEMA, GOOGLE_STATUS_SCHEMA } from './p4runtime/schema-google.ts';
import { P4_DATA_SCHEMA } from './p4runtime/schema-p4data.ts';
import { P4_INFO_SCHEMA } from './p4runtime/schema-p4info.ts';
import { P4_TYPES_SCHEMA } from './p4runtime/schema-p4types.ts';
import { ROLE_CONFIG_SCHEMA } from './p4runtime/schema-roles.ts';
import { P4_RUNTIME_SCHEMA } from './p4runtime/schema-service.ts';
import {
  decodeMessage,
  type EnumPlan,
  emptyMessage,
  encodeMessage,
  type FieldPlan,
  type MessageObject,
  type MessagePlan,
  type ScalarKind,
} from './proto-codec.ts';

/**
 * What encoders accept: any part of a message; absent fields have their defaults.
 */
export type MessageInput<T> = T extends bigint | number | string | boolean | Uint8Array
  ? T
  : T extends readonly (infer U)[]
    ? readonly MessageInput<U>[]
    : T extends ReadonlyMap<string, infer U>
      ? ReadonlyMap<string, MessageInput<U>>
      : { readonly [K in keyof T]?: MessageInput<T[K]> };

/**
 * Bytes <-> messages of one type. Fields are camelCase; 64-bit integers are bigint, bytes Uint8Array, enums numbers, maps Map; a singular message that is
 * absent is `undefined`, as are all members of a oneof but the one that is set. Decoded messages have every other field, own their bytes, and lack
 * fields that the schema does not know.
 */
export interface MessageCodec<T> {
  readonly fullName: string;
  encode(value: MessageInput<T>): Uint8Array;
  /** Throws DdfError INVALID_REQUEST. */
  decode(bytes: Uint8Array): T;
  /** A message of defaults with the given fields set. */
  create(value: Partial<T>): T;
}

/** As @grpc/grpc-js wants it, for `Server.addService` and `makeGenericClientConstructor`. */
export interface GrpcMethod {
  readonly path: string;
  readonly originalName: string;
  readonly requestStream: boolean;
  readonly responseStream: boolean;
  readonly requestSerialize: (value: object) => Buffer;
  readonly requestDeserialize: (bytes: Buffer) => object;
  readonly responseSerialize: (value: object) => Buffer;
  readonly responseDeserialize: (bytes: Buffer) => object;
}

const SCHEMAS = [
  GOOGLE_ANY_SCHEMA,
  GOOGLE_STATUS_SCHEMA,
  P4_TYPES_SCHEMA,
  P4_INFO_SCHEMA,
  P4_DATA_SCHEMA,
  P4_ENTITIES_SCHEMA,
  P4_RUNTIME_SCHEMA,
  ROLE_CONFIG_SCHEMA,
  AGENT_SCHEMA,
];

const root = parseSchemas();
const plans = new Map<string, MessagePlan>();

function parseSchemas(): protobuf.Root {
  const parsed = new protobuf.Root();
  for (const schema of SCHEMAS) protobuf.parse(schema, parsed, { keepCase: true });
  parsed.resolveAll();
  return parsed;
}

/** The plan of a message type by its full name, as in `p4.v1.TableEntry`: for readers of other forms of the same messages. */
export function messagePlan(fullName: string): MessagePlan {
  const known = plans.get(fullName);
  if (known !== undefined) return known;
  const type = root.lookup(fullName, protobuf.Type);
  if (!(type instanceof protobuf.Type)) throw new DdfError('INTERNAL', `No message type ${fullName} in the schemas`);
  const fields: FieldPlan[] = [];
  const plan: MessagePlan = { fullName, fields, byNumber: new Map(), byProtoName: new Map() };
  // Before its fields, since types may contain themselves.
  plans.set(fullName, plan);
  for (const field of type.fieldsArray) fields.push(planField(field));
  fields.sort((a, b) => a.number - b.number);
  for (const field of fields) {
    (plan.byNumber as Map<number, FieldPlan>).set(field.number, field);
    (plan.byProtoName as Map<string, FieldPlan>).set(field.protoName, field);
  }
  return plan;
}

const SCALAR_KINDS: ReadonlySet<string> = new Set<ScalarKind>([
  'uint32',
  'int32',
  'uint64',
  'int64',
  'bool',
  'string',
  'bytes',
]);

function planField(field: protobuf.Field): FieldPlan {
  const resolved: protobuf.ReflectionObject | null = field.resolve().resolvedType;
  const oneof = field.partOf;
  const common = {
    protoName: field.name,
    name: camelCase(field.name),
    number: field.id,
    shape:
      field instanceof protobuf.MapField
        ? ('map' as const)
        : field.repeated
          ? ('repeated' as const)
          : ('single' as const),
    oneofOthers: oneof?.oneof.filter((name) => name !== field.name).map(camelCase),
  };
  if (resolved instanceof protobuf.Type)
    return { ...common, kind: 'message', message: messagePlan(fullNameOf(resolved)) };
  if (resolved instanceof protobuf.Enum) return { ...common, kind: 'enum', enumeration: enumPlan(resolved) };
  if (!SCALAR_KINDS.has(field.type) || common.shape === 'map')
    throw new DdfError('INTERNAL', `${field.fullName}: wire/proto-codec.ts does not support ${field.type}`);
  return { ...common, kind: field.type as ScalarKind };
}

function enumPlan(type: protobuf.Enum): EnumPlan {
  return { fullName: fullNameOf(type), values: new Map(Object.entries(type.values)) };
}

function fullNameOf(object: protobuf.ReflectionObject): string {
  return object.fullName.replace(/^\./, '');
}

/** The property name of a schema's field. */
export function camelCase(protoName: string): string {
  return protoName.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

/** All messages and enums of a package in the order of the schema, for the type generator. */
export function packageTypes(packageName: string): readonly (MessagePlan | EnumPlan)[] {
  const namespace = root.lookup(packageName);
  if (!(namespace instanceof protobuf.Namespace))
    throw new DdfError('INTERNAL', `No package ${packageName} in the schemas`);
  const found: (MessagePlan | EnumPlan)[] = [];
  const visit = (object: protobuf.ReflectionObject): void => {
    if (object instanceof protobuf.Enum) found.push(enumPlan(object));
    if (object instanceof protobuf.Type) {
      found.push(messagePlan(fullNameOf(object)));
      object.nestedArray.forEach(visit);
    }
  };
  namespace.nestedArray.forEach(visit);
  return found;
}

/** The codec of a message type; `T` is its interface in the generated messages.ts. */
export function messageCodec<T>(fullName: string): MessageCodec<T> {
  const plan = messagePlan(fullName);
  return {
    fullName,
    encode: (value) => encodeMessage(plan, value as MessageObject),
    decode: (bytes) => decodeMessage(plan, bytes) as T,
    create: (value) => Object.assign(emptyMessage(plan), value) as T,
  };
}

/** The methods of a service by their names in the schema. */
export function serviceDefinition(fullName: string): Record<string, GrpcMethod> {
  const service = root.lookup(fullName);
  if (!(service instanceof protobuf.Service)) throw new DdfError('INTERNAL', `No service ${fullName} in the schemas`);
  const methods: Record<string, GrpcMethod> = {};
  for (const method of service.methodsArray) {
    method.resolve();
    const request = messagePlan(fullNameOf(method.resolvedRequestType!));
    const response = messagePlan(fullNameOf(method.resolvedResponseType!));
    methods[method.name] = {
      path: `/${fullName}/${method.name}`,
      originalName: method.name.charAt(0).toLowerCase() + method.name.slice(1),
      requestStream: method.requestStream ?? false,
      responseStream: method.responseStream ?? false,
      requestSerialize: serializer(request),
      requestDeserialize: (bytes) => decodeMessage(request, bytes),
      responseSerialize: serializer(response),
      responseDeserialize: (bytes) => decodeMessage(response, bytes),
    };
  }
  return methods;
}

function serializer(plan: MessagePlan): (value: object) => Buffer {
  return (value) => {
    const bytes = encodeMessage(plan, value as MessageObject);
    return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  };
}

/** google.protobuf.Any. */
interface AnyMessage {
  typeUrl: string;
  value: Uint8Array;
}

const TYPE_URL_PREFIX = 'type.googleapis.com/';

export function packAny<T>(codec: MessageCodec<T>, value: MessageInput<T>): AnyMessage {
  return { typeUrl: TYPE_URL_PREFIX + codec.fullName, value: codec.encode(value) };
}

/** `undefined` when something else is inside. Throws DdfError INVALID_REQUEST when the type is right and the bytes are not. */
export function unpackAny<T>(codec: MessageCodec<T>, any: AnyMessage): T | undefined {
  const name = any.typeUrl.slice(any.typeUrl.lastIndexOf('/') + 1);
  return name === codec.fullName ? codec.decode(any.value) : undefined;
}
