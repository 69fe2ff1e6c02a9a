import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { DdfError, type ErrorCode, toDdfError } from '../../base/errors.ts';
import type { Device } from '../device.ts';
import { type TraceRequest, traceOnDevice } from './trace-request.ts';

export interface AdminServer {
  /** The TCP port that it listens on. */
  readonly port: number;
  /** Ends requests that are under way. Idempotent. */
  stop(): Promise<void>;
}

export interface AdminServerOptions {
  readonly device: Device;
  /** `host:port`; port 0 takes a free one. It has neither users nor encryption: keep it local. */
  readonly address: string;
}

/** A frame in hexadecimal and a few numbers. */
const MAX_BODY_BYTES = 256 * 1024;

const STATUS: Partial<Record<ErrorCode, number>> = { INVALID_REQUEST: 400, NOT_FOUND: 404, CONFLICT: 409 };

/**
 * The port at which a switch that is a program of its own is looked into: `POST /v1/traces` with a {@link TraceRequest} answers
 * `{ items }`, a PacketTraceView each. Errors are application/problem+json (RFC 9457), as those of the controller.
 *
 * Throws ADDRESS_IN_USE or INVALID_OPTION.
 */
export async function startAdminServer({ device, address }: AdminServerOptions): Promise<AdminServer> {
  const place = /^(?:\[(.+)\]|([^:]+)):(\d{1,5})$/.exec(address);
  if (place === null || Number(place[3]) > 65_535)
    throw new DdfError('INVALID_OPTION', `'${address}' is not an address of the form host:port`, { where: 'admin' });
  const aborted = new AbortController();
  const server = createServer((request, response) => {
    answer(device, request, response, aborted.signal).catch((error: unknown) => sendProblem(response, error));
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', (cause) => {
      reject(
        new DdfError('ADDRESS_IN_USE', `The switch cannot be looked into at ${address}: ${cause.message}`, {
          where: 'admin',
          remedy: 'Choose another port, or 0 for any.',
          cause,
        }),
      );
    });
    server.listen(Number(place[3]), place[1] ?? place[2], resolve);
  });
  return {
    port: (server.address() as AddressInfo).port,
    stop: () =>
      new Promise((resolve) => {
        aborted.abort();
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function answer(
  device: Device,
  request: IncomingMessage,
  response: ServerResponse,
  stopped: AbortSignal,
): Promise<void> {
  if (request.method !== 'POST' || request.url !== '/v1/traces')
    throw new DdfError('NOT_FOUND', `There is nothing at ${request.method} ${request.url}`, {
      remedy: 'POST /v1/traces is what there is.',
    });
  const wanted = await readJson(request);
  const gone = new AbortController();
  response.once('close', () => gone.abort());
  const items = await traceOnDevice(device, wanted, AbortSignal.any([gone.signal, stopped]));
  send(response, 200, 'application/json', { items });
}

async function readJson(request: IncomingMessage): Promise<TraceRequest> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > MAX_BODY_BYTES)
      throw new DdfError('INVALID_REQUEST', `A request has at most ${MAX_BODY_BYTES} bytes`, { where: 'body' });
    chunks.push(chunk);
  }
  try {
    const body: unknown = JSON.parse(Buffer.concat(chunks).toString());
    if (typeof body === 'object' && body !== null && !Array.isArray(body)) return body;
  } catch {
    // Said below.
  }
  throw new DdfError('INVALID_REQUEST', 'The body is not a JSON object', { where: 'body' });
}

function sendProblem(response: ServerResponse, error: unknown): void {
  const known = toDdfError(error);
  const status = STATUS[known.code] ?? 500;
  send(response, status, 'application/problem+json', {
    type: `urn:ddf:error:${known.code}`,
    title: known.code.toLowerCase().replaceAll('_', ' '),
    status,
    code: known.code,
    detail: known.message,
    where: known.where,
    remedy: known.remedy,
  });
}

function send(response: ServerResponse, status: number, type: string, body: object): void {
  if (response.headersSent || response.destroyed) return;
  response.writeHead(status, { 'content-type': type });
  response.end(JSON.stringify(body));
}
