import { Command, CommanderError } from 'commander';
import { DdfError, type ErrorCode, toDdfError } from '../base/errors.ts';
import { EXIT_CODES, registerCommands } from '../controller/cli/commands.ts';
import { type DoctorOptions, runDoctor } from './doctor.ts';
import { DEFAULT_RATES, DEFAULT_SERVERS, type RawMininetOptions } from './mininet/options.ts';
import { runMininet } from './mininet/run.ts';
import { MAX_LOSS_PERCENT } from './options.ts';
import { DEFAULT_MTU_BYTES, type RawAgentOptions, runAgent } from './run-agent.ts';
import {
  DEFAULT_AGENTS_ADDRESS,
  DEFAULT_API_ADDRESS,
  type RawControllerOptions,
  runController,
} from './run-controller.ts';
import { runSwitch } from './run-switch.ts';
import { DEFAULT_GRPC_ADDRESS, LOG_LEVELS, type RawSwitchOptions } from './switch-options.ts';
import { createTerminal } from './terminal.ts';
import { runUp } from './up.ts';
import { MAX_SERVERS, type RawUpOptions } from './up-options.ts';

/** What is wrong with these is the command line or what it names, not the work. */
const USAGE_ERRORS: readonly ErrorCode[] = [
  'INVALID_OPTION',
  'INVALID_FILE',
  'BASE_MISMATCH',
  'INVALID_TOPOLOGY',
  'INVALID_PROGRAM',
  'UNSUPPORTED_PROGRAM',
  'PROGRAM_MISMATCH',
  'PORT_UNAVAILABLE',
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

const SWITCH_HELP = `
The program forwards as soon as the switch has started; a controller may set another one. With --p4info it is also the
pipeline that P4Runtime serves, without it P4Runtime serves nothing before a controller has set a pipeline.
[port=] limits what frames suffer to one port; both directions suffer independently. Interfaces need root, or
CAP_NET_RAW and CAP_NET_ADMIN. SIGTERM or Ctrl-C ends the switch and prints what it has done.

Exit code: 0 ended by a signal, 1 failed, 2 wrong options, files or interfaces.
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
    .option('--tls-ca <file>', 'speak TLS to the switches; PEM of the authority that signed their certificates')
    .option('--tls-cert <file>', 'with --tls-key: the certificate that the controller shows them, PEM')
    .option('--tls-key <file>', 'its private key, PEM')
    .option(
      '--foreign-entries <policy>',
      "entries on the switches that are not this controller's: remove, keep, or adopt:MARK, which removes those that bear the mark, keeps the others, and marks its own",
      'remove',
    )
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
      .option(
        '--sockets <kind>',
        'batched: many datagrams per system call, needs 64-bit Linux and the package koffi; or dgram (default: batched where it can be)',
      )
      .option('--range <host:port>', 'where range reads are served (default: --ip and any free port)')
      .option('--volatile', 'versions need not survive a power failure: do not wait for the disk')
      .option('--loss <percent>', `throw away datagrams of the fabric, each way, 0 to ${MAX_LOSS_PERCENT}, for tests`)
      .option('--seed <n>', 'reproduces what --loss throws away (default: another one every time)');
    if (kind === 'gpu-server') command.option('--receiver-port <n>', 'UDP port of its receiver');
    command.action(async (options: RawAgentOptions) => {
      exitCode = await runAgent(kind, options, terminal);
    });
  }

  program
    .command('mininet')
    .description(
      'run the main job in Mininet: hosts in network namespaces, agents and switches as programs; needs root',
    )
    .argument('<topology>', 'YAML description of the fabric')
    .option('--switch <kind>', 'embedded or bmv2 (default: embedded)')
    .option('--job <demo|file>', "what is distributed: a small model's weights, or this file (default: demo)")
    .option('--base <file>', 'the version of the file that the DELTA servers hold, of exactly the same size')
    .option('--servers <n>', `GPU servers, a process each (default: those of the topology, at most ${DEFAULT_SERVERS})`)
    .option('--cohorts <current,delta,full>', 'who holds what at the start (default: 5:2:1)')
    .option(
      '--rate <Mb/s>',
      `of host links, the others in proportion (default: ${DEFAULT_RATES.embedded}, with bmv2 ${DEFAULT_RATES.bmv2})`,
    )
    .option('--loss <percent>', `at host links, each way, 0 to ${MAX_LOSS_PERCENT} (default: 1)`)
    .option('--seed <n>', 'reproduces losses and the second version (default: 1)')
    .option('--sockets <kind>', 'of the agents: batched or dgram (default: batched where it can be)')
    .option('--port <n>', 'TCP port of the REST API on 127.0.0.1 (default: any free one)')
    .option('--cli', "Mininet's command line afterwards")
    .option('--json', 'print one JSON object as the last line of stdout, { error } on failure')
    .addHelpText('after', UP_HELP.slice(UP_HELP.lastIndexOf('\nExit code')))
    .action(async (topology: string, options: RawMininetOptions) => {
      exitCode = await runMininet(topology, options, terminal);
    });

  program
    .command('doctor')
    .description('list which optional tools are there, and what is skipped without them')
    .option('--clean', 'remove what crashed runs in Mininet have left')
    .option('--json', 'print JSON')
    .action(async (options: DoctorOptions) => {
      exitCode = await runDoctor(options, terminal);
    });

  program
    .command('switch')
    .description('start an embedded switch on network interfaces, with a P4Runtime server; SIGTERM ends it')
    .option('--program <file>', 'bmv2 JSON that p4c-bm2-ss made')
    .option('--p4info <file>', 'its P4Info, as text')
    .option('--no-p4', 'start without a program: a controller sets it')
    .option('-i, --interface <port@name>', 'make a network interface a port; any number of times', collect)
    .option('--device-id <n>', 'as P4Runtime names this switch (default: 1)')
    .option('--grpc <host:port>', 'where P4Runtime is served, port 0 for any', DEFAULT_GRPC_ADDRESS)
    .option('--tls-cert <file>', 'serve P4Runtime over TLS with this certificate, PEM (default: without TLS)')
    .option('--tls-key <file>', 'its private key, PEM')
    .option('--tls-ca <file>', 'take only clients with a certificate of this authority, PEM')
    .option('--admin <host:port>', 'where `ddf trace --admin` looks into the switch, port 0 for any (default: nowhere)')
    .option('--cpu-port <n>', 'port of packet-ins and packet-outs (default: 510)')
    .option('--drop-port <n>', 'the port that means drop (default: 511)')
    .option('--priority-queues <n>', 'queues per port; packets of a priority beyond them are dropped (default: 1)')
    .option('--pcap [directory]', 'capture every port: NAME_in.pcap and NAME_out.pcap (default: here)')
    .option('--loss <[port=]percent>', 'lose frames', collect)
    .option('--duplication <[port=]percent>', 'deliver frames twice', collect)
    .option('--reordering <[port=]percent>', 'hold frames back', collect)
    .option('--reorder-delay <[port=]us>', 'for so many microseconds (default: 1000)', collect)
    .option('--corruption <[port=]percent>', 'flip a bit of frames', collect)
    .option('--seed <n>', 'reproduces what happens to frames, and random() of P4 (default: 1)')
    .option('-L, --log-level <level>', `${LOG_LEVELS.join(', ')} (default: warn)`)
    .option('--json', 'print a JSON object when ready, and the statistics as one at the end')
    .addHelpText('after', SWITCH_HELP)
    .action(async (options: RawSwitchOptions) => {
      exitCode = await runSwitch(options, terminal);
    });

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

/** For options that may be given several times. */
function collect(text: string, before: readonly string[] | undefined): string[] {
  return [...(before ?? []), text];
}

function stackOf(error: DdfError): string {
  return (error.cause instanceof Error ? error.cause.stack : error.stack) ?? '';
}
