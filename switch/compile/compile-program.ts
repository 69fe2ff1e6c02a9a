import { DdfError } from '../../base/errors.ts';
import type { Program } from '../bmv2/program.ts';
import type { ActionContext } from './action.ts';
import { calculationFunction } from './calculation.ts';
import { Code, code, lines, name, nothing } from './code.ts';
import { LabelSource } from './control-flow.ts';
import { deparserFunctions } from './deparser.ts';
import { Layout } from './layout.ts';
import { PacketFields } from './packet-fields.ts';
import { packetPath } from './packet-path.ts';
import { parserFunction } from './parser.ts';
import { actionFunctions, pipelineFunction } from './pipeline.ts';
import { isPlainCall, keyLayout } from './table.ts';
import { Tracing } from './tracing.ts';
import { analyseUsage } from './usage.ts';

/** A program as JavaScript: the text of a function of (`environment`, `library`) that returns `receive(port, memory, start, end)`. */
export interface CompiledProgram {
  readonly source: string;
  /** Where everything stands in the packet header vector. */
  readonly layout: Layout;
}

/** Names of the library functions that generated code calls (../runtime/library.ts gives them). */
export const LIBRARY_NAMES = [
  'imul',
  'floor',
  'shiftLeft',
  'shiftRight',
  'modulo',
  'clamp',
  'clampWide',
  'divide',
  'remainder',
  'shiftLeftWide',
  'shiftRightWide',
  'readWide',
  'storeWide',
  'hashOffset',
  'hashBuffer',
  'putBits',
  'putVarbit',
  'loadVarbit',
  'foldedComplement',
  'crc16',
  'crc32',
  'crcCCITT',
  'crc',
  'csum16',
  'xor16',
  'xor32',
  'xxh64',
  'toeplitz',
  'identity',
  'roundRobin',
  'roundRobinConsistent',
  'allocate',
  'FrameMemory',
  'truncation',
  'endlessPacket',
  'assertionFailed',
  'endlessLoop',
] as const;

/** Names of what generated code is given anew for every load (see ../runtime/running-program.ts). */
export const ENVIRONMENT_NAMES = [
  'phv',
  'statistics',
  'clock',
  'replication',
  'queueDepth',
  'transmit',
  'uniform',
  'log',
  'learn',
] as const;

export interface CompileOptions {
  /** The egress_spec of a packet that is dropped, at most 511; simple_switch's --drop-port. */
  readonly dropPort: number;
  /** Packets of higher priority than these queues have are dropped; simple_switch's --priority-queues. */
  readonly priorityQueues: number;
}

/**
 * @param tracing whether the code tells `environment.trace` what happens to packets (see ../trace/tracer.ts)
 *
 * Throws DdfError UNSUPPORTED_PROGRAM for control flow that is nested deeper than the engine's stack. */
export function compileProgram(program: Program, options: CompileOptions, tracing = false): CompiledProgram {
  try {
    return generate(program, options, new Tracing(tracing));
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw new DdfError('UNSUPPORTED_PROGRAM', 'This switch cannot run control flow that is nested so deeply', {
      where: '$',
      cause: error,
    });
  }
}

function generate(program: Program, options: CompileOptions, tracing: Tracing): CompiledProgram {
  const layout = new Layout(program, analyseUsage(program));
  const fields = new PacketFields(layout, program.standardMetadata);
  const context: ActionContext = { layout, labels: new LabelSource(), dropPort: options.dropPort, tracing };
  const pick = (names: readonly string[]) =>
    Code.sequence(
      names.map((each) => name(each)),
      ', ',
    );
  const objects = [
    ...program.tables
      .filter((table) => !isPlainCall(table))
      .flatMap((table) => {
        const { index } = table;
        const declared = [code`const ${name('T', index)} = environment.tables[${index}];`];
        if (table.keys.length === 0) return declared;
        declared.push(code`const ${name('X', index)} = ${name('T', index)}.index;`);
        const { words } = keyLayout(table.keys);
        if (words > 1) declared.push(code`const ${name('K', index)} = new Uint32Array(${words});`);
        return declared;
      }),
    ...program.valueSetUses.flatMap((use, index) => {
      const { words } = keyLayout(use.valueSet!.widths.map((widthBits) => ({ widthBits })));
      const members = code`const ${name('V', index)} = environment.valueSetUses[${index}];`;
      return words > 1 ? [members, code`const ${name('Q', index)} = new Uint32Array(${words});`] : [members];
    }),
    ...program.counters.map(({ index }) => code`const ${name('C', index)} = environment.counters[${index}].cells;`),
    ...program.meters.map(({ index }) => code`const ${name('M', index)} = environment.meters[${index}];`),
    ...program.registers.map(({ index }) => code`const ${name('R', index)} = environment.registers[${index}].cells;`),
  ];
  const source = lines([
    code`'use strict';`,
    code`const { ${pick(ENVIRONMENT_NAMES)} } = environment;`,
    tracing.on ? code`const { trace } = environment;` : nothing,
    code`const { ${pick(LIBRARY_NAMES)} } = library;`,
    ...objects,
    code`let memory, start = 0, length = 0, parsed = 0, out, outStart = 0, outEnd = 0, parserError = 0, now = 0, turns = 0, exiting = false;`,
    code`function registerCell(cells, i, size, words) {
if (i >= 0 && i < size) return readWide(cells, i * words, words);
statistics.outOfRange++;
return 0n;
}`,
    ...program.calculations.map((calculation) => calculationFunction(calculation, layout)),
    parserFunction(program, context),
    ...actionFunctions([program.ingress, program.egress], context),
    pipelineFunction(name('ingress'), program.ingress, context),
    pipelineFunction(name('egress'), program.egress, context),
    ...deparserFunctions(program, context),
    ...packetPath(program, layout, fields, options, tracing),
    code`return receive;`,
  ]);
  return { source: source.toString(), layout };
}
