import { EventEmitter } from 'node:events';
import {
  createSecureServer,
  createServer,
  type Http2SecureServer,
  type Http2Server,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2';
import type { AddressInfo } from 'node:net';
import type { TlsIdentity } from '../../base/tls.ts';
import type { GrpcMethod } from '../../wire/proto.ts';
import { framed, MessageReader } from './grpc-messages.ts';
import { RpcError } from './rpc-error.ts';

/** How a call ends that does not succeed. */
export interface GrpcStatus {
  /** Of google.rpc.Code. */
  readonly code: number;
  readonly message: string;
  /** An encoded google.rpc.Status. */
  readonly details?: Uint8Array | undefined;
}

/**
 * A call with a stream of answers. Events: `data` with each request and `end` after the last one, when requests come in a stream too; `drain` when
 * {@link write} may go on; `cancelled` when the client or its deadline has ended it; `close` at the end.
 */
export interface StreamingCall extends EventEmitter {
  readonly cancelled: boolean;
  /** Returns false when the caller should wait for `drain`. */
  write(answer: object): boolean;
  /** Ends it with success. */
  end(): void;
  fail(status: GrpcStatus): void;
}

/** What serves the methods, by name. A method with one answer throws what {@link GrpcHandlers.statusOf} makes a status of. */
export interface GrpcHandlers {
  readonly unary: Readonly<Record<string, (request: never) => object>>;
  /** One request, any number of answers. */
  readonly answers: Readonly<Record<string, (request: never, call: StreamingCall) => void>>;
  /** Requests and answers in streams. */
  readonly streams: Readonly<Record<string, (call: StreamingCall) => void>>;
  statusOf(error: unknown): GrpcStatus;
}

/** Memory for what a session has yet to send, megabytes: answers are written as fast as clients read, pipeline configs at once. */
const SESSION_MEGABYTES = 256;
const CONTENT_TYPE = 'application/grpc+proto';
const OK_HEADERS = { ':status': 200, 'content-type': CONTENT_TYPE };
/** Said with refusals, of which one may be due to compression. */
const ACCEPTED = { 'grpc-accept-encoding': 'identity' };
const OK_TRAILERS = { 'grpc-status': 0, 'grpc-message': 'OK' };
const RESPONSE = { waitForTrailers: true, sendDate: false };
const LAST_RESPONSE = { endStream: true, sendDate: false };
const DEADLINE_EXCEEDED: GrpcStatus = { code: 4, message: 'Deadline exceeded' };

/**
 * A gRPC server on the HTTP/2 of Node.js, as https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md says. Table entries that are written one
 * by one are calls of a few bytes: what grpc-js does for each of them took half of the time that the switch spent on it.
 */
export class GrpcServer {
  private readonly http: Http2Server | Http2SecureServer;
  private readonly sessions = new Set<ServerHttp2Session>();
  private readonly methods: ReadonlyMap<string, GrpcMethod & { readonly name: string }>;
  private readonly handlers: GrpcHandlers;
  private readonly maxMessageBytes: number;

  /** @param tls undefined, or without a certificate: no TLS; with authorities clients have to prove themselves too */
  constructor(
    methods: Readonly<Record<string, GrpcMethod>>,
    handlers: GrpcHandlers,
    maxMessageBytes: number,
    tls: TlsIdentity | undefined,
  ) {
    this.methods = new Map(Object.entries(methods).map(([name, method]) => [method.path, { ...method, name }]));
    this.handlers = handlers;
    this.maxMessageBytes = maxMessageBytes;
    this.http = makeServer(tls);
    this.http.on('session', (session: ServerHttp2Session) => {
      this.sessions.add(session);
      session.once('close', () => this.sessions.delete(session));
    });
    this.http.on('stream', (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => this.accept(stream, headers));
  }

  /** Resolves with the port; rejects with what the system says. */
  listen(host: string, port: number): Promise<number> {
    return new Promise((resolve, reject) => {
      this.http.once('error', reject);
      this.http.listen({ host, port }, () => {
        this.http.off('error', reject);
        resolve((this.http.address() as AddressInfo).port);
      });
    });
  }

  /** Ends everything at once. Idempotent. */
  stop(): void {
    this.http.close();
    for (const session of this.sessions) session.destroy();
  }

  private accept(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): void {
    // `close` follows, and says all that there is to know.
    stream.on('error', () => {});
    const refusal = refusalOf(headers);
    if (refusal !== undefined) {
      stream.respond({ ':status': refusal }, LAST_RESPONSE);
      stream.resume();
      return;
    }
    const method = this.methods.get(headers[':path'] ?? '');
    if (method === undefined) {
      refuse(stream, { code: 12, message: `There is no method ${headers[':path']}` });
      return;
    }
    const timeoutMs = timeoutOf(headers['grpc-timeout']);
    const reader = new MessageReader(this.maxMessageBytes);
    if (!method.responseStream) this.unary(stream, method, reader, timeoutMs);
    else if (method.requestStream) {
      const call = new ServerCall(stream, method, timeoutMs);
      call.receive(reader);
      this.handlers.streams[method.name]!(call);
    } else
      this.oneRequest(stream, method, reader, (request) => {
        this.handlers.answers[method.name]!(request as never, new ServerCall(stream, method, timeoutMs));
      });
  }

  private unary(
    stream: ServerHttp2Stream,
    method: GrpcMethod & { readonly name: string },
    reader: MessageReader,
    timeoutMs: number | undefined,
  ): void {
    // It is answered as soon as it has come: only for that there is something to wait.
    const deadline = startDeadline(timeoutMs, () => refuse(stream, DEADLINE_EXCEEDED));
    stream.once('close', () => clearTimeout(deadline));
    this.oneRequest(stream, method, reader, (request) => {
      let answer: Buffer;
      try {
        answer = framed(method.responseSerialize(this.handlers.unary[method.name]!(request as never)));
      } catch (error) {
        refuse(stream, this.handlers.statusOf(error));
        return;
      }
      if (isOver(stream)) return;
      stream.respond(OK_HEADERS, RESPONSE);
      stream.once('wantTrailers', () => stream.sendTrailers(OK_TRAILERS));
      stream.end(answer);
    });
  }

  /** Calls `serve` when the client has sent its one request and nothing else. */
  private oneRequest(
    stream: ServerHttp2Stream,
    method: GrpcMethod,
    reader: MessageReader,
    serve: (request: object) => void,
  ): void {
    let message: Buffer | undefined;
    stream.on('data', (chunk: Buffer) => {
      if (stream.headersSent) return;
      try {
        for (const next of reader.push(chunk)) {
          if (message !== undefined) throw new RpcError('UNIMPLEMENTED', `${method.path} takes one request, not more`);
          message = next;
        }
      } catch (error) {
        refuse(stream, this.handlers.statusOf(error));
      }
    });
    stream.once('end', () => {
      if (isOver(stream)) return;
      if (message === undefined || reader.isWithinMessage) {
        refuse(stream, { code: 12, message: `${method.path} takes a request, which has not come, or not all of it` });
        return;
      }
      const request = decoded(method, message);
      if (request === undefined) refuse(stream, UNDECODABLE);
      else serve(request);
    });
  }
}

function makeServer(tls: TlsIdentity | undefined): Http2Server | Http2SecureServer {
  const options = { maxSessionMemory: SESSION_MEGABYTES, settings: { enablePush: false } };
  if (tls?.certificate === undefined) return createServer(options);
  const { chain, privateKey } = tls.certificate;
  const clients = tls.authorities === undefined ? {} : { ca: Buffer.from(tls.authorities), requestCert: true };
  return createSecureServer({ ...options, cert: Buffer.from(chain), key: Buffer.from(privateKey), ...clients });
}

const UNDECODABLE: GrpcStatus = { code: 13, message: 'The request cannot be decoded' };

function decoded(method: GrpcMethod, message: Buffer): object | undefined {
  try {
    return method.requestDeserialize(message);
  } catch {
    return undefined;
  }
}

/** Whether there is nothing to answer any more. */
function isOver(stream: ServerHttp2Stream): boolean {
  return stream.headersSent || stream.closed || stream.destroyed;
}

/** Answers with nothing but a status; what the client still sends is thrown away. */
function refuse(stream: ServerHttp2Stream, status: GrpcStatus): void {
  if (isOver(stream)) return;
  stream.respond({ ...OK_HEADERS, ...ACCEPTED, ...trailersOf(status) }, LAST_RESPONSE);
  stream.resume();
}

function trailersOf({ code, message, details }: GrpcStatus): Record<string, string | number> {
  return {
    'grpc-status': code,
    'grpc-message': percentEncoded(message),
    ...(details === undefined ? {} : { 'grpc-status-details-bin': Buffer.from(details).toString('base64') }),
  };
}

/** As grpc-message has it: everything but printable ASCII, and the percent sign itself, byte by byte in UTF-8. */
function percentEncoded(text: string): string {
  let encoded = '';
  for (const byte of Buffer.from(text, 'utf8'))
    encoded +=
      byte >= 0x20 && byte <= 0x7e && byte !== 0x25
        ? String.fromCharCode(byte)
        : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`;
  return encoded;
}

/** The HTTP status for what is no gRPC call. */
function refusalOf(headers: IncomingHttpHeaders): number | undefined {
  if (headers[':method'] !== 'POST') return 405;
  return headers['content-type']?.startsWith('application/grpc') === true ? undefined : 415;
}

const UNIT_MS: Readonly<Record<string, number>> = { H: 3_600_000, M: 60_000, S: 1000, m: 1, u: 1e-3, n: 1e-6 };
/** Timers go no further. */
const MAX_TIMEOUT_MS = 2 ** 31 - 1;

/** What makes no sense is no deadline. */
function timeoutOf(header: string | string[] | undefined): number | undefined {
  const match = typeof header === 'string' ? /^(\d{1,8})([HMSmun])$/.exec(header) : null;
  return match === null ? undefined : Math.min(Number(match[1]) * UNIT_MS[match[2]!]!, MAX_TIMEOUT_MS);
}

function startDeadline(timeoutMs: number | undefined, passed: () => void): NodeJS.Timeout | undefined {
  return timeoutMs === undefined ? undefined : setTimeout(passed, timeoutMs);
}

class ServerCall extends EventEmitter implements StreamingCall {
  cancelled = false;
  private readonly stream: ServerHttp2Stream;
  private readonly method: GrpcMethod;
  /** The status is under way, or the stream is gone. */
  private ended = false;

  constructor(stream: ServerHttp2Stream, method: GrpcMethod, timeoutMs: number | undefined) {
    super();
    this.stream = stream;
    this.method = method;
    const deadline = startDeadline(timeoutMs, () => {
      this.fail(DEADLINE_EXCEEDED);
      this.cancel();
    });
    stream.on('drain', () => this.emit('drain'));
    stream.once('close', () => {
      clearTimeout(deadline);
      if (!this.ended) {
        this.ended = true;
        this.cancel();
      }
      this.emit('close');
    });
  }

  /** Makes events of what the client sends. */
  receive(reader: MessageReader): void {
    this.stream.on('data', (chunk: Buffer) => {
      if (this.ended) return;
      try {
        for (const message of reader.push(chunk)) {
          const request = decoded(this.method, message);
          if (request === undefined) {
            this.fail(UNDECODABLE);
            this.cancel();
            return;
          }
          this.emit('data', request);
        }
      } catch (error) {
        if (!(error instanceof RpcError)) throw error;
        this.fail({ code: error.status, message: error.message });
        this.cancel();
      }
    });
    this.stream.once('end', () => {
      // A stream that is cut off ends too; `cancelled` says it.
      if (!this.stream.closed) this.emit('end');
    });
  }

  private cancel(): void {
    if (this.cancelled) return;
    this.cancelled = true;
    this.emit('cancelled');
  }

  write(answer: object): boolean {
    if (this.ended || this.stream.closed || this.stream.destroyed) return true;
    this.sendHeaders();
    return this.stream.write(framed(this.method.responseSerialize(answer)));
  }

  end(): void {
    this.finish(OK_TRAILERS);
  }

  fail(status: GrpcStatus): void {
    if (this.stream.headersSent) this.finish(trailersOf(status));
    else if (!this.ended) {
      this.ended = true;
      refuse(this.stream, status);
    }
  }

  private finish(trailers: Record<string, string | number>): void {
    if (this.ended || this.stream.closed || this.stream.destroyed) return;
    this.sendHeaders();
    this.ended = true;
    this.stream.once('wantTrailers', () => this.stream.sendTrailers(trailers));
    this.stream.end();
    // What the client still sends is thrown away.
    this.stream.resume();
  }

  private sendHeaders(): void {
    if (!this.stream.headersSent) this.stream.respond(OK_HEADERS, RESPONSE);
  }
}
