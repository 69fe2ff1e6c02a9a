import { Server, ServerCredentials, type ServiceDefinition, type UntypedServiceImplementation } from '@grpc/grpc-js';
import type { Scheduler } from '../../base/clock.ts';
import { DdfError, toDdfError } from '../../base/errors.ts';
import type { Logger } from '../../base/logger.ts';
import type { Topology } from '../../topologies/types.ts';
import type { FromAgent, ObjectVersion, Reply, TransferStatus } from '../../wire/agent/messages.ts';
import { serviceDefinition } from '../../wire/proto.ts';
import type { Claim } from '../directory/types.ts';
import { type AttachedAgent, checkClaim, checkHello } from './hello.ts';
import { AgentSession, type AgentStream, type RequestBody, toAgentError } from './session.ts';

/** What agents report; called in the order of the messages. */
export interface AgentListener {
  /** Before the welcome. What it throws refuses the agent. @returns whether this is another process than the last one seen */
  attaching(agent: AttachedAgent): { readonly restarted: boolean };
  /** After the welcome: requests can be made. */
  attached(agent: AttachedAgent, restarted: boolean): void;
  /** The stream is gone and no newer one of the agent is there. */
  detached(agent: AttachedAgent): void;
  transferStatus(agent: AttachedAgent, status: TransferStatus): void;
  versionHeld(agent: AttachedAgent, claim: Claim): void;
  versionDropped(agent: AttachedAgent, version: ObjectVersion): void;
}

export interface AgentServerOptions {
  readonly topology: Topology;
  /** Told to agents in the welcome. */
  readonly controllerId: string;
  readonly scheduler: Scheduler;
  readonly logger: Logger;
  readonly listener: AgentListener;
}

/** A stream that says no hello is ended after this, microseconds. */
const HELLO_TIMEOUT_US = 10_000_000;

/** A connection that is silent for 10 s + 5 s is given up; grpc-js would not notice otherwise. */
const SERVER_OPTIONS = {
  'grpc.keepalive_time_ms': 10_000,
  'grpc.keepalive_timeout_ms': 5_000,
  // 100,000 held versions in a hello.
  'grpc.max_receive_message_length': 16 << 20,
};

/**
 * The controller's gRPC end towards the agents. Each agent has one attachment: a newer incarnation replaces the older one, the same one may
 * come back on a new stream, an older one is refused.
 */
export class AgentServer {
  private readonly options: AgentServerOptions;
  private readonly sessions = new Map<string, AgentSession>();
  private readonly server: Server;
  private stopping = false;

  constructor(options: AgentServerOptions) {
    this.options = options;
    this.server = new Server(SERVER_OPTIONS);
    const implementation: UntypedServiceImplementation = { Attach: (stream: AgentStream) => this.accept(stream) };
    this.server.addService(serviceDefinition('ddf.agent.v1.AgentControl') as ServiceDefinition, implementation);
  }

  /**
   * @param address `host:port`; port 0 takes a free one
   * @returns the address with the port that was taken
   * @throws DdfError ADDRESS_IN_USE, INVALID_OPTION
   */
  listen(address: string): Promise<string> {
    return new Promise((resolve, reject) => {
      this.server.bindAsync(address, ServerCredentials.createInsecure(), (error, port) => {
        if (error !== null) reject(bindError(error, address));
        else resolve(`${address.slice(0, address.lastIndexOf(':'))}:${port}`);
      });
    });
  }

  find(name: string): AttachedAgent | undefined {
    return this.sessions.get(name)?.agent;
  }

  /** See {@link AgentSession.request}. @throws DdfError AGENT_UNREACHABLE when the agent is not attached */
  request(name: string, body: RequestBody, timeoutUs: number): Promise<Reply> {
    const session = this.sessions.get(name);
    if (session !== undefined) return session.request(body, timeoutUs);
    return Promise.reject(
      new DdfError('AGENT_UNREACHABLE', `${name} is not attached`, {
        where: name,
        remedy: 'Start its agent, or wait until it has attached.',
        recoverable: true,
      }),
    );
  }

  /** Ends every stream and stops listening. */
  async stop(): Promise<void> {
    this.stopping = true;
    for (const session of this.sessions.values()) session.end();
    this.sessions.clear();
    this.server.forceShutdown();
  }

  private accept(stream: AgentStream): void {
    const { scheduler, logger } = this.options;
    let session: AgentSession | undefined;
    let refused = false;
    const refuse = (error: DdfError): void => {
      logger.warn({ error: error.describe() }, 'agent refused');
      refused = true;
      stream.write({ refused: toAgentError(error) });
      stream.end();
    };
    const impatience = scheduler.at(scheduler.nowUs() + HELLO_TIMEOUT_US, () => {
      if (session === undefined) stream.end();
    });
    const gone = (): void => {
      impatience.cancel();
      if (session !== undefined) this.leave(session);
    };
    stream.on('data', (message: FromAgent) => {
      try {
        if (session !== undefined) this.handle(session, message);
        else if (!refused) {
          impatience.cancel();
          session = this.attach(message, stream);
        }
      } catch (error) {
        const refusal = toDdfError(error);
        if (refusal.code === 'INTERNAL') logger.error({ err: error }, 'message of an agent');
        // A stranger is refused. An agent that is attached starts over, with its next hello.
        if (session === undefined) refuse(refusal);
        else gone();
      }
    });
    stream.on('end', () => {
      gone();
      stream.end();
    });
    stream.on('cancelled', gone);
    stream.on('error', gone);
  }

  private attach(message: FromAgent, stream: AgentStream): AgentSession {
    const { topology, listener, scheduler, logger, controllerId } = this.options;
    if (this.stopping) throw new DdfError('AGENT_UNREACHABLE', 'the controller is stopping', { recoverable: true });
    if (message.hello === undefined)
      throw new DdfError('INVALID_REQUEST', 'the first message has to be a hello', {
        where: 'Attach',
        remedy: 'Start the agent and the controller from the same release.',
      });
    const agent = checkHello(message.hello, topology);
    const before = this.sessions.get(agent.name);
    if (before !== undefined && before.agent.incarnation > agent.incarnation) throw staleError(agent, before.agent);
    const { restarted } = listener.attaching(agent);
    const session = new AgentSession(agent, stream, scheduler);
    this.sessions.set(agent.name, session);
    if (before !== undefined)
      before.end(
        before.agent.incarnation < agent.incarnation ? toAgentError(staleError(before.agent, agent)) : undefined,
      );
    stream.write({ welcome: { controllerId } });
    logger.info({ agent: agent.name, incarnation: String(agent.incarnation) }, 'agent attached');
    listener.attached(agent, restarted);
    return session;
  }

  private handle(session: AgentSession, message: FromAgent): void {
    const { agent } = session;
    if (this.sessions.get(agent.name) !== session) return;
    const { listener } = this.options;
    if (message.reply !== undefined) session.handleReply(message.reply);
    else if (message.transferStatus !== undefined) listener.transferStatus(agent, message.transferStatus);
    else if (message.versionHeld !== undefined)
      listener.versionHeld(agent, checkClaim(message.versionHeld, agent.name));
    else if (message.versionDropped !== undefined) listener.versionDropped(agent, message.versionDropped);
  }

  private leave(session: AgentSession): void {
    session.end();
    const { agent } = session;
    if (this.sessions.get(agent.name) !== session) return;
    this.sessions.delete(agent.name);
    this.options.logger.info({ agent: agent.name }, 'agent detached');
    this.options.listener.detached(agent);
  }
}

function staleError(stale: AttachedAgent, newer: AttachedAgent): DdfError {
  return new DdfError(
    'CONFLICT',
    `incarnation ${stale.incarnation} of ${stale.name} is older than ${newer.incarnation}`,
    {
      where: stale.name,
      remedy: 'A newer process of this agent has attached: stop the old one.',
    },
  );
}

function bindError(error: Error, address: string): DdfError {
  // grpc-js passes the system's code on in nothing but the text.
  if (error.message.includes('EADDRINUSE'))
    return new DdfError('ADDRESS_IN_USE', `agents cannot attach at ${address}: the port is in use`, {
      where: address,
      remedy: 'Stop what listens there or choose another port.',
      cause: error,
    });
  return new DdfError('INVALID_OPTION', `agents cannot attach at ${address}: ${error.message}`, {
    where: address,
    remedy: 'Write HOST:PORT with an address of this machine, such as 127.0.0.1:9570.',
    cause: error,
  });
}
