import type { JsonView } from './json-view.ts';
import { define, type Names } from './names.ts';
import type { Header, HeaderUnion, Stack } from './program.ts';

/** Longer than any stack that p4c makes; keeps a hostile file from asking for code without end. */
const MAX_ELEMENTS = 1024;

/** Unions first: stacks of unions are made of them. Sections that a program does not have are empty. */
export function loadStacks(root: JsonView, names: Names): Stack[] {
  const members = new Map<string, readonly string[]>();
  for (const view of items(root, 'header_union_types')) {
    const own = view.get('headers').items();
    const of = own.map((item) => item.tuple(2)[0]!.string());
    define(members, view.get('name'), of);
  }
  for (const view of items(root, 'header_unions')) {
    const type = view.get('union_type');
    const memberNames = members.get(type.string());
    if (memberNames === undefined) throw type.invalid(`names no union type: ${type.string()}`);
    const ids = view.get('header_ids').tuple(memberNames.length);
    const headers = ids.map((id) => names.headerById(id));
    const union: HeaderUnion = { name: view.get('name').string(), id: view.get('id').integer(), memberNames, headers };
    for (const [i, header] of headers.entries()) {
      if (header.metadata || header.rivals.length > 0 || headers.indexOf(header) !== i)
        throw ids[i]!.invalid(`puts ${header.name} where it cannot be`);
    }
    for (const header of headers) header.rivals.push(...headers.filter((other) => other !== header));
    define(names.unions, view.get('name'), union);
  }
  const headerStacks = items(root, 'header_stacks').map((view) => {
    const ids = view.get('header_ids').items();
    const elements = ids.map((id) => [names.headerById(id)]);
    return define(names.stacks, view.get('name'), newStack(view, [''], elements));
  });
  const unionsById = new Map([...names.unions.values()].map((union) => [union.id, union]));
  const unionStacks = items(root, 'header_union_stacks').map((view) => {
    const unions = view
      .get('header_union_ids')
      .items()
      .map((id) => {
        const union = unionsById.get(id.integer());
        if (union === undefined) throw id.invalid('is the id of no header union');
        return union;
      });
    const elements = unions.map((union) => union.headers);
    return define(names.unionStacks, view.get('name'), newStack(view, unions[0]?.memberNames ?? [], elements));
  });
  return [...headerStacks, ...unionStacks];
}

function items(root: JsonView, section: string): JsonView[] {
  return root.find(section)?.items() ?? [];
}

function newStack(view: JsonView, memberNames: readonly string[], elements: readonly (readonly Header[])[]): Stack {
  const name = view.get('name').string();
  if (elements.length === 0 || elements.length > MAX_ELEMENTS)
    throw view.invalid(`has ${elements.length} elements, not 1 to ${MAX_ELEMENTS}`);
  const types = (element: readonly Header[]): string => element.map((header) => header.typeName).join();
  if (elements.some((element) => types(element) !== types(elements[0]!) || element.some((header) => header.metadata)))
    throw view.invalid('has elements of different types');
  return { name, memberNames, elements, next: hiddenField(`${name}.next`) };
}

/** State of 32 bits that is nobody's field: no packet carries it and no program names it. */
export function hiddenField(name: string): Stack['next'] {
  const header: Header = {
    name,
    id: -1,
    typeName: name,
    metadata: true,
    fields: [],
    widthBits: 0,
    varbit: undefined,
    rivals: [],
  };
  return { header, name, widthBits: 32, signed: false, saturating: false, offsetBits: 0, length: undefined };
}
