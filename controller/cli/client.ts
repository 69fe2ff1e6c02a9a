import { DdfError, ERROR_CODES, type ErrorCode } from '../../base/errors.ts';
import type { RolloutEvent } from '../service.ts';

const REQUEST_TIMEOUT_MS = 600_000; // publishing hashes whole files before it answers

/** The controller's REST API as the command line uses it. Failures are DdfErrors, the controller's own code and remedy included. */
export class ApiClient {
  readonly url: string;

  constructor(url: string) {
    if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol)) {
      throw new DdfError('INVALID_OPTION', `'${url}' is not the URL of a controller`, {
        remedy: 'Write one such as http://127.0.0.1:8080, with --url or in DDF_URL.',
      });
    }
    this.url = url.replace(/\/+$/, '');
  }

  get<T>(path: string): Promise<T> {
    return this.request('GET', path);
  }

  async list<T>(path: string): Promise<T[]> {
    return (await this.get<{ items: T[] }>(path)).items;
  }

  post<T>(path: string, body: unknown): Promise<T> {
    return this.request('POST', path, body);
  }

  delete<T>(path: string): Promise<T> {
    return this.request('DELETE', path);
  }

  /** Server-sent events of a rollout until it ends. */
  async *events(rolloutId: string): AsyncGenerator<RolloutEvent> {
    const response = await this.fetch('GET', `/v1/rollouts/${encodeURIComponent(rolloutId)}/events`);
    const decoder = new TextDecoder();
    let pending = '';
    for await (const bytes of response.body ?? []) {
      pending += decoder.decode(bytes, { stream: true });
      for (let end = pending.indexOf('\n\n'); end >= 0; end = pending.indexOf('\n\n')) {
        const data = /^data: (.*)$/m.exec(pending.slice(0, end))?.[1];
        pending = pending.slice(end + 2);
        if (data !== undefined) yield JSON.parse(data) as RolloutEvent;
      }
    }
  }

  private async request<T>(method: string, path: string, body?: unknown): Promise<T> {
    const response = await this.fetch(method, path, body, AbortSignal.timeout(REQUEST_TIMEOUT_MS));
    return (await response.json()) as T;
  }

  private async fetch(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<Response> {
    const response = await fetch(`${this.url}${path}`, {
      method,
      ...(body === undefined ? {} : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
      ...(signal === undefined ? {} : { signal }),
    }).catch((cause: unknown) => {
      throw new DdfError('AGENT_UNREACHABLE', `no controller answers at ${this.url}`, {
        remedy: 'Start one with `npm start -- --serve --port 8080`, or name another with --url or DDF_URL.',
        recoverable: true,
        cause,
      });
    });
    if (!response.ok) throw await problem(response);
    return response;
  }
}

async function problem(response: Response): Promise<DdfError> {
  const body = (await response.json().catch(() => ({}))) as Record<string, unknown>;
  const text = (name: string) => (typeof body[name] === 'string' ? { [name]: body[name] as string } : {});
  const code = ERROR_CODES.includes(body.code as ErrorCode) ? (body.code as ErrorCode) : 'INTERNAL';
  return new DdfError(code, String(body.detail ?? `${response.status} ${response.statusText}`), {
    ...text('where'),
    ...text('remedy'),
  });
}
