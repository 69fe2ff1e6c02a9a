import { type ChannelOptions, type ClientDuplexStream, credentials, makeGenericClientConstructor } from '@grpc/grpc-js';
import { DdfError, ERROR_CODES, type ErrorCode, toDdfError } from '../../base/errors.ts';
import type { Logger } from '../../base/logger.ts';
import type { Random } from '../../base/random.ts';
import type { AgentError, FromAgent, Hello, Reply, Request, ToAgent } from '../../wire/agent/messages.ts';
import { type MessageInput, serviceDefinition } from '../../wire/proto.ts';

type Up = MessageInput<FromAgent>;

export interface AttachmentOptions {
  /** `host:port` of the controller's gRPC end towards agents. */
  readonly controllerAddress: string;
  /** What the agent says of itself, asked at every attach: holdings change. */
  readonly hello: () => MessageInput<Hello>;
  /** Does what the controller asks; what it throws is the reply's error. */
  readonly execute: (request: Request) => Promise<Omit<MessageInput<Reply>, 'requestId' | 'error'>>;
  /** Called when the controller has welcomed us: the place to say again what it may have missed. */
  readonly onAttached: () => void;
  readonly random: Random;
  readonly logger: Logger;
}

/** The HTTP/2 connection is given up when it is silent for 5 s + 3 s; grpc-js would not notice otherwise. */
const CHANNEL_OPTIONS: ChannelOptions = {
  'grpc.keepalive_time_ms': 5_000,
  'grpc.keepalive_timeout_ms': 3_000,
  'grpc.keepalive_permit_without_calls': 1,
  'grpc.initial_reconnect_backoff_ms': 100,
  'grpc.max_reconnect_backoff_ms': 2_000,
  // A proxy for the web in the environment is not the way to the controller.
  'grpc.enable_http_proxy': 0,
  // Many agents of one process would otherwise share one connection, and its fate.
  'grpc.use_local_subchannel_pool': 1,
};
const FIRST_WAIT_MS = 100;
const LONGEST_WAIT_MS = 5_000;
/** A controller that does not welcome us within this is tried again. */
const WELCOME_MS = 10_000;
/** Messages that may wait for a slow controller; beyond, the stream is begun anew and hello says what counts. */
const MAX_WAITING = 4096;

const AttachClient = makeGenericClientConstructor(serviceDefinition('ddf.agent.v1.AgentControl'), 'AgentControl');

/**
 * The agent's stream to the controller: attaches, says hello, executes requests, and attaches again after every failure, with waits from
 * 100 ms doubling to 5 s. It ends by {@link stop}, or when the controller refuses the agent.
 */
export class Attachment {
  private readonly options: AttachmentOptions;
  private readonly client: InstanceType<typeof AttachClient>;
  private stream: ClientDuplexStream<Up, ToAgent> | undefined;
  private waitMs = FIRST_WAIT_MS;
  private timer: NodeJS.Timeout | undefined;
  private isWelcome = false;
  private isStopped = false;
  private refusal: DdfError | undefined;
  private watchers: (() => void)[] = [];

  constructor(options: AttachmentOptions) {
    this.options = options;
    this.client = new AttachClient(options.controllerAddress, credentials.createInsecure(), CHANNEL_OPTIONS);
  }

  get isAttached(): boolean {
    return this.isWelcome;
  }

  start(): void {
    if (this.isStopped || this.stream !== undefined) return;
    const stream = this.client.Attach!() as unknown as ClientDuplexStream<Up, ToAgent>;
    this.stream = stream;
    stream.on('data', (message: ToAgent) => this.receive(stream, message));
    stream.on('error', (error: Error) => this.lose(stream, error.message));
    stream.on('end', () => this.lose(stream, 'the controller ended the stream'));
    stream.write({ hello: this.options.hello() });
    this.timer = setTimeout(() => this.lose(stream, 'no welcome'), WELCOME_MS);
  }

  /** Says something to the controller; nothing happens while it is not attached, since hello and onAttached say what counts. */
  send(message: Up): void {
    if (this.stream === undefined || !this.isWelcome) return;
    if (this.stream.writableLength >= MAX_WAITING) this.lose(this.stream, 'the controller reads too slowly');
    else this.stream.write(message);
  }

  /** @throws DdfError AGENT_UNREACHABLE after `timeoutMs`, or what the controller refused the agent with */
  async whenAttached(timeoutMs: number): Promise<void> {
    const deadline = Date.now() + timeoutMs;
    while (!this.isWelcome) {
      if (this.refusal !== undefined) throw this.refusal;
      const leftMs = deadline - Date.now();
      if (leftMs <= 0 || this.isStopped)
        throw new DdfError('AGENT_UNREACHABLE', `no controller answered at ${this.options.controllerAddress}`, {
          remedy: 'Check that the controller runs there.',
          recoverable: true,
        });
      await this.change(leftMs);
    }
  }

  /** Ends the stream in an orderly way, or at once. */
  stop(how: 'end' | 'cut'): void {
    if (this.isStopped) return;
    this.isStopped = true;
    this.isWelcome = false;
    clearTimeout(this.timer);
    const stream = this.stream;
    this.stream = undefined;
    stream?.removeAllListeners();
    stream?.on('error', () => {});
    if (how === 'end') stream?.end();
    else stream?.cancel();
    this.client.close();
    this.notify();
  }

  private receive(stream: ClientDuplexStream<Up, ToAgent>, message: ToAgent): void {
    if (stream !== this.stream) return;
    if (message.welcome !== undefined) {
      clearTimeout(this.timer);
      this.isWelcome = true;
      this.waitMs = FIRST_WAIT_MS;
      this.options.logger.info({ controller: message.welcome.controllerId }, 'attached');
      this.options.onAttached();
      this.notify();
    } else if (message.request !== undefined) {
      void this.execute(stream, message.request);
    } else if (message.refused !== undefined) {
      this.refusal = fromAgentError(message.refused);
      this.options.logger.error({ error: this.refusal }, 'the controller refused this agent');
      this.stop('end');
    }
  }

  private async execute(stream: ClientDuplexStream<Up, ToAgent>, request: Request): Promise<void> {
    const { requestId } = request;
    let reply: MessageInput<Reply>;
    try {
      reply = { requestId, ...(await this.options.execute(request)) };
    } catch (thrown) {
      const error = toDdfError(thrown);
      if (error.code === 'INTERNAL') this.options.logger.error({ error: thrown }, 'request failed');
      reply = { requestId, error: toAgentError(error) };
    }
    // A controller that attached meanwhile does not know the id.
    if (stream === this.stream) this.send({ reply });
  }

  private lose(stream: ClientDuplexStream<Up, ToAgent>, why: string): void {
    if (stream !== this.stream) return;
    this.stream = undefined;
    this.isWelcome = false;
    stream.removeAllListeners();
    stream.on('error', () => {});
    stream.cancel();
    clearTimeout(this.timer);
    const jitter = 0.75 + this.options.random.float() / 2;
    this.options.logger.debug({ why, waitMs: this.waitMs }, 'not attached');
    this.timer = setTimeout(() => this.start(), this.waitMs * jitter);
    this.waitMs = Math.min(2 * this.waitMs, LONGEST_WAIT_MS);
    this.notify();
  }

  private change(timeoutMs: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, timeoutMs);
      this.watchers.push(() => {
        clearTimeout(timer);
        resolve();
      });
    });
  }

  private notify(): void {
    const watchers = this.watchers;
    this.watchers = [];
    for (const watcher of watchers) watcher();
  }
}

export function toAgentError(error: DdfError): AgentError {
  return { code: error.code, message: error.message, where: error.where ?? '', remedy: error.remedy ?? '' };
}

function fromAgentError({ code, message, where, remedy }: AgentError): DdfError {
  const known = (ERROR_CODES as readonly string[]).includes(code) ? (code as ErrorCode) : 'AGENT_FAILED';
  return new DdfError(known, message, { where, remedy });
}
