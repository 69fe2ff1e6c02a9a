import type { FastifyReply } from 'fastify';
import type { RolloutEvent } from '../service.ts';

/**
 * Streams events in the text/event-stream format (WHATWG HTML, server-sent events) until they end or the client leaves. A client that
 * reads too slowly stops the iteration rather than filling memory: it can resume by its last id.
 */
export async function sendEvents(
  reply: FastifyReply,
  open: (signal: AbortSignal) => AsyncIterable<RolloutEvent>,
): Promise<void> {
  const gone = new AbortController();
  reply.hijack();
  const stream = reply.raw;
  stream.on('close', () => gone.abort());
  stream.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store', connection: 'keep-alive' });
  try {
    for await (const event of open(gone.signal)) {
      const text = `id: ${event.id}\nevent: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`;
      if (!stream.write(text) && !(await drained(stream, gone.signal))) break;
    }
  } finally {
    stream.end();
  }
}

const SLOW_CLIENT_MS = 10_000;

function drained(stream: NodeJS.WritableStream & NodeJS.EventEmitter, signal: AbortSignal): Promise<boolean> {
  return new Promise((resolve) => {
    const settle = (result: boolean) => () => {
      clearTimeout(timer);
      stream.removeListener('drain', onDrain);
      signal.removeEventListener('abort', onAbort);
      resolve(result);
    };
    const onDrain = settle(true);
    const onAbort = settle(false);
    const timer = setTimeout(onAbort, SLOW_CLIENT_MS);
    stream.once('drain', onDrain);
    signal.addEventListener('abort', onAbort, { once: true });
  });
}
