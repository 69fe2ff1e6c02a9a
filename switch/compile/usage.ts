import type {
  BooleanExpression,
  Calculation,
  DataExpression,
  Header,
  HeaderField,
  Primitive,
  Program,
  Stack,
} from '../bmv2/program.ts';

/**
 * Which fields and headers a program touches. The rest of a header stays in the packet: it is neither extracted nor stored, and
 * the deparser copies its bytes.
 */
export interface Usage {
  /** Fields that something reads or writes, apart from extraction and deparsing. */
  readonly live: ReadonlySet<HeaderField>;
  readonly written: ReadonlySet<HeaderField>;
  /** Headers that may become valid without being extracted. */
  readonly added: ReadonlySet<Header>;
  /** Headers with a varbit that are put together from the vector whenever they are sent. */
  readonly rebuilt: ReadonlySet<Header>;
  /** Whether metadata that costs something per packet is wanted. */
  readonly truncates: boolean;
  readonly clones: boolean;
  readonly digests: boolean;
  readonly resubmits: boolean;
  readonly recirculates: boolean;
  readonly exits: boolean;
}

export function analyseUsage(program: Program): Usage {
  const walk = new Walk();
  const { standardMetadata: metadata } = program;
  // What decides a packet's way is read by the packet path itself.
  walk.reads(metadata.egressSpec);
  if (metadata.multicastGroup !== undefined) walk.reads(metadata.multicastGroup);

  for (const state of program.parser.states) {
    for (const operation of state.operations) {
      switch (operation.kind) {
        case 'extract':
          if (operation.lengthBits !== undefined) walk.data(operation.lengthBits);
          break;
        case 'extract-next':
          walk.writes(operation.stack.next);
          if (operation.lengthBits !== undefined) walk.data(operation.lengthBits);
          break;
        case 'require-last':
          walk.reads(operation.stack.next);
          break;
        case 'verify':
          walk.boolean(operation.condition);
          walk.data(operation.error);
          break;
        case 'advance':
          walk.data(operation.bits);
          break;
        case 'primitive':
          walk.primitive(operation.primitive);
      }
    }
    for (const part of state.key) walk.data(part.value);
  }
  for (const primitive of program.deparserPrimitives) walk.primitive(primitive);
  for (const action of program.actions) for (const primitive of action.primitives) walk.primitive(primitive);
  for (const table of program.tables) {
    for (const key of table.keys) walk.data(key.value);
    if (table.directMeter?.direct !== undefined) walk.writes(table.directMeter.direct.target);
    if (table.selector !== undefined) walk.calculation(table.selector.calculation);
  }
  for (const pipeline of [program.ingress, program.egress])
    for (const node of pipeline.nodes) if (node.kind === 'conditional') walk.boolean(node.condition);
  for (const checksum of program.checksums) {
    walk.calculation(checksum.calculation);
    if (checksum.condition !== undefined) walk.boolean(checksum.condition);
    if (checksum.update) walk.writes(checksum.target);
    walk.reads(checksum.target);
  }
  walk.equaliseShifted();
  for (const header of program.headers) walk.settleVarbit(header);
  return walk;
}

class Walk implements Usage {
  readonly live = new Set<HeaderField>();
  readonly written = new Set<HeaderField>();
  readonly added = new Set<Header>();
  readonly rebuilt = new Set<Header>();
  private readonly shifted = new Set<Stack>();
  truncates = false;
  clones = false;
  digests = false;
  resubmits = false;
  recirculates = false;
  exits = false;

  reads(field: HeaderField): void {
    this.live.add(field);
  }

  writes(field: HeaderField): void {
    this.live.add(field);
    this.written.add(field);
  }

  private whole(header: Header): void {
    for (const field of header.fields) this.reads(field);
  }

  /** What happens to one element of a stack that is shifted may be seen in any other. */
  equaliseShifted(): void {
    for (const { elements } of this.shifted) {
      elements[0]!.forEach((_, member) => {
        const headers = elements.map((element) => element[member]!);
        if (headers.some((header) => this.added.has(header))) for (const header of headers) this.added.add(header);
        headers[0]!.fields.forEach((_, place) => {
          const fields = headers.map((header) => header.fields[place]!);
          if (fields.some((field) => this.live.has(field))) for (const field of fields) this.reads(field);
          if (fields.some((field) => this.written.has(field))) for (const field of fields) this.writes(field);
        });
      });
    }
  }

  /** How long a header is has to be known; one that is not sent as it came is all in the vector. */
  settleVarbit(header: Header): void {
    if (header.varbit === undefined) return;
    this.reads(header.varbit.length!);
    if (!this.added.has(header) && !header.fields.some((field) => this.written.has(field))) return;
    this.rebuilt.add(header);
    this.whole(header);
  }

  primitive(primitive: Primitive): void {
    switch (primitive.kind) {
      case 'assign-varbit':
        this.reads(primitive.source);
        this.writes(primitive.target);
        break;
      case 'validate-header':
        this.whole(primitive.header);
        this.added.add(primitive.header);
        break;
      case 'push':
      case 'pop':
        this.shifted.add(primitive.stack);
        this.writes(primitive.stack.next);
        this.data(primitive.count);
        break;
      case 'sequence':
        for (const each of primitive.primitives) this.primitive(each);
        break;
      case 'branch':
        this.boolean(primitive.condition);
        this.primitive(primitive.yes);
        this.primitive(primitive.no);
        break;
      case 'assign':
        this.writes(primitive.target);
        this.data(primitive.value);
        break;
      case 'assign-header':
        this.whole(primitive.source);
        for (const field of primitive.target.fields) this.writes(field);
        this.added.add(primitive.target);
        break;
      case 'add-header':
        this.added.add(primitive.header);
        break;
      case 'jump':
        if (primitive.unless !== undefined) this.boolean(primitive.unless);
        break;
      case 'exit':
        this.exits = true;
        break;
      case 'truncate':
        this.truncates = true;
        this.data(primitive.lengthBytes);
        break;
      case 'clone':
        this.clones = true;
        this.data(primitive.session);
        break;
      case 'resubmit':
        this.resubmits = true;
        break;
      case 'recirculate':
        this.recirculates = true;
        break;
      case 'digest':
        this.digests = true;
        for (const field of primitive.list?.fields ?? []) this.reads(field);
        break;
      case 'count':
        this.data(primitive.index);
        break;
      case 'execute-meter':
      case 'register-read':
        this.data(primitive.index);
        this.writes(primitive.target);
        break;
      case 'register-write':
        this.data(primitive.index);
        this.data(primitive.value);
        break;
      case 'hash':
        this.writes(primitive.target);
        this.calculation(primitive.calculation);
        this.data(primitive.base);
        this.data(primitive.max);
        break;
      case 'random':
        this.writes(primitive.target);
        this.data(primitive.low);
        this.data(primitive.high);
        break;
      case 'log':
        for (const value of primitive.values) this.data(value);
        break;
      case 'assert':
        this.boolean(primitive.condition);
        break;
      case 'mark-to-drop':
        this.writes(primitive.egressSpec);
        if (primitive.multicastGroup !== undefined) this.writes(primitive.multicastGroup);
        break;
      case 'remove-header':
      case 'no-op':
        break;
    }
  }

  calculation(calculation: Calculation): void {
    for (const input of calculation.inputs) if (input.kind === 'field') this.reads(input.field);
  }

  data(expression: DataExpression): void {
    switch (expression.kind) {
      case 'field':
        this.reads(expression.field);
        break;
      case 'arithmetic':
        this.data(expression.left);
        this.data(expression.right);
        break;
      case 'complement':
      case 'cast':
        this.data(expression.operand);
        break;
      case 'choice':
        this.boolean(expression.condition);
        this.data(expression.yes);
        this.data(expression.no);
        break;
      case 'from-boolean':
        this.boolean(expression.operand);
        break;
      case 'register':
        this.data(expression.index);
        break;
      case 'constant':
      case 'validity':
      case 'parameter':
      case 'lookahead':
        break;
    }
  }

  boolean(expression: BooleanExpression): void {
    switch (expression.kind) {
      case 'comparison':
        this.data(expression.left);
        this.data(expression.right);
        break;
      case 'boolean-comparison':
      case 'logic':
        this.boolean(expression.left);
        this.boolean(expression.right);
        break;
      case 'header-comparison':
        this.whole(expression.left);
        this.whole(expression.right);
        break;
      case 'boolean-choice':
        this.boolean(expression.condition);
        this.boolean(expression.yes);
        this.boolean(expression.no);
        break;
      case 'not':
        this.boolean(expression.operand);
        break;
      case 'non-zero':
        this.data(expression.operand);
        break;
      case 'literal':
      case 'is-valid':
        break;
    }
  }
}
