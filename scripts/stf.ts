/**
 * Runs every STF packet test in a folder on the embedded switch: `npm run stf -- DIR [--json] [--filter TEXT]`.
 *
 * A test NAME.stf needs NAME.json beside it, or NAME.p4 and p4c-bm2-ss on the PATH, which then compiles into a temporary folder.
 * Programs for other architectures than v1model are skipped. Ends with status 1 if a test fails.
 */
import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join, relative } from 'node:path';
import { parseArgs, promisify } from 'node:util';
import { toDdfError } from '../base/errors.ts';
import { runStf } from '../lab/stf/run.ts';
import { parseStf } from '../lab/stf/script.ts';
import { findCompiler } from './p4-build.ts';

type Outcome = { readonly kind: 'passed' | 'failed' | 'unsupported' | 'skipped'; readonly reason?: string };

const run = promisify(execFile);
/** Compilers that run at a time. */
const PARALLEL = 2;
const COMPILE_TIMEOUT_MS = 120_000;
const OTHER_ARCHITECTURE =
  /#include\s*[<"](?:bmv2\/|dpdk\/)?(psa|pna|ebpf_model|ubpf_model|xdp_model|tna|t2na)\.p4[>"]/;

/** What p4c says to programs that are no packages of v1model. */
const NOT_FOR_V1MODEL = /does not contain a `main' module|main package does not match the expected model/;

function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { json: { type: 'boolean', default: false }, filter: { type: 'string' } },
  });
  const [directory] = positionals;
  if (directory === undefined) {
    process.stderr.write('npm run stf -- DIR [--json] [--filter TEXT]\n');
    process.exitCode = 2;
    return Promise.resolve();
  }
  return runAll(directory, values.filter ?? '', values.json);
}

async function runAll(directory: string, filter: string, json: boolean): Promise<void> {
  const found = findCompiler();
  const compiler = found?.isDriver === false ? found.path : undefined;
  const scratch = mkdtempSync(join(tmpdir(), 'ddf-stf-'));
  try {
    const tests = findTests(directory).filter((path) => path.includes(filter));
    const outcomes = new Array<Outcome>(tests.length);
    let next = 0;
    const worker = async (): Promise<void> => {
      for (let i = next++; i < tests.length; i = next++)
        outcomes[i] = await runTest(tests[i]!, compiler, join(scratch, `${i}.json`));
    };
    await Promise.all(Array.from({ length: PARALLEL }, worker));
    report(
      tests.map((path) => relative(directory, path)),
      outcomes,
      json,
    );
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

function findTests(directory: string): string[] {
  return readdirSync(directory, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.stf'))
    .sort()
    .map((path) => join(directory, path));
}

async function runTest(path: string, compiler: string | undefined, output: string): Promise<Outcome> {
  const program = path.replace(/\.stf$/, '.json');
  const source = path.replace(/\.stf$/, '.p4');
  let compiled = program;
  if (!existsSync(program)) {
    if (!existsSync(source)) return { kind: 'skipped', reason: 'no program beside it' };
    const text = readFileSync(source, 'utf8');
    const other = OTHER_ARCHITECTURE.exec(text)?.[1];
    if (other !== undefined) return { kind: 'skipped', reason: `for ${other}, not v1model` };
    if (compiler === undefined)
      return { kind: 'unsupported', reason: 'no compiled JSON, and no p4c-bm2-ss on the PATH' };
    const complaint = await compile(compiler, source, text, output);
    if (complaint !== undefined) {
      const skipped = NOT_FOR_V1MODEL.test(complaint);
      return { kind: skipped ? 'skipped' : 'unsupported', reason: `p4c-bm2-ss: ${complaint}` };
    }
    compiled = output;
  }
  try {
    runStf(parseStf(readFileSync(path, 'utf8'), basename(path)), readFileSync(compiled));
    return { kind: 'passed' };
  } catch (error) {
    const fault = toDdfError(error);
    const reason = fault.where === undefined ? fault.message : `${fault.where}: ${fault.message}`;
    return { kind: fault.code === 'UNSUPPORTED_PROGRAM' ? 'unsupported' : 'failed', reason };
  }
}

/** Gives the compiler's first complaint, if it has one. */
async function compile(compiler: string, source: string, text: string, output: string): Promise<string | undefined> {
  const dialect = /^\s*header_type\s/m.test(text) ? ['--std', 'p4-14'] : [];
  try {
    await run(compiler, [...dialect, '--arch', 'v1model', '-o', output, source], { timeout: COMPILE_TIMEOUT_MS });
    return undefined;
  } catch (error) {
    const said = String((error as { stderr?: unknown }).stderr ?? error).split('\n');
    return said.find((line) => /error\b|`main' module/.test(line)) ?? said[0];
  }
}

function report(names: readonly string[], outcomes: readonly Outcome[], json: boolean): void {
  const count = (kind: Outcome['kind']): number => outcomes.filter((outcome) => outcome.kind === kind).length;
  outcomes.forEach(({ kind, reason }, i) => {
    process.stdout.write(`${kind.padEnd(11)} ${names[i]}${reason === undefined ? '' : `: ${reason}`}\n`);
  });
  const [passed, failed, unsupported] = [count('passed'), count('failed'), count('unsupported')];
  const total = passed + failed + unsupported;
  process.stdout.write(
    `${passed} of ${total} passed, ${failed} failed, ${unsupported} unsupported; ${count('skipped')} skipped as not for v1model\n`,
  );
  if (json) process.stdout.write(`${JSON.stringify({ total, passed, failed, unsupported })}\n`);
  if (failed > 0) process.exitCode = 1;
}

await main();
