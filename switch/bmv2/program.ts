/**
 * The intermediate form of a bmv2 JSON program: every name resolved to the object it means, every width known, every construct
 * one that the compiler implements. Built by load-program.ts, consumed by ../compile. It executes nothing.
 *
 * Source of the format: behavioral-model's docs/JSON_format.md, version 2.24.
 */

import type { CrcParameters } from './crc-parameters.ts';

export interface HeaderField {
  readonly header: Header;
  readonly name: string;
  /** Of a varbit: the most that it can have. */
  readonly widthBits: number;
  readonly signed: boolean;
  /** What does not fit becomes the nearest number that does. */
  readonly saturating: boolean;
  /** Distance of its most significant bit from the start of the header, where a varbit in front counts nothing. */
  readonly offsetBits: number;
  /** Of a varbit: a hidden field, the bits that it has now. */
  readonly length: HeaderField | undefined;
}

export interface Header {
  readonly name: string;
  readonly id: number;
  readonly typeName: string;
  readonly metadata: boolean;
  readonly fields: readonly HeaderField[];
  /** Without its varbit. */
  readonly widthBits: number;
  readonly varbit: HeaderField | undefined;
  /** The other headers of its union: of those at most one is valid. */
  readonly rivals: readonly Header[];
}

export interface HeaderUnion {
  readonly name: string;
  readonly id: number;
  /** In the order of `headers`. */
  readonly memberNames: readonly string[];
  readonly headers: readonly Header[];
}

/** A stack of headers, each element being one, or of unions, each element being all that may be in it. */
export interface Stack {
  readonly name: string;
  /** Of a union's headers. */
  readonly memberNames: readonly string[];
  readonly elements: readonly (readonly Header[])[];
  /** A hidden field: where the parser extracts to next. */
  readonly next: HeaderField;
}

/** An integer of unlimited precision; only assignment truncates. */
export type DataExpression =
  | { readonly kind: 'constant'; readonly value: bigint }
  | { readonly kind: 'field'; readonly field: HeaderField }
  /** 1 if the header is valid, otherwise 0: bmv2's hidden field `$valid$`. */
  | { readonly kind: 'validity'; readonly header: Header }
  /** An action's parameter. */
  | { readonly kind: 'parameter'; readonly index: number; readonly widthBits: number }
  /** Bits of the packet from the parser's cursor on, not consumed. */
  | { readonly kind: 'lookahead'; readonly offsetBits: number; readonly widthBits: number }
  | {
      readonly kind: 'arithmetic';
      readonly operator: ArithmeticOperator;
      readonly left: DataExpression;
      readonly right: DataExpression;
    }
  | { readonly kind: 'complement'; readonly operand: DataExpression }
  | {
      readonly kind: 'cast';
      readonly cast: CastOperator;
      readonly operand: DataExpression;
      readonly widthBits: number;
    }
  | {
      readonly kind: 'choice';
      readonly condition: BooleanExpression;
      readonly yes: DataExpression;
      readonly no: DataExpression;
    }
  | { readonly kind: 'from-boolean'; readonly operand: BooleanExpression }
  /** A cell of a register array, 0 beyond its end. */
  | { readonly kind: 'register'; readonly register: RegisterArray; readonly index: DataExpression };

export type ArithmeticOperator = '+' | '-' | '*' | '/' | '%' | '<<' | '>>' | '&' | '|' | '^';
/** Two's complement of the width; saturation to a signed or an unsigned number of the width. */
export type CastOperator = 'two_comp_mod' | 'sat_cast' | 'usat_cast';
export type ComparisonOperator = '==' | '!=' | '<' | '>' | '<=' | '>=';

export type BooleanExpression =
  | { readonly kind: 'literal'; readonly value: boolean }
  | {
      readonly kind: 'comparison';
      readonly operator: ComparisonOperator;
      readonly left: DataExpression;
      readonly right: DataExpression;
    }
  | {
      readonly kind: 'boolean-comparison';
      readonly equal: boolean;
      readonly left: BooleanExpression;
      readonly right: BooleanExpression;
    }
  /** Two headers are equal if both are invalid, or both are valid with equal fields. */
  | { readonly kind: 'header-comparison'; readonly equal: boolean; readonly left: Header; readonly right: Header }
  | {
      readonly kind: 'logic';
      readonly operator: 'and' | 'or';
      readonly left: BooleanExpression;
      readonly right: BooleanExpression;
    }
  | { readonly kind: 'not'; readonly operand: BooleanExpression }
  | {
      readonly kind: 'boolean-choice';
      readonly condition: BooleanExpression;
      readonly yes: BooleanExpression;
      readonly no: BooleanExpression;
    }
  | { readonly kind: 'is-valid'; readonly header: Header }
  | { readonly kind: 'non-zero'; readonly operand: DataExpression };

export interface CounterArray {
  readonly name: string;
  readonly index: number;
  readonly size: number;
  /** The table whose entries it counts; `undefined` for an array that actions index. */
  readonly directTable: string | undefined;
}

export interface MeterArray {
  readonly name: string;
  readonly index: number;
  readonly size: number;
  readonly unit: 'bytes' | 'packets';
  /** Of a direct meter: the table whose entries have one each, and where a hit puts the colour. */
  readonly direct: { readonly table: string; readonly target: HeaderField } | undefined;
}

export interface RegisterArray {
  readonly name: string;
  readonly index: number;
  readonly size: number;
  readonly widthBits: number;
}

/** Metadata that a copy, or a packet that starts again, keeps; all other metadata becomes zero. */
export interface FieldList {
  /** As primitives name it; 0 is the list of nothing. */
  readonly id: number;
  readonly fields: readonly HeaderField[];
}

/** A message for the control plane; its fields are read at the end of ingress. */
export interface LearnList {
  readonly name: string;
  readonly index: number;
  readonly id: number;
  readonly fields: readonly HeaderField[];
}

/** Values that the control plane gives to the parser. */
export interface ValueSet {
  readonly name: string;
  readonly index: number;
  /** Members at most. */
  readonly size: number;
  /** Of a member's parts, in the order of the key that is compared. */
  readonly widths: readonly number[];
}

/** Algorithms by simple_switch's names. All other CRCs are described by their parameters. */
export const HASH_ALGORITHMS = [
  'crc16',
  'crc32',
  'crcCCITT',
  'csum16',
  'cksum16',
  'xor16',
  'xor32',
  'xxh64',
  'toeplitz',
  'identity',
  'round_robin',
  'round_robin_consistent',
] as const;
export type HashAlgorithm = (typeof HASH_ALGORITHMS)[number] | CrcParameters;

/** A piece of what a hash or checksum covers. Fields of headers that are invalid when it is computed are left out. */
export type HashInput =
  | { readonly kind: 'field'; readonly field: HeaderField }
  | { readonly kind: 'constant'; readonly value: bigint; readonly widthBits: number }
  | { readonly kind: 'payload' };

export interface Calculation {
  readonly name: string;
  readonly index: number;
  readonly algorithm: HashAlgorithm;
  readonly inputs: readonly HashInput[];
}

export type Primitive =
  | { readonly kind: 'assign'; readonly target: HeaderField; readonly value: DataExpression }
  /** The value and its length. */
  | { readonly kind: 'assign-varbit'; readonly target: HeaderField; readonly source: HeaderField }
  | { readonly kind: 'assign-header'; readonly target: Header; readonly source: Header }
  /** Valid, with zeros, unless it was valid. */
  | { readonly kind: 'add-header'; readonly header: Header }
  /** Valid, with what its fields last were. */
  | { readonly kind: 'validate-header'; readonly header: Header }
  | { readonly kind: 'remove-header'; readonly header: Header }
  /** Shifts a stack by so many elements, away from its front or towards it; what comes in is invalid. */
  | { readonly kind: 'push' | 'pop'; readonly stack: Stack; readonly count: DataExpression }
  | { readonly kind: 'sequence'; readonly primitives: readonly Primitive[] }
  | {
      readonly kind: 'branch';
      readonly condition: BooleanExpression;
      readonly yes: Primitive;
      readonly no: Primitive;
    }
  /** Continues at the primitive of that index, if the condition is absent or false. */
  | { readonly kind: 'jump'; readonly unless: BooleanExpression | undefined; readonly to: number }
  | { readonly kind: 'exit' }
  | {
      readonly kind: 'mark-to-drop';
      readonly egressSpec: HeaderField;
      readonly multicastGroup: HeaderField | undefined;
    }
  | { readonly kind: 'truncate'; readonly lengthBytes: DataExpression }
  /** At the end of this pipeline: one copy set per packet, the last call counts. */
  | { readonly kind: 'clone'; readonly session: DataExpression; readonly keep: FieldList }
  /** At the end of ingress, or of egress: the packet starts again. A list of id 0 takes the request back. */
  | { readonly kind: 'resubmit' | 'recirculate'; readonly keep: FieldList }
  /** At the end of ingress; `undefined` takes the request back. */
  | { readonly kind: 'digest'; readonly list: LearnList | undefined }
  | { readonly kind: 'count'; readonly counter: CounterArray; readonly index: DataExpression }
  | {
      readonly kind: 'execute-meter';
      readonly meter: MeterArray;
      readonly index: DataExpression;
      readonly target: HeaderField;
    }
  | {
      readonly kind: 'register-read';
      readonly register: RegisterArray;
      readonly index: DataExpression;
      readonly target: HeaderField;
    }
  | {
      readonly kind: 'register-write';
      readonly register: RegisterArray;
      readonly index: DataExpression;
      readonly value: DataExpression;
    }
  /** `target = base + hash % max`; a max of 0 counts as 1. */
  | {
      readonly kind: 'hash';
      readonly target: HeaderField;
      readonly calculation: Calculation;
      readonly base: DataExpression;
      readonly max: DataExpression;
    }
  /** Uniform in low..high, both included; nothing happens when low > high. */
  | {
      readonly kind: 'random';
      readonly target: HeaderField;
      readonly low: DataExpression;
      readonly high: DataExpression;
    }
  | { readonly kind: 'log'; readonly format: string; readonly values: readonly DataExpression[] }
  | { readonly kind: 'assert'; readonly condition: BooleanExpression; readonly place: string }
  | { readonly kind: 'no-op' };

export interface ActionParameter {
  readonly name: string;
  readonly widthBits: number;
}

export interface Action {
  readonly name: string;
  readonly id: number;
  readonly index: number;
  readonly parameters: readonly ActionParameter[];
  readonly primitives: readonly Primitive[];
}

export type ParserOperation =
  /** `lengthBits`: of the header's varbit. */
  | { readonly kind: 'extract'; readonly header: Header; readonly lengthBits: DataExpression | undefined }
  /** Into the next element of a stack, of a union there into that member. */
  | {
      readonly kind: 'extract-next';
      readonly stack: Stack;
      readonly member: number;
      readonly lengthBits: DataExpression | undefined;
    }
  /** Fails if nothing was extracted into the stack yet: what follows reads its last element. */
  | { readonly kind: 'require-last'; readonly stack: Stack }
  | { readonly kind: 'verify'; readonly condition: BooleanExpression; readonly error: DataExpression }
  | { readonly kind: 'advance'; readonly bits: DataExpression }
  | { readonly kind: 'primitive'; readonly primitive: Primitive };

/**
 * Taken if every key part, under its mask, has the value, or, if there is a value set, one of its members agrees under the masks. Parts
 * with mask 0 are not compared; without parts it is the default.
 */
export interface ParserTransition {
  readonly parts: readonly { readonly value: bigint; readonly mask: bigint }[];
  readonly valueSet: ValueSet | undefined;
  /** `undefined` ends the parser. */
  readonly next: ParserState | undefined;
}

export interface ParserState {
  readonly name: string;
  readonly index: number;
  readonly operations: readonly ParserOperation[];
  readonly key: readonly { readonly value: DataExpression; readonly widthBits: number }[];
  /** In order; the first that matches is taken. A last one with no parts is the default. */
  readonly transitions: readonly ParserTransition[];
}

export interface Parser {
  readonly name: string;
  readonly initial: ParserState | undefined;
  readonly states: readonly ParserState[];
}

export type MatchKind = 'exact' | 'lpm' | 'ternary' | 'range';

export interface TableKey {
  readonly name: string;
  readonly match: MatchKind;
  readonly value: DataExpression;
  readonly widthBits: number;
}

export type ConstantMatch =
  | { readonly kind: 'exact'; readonly value: bigint }
  | { readonly kind: 'lpm'; readonly value: bigint; readonly prefixLength: number }
  | { readonly kind: 'ternary'; readonly value: bigint; readonly mask: bigint }
  | { readonly kind: 'range'; readonly low: bigint; readonly high: bigint };

export interface ConstantActionCall {
  readonly action: Action;
  readonly params: readonly bigint[];
}

export interface ConstantEntry {
  readonly match: readonly ConstantMatch[];
  /** P4Runtime's order: the higher number wins. 0 where only exact and lpm keys are. */
  readonly priority: number;
  readonly call: ConstantActionCall;
}

/** Where an action profile's selector takes its member from. */
export interface Selector {
  readonly calculation: Calculation;
}

export interface Table {
  readonly kind: 'table';
  readonly name: string;
  readonly index: number;
  readonly keys: readonly TableKey[];
  readonly size: number;
  readonly actions: readonly Action[];
  /** By hit and miss, or by action; `undefined` ends the pipeline. */
  readonly next:
    | {
        readonly kind: 'hit-miss';
        readonly hit: PipelineNode | undefined;
        readonly miss: PipelineNode | undefined;
      }
    | { readonly kind: 'action'; readonly byAction: ReadonlyMap<Action, PipelineNode | undefined> };
  /** After a miss in a table without a default action. */
  readonly baseNext: PipelineNode | undefined;
  readonly defaultCall: ConstantActionCall | undefined;
  /** The control plane cannot change the default action: the compiler may rely on it. */
  readonly defaultIsConst: boolean;
  readonly entries: readonly ConstantEntry[];
  /** Entries hold several actions and a hash chooses. */
  readonly selector: Selector | undefined;
  readonly directCounter: CounterArray | undefined;
  readonly directMeter: MeterArray | undefined;
}

export interface Conditional {
  readonly kind: 'conditional';
  readonly name: string;
  /** The condition as the P4 source has it, as far as the compiler said. */
  readonly source: string | undefined;
  readonly condition: BooleanExpression;
  readonly yes: PipelineNode | undefined;
  readonly no: PipelineNode | undefined;
}

/** An action that a control calls without a table. */
export interface DirectCall {
  readonly kind: 'call';
  readonly name: string;
  readonly action: Action;
  readonly next: PipelineNode | undefined;
}

export type PipelineNode = Table | Conditional | DirectCall;

export interface Pipeline {
  readonly name: string;
  readonly initial: PipelineNode | undefined;
  readonly nodes: readonly PipelineNode[];
}

export interface Checksum {
  readonly name: string;
  readonly target: HeaderField;
  readonly calculation: Calculation;
  readonly verify: boolean;
  readonly update: boolean;
  readonly condition: BooleanExpression | undefined;
}

/** The core library's parser errors by the numbers that this program gave them. */
export interface ParserErrors {
  readonly noError: number;
  readonly packetTooShort: number;
  readonly stackOutOfBounds: number;
  readonly headerTooShort: number;
  readonly parserTimeout: number;
  readonly parserInvalidArgument: number;
}

/** The metadata through which a program and simple_switch talk; a program need not have all of it. */
export interface StandardMetadata {
  readonly ingressPort: HeaderField;
  readonly egressSpec: HeaderField;
  readonly egressPort: HeaderField;
  readonly packetLength: HeaderField;
  readonly instanceType: HeaderField;
  readonly multicastGroup: HeaderField | undefined;
  readonly egressRid: HeaderField | undefined;
  readonly parserError: HeaderField | undefined;
  readonly checksumError: HeaderField | undefined;
  readonly ingressTimestamp: HeaderField | undefined;
  readonly egressTimestamp: HeaderField | undefined;
  readonly enqueueTimestamp: HeaderField | undefined;
  readonly enqueueDepth: HeaderField | undefined;
  readonly dequeueDelta: HeaderField | undefined;
  readonly dequeueDepth: HeaderField | undefined;
  readonly priority: HeaderField | undefined;
}

export interface Program {
  readonly headers: readonly Header[];
  readonly stacks: readonly Stack[];
  readonly valueSets: readonly ValueSet[];
  /** The parser's transitions that look into a value set. */
  readonly valueSetUses: readonly ParserTransition[];
  readonly errors: ParserErrors;
  readonly standardMetadata: StandardMetadata;
  readonly counters: readonly CounterArray[];
  readonly meters: readonly MeterArray[];
  readonly registers: readonly RegisterArray[];
  readonly fieldLists: readonly FieldList[];
  readonly learnLists: readonly LearnList[];
  readonly calculations: readonly Calculation[];
  readonly actions: readonly Action[];
  readonly tables: readonly Table[];
  readonly parser: Parser;
  readonly ingress: Pipeline;
  readonly egress: Pipeline;
  /** The order in which valid headers are put before the payload. */
  readonly deparser: readonly Header[];
  /** Run before that. */
  readonly deparserPrimitives: readonly Primitive[];
  readonly checksums: readonly Checksum[];
}
