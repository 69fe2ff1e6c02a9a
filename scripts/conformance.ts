/**
 * Checks the 84 rows of test/conformance/rows.ts and prints which hold: of the embedded switch's P4Runtime server and of the controller's client.
 *
 *     npm run conformance
 *     npm run conformance -- --json                                    last line: {total, passed, rows}
 *     npm run conformance -- --target 127.0.0.1:9559 --device-id 0     the server rows, against any P4Runtime server
 *     npm run conformance -- --target 127.0.0.1:9559 --device-id 0 --start COMMAND     the same, each row on a server that the command starts
 *
 * A foreign server must run v1model programs in bmv2 JSON, freshly started, with 510 as its CPU port: simple_switch_grpc with --no-p4 and -- --cpu-port 510.
 */
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { startVitest } from 'vitest/node';
import { DdfError, toDdfError } from '../base/errors.ts';

interface RowResult {
  readonly row: number;
  readonly side: 'server' | 'client' | 'both';
  readonly text: string;
  readonly passed: boolean;
  /** Where the proof stands. */
  readonly tests: readonly string[];
  /** What was expected instead, of rows that do not hold. */
  readonly failure: string | undefined;
}

interface TestResult {
  readonly row: number;
  readonly side: 'server' | 'client';
  readonly text: string;
  readonly passed: boolean;
  readonly failure: string | undefined;
}

const DIRECTORY = 'test/conformance';
/** Foreign servers are checked in wall time, row after row. */
const ROW_TIMEOUT_MS = 60_000;

async function runTests(sides: readonly ('server' | 'client')[]): Promise<TestResult[]> {
  const vitest = await startVitest(
    'test',
    sides.map((side) => `${DIRECTORY}/${side}.test.ts`),
    {
      root: fileURLToPath(new URL('..', import.meta.url)),
      watch: false,
      // What they print goes through us.
      reporters: [{}],
      testTimeout: ROW_TIMEOUT_MS,
    },
  );
  try {
    return vitest.state.getTestModules().flatMap((module) => {
      const side = module.moduleId.endsWith('/server.test.ts') ? 'server' : 'client';
      const broken = module.errors()[0];
      if (broken !== undefined) throw new DdfError('INTERNAL', `${module.moduleId}: ${broken.message}`);
      return [...module.children.allTests()].flatMap((test): TestResult[] => {
        const [, row, text] = /^row (\d+): (.*)$/.exec(test.name) ?? [];
        if (row === undefined || text === undefined) return [];
        const { state, errors } = test.result();
        return [
          { row: Number(row), side, text, passed: state === 'passed', failure: errors?.[0] && describe(errors[0]) },
        ];
      });
    });
  } finally {
    await vitest.close();
    process.exitCode = 0;
  }
}

function describe(error: { readonly message: string; readonly stack?: string }): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: colours of the terminal
  const message = error.message.replace(/\u001b\[\d+m/g, '').split('\n')[0]!;
  const place = /test\/conformance\/(?:server|client)\/[\w-]+\.ts:\d+/.exec(error.stack ?? '')?.[0];
  return place === undefined ? message : `${message} (${place})`;
}

/** A row of both sides holds if it does on either. */
function byRow(tests: readonly TestResult[]): RowResult[] {
  const numbers = [...new Set(tests.map(({ row }) => row))].sort((a, b) => a - b);
  return numbers.map((row) => {
    const own = tests.filter((test) => test.row === row);
    const [first, second] = own;
    return {
      row,
      side: second === undefined ? first!.side : 'both',
      text: first!.text,
      passed: own.every(({ passed }) => passed),
      tests: own.map(({ side }) => `${DIRECTORY}/${side}.test.ts: row ${row}`),
      failure: own.find(({ passed }) => !passed)?.failure,
    };
  });
}

function table(rows: readonly RowResult[]): string {
  const side = { server: 'S', client: 'C', both: 'S C' } as const;
  return rows
    .flatMap((row) => [
      `${String(row.row).padStart(3)}  ${side[row.side].padEnd(3)}  ${row.passed ? 'ok  ' : 'FAIL'}  ${row.text}`,
      ...(row.failure === undefined ? [] : [`                 ${row.failure}`]),
    ])
    .join('\n');
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      json: { type: 'boolean', default: false },
      target: { type: 'string' },
      'device-id': { type: 'string' },
      start: { type: 'string' },
    },
  });
  const { target, 'device-id': deviceId, start } = values;
  if (target !== undefined && !/^\S+:\d+$/.test(target))
    throw new DdfError('INVALID_OPTION', `--target ${target} is not HOST:PORT`);
  if (deviceId !== undefined && !/^\d+$/.test(deviceId))
    throw new DdfError('INVALID_OPTION', `--device-id ${deviceId} is not a number`);
  if ((deviceId ?? start) !== undefined && target === undefined)
    throw new DdfError('INVALID_OPTION', '--device-id and --start go with --target', {
      remedy: 'Say where the server listens, too.',
    });
  if (target !== undefined) process.env.DDF_CONFORMANCE_TARGET = target;
  if (deviceId !== undefined) process.env.DDF_CONFORMANCE_DEVICE_ID = deviceId;
  if (start !== undefined) process.env.DDF_CONFORMANCE_COMMAND = start;
  const rows = byRow(await runTests(target === undefined ? ['server', 'client'] : ['server']));
  const passed = rows.filter((row) => row.passed).length;
  console.log(table(rows));
  console.log(`\n${passed} of ${rows.length} rows hold${target === undefined ? '' : ` at ${target}`}`);
  if (values.json) console.log(JSON.stringify({ total: rows.length, passed, rows }));
  if (passed < rows.length || rows.length === 0) process.exitCode = 1;
}

main().catch((error: unknown) => {
  console.error(toDdfError(error).describe());
  process.exitCode = 1;
});
