import { DdfError } from '../../base/errors.ts';
import type { P4InfoIndex } from '../../wire/p4runtime/p4info-index.ts';
import type {
  FieldInfo,
  MatchKind,
  RegisterInfo,
  TableInfo,
  ValueSetInfo,
} from '../../wire/p4runtime/p4info-objects.ts';
import type { ProgramControl, TableControl } from '../control.ts';

const ARCHITECTURE = 'v1model';
/** As many differences as a person can use. */
const MAX_LISTED = 8;

/**
 * Checks that a P4Info describes this program: otherwise entries would land in the wrong table, or under the wrong key.
 * @throws DdfError UNSUPPORTED_PROGRAM for another architecture, PROGRAM_MISMATCH with what differs
 */
export function checkProgramMatches(info: P4InfoIndex, control: ProgramControl): void {
  const arch = info.p4Info.pkgInfo?.arch ?? '';
  if (arch !== '' && arch !== ARCHITECTURE)
    throw new DdfError(
      'UNSUPPORTED_PROGRAM',
      `The P4Info describes a program for ${arch}, this switch runs ${ARCHITECTURE}`,
      {
        where: 'pkg_info.arch',
        remedy: `Compile the program for ${ARCHITECTURE}.`,
      },
    );
  const differences = [
    ...[...info.tables].flatMap((table) => tableDifferences(table, control)),
    ...[...info.actions].flatMap((action) => {
      const params = control.actions.get(action.name);
      // p4c leaves out actions that no table has.
      return params === undefined ? [] : widthDifferences(`action ${action.name}`, 'parameter', action.params, params);
    }),
    ...arrayDifferences('counter', info.counters, control.counters),
    ...arrayDifferences('meter', info.meters, control.meters),
    ...arrayDifferences('register', info.registers, control.registers),
    ...[...info.registers].flatMap((register) => registerDifferences(register, control)),
    ...[...info.valueSets].flatMap((set) => valueSetDifferences(set, control)),
    ...[...info.digests].flatMap(({ name }) =>
      control.digests.has(name) ? [] : [`the program has no digest ${name}`],
    ),
  ];
  if (differences.length === 0) return;
  const listed = differences.slice(0, MAX_LISTED).join('; ');
  const more = differences.length > MAX_LISTED ? `; and ${differences.length - MAX_LISTED} more` : '';
  throw new DdfError('PROGRAM_MISMATCH', `The P4Info does not belong to this program: ${listed}${more}`, {
    remedy: 'Send the two files that one run of p4c has written.',
  });
}

function tableDifferences(table: TableInfo, control: ProgramControl): string[] {
  const where = `table ${table.name}`;
  const loaded = control.tables.get(table.name);
  if (loaded === undefined) return [`the program has no ${where}`];
  const differences = keyDifferences(table, loaded);
  // p4c makes a table that begins with entries just as large as they are many, whatever the source says.
  const hasOwn = [...loaded.entries()].length > 0;
  if (!hasOwn && table.size > loaded.size)
    differences.push(`${where} has room for ${loaded.size} entries, not ${table.size}`);
  const actions = new Set(loaded.actions);
  if (table.directMeter !== undefined && !loaded.hasMeter) differences.push(`${where} has no direct meter`);
  for (const { action } of table.actions)
    if (!actions.has(action.name)) differences.push(`${where} has no action ${action.name}`);
  return differences;
}

function keyDifferences(table: TableInfo, loaded: TableControl): string[] {
  const where = `table ${table.name}`;
  if (loaded.keys.length !== table.fields.length)
    return [`${where} has ${loaded.keys.length} keys, not ${table.fields.length}`];
  return table.fields.flatMap((field, i) => {
    const key = loaded.keys[i]!;
    const name = `${where}, key ${field.name}`;
    if (differs(field, key.widthBits)) return [`${name} has ${key.widthBits} bits, not ${field.widthBits}`];
    return sameKind(field.kind, key.kind) ? [] : [`${name} is matched as ${key.kind}, not as ${field.kind}`];
  });
}

/** Translated values have other widths on either side. */
function differs(field: FieldInfo, loadedBits: number): boolean {
  return field.translation === undefined && field.widthBits !== loadedBits;
}

/** p4c compiles optional keys to ternary ones. */
function sameKind(described: MatchKind, loaded: MatchKind): boolean {
  return described === loaded || (described === 'optional' && loaded === 'ternary');
}

function widthDifferences(
  where: string,
  what: string,
  described: readonly FieldInfo[],
  loaded: readonly { readonly name: string; readonly widthBits: number }[],
): string[] {
  if (described.length !== loaded.length) return [`${where} has ${loaded.length} ${what}s, not ${described.length}`];
  return described.flatMap((field, i) =>
    !differs(field, loaded[i]!.widthBits)
      ? []
      : [`${where}, ${what} ${field.name} has ${loaded[i]!.widthBits} bits, not ${field.widthBits}`],
  );
}

function arrayDifferences(
  kind: string,
  described: Iterable<{ readonly name: string; readonly size: number }>,
  loaded: ReadonlyMap<string, { readonly size: number }>,
): string[] {
  return [...described].flatMap(({ name, size }) => {
    const array = loaded.get(name);
    if (array === undefined) return [`the program has no ${kind} ${name}`];
    return array.size === size ? [] : [`${kind} ${name} has ${array.size} cells, not ${size}`];
  });
}

function registerDifferences(register: RegisterInfo, control: ProgramControl): string[] {
  const width = register.type?.bitstring?.bit?.bitwidth ?? register.type?.bitstring?.int?.bitwidth;
  const loaded = control.registers.get(register.name);
  if (width === undefined || loaded === undefined || loaded.widthBits === width) return [];
  return [`register ${register.name} has cells of ${loaded.widthBits} bits, not ${width}`];
}

function valueSetDifferences(set: ValueSetInfo, control: ProgramControl): string[] {
  const loaded = control.valueSets.get(set.name);
  if (loaded === undefined) return [`the program has no value set ${set.name}`];
  const where = `value set ${set.name}`;
  const differences = widthDifferences(where, 'field', set.fields, loaded.keys);
  if (set.size > loaded.size) differences.push(`${where} has room for ${loaded.size} members, not ${set.size}`);
  return differences;
}
