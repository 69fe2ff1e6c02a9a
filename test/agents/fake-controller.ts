import { Server, ServerCredentials, type ServerDuplexStream, type ServiceDefinition, status } from '@grpc/grpc-js';
import type {
  FromAgent,
  HeldVersion,
  Hello,
  Reply,
  Request,
  ToAgent,
  TransferStatus,
} from '../../wire/agent/messages.ts';
import { type MessageInput, serviceDefinition } from '../../wire/proto.ts';

type Stream = ServerDuplexStream<FromAgent, MessageInput<ToAgent>>;

interface Attached {
  readonly stream: Stream;
  readonly hello: Hello;
}

/** The other end of the agents' streams, for tests: keeps what agents say and asks what a test wants. */
export class FakeController {
  readonly hellos: Hello[] = [];
  readonly statuses: TransferStatus[] = [];
  readonly held: HeldVersion[] = [];
  readonly dropped: { objectId: bigint; version: number }[] = [];
  /** Names that are refused. */
  readonly refused = new Set<string>();
  private readonly agents = new Map<string, Attached>();
  private readonly pending = new Map<bigint, (reply: Reply) => void>();
  private readonly watchers = new Set<() => void>();
  private readonly server = new Server();
  private port = 0;
  private nextRequest = 1n;

  get address(): string {
    return `127.0.0.1:${this.port}`;
  }

  async start(port = 0): Promise<void> {
    this.server.addService(serviceDefinition('ddf.agent.v1.AgentControl') as unknown as ServiceDefinition, {
      attach: (stream: Stream) => this.accept(stream),
      Attach: (stream: Stream) => this.accept(stream),
    });
    this.port = await new Promise((resolve, reject) =>
      this.server.bindAsync(`127.0.0.1:${port}`, ServerCredentials.createInsecure(), (error, bound) =>
        error === null ? resolve(bound) : reject(error),
      ),
    );
  }

  stop(): void {
    this.server.forceShutdown();
  }

  hello(agent: string): Hello {
    return this.agents.get(agent)!.hello;
  }

  isAttached(agent: string): boolean {
    return this.agents.has(agent);
  }

  /** Ends an agent's stream, as a controller that restarts would. */
  cut(agent: string): void {
    this.agents.get(agent)?.stream.emit('error', Object.assign(new Error('restarting'), { code: status.UNAVAILABLE }));
    this.agents.delete(agent);
  }

  ask(agent: string, body: Omit<MessageInput<Request>, 'requestId'>): Promise<Reply> {
    const requestId = this.nextRequest++;
    return new Promise((resolve) => {
      this.pending.set(requestId, resolve);
      this.agents.get(agent)!.stream.write({ request: { requestId, ...body } });
    });
  }

  /** The last status of a label that `matches`, as soon as there is one. */
  async status(label: number, matches: (status: TransferStatus) => boolean): Promise<TransferStatus> {
    let found: TransferStatus | undefined;
    await this.until(() => {
      found = this.statuses.findLast((status) => status.label === label && matches(status));
      return found !== undefined;
    });
    return found!;
  }

  /** Resolves when `done` says so after something was heard. */
  until(done: () => boolean): Promise<void> {
    return new Promise((resolve) => {
      const check = (): void => {
        if (!done()) return;
        this.watchers.delete(check);
        resolve();
      };
      this.watchers.add(check);
      check();
    });
  }

  private accept(stream: Stream): void {
    let name: string | undefined;
    stream.on('data', (message: FromAgent) => {
      if (message.hello !== undefined) {
        name = message.hello.agentId;
        this.hellos.push(message.hello);
        if (this.refused.has(name)) {
          stream.write({ refused: { code: 'NOT_FOUND', message: `no host is called ${name}`, where: '', remedy: '' } });
          stream.end();
        } else {
          this.agents.set(name, { stream, hello: message.hello });
          stream.write({ welcome: { controllerId: 'fake' } });
        }
      }
      if (message.reply !== undefined) {
        this.pending.get(message.reply.requestId)?.(message.reply);
        this.pending.delete(message.reply.requestId);
      }
      if (message.transferStatus !== undefined) this.statuses.push(message.transferStatus);
      if (message.versionHeld !== undefined) this.held.push(message.versionHeld);
      if (message.versionDropped !== undefined) this.dropped.push(message.versionDropped);
      this.notify();
    });
    const gone = (): void => {
      if (name !== undefined && this.agents.get(name)?.stream === stream) this.agents.delete(name);
      this.notify();
    };
    stream.on('error', gone);
    stream.on('end', () => {
      stream.end();
      gone();
    });
    stream.on('close', gone);
  }

  private notify(): void {
    for (const watcher of [...this.watchers]) watcher();
  }
}
