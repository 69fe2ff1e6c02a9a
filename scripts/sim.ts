/**
 * A transfer in virtual time, with the agents' protocol and the P4 program in every switch: `npm run sim -- --receivers 1024 --loss 0.01`.
 * No sockets, no root; the same options and seed give the same figures on every machine.
 */
import { parseArgs } from 'node:util';
import { DdfError, toDdfError } from '../base/errors.ts';
import { readFabricProgram } from '../lab/p4-program.ts';
import { type StudyOptions, type StudyResult, studyTransfer } from '../lab/study/transfer-study.ts';
import { MTU, parseQuantity, type Quantity, RATE } from '../topologies/quantity.ts';
import { MAX_SEED, wholeNumber } from './options.ts';

const HELP = `npm run sim -- [options]

  --receivers N[,N...]   receivers, 1 to 2048 (default 4,16,64)
  --loss P[,P...]        share of frames that every host link loses each way, 0 to 0.3 (default 0.01)
  --size "16 MiB"        of the object (default 8 MiB)
  --mtu "9000 B"         largest IP packet (default 9000 B)
  --rate "1 Gb/s"        of host links; --core-rate of links between switches (default 4 times as much)
  --stripes N            at most so many, where that carries more (default 1)
  --delay-us N           of every link, one way (default 10)
  --leaves N             with receivers (default 4, from 128 receivers on 32); --spines N (default 2)
  --seed N  --runs N     first seed and number of runs (default 1 and 1); medians are printed
  --json                 last line {results: [...]}
`;

const SIZE: Quantity = {
  units: { B: 1, kB: 1e3, MB: 1e6, GB: 1e9, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30 },
  minimum: 1,
  maximum: 2 ** 30,
  example: '16 MiB',
};

const OPTIONS = {
  receivers: { type: 'string', default: '4,16,64' },
  loss: { type: 'string', default: '0.01' },
  size: { type: 'string', default: '8 MiB' },
  mtu: { type: 'string', default: '9000 B' },
  rate: { type: 'string', default: '1 Gb/s' },
  'core-rate': { type: 'string' },
  stripes: { type: 'string', default: '1' },
  'delay-us': { type: 'string', default: '10' },
  leaves: { type: 'string' },
  spines: { type: 'string', default: '2' },
  seed: { type: 'string', default: '1' },
  runs: { type: 'string', default: '1' },
  json: { type: 'boolean', default: false },
  help: { type: 'boolean', default: false },
} as const;

const MANY_RECEIVERS = 128;

type Values = { readonly [K in keyof typeof OPTIONS]?: string | boolean };

function main(argv: readonly string[]): void {
  const values = parse(argv);
  if (values.help === true) {
    process.stdout.write(HELP);
    return;
  }
  const { studies, runs } = studiesOf(values);
  const program = readFabricProgram();
  console.log(
    'receivers   loss   time/ideal  source/object  core/bound  NACKs at the source per lost block (ideal)  repairs/largest loss  unicast',
  );
  const results = studies.map((study) => {
    const all = Array.from({ length: runs }, (_, run) => studyTransfer(program, { ...study, seed: study.seed + run }));
    const result = { lossPercent: 100 * study.loss, mtu: study.mtuBytes, ...figures(all) };
    console.log(line(result));
    return result;
  });
  if (values.json === true) console.log(JSON.stringify({ results }));
}

function parse(argv: readonly string[]): Values {
  try {
    return parseArgs({ args: [...argv], options: OPTIONS }).values;
  } catch (error) {
    throw new DdfError('INVALID_OPTION', toDdfError(error).message, { remedy: '--help lists the options.' });
  }
}

function studiesOf(values: Values): { studies: StudyOptions[]; runs: number } {
  const text = (name: keyof typeof OPTIONS): string => String(values[name]);
  const hostBitsPerSecond = quantity('--rate', text('rate'), RATE);
  const common = {
    payloadBytes: quantity('--size', text('size'), SIZE),
    mtuBytes: quantity('--mtu', text('mtu'), MTU),
    hostBitsPerSecond,
    coreBitsPerSecond:
      values['core-rate'] === undefined ? 4 * hostBitsPerSecond : quantity('--core-rate', text('core-rate'), RATE),
    delayUs: wholeNumber('--delay-us', text('delay-us'), 0, 1_000_000),
    maxStripes: wholeNumber('--stripes', text('stripes'), 1, 8),
    spines: wholeNumber('--spines', text('spines'), 1, 16),
    seed: wholeNumber('--seed', text('seed'), 0, MAX_SEED),
  };
  const studies = text('receivers')
    .split(',')
    .map((count) => wholeNumber('--receivers', count, 1, 2048))
    .flatMap((receivers) =>
      text('loss')
        .split(',')
        .map((loss) => ({
          ...common,
          receivers,
          loss: share('--loss', loss),
          leaves:
            values.leaves === undefined
              ? receivers < MANY_RECEIVERS
                ? 4
                : 32
              : wholeNumber('--leaves', text('leaves'), 1, 128),
        })),
    );
  return { studies, runs: wholeNumber('--runs', text('runs'), 1, 1000) };
}

function quantity(option: string, text: string, kind: Quantity): number {
  const parsed = parseQuantity(text, kind);
  if ('problem' in parsed) throw new DdfError('INVALID_OPTION', `${option}: ${parsed.problem}`);
  return parsed.value;
}

function share(option: string, text: string): number {
  const value = Number(text);
  if (!/^\d*\.?\d+$/.test(text) || value > 0.3)
    throw new DdfError('INVALID_OPTION', `${option} ${text}: not a share from 0 to 0.3`, {
      remedy: 'One per cent is 0.01.',
    });
  return value;
}

/** Medians over runs of what depends on the seed. */
function figures(runs: readonly StudyResult[]) {
  const middle = (of: (run: StudyResult) => number): number => {
    const sorted = runs.map(of).sort((a, b) => a - b);
    return sorted[sorted.length >> 1]!;
  };
  const per = (a: number, b: number): number => (b === 0 ? 0 : a / b);
  return {
    receivers: runs[0]!.receivers,
    stripes: runs[0]!.stripes,
    verified: Math.min(...runs.map(({ verified }) => verified)),
    seconds: middle(({ seconds }) => seconds),
    idealSeconds: runs[0]!.idealSeconds,
    sourceBytesOverObject: middle(({ sourceBytesOverObject }) => sourceBytesOverObject),
    linkBytesOverBound: middle(({ linkBytesOverBound }) => linkBytesOverBound),
    nacksAtSourcePerLostBlock: middle((run) => per(run.nacksAtSource, run.lostBlocks)),
    idealNacksPerLostBlock: middle((run) => per(run.idealNacks, run.lostBlocks)),
    repairOverhead: middle((run) => per(run.repairSymbols, run.largestLosses)),
    unicastBytes: Math.max(...runs.map(({ unicastBytes }) => unicastBytes)),
  };
}

function line(result: ReturnType<typeof figures> & { readonly lossPercent: number }): string {
  const columns: [string, number][] = [
    [String(result.receivers), 9],
    [`${result.lossPercent} %`, 7],
    [(result.seconds / result.idealSeconds).toFixed(3), 13],
    [result.sourceBytesOverObject.toFixed(3), 15],
    [result.linkBytesOverBound.toFixed(3), 12],
    [`${result.nacksAtSourcePerLostBlock.toFixed(2)} (${result.idealNacksPerLostBlock.toFixed(2)})`, 44],
    [result.repairOverhead.toFixed(2), 22],
    [String(result.unicastBytes), 9],
  ];
  const missing = result.receivers - result.verified;
  return (
    columns.map(([text, width]) => text.padStart(width)).join('') + (missing === 0 ? '' : `  ${missing} INCOMPLETE`)
  );
}

try {
  main(process.argv.slice(2));
} catch (error) {
  process.stderr.write(`${toDdfError(error).describe()}\n`);
  process.exitCode = 1;
}
