import { packageTypes } from './proto.ts';
import type { EnumPlan, FieldPlan, MessagePlan } from './proto-codec.ts';

/** One generated file: the TypeScript types of some packages of the schemas. */
export interface GeneratedFile {
  /** Relative to the repository's root. */
  readonly path: string;
  readonly packages: readonly string[];
}

export const GENERATED_FILES: readonly GeneratedFile[] = [
  { path: 'wire/p4runtime/p4info-messages.ts', packages: ['p4.config.v1'] },
  { path: 'wire/p4runtime/messages.ts', packages: ['google.protobuf', 'google.rpc', 'p4.v1'] },
  { path: 'wire/p4runtime/role-messages.ts', packages: ['stratum'] },
  { path: 'wire/agent/messages.ts', packages: ['ddf.agent.v1'] },
];

/** Names that would hide a global of JavaScript. */
const RENAMED: ReadonlyMap<string, string> = new Map([['p4.v1.Error', 'P4Error']]);

/** The text of a generated file, as the formatter leaves it. Types of other files are imported from there. */
export function generateMessages(file: GeneratedFile): string {
  const types = file.packages.flatMap((name) => packageTypes(name));
  const imports = new Map<string, Set<string>>();
  const reference = (fullName: string): string => {
    const owner = GENERATED_FILES.find((candidate) => candidate.packages.includes(packageOf(fullName)))!;
    const name = typeName(fullName);
    if (owner.path !== file.path) {
      const names = imports.get(owner.path) ?? new Set();
      imports.set(owner.path, names.add(name));
    }
    return name;
  };
  const body = types.map((type) => ('fields' in type ? interfaceOf(type, reference) : enumOf(type))).join('\n');
  const header = [...imports].map(
    ([path, names]) => `import type { ${[...names].sort().join(', ')} } from '${relative(file.path, path)}';\n`,
  );
  return `// Generated from the schemas beside it by \`npx tsx scripts/wire-generate.ts\`. Do not edit.\n\n${header.length > 0 ? `${header.join('')}\n` : ''}${body}`;
}

/** Packages are lower case, types are not. */
function packageOf(fullName: string): string {
  const parts = fullName.split('.');
  return parts
    .slice(
      0,
      parts.findIndex((part) => /^[A-Z]/.test(part)),
    )
    .join('.');
}

/** Nested types carry their parents' names: `p4.v1.Update.Type` is `UpdateType`. */
function typeName(fullName: string): string {
  return RENAMED.get(fullName) ?? fullName.slice(packageOf(fullName).length + 1).replaceAll('.', '');
}

/** Both are in sibling folders of wire/. */
function relative(from: string, to: string): string {
  const folder = (path: string): string => path.slice(0, path.lastIndexOf('/') + 1);
  if (folder(from) === folder(to)) return `./${to.slice(folder(to).length)}`;
  return `../${to.slice('wire/'.length)}`;
}

function interfaceOf(plan: MessagePlan, reference: (fullName: string) => string): string {
  const name = typeName(plan.fullName);
  if (plan.fields.length === 0)
    return `/** ${plan.fullName}, which has no fields. */\nexport type ${name} = Record<never, never>;\n`;
  const lines = plan.fields.map((field) => `  ${property(field, reference)};\n`);
  return `/** ${plan.fullName} */\nexport interface ${name} {\n${lines.join('')}}\n`;
}

function property(field: FieldPlan, reference: (fullName: string) => string): string {
  const type = valueType(field, reference);
  if (field.shape === 'repeated') return `${field.name}: ${type}[]`;
  if (field.shape === 'map') return `${field.name}: Map<string, ${type}>`;
  return field.kind === 'message' || field.oneofOthers !== undefined
    ? `${field.name}?: ${type}`
    : `${field.name}: ${type}`;
}

function valueType(field: FieldPlan, reference: (fullName: string) => string): string {
  switch (field.kind) {
    case 'message':
      return reference(field.message!.fullName);
    case 'enum':
      return reference(field.enumeration!.fullName);
    case 'uint32':
    case 'int32':
      return 'number';
    case 'uint64':
    case 'int64':
      return 'bigint';
    case 'bool':
      return 'boolean';
    case 'string':
      return 'string';
    case 'bytes':
      return 'Uint8Array';
  }
}

/** Open, as proto3's are: a peer may send a number that is not in the list. */
function enumOf(plan: EnumPlan): string {
  const name = typeName(plan.fullName);
  const lines = [...plan.values].map(([key, value]) => `  ${key}: ${value},\n`);
  return `/** ${plan.fullName} */\nexport const ${name} = {\n${lines.join('')}} as const;\nexport type ${name} = number;\n`;
}
