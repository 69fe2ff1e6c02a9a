import type { ServerDuplexStream } from '@grpc/grpc-js';
import type { Scheduler, Timer } from '../../base/clock.ts';
import { DdfError, ERROR_CODES, type ErrorCode } from '../../base/errors.ts';
import type { AgentError, FromAgent, Reply, Request, ToAgent } from '../../wire/agent/messages.ts';
import type { MessageInput } from '../../wire/proto.ts';
import type { AttachedAgent } from './hello.ts';

export type AgentStream = ServerDuplexStream<FromAgent, MessageInput<ToAgent>>;
export type RequestBody = MessageInput<Omit<Request, 'requestId'>>;

/** Requests that wait for their replies, and messages that wait for a slow agent, at most. */
const MAX_PENDING = 4096;

interface Pending {
  readonly timer: Timer;
  resolve(reply: Reply): void;
  reject(error: DdfError): void;
}

/** One attachment of one agent: requests out, replies in, each matched by its id and bounded in time. */
export class AgentSession {
  readonly agent: AttachedAgent;
  private readonly stream: AgentStream;
  private readonly scheduler: Scheduler;
  private readonly pending = new Map<bigint, Pending>();
  private nextId = 1n;
  private ended = false;

  constructor(agent: AttachedAgent, stream: AgentStream, scheduler: Scheduler) {
    this.agent = agent;
    this.stream = stream;
    this.scheduler = scheduler;
  }

  /**
   * @throws DdfError what the agent replied; TIMEOUT after `timeoutUs` (recoverable); AGENT_UNREACHABLE when the stream ends (recoverable)
   */
  request(body: RequestBody, timeoutUs: number): Promise<Reply> {
    if (this.ended) return Promise.reject(this.unreachable('is not attached'));
    if (this.pending.size >= MAX_PENDING || this.stream.writableLength >= MAX_PENDING)
      return Promise.reject(this.unreachable('does not keep up with requests'));
    const requestId = this.nextId++;
    return new Promise((resolve, reject) => {
      const timer = this.scheduler.at(this.scheduler.nowUs() + timeoutUs, () => {
        this.pending.delete(requestId);
        reject(
          new DdfError('TIMEOUT', `${this.agent.name} did not reply within ${timeoutUs / 1e6} s`, {
            where: Object.keys(body)[0] ?? 'request',
            remedy: "Look into the agent's log.",
            recoverable: true,
          }),
        );
      });
      this.pending.set(requestId, { timer, resolve, reject });
      this.stream.write({ request: { ...body, requestId } });
    });
  }

  /** A reply to nothing that waits (it came too late) is ignored. */
  handleReply(reply: Reply): void {
    const waiting = this.pending.get(reply.requestId);
    if (waiting === undefined) return;
    this.pending.delete(reply.requestId);
    waiting.timer.cancel();
    if (reply.error === undefined) waiting.resolve(reply);
    else waiting.reject(fromAgentError(reply.error, this.agent.name));
  }

  /** Ends the stream; everything that waits fails. Idempotent. */
  end(refusal?: AgentError): void {
    if (this.ended) return;
    this.ended = true;
    for (const { timer, reject } of this.pending.values()) {
      timer.cancel();
      reject(this.unreachable('has gone'));
    }
    this.pending.clear();
    if (refusal !== undefined) this.stream.write({ refused: refusal });
    this.stream.end();
  }

  private unreachable(what: string): DdfError {
    return new DdfError('AGENT_UNREACHABLE', `${this.agent.name} ${what}`, {
      where: this.agent.name,
      remedy: 'It is used again once it has attached.',
      recoverable: true,
    });
  }
}

/** The agent's own error, with its name added to where it happened. */
export function fromAgentError({ code, message, where, remedy }: AgentError, agent: string): DdfError {
  const known = (ERROR_CODES as readonly string[]).includes(code) ? (code as ErrorCode) : 'AGENT_FAILED';
  return new DdfError(known, message, {
    where: where === '' ? agent : `${agent}: ${where}`,
    ...(remedy === '' ? {} : { remedy }),
  });
}

export function toAgentError(error: DdfError): AgentError {
  return { code: error.code, message: error.message, where: error.where ?? '', remedy: error.remedy ?? '' };
}
