import { createReadStream } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { pipeline } from 'node:stream';
import { DdfError, type ErrorCode } from '../../base/errors.ts';
import type { Logger } from '../../base/logger.ts';
import { formatPayloadId, type PayloadId, parsePayloadId } from '../../objects/ids.ts';
import type { StoredPayload } from '../store/store.ts';

/** Where a range server listens. Port 0: any free one. */
export interface RangeAddress {
  readonly host: string;
  readonly port: number;
}

export interface RangeServerOptions {
  readonly address: RangeAddress;
  /** What is served. */
  readonly find: (id: PayloadId) => StoredPayload | undefined;
  readonly logger: Logger;
  /** Requests served at a time; more are asked to come again. Default 64. */
  readonly maxRequests?: number;
  /** Milliseconds since 1970. Default Date.now. */
  readonly nowMs?: () => number;
}

/** A connection that neither asks nor takes anything is closed after this. */
const IDLE_MS = 15_000;
const MAX_TOKENS = 65_536;

/**
 * The unicast lane's holder: `GET /payloads/<payload>/data` and `/manifest` with a bearer token, whole or by one range (RFC 9110, section 14).
 * Errors are JSON with code and message: 401 without a token for this payload, 404, 416, 503 when busy.
 */
export class RangeServer {
  private readonly options: RangeServerOptions;
  private readonly server: Server;
  private readonly nowMs: () => number;
  /** Expiry in milliseconds since 1970 by payload and token. */
  private readonly tokens = new Map<string, number>();
  private active = 0;
  private servedBytes = 0;

  constructor(options: RangeServerOptions) {
    this.options = options;
    this.nowMs = options.nowMs ?? Date.now;
    this.server = createServer({ requestTimeout: IDLE_MS, headersTimeout: IDLE_MS, keepAliveTimeout: IDLE_MS });
    this.server.setTimeout(IDLE_MS);
    this.server.maxConnections = 1024;
    this.server.on('request', (request, response) => this.serve(request, response));
  }

  /** Body bytes handed out so far: what the origin serves is a figure that tests check. */
  get bytesServed(): number {
    return this.servedBytes;
  }

  /** `http://host:port` */
  get url(): string {
    const { address, port } = this.server.address() as AddressInfo;
    return `http://${address.includes(':') ? `[${address}]` : address}:${port}`;
  }

  /** @throws DdfError ADDRESS_IN_USE, INVALID_OPTION for an address that is not this machine's */
  listen(): Promise<void> {
    const { host, port } = this.options.address;
    return new Promise((resolve, reject) => {
      this.server.once('error', (error: NodeJS.ErrnoException) => {
        const code = error.code === 'EADDRINUSE' ? 'ADDRESS_IN_USE' : 'INVALID_OPTION';
        const remedy =
          code === 'ADDRESS_IN_USE' ? 'Choose another port, or stop the other program.' : 'Check the address.';
        reject(new DdfError(code, `cannot listen for range reads on ${host}:${port}: ${error.message}`, { remedy }));
      });
      this.server.listen(port, host, () => {
        this.server.removeAllListeners('error');
        this.server.on('error', (error) => this.options.logger.warn({ error }, 'range server'));
        resolve();
      });
    });
  }

  /** Serves reads of this payload that come with this token. `ttlMs` 0 withdraws it. */
  allow(id: PayloadId, token: string, ttlMs: number): void {
    const now = this.nowMs();
    for (const [key, expiresAt] of this.tokens) if (expiresAt <= now) this.tokens.delete(key);
    const key = tokenKey(id, token);
    this.tokens.delete(key);
    if (ttlMs === 0) return;
    if (token === '' || this.tokens.size >= MAX_TOKENS)
      throw new DdfError(
        'INVALID_REQUEST',
        token === '' ? 'the token is empty' : `there are ${MAX_TOKENS} tokens already`,
      );
    this.tokens.set(key, now + ttlMs);
  }

  /** Cuts connections off and stops listening. */
  close(): Promise<void> {
    return new Promise((resolve) => {
      this.server.close(() => resolve());
      this.server.closeAllConnections();
    });
  }

  private serve(request: IncomingMessage, response: ServerResponse): void {
    const admitted = this.admit(request);
    if ('status' in admitted) refuse(response, admitted);
    else this.send(response, admitted);
  }

  private admit(request: IncomingMessage): Reading | Refusal {
    const match = /^\/payloads\/([^/]{1,64})\/(data|manifest)$/.exec(request.url ?? '');
    const id = match === null ? undefined : parsePayloadId(match[1]!);
    if (id === undefined) return { status: 404, code: 'NOT_FOUND', message: 'there is nothing at this path' };
    if (request.method !== 'GET')
      return { status: 405, code: 'INVALID_REQUEST', message: 'only GET', headers: { allow: 'GET' } };
    if (!this.mayRead(id, request.headers.authorization)) {
      const headers = { 'www-authenticate': 'Bearer' };
      return { status: 401, code: 'INVALID_REQUEST', message: 'no valid token for this payload', headers };
    }
    const stored = this.options.find(id);
    if (stored === undefined)
      return { status: 404, code: 'NOT_FOUND', message: `payload ${formatPayloadId(id)} is not held here` };
    if (this.active >= (this.options.maxRequests ?? 64)) {
      const headers = { 'retry-after': '1' };
      return { status: 503, code: 'AGENT_FAILED', message: 'too many reads at a time', headers };
    }
    const isData = match![2] === 'data';
    const sizeBytes = isData ? stored.manifest.sizeBytes : stored.manifestBytes;
    const range = parseRange(request.headers.range, sizeBytes);
    if (range === 'unsatisfiable') {
      const headers = { 'content-range': `bytes */${sizeBytes}` };
      return { status: 416, code: 'INVALID_REQUEST', message: 'no such range', headers };
    }
    return { path: isData ? stored.dataPath : stored.manifestPath, sizeBytes, range };
  }

  private send(response: ServerResponse, { path, sizeBytes, range }: Reading): void {
    const { start, end } = range ?? { start: 0, end: sizeBytes };
    response.writeHead(range === undefined ? 200 : 206, {
      'content-type': 'application/octet-stream',
      'content-length': end - start,
      'accept-ranges': 'bytes',
      ...(range === undefined ? {} : { 'content-range': `bytes ${start}-${end - 1}/${sizeBytes}` }),
    });
    this.active++;
    const file = createReadStream(path, { start, end: end - 1, highWaterMark: 256 * 1024 });
    file.on('data', (bytes) => {
      this.servedBytes += bytes.length;
    });
    // An error destroys the response: the reader sees a body that is too short and asks somebody else.
    pipeline(file, response, (error) => {
      this.active--;
      if (error) this.options.logger.debug({ error, path }, 'range read ended early');
    });
  }

  private mayRead(id: PayloadId, authorization: string | undefined): boolean {
    const match = /^Bearer ([^\s]{1,1024})$/i.exec(authorization ?? '');
    const expiresAt = match === null ? undefined : this.tokens.get(tokenKey(id, match[1]!));
    return expiresAt !== undefined && this.nowMs() < expiresAt;
  }
}

/** `end` is behind the last byte. */
interface Range {
  readonly start: number;
  readonly end: number;
}

/** What a request may read; without a range, all of it. */
interface Reading {
  readonly path: string;
  readonly sizeBytes: number;
  readonly range: Range | undefined;
}

interface Refusal {
  readonly status: number;
  readonly code: ErrorCode;
  readonly message: string;
  readonly headers?: Record<string, string>;
}

/** RFC 9110, section 14.1.2, of one range; other units and malformed headers are ignored (14.2): undefined. */
function parseRange(header: string | undefined, sizeBytes: number): Range | 'unsatisfiable' | undefined {
  const match = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(header ?? '');
  if (match === null || (match[1] === '' && match[2] === '')) return undefined;
  if (match[1] === '') {
    const suffix = Number(match[2]);
    return suffix === 0 ? 'unsatisfiable' : { start: Math.max(0, sizeBytes - suffix), end: sizeBytes };
  }
  const start = Number(match[1]);
  const last = match[2] === '' ? Number.POSITIVE_INFINITY : Number(match[2]);
  if (last < start) return undefined;
  return start >= sizeBytes ? 'unsatisfiable' : { start, end: Math.min(last + 1, sizeBytes) };
}

/** A map's look-up tells nobody by its time how much of a token was right, as a comparison would. */
function tokenKey(id: PayloadId, token: string): string {
  return `${formatPayloadId(id)} ${token}`;
}

function refuse(response: ServerResponse, { status, code, message, headers = {} }: Refusal): void {
  const body = JSON.stringify({ code, message });
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
    ...headers,
  });
  response.end(body);
}
