import type {
  BooleanExpression,
  Calculation,
  DataExpression,
  Header,
  HeaderField,
  Primitive,
  Program,
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
          break;
        case 'set':
          walk.writes(operation.target);
          walk.data(operation.value);
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
  return walk;
}

class Walk implements Usage {
  readonly live = new Set<HeaderField>();
  readonly written = new Set<HeaderField>();
  readonly added = new Set<Header>();
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

  primitive(primitive: Primitive): void {
    switch (primitive.kind) {
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
