import { Command, CommanderError } from 'commander';
import { DdfError, type ErrorCode, toDdfError } from '../base/errors.ts';
import { EXIT_CODES, registerCommands } from '../controller/cli/commands.ts';
import { MAX_LOSS_PERCENT } from './options.ts';
import { DEFAULT_MTU_BYTES, type RawAgentOptions, runAgent } from './run-agent.ts';
import {
  DEFAULT_AGENTS_ADDRESS,
  DEFAULT_API_ADDRESS,
  type RawControllerOptions,
  runController,
} from './run-controller.ts';
import { createTerminal } from './terminal.ts';
import { runUp } from './up.ts';
import { MAX_SERVERS, type RawUpOptions } from './up-options.ts';

/** What is wrong with these is the command line or what it names, not the work. */
const USAGE_ERRORS: readonly ErrorCode[] = [
  'INVALID_OPTION',
  'INVALID_FILE',
  'BASE_MISMATCH',
  'INVALID_TOPOLOGY',
  'INVALID_REQUEST',
  'NOT_FOUND',
  'ALREADY_EXISTS',
];

const UP_HELP = `
Cohorts: CURRENT servers hold the new version already, DELTA hold the version before it, FULL hold nothing.
  40,16,8   that many servers; they sum up to --servers, or say how many there are
  5:2:1     a ratio of --servers
Without --object, the object is a sentence encoder's weights in bf16 and its second version is derived from the
first by a seeded, optimiser-like update of 1 % of the elements. Without --base, --object has no version before it
and nobody needs a delta.

Exit code: 0 all servers verified, 1 not all or failed, 2 wrong options or files, 130 interrupted.
`;

/** The `ddf` command. Returns the exit code of the process. */
export async function main(commandLine: readonly string[]): Promise<number> {
  const terminal = createTerminal(process.stdout, process.stderr);
  let exitCode: number = EXIT_CODES.ok;
  const program = new Command('ddf')
    .description('A data-distribution fabric: brings object versions to many servers, each byte once per link')
    .exitOverride()
    .configureHelp({ sortSubcommands: false })
    .showHelpAfterError('(--help lists commands and options)');

  program
    .command('up')
    .description('start a fabric in this process and bring a version to its servers: what `npm start` does')
    .option('--object <file>', 'distribute this file (default: the weights of a small model)')
    .option('--base <file>', 'the version of --object that the DELTA servers hold, of exactly the same size')
    .option('--servers <n>', `GPU servers, 1 to ${MAX_SERVERS} (default: those of the topology, 64)`)
    .option('--cohorts <current,delta,full>', 'who holds what at the start (default: 5:2:1)')
    .option('--loss <percent>', `frames that each host link loses, 0 to ${MAX_LOSS_PERCENT} (default: 1)`)
    .option('--seed <n>', 'reproduces losses and the second version (default: 1)')
    .option('--topology <file>', 'YAML description of the fabric (default: topologies/leaf-spine.yaml)')
    .option('--port <n>', 'TCP port of the REST API on 127.0.0.1 (default: any free one)')
    .option('--serve', 'keep the fabric and the REST API up until Ctrl-C')
    .option(
      '--json',
      'print one JSON object as the last line of stdout, { error } on failure; everything else on stderr',
    )
    .addHelpText('after', UP_HELP)
    .action(async (options: RawUpOptions) => {
      exitCode = await runUp(options, terminal);
    });

  program
    .command('controller')
    .description('start the controller of one fabric; SIGTERM ends it')
    .option('--topology <file>', 'YAML description of the fabric')
    .option('--switches <list>', 'where their P4Runtime servers are: leaf1=HOST:PORT,...')
    .option('--switch-base-port <n>', 'instead: on 127.0.0.1, device id 1 at this port, 2 at the next, and so on')
    .option('--db <file>', 'SQLite database, made if it does not exist')
    .option('--agents <host:port>', 'where agents attach', DEFAULT_AGENTS_ADDRESS)
    .option('--api <host:port>', 'where REST is served; it has no tokens yet: keep it local', DEFAULT_API_ADDRESS)
    .action(async (options: RawControllerOptions) => {
      exitCode = await runController(options, terminal);
    });

  for (const kind of ['memory-node', 'gpu-server'] as const) {
    const command = program
      .command(kind)
      .description(`start the agent of a ${kind === 'memory-node' ? 'Memory Node' : 'GPU server'}; SIGTERM ends it`)
      .option('--name <name>', "this host's name in the controller's topology")
      .option('--controller <host:port>', 'where the controller listens for agents')
      .option('--store <directory>', 'where versions are kept')
      .option('--ip <address>', 'IPv4 address of the interface towards the fabric')
      .option('--mtu <bytes>', `largest IP packet on that interface (default: ${DEFAULT_MTU_BYTES})`)
      .option('--range <host:port>', 'where range reads are served (default: --ip and any free port)')
      .option('--volatile', 'versions need not survive a power failure: do not wait for the disk')
      .option('--loss <percent>', `throw away datagrams of the fabric, each way, 0 to ${MAX_LOSS_PERCENT}, for tests`)
      .option('--seed <n>', 'reproduces what --loss throws away (default: another one every time)');
    if (kind === 'gpu-server') command.option('--receiver-port <n>', 'UDP port of its receiver');
    command.action(async (options: RawAgentOptions) => {
      exitCode = await runAgent(kind, options, terminal);
    });
  }

  registerCommands(program, {
    out: (line) => terminal.out(line),
    ...(terminal.redraw === undefined ? {} : { redraw: terminal.redraw }),
    fail: (code) => {
      exitCode = code;
    },
  });

  try {
    await program.parseAsync(commandLine, { from: 'user' });
    terminal.finishLine();
    return exitCode;
  } catch (error) {
    terminal.finishLine();
    // Commander has printed its own message; help ends with 0.
    if (error instanceof CommanderError && error.exitCode === 0) return EXIT_CODES.ok;
    const known = error instanceof CommanderError ? usageError(error) : toDdfError(error);
    if (!(error instanceof CommanderError)) terminal.error(`${known.code}: ${known.describe()}`);
    if (known.code === 'INTERNAL') terminal.error(stackOf(known));
    if (commandLine.includes('--json')) terminal.out(JSON.stringify(errorJson(known)));
    return USAGE_ERRORS.includes(known.code) ? EXIT_CODES.usage : EXIT_CODES.failed;
  }
}

function usageError(error: CommanderError): DdfError {
  return new DdfError('INVALID_OPTION', error.message.replace(/^error: /, ''), {
    remedy: '--help lists options.',
    cause: error,
  });
}

/** What `--json` prints in place of a result. */
function errorJson({ code, message, where, remedy }: DdfError): Record<string, unknown> {
  return { error: { code, message, where, remedy } };
}

function stackOf(error: DdfError): string {
  return (error.cause instanceof Error ? error.cause.stack : error.stack) ?? '';
}
