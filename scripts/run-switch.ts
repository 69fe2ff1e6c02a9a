import { readFile } from 'node:fs/promises';
import { DdfError, type ErrorCode } from '../base/errors.ts';
import { createLogger } from '../base/logger.ts';
import { type PortReport, type StandaloneReport, startStandaloneSwitch } from '../switch/standalone.ts';
import { parseP4InfoText } from '../wire/p4runtime/p4info-text.ts';
import { Interruption } from './interruption.ts';
import { parseSwitchOptions, type RawSwitchOptions } from './switch-options.ts';
import type { Terminal } from './terminal.ts';
import { readTlsFiles } from './tls-files.ts';

const PROGRAM_ERRORS: readonly ErrorCode[] = ['INVALID_PROGRAM', 'UNSUPPORTED_PROGRAM', 'PROGRAM_MISMATCH'];

/** `ddf switch`: an embedded switch on interfaces of this network namespace, until a signal ends it. Returns the exit code. */
export async function runSwitch(raw: RawSwitchOptions, terminal: Terminal): Promise<number> {
  const { programFile, p4infoFile, logLevel, json, ...options } = parseSwitchOptions(raw);
  const tls = await readTlsFiles(raw, 'server');
  const program =
    programFile === undefined
      ? undefined
      : {
          bmv2Json: await read('--program', programFile),
          p4info:
            p4infoFile === undefined
              ? undefined
              : parseP4InfoText((await read('--p4info', p4infoFile)).toString('utf8'), p4infoFile),
        };
  const interruption = new Interruption();
  try {
    const running = await startStandaloneSwitch({
      ...options,
      ...(tls === undefined ? {} : { tls }),
      program,
      logger: createLogger(logLevel),
    }).catch((error: unknown) => {
      throw programFile === undefined ? error : inFile(error, programFile);
    });
    const { grpcPort, adminPort } = running;
    const deviceId = String(options.deviceId);
    const ports = options.ports.map(({ port, interfaceName }) => `${port}@${interfaceName}`);
    if (json) terminal.out(JSON.stringify({ ready: true, deviceId, grpcPort, adminPort, ports }));
    else
      terminal.out(
        `Switch ${deviceId} is ready: P4Runtime on port ${grpcPort}, ${ports.length === 0 ? 'no interfaces' : ports.join(' ')}`,
      );
    await interruption.wait();
    const report = await running.stop();
    for (const line of json ? [JSON.stringify(report)] : describe(report)) terminal.out(line);
    return 0;
  } finally {
    interruption.end();
  }
}

/** What is wrong with a program says where in it, but not which file it came from. */
function inFile(error: unknown, file: string): unknown {
  if (!(error instanceof DdfError) || !PROGRAM_ERRORS.includes(error.code)) return error;
  const { code, message, where, remedy } = error;
  return new DdfError(code, message, {
    where: where === undefined ? file : `${file}: ${where}`,
    ...(remedy === undefined ? {} : { remedy }),
    cause: error,
  });
}

async function read(option: string, file: string): Promise<Buffer> {
  try {
    return await readFile(file);
  } catch (cause) {
    throw new DdfError('INVALID_FILE', `${option} ${file} cannot be read: ${(cause as Error).message}`, { cause });
  }
}

function describe({ device, ports, toUnknownPorts }: StandaloneReport): string[] {
  const { received, transmitted, dropped, errors } = device;
  const counts = [`${received} packets in`, `${transmitted} out`, `${dropped} dropped`];
  if (errors > 0) counts.push(`${errors} failed`);
  if (toUnknownPorts > 0) counts.push(`${toUnknownPorts} to ports that have no interface`);
  return [counts.join(', '), ...ports.map(describePort)];
}

/** What is zero is not worth a word, except the frames. */
function describePort(port: PortReport): string {
  const counts = [
    `${port.framesReceived} in (${port.bytesReceived} B)`,
    `${port.framesSent} out (${port.bytesSent} B)`,
  ];
  const others: [number, string][] = [
    [port.ringDropped, 'missed because the ring was full'],
    [port.unusable, 'unusable'],
    [port.segmented, 'packets cut into frames'],
    [port.checksumsCompleted, 'checksums completed'],
    [port.queueDropped, 'dropped because the queue was full'],
    [port.tooLong, 'longer than the MTU'],
    [port.sendFailed, 'could not be sent'],
    [(port.impairedIn?.lost ?? 0) + (port.impairedOut?.lost ?? 0), 'lost on purpose'],
    [port.captureOmitted, 'left out of the captures'],
  ];
  for (const [count, what] of others) if (count > 0) counts.push(`${count} ${what}`);
  const state = port.state === 'up' ? '' : ` (${port.state})`;
  return `port ${port.port} ${port.interface}${state}: ${counts.join(', ')}`;
}
