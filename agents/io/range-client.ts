import { Agent, type IncomingMessage, request } from 'node:http';
import { DdfError } from '../../base/errors.ts';
import { formatPayloadId, type PayloadId } from '../../objects/ids.ts';

/** Somebody who serves a payload by range, and what lets us read it. */
export interface RangeHolder {
  readonly rangeUrl: string;
  readonly token: string;
}

export type RangePart = 'data' | 'manifest';

export interface RangeReaderOptions {
  readonly payload: PayloadId;
  /** In the order of preference. */
  readonly holders: readonly RangeHolder[];
  /** One request, from its start to its last byte. Default 10,000. */
  readonly timeoutMs?: number;
  /** Longest range asked for; replies are collected in memory. Default 4 MiB. */
  readonly maxRangeBytes?: number;
}

/** Reads ranges of a payload, from the next holder when one fails. Every wait ends: holders times timeout at most. */
export class RangeReader {
  private readonly options: RangeReaderOptions;
  private readonly abort = new AbortController();
  private readonly connections = new Agent({ keepAlive: true });
  /** The holder that is asked first: the last one that answered. */
  private preferred = 0;
  private requestCount = 0;
  private byteCount = 0;

  constructor(options: RangeReaderOptions) {
    this.options = options;
  }

  get requests(): number {
    return this.requestCount;
  }

  /** Body bytes that were read, also those of replies that were of no use. */
  get bytes(): number {
    return this.byteCount;
  }

  /**
   * Exactly the bytes from `start` up to, not including, `end`.
   * @throws DdfError CANCELLED after {@link close}; what the last holder failed with; NOT_FOUND without holders
   */
  async read(part: RangePart, start: number, end: number): Promise<Uint8Array> {
    const { holders, payload } = this.options;
    let failure = new DdfError(
      'NOT_FOUND',
      `nobody is known who serves payload ${formatPayloadId(payload)} by unicast`,
      {
        recoverable: true,
      },
    );
    for (let attempt = 0; attempt < holders.length; attempt++) {
      const index = (this.preferred + attempt) % holders.length;
      try {
        const bytes = await this.readFrom(holders[index]!, part, start, end);
        this.preferred = index;
        return bytes;
      } catch (error) {
        failure = error as DdfError;
        if (failure.code === 'CANCELLED') break;
      }
    }
    throw failure;
  }

  /** The next read starts with another holder: what this one sends has the wrong hash. */
  distrust(): void {
    this.preferred = (this.preferred + 1) % Math.max(1, this.options.holders.length);
  }

  /** Ends what is running; reads are refused from then on. */
  close(): void {
    this.abort.abort();
    this.connections.destroy();
  }

  private readFrom(holder: RangeHolder, part: RangePart, start: number, end: number): Promise<Uint8Array> {
    const { payload, timeoutMs = 10_000, maxRangeBytes = 4 * 1024 * 1024 } = this.options;
    const wanted = end - start;
    const where = `${holder.rangeUrl}/payloads/${formatPayloadId(payload)}/${part}`;
    return new Promise((resolve, reject) => {
      if (this.abort.signal.aborted) return reject(gaveUp(where));
      if (wanted <= 0 || wanted > maxRangeBytes)
        return reject(new DdfError('INTERNAL', `a range of ${wanted} bytes is not in 1..${maxRangeBytes}`));
      this.requestCount++;
      const signal = AbortSignal.any([this.abort.signal, AbortSignal.timeout(timeoutMs)]);
      const fail = (error: unknown): void => {
        if (error instanceof DdfError) reject(error);
        else if (this.abort.signal.aborted) reject(gaveUp(where));
        else if (signal.aborted)
          reject(
            new DdfError('TIMEOUT', `a range read took longer than ${timeoutMs} ms`, { where, recoverable: true }),
          );
        else {
          const { message } = error as Error;
          reject(new DdfError('UNREACHABLE_HOST', `a range read failed: ${message}`, { where, recoverable: true }));
        }
      };
      try {
        const headers = { authorization: `Bearer ${holder.token}`, range: `bytes=${start}-${end - 1}` };
        const asked = request(where, { headers, signal, agent: this.connections }, (response) => {
          this.collect(response, start, end, where).then(resolve, fail);
        });
        asked.on('error', fail);
        asked.end();
      } catch (error) {
        fail(error);
      }
    });
  }

  private async collect(response: IncomingMessage, start: number, end: number, where: string): Promise<Uint8Array> {
    if (response.statusCode !== 206) {
      response.destroy();
      const code = response.statusCode === 404 ? 'NOT_FOUND' : 'AGENT_FAILED';
      throw new DdfError(code, `a holder answered a range read with ${response.statusCode}`, {
        where,
        recoverable: true,
      });
    }
    const wanted = end - start;
    const given = response.headers['content-range'] ?? '';
    if (!given.startsWith(`bytes ${start}-${end - 1}/`)) {
      response.destroy();
      throw new DdfError('AGENT_FAILED', `a holder sent ${given || 'no range'} instead of ${start}-${end - 1}`, {
        where,
      });
    }
    const bytes = new Uint8Array(wanted);
    let done = 0;
    for await (const piece of response as AsyncIterable<Buffer>) {
      this.byteCount += piece.length;
      if (done + piece.length > wanted) {
        response.destroy();
        throw new DdfError('AGENT_FAILED', 'a holder sent more bytes than it announced', { where });
      }
      bytes.set(piece, done);
      done += piece.length;
    }
    if (done !== wanted)
      throw new DdfError('UNREACHABLE_HOST', `a holder sent ${done} of ${wanted} bytes`, { where, recoverable: true });
    return bytes;
  }
}

function gaveUp(where: string): DdfError {
  return new DdfError('CANCELLED', 'a range read was given up', { where });
}
