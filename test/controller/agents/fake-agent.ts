import { type ClientDuplexStream, credentials, makeGenericClientConstructor } from '@grpc/grpc-js';
import { RECEIVER_UDP_PORT_FIRST } from '../../../p4/build/constants.ts';
import type { Topology } from '../../../topologies/types.ts';
import {
  AgentKind,
  type FromAgent,
  type Hello,
  type Reply,
  type Request,
  type ToAgent,
} from '../../../wire/agent/messages.ts';
import { type MessageInput, serviceDefinition } from '../../../wire/proto.ts';

const Client = makeGenericClientConstructor(serviceDefinition('ddf.agent.v1.AgentControl'), 'AgentControl');

type Answer = Omit<MessageInput<Reply>, 'requestId'>;

/** An agent that does what a test tells it: says hello, keeps what it hears, answers requests by a script. */
export class FakeAgent {
  readonly requests: Request[] = [];
  readonly heard: ToAgent[] = [];
  ended = false;
  /** Undefined: no reply. */
  answer: (request: Request) => Answer | undefined = () => ({});
  private readonly client: InstanceType<typeof Client>;
  private readonly stream: ClientDuplexStream<MessageInput<FromAgent>, ToAgent>;
  private waiting: (() => void)[] = [];

  constructor(address: string) {
    this.client = new Client(address, credentials.createInsecure(), { 'grpc.use_local_subchannel_pool': 1 });
    this.stream = this.client.Attach!() as unknown as ClientDuplexStream<MessageInput<FromAgent>, ToAgent>;
    this.stream.on('data', (message: ToAgent) => {
      this.heard.push(message);
      if (message.request !== undefined) this.handle(message.request);
      this.wake();
    });
    const over = (): void => {
      this.ended = true;
      this.wake();
    };
    this.stream.on('error', over);
    this.stream.on('end', over);
  }

  /** Says hello and waits for the answer: welcome, refusal, or the end. */
  static async attach(address: string, hello: MessageInput<Hello>): Promise<FakeAgent> {
    const agent = new FakeAgent(address);
    agent.send({ hello });
    await agent.until(() => agent.ended || agent.heard.length > 0);
    return agent;
  }

  get welcomed(): boolean {
    return this.heard[0]?.welcome !== undefined;
  }

  get refusal(): string | undefined {
    return this.heard.find((message) => message.refused !== undefined)?.refused?.code;
  }

  send(message: MessageInput<FromAgent>): void {
    this.stream.write(message);
  }

  /** Waits for something that a message changes; the test's own time-out bounds it. */
  async until(condition: () => boolean): Promise<void> {
    while (!condition()) await new Promise<void>((resolve) => this.waiting.push(resolve));
  }

  close(): void {
    this.stream.cancel();
    this.client.close();
  }

  private handle(request: Request): void {
    this.requests.push(request);
    const answer = this.answer(request);
    if (answer !== undefined) this.send({ reply: { ...answer, requestId: request.requestId } });
  }

  private wake(): void {
    const waiting = this.waiting;
    this.waiting = [];
    for (const resolve of waiting) resolve();
  }
}

/** What an honest agent on this host of the topology says. */
export function helloOf(topology: Topology, name: string, change: MessageInput<Hello> = {}): MessageInput<Hello> {
  const host = topology.hosts.find((node) => node.name === name)!;
  return {
    agentId: name,
    kind: host.kind === 'memory-node' ? AgentKind.MEMORY_NODE : AgentKind.GPU_SERVER,
    incarnation: 1n,
    fabricIp: host.ip,
    receiverPort: RECEIVER_UDP_PORT_FIRST,
    rangeUrl: 'http://127.0.0.1:9',
    ...change,
  };
}
