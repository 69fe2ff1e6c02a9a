import { once } from 'node:events';
import { type ClientHttp2Session, connect, type IncomingHttpHeaders, type OutgoingHttpHeaders } from 'node:http2';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { framed, MessageReader } from '../../../switch/server/grpc-messages.ts';
import { type GrpcHandlers, GrpcServer, type StreamingCall } from '../../../switch/server/grpc-server.ts';
import { RpcError } from '../../../switch/server/rpc-error.ts';

const MAX_BYTES = 1000;

/** Messages are texts here. */
const method = (name: string, requestStream: boolean, responseStream: boolean) => ({
  path: `/test.Service/${name}`,
  originalName: name,
  requestStream,
  responseStream,
  requestSerialize: () => Buffer.alloc(0),
  requestDeserialize: (bytes: Buffer) => {
    if (bytes.toString() === 'undecodable') throw new Error('no such message');
    return { text: bytes.toString() };
  },
  responseSerialize: (value: object) => Buffer.from((value as { text: string }).text),
  responseDeserialize: () => ({}),
});

const METHODS = {
  Echo: method('Echo', false, false),
  Count: method('Count', false, true),
  Talk: method('Talk', true, true),
};

describe('the gRPC server', () => {
  let server: GrpcServer;
  let session: ClientHttp2Session;
  let talk: StreamingCall | undefined;
  let events: readonly string[] = [];

  beforeEach(async () => {
    // Streams of earlier tests may still be closing.
    const seen: string[] = [];
    events = seen;
    const handlers: GrpcHandlers = {
      unary: {
        Echo: ({ text }: { text: string }) => {
          if (text === 'fail') throw new RpcError('NOT_FOUND', 'nothing: 100 % ä\n');
          return { text };
        },
      },
      answers: {
        Count: ({ text }: { text: string }, call) => {
          for (let i = 0; i < Number(text); i++) call.write({ text: `${i}` });
          call.end();
        },
      },
      streams: {
        Talk: (call) => {
          talk = call;
          call.on('data', ({ text }) => call.write({ text: `you said ${text}` }));
          for (const event of ['end', 'cancelled', 'close']) call.on(event, () => seen.push(event));
          call.on('end', () => call.end());
        },
      },
      statusOf: (error) => {
        if (!(error instanceof RpcError)) throw error;
        return { code: error.status, message: error.message, details: Buffer.from([1, 2, 255]) };
      },
    };
    server = new GrpcServer(METHODS, handlers, MAX_BYTES, undefined);
    const port = await server.listen('127.0.0.1', 0);
    session = connect(`http://127.0.0.1:${port}`);
    session.on('error', () => {});
  });

  afterEach(() => {
    session.destroy();
    server.stop();
  });

  const HEADERS = { ':method': 'POST', 'content-type': 'application/grpc', te: 'trailers' };

  function open(name: string, headers: OutgoingHttpHeaders = {}) {
    const stream = session.request({ ...HEADERS, ':path': `/test.Service/${name}`, ...headers });
    stream.on('error', () => {});
    return stream;
  }

  interface Outcome {
    readonly headers: IncomingHttpHeaders;
    readonly answers: readonly string[];
    /** Of the trailers, or of the headers of an answer without any. */
    readonly status: string | undefined;
    readonly message: string | undefined;
    readonly details: string | undefined;
  }

  async function outcomeOf(stream: ReturnType<typeof open>): Promise<Outcome> {
    const reader = new MessageReader(1_000_000);
    const answers: string[] = [];
    let headers: IncomingHttpHeaders = {};
    let last: IncomingHttpHeaders = {};
    stream.on('response', (given) => {
      headers = given;
    });
    stream.on('trailers', (given) => {
      last = given;
    });
    stream.on('data', (chunk: Buffer) => answers.push(...reader.push(chunk).map(String)));
    await once(stream, 'close');
    const said = { ...headers, ...last };
    const text = (name: string) => said[name]?.toString();
    return {
      headers,
      answers,
      status: text('grpc-status'),
      message: text('grpc-message'),
      details: text('grpc-status-details-bin'),
    };
  }

  function call(name: string, body: Buffer, headers: OutgoingHttpHeaders = {}): Promise<Outcome> {
    const stream = open(name, headers);
    stream.end(body);
    return outcomeOf(stream);
  }

  test('answers a call with headers, a message and a status', async () => {
    const outcome = await call('Echo', framed(Buffer.from('hello')));
    expect(outcome.headers).toMatchObject({ ':status': 200, 'content-type': 'application/grpc+proto' });
    expect(outcome).toMatchObject({ answers: ['hello'], status: '0' });
  });

  test('answers a failure with its status, percent-encoded, and its details', async () => {
    expect(await call('Echo', framed(Buffer.from('fail')))).toMatchObject({
      answers: [],
      status: '5',
      message: 'nothing: 100 %25 %C3%A4%0A',
      details: Buffer.from([1, 2, 255]).toString('base64'),
    });
  });

  test.each([
    ['a request that cannot be decoded', framed(Buffer.from('undecodable')), '13'],
    ['no request', Buffer.alloc(0), '12'],
    ['part of a request', framed(Buffer.from('hello')).subarray(0, 7), '12'],
    ['two requests', Buffer.concat([framed(Buffer.from('a')), framed(Buffer.from('b'))]), '12'],
    ['a request and part of one', Buffer.concat([framed(Buffer.from('a')), Buffer.from([0])]), '12'],
    ['a request that is too long', framed(Buffer.alloc(MAX_BYTES + 1)), '8'],
    ['a compressed request', Buffer.from([1, 0, 0, 0, 1, 7]), '12'],
  ])('refuses %s', async (_what, body, status) => {
    expect(await call('Echo', body)).toMatchObject({ answers: [], status });
  });

  test('refuses what is no gRPC call, and methods that it does not have', async () => {
    expect((await call('Echo', Buffer.alloc(0), { 'content-type': 'text/html' })).headers[':status']).toBe(415);
    expect((await call('Echo', Buffer.alloc(0), { ':method': 'PUT' })).headers[':status']).toBe(405);
    expect(await call('Other', framed(Buffer.alloc(0)))).toMatchObject({ status: '12' });
  });

  test('ends a call whose request does not come before its deadline', async () => {
    const stream = open('Echo', { 'grpc-timeout': '20m' });
    stream.write(framed(Buffer.from('hello')).subarray(0, 3));
    expect(
      await Promise.race([outcomeOf(stream), once(stream, 'response').then(([headers]) => headers)]),
    ).toMatchObject({ 'grpc-status': '4' });
    stream.close();
  });

  test('sends any number of answers', async () => {
    const outcome = await call('Count', framed(Buffer.from('3000')));
    expect(outcome.answers).toEqual(Array.from({ length: 3000 }, (_, i) => `${i}`));
    expect(outcome.status).toBe('0');
  });

  test('carries requests and answers in streams until the client has no more', async () => {
    const stream = open('Talk');
    const ended = outcomeOf(stream);
    stream.write(framed(Buffer.from('a')));
    stream.end(framed(Buffer.from('b')));
    expect(await ended).toMatchObject({ answers: ['you said a', 'you said b'], status: '0' });
    expect(events).toEqual(['end', 'close']);
  });

  test('ends a stream with a status that comes from inside, and hears no more of it', async () => {
    const stream = open('Talk');
    stream.write(framed(Buffer.from('a')));
    await once(stream, 'data');
    talk!.fail({ code: 9, message: 'enough' });
    stream.end(framed(Buffer.from('b')));
    expect(await outcomeOf(stream)).toMatchObject({ status: '9', message: 'enough' });
    expect(talk!.write({ text: 'late' })).toBe(true);
  });

  test('ends a stream at its deadline', async () => {
    const stream = open('Talk', { 'grpc-timeout': '20m' });
    const ended = outcomeOf(stream);
    await once(stream, 'response');
    stream.end();
    expect(await ended).toMatchObject({ status: '4' });
    expect(events[0]).toBe('cancelled');
  });

  test('tells of a stream whose connection is lost, and takes nothing for it any more', async () => {
    const stream = open('Talk');
    stream.write(framed(Buffer.from('a')));
    await once(stream, 'data');
    session.destroy();
    await once(talk!, 'close');
    expect(events).toEqual(['cancelled', 'close']);
    expect(talk!.cancelled).toBe(true);
    talk!.end();
    talk!.fail({ code: 9, message: 'late' });
    expect(talk!.write({ text: 'late' })).toBe(true);
  });

  test('ends a stream with a request that cannot be decoded', async () => {
    const stream = open('Talk');
    stream.end(framed(Buffer.from('undecodable')));
    expect(await outcomeOf(stream)).toMatchObject({ status: '13' });
  });

  test('survives clients that go away in the middle of anything', async () => {
    for (let i = 0; i < 20; i++) {
      const stream = open(['Echo', 'Count', 'Talk'][i % 3]!);
      stream.write(framed(Buffer.from('50')).subarray(0, i % 8));
      stream.close(8);
    }
    expect(await call('Echo', framed(Buffer.from('still there')))).toMatchObject({ answers: ['still there'] });
  });
});

test('messages come out as they went in, wherever the bytes are cut', () => {
  fc.assert(
    fc.property(
      fc.array(fc.uint8Array({ maxLength: 40 }), { maxLength: 8 }),
      fc.array(fc.integer({ min: 0, max: 300 }), { maxLength: 20 }),
      (messages, cuts) => {
        const bytes = Buffer.concat(messages.map(framed));
        const places = [0, ...cuts.map((cut) => Math.min(cut, bytes.length)).sort((a, b) => a - b), bytes.length];
        const reader = new MessageReader(MAX_BYTES);
        const read = places.slice(1).flatMap((end, i) => reader.push(bytes.subarray(places[i], end)));
        expect(read.map((message) => [...message])).toEqual(messages.map((message) => [...message]));
        expect(reader.isWithinMessage).toBe(false);
      },
    ),
    { seed: 7, numRuns: 300 },
  );
});
