import { DdfError } from '../base/errors.ts';
import { PORT_CPU } from '../p4/build/constants.ts';
import { checkInterfaceName } from '../switch/ports/af-packet.ts';
import type { ImpairmentProperties } from '../switch/ports/impairments.ts';
import type { StandalonePort } from '../switch/standalone.ts';
import { hostAndPort, MAX_SEED, wholeNumber } from './options.ts';
import type { RawTlsOptions } from './tls-files.ts';

/** What the command line says, as text; absent options are undefined. */
export interface RawSwitchOptions extends RawTlsOptions {
  readonly program?: string;
  readonly p4info?: string;
  /** False with --no-p4. */
  readonly p4?: boolean;
  readonly interface?: readonly string[];
  readonly deviceId?: string;
  readonly grpc?: string;
  readonly admin?: string;
  readonly cpuPort?: string;
  readonly dropPort?: string;
  readonly priorityQueues?: string;
  readonly pcap?: string | true;
  readonly loss?: readonly string[];
  readonly duplication?: readonly string[];
  readonly reordering?: readonly string[];
  readonly reorderDelay?: readonly string[];
  readonly corruption?: readonly string[];
  readonly seed?: string;
  readonly logLevel?: string;
  readonly json?: boolean;
}

export interface SwitchOptions {
  /** Undefined: the switch starts empty and waits for a controller. */
  readonly programFile: string | undefined;
  readonly p4infoFile: string | undefined;
  readonly ports: readonly StandalonePort[];
  readonly deviceId: bigint;
  readonly grpcAddress: string;
  /** Undefined: nobody can look into the switch. */
  readonly adminAddress: string | undefined;
  readonly cpuPort: number;
  readonly dropPort: number;
  readonly priorityQueues: number;
  readonly pcapDirectory: string | undefined;
  readonly seed: number;
  readonly logLevel: string;
  readonly json: boolean;
}

/** P4Runtime's own port (IANA), on this machine only. */
export const DEFAULT_GRPC_ADDRESS = '127.0.0.1:9559';
/** Ports are 9 bits in v1model; the last one means drop, unless another one does. */
const LAST_PORT = 511;
/** A packet's priority has 3 bits. */
const MAX_PRIORITY_QUEUES = 8;
const DEFAULT_REORDER_DELAY_US = 1000;
const MAX_REORDER_DELAY_US = 10_000_000;
export const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'off'] as const;

/** Throws DdfError INVALID_OPTION with the option, what it said, and what is allowed. */
export function parseSwitchOptions(raw: RawSwitchOptions): SwitchOptions {
  const withProgram = raw.p4 !== false;
  if (withProgram && raw.program === undefined)
    throw new DdfError('INVALID_OPTION', 'the switch has no program', {
      remedy: 'Name its JSON file with --program, or start it empty with --no-p4.',
    });
  if (!withProgram && (raw.program !== undefined || raw.p4info !== undefined))
    throw new DdfError('INVALID_OPTION', '--no-p4 contradicts --program and --p4info');
  const cpuPort = wholeNumber('--cpu-port', raw.cpuPort ?? String(PORT_CPU), 1, LAST_PORT);
  const dropPort = wholeNumber('--drop-port', raw.dropPort ?? String(LAST_PORT), 0, LAST_PORT);
  if (cpuPort === dropPort)
    throw new DdfError('INVALID_OPTION', `--cpu-port ${cpuPort}: packets to this port are dropped`, {
      remedy: 'Choose another one, or another --drop-port.',
    });
  const grpcAddress = raw.grpc ?? DEFAULT_GRPC_ADDRESS;
  hostAndPort('--grpc', grpcAddress, 0);
  if (raw.admin !== undefined) hostAndPort('--admin', raw.admin, 0);
  const logLevel = raw.logLevel ?? 'warn';
  if (!(LOG_LEVELS as readonly string[]).includes(logLevel))
    throw new DdfError('INVALID_OPTION', `--log-level ${logLevel}: not one of ${LOG_LEVELS.join(', ')}`);
  return {
    programFile: raw.program,
    p4infoFile: raw.p4info,
    ports: parsePorts(raw, cpuPort, dropPort),
    deviceId: BigInt(wholeNumber('--device-id', raw.deviceId ?? '1', 0, Number.MAX_SAFE_INTEGER)),
    grpcAddress,
    adminAddress: raw.admin,
    cpuPort,
    dropPort,
    priorityQueues: wholeNumber('--priority-queues', raw.priorityQueues ?? '1', 1, MAX_PRIORITY_QUEUES),
    pcapDirectory: raw.pcap === true ? '.' : raw.pcap,
    seed: wholeNumber('--seed', raw.seed ?? '1', 0, MAX_SEED),
    logLevel: logLevel === 'off' ? 'silent' : logLevel,
    json: raw.json ?? false,
  };
}

function parsePorts(raw: RawSwitchOptions, cpuPort: number, dropPort: number): StandalonePort[] {
  const names = new Map<number, string>();
  for (const text of raw.interface ?? []) {
    const [, digits, name] = /^(\d{1,3})@(.*)$/s.exec(text) ?? [];
    if (digits === undefined || name === undefined)
      throw new DdfError('INVALID_OPTION', `-i ${text}: not PORT@INTERFACE`, { remedy: 'For example -i 1@veth1.' });
    const port = Number(digits);
    if (port > LAST_PORT) throw new DdfError('INVALID_OPTION', `-i ${text}: ports are 0 to ${LAST_PORT}`);
    if (port === dropPort)
      throw new DdfError('INVALID_OPTION', `-i ${text}: packets to port ${port} are dropped`, {
        remedy: 'Choose another one with --drop-port.',
      });
    if (port === cpuPort)
      throw new DdfError('INVALID_OPTION', `-i ${text}: port ${port} is the CPU port`, {
        remedy: 'Choose another one with --cpu-port.',
      });
    checkInterfaceName(name);
    const other = names.get(port);
    if (other !== undefined) throw new DdfError('INVALID_OPTION', `-i ${text}: port ${port} is ${other} already`);
    for (const [otherPort, otherName] of names)
      if (otherName === name) throw new DdfError('INVALID_OPTION', `-i ${text}: ${name} is port ${otherPort} already`);
    names.set(port, name);
  }
  const known = new Set(names.keys());
  const loss = perPort('--loss', raw.loss, known, percent);
  const duplication = perPort('--duplication', raw.duplication, known, percent);
  const reordering = perPort('--reordering', raw.reordering, known, percent);
  const corruption = perPort('--corruption', raw.corruption, known, percent);
  const reorderDelayUs = perPort('--reorder-delay', raw.reorderDelay, known, (option, text) =>
    wholeNumber(option, text, 1, MAX_REORDER_DELAY_US),
  );
  return [...names].map(([port, interfaceName]) => {
    const impairments: ImpairmentProperties = {
      loss: loss(port) ?? 0,
      duplication: duplication(port) ?? 0,
      reordering: reordering(port) ?? 0,
      reorderDelayUs: reorderDelayUs(port) ?? DEFAULT_REORDER_DELAY_US,
      corruption: corruption(port) ?? 0,
    };
    const { reorderDelayUs: _, ...probabilities } = impairments;
    return Object.values(probabilities).some((value) => value > 0)
      ? { port, interfaceName, impairments }
      : { port, interfaceName };
  });
}

/** `[PORT=]VALUE`, any number of times: what holds for a port is the last value for it, or the last one for all. */
function perPort(
  option: string,
  texts: readonly string[] | undefined,
  known: ReadonlySet<number>,
  parse: (option: string, text: string) => number,
): (port: number) => number | undefined {
  let forAll: number | undefined;
  const own = new Map<number, number>();
  for (const text of texts ?? []) {
    const [, digits, value] = /^(?:(\d{1,3})=)?(.*)$/s.exec(text)!;
    if (digits === undefined) {
      forAll = parse(option, value!);
      continue;
    }
    const port = Number(digits);
    if (!known.has(port)) throw new DdfError('INVALID_OPTION', `${option} ${text}: no interface is port ${port}`);
    own.set(port, parse(`${option} ${digits}=`, value!));
  }
  return (port) => own.get(port) ?? forAll;
}

/** Per cent to a probability. */
function percent(option: string, text: string): number {
  const value = Number(text);
  if (!/^\d+(\.\d+)?$/.test(text) || value > 100)
    throw new DdfError('INVALID_OPTION', `${option} ${text}: not a number of per cent from 0 to 100`);
  return value / 100;
}
