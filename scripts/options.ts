import { isIPv4 } from 'node:net';
import type { SocketKind } from '../agents/io/udp-host.ts';
import { DdfError } from '../base/errors.ts';

/** Options of a command line, checked: what is wrong is said with the option, what it said, and what is allowed. All throw INVALID_OPTION. */

export const MAX_LOSS_PERCENT = 30;
export const MAX_SEED = 0xffffffff;

export function wholeNumber(option: string, text: string, lowest: number, highest: number): number {
  const value = Number(text);
  if (!/^\d{1,15}$/.test(text) || value < lowest || value > highest)
    throw new DdfError('INVALID_OPTION', `${option} ${text}: not a whole number from ${lowest} to ${highest}`);
  return value;
}

/** Per cent of what is lost. */
export function lossPercent(option: string, text: string): number {
  const value = Number(text);
  if (!/^\d+(\.\d+)?$/.test(text) || value > MAX_LOSS_PERCENT)
    throw new DdfError('INVALID_OPTION', `${option} ${text}: not a number of per cent from 0 to ${MAX_LOSS_PERCENT}`);
  return value;
}

/** How agents pass datagrams to the kernel; undefined: as best they can. */
export function socketKind(option: string, text: string | undefined): SocketKind | undefined {
  if (text === undefined || text === 'batched' || text === 'dgram') return text;
  throw new DdfError('INVALID_OPTION', `${option} ${text}: not batched or dgram`);
}

export function requiredOption(option: string, text: string | undefined): string {
  if (text === undefined || text === '')
    throw new DdfError('INVALID_OPTION', `${option} is missing`, { remedy: '--help says what it is for.' });
  return text;
}

export interface HostAndPort {
  readonly host: string;
  readonly port: number;
}

/** `HOST:PORT` with a name, an IPv4 address or an IPv6 address in brackets. Port 0 only where any free one will do. */
export function hostAndPort(option: string, text: string, lowestPort: 0 | 1): HostAndPort {
  const match = /^(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9](?:[A-Za-z0-9.-]{0,252})):(\d{1,5})$/.exec(text);
  const port = Number(match?.[2]);
  if (match === null || port < lowestPort || port > 65535)
    throw new DdfError('INVALID_OPTION', `${option} ${text}: not HOST:PORT with a port from ${lowestPort} to 65535`, {
      remedy: 'For example 127.0.0.1:9559.',
    });
  return { host: match[1]!.replace(/^\[|\]$/g, ''), port };
}

export function ipv4Address(option: string, text: string): string {
  if (!isIPv4(text)) throw new DdfError('INVALID_OPTION', `${option} ${text}: not an IPv4 address such as 10.1.1.1`);
  return text;
}
